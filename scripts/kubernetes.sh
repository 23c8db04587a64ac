#!/usr/bin/env bash
# kubernetes.sh build TARGET | check | test: hasten-k8s, built into TARGET/release, or its checks, or its tests.
source "$(dirname "$0")/lib.sh"

source=plugins/kubernetes

go() { (cd "$source" && "$root/scripts/go.sh" "$@"); }

format() {
    local files gofmt
    gofmt=$(go env GOROOT)/bin/gofmt
    files=$("$gofmt" -l "$source")
    [[ -z $files ]] || die "not formatted: run \`gofmt -w\` on ${files//$'\n'/ }"
}

case ${1:-} in
build) go build -ldflags='-s -w' -o "$(realpath -m "$2")/release/hasten-k8s" ./cmd/hasten-k8s ;;
check)
    format
    VET=$(go tool -n vet)
    export VET
    go vet -vettool="$root/scripts/vet.sh" -tags e2e ./...
    go mod verify >/dev/null
    ;;
test)
    # `make test` counts what Rust's test programs say; this says it for these.
    status=0
    # `check` has vetted it.
    # The chart and the docs are outside of the module, and the cache of tests does not know when they change.
    go test -count=1 -vet=off -ldflags='-s -w' -v ./... | awk '
        /^ *--- (PASS|FAIL)/ { name = $3; bad = /FAIL/; passed += !bad; failed += bad; print "test " name " ... " (bad ? "FAILED" : "ok"); next }
        /^=== / { next }
        { print }
        END { print "test result: " (failed ? "FAILED" : "ok") ". " passed + 0 " passed; " failed + 0 " failed" }' || status=$?
    exit "$status"
    ;;
*) die "kubernetes.sh build TARGET | check | test" ;;
esac
