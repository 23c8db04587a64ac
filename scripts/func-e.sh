#!/usr/bin/env bash
# func-e.sh: func-e, which starts Envoy, built from its Go module into .deps/func-e/func-e.
source "$(dirname "$0")/lib.sh"

place=$PWD/.deps/func-e
[[ ! -x $place/func-e || $place/func-e -ot packaging/func-e/go.sum ]] || exit 0
say "Building func-e"
mkdir -p "$place"
(cd packaging/func-e && "$root/scripts/go.sh" build -o "$place/func-e" github.com/tetratelabs/func-e/cmd/func-e) ||
    die "cannot build func-e: check the network, or set GOPROXY"
