#!/usr/bin/env bash
# install.sh TARGET PREFIX: copies what has been built. install.sh --remove PREFIX: takes it away again.
source "$(dirname "$0")/lib.sh"

target=$1
prefix=$2

# files MANUAL PLUGIN: mode, source (below TARGET), destination (below PREFIX), with what these two folders have.
# The Debian package has the same list in cli/Cargo.toml.
files() {
    cat <<-'LIST'
		755 release/hasten                         bin/hasten
		644 release/libhasten.so                   lib/hasten/libhasten.so
		644 release/libhasten_tls.so               lib/hasten/libhasten_tls.so
		644 release/libhasten_gzip.so              lib/hasten/libhasten_gzip.so
		644 release/dist/completions/hasten        share/bash-completion/completions/hasten
		644 release/dist/completions/_hasten       share/zsh/site-functions/_hasten
		644 release/dist/completions/hasten.fish   share/fish/vendor_completions.d/hasten.fish
		644 release/dist/NOTICES                   share/doc/hasten/NOTICES
		644 release/dist/hasten-export.service     lib/systemd/system/hasten-export.service
		644 release/dist/hasten.json               share/hasten/grafana/hasten.json
		644 release/dist/hasten.rules.yml          share/hasten/prometheus/hasten.rules.yml
	LIST
    local file
    for file in "$1"/hasten{,-*}.1; do
        [[ ! -f $file ]] || printf '644 release/dist/man/%s share/man/man1/%s\n' "${file##*/}" "${file##*/}"
    done
    for file in "$2"/*; do
        [[ ! -f $file ]] || printf '644 release/node/%s lib/hasten/node/%s\n' "${file##*/}" "${file##*/}"
    done
}

if [[ $target == --remove ]]; then
    files "$prefix/share/man/man1" "$prefix/lib/hasten/node" | while read -r _ _ file; do rm -f "$prefix/$file"; done
    rmdir --ignore-fail-on-non-empty "$prefix"/{lib/hasten/node,lib/hasten,share/doc/hasten,share/hasten/grafana,share/hasten/prometheus,share/hasten} 2>/dev/null || true
    exit 0
fi
[[ -x $target/release/hasten && -d $target/release/dist && -f $target/release/node/register.js ]] ||
    die "nothing has been built: run \`make dist\` as an ordinary user first"
files "$target/release/dist/man" "$target/release/node" | while read -r mode file destination; do
    # A running server has the old library mapped: `install` replaces the file instead of writing into it.
    install -D -m "$mode" "$target/$file" "$prefix/$destination" ||
        die "cannot write to $prefix: use sudo, or PREFIX=\$HOME/.local"
done
say "hasten is in $prefix/bin"
