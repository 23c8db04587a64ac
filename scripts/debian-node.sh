#!/usr/bin/env bash
# debian-node.sh: Debian's own build of Node.js, stripped and with V8 in a shared library, for the tests of `hasten core`:
# .deps/debian-node/usr/bin/node. apt checks the packages.
source "$(dirname "$0")/lib.sh"

target=.deps/debian-node
[[ ! -x $target/usr/bin/node ]] || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
say "Fetching Debian's Node.js"
# Others publish packages by the name nodejs, too.
version=$(apt-cache madison libnode108 | awk '{ print $3; exit }')
# The program, what it loads that this machine may not have, and what it reads at its start.
packages=({nodejs,libnode108}="$version" libbrotli1 libc-ares2 libicu72 libnghttp2-14 libuv1 node-{acorn,cjs-module-lexer,undici})
(cd "$scratch" && apt-get download "${packages[@]}" >/dev/null 2>&1) ||
    die "cannot fetch ${packages[*]}: check the network, and that /etc/apt/sources.list names Debian 12"
for package in "$scratch"/*.deb; do dpkg-deb --extract "$package" "$scratch/tree"; done
rm -rf "$target" "$scratch"/tree/usr/share/{doc,man}
mv "$scratch/tree" "$target"
