#!/usr/bin/env bash
# reach.sh: handshakes with every series of OpenSSL that hasten knows, built from its source, and with Debian 13's servers. The
# report is TARGET/reach/hasten-report.json; `cargo xtask results --add` keeps it.
source "$(dirname "$0")/lib.sh"

PATH=$PATH:$HOME/.cargo/bin
# What the caller's shell says about hasten must not reach the tests; where the product is may.
for name in "${!HASTEN_@}"; do [[ $name == HASTEN_TEST_BIN ]] || unset "$name"; done
unset LD_PRELOAD
scripts/openssl.sh
scripts/nginx.sh
scripts/debian-13.sh
scripts/images.sh
exec cargo test --locked --workspace --test reach -- --include-ignored --nocapture
