#!/usr/bin/env bash
# images.sh: parts of other releases of Debian and Ubuntu, in which tests run the preload libraries, in .deps/images. What a
# network does not have is left out and named.
source "$(dirname "$0")/lib.sh"

list=packaging/images.txt
target=.deps/images

main() {
    local image missing=()
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$target"
    for image in $(sed '/^#/d' "$list" | cut -d ' ' -f 1 | sort -u); do
        # The list is kept with what it brought, so a new pin means a new image.
        [[ $(cat "$target/$image/packages.txt" 2>/dev/null) == "$(packages "$image")" ]] && continue
        unpack "$image" || missing+=("$image")
    done
    [[ -n $(ls "$target") ]] || die "none of the packages of $list can be had: check the network and /etc/apt/sources.list"
    ((${#missing[@]} == 0)) || say "Without ${missing[*]}: cannot fetch the packages, or they are not what $list pins"
}

packages() { grep "^$1 " "$list"; }

# unpack IMAGE: its packages, with the links that a system of today has, and busybox as its programs.
unpack() {
    local tree=$scratch/$1 hash url folder shell program
    say "Fetching parts of $1"
    mkdir "$tree"
    while read -r _ hash url; do
        fetch_package "$url" "$hash" "$scratch/package.deb" && dpkg-deb --extract "$scratch/package.deb" "$tree" || return
    done < <(packages "$1")
    rm -rf "$tree"/usr/share "$tree"{,/usr}/lib/*/gconv
    for folder in bin lib lib64; do
        [[ -e $tree/$folder ]] || { mkdir -p "$tree/usr/$folder" && ln -s "usr/$folder" "$tree/$folder"; }
    done
    shell=$(cd "$tree" && ls -d usr/lib/initramfs-tools/bin/busybox bin/busybox 2>/dev/null)
    for program in sh env true seq grep sort wc; do ln -s "/$shell" "$tree/bin/$program"; done
    packages "$1" >"$tree/packages.txt"
    rm -rf "${target:?}/$1"
    mv "$tree" "$target/$1"
}

main
