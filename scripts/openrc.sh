#!/usr/bin/env bash
# openrc.sh: OpenRC as Debian packages it, for the tests, in .deps/openrc. It is not installed: this system has another manager of
# services. Without the network it is left out.
source "$(dirname "$0")/lib.sh"

target=.deps/openrc
[[ ! -d $target ]] || exit 0
say "Fetching OpenRC"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tree"
# Its packages, which apt verifies.
download() { (cd "$scratch" && apt-get -qq -o APT::Sandbox::User=root download openrc librc1 libeinfo1) >/dev/null 2>&1; }
download || { as_root apt-get -qq update >/dev/null 2>&1 && download; } || { say "Without OpenRC: apt-get cannot download openrc" && exit 0; }
for package in "$scratch"/*.deb; do dpkg-deb --extract "$package" "$scratch/tree"; done
mv "$scratch/tree" "$target"
