#!/usr/bin/env bash
# dist.sh TARGET: what an installation has beside the command and its libraries, in TARGET/release/dist.
source "$(dirname "$0")/lib.sh"

hasten=$1/release/hasten
dist=$1/release/dist
rm -rf "$dist"
mkdir -p "$dist/completions"
"$hasten" man --out "$dist/man"
"$hasten" completions bash >"$dist/completions/hasten"
"$hasten" completions zsh >"$dist/completions/_hasten"
"$hasten" completions fish >"$dist/completions/hasten.fish"
cargo xtask notices >"$dist/NOTICES"
cp packaging/systemd/hasten-export.service packaging/grafana/hasten.json packaging/prometheus/hasten.rules.yml "$dist/"
