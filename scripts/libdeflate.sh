#!/usr/bin/env bash
# Builds the compressor of the pinned libdeflate as a static library in .deps/libdeflate, where .cargo/config.toml points.
# libdeflate compresses whole streams only. Six lines of it are changed here, so that parts of a stream can be, too.
source "$(dirname "$0")/lib.sh"

pin=packaging/requirements/libdeflate.txt
part=core/deflate/src/engine/libdeflate/part.c
target=.deps/libdeflate

# What core/deflate calls. Everything else stays inside the library.
interface=(hasten_libdeflate_new hasten_libdeflate_free hasten_libdeflate_tune hasten_libdeflate_compress)

main() {
    # What went in is kept with what came out, so a new pin means a new library.
    local inputs
    inputs=$(sha256sum "$pin" "$part" scripts/libdeflate.sh)
    [[ -f $target/libhasten_libdeflate.a && $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    say "Building libdeflate ($(sed -n 's/^\(deflate==[0-9.]*\).*/from \1/p' "$pin"))"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    fetch_source "$pin" "$scratch" scikit_build_core/build
    compile "$scratch"/deflate-*/libdeflate
    mkdir -p "$target"
    install -m 644 "$scratch/libhasten_libdeflate.a" "$target/libhasten_libdeflate.a"
    install -m 644 "$scratch"/deflate-*/libdeflate/COPYING "$target/LICENSE"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# compile SOURCE: part.c includes the changed compressor.
compile() {
    local flags=(-O3 -g0 -fPIC -fvisibility=hidden -fstack-protector-strong -I "$1" -I "$1/lib" -I "$scratch")
    change "$1/lib/deflate_compress.c" >"$scratch/changed_compress.c"
    cc "${flags[@]}" -Wall -Werror -Wno-unused-function -c -o "$scratch/part.o" "$part"
    cc "${flags[@]}" -c -o "$scratch/utils.o" "$1/lib/utils.c"
    archive "$scratch/libhasten_libdeflate.a" "$scratch/part.o" "$scratch/utils.o" -- "${interface[@]}"
}

# change FILE: after each initialization of a matchfinder the history is skipped, and the last block is final only if
# the stream ends with it. Both macros are in part.c.
change() {
    local changed
    changed=$(sed -e 's/^\t\(h[tc]\)_matchfinder_init(\(&c->p.*\));$/&\n\tSKIP_HISTORY(\1, \2);/' \
        -e 's/\(c->p\.[fg]\.sequences\), in_next == in_end);$/\1, in_next == in_end \&\& IS_LAST);/' \
        -e 's/^#define SUPPORT_NEAR_OPTIMAL_PARSING.*/#define SUPPORT_NEAR_OPTIMAL_PARSING 0/' "$1")
    (($(grep -c SKIP_HISTORY <<<"$changed") == 3 && $(grep -c IS_LAST <<<"$changed") == 3)) ||
        die "libdeflate's compressor has changed: see what has become of the places that scripts/libdeflate.sh changes"
    printf '%s\n' "$changed"
}

main
