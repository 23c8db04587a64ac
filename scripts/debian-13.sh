#!/usr/bin/env bash
# debian-13.sh: a minimal Debian 13 with its nginx, HAProxy and Apache, made of its packages, in .deps/debian-13. Needs root,
# for its changes of root.
source "$(dirname "$0")/lib.sh"

target=.deps/debian-13

[[ ! -f $target/ready ]] || exit 0
((EUID == 0)) || die "a change of root needs root: run \`sudo make reach\`"
has debootstrap || die "debootstrap is missing: run \`apt-get install debootstrap\` as root"
mirror=$(apt-cache policy | sed -n 's|^ *[0-9-]* \(https*://[^ ]*\) [^ ]*/main .*|\1|p' | grep -v security | head -1)
say "Making a system of Debian 13"
rm -rf "$target"
mkdir -p "$target"
debootstrap --variant=minbase --include=nginx-light,haproxy,apache2 trixie "$target/root" "${mirror:?}" >"$target/log" 2>&1 ||
    die "Debian 13 cannot be installed in $target: see $target/log"
rm -f "$target"/root/var/cache/apt/archives/*.deb
touch "$target/ready"
