# What the scripts that make packages share: version, date, and what is in them.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
# The date of everything in a package: that of the commit, or of the list of changes where there is no repository.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

# linked PACKAGE…: what these packages of this repository are made of, for sbom.py: crates, and the engines that are linked statically.
linked() {
    cargo tree --locked --target x86_64-unknown-linux-gnu --edges normal --prefix none --format 'cargo {p} | {l}' "${@/#/--package=}"
    sed -n 's/^\([a-z0-9-]*\)==\([0-9.]*\).*/pypi \1 \2/p' packaging/requirements/{crypto-mb,isal,libdeflate}.txt
}
