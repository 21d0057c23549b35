# Short names for what people do here; CMake does the work. `make help` lists them.
BUILD ?= build
JOBS  ?= $(shell nproc)
CMAKE_FLAGS ?=

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: CMakeLists.txt
	tools/setup.sh
	cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS)

test: all
	cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

.PHONY: all test
