#!/usr/bin/env bash
# test.sh [--no-tests | --soak MINUTES]: all checks, then all tests, then endurance if asked for. Every step runs, whatever
# failed before it; the last line counts.
source "$(dirname "$0")/lib.sh"

scripts/crypto-mb.sh
scripts/isal.sh
scripts/libdeflate.sh
scripts/floor.sh
scripts/tools.sh cargo-deny
PATH=$PATH:$HOME/.cargo/bin:$root/.deps/tools/bin

# What the caller's shell says about hasten must not reach the tests.
unset "${!HASTEN_@}" LD_PRELOAD NODE_OPTIONS
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
# The same random inputs in every run, so that the same tree gets the same verdict. New ones: PROPTEST_RNG_SEED=$RANDOM.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-20261122}
log=$(mktemp)
times=$(mktemp)
trap 'rm -f "$log" "$times"' EXIT
passed=0
failed=()

check() {
    local name=$1
    shift
    say "$name"
    if "$@"; then passed=$((passed + 1)); else failed+=("$name"); fi
}

plugin() { scripts/node-plugin.sh "${CARGO_TARGET_DIR:-target}" && .deps/node-plugin/node_modules/.bin/tsc --project plugins/node; }
format() { cargo fmt --all --check && cargo fmt --manifest-path fuzz/Cargo.toml --check; }

# tests NAME COMMAND…: counts what the test programs say of themselves. Tests that did not even build count as one failure.
tests() {
    local status=0 ok bad before=${#failed[@]}
    say "$1"
    "${@:2}" 2>&1 </dev/null | "${CARGO_TARGET_DIR:-target}/debug/xtask" slowest --clock "$times" | tee "$log" || status=$?
    read -r ok bad < <(awk '/^test result: / { ok += $4; bad += $6 } END { print ok + 0, bad + 0 }' "$log")
    passed=$((passed + ok))
    ((bad == 0 && status != 0)) && bad=1
    mapfile -t -O "${#failed[@]}" failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED\( <.*>\)\?$/test \1/p' "$log" | head -n "$bad")
    while ((${#failed[@]} < before + bad)); do failed+=("the tests: see above"); done
}

check "Format" format
check "Release build" cargo build --release --locked --package hasten --package hasten-tls --package hasten-gzip --package hasten-envoy --package hasten-readcache --package hasten-wal
check "Shim" scripts/shim.sh "${CARGO_TARGET_DIR:-target}"
check "Libraries for musl" env HASTEN_NEED_MUSL=1 scripts/musl.sh "${CARGO_TARGET_DIR:-target}"
check "Node.js plugin" plugin
check "Lints" cargo clippy --locked --workspace --all-targets -- --deny warnings
check "Lints of what is for musl" cargo clippy --locked --target x86_64-unknown-linux-musl --package hasten-hook -- --deny warnings
check "Lints of engines outside the default build" \
    cargo clippy --locked --package hasten-device --features unused-engines --all-targets -- --deny warnings
check "Fuzz targets" cargo clippy --locked --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/fuzz" -- \
    --deny warnings
check "Licences, bans and sources" cargo deny --locked check --hide-inclusion-graph licenses bans sources
check "Layering" cargo xtask layering
check "Exported symbols" cargo xtask symbols
check "docs/hooks.md" cargo xtask hooks --check
check "Measured tables" cargo xtask results --check
if [[ ${1:-} != --no-tests ]]; then
    scripts/nodes.sh
    scripts/wheels.sh
    scripts/envoy.sh
    scripts/images.sh
    scripts/musl-image.sh
    PATH=$PATH:$(scripts/envoy.sh --path)
    tests "Tests" cargo test --locked --workspace --no-fail-fast
    tests "Tests of engines outside the default build" \
        cargo test --locked --package hasten-device --features unused-engines --test simulated -- copies hand_out memory selftest
    tests "Tests of the Node.js plugin" scripts/node-test.sh
    [[ ${1:-} != --soak ]] || tests "Endurance, $2 minutes" scripts/soak.sh "$2"
fi

if [[ -s $times ]]; then
    say "The slowest tests"
    cargo xtask slowest "$times"
fi
((${#failed[@]} == 0)) || printf 'failed: %s\n' "${failed[@]}" >&2
echo "$passed passed, ${#failed[@]} failed"
((${#failed[@]} == 0))
