#!/usr/bin/env bash
# soak.sh [MINUTES]: endurance of accelerated servers beside stock ones, for an hour unless told otherwise.
# The report and its page are in TARGET/soak. SOAK_SEED makes another schedule.
source "$(dirname "$0")/lib.sh"

export SOAK_MINUTES=${1:-60}
[[ $SOAK_MINUTES =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "SOAK_MINUTES is \"$SOAK_MINUTES\": give a number of minutes, as in \`make soak SOAK_MINUTES=20\`"
scripts/envoy.sh
PATH=$PATH:$HOME/.cargo/bin:$(scripts/envoy.sh --path)
# Of the workspace, so that nothing is built again with other features.
exec cargo test --locked --workspace --test soak -- --ignored --exact endurance --nocapture
