#!/usr/bin/env bash
# node-plugin.sh TARGET: checks the types of the Node.js plugin and builds it, in TARGET/release/node and TARGET/debug/node.
source "$(dirname "$0")/lib.sh"

source=plugins/node
target=$1
stamp=$target/node-plugin.stamp

# Folders too: a file that is gone is a change.
changed() {
    [[ ! -e $stamp || ! -d $target/release/node || ! -d $target/debug/node ||
        -n $(find "$source/src" "$source"/*.json "$source/build.mjs" "$source/README.md" "$0" Cargo.toml -newer "$stamp" -print -quit) ]]
}

npm_install "$source" .deps/node-plugin
changed || exit 0
mkdir -p "$target"
begun=$(mktemp "$stamp.XXXXXX")
trap 'rm -f "$begun"' EXIT
.deps/node-plugin/node_modules/.bin/tsc --project "$source/tsconfig.src.json" ||
    die "the types of $source do not fit: see above"
for profile in release debug; do
    rm -rf "$target/$profile/node"
    node "$source/build.mjs" plugin "$target/$profile/node"
done
mv "$begun" "$stamp"
