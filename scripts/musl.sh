#!/usr/bin/env bash
# musl.sh: makes what the preload libraries for musl are linked with, in .deps/musl, where .cargo/config.toml points: no C
# library for musl needs to be installed. musl.sh TARGET: builds the libraries, too, in TARGET/release/musl; with --command, also
# the command, which only Alpine's package needs, and which takes minutes. Without the Rust target all say so and do nothing,
# unless HASTEN_NEED_MUSL=1 makes that an error.
source "$(dirname "$0")/lib.sh"

triple=x86_64-unknown-linux-musl
# What programs on Alpine name. Every musl takes any library of this name for itself.
soname=libc.musl-x86_64.so.1
# In musl 1.2.5, whose symbols Rust brings, and not in 1.2.4.
newer='preadv2 pwritev2 statx'
unwind=preload/floor/unwind.c
target=.deps/musl

main() {
    local rust
    rust=$(rust_target)
    if [[ -n $rust ]]; then
        link_with "$rust"
        [[ -z ${1:-} ]] || build "$1"
        [[ ${2:-} != --command ]] || build_command "$1"
    elif [[ -n ${1:-} ]]; then
        # What an earlier tool chain has built is of an earlier source.
        rm -rf "$1/release/musl"
    fi
}

# The folder of Rust's standard library for musl, which is fetched if rustup can do that; nothing if there is none.
rust_target() {
    local folder
    folder=$(rustc --print target-libdir --target "$triple")
    if [[ ! -d $folder/self-contained ]]; then
        say "Fetching Rust's target $triple"
        # A connection that is cut does not end a build.
        for _ in 1 2 3; do rustup target add "$triple" >/dev/null 2>&1 && break; done
    fi
    if [[ -d $folder/self-contained ]]; then
        printf '%s' "$folder"
    elif [[ ${HASTEN_NEED_MUSL:-} == 1 ]]; then
        die "the Rust target $triple is missing: run \`rustup target add $triple\`, or install it as this tool chain was"
    else
        say "Without the libraries for musl: \`rustup target add $triple\` brings what is missing"
    fi
}

# link_with FOLDER: a libc.so with musl's symbols and without code, and what stands in for libgcc_s.so.1.
link_with() {
    local libc=$1/self-contained/libc.a inputs
    inputs=$(sha256sum "$unwind" scripts/musl.sh "$libc")
    [[ $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    say "Making the libraries to link with for musl"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    readelf --wide --syms "$libc" | of_musl | cc -x assembler -c -o "$scratch/stub.o" -
    cc -shared -nostdlib -Wl,-soname,"$soname" -o "$scratch/libc.so" "$scratch/stub.o"
    # Of zlib's, whatever it is built for: the command calls it as the baseline of `hasten bench gzip`.
    readelf --wide --dyn-syms "$(cc -print-file-name=libz.so.1)" | sed 's/@.*//' | of_musl | cc -x assembler -c -o "$scratch/zlib.o" -
    cc -shared -nostdlib -Wl,-soname,libz.so.1 -o "$scratch/libz.so.1" "$scratch/zlib.o"
    cc -std=gnu11 -O2 -g0 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -c -o "$scratch/unwind.o" "$unwind"
    ar rcsD "$scratch/libgcc_s.a" "$scratch/unwind.o"
    mkdir -p "$target"
    mv "$scratch"/libc.so "$scratch"/libz.so.1 "$scratch"/libgcc_s.a "$target/"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# of_musl: of readelf's table, what a program may refer to, as an assembler's source.
of_musl() {
    awk -v newer="$newer" '
        BEGIN { split(newer, names, " "); for (at in names) done[names[at]] }
        $5 !~ /^(GLOBAL|WEAK)$/ || $6 != "DEFAULT" || $7 == "UND" || $8 in done { next }
        { done[$8]; data = $4 == "OBJECT"
          printf ".%s\n.globl %s\n.type %s, @%s\n%s: .byte 0\n", (data ? "data" : "text"), $8, $8, (data ? "object" : "function"), $8 }'
}

# build TARGET
build() {
    local library
    cargo build --release --locked --target "$triple" --target-dir "$1" --package hasten-tls --package hasten-gzip
    mkdir -p "$1/release/musl"
    for library in libhasten_{tls,gzip}.so; do
        cp --update "$1/$triple/release/$library" "$1/release/musl/"
    done
}

# The C of its dependencies is compiled by musl's own wrapper of the compiler, for musl's headers.
build_command() {
    has musl-gcc || die "musl-gcc is missing: run \`apt-get install musl-tools\` as root"
    CC_x86_64_unknown_linux_musl=musl-gcc cargo build --release --locked --target "$triple" --target-dir "$1" --package hasten
    cp --update "$1/$triple/release/hasten" "$1/release/musl/"
}

main "$@"
