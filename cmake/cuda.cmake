# Sets FLASHBOUND_HAS_CUDA and enables the language where FLASHBOUND_CUDA allows.
set(FLASHBOUND_HAS_CUDA FALSE)

if(FLASHBOUND_CUDA STREQUAL "OFF")
  return()
endif()
if(FLASHBOUND_SANITIZE)
  # The address sanitizer reserves memory that the CUDA driver needs.
  if(FLASHBOUND_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FLASHBOUND_CUDA=ON and FLASHBOUND_SANITIZE exclude each other")
  endif()
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  # The toolkit's usual home is often not on PATH.
  find_program(flashbound_nvcc nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda)
  mark_as_advanced(flashbound_nvcc)
  if(flashbound_nvcc)
    # Through the environment, since check_language trusts a compiler that is set already; an nvcc
    # that does not accept the host compiler must not break a build with AUTO.
    set(ENV{CUDACXX} "${flashbound_nvcc}")
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(FLASHBOUND_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FLASHBOUND_CUDA=ON, but no working CUDA compiler was found")
  endif()
  message(STATUS "CUDA: no compiler found, building without")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)

# CMake before 3.25.2 does not know nvcc's C++20 option and would silently compile C++17.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

set(FLASHBOUND_HAS_CUDA TRUE)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, "
  "architectures ${CMAKE_CUDA_ARCHITECTURES}")
