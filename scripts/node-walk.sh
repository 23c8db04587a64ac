#!/usr/bin/env bash
# node-walk.sh: the random walk of plugins/node/test/walk, NODE_WALK_STEPS in all (10000), the same number on each release, from NODE_WALK_SEED.
# What fails prints its seed and the last steps.
source "$(dirname "$0")/lib.sh"

read -ra nodes <<<"${HASTEN_TEST_NODES:-18 20 22 24 26}"
export HASTEN_WALK_STEPS=$((${NODE_WALK_STEPS:-10000} / ${#nodes[@]}))
export HASTEN_WALK_SEED=${NODE_WALK_SEED:-$((RANDOM * 32768 + RANDOM))}
say "$HASTEN_WALK_STEPS steps on each of Node.js ${nodes[*]}, NODE_WALK_SEED=$HASTEN_WALK_SEED"
exec scripts/node-test.sh walk
