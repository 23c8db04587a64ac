#!/usr/bin/env bash
# crash.sh KILLS: kills databases whose logs are on another device, and programs that share a read cache, so many times each, and
# compares what the stock programs find afterwards with what was acknowledged, and with what they find without hasten.
source "$(dirname "$0")/lib.sh"

[[ $1 =~ ^[1-9][0-9]*$ ]] || die "KILLS is \"$1\": give a number, as in \`make crash KILLS=100\`"
PATH=$PATH:$HOME/.cargo/bin
say "Killing each $1 times"
HASTEN_TEST_KILLS=$1 cargo test --locked --package hasten-tests --test wal --test read_cache -- kill
