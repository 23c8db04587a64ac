#!/usr/bin/env bash
# libdeflate.sh [arm64]: builds the compressor of the pinned libdeflate as a static library in .deps/libdeflate, where
# .cargo/config.toml points, or for another machine in .deps/MACHINE/libdeflate.
# libdeflate compresses whole streams only, with matches from 32 KiB. Ten lines of it are changed here, so that parts of a
# stream can be compressed, too, and with matches from less.
source "$(dirname "$0")/lib.sh"
build_for "${1:-}"

pin=packaging/requirements/libdeflate.txt
part=core/deflate/src/engine/libdeflate/part.c
target=$deps/libdeflate

# What core/deflate calls, of the compressor and of one with small tables. Everything else stays inside the library.
functions=(new free tune compress)

main() {
    # What went in is kept with what came out, so a new pin means a new library.
    local inputs
    inputs=$(sha256sum "$pin" "$part" scripts/libdeflate.sh)
    [[ -f $target/libhasten_libdeflate.a && $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    say "Building libdeflate${machine:+ for $machine} ($(sed -n 's/^\(deflate==[0-9.]*\).*/from \1/p' "$pin"))"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    fetch_source "$pin" "$scratch" scikit_build_core/build
    compile "$scratch"/deflate-*/libdeflate
    mkdir -p "$target"
    install -m 644 "$scratch/libhasten_libdeflate.a" "$target/libhasten_libdeflate.a"
    install -m 644 "$scratch"/deflate-*/libdeflate/COPYING "$target/LICENSE"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# compile SOURCE: part.c includes the changed compressor. Without checked functions, which musl does not have.
compile() {
    local flags=(-O3 -g0 -fPIC -fvisibility=hidden -fstack-protector-strong -U_FORTIFY_SOURCE)
    local paths=(-I "$1" -I "$1/lib" -I "$scratch") name
    local all=("${functions[@]/#/hasten_libdeflate_}") small=("${functions[@]/#/hasten_libdeflate_small_}") renames=()
    change "$1/lib/deflate_compress.c" >"$scratch/changed_compress.c"
    mkdir "$scratch/large"
    limit "$1/lib" "$scratch/large"
    "$compiler" "${flags[@]}" -I "$scratch/large" "${paths[@]}" -Wall -Werror -Wno-unused-function -c -o "$scratch/part.o" "$part"
    # To clear the tables takes longer than to compress a short text, so there is a compressor with fewer of them.
    mkdir "$scratch/small"
    shrink "$scratch/large" "$scratch/small"
    for name in "${functions[@]}"; do renames+=("-Dhasten_libdeflate_$name=hasten_libdeflate_small_$name"); done
    "$compiler" "${flags[@]}" -I "$scratch/small" "${paths[@]}" "${renames[@]}" -Wall -Werror -Wno-unused-function -c \
        -o "$scratch/small.o" "$part"
    "${tools}objcopy" "${small[@]/#/--keep-global-symbol=}" "$scratch/small.o"
    "$compiler" "${flags[@]}" "${paths[@]}" -c -o "$scratch/utils.o" "$1/lib/utils.c"
    archive "$scratch/libhasten_libdeflate.a" "$scratch/part.o" "$scratch/small.o" "$scratch/utils.o" -- "${all[@]}" "${small[@]}"
}

# shrink SOURCE TARGET: the matchfinders with hash tables of 10 KiB in place of 192, and of 8 in place of 128.
shrink() {
    sed -e 's/^\(#define HC_MATCHFINDER_HASH3_ORDER\)\t15$/\1 10/' -e 's/^\(#define HC_MATCHFINDER_HASH4_ORDER\)\t16$/\1 12/' \
        "$1/hc_matchfinder.h" >"$2/hc_matchfinder.h"
    sed -e 's/^\(#define HT_MATCHFINDER_HASH_ORDER\)\t15$/\1 11/' "$1/ht_matchfinder.h" >"$2/ht_matchfinder.h"
    (($(cat "$2"/*.h | grep -cE '^#define H._MATCHFINDER_HASH[34]?_ORDER 1[012]$') == 3)) ||
        die "libdeflate's matchfinders have changed: see what has become of the sizes that scripts/libdeflate.sh changes"
}

# limit SOURCE TARGET: matchfinders with a window of their own, which part.c sets, behind their tables.
limit() {
    local kind name
    for kind in hc ht; do
        name=${kind}_matchfinder
        sed -e 's/^\(\tcutoff = cur_pos - \)MATCHFINDER_WINDOW_SIZE;$/\1(u32) mf->window;/' \
            -e "s/sizeof(\*mf)/offsetof(struct $name, window)/" \
            -e "/^struct MATCHFINDER_ALIGNED $name *{\$/,/^};\$/ s/^};\$/\tu32 window;\n};/" "$1/$name.h" >"$2/$name.h"
    done
    (($(cat "$2"/*.h | grep -cE '^	cutoff = .*mf->window;$|^	u32 window;$|offsetof') == 9)) ||
        die "libdeflate's matchfinders have changed: see what has become of the places that scripts/libdeflate.sh changes"
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
