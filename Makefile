# Short names for what people do here; CMake does the work. `make help` lists them.
SAN           ?=
BUILD         ?= $(if $(SAN),build-$(SAN),build)
JOBS          ?= $(shell nproc)
PREFIX        ?= /usr/local
FUZZ_SECONDS  ?= 60
MINUTES       ?= 30
CMAKE_FLAGS   ?=
CUDA          ?= OFF

ifneq ($(filter-out address undefined thread,$(SAN)),)
$(error SAN is '$(SAN)'; it must be address, undefined or thread)
endif
launcher := $(shell command -v ccache >/dev/null 2>&1 && echo -DCMAKE_C_COMPILER_LAUNCHER=ccache)
configure = cmake -S . -G Ninja --log-level=STATUS $(launcher) $(CMAKE_FLAGS)
# GPUs to compile for (cmake/features.cmake): all of them in `make` and `make install`; those of this computer in targets that
# only run something, unless the folder has all. CMAKE_FLAGS="-DBERLU_CUDA_ARCHITECTURES=..." overrules both.
every_gpu := $(filter all install portable,$(or $(MAKECMDGOALS),all)) $(shell grep -s -o -e '^-UBERLU_CUDA_ARCHITECTURES' $(BUILD)/flags)
ifneq ($(findstring BERLU_CUDA_ARCHITECTURES,$(CMAKE_FLAGS)),)
gpus :=
else ifneq ($(strip $(every_gpu)),)
gpus := -UBERLU_CUDA_ARCHITECTURES
else
gpus := -DBERLU_CUDA_ARCHITECTURES=machine
endif
generator := $(if $(shell command -v ninja 2>/dev/null),Ninja,Unix Makefiles)

all: $(BUILD)/build.ninja                ## build the command and the libraries into build/
	cmake --build $(BUILD) -j $(JOBS)

lib:                                     ## build libberlu alone into build-lib/: needs a C compiler with OpenMP, and CMake
	cmake -S . -B build-lib -G "$(generator)" --log-level=STATUS $(launcher) -DBERLU_ENGINE=OFF -DBERLU_TESTS=OFF -DBERLU_CUDA=OFF $(CMAKE_FLAGS)
	cmake --build build-lib -j $(JOBS)

setup:                                   ## install the packages that the build needs (Debian and its like; with sudo)
	tools/setup.sh install

dev-setup:                               ## also those of the developers: NEON under qemu, style, fuzzing, peers (665 MB)
	tools/setup.sh dev
	@[ -x build/cmake-3.22/bin/cmake ] || { python3 -m venv build/cmake-3.22 && build/cmake-3.22/bin/pip install -q 'cmake==3.22.*'; } || \
	    echo "berlu: the oldest CMake could not be fetched; its test is left out"

# Changes when the flags change, so that new ones configure anew.
flags := $(gpus) $(CMAKE_FLAGS)
$(BUILD)/flags: FORCE
	@mkdir -p $(BUILD) && { [ "$$(cat $@ 2>/dev/null)" = '$(flags)' ] && [ -e $@ ] || echo '$(flags)' >$@; }

# The set-up comes first, so that a bare machine ends with an instruction instead of a list of missing headers.
$(BUILD)/build.ninja: CMakeLists.txt tools/packages.txt $(BUILD)/flags
	tools/setup.sh $(if $(filter thread,$(SAN)),clang-14 libomp-14-dev)
	$(configure) $(gpus) -B $(BUILD) $(if $(SAN),-DBERLU_SANITIZE=$(SAN)) $(if $(filter thread,$(SAN)),-DCMAKE_C_COMPILER=clang-14)
	@touch $@

test: all                                ## run all tests; SAN=address|undefined|thread runs them under a sanitizer
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE slow

test-study: all                          ## what studies promise: quick.yaml, 20 kills, Slurm where installed (about twenty minutes)
	ctest --test-dir $(BUILD) --output-on-failure -R '^(study_|analyze|report_)'

test-exhaustive: all                     ## also the tests over all floats (docs/testing.md: how long; ACT=gelu for one activation)
	$(if $(ACT),,ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS))
	$(BUILD)/tests/act/exhaustive_act $(ACT)

parity: all                              ## compare every model with timm, live (installs torch and timm into build/venv)
	ctest --test-dir $(BUILD) --output-on-failure -L parity
	tools/parity.sh $(BUILD)

wheel:                                   ## build the Python wheel into build/wheel and check it
	tools/wheel.sh $(BUILD)

test-python: all                         ## the tests that need torch, timm, onnx, jax (5 to 7 GB per torch; TORCH=newest: one, VENV=FOLDER: yours)
	tools/test_python.sh $(BUILD)

test-docs: all                           ## run the commands that the documents show (two minutes); trainings must pass twice chance
	tools/test_docs.py $(BUILD)/berlu

demo: all                                ## show what berlu does
	tools/demo.sh $(BUILD)

bench: all                               ## measure the activations against copy and add, and beside other libraries
	$(BUILD)/berlu bench act
	cmake --build $(BUILD) --target bench_peers && $(BUILD)/bench/bench_peers

fuzz:                                    ## fuzz every reader for FUZZ_SECONDS (60) each; needs clang
	tools/setup.sh clang-14
	$(configure) -B build-fuzz -DBERLU_FUZZ=ON -DBERLU_CUDA=OFF -DCMAKE_C_COMPILER=clang-14
	cmake --build build-fuzz -j $(JOBS) --target fuzzers
	tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

soak: all                                ## random commands under random faults for MINUTES (30); nothing may be lost
	tools/soak.py $(BUILD)/berlu $(MINUTES)

portable:                                ## a folder portable/ that runs on another Debian-like machine; CUDA=ON: on its GPU too
	tools/setup.sh libopenblas-dev
	$(configure) -B build-portable -DBERLU_BLAS=openblas -DBERLU_STATIC_BLAS=ON -DBERLU_CUDA=$(CUDA) -DBERLU_PORTABLE=ON -DBERLU_TESTS=OFF
	cmake --build build-portable -j $(JOBS) --target berlu
	tools/portable.sh build-portable portable

install: all                             ## install under PREFIX (/usr/local), below DESTDIR when that is set
	tools/install.sh $(BUILD) $(PREFIX)

install-lib: lib                         ## the same of libberlu alone
	tools/install.sh build-lib $(PREFIX)

uninstall:                               ## remove what make install (or install-lib) put there
	tools/install.sh --remove $(BUILD) build-lib

deb:                                     ## Debian packages libberlu0, libberlu-dev and berlu in build-deb/packages
	tools/setup.sh dpkg-dev
	$(configure) -B build-deb -DCMAKE_INSTALL_PREFIX=/usr -DBERLU_TESTS=OFF -DBERLU_CUDA=OFF
	cmake --build build-deb -j $(JOBS)
	tools/deb.sh build-deb build-deb/packages

valgrind: all                            ## run the tests that use no generated code under memcheck
	tools/setup.sh valgrind
	tools/valgrind.py $(BUILD) $(JOBS)

coverage:                                ## run the tests, tell which lines and branches they reached; fails below the last release
	tools/setup.sh
	$(configure) -B build-coverage -DBERLU_COVERAGE=ON -DBERLU_CUDA=OFF
	cmake --build build-coverage -j $(JOBS)
	ctest --test-dir build-coverage -j $(JOBS) --output-on-failure -LE slow
	tools/coverage.py build-coverage tools/coverage_floor.txt

format:                                  ## format all C sources
	tools/check_format.sh --fix

clean:                                   ## remove everything that was built
	rm -rf build build-address build-undefined build-thread build-fuzz build-coverage build-portable build-lib build-deb portable

help:                                    ## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## /\1\t/p' Makefile | expand -t 20

FORCE:

.PHONY: FORCE all lib setup dev-setup test test-study test-exhaustive parity wheel test-python test-docs demo bench fuzz soak portable install install-lib uninstall deb valgrind coverage format clean help
