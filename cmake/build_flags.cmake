# flashbound_build_flags carries what every target of this project is compiled with. Targets link
# it through BUILD_INTERFACE, so that none of it reaches a project that uses an installed package.

# Contraction would change the roundings whose bounds are proven, differently on each machine.
set(flashbound_semantic_flags -ffp-contract=off)
set(flashbound_warnings -Wall -Wextra -Wconversion -Wshadow -Wdouble-promotion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # It warns, when optimising, of "literal" + std::string (GCC bug 105651).
  list(APPEND flashbound_warnings -Wno-restrict)
endif()
if(FLASHBOUND_WERROR)
  list(APPEND flashbound_warnings -Werror)
endif()

set(flashbound_sanitizers "")
if(FLASHBOUND_SANITIZE)
  # Without -fno-sanitize-recover a finding of the undefined sanitizer would not fail a test.
  list(APPEND flashbound_sanitizers
    -fsanitize=${FLASHBOUND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
if(FLASHBOUND_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FLASHBOUND_FUZZ needs clang, for libFuzzer; use the preset fuzz")
  endif()
  list(APPEND flashbound_sanitizers -fsanitize=fuzzer-no-link)
endif()

add_library(flashbound_build_flags INTERFACE)
target_compile_options(flashbound_build_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${flashbound_semantic_flags};${flashbound_warnings};${flashbound_sanitizers}>")
target_link_options(flashbound_build_flags INTERFACE ${flashbound_sanitizers})
