#!/usr/bin/env bash
# Fetches the pinned crypto_mb and unpacks its static library to .deps/crypto_mb, where .cargo/config.toml points.
source "$(dirname "$0")/lib.sh"

pin=packaging/requirements/crypto-mb.txt
target=.deps/crypto_mb

# The pin is kept with what it brought, so a new pin means a new library.
if [[ -f $target/libcrypto_mb.a ]] && cmp -s "$pin" "$target/pin.txt"; then
    exit 0
fi
say "Fetching crypto_mb ($(sed -n 's/^\([a-z-]*==[0-9.]*\).*/\1/p' "$pin"))"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fetch_wheel "$pin" "$scratch"
python3 -m zipfile -e "$scratch"/*.whl "$scratch"
mkdir -p "$target"
cp "$scratch"/*.data/data/lib/libcrypto_mb.a "$target/libcrypto_mb.a"
cp "$scratch"/*.dist-info/LICENSE.txt "$target/LICENSE"
cp "$pin" "$target/pin.txt"
