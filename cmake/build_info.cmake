# Writes build_info.cpp anew at each build, since a commit does not re-run CMake. The file changes
# only when the facts do, so at most it and the links after it are rebuilt.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
set(build_info_flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}")
string(JOIN " " build_info_flags
  ${build_info_flags} ${flashbound_semantic_flags} ${flashbound_sanitizers})
string(STRIP "${build_info_flags}" build_info_flags)

set(build_info_cuda "")
if(FLASHBOUND_HAS_CUDA)
  set(build_info_cuda "${CMAKE_CUDA_COMPILER_ID} ${CMAKE_CUDA_COMPILER_VERSION}")
endif()

find_package(Git QUIET)
add_custom_target(flashbound_build_info
  COMMAND ${CMAKE_COMMAND}
    -D "VERSION=${PROJECT_VERSION}"
    -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -D "FLAGS=${build_info_flags}"
    -D "BUILD_TYPE=${CMAKE_BUILD_TYPE}"
    -D "CUDA_COMPILER=${build_info_cuda}"
    -D "GIT=${GIT_EXECUTABLE}"
    -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    -D "TEMPLATE=${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in"
    -D "OUTPUT=${PROJECT_BINARY_DIR}/build_info/build_info.cpp"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/build_info/build_info.cpp
  COMMENT "Recording git hash and build facts"
  VERBATIM)
add_dependencies(flashbound_experiments flashbound_build_info)
