# Run with cmake -P by the target flashbound_build_info.
function(git_output result)
  execute_process(COMMAND ${GIT} ${ARGN}
    WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE status ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(output "")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(GIT_HASH unknown)
set(GIT_DIRTY false)
if(GIT)
  # A source archive unpacked inside another project's checkout must not borrow that one's hash.
  git_output(root rev-parse --show-toplevel)
  file(REAL_PATH "${SOURCE_DIR}" source)
  if(root STREQUAL source)
    git_output(hash rev-parse HEAD)
    if(hash)
      set(GIT_HASH ${hash})
    endif()
    git_output(changes --no-optional-locks status --porcelain --untracked-files=no)
    if(changes)
      set(GIT_DIRTY true)
    endif()
  endif()
endif()

configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
