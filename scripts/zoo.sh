#!/usr/bin/env bash
# zoo.sh [SECONDS]: the whole zoo, and random event loops for an hour unless told otherwise. ZOO_SEED is the first seed.
source "$(dirname "$0")/lib.sh"

export ZOO_SECONDS=${1:-3600}
[[ $ZOO_SECONDS =~ ^[0-9]+$ ]] || die "ZOO_SECONDS is \"$ZOO_SECONDS\": give a number of seconds, as in \`make zoo ZOO_SECONDS=600\`"
PATH=$PATH:$HOME/.cargo/bin
# What the caller's shell says about hasten must not reach the tests; where the zoo begins may.
for name in "${!HASTEN_@}"; do [[ $name == HASTEN_TEST_BIN ]] || unset "$name"; done
unset LD_PRELOAD
scripts/wheels.sh
scripts/envoy.sh all
scripts/func-e.sh
scripts/haproxy-aws-lc.sh
# Last, because it also has a `haproxy`.
PATH=$PATH:$(scripts/haproxy-aws-lc.sh --path)
exec cargo test --locked --workspace --test zoo --test envoy -- --include-ignored --nocapture --test-threads 3
