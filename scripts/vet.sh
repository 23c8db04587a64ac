#!/usr/bin/env bash
# vet.sh [FLAG…] [UNIT.cfg]: what `go vet -vettool` calls, with the standard tool in VET.
#
# Of everything that a package imports, vet wants to know which functions are like printf, and which never return. To learn that,
# it checks the types of all of Kubernetes: minutes of processor time on a machine that has not done so yet. Here, imported
# packages that are not of Go itself, or our own, have no such functions.
set -euo pipefail

# `go vet` keeps what a tool has found, by what that tool says of itself.
if [[ ${*: -1} == -V=full ]]; then
    printf '%s, our own and the standard packages only\n' "$("$VET" -V=full)"
    exit
fi
if [[ ${*: -1} == *.cfg ]]; then
    unit=$(<"${*: -1}")
    path=${unit#*\"ImportPath\": \"} out=${unit#*\"VetxOutput\": \"}
    path=${path%%\"*} out=${out%%\"*}
    if [[ $unit == *'"VetxOnly": true'* && ${path%%/*} == *.* && $path != hasten.dev/* ]]; then
        : >"$out"
        exit
    fi
fi
exec "$VET" "$@"
