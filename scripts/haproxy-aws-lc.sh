#!/usr/bin/env bash
# haproxy-aws-lc.sh: HAProxy on AWS-LC, with which `hasten bench tls --server haproxy-aws-lc` compares hasten, in
# .deps/haproxy-aws-lc/bin: `haproxy-aws-lc`, and `haproxy`, the same source on the system's OpenSSL. Takes three minutes.
# haproxy-aws-lc.sh --path: where they are.
source "$(dirname "$0")/lib.sh"

pin=packaging/haproxy.txt
target=.deps/haproxy-aws-lc

main() {
    if [[ ${1:-} == --path ]]; then
        printf '%s\n' "$PWD/$target/bin"
        return
    fi
    # What went in is kept with what came out, so a new pin means a new build, as does another release of OpenSSL's headers.
    local inputs
    inputs=$(sha256sum "$pin" scripts/haproxy-aws-lc.sh /usr/include/openssl/opensslv.h && aws_lc_pin) ||
        die "HAProxy is built on the system's OpenSSL, too: run \`apt-get install libssl-dev\` as root"
    [[ -x $target/bin/haproxy-aws-lc && $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    build_aws_lc
    fetch_haproxy
    build_haproxy haproxy USE_OPENSSL=1
    # shellcheck disable=SC2016 # for the dynamic linker
    build_haproxy haproxy-aws-lc USE_OPENSSL_AWSLC=1 "SSL_INC=$scratch/aws-lc/include" "SSL_LIB=$scratch/aws-lc/lib" \
        'ADDLIB=-Wl,-rpath,'\''$$ORIGIN/../lib'\'
    mkdir -p "$target/bin" "$target/lib"
    install -m 755 "$scratch/haproxy" "$scratch/haproxy-aws-lc" "$target/bin/"
    install -m 644 "$scratch"/aws-lc/lib/lib{ssl,crypto}.so "$target/lib/"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# Name, version and checksum.
aws_lc_pin() { grep -A 3 '^name = "aws-lc-sys"' Cargo.lock; }

# As HAProxy's INSTALL describes it: a release build, shared. The crate has the assembler code ready made.
build_aws_lc() {
    local crate
    crate=$(cargo metadata --quiet --locked --filter-platform x86_64-unknown-linux-gnu --format-version 1 | python3 -c '
import json, os, sys
manifests = {package["name"]: package["manifest_path"] for package in json.load(sys.stdin)["packages"]}
print(os.path.dirname(manifests["aws-lc-sys"]))')
    say "Building AWS-LC (from ${crate##*/})"
    quietly cmake -S "$crate/aws-lc" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
        -DBUILD_TESTING=OFF -DBUILD_TOOL=OFF -DDISABLE_PERL=ON -DDISABLE_GO=ON -DENABLE_SOURCE_MODIFICATION=OFF \
        -DCMAKE_INSTALL_PREFIX="$scratch/aws-lc" -DCMAKE_INSTALL_LIBDIR=lib
    quietly cmake --build "$scratch/build" --parallel "$(nproc)"
    quietly cmake --install "$scratch/build" --strip
}

fetch_haproxy() {
    local hash url
    read -r hash url < <(sed '/^#/d' "$pin")
    say "Fetching HAProxy (${url##*/})"
    fetch_file "$url" "$hash" "$scratch/haproxy.tar.gz" ||
        die "cannot fetch $url as $pin pins it: check the network; Debian may have a newer one in its place"
    mkdir "$scratch/source"
    tar --extract --gzip --strip-components 1 --file "$scratch/haproxy.tar.gz" --directory "$scratch/source"
}

# build_haproxy NAME OPTION…, at HAProxy's own -O2. Symbols stay, for profiles.
build_haproxy() {
    say "Building $1 (${*:2:1})"
    quietly make -C "$scratch/source" clean
    quietly make -C "$scratch/source" --jobs "$(nproc)" TARGET=linux-glibc "${@:2}"
    strip --strip-debug -o "$scratch/$1" "$scratch/source/haproxy"
}

# quietly COMMAND…: its output only if it fails.
quietly() {
    local log
    log=$("$@" 2>&1) || { printf '%s\n' "$log" >&2 && die "\`$1\` failed: see above"; }
}

main "$@"
