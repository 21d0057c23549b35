# Flags that every object of berlu is compiled with.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_UNITY_BUILD OFF)  # whatever the project around it asks for: static names repeat from file to file
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")  # lines for backtraces; full -g costs a third of the time to build the kernels
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Contraction off: v_fma is the only fusion, so every instruction set gives the same bits. Never -ffast-math.
add_compile_options("$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Werror;-Wshadow;-Wstrict-prototypes;-Wpointer-arith>"
    "$<$<COMPILE_LANGUAGE:C>:-ffp-contract=off;-fno-math-errno>")
# No link-time optimisation, whatever the project around it asks for: the archive's names are made local in machine code.
add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fno-lto>")
if(CMAKE_C_COMPILER_ID MATCHES Clang) # tables leave out the fields that are zero; GCC takes a designator for intent
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-Wno-missing-field-initializers>")
endif()
if(NOT PROJECT_IS_TOP_LEVEL) # another project's compiler may know warnings that we have not met
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-Wno-error>")
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fno-fast-math;-ffp-contract=off>")  # clang's first one allows contraction
    add_link_options(-fno-fast-math)  # GCC's libraries else flush subnormal numbers to zero in every program that loads them
endif()
add_compile_definitions(_GNU_SOURCE)

option(BERLU_ENGINE "build the engine and the command; OFF: libberlu alone, which needs no other library" ${PROJECT_IS_TOP_LEVEL})
option(BERLU_TESTS "build the tests and the benches, which need the engine" ${BERLU_ENGINE})
if(BERLU_TESTS AND NOT BERLU_ENGINE)
    message(FATAL_ERROR "BERLU_TESTS needs BERLU_ENGINE: configure with -DBERLU_TESTS=OFF")
endif()

set(BERLU_SANITIZE "" CACHE STRING "address, undefined or thread: build everything under that sanitizer")
if(NOT BERLU_SANITIZE MATCHES "^(address|undefined|thread|)$")
    message(FATAL_ERROR "BERLU_SANITIZE is ${BERLU_SANITIZE}: address, undefined or thread are possible")
endif()
# Only LLVM's OpenMP tells the thread sanitizer of its barriers (Archer); with another every parallel loop is a race.
if(BERLU_SANITIZE STREQUAL thread AND NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "the thread sanitizer needs clang and LLVM's OpenMP: make test SAN=thread, or -DCMAKE_C_COMPILER=clang-14")
endif()
if(BERLU_SANITIZE)
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fsanitize=${BERLU_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
    add_link_options(-fsanitize=${BERLU_SANITIZE})
endif()
option(BERLU_COVERAGE "count executed lines (make coverage)" OFF)
if(BERLU_COVERAGE)
    add_compile_options(--coverage -O1)
    add_link_options(--coverage)
endif()
option(BERLU_FUZZ "build the fuzz targets; needs clang (make fuzz)" OFF)
if(BERLU_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "BERLU_FUZZ needs clang: cmake -DCMAKE_C_COMPILER=clang")
endif()
if(BERLU_FUZZ)  # coverage feedback and checks in every object; the main() of libFuzzer only in the targets
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()
if((BERLU_FUZZ OR BERLU_SANITIZE) AND CMAKE_C_COMPILER_ID MATCHES Clang)
    add_compile_options(-Wno-pass-failed)  # instrumented loops are not unrolled, and need not be
endif()
# A wheel (scikit-build-core sets SKBUILD) must stay under 1 MB. Kernels whose instructions keep the order of the source
# compress by a tenth better and are as fast (processors order them again); nothing is ever thrown through libberlu.
if(SKBUILD AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fno-schedule-insns2;-fno-ivopts;-fno-asynchronous-unwind-tables;-ffunction-sections>")
endif()
option(BERLU_PORTABLE "the command finds its libraries in lib/ beside itself; no download (make portable)" OFF)
if(BERLU_PORTABLE)
    set(CMAKE_INSTALL_RPATH "$ORIGIN/lib")
    set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
    add_link_options(-Wl,--disable-new-dtags)  # the libraries' own libraries are found there too
endif()
