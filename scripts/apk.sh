#!/usr/bin/env bash
# apk.sh TARGET FOLDER [REVISION]: the package for Alpine, in FOLDER: what of TARGET/release/dist/tree is not for glibc, and the
# command for musl. RELEASE_APK_KEY is the RSA key that signs it. The same tree makes the same file.
source "$(dirname "$0")/release-lib.sh"

tree=$1/release/dist/tree
command=$1/release/musl/hasten
folder=$2
full=$version-r${3:-0}
sources=packaging/alpine

main() {
    [[ -f $command ]] || die "the command for musl has not been built: run \`scripts/musl.sh $1 --command\`"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$folder" "$scratch"/{root/usr/{bin,lib/hasten},control}
    files
    control
    rm -f "$folder"/hasten-*.apk
    # The key's last word is its name on the target.
    python3 scripts/apk.py "$scratch/root" "$scratch/control" "$folder/hasten-$full.apk" ${RELEASE_APK_KEY:+"$RELEASE_APK_KEY"}
    [[ -n ${RELEASE_APK_KEY:-} ]] || say "hasten-$full.apk is not signed: apk takes it with --allow-untrusted; RELEASE_APK_KEY signs"
    say "$folder/hasten-$full.apk"
}

files() {
    local root=$scratch/root/usr
    install -m 755 "$command" "$root/bin/hasten"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/bin/hasten"
    cp -a "$tree"/lib/hasten/{libhasten.so,musl,node} "$root/lib/hasten/"
    cp -a "$tree/share" "$root/share"
    # apk has a list and sums of its own.
    rm "$root/share/hasten/SHA256SUMS"
    gzip --best --no-name "$root"/share/man/man1/*.1
    # There is no systemd.
    rm -rf "$root/share/doc/hasten/packaging/systemd"
    install -D -m 755 packaging/openrc/hasten-export "$scratch/root/etc/init.d/hasten-export"
}

control() {
    local maintainer=${RELEASE_MAINTAINER:-hasten maintainers <maintainers@hasten.invalid>}
    sed "s|@VERSION@|$full|; s|@MAINTAINER@|$maintainer|" "$sources/PKGINFO" >"$scratch/control/PKGINFO"
    cp "$sources"/{trigger,post-upgrade} "$scratch/control/"
    { echo '#!/bin/sh' && cat packaging/farewell.sh && echo farewell; } >"$scratch/control/pre-deinstall"
}

main "$@"
