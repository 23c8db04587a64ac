#!/usr/bin/env bash
# node-test.sh [FILE [NAME]]: the tests of the Node.js plugin, each on one release of Node.js; or only those in files,
# and of a name, that contain these words, on all releases. HASTEN_TEST_NODES='20 24' names the releases.
source "$(dirname "$0")/lib.sh"

scratch=${CARGO_TARGET_DIR:-target}/node-test
mkdir -p "$scratch"

(($# == 0)) || export HASTEN_TEST_THOROUGH=1

scripts/nodes.sh --old
npm_install plugins/node .deps/node-plugin
npm_install plugins/node/test/packages .deps/node-test-packages
node plugins/node/build.mjs plugin "$scratch/plugin"
node plugins/node/build.mjs eager "$scratch/eager"
node plugins/node/build.mjs hasty "$scratch/hasty"
node plugins/node/build.mjs tests "$scratch/tests"
unset "${!HASTEN_DIS@}" "${!HASTEN_NODE_@}" HASTEN_CACHE_DIR HASTEN_RUNTIME_DIR "${!NODE_@}" LD_PRELOAD
exec node --enable-source-maps plugins/node/test/run.mjs "$scratch/tests" "$@"
