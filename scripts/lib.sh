# Shared by the scripts beside it.
# shellcheck shell=bash

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
[[ -t 2 && -z ${NO_COLOR:-} ]] || say() { printf '==> %s\n' "$*" >&2; }

# One sentence: what is wrong and how to put it right.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

has() { type -P "$1" >/dev/null; }

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif has sudo; then
        # Without a terminal nobody can answer sudo's question.
        if [[ -t 0 ]]; then sudo "$@"; else sudo -n "$@"; fi
    else
        die "installing packages needs root: run \`make\` as root, or install sudo"
    fi
}

# fetch_wheel REQUIREMENTS DIRECTORY: a wheel from PyPI that has the pinned hash, or nothing.
fetch_wheel() { fetch "$1" "$2" --only-binary :all:; }

# fetch REQUIREMENTS DIRECTORY OPTION…: what `pip download` finds with these options, if it has the pinned hash.
fetch() {
    local log
    log=$(python3 -m pip --retries 2 download --quiet --disable-pip-version-check --no-deps --require-hashes \
        "${@:3}" --requirement "$1" --dest "$2" 2>&1) && return
    [[ $log != *"DO NOT MATCH THE HASHES"* ]] ||
        die "PyPI serves something else than $1 pins: do not use it; see whether a proxy changes downloads"
    die "cannot fetch what $1 names from PyPI (${log##*$'\n'}): check the network, or set HTTPS_PROXY or PIP_INDEX_URL"
}

# fetch_source REQUIREMENTS DIRECTORY BACKEND: a source distribution from PyPI, unpacked. pip downloads one only together
# with a build of its metadata, for which it would want the newest build tools. The metadata is in the archive already,
# and this stand-in for its build BACKEND (a module's file) hands it over.
fetch_source() {
    local backend=$2/backend/$3.py
    mkdir -p "$(dirname "$backend")" "$2/download"
    : >"$(dirname "$backend")/__init__.py"
    cat >"$backend" <<-'PYTHON'
		from email.parser import Parser
		from pathlib import Path


		def prepare_metadata_for_build_wheel(directory, config_settings=None):
		    text = Path("PKG-INFO").read_text(encoding="utf-8")
		    fields = Parser().parsestr(text)
		    info = Path(directory, f"{fields['Name']}-{fields['Version']}.dist-info")
		    info.mkdir()
		    info.joinpath("METADATA").write_text(text, encoding="utf-8")
		    return info.name
	PYTHON
    PYTHONPATH=$2/backend fetch "$1" "$2/download" --no-binary :all: --no-build-isolation
    tar --extract --gzip --file "$2"/download/*.tar.gz --directory "$2"
}

# fetch_file URL HASH FILE, as apt fetches its own packages; fails if it cannot be had, or is another.
fetch_file() {
    rm -f "$3"
    /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=2 download-file "$1" "$3" "SHA256:$2" >/dev/null 2>&1
}

# build_for [MACHINE]: for which machine C is compiled, this one if none is named. Sets `machine`, `deps`, where what is built
# for it is kept, and `tools`, what the names of its tools begin with.
build_for() {
    machine=${1:-}
    case $machine in
        '') deps=.deps tools='' ;;
        arm64) deps=.deps/arm64 tools=aarch64-linux-gnu- ;;
        *) die "nothing is built for $machine: name arm64, or nothing for this machine" ;;
    esac
    compiler=${tools:+${tools}gcc}
    compiler=${compiler:-cc}
    has "$compiler" || die "$compiler is missing: run \`scripts/packages.sh ${machine:-build}\`"
}

# archive LIBRARY OBJECT… -- NAME…: a static library of one object, in which nothing is visible but the names.
archive() {
    local library=$1 objects=()
    shift
    while [[ $1 != -- ]]; do objects+=("$1") && shift; done
    shift
    "${tools:-}ld" -r -o "${library%.a}.o" "${objects[@]}"
    "${tools:-}objcopy" "${@/#/--keep-global-symbol=}" "${library%.a}.o"
    "${tools:-}ar" rcsD "$library" "${library%.a}.o"
}

# What npm says went wrong: its code, and the first line of its errors that is a sentence.
npm_cause() {
    local code sentence
    code=$(sed -nE 's/^npm (error|ERR!) code //p' <<<"$1" | head -n 1)
    sentence=$(sed -nE 's/^npm (error|ERR!) *//; /^(code|errno|syscall) |^A complete log|^$/d; p; q' <<<"$1")
    printf '%s%s' "${sentence:-npm says only: ${1##*$'\n'}}" "${code:+ [$code]}"
}

# npm_install SOURCE TARGET: what SOURCE/package-lock.json pins, installed in TARGET, without running anybody's scripts.
npm_install() {
    local source=$1 target=$2 log pause
    # The lock is kept with what it brought, so a new lock means a new installation.
    if [[ -d $target/node_modules ]] && cmp -s "$source/package-lock.json" "$target/installed.json"; then
        return
    fi
    say "Fetching the npm packages of $source"
    mkdir -p "$target"
    cp "$source/package.json" "$source/package-lock.json" "$target/"
    # Hundreds of megabytes: one connection that is cut should not end a build.
    for pause in 5 20 0; do
        if log=$(cd "$target" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error --fetch-retries 1 2>&1); then
            cp "$source/package-lock.json" "$target/installed.json"
            return
        fi
        sleep "$pause"
    done
    die "cannot install what $source/package-lock.json names ($(npm_cause "$log")): check the network, or npm's configuration"
}
