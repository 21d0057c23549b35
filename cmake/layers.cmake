# berlu_layer(NAME SOURCE...)                   the objects of one folder of src/, target layer_NAME
# berlu_test(NAME FILE... [WRAP] [LINK ...])   a cmocka program of tests/, registered with CTest as NAME
# berlu_fuzz(NAME FILE)                        a fuzz target of tests/fuzz; its corpus is tests/fuzz/corpus/NAME

set(BERLU_CORE_LAYERS base smooth simd act)                                    # libberlu
set(BERLU_ENGINE_LAYERS io graph passes engine cpu cuda models data train analyze study report)        # libberlu_engine

function(berlu_layer name)
    if(NOT ARGN)
        return()
    endif()
    add_library(layer_${name} OBJECT ${ARGN})
    target_include_directories(layer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(layer_${name} PUBLIC OpenMP::OpenMP_C)
    # Asserts stay on in the engine and the command. libberlu goes without, except where it is tested.
    if(name IN_LIST BERLU_CORE_LAYERS AND NOT BERLU_TESTS AND NOT BERLU_SANITIZE AND NOT BERLU_FUZZ AND NOT BERLU_COVERAGE)
        target_compile_definitions(layer_${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:NDEBUG>)
    endif()
endfunction()

# What every test may rely on: where the sources and the build lie, the compiler and what else a program needs that it links
# with our objects; exit code 77 means skipped. A sanitizer answers an
# impossible allocation like the C library does, with NULL, because the tests ask for some.
function(berlu_test_settings name timeout)
    set(link ${OpenMP_C_FLAGS})
    if(BERLU_SANITIZE)
        string(APPEND link " -fsanitize=${BERLU_SANITIZE}")
    endif()
    if(BERLU_COVERAGE)
        string(APPEND link " --coverage")
    endif()
    if(BERLU_SANITIZE OR BERLU_COVERAGE) # slow
        math(EXPR timeout "${timeout} * 5")
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77 ENVIRONMENT
        "OMP_WAIT_POLICY=passive;BERLU_SOURCE_DIR=${PROJECT_SOURCE_DIR};BERLU_BUILD_DIR=${PROJECT_BINARY_DIR};CC=${CMAKE_C_COMPILER};BERLU_LINK=${link};\
ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1 ignore_noninstrumented_modules=1;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()

# Tests link the objects themselves, not the shared library, so that --wrap can make the n-th malloc, write or fsync fail
# (tests/support/fail.h). Without WRAP the program runs with the plain C library.
function(berlu_test name)
    cmake_parse_arguments(T "WRAP" "TIMEOUT" "LINK" ${ARGN})
    add_executable(test_${name} ${T_UNPARSED_ARGUMENTS})
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(test_${name} PRIVATE ${T_LINK} berlu_internal cmocka m)
    if(T_WRAP)
        target_sources(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fail.c)
        foreach(call malloc calloc realloc aligned_alloc posix_memalign strdup strndup
                open openat read pread readdir write fsync rename renameat symlink symlinkat close mkdir mkdirat ftruncate
                arena_alloc arena_array arena_strdup arena_printf)
            target_link_options(test_${name} PRIVATE -Wl,--wrap=${call})
        endforeach()
    endif()
    add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 120)
    endif()
    berlu_test_settings(${name} ${T_TIMEOUT})
endfunction()

# With BERLU_FUZZ: a libFuzzer program (make fuzz). Without: the same target with a main() that replays its corpus and
# simple damages of it, as a test, so that every build runs every target.
function(berlu_fuzz name)
    add_executable(fuzz_${name} ${ARGN})
    target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(fuzz_${name} PRIVATE berlu_internal m)
    if(BERLU_FUZZ)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
        if(NOT TARGET fuzzers)
            add_custom_target(fuzzers)
        endif()
        add_dependencies(fuzzers fuzz_${name})
    else()
        target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
        add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
        berlu_test_settings(fuzz_${name} 120)
    endif()
endfunction()
