#!/usr/bin/env bash
# deb.sh TARGET FOLDER [REVISION]: the Debian package of TARGET/release/dist/tree, in FOLDER. The same tree makes the same file.
source "$(dirname "$0")/release-lib.sh"

tree=$1/release/dist/tree
folder=$2
full=$version-${3:-1}
# RFC 2606 keeps this domain from being anybody's.
maintainer=${RELEASE_MAINTAINER:-hasten maintainers <maintainers@hasten.invalid>}
sources=packaging/debian

main() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    root=$scratch/hasten
    mkdir -p "$root/DEBIAN" "$folder"
    cp -a "$tree" "$root/usr"
    as_debian_has_it
    control
    # Others shall read it, whatever this shell's umask.
    chmod -R u=rwX,go=rX "$root"
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    rm -f "$folder"/hasten_*.deb
    dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/hasten_${full}_amd64.deb" >/dev/null
    say "$folder/hasten_${full}_amd64.deb"
}

as_debian_has_it() {
    local share=$root/usr/share
    local doc=$share/doc/hasten
    mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
    gzip --best --no-name "$share"/man/man1/*.1
    # dpkg has a list and sums of its own, and the licence is in every Debian.
    rm "$share/hasten/SHA256SUMS" "$doc/LICENSE"
    cp "$sources/copyright" "$doc/copyright"
    gzip --best --no-name <CHANGELOG.md >"$doc/changelog.gz"
    changelog | gzip --best --no-name >"$doc/changelog.Debian.gz"
    mkdir -p "$share/lintian/overrides"
    cp "$sources/lintian-overrides" "$share/lintian/overrides/hasten"
}

changelog() {
    printf 'hasten (%s) stable; urgency=medium\n\n  * Version %s: /usr/share/doc/hasten/CHANGELOG.md has its changes.\n\n -- %s  %s\n' \
        "$full" "$version" "$maintainer" "$(LC_ALL=C date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
}

control() {
    local size floor
    size=$(du --summarize --apparent-size --block-size=1024 "$root/usr" | cut -f 1)
    floor=$(sed -n 's/^floor=//p' scripts/floor.sh)
    sed "s|@VERSION@|$full|; s|@MAINTAINER@|$maintainer|; s|@SIZE@|$size|; s|@FLOOR@|$floor|" "$sources/control" >"$root/DEBIAN/control"
    install -m 755 -t "$root/DEBIAN" "$sources"/{postinst,postrm}
    sed -e '/^@FAREWELL@$/{r packaging/farewell.sh' -e 'd}' "$sources/prerm" | install -m 755 /dev/stdin "$root/DEBIAN/prerm"
    install -m 644 -t "$root/DEBIAN" "$sources/triggers"
    (cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
}

main
