# Flags that every object of berlu is compiled with, and the features found on this machine.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Contraction off: v_fma is the only fusion, so every instruction set gives the same bits. Never -ffast-math.
add_compile_options(-Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wpointer-arith -ffp-contract=off -fno-math-errno)
add_compile_definitions(_GNU_SOURCE)

set(BERLU_SANITIZE "" CACHE STRING "address, undefined or thread: build everything under that sanitizer")
if(BERLU_SANITIZE)
    add_compile_options(-fsanitize=${BERLU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${BERLU_SANITIZE})
endif()
option(BERLU_COVERAGE "count executed lines (make coverage)" OFF)
if(BERLU_COVERAGE)
    add_compile_options(--coverage -O0)
    add_link_options(--coverage)
endif()
option(BERLU_FUZZ "build the fuzz targets; needs clang (make fuzz)" OFF)

find_package(OpenMP REQUIRED COMPONENTS C)
find_package(PkgConfig REQUIRED)
