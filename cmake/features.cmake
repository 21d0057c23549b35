# What this machine has: needed libraries, optional ones, and the header that tells `berlu doctor` about them.
#
# target berlu_blas   the library for matrix products; defines BERLU_BLAS_DNNL or BERLU_BLAS_OPENBLAS
# BERLU_HAS_CUDA      1 when nvcc was found and there are CUDA sources; CUDA is then an enabled language
# target berlu_cuda_flags   what every .cu file is compiled with

find_package(OpenMP REQUIRED COMPONENTS C)
find_package(PkgConfig REQUIRED)

# -- matrix products ------------------------------------------------------------------------------------------------
set(BERLU_BLAS "dnnl" CACHE STRING "dnnl or openblas: the library for matrix products on the CPU")
set_property(CACHE BERLU_BLAS PROPERTY STRINGS dnnl openblas)
add_library(berlu_blas INTERFACE)
if(BERLU_BLAS STREQUAL dnnl)
    find_path(DNNL_INCLUDE dnnl.h)
    find_library(DNNL_LIBRARY dnnl)
    if(NOT DNNL_INCLUDE OR NOT DNNL_LIBRARY)
        message(FATAL_ERROR "oneDNN is missing: install libdnnl-dev, or configure with -DBERLU_BLAS=openblas")
    endif()
    target_include_directories(berlu_blas SYSTEM INTERFACE ${DNNL_INCLUDE})
    target_link_libraries(berlu_blas INTERFACE ${DNNL_LIBRARY})
    target_compile_definitions(berlu_blas INTERFACE BERLU_BLAS_DNNL=1)
elseif(BERLU_BLAS STREQUAL openblas)
    option(BERLU_STATIC_BLAS "link OpenBLAS statically (make portable)" OFF)
    pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET GLOBAL openblas)
    if(BERLU_STATIC_BLAS)
        find_library(OPENBLAS_ARCHIVE libopenblas.a REQUIRED HINTS ${OPENBLAS_LIBRARY_DIRS})
        target_link_libraries(berlu_blas INTERFACE ${OPENBLAS_ARCHIVE} pthread m)
    else()
        target_link_libraries(berlu_blas INTERFACE PkgConfig::OPENBLAS)
    endif()
    target_include_directories(berlu_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIRS})
    target_compile_definitions(berlu_blas INTERFACE BERLU_BLAS_OPENBLAS=1)
else()
    message(FATAL_ERROR "BERLU_BLAS is '${BERLU_BLAS}'; it must be dnnl or openblas")
endif()

# -- CUDA -----------------------------------------------------------------------------------------------------------
# sm_90 machine code and PTX, from which the driver makes code for later GPUs.
set(BERLU_CUDA "AUTO" CACHE STRING "AUTO, ON or OFF: build libberlu_cuda")
set(BERLU_CUDA_ARCHITECTURES "90-real;90-virtual" CACHE STRING "GPUs to compile for, as CMAKE_CUDA_ARCHITECTURES")
set(BERLU_HAS_CUDA 0)
find_program(BERLU_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
if(BERLU_CUDA STREQUAL ON AND NOT BERLU_NVCC)
    message(FATAL_ERROR "BERLU_CUDA is ON, but nvcc was not found: put it on PATH or set CUDACXX")
endif()
if(BERLU_NVCC AND NOT BERLU_CUDA STREQUAL OFF AND NOT BERLU_SANITIZE AND NOT BERLU_FUZZ
        AND EXISTS ${PROJECT_SOURCE_DIR}/src/act/cuda/kernel.cu)
    set(CMAKE_CUDA_COMPILER ${BERLU_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${BERLU_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
    find_package(CUDAToolkit REQUIRED)
    set(BERLU_HAS_CUDA 1)
    # No contraction and IEEE division and roots: the same bits as every other machine.
    add_library(berlu_cuda_flags INTERFACE)
    target_compile_options(berlu_cuda_flags INTERFACE
        "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--fmad=false;--prec-div=true;--prec-sqrt=true;--ftz=false;-lineinfo>")
    target_link_libraries(berlu_cuda_flags INTERFACE CUDA::cudart_static)  # loads where there is no driver
endif()

# -- found or left out ----------------------------------------------------------------------------------------------
find_package(MPI QUIET COMPONENTS C)
if(NOT BERLU_PORTABLE)
    pkg_check_modules(BERLU_CURL QUIET libcurl)
endif()
find_path(BERLU_NCCL nccl.h HINTS /usr/local/cuda/include)

set(BERLU_FEATURE_ROWS)
set(BERLU_FEATURE_WORDS)
function(berlu_feature name there use)
    if(there)
        set(bit 1)
        set(word "${name}")
    else()
        set(bit 0)
        set(word "no ${name}")
    endif()
    set(BERLU_FEATURE_ROWS "${BERLU_FEATURE_ROWS} {\"${name}\", \"${use}\", ${bit}}," PARENT_SCOPE)
    set(BERLU_FEATURE_WORDS "${BERLU_FEATURE_WORDS} ${word}," PARENT_SCOPE)
endfunction()
berlu_feature(cuda "${BERLU_HAS_CUDA}" "activations and training on NVIDIA GPUs")
berlu_feature(download "${BERLU_CURL_FOUND}" "berlu data get")
berlu_feature(mpi "${MPI_C_FOUND}" "found, for more than one machine; nothing uses it yet")
berlu_feature(nccl "${BERLU_NCCL}" "found, for more than one GPU; nothing uses it yet")
berlu_feature(sanitizer "${BERLU_SANITIZE}" "a build that checks itself; slow")
string(REGEX REPLACE ",$" "" BERLU_FEATURE_WORDS "${BERLU_FEATURE_WORDS}")
configure_file(${PROJECT_SOURCE_DIR}/cli/build_info.h.in ${PROJECT_BINARY_DIR}/generated/build_info.h)
message(STATUS "berlu ${PROJECT_VERSION}: products by ${BERLU_BLAS},${BERLU_FEATURE_WORDS}")
