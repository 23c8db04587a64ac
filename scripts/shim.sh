#!/usr/bin/env bash
# shim.sh TARGET [arm64]: builds libhasten.so, in TARGET/release, without any other library. What is up to date is not built again.
source "$(dirname "$0")/lib.sh"
build_for "${2:-}"

library=$1/release/libhasten.so
source=preload/shim/shim.c
[[ ! $library -nt $source || ! $library -nt $0 ]] || exit 0
mkdir -p "$1/release"
# Marks for the branches of x86-64.
protection=(-fcf-protection)
[[ -z $machine ]] || protection=()
# Several test programs may come at once.
fresh=$library.$$
# Both tables of symbols: old loaders know the one, new systems have only the other. No stack protector, since its state is
# the C library's, and no loop that the compiler takes for a memcpy, which is so, too.
"$compiler" -std=gnu11 -D_GNU_SOURCE -O2 -g0 -Wall -Wextra -Werror -fPIC -ffreestanding -fno-stack-protector "${protection[@]}" \
    -fno-tree-loop-distribute-patterns -fno-asynchronous-unwind-tables -shared -nostdlib -Wl,-soname,libhasten.so -Wl,--hash-style=both -Wl,-z,defs,-z,now,-z,relro \
    -Wl,-z,noexecstack -Wl,--build-id -o "$fresh" "$source"
mv "$fresh" "$library"
