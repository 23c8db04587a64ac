#!/usr/bin/env bash
# release.sh TARGET FOLDER: what a release consists of, all from TARGET/release/dist/tree, in FOLDER: a tarball, the Debian
# package, an apt repository, the RPM, packages for Alpine, pip and npm,
# a bill of materials, and the sums. RELEASE_KEY, RELEASE_URL and RELEASE_MAINTAINER: see apt-repository.sh and deb.sh.
source "$(dirname "$0")/release-lib.sh"

target=$1
folder=$2
name=hasten-$version-linux-x86_64

main() {
    rm -rf "$folder"
    mkdir -p "$folder"
    tarball
    scripts/deb.sh "$target" "$folder"
    scripts/rpm.sh "$target" "$folder"
    scripts/apt-repository.sh "$folder"/hasten_*.deb "$folder/apt"
    scripts/registries.sh "$target" "$folder"
    # Without the command for musl, which `make apk` builds, there is none.
    rm -f "$folder"/hasten-*.apk
    [[ ! -f $target/release/musl/hasten ]] || scripts/apk.sh "$target" "$folder"
    bill
    (cd "$folder" && sha256sum "$name.tar.gz" "$name.spdx.json" hasten_*.deb hasten-*.rpm hasten-*.whl hasten-*.tgz $(compgen -G 'hasten-*.apk' || true)) \
        >"$folder/SHA256SUMS"
    [[ -z ${RELEASE_KEY:-} ]] || gpg --batch --yes --local-user "$RELEASE_KEY" --detach-sign --armor "$folder/SHA256SUMS"
    say "$folder has the release"
}

# All packages have the same programs; the tarball stands for them.
bill() {
    local sum
    sum=$(sha256sum <"$folder/$name.tar.gz")
    linked hasten hasten-tls hasten-gzip hasten-envoy hasten-readcache hasten-wal hasten-tier |
        python3 scripts/sbom.py "${sum%% *}" ARCHIVE >"$folder/$name.spdx.json"
    say "$folder/$name.spdx.json"
}

# Old tars and small images read this one.
tarball() {
    tar --create --directory "$target/release/dist/tree" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --transform="s|^\.|$name|S" . |
        gzip --best --no-name >"$folder/$name.tar.gz"
    say "$folder/$name.tar.gz"
}

main
