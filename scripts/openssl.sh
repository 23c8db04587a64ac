#!/usr/bin/env bash
# openssl.sh: builds libcrypto and libssl of every series that packaging/openssl.txt pins, in .deps/openssl/SERIES with the
# headers beside them. Some minutes for each, once.
source "$(dirname "$0")/lib.sh"

pins=packaging/openssl.txt
target=.deps/openssl
# The crates of later series are without this file of the build.
with_mkdef=3.4
mkdef=util/mkdef.pl
# As a distribution builds it: shared, with everything but the tests, and the legacy provider, of which the crates have no part.
options=(linux-x86_64 shared no-tests no-legacy --prefix=/usr --libdir=lib --openssldir=/etc/ssl)

main() {
    local series
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    for series in $(sed '/^#/d' "$pins" | cut -d ' ' -f 1); do
        # What went in is kept with what came out, so a new pin means a new library.
        [[ $(cat "$target/$series/inputs.txt" 2>/dev/null) == "$(inputs "$series")" ]] || build "$series"
    done
}

inputs() { grep "^$1 " "$pins" && sha256sum scripts/openssl.sh; }

build() {
    local source=$scratch/build-$1 log=$scratch/$1.log
    say "Building OpenSSL $1 ($(grep "^$1 " "$pins" | cut -d + -f 2 | cut -d ' ' -f 1)): some minutes"
    unpack "$1" "$source"
    [[ -e $source/$mkdef ]] || { unpack "$with_mkdef" "$scratch/other" && cp "$scratch/other/$mkdef" "$source/$mkdef"; }
    (cd "$source" && perl ./Configure "${options[@]}" && make build_generated && nice -n 5 make -j "$(nproc)" libcrypto.so libssl.so) \
        >"$log" 2>&1 ||
        die "OpenSSL $1 does not build: $(tail -n 3 "$log")"
    rm -rf "${target:?}/$1"
    mkdir -p "$target/$1/lib"
    cp -P "$source"/lib{crypto,ssl}.so* "$target/$1/lib/"
    cp -r "$source/include" "$target/$1/"
    inputs "$1" >"$target/$1/inputs.txt"
    rm -rf "$source" "$scratch/other"
}

# unpack SERIES DIRECTORY: the source in the pinned crate, which cargo fetches from its registry.
unpack() {
    local version hash crate
    read -r _ version hash < <(grep "^$1 " "$pins")
    crate=$(crate_file "$version")
    [[ -n $crate ]] || { fetch_crate "$version" && crate=$(crate_file "$version"); }
    [[ $(sha256sum <"$crate") == "$hash "* ]] || die "$crate is not what $pins pins: remove it, and see whether a proxy changes downloads"
    mkdir -p "$2"
    tar --extract --gzip --file "$crate" --directory "$2" --strip-components 2 "openssl-src-$version/openssl"
}

# Where cargo keeps what it has fetched, if it has.
crate_file() { find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" -name "openssl-src-$1.crate" -print -quit 2>/dev/null; }

# fetch_crate VERSION, as the dependency of a package that nobody builds.
fetch_crate() {
    local package=$scratch/package
    mkdir -p "$package/src"
    : >"$package/src/lib.rs"
    cat >"$package/Cargo.toml" <<-TOML
		[package]
		name = "openssl-of-a-series"
		[dependencies]
		openssl-src = "=${1%%+*}"
		[workspace]
	TOML
    cargo fetch --quiet --manifest-path "$package/Cargo.toml" || die "cannot fetch openssl-src $1: check the network"
    rm -rf "$package"
}

main
