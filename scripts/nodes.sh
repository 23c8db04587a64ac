#!/usr/bin/env bash
# nodes.sh: the Node.js releases that tests and benches run, from the npm registry, pinned by hash:
# .deps/nodes/node_modules/node{18,20,22,24,26}/bin/node; and, with --old, those from before the plugin's time:
# .deps/old-nodes/node_modules/node{8,10,12,14,16}/bin/node.
source "$(dirname "$0")/lib.sh"

npm_install packaging/node .deps/nodes
[[ ${1:-} != --old ]] || npm_install packaging/node-old .deps/old-nodes
