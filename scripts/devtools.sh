#!/usr/bin/env bash
# devtools.sh: the model of heap snapshots of Chrome DevTools, from the npm registry, pinned by hash:
# `node .deps/devtools/summary.mjs FILE.heapsnapshot` says what DevTools shows of a file.
source "$(dirname "$0")/lib.sh"

npm_install packaging/devtools .deps/devtools
sources=(packaging/devtools/*.mjs .deps/devtools/installed.json)
inputs=$(sha256sum "${sources[@]}")
[[ ! -f .deps/devtools/summary.mjs || $inputs != "$(cat .deps/devtools/inputs.txt 2>/dev/null)" ]] || exit 0
node packaging/devtools/build.mjs .deps/devtools/node_modules .deps/devtools/summary.mjs
printf '%s\n' "$inputs" >.deps/devtools/inputs.txt
