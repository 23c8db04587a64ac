# What the scripts that make packages share: version and date.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
# The date of everything in a package: that of the commit, or of the list of changes where there is no repository.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
