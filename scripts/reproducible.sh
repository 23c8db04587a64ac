#!/usr/bin/env bash
# reproducible.sh: builds the release of the last commit twice, in folders of different names and at different times, without
# anything that was built before, and compares what comes out. What differs is named, and stays for diffoscope.
source "$(dirname "$0")/release-lib.sh"

# Outside of the repository, whose settings cargo would find from within.
place=${REPRODUCIBLE_PLACE:-/var/tmp/hasten-reproducible}

main() {
    rm -rf "$place"
    mkdir -p "$place"
    build "$place/one"
    build "$place/another-place/of-a-longer-name"
    local first=$place/one/target/packages second=$place/another-place/of-a-longer-name/target/packages differ=0 file
    while read -r file; do
        cmp --quiet "$first/$file" "$second/$file" || { differ=1 && say "differs: $file"; }
    done < <(cd "$first" && find . -type f | LC_ALL=C sort)
    diff <(cd "$first" && find . | LC_ALL=C sort) <(cd "$second" && find . | LC_ALL=C sort) || differ=1
    ((differ == 0)) || die "the release differs: see what of target/release/dist/tree does in $place, and compare it with diffoscope"
    sed 's/^/  /' "$first/SHA256SUMS"
    say "Both builds have made the same files"
    rm -rf "$place"
}

# build FOLDER: the release in a fresh copy of the commit, in another environment.
build() {
    say "Building in $1"
    mkdir -p "$1"
    git archive HEAD | tar --extract --directory "$1"
    (cd "$1" && umask "${umask:-022}" && env -u CARGO_TARGET_DIR -u MAKEFLAGS -u MAKELEVEL TZ="${zone:-UTC}" make release) >"$1.log" 2>&1 ||
        die "the build has failed: see the end of $1.log"
    umask=077 zone=Asia/Tokyo
}

main
