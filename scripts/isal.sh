#!/usr/bin/env bash
# isal.sh [arm64]: builds the compressor of the pinned ISA-L as a static library in .deps/isal, where .cargo/config.toml points,
# or for another machine in .deps/MACHINE/isal.
# Debian has ISA-L as a shared library only, which a preload library must not bring into other people's processes.
source "$(dirname "$0")/lib.sh"
build_for "${1:-}"

pin=packaging/requirements/isal.txt
layout=core/deflate/src/engine/isal/layout.c
unreachable=core/deflate/src/engine/isal/unreachable.c
target=$deps/isal

# What core/deflate calls. Everything else stays inside the library.
interface=(isal_deflate_init isal_deflate_set_dict isal_deflate)

c_sources=(igzip hufftables_c igzip_base igzip_icf_base igzip_icf_body adler32_base flatten_ll encode_df huff_codes)
asm_sources=(igzip_body igzip_finish igzip_icf_body_h1_gr_bt igzip_icf_finish rfc1951_lookup adler32_sse adler32_avx2_4
    igzip_multibinary igzip_update_histogram_01 igzip_update_histogram_04 encode_df_04 encode_df_06 proc_heap
    igzip_deflate_hash igzip_gen_icf_map_lh1_04 igzip_gen_icf_map_lh1_06 igzip_set_long_icf_fg_04 igzip_set_long_icf_fg_06)
arm64_sources=(aarch64/igzip_multibinary_aarch64_dispatcher.c aarch64/{igzip_multibinary_arm64,igzip_isal_adler32_neon}.S
    aarch64/{igzip_deflate_body_aarch64,igzip_deflate_finish_aarch64,igzip_deflate_hash_aarch64,igzip_set_long_icf_fg}.S
    aarch64/{isal_deflate_icf_body_hash_hist,isal_deflate_icf_finish_hash_hist,encode_df,isal_update_histogram,gen_icf_map}.S
    proc_heap_base.c)

main() {
    # What went in is kept with what came out, so a new pin means a new library.
    local inputs
    inputs=$(sha256sum "$pin" "$layout" "$unreachable" scripts/isal.sh)
    [[ -f $target/libisal.a && $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    say "Building ISA-L${machine:+ for $machine} ($(sed -n 's/^\(isal==[0-9.]*\).*/from \1/p' "$pin"))"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    fetch_source "$pin" "$scratch" setuptools/build_meta
    compile "$scratch"/isal-*/src/isal/isa-l
    mkdir -p "$target"
    install -m 644 "$scratch/libisal.a" "$target/libisal.a"
    install -m 644 "$scratch"/isal-*/src/isal/isa-l/LICENSE "$target/LICENSE"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# compile SOURCE: the compressor, without ISA-L's inflate, CRCs and erasure codes.
compile() {
    local source=$1 name objects=() include reader
    include=("-I$source/include/" "-I$source/igzip/" "-I$source/")
    for name in "${c_sources[@]}"; do
        compile_c "$source/igzip/$name.c" "$scratch/$name.o"
        objects+=("$scratch/$name.o")
    done
    for name in "$layout" "$unreachable"; do
        compile_c "$name" "$scratch/$(basename "$name" .c).o"
        objects+=("$scratch/$(basename "$name" .c).o")
    done
    [[ -z $machine ]] || asm_sources=()
    for name in "${asm_sources[@]}"; do
        nasm -f elf64 -DPIC "${include[@]}" -o "$scratch/$name.asm.o" "$source/igzip/$name.asm"
        objects+=("$scratch/$name.asm.o")
    done
    [[ $machine == arm64 ]] || arm64_sources=()
    for name in "${arm64_sources[@]}"; do
        # By this its headers know who reads them.
        [[ $name == *.c ]] && reader='' || reader=-D__ASSEMBLY__
        compile_c "$source/igzip/$name" "$scratch/$(basename "$name").o" ${reader:+"$reader"}
        objects+=("$scratch/$(basename "$name").o")
    done
    archive "$scratch/libisal.a" "${objects[@]}" -- "${interface[@]}"
}

# Without checked functions, which musl does not have.
compile_c() {
    "$compiler" -O2 -g0 -fPIC -fvisibility=hidden -fno-semantic-interposition -fstack-protector-strong -U_FORTIFY_SOURCE -DNDEBUG -w \
        "${include[@]}" "${@:3}" -c -o "$2" "$1"
}

main
