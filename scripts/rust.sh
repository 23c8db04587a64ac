#!/usr/bin/env bash
# Says how to get a Rust tool chain if there is none that can build the workspace.
source "$(dirname "$0")/lib.sh"

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
get="get it with \`curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y\`"
has cargo || die "no Rust tool chain: hasten needs Rust $wanted or newer; $get"
found=$(rustc --version | cut -d ' ' -f 2) || die "rustc does not start: hasten needs Rust $wanted or newer; $get"
oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
[[ $oldest == "$wanted" ]] || die "Rust $found is too old: hasten needs $wanted or newer; $get"
