#!/usr/bin/env bash
# release-test.sh TARGET FOLDER [SUITE…]: tries the release that is in FOLDER in fresh systems of Debian 12 and 13, made of their packages: apt from
# a signed repository, upgrade, removal, purge, the tarball, and lintian. Needs root, for its changes of root.
source "$(dirname "$0")/release-lib.sh"

target=$1
folder=$(realpath "$2")
systems=.deps/systems
passed=0
failed=()
suites=("${@:3}")
((${#suites[@]} > 0)) || suites=(bookworm trixie)

main() {
    ((EUID == 0)) || die "a change of root needs root: run \`sudo make release-test\`"
    scratch=$(mktemp -d)
    trap 'gpgconf --kill all; rm -rf "$scratch"' EXIT
    export GNUPGHOME=$scratch/keys
    install -d -m 700 "$GNUPGHOME"
    gpg --batch --quiet --passphrase '' --quick-generate-key release-test@example.invalid ed25519 sign never
    say "No systemd runs in a changed root: what it is told while it runs, \`cargo test --package hasten-tests --test release\` tests with a stand-in"
    check "lintian" lintian --fail-on error --allow-root --no-tag-display-limit "$folder"/hasten_*.deb
    local suite
    for suite in "${suites[@]}"; do
        system "$suite" && life "$suite"
    done
    ((${#failed[@]} == 0)) || printf 'failed: %s\n' "${failed[@]}" >&2
    echo "$passed passed, ${#failed[@]} failed"
    ((${#failed[@]} == 0))
}

check() {
    if "${@:2}" >"$scratch/log" 2>&1; then passed=$((passed + 1)); else
        failed+=("$1")
        say "$1:"
        cat "$scratch/log" >&2
    fi
}

# system SUITE: a minimal system with systemd's programs and nginx, kept in .deps/systems.
system() {
    local mirror
    [[ ! -f $systems/$1/ready ]] || return 0
    mirror=$(apt-cache policy | sed -n 's|^ *[0-9-]* \(https*://[^ ]*\) [^ ]*/main .*|\1|p' | grep -v security | head -1)
    say "Making a system of $1"
    rm -rf "${systems:?}/$1"
    mkdir -p "$systems/$1"
    debootstrap --variant=minbase --include=systemd,nginx-light,ca-certificates "$1" "$systems/$1/root" "${mirror:?}" >"$systems/$1/log" 2>&1 ||
        { failed+=("$1: cannot be made, see $systems/$1/log") && return 1; }
    touch "$systems/$1/ready"
}

# With a /proc of its own, which is gone with the command: by it hasten knows where it is.
inside() { unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
apt() { inside apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
files() { (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./srv \) -prune -o -print | LC_ALL=C sort); }

# life SUITE: from the first installation to the purge.
life() {
    root=$scratch/$1
    cp -a "$systems/$1/root" "$root"
    rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
    repository "$folder"/hasten_*.deb
    cp "$root/srv/apt/hasten.sources" "$root/etc/apt/sources.list.d/"
    cp "$root/srv/apt/hasten-archive-keyring.gpg" "$root/usr/share/keyrings/"
    # It makes its folders on first use.
    inside nginx -t 2>/dev/null
    files >"$scratch/before"
    check "$1: apt update" apt update
    check "$1: install" apt install hasten
    check "$1: hasten check" inside hasten check -- nginx
    check "$1: nginx through hasten" inside hasten run --quiet -- nginx -t
    check "$1: enable" inside systemctl enable hasten-export
    scripts/deb.sh "$target" "$scratch/second" 2 2>/dev/null
    repository "$scratch"/second/hasten_*.deb
    check "$1: upgrade" eval 'apt update && apt install --only-upgrade hasten && [[ $(inside dpkg-query --show hasten) == *-2 ]]'
    check "$1: still enabled" inside systemctl is-enabled hasten-export
    install -D -m 644 /dev/stdin "$root/etc/systemd/system/nginx.service.d/override.conf" <<<$'[Service]\nExecStart=\nExecStart=/usr/bin/hasten run -- /usr/sbin/nginx'
    check "$1: removal names the unit" eval 'apt remove hasten 2>&1 | tee "$scratch/said" | grep -q nginx.service.d/override.conf'
    check "$1: no longer enabled" test ! -e "$root/etc/systemd/system/multi-user.target.wants/hasten-export.service"
    check "$1: nginx without the package" eval '[[ $(inside env LD_PRELOAD=/usr/lib/hasten/libhasten.so nginx -t 2>&1) == *"cannot be preloaded"*successful* ]]'
    rm -r "$root/etc/systemd/system/nginx.service.d"
    check "$1: purge" apt purge hasten
    check "$1: nothing is left" diff "$scratch/before" <(files)
    tar -xzf "$folder"/hasten-*.tar.gz -C "$root/srv"
    check "$1: tarball" inside sh -c '/srv/hasten-*/bin/hasten run --strict --only gzip --quiet -- nginx -t'
    rm -rf "$root"
}

# repository DEB: signed with the key of this test.
repository() {
    RELEASE_KEY=release-test@example.invalid RELEASE_URL=file:/srv/apt scripts/apt-repository.sh "$1" "$root/srv/apt" 2>/dev/null
}

main
