# SPDX-License-Identifier: GPL-2.0-or-later
# Short names for what CMake, ctest and a few scripts do. Variables: B=NAME (bench), SHARD=I/N (test-all), PREFIX (install).
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
GENERATOR := $(if $(shell command -v ninja),-G Ninja)

.PHONY: build setup demo test test-all bench zdtm install uninstall clean format
build: $(BUILD)/CMakeCache.txt
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/CMakeCache.txt:
	cmake -S . -B $(BUILD) $(GENERATOR) -DCMAKE_BUILD_TYPE=RelWithDebInfo $(CMAKE_FLAGS)

setup: # packages; needs root
	.ci/setup

demo: setup # on a fresh machine; needs root
	$(MAKE) build
	bench/demo

# Twice: units and fuzz targets under sanitizers, then everything on what is shipped.
test: build
	.ci/test-sanitized build/fuzz
	ctest --test-dir $(BUILD) --output-on-failure

test-all: build
	test/all $(if $(SHARD),--shard $(SHARD))

bench: build # B=NAME: a script in bench/, which writes build/bench/NAME.json
	bench/$(B)

zdtm: build # CRIU's own tests, ours against a stock one; needs root and the whole machine
	criu-patches/build.sh --stock $(BUILD)/criu-stock
	criu-patches/zdtm $(BUILD)/criu $(BUILD)/criu-stock

install: $(BUILD)/CMakeCache.txt # the prefix is part of the programs and units, so it is set before they are built
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	cmake --install $(BUILD)

uninstall:
	xargs -r rm -f -v < $(BUILD)/install_manifest.txt

clean:
	rm -rf $(BUILD)

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i
