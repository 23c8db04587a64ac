#!/usr/bin/env bash
# floor.sh [arm64]: makes what the preload libraries and the command are linked with in place of the build machine's glibc, in
# .deps/floor, where .cargo/config.toml points, or for another machine in .deps/MACHINE/floor. What loads on a machine must not
# ask for anything that its glibc does not have, however new the glibc is on which it was linked.
source "$(dirname "$0")/lib.sh"
build_for "${1:-}"

# The oldest glibc on which they load. xtask/src/symbols.rs holds them to it.
floor=2.17
sources=preload/floor
target=$deps/floor
loader=ld-linux-x86-64.so.2
[[ $machine != arm64 ]] || loader=ld-linux-aarch64.so.1

main() {
    local libc inputs name
    libc=$(file_of libc.so.6)
    inputs=$(sha256sum "$sources"/*.c scripts/floor.sh "$libc")
    [[ -f $target/libc.so && $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    say "Making the libraries to link with${machine:+ for $machine}, as of glibc $floor"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    # Whatever library has a function today, the loaders before glibc 2.30 look for it in the one that had it then.
    readelf --wide --dyn-syms "$libc" "$(file_of libpthread.so.0)" "$(file_of libdl.so.2)" "$(file_of "$loader")" \
        "$(file_of libm.so.6)" | of_floor >"$scratch/symbols"
    for name in libc.so.6 libpthread.so.0 libdl.so.2 libm.so.6 "$loader"; do stub "$name"; done
    compile newer libhasten_newer.a
    compile unwind libgcc_s.a
    compile start libhasten_start.a
    # The command has an unwinder, for the backtrace of a panic: not the libgcc_s.so.1 that an image may be without, but
    # its code. In the folder that only the command searches.
    mkdir "$scratch/command"
    echo "INPUT(-lgcc_eh -lhasten_start)" >"$scratch/command/libgcc_s.so"
    # As in glibc's own libc.so, a few functions that know in which library they are (atexit) are linked statically.
    echo "INPUT(-l:libc.so.6 -lhasten_newer -l:libc_nonshared.a AS_NEEDED(-l:$loader))" >"$scratch/libc.so"
    rm -rf "$target"
    mkdir -p "$target"
    mv "$scratch"/lib*.so.? "$scratch/$loader" "$scratch/libc.so" "$scratch"/*.a "$scratch/command" "$target/"
    ln -s libpthread.so.0 "$target/libpthread.so"
    ln -s libdl.so.2 "$target/libdl.so"
    ln -s libm.so.6 "$target/libm.so"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# file_of LIBRARY: where the compiler's glibc has it.
file_of() { "$compiler" -print-file-name="$1"; }

# of_floor: of readelf's tables, `LIBRARY NAME VERSION TYPE` for each symbol that the floor has, in its newest version there.
# A version is never taken back: what is of the floor or older today was there then.
of_floor() {
    awk -v floor="$floor" -v loader="$loader" '
        function rank(version, parts) { split(version, parts, "."); return (parts[1] * 1000 + parts[2]) * 1000 + parts[3] }
        function library(name) {
            if (name in of_loader) return loader
            if (name in of_libm) return "libm.so.6"
            if (name ~ /^_*(pthread|sem)_/) return "libpthread.so.0"
            return name ~ /^dl(addr1?|close|error|info|mopen|open|sym|vsym)$/ ? "libdl.so.2" : "libc.so.6"
        }
        /^File: / { in_loader = index($0, loader); in_libm = index($0, "libm.so.6") }
        $7 == "UND" || $4 == "TLS" || split($8, half, "@+") != 2 || !sub(/^GLIBC_/, "", half[2]) || half[2] !~ /^[0-9]/ { next }
        # Once in librt, libutil and libresolv, which nothing of ours is linked with; two of such names were always in libc.
        half[1] ~ /^_*(aio|lio|mq|timer|shm|gai|ns_name|res|dn)_|^(getaddrinfo_a|forkpty|openpty|login.*|log(out|wtmp))$/ &&
            half[1] !~ /^(gai_strerror|__res_init)$/ { next }
        # Linked statically, so that it knows whose handlers they are; what is shared is for programs of another age.
        half[1] == "pthread_atfork" { next }
        rank(half[2]) > rank(floor) || half[1] in newest && rank(newest[half[1]]) >= rank(half[2]) { next }
        { newest[half[1]] = half[2]; type[half[1]] = $4; if (in_loader) of_loader[half[1]]; if (in_libm) of_libm[half[1]] }
        END { for (name in newest) print library(name), name, "GLIBC_" newest[name], type[name] }' | sort
}

# stub NAME: a library of that name, with its symbols and without code.
stub() {
    awk -v library="$1" '$1 == library { data = $4 == "OBJECT"
        printf ".%s\n.globl %s\n.type %s, %%%s\n%s: .byte 0\n", (data ? "data" : "text"), $2, $2, (data ? "object" : "function"), $2
    }' "$scratch/symbols" | "$compiler" -x assembler -c -o "$scratch/stub.o" -
    awk -v library="$1" '$1 == library { names[$3] = names[$3] " " $2 ";" }
        END { for (version in names) print version " { global:" names[version] " };" }' "$scratch/symbols" >"$scratch/stub.map"
    "$compiler" -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script="$scratch/stub.map" -o "$scratch/$1" "$scratch/stub.o"
}

# compile NAME LIBRARY
compile() {
    "$compiler" -std=gnu11 -D_GNU_SOURCE -O2 -g0 -fPIC -fvisibility=hidden -fstack-protector-strong -Wall -Wextra -Werror \
        -c -o "$scratch/$1.o" "$sources/$1.c"
    "${tools}ar" rcsD "$scratch/$2" "$scratch/$1.o"
}

main
