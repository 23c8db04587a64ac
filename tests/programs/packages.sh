#!/bin/sh
# packages.sh FILE: builds Debian packages, an archive of them, and reads it with apt. The stock dpkg-deb reads what was
# built; prints what it finds.
set -eu

stock() { env -u LD_PRELOAD "$@"; }

mkdir -p archive
for level in 1 6 9; do
    root=package-$level
    mkdir -p "$root/DEBIAN" "$root/usr/share/hasten-$level"
    cp "$1" "$root/usr/share/hasten-$level/page.html"
    printf 'Package: hasten-%s\nVersion: 1.%s\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a page\n' \
        "$level" "$level" >"$root/DEBIAN/control"
    dpkg-deb --root-owner-group --build -Zgzip -z$level "$root" "archive/hasten-$level.deb" >build.log
    for extract in stock env; do
        rm -rf out
        "$extract" dpkg-deb --extract "archive/hasten-$level.deb" out
        cmp "$1" "out/usr/share/hasten-$level/page.html"
        "$extract" dpkg-deb --field "archive/hasten-$level.deb"
        "$extract" dpkg-deb --fsys-tarfile "archive/hasten-$level.deb" | tar --list
    done
done
(cd archive && dpkg-scanpackages . 2>scan.log | gzip -9n >Packages.gz && rm scan.log)

mkdir -p apt/lists/partial apt/archives/partial apt/etc
: >apt/status
echo "deb [trusted=yes] file:$PWD/archive ./" >apt/etc/sources.list
options="-qq -o Dir::State::Lists=$PWD/apt/lists -o Dir::State::status=$PWD/apt/status -o Dir::Cache=$PWD/apt
    -o Dir::Cache::archives=$PWD/apt/archives -o Dir::Etc::SourceList=$PWD/apt/etc/sources.list
    -o Dir::Etc::SourceParts=- -o Dir::Etc::Parts=- -o APT::Sandbox::User=root -o Acquire::Languages=none
    -o Acquire::GzipIndexes=true -o Debug::NoLocking=true"
# shellcheck disable=SC2086 # a list of words
{
    apt-get $options update
    apt-cache $options show hasten-1 hasten-6 hasten-9 | grep -E '^(Package|Version|Description)'
    (cd apt && apt-get $options download hasten-6 && cmp hasten-6*.deb ../archive/hasten-6.deb)
}
