#!/usr/bin/env bash
# fuzz.sh SECONDS: runs every fuzz target for that long; stops at the first finding. What was run, and how far it came, is in
# TARGET/fuzz/hasten-report.json.
source "$(dirname "$0")/lib.sh"

[[ $1 =~ ^[1-9][0-9]*$ ]] || die "FUZZ_SECONDS is \"$1\": give a number of seconds, as in \`make fuzz FUZZ_SECONDS=60\`"
cargo +nightly --version >/dev/null 2>&1 || die "fuzzing needs a nightly tool chain: \`rustup toolchain install nightly\`"
scripts/tools.sh cargo-fuzz
PATH=$root/.deps/tools/bin:$PATH
folder=${CARGO_TARGET_DIR:-target}/fuzz
mkdir -p "$folder"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# field NAME: what the last line of libFuzzer says of it.
field() { sed -nE "s/^#([0-9]+)[[:space:]]+DONE .*/runs: \1 &/p" "$log" | tail -n 1 | grep -oE "$1: [0-9]+" | head -n 1 | grep -oE '[0-9]+'; }

rows=()
for target in $(cargo +nightly fuzz list); do
    say "Fuzzing $target for $1 s"
    cargo +nightly fuzz run "$target" -- -max_total_time="$1" </dev/null 2>&1 | tee "$log" ||
        die "$target has a finding: its input is in fuzz/artifacts/$target, and what it did is above"
    rows+=("$(printf '{ "target": "%s", "runs": %d, "edges": %d, "inputs": %d }' "$target" \
        "$(field runs)" "$(field cov)" "$(field corp)")")
done
fact() { printf '    "%s": "%s"' "$1" "${2//\"/}"; }
{
    printf '{\n  "workload": "fuzz",\n  "complete": true,\n  "seconds": %d,\n  "host": {\n' "$1"
    fact cpu "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" && printf ',\n'
    fact cores "$(nproc)" && printf ',\n'
    fact date "$(date -u +%FT%TZ)" && printf ',\n'
    fact rustc "$(rustc +nightly --version)"
    printf '\n  },\n  "rows": [\n'
    printf '    %s' "${rows[0]}"
    printf ',\n    %s' "${rows[@]:1}"
    printf '\n  ]\n}\n'
} >"$folder/hasten-report.json"
say "No finding in ${#rows[@]} targets: $folder/hasten-report.json"
