#!/usr/bin/env bash
# release.sh TARGET FOLDER: what a release consists of, all from TARGET/release/dist/tree, in FOLDER: a tarball, the Debian
# package, an apt repository, packages for pip and npm, and their sums. RELEASE_KEY, RELEASE_URL and RELEASE_MAINTAINER: see apt-repository.sh and deb.sh.
source "$(dirname "$0")/release-lib.sh"

target=$1
folder=$2
name=hasten-$version-linux-x86_64

main() {
    rm -rf "$folder"
    mkdir -p "$folder"
    tarball
    scripts/deb.sh "$target" "$folder"
    scripts/apt-repository.sh "$folder"/hasten_*.deb "$folder/apt"
    scripts/registries.sh "$target" "$folder"
    (cd "$folder" && sha256sum "$name.tar.gz" hasten_*.deb hasten-*.whl hasten-*.tgz) >"$folder/SHA256SUMS"
    [[ -z ${RELEASE_KEY:-} ]] || gpg --batch --yes --local-user "$RELEASE_KEY" --detach-sign --armor "$folder/SHA256SUMS"
    say "$folder has the release"
}

# Old tars and small images read this one.
tarball() {
    tar --create --directory "$target/release/dist/tree" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --transform="s|^\.|$name|S" . |
        gzip --best --no-name >"$folder/$name.tar.gz"
    say "$folder/$name.tar.gz"
}

main
