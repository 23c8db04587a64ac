#!/usr/bin/env bash
# wheels.sh: Python packages that bring an OpenSSL of their own, for the tests, in .deps/wheels.
source "$(dirname "$0")/lib.sh"

pin=packaging/requirements/guests.txt
target=.deps/wheels
[[ ! -e $target/pin ]] || ! cmp -s "$pin" "$target/pin" || exit 0
say "Fetching Python packages with an OpenSSL of their own"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Debian 12's interpreter, whichever one runs pip.
fetch "$pin" "$scratch" --only-binary :all: --python-version 3.11 --implementation cp
rm -rf "$target"
mkdir -p "$target"
for wheel in "$scratch"/*.whl; do
    python3 -m zipfile -e "$wheel" "$target"
done
cp "$pin" "$target/pin"
