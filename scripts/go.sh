#!/usr/bin/env bash
# go.sh ARGUMENT…: `go`, new enough for plugins/kubernetes, with modules and build cache in .deps. Debian 12's own go is too
# old, but it can fetch a new one: the tool chain is a module, too, pinned here by the hash that go itself checks.
source "$(dirname "$0")/lib.sh"
cd "$OLDPWD"

export GOMODCACHE=$root/.deps/go/mod GOCACHE=$root/.deps/go/build GOFLAGS='-trimpath -buildvcs=false' GOTOOLCHAIN=local CGO_ENABLED=0
wanted=$(sed -n 's/^go //p' "$root/plugins/kubernetes/go.mod")

new_enough() {
    local found
    found=$("$1" env GOVERSION 2>/dev/null) || return
    [[ $(printf '%s\n%s\n' "$wanted" "${found#go}" | sort -V | head -n 1) == "$wanted" ]]
}

has go || die "no go: run \`sudo apt-get install golang-go\`; a newer one is fetched with it"
new_enough go && exec go "$@"

pin=$root/packaging/requirements/go.txt
read -r module version hash < <(grep -v '^#' "$pin")
tree=$GOMODCACHE/$module@$version
if [[ ! -x $tree/bin/go ]]; then
    say "Fetching $module $version"
    # The hash is compared below, and here: nothing needs to vouch for it.
    answer=$(cd / && GOFLAGS=-modcacherw GO111MODULE=on GONOSUMDB=$module GONOSUMCHECK=1 go mod download -json "$module@$version") ||
        die "cannot fetch $module: check the network, or set GOPROXY"
    [[ $answer == *"\"$hash\""* ]] || die "the module proxy serves another $module than $pin pins: do not use it"
    # A module's files are not executable.
    chmod +x "$tree"/bin/* "$tree"/pkg/tool/*/* 2>/dev/null || true
fi
export GOROOT=$tree
exec "$tree/bin/go" "$@"
