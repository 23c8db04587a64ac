# Everything a newcomer needs; `make` alone explains.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# rustup's place, for shells that have not read its profile.
export PATH := $(PATH):$(HOME)/.cargo/bin:$(CURDIR)/.deps/tools/bin

PREFIX ?= /usr/local
DESTDIR ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
HASTEN := $(TARGET)/release/hasten
FUZZ_SECONDS ?= 600
# Minutes of `make soak`; given to `make test`, they are part of it.
SOAK_MINUTES ?=
# Of `make reach`, the system to run, by a part of its name; all, if nothing is said.
export REACH ?=
# How long `make zoo` plays random event loops.
ZOO_SECONDS ?= 3600
# How often `make crash` kills each.
KILLS ?= 1000
# Of `make suites`, those to run: cpython, nginx, haproxy, tlsfuzzer, testssl, envoy, redis; all, if nothing is said.
SUITES ?=

.PHONY: help demo test thorough node-minors soak zoo crash suites bench results profile install uninstall build dist deps lint fmt audit deb release fuzz clean

help: ## This list
	@echo 'hasten: the servers you already run, doing the same work with less CPU'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Start with `make demo`. Options: PREFIX, DESTDIR (install), RELEASE_KEY, RELEASE_APK_KEY, RELEASE_URL, RELEASE_MAINTAINER (release), BENCH (bench), FUZZ_SECONDS (fuzz), SOAK_MINUTES (soak, test), ZOO_SECONDS (zoo), KILLS (crash), SUITES (suites), REACH (reach).'

demo: ## Install what is missing, build, and measure stock against accelerated nginx
	@scripts/rust.sh
	@scripts/packages.sh demo
	@$(MAKE) build
	@scripts/cpu.sh
	@$(HASTEN) bench tls --quick
	@echo
	@echo 'hasten is not installed yet: `sudo make install` puts it into $(PREFIX), or use $(HASTEN).'

test: ## All checks and all tests, with the set-up they need
	@scripts/rust.sh
	@scripts/packages.sh test
	@scripts/test.sh $(if $(SOAK_MINUTES),--soak '$(SOAK_MINUTES)')

thorough: ## `make test` with its long tests at full length: more seeds, keys, releases of Node.js, and a longer campaign of faults
	@scripts/rust.sh
	@scripts/packages.sh test
	@scripts/test.sh --thorough

node-minors: ## Core files and snapshots of every minor release of Node.js 22, 24 and 26 (an hour or two)
	@scripts/packages.sh test
	@scripts/node-minors.sh

soak: build ## Endurance: servers under load, reloaded and killed for an hour, or SOAK_MINUTES
	@scripts/packages.sh test
	@scripts/soak.sh $(SOAK_MINUTES)

zoo: build ## Stock servers of all kinds, and random event loops for ZOO_SECONDS, with and without hasten
	@scripts/packages.sh zoo
	@scripts/zoo.sh '$(ZOO_SECONDS)'

crash: build ## Databases with logs on another device, and users of the read cache, killed KILLS times each
	@scripts/packages.sh test
	@scripts/crash.sh '$(KILLS)'

suites: build ## Public test suites with and without hasten: CPython's and Redis', and testssl.sh; NGINX_TESTS, HAPROXY_REGTESTS, TLSFUZZER name others
	@scripts/packages.sh suites
	@scripts/suites.sh $(SUITES)

.PHONY: reach
reach: build ## Every series of OpenSSL, built from its source, and Debian 13's servers (needs root; an hour of builds, once): REACH
	@scripts/packages.sh reach
	@scripts/reach.sh

.PHONY: arm64
arm64: build ## The command and the libraries for arm64: unit tests, and `hasten run` with Debian 13's nginx of arm64, all emulated (half an hour, once)
	@scripts/packages.sh arm64
	@scripts/arm64.sh '$(TARGET)'

.PHONY: node-walk
node-walk: ## A random walk over files under Node.js programs: NODE_WALK_STEPS (10000), NODE_WALK_SEED
	@scripts/packages.sh test
	@scripts/node-walk.sh

.PHONY: node-tools
node-tools: ## Programs and suites of the npm registry on Node.js 18 to 26, with and without the plugin: NODE_TOOLS_STARTS (6)
	@scripts/packages.sh test
	@scripts/node-tools.sh

.PHONY: images
images: dist ## The chart, its image as an OCI archive with a bill of materials, and plain manifests, in target/images
	@scripts/kubernetes-image.sh '$(TARGET)' '$(TARGET)/images/hasten.tar'

.PHONY: e2e-kubernetes
e2e-kubernetes: images ## The chart on a real cluster of one node, built from its Go modules once (needs root; a quarter of an hour)
	@scripts/packages.sh test
	@scripts/packages.sh kubernetes
	@scripts/e2e-kubernetes.sh '$(TARGET)'

.PHONY: e2e-kubernetes-scale
e2e-kubernetes-scale: images ## The webhook and the agents under 1,000 simulated nodes and 20,000 pods, into docs/results (minutes)
	@scripts/packages.sh test
	@scripts/packages.sh kubernetes
	@HASTEN_E2E_SCALE='$(CURDIR)/docs/results' scripts/e2e-kubernetes.sh '$(TARGET)' -test.run TestScale

bench: build ## Everything, about an hour on a machine at rest; BENCH='gzip --quick' narrows it
	@scripts/packages.sh demo
	@$(if $(BENCH),$(HASTEN) bench $(BENCH),$(HASTEN) bench tls --out $(TARGET)/bench/tls && $(HASTEN) bench gzip --out $(TARGET)/bench/gzip && $(HASTEN) bench node --out $(TARGET)/bench/node)

results: build ## Measure everything, keep it in docs/results and put it into README.md
	@scripts/packages.sh demo
	@scripts/nodes.sh
	@mkdir -p $(TARGET)/results
	@nodes=$$(printf ',.deps/nodes/node_modules/node%s/bin/node' 20 22 24 26) && \
	for workload in "" tls gzip "node --node $${nodes#,}" "node --tunings --node $${nodes#,}"; do \
	    $(HASTEN) bench $$workload --out $(TARGET)/results && \
	    cargo xtask results --add $(TARGET)/results/hasten-report.json || exit 1; \
	done
	@cargo run --release --locked --package hasten-bench --example gc_read -- $(HASTEN) --out $(TARGET)/results/gc-read.json
	@cargo xtask results --add $(TARGET)/results/gc-read.json

profile: build ## Sample where the CPU time goes (needs linux-perf), into docs/performance.md
	@scripts/packages.sh demo
	@mkdir -p $(TARGET)/results docs/results
	@for workload in tls gzip; do \
	    cargo run --release --locked --package hasten-bench --example profile -- $$workload $(HASTEN) \
	        >$(TARGET)/results/profile-$$workload.json && \
	    cp $(TARGET)/results/profile-$$workload.json docs/results/ || exit 1; \
	done
	@cargo xtask results

build: deps ## The command and its libraries, in release mode
	@cargo build --release --locked --package hasten --package hasten-tls --package hasten-gzip --package hasten-envoy --package hasten-readcache --package hasten-wal --package hasten-tier
	@scripts/shim.sh '$(TARGET)'
	@scripts/node-plugin.sh '$(TARGET)'

deps: ## What the build needs: Debian packages, the pinned engines, the floor to link with, a check of the Rust tool chain
	@scripts/rust.sh
	@scripts/packages.sh build
	@scripts/crypto-mb.sh
	@scripts/isal.sh
	@scripts/libdeflate.sh
	@scripts/floor.sh

# Without cargo (`sudo make install`), what has been built is installed.
install: $(if $(shell command -v cargo),dist) ## Into PREFIX=/usr/local
	@scripts/install.sh '$(TARGET)' '$(DESTDIR)$(PREFIX)'

uninstall: ## Remove what `make install` installed
	@scripts/install.sh --remove '$(DESTDIR)$(PREFIX)'

dist: build
	@scripts/musl.sh '$(TARGET)'
	@scripts/dist.sh '$(TARGET)'

deb: dist ## A Debian package, in target/debian
	@scripts/packages.sh deb
	@scripts/deb.sh '$(TARGET)' '$(TARGET)/debian'

.PHONY: rpm apk reproducible
rpm: dist ## An RPM, in target/rpm
	@scripts/packages.sh deb
	@scripts/rpm.sh '$(TARGET)' '$(TARGET)/rpm'

apk: dist ## A package for Alpine, with the command for musl, in target/apk; RELEASE_APK_KEY signs it
	@scripts/packages.sh deb
	@scripts/musl.sh '$(TARGET)' --command
	@scripts/apk.sh '$(TARGET)' '$(TARGET)/apk'

.PHONY: apk-test
apk-test: apk ## The package for Alpine in an image of musl; with apk in PATH, also its installation, trigger and removal
	@scripts/packages.sh test
	@scripts/musl-image.sh
	@cargo test --locked --workspace --test release -- --include-ignored $(if $(shell command -v apk),,--skip apk_installs) apk::

reproducible: ## The release of the last commit, built twice in different folders, must have the same bytes (an hour, 10 GB)
	@scripts/packages.sh deb
	@scripts/reproducible.sh

# What is published has everything.
release: export HASTEN_NEED_MUSL := 1
# Nothing of what is published says where it was built.
remapped := $(CURDIR)=/hasten $(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
release: export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS := $(addprefix --remap-path-prefix=,$(remapped))
release: export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS := $(addprefix --remap-path-prefix=,$(remapped))
release: export CFLAGS := $(addprefix -ffile-prefix-map=,$(remapped))
release: dist ## Every kind of package, in target/packages; RELEASE_KEY and RELEASE_APK_KEY sign, RELEASE_URL is where it will be
	@scripts/packages.sh deb
	@scripts/release.sh '$(TARGET)' '$(TARGET)/packages'

.PHONY: release-test
release-test: release ## The release in fresh systems of Debian 12 and 13: apt, upgrade, removal, purge, tarball (minutes, 1 GB)
	@scripts/packages.sh release
	@scripts/release-test.sh '$(TARGET)' '$(TARGET)/packages'

lint: deps ## Formatting, clippy, licences, layering and generated files, as `make test` begins
	@scripts/packages.sh test
	@scripts/test.sh --no-tests

fmt: deps ## Format, and bring generated files up to date
	@cargo fmt --all
	@cargo fmt --manifest-path fuzz/Cargo.toml
	@cargo xtask hooks
	@cargo xtask results

audit: deps ## Known vulnerabilities of the dependencies (fetches the RustSec database from GitHub)
	@scripts/tools.sh cargo-deny
	@cargo deny check advisories

fuzz: deps ## Every fuzz target for FUZZ_SECONDS each; needs a nightly tool chain
	@scripts/fuzz.sh '$(FUZZ_SECONDS)'

clean: ## Remove everything that was built or fetched
	@rm -rf target .deps fuzz/target fuzz/corpus fuzz/artifacts hasten-report.html hasten-report.json
