#!/usr/bin/env bash
# node-tools.sh [NAME]: programs and suites of the npm registry (plugins/node/test/tools) on Node.js with and without the plugin; only those of this name.
# HASTEN_TEST_NODES='20 24' restricts the releases, NODE_TOOLS_STARTS (6) says how often each is started.
source "$(dirname "$0")/lib.sh"

export HASTEN_TOOLS=${CARGO_TARGET_DIR:-$root/target}/node-tools
export HASTEN_TOOLS_STARTS=${NODE_TOOLS_STARTS:-6}
npm_install plugins/node/test/tools "$HASTEN_TOOLS"
exec scripts/node-test.sh tools/ "$@"
