# cmake -DSOURCE=DIR -DOUT=FILE -P commit.cmake - writes the commit of the sources into a header, at every build.
# The file changes only when the commit does, so nothing is compiled again without need. Outside of a repository, or
# without git, the commit is empty.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
get_filename_component(source_real ${SOURCE} REALPATH)
if(failed OR NOT top STREQUAL source_real) # a copy inside of another project's repository is not its commit
    set(commit "")
endif()
set(text "#define BERLU_COMMIT \"${commit}\"\n")
if(EXISTS ${OUT})
    file(READ ${OUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
    file(WRITE ${OUT} "${text}")
endif()
