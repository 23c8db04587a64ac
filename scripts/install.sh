#!/usr/bin/env bash
# install.sh TARGET PREFIX: copies what has been built. install.sh --remove PREFIX: takes it away again.
source "$(dirname "$0")/lib.sh"

target=$1
prefix=$2
# What an installation consists of, with its sums.
list=share/hasten/SHA256SUMS

# take_away LIST FILE…: what LIST names, and folders that are hasten's own once they are empty.
take_away() {
    local files=$1 file
    cut -d ' ' -f 3- "$files" | while read -r file; do rm -f "$prefix/$file"; done
    rm -f "$files"
    for file in lib/hasten share/doc/hasten share/hasten; do
        [[ ! -d $prefix/$file ]] || find "$prefix/$file" -depth -type d -empty -delete
    done
}

if [[ $target == --remove ]]; then
    [[ -f $prefix/$list ]] || die "hasten is not installed in $prefix, or not by \`make install\`: $prefix/$list is missing"
    take_away "$prefix/$list"
    exit 0
fi
tree=$target/release/dist/tree
[[ -f $tree/$list ]] || die "nothing has been built: run \`make dist\` as an ordinary user first"
mkdir -p "$prefix" && [[ -w $prefix ]] || die "cannot write to $prefix: use sudo, or PREFIX=\$HOME/.local"
# What an earlier version had and this one does not.
[[ ! -f $prefix/$list ]] || grep -vxFf <(cut -d ' ' -f 3- "$tree/$list") <(cut -d ' ' -f 3- "$prefix/$list") |
    while read -r file; do rm -f "$prefix/$file"; done || true
# A running server has the old library mapped: the file is replaced instead of being written into.
(cd "$tree" && find . -type d -o -print) | while read -r file; do
    mkdir -p "$(dirname "$prefix/$file")"
    cp --no-dereference --preserve=mode --remove-destination "$tree/$file" "$prefix/$file" ||
        die "cannot write to $prefix: use sudo, or PREFIX=\$HOME/.local"
done
say "hasten is in $prefix/bin"
