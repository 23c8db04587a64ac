#!/usr/bin/env bash
# dist.sh TARGET: an installation as it is copied to its place, in TARGET/release/dist/tree: bin, lib and share, which find
# each other wherever they are. From it come `make install`, the tarball and the Debian package.
source "$(dirname "$0")/release-lib.sh"

release=$1/release
tree=$release/dist/tree
hasten=$release/hasten

main() {
    rm -rf "$release/dist"
    command_and_libraries
    manuals_and_completions
    documents
    put 644 packaging/systemd/hasten-export.service lib/systemd/system/
    put 644 packaging/grafana/hasten{,-cluster}.json share/hasten/grafana/
    put 644 packaging/prometheus/hasten{,.cluster}.rules.yml share/hasten/prometheus/
    # By this an installation can be checked, and taken away again.
    (cd "$tree" && find . -type f -o -type l | LC_ALL=C sort | xargs sha256sum) >"$release/dist/SHA256SUMS"
    sed -i 's| \./| |' "$release/dist/SHA256SUMS"
    put 644 "$release/dist/SHA256SUMS" share/hasten/
}

# put MODE FILE… FOLDER, below the tree.
put() {
    local folder=$tree/${*: -1}
    mkdir -p "$folder"
    install -m "$1" -t "$folder" "${@:2:$#-2}"
}

command_and_libraries() {
    local file
    put 755 "$hasten" bin/
    put 644 "$release"/libhasten{,_tls,_gzip,_envoy,_readcache,_wal,_tier}.so lib/hasten/
    # Without Rust's target for musl there are none.
    [[ ! -f $release/musl/libhasten_tls.so ]] || put 644 "$release"/musl/libhasten_{tls,gzip}.so lib/hasten/musl/
    put 644 "$release"/node/* lib/hasten/node/
    # The lines of their functions are four fifths of them; whoever debugs has a build.
    for file in "$tree"/bin/hasten "$tree"/lib/hasten/{,musl/}*.so; do
        [[ ! -f $file ]] || strip --strip-unneeded --remove-section=.comment --remove-section=.note "$file"
    done
}

manuals_and_completions() {
    "$hasten" man --out "$release/dist/man" --date "$(date --utc --date="@$SOURCE_DATE_EPOCH" +%F)"
    put 644 "$release"/dist/man/*.1 share/man/man1/
    mkdir -p "$tree"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
    "$hasten" completions bash >"$tree/share/bash-completion/completions/hasten"
    "$hasten" completions zsh >"$tree/share/zsh/site-functions/_hasten"
    "$hasten" completions fish >"$tree/share/fish/vendor_completions.d/hasten.fish"
}

# All pages, where their links to each other lead somewhere.
documents() {
    local doc=share/doc/hasten
    cargo xtask notices >"$release/dist/NOTICES"
    put 644 "$release/dist/NOTICES" LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md "$doc/"
    put 644 docs/*.md "$doc/docs/"
    put 644 docs/images/* "$doc/docs/images/"
    put 644 docs/results/* "$doc/docs/results/"
    put 644 fuzz/README.md "$doc/fuzz/"
    mkdir -p "$tree/$doc"/packaging/{systemd,grafana,prometheus}
    ln -s ../../../../../lib/systemd/system/hasten-export.service "$tree/$doc/packaging/systemd/"
    ln -s ../../../../hasten/grafana/hasten.json "$tree/$doc/packaging/grafana/"
    ln -s ../../../../hasten/prometheus/hasten.rules.yml "$tree/$doc/packaging/prometheus/"
}

main
