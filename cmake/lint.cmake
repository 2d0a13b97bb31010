# format, format-check and tidy. The tools' major version is pinned: another one formats otherwise.
find_program(FLASHBOUND_CLANG_FORMAT clang-format-14)
find_program(FLASHBOUND_RUN_CLANG_TIDY run-clang-tidy-14)
mark_as_advanced(FLASHBOUND_CLANG_FORMAT FLASHBOUND_RUN_CLANG_TIDY)

if(FLASHBOUND_CLANG_FORMAT)
  add_custom_target(format
    COMMAND ${PROJECT_SOURCE_DIR}/tests/format --fix
    COMMENT "Formatting C++ and CUDA sources" VERBATIM)
  add_custom_target(format-check
    COMMAND ${PROJECT_SOURCE_DIR}/tests/format
    COMMENT "Checking the format of C++ and CUDA sources" VERBATIM)
endif()

if(FLASHBOUND_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${PROJECT_SOURCE_DIR}/tests/tidy ${PROJECT_BINARY_DIR}
    COMMENT "Linting C++ sources" VERBATIM)
endif()
