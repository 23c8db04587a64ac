#!/usr/bin/env bash
# fuzz.sh SECONDS: runs every fuzz target for that long; stops at the first finding.
source "$(dirname "$0")/lib.sh"

cargo +nightly --version >/dev/null 2>&1 || die "fuzzing needs a nightly tool chain: \`rustup toolchain install nightly\`"
scripts/tools.sh cargo-fuzz
PATH=$root/.deps/tools/bin:$PATH
cargo +nightly fuzz list | while read -r target; do
    say "Fuzzing $target for $1 s"
    cargo +nightly fuzz run "$target" -- -max_total_time="$1" -print_final_stats=1 </dev/null
done
