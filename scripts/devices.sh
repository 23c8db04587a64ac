#!/usr/bin/env bash
# devices.sh DIR: builds the simulated libraries of devices into DIR, under the names of the real ones.
# Needs cc, zlib1g-dev and libssl-dev. What is up to date is not built again.
source "$(dirname "$0")/lib.sh"

out=$1
sources=tests/devices
mkdir -p "$out"
# Several test programs may come at once.
exec 9>"$out/.lock"
flock 9

build() {
    local name=$1 source=$2 newest
    shift 2
    newest=$(ls -t "$out/$name" "$sources"/*.[ch] scripts/devices.sh 2>/dev/null | head -n 1) || true
    [[ $newest != "$out/$name" ]] || return 0
    cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wno-unused-function -fPIC -shared -fvisibility=hidden -pthread \
        -Wl,-soname,"$name" -o "$out/$name.new" "$sources/$source" "$sources/control.c" "$@"
    mv "$out/$name.new" "$out/$name"
}

build libqatzip.so.3 qatzip.c -lz
build libqpl.so.1 qpl.c -lz
build libqat.so.4 qat.c -lcrypto
build libusdm.so.0 usdm.c
build libdml.so.1 dml.c
build libdlb.so dlb.c
