#!/usr/bin/env bash
# tools.sh NAME: provides a cargo subcommand, in .deps/tools/bin unless the machine has it.
source "$(dirname "$0")/lib.sh"

tool=$1
bin=$root/.deps/tools/bin
PATH=$bin:$PATH

from_pypi() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    fetch_wheel "packaging/requirements/$tool.txt" "$scratch"
    python3 -m zipfile -e "$scratch"/*.whl "$scratch"
    install -D -m 755 "$scratch"/*.data/scripts/"$tool" "$bin/$tool"
}

has "$tool" && exit 0
say "Fetching $tool"
if [[ -f packaging/requirements/$tool.txt ]]; then
    from_pypi
else
    cargo install --locked --quiet --root "$root/.deps/tools" "$tool" ||
        die "cannot install $tool: check the network, then run make again"
fi
