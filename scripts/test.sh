#!/usr/bin/env bash
# test.sh [--no-tests | --soak MINUTES | --thorough]: all checks, then all tests, then endurance if asked for. Every step runs,
# whatever failed before it; the last line counts. --thorough runs long tests at their full length.
source "$(dirname "$0")/lib.sh"

scripts/crypto-mb.sh
scripts/isal.sh
scripts/libdeflate.sh
scripts/floor.sh
scripts/tools.sh cargo-deny
PATH=$PATH:$HOME/.cargo/bin:$root/.deps/tools/bin

# What the caller's shell says about hasten must not reach the tests.
unset "${!HASTEN_@}" LD_PRELOAD NODE_OPTIONS
[[ ${1:-} != --thorough ]] || export HASTEN_TEST_THOROUGH=1
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
# The same random inputs in every run, so that the same tree gets the same verdict. New ones: PROPTEST_RNG_SEED=$RANDOM.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-20261122}
scratch=$(mktemp -d)
log=$scratch/log
times=$scratch/times
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=()

# cpu: hundredths of a second of CPU time that this script and all that it waited for have used.
cpu() { awk '{ print $14 + $15 + $16 + $17 }' "/proc/$$/stat"; }

# timed NAME COMMAND…: says what begins, and what it took.
timed() {
    local status=0 wall=$SECONDS used
    used=$(cpu)
    say "$1"
    "${@:2}" || status=$?
    printf '    %s: %d s, %d s of CPU time\n' "$1" $((SECONDS - wall)) $((($(cpu) - used) / 100)) >&2
    return "$status"
}

check() {
    if timed "$@"; then passed=$((passed + 1)); else failed+=("$1"); fi
}

plugin() { scripts/node-plugin.sh "${CARGO_TARGET_DIR:-target}" && .deps/node-plugin/node_modules/.bin/tsc --project plugins/node; }
format() { cargo fmt --all --check && cargo fmt --manifest-path fuzz/Cargo.toml --check; }
xtask() { "${CARGO_TARGET_DIR:-target}/debug/xtask" "$@"; }

# downloads: the programs that tests run, one after another. They come from the network while the compiler is at work.
downloads() {
    local script
    scripts/nodes.sh --old || return
    for script in devtools wheels envoy images musl-image openrc debian-node; do "scripts/$script.sh" || return; done
}

# shares: every test program, and the script of tests that runs beside them.
shares() {
    # By cargo, which hands its tool chain on.
    cargo xtask test --verdict "$scratch/verdict" --times "$times" --beside scripts/node-test.sh -- \
        --locked --workspace
}

# All tests side by side; tests that did not even build count as one failure.
all_tests() {
    rm -f "$scratch/verdict"
    timed "Tests" shares </dev/null || [[ -s $scratch/verdict ]] || failed+=("the tests: see above")
    [[ -s $scratch/verdict ]] || return 0
    passed=$((passed + $(sed -n 's/^passed //p' "$scratch/verdict")))
    mapfile -t -O "${#failed[@]}" failed < <(sed -n 's/^failed /test /p' "$scratch/verdict")
}

# tests NAME COMMAND…: counts what the test programs say of themselves.
tests() {
    local status=0 ok bad before=${#failed[@]}
    timed "$1" clocked "${@:2}" || status=$?
    read -r ok bad < <(awk '/^test result: / { ok += $4; bad += $6 } END { print ok + 0, bad + 0 }' "$log")
    passed=$((passed + ok))
    ((bad == 0 && status != 0)) && bad=1
    mapfile -t -O "${#failed[@]}" failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED\( <.*>\)\?$/test \1/p' "$log" | head -n "$bad")
    while ((${#failed[@]} < before + bad)); do failed+=("$1: see above"); done
}
clocked() { "$@" 2>&1 </dev/null | xtask slowest --clock "$times" | tee "$log"; }

if [[ ${1:-} != --no-tests ]]; then
    downloads >"$scratch/downloads" 2>&1 &
    downloading=$!
fi

check "Format" format
check "Release build" cargo build --release --locked --package hasten --package hasten-tls --package hasten-gzip --package hasten-envoy --package hasten-readcache --package hasten-wal --package hasten-tier
check "Shim" scripts/shim.sh "${CARGO_TARGET_DIR:-target}"
check "Libraries for musl" env HASTEN_NEED_MUSL=1 scripts/musl.sh "${CARGO_TARGET_DIR:-target}"
check "Node.js plugin" plugin
check "Kubernetes: format and vet" scripts/kubernetes.sh check
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
    if ! wait "$downloading"; then
        cat "$scratch/downloads" >&2
        die "cannot fetch the programs that tests run: see above"
    fi
    PATH=$PATH:$(scripts/envoy.sh --path)
    all_tests
    tests "Examples in documentation" cargo test --locked --workspace --doc
    tests "Tests of engines outside the default build" \
        cargo test --locked --package hasten-device --features unused-engines --test simulated -- copies hand_out memory selftest
    tests "Tests of hasten-k8s" scripts/kubernetes.sh test
    [[ ${1:-} != --soak ]] || tests "Endurance, $2 minutes" scripts/soak.sh "$2"
fi

if [[ -s $times ]]; then
    say "The slowest tests"
    cargo xtask slowest "$times"
fi
((${#failed[@]} == 0)) || printf 'failed: %s\n' "${failed[@]}" >&2
echo "$passed passed, ${#failed[@]} failed"
((${#failed[@]} == 0))
