#!/usr/bin/env bash
# arm64.sh TARGET: builds the command and the preload libraries of TLS and gzip for arm64, in TARGET/arm64, and tests them without
# such a machine: their unit tests, and `hasten run` with Debian 13's nginx of arm64, all by qemu's emulation of a process. That
# shows what works, and nothing of speed. The counters are read by TARGET/release/hasten.
source "$(dirname "$0")/lib.sh"
build_for arm64

PATH=$PATH:$HOME/.cargo/bin
for name in "${!HASTEN_@}"; do unset "$name"; done
unset LD_PRELOAD
hasten=$1/release/hasten
target=$1/arm64
triple=aarch64-unknown-linux-gnu
system=$PWD/$deps/root
libraries=$(realpath --canonicalize-missing "$target/$triple/release")
emulator=(qemu-aarch64-static -L "$system")
# What the system's own loader must have: as scripts/floor.sh has it.
floor=2.17

main() {
    prepare
    build
    unit_tests
    scratch=$(mktemp -d)
    trap 'end' EXIT
    command_itself
    serve
}

prepare() {
    local mirror
    [[ -d $(rustc --print target-libdir --target "$triple") ]] || rustup target add "$triple" ||
        die "the Rust target $triple is missing: run \`rustup target add $triple\`"
    for name in floor isal libdeflate; do "scripts/$name.sh" "$machine"; done
    [[ ! -f $deps/ready ]] || return 0
    # Its packages are unpacked only: their scripts change nothing that matters here.
    mirror=$(apt-cache policy | sed -n 's|^ *[0-9-]* \(https*://[^ ]*\) [^ ]*/main .*|\1|p' | grep -v security | head -1)
    say "Unpacking Debian 13's nginx of arm64"
    rm -rf "$system"
    mmdebstrap --architectures=arm64 --variant=extract --include=nginx-light,curl trixie "$system" "${mirror:?}" >"$deps/log" 2>&1 ||
        die "Debian 13 cannot be unpacked in $system: see $deps/log"
    ln -sfn usr/lib "$system/lib"
    touch "$deps/ready"
}

# with_arm64 COMMAND…: cargo, for arm64.
with_arm64() {
    env BUILD_FLOOR="$PWD/$deps/floor" BUILD_ISAL="$PWD/$deps/isal" BUILD_LIBDEFLATE="$PWD/$deps/libdeflate" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER="$compiler" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${emulator[*]}" \
        cargo "$1" --locked --target "$triple" --target-dir "$target" "${@:2}"
}

build() {
    local library wanted
    say "Building the command and the libraries for arm64"
    # The command calls it as the baseline of `hasten bench gzip`.
    ln -sfn "$system/usr/lib/aarch64-linux-gnu/libz.so.1" "$deps/floor/libz.so.1"
    with_arm64 build --release --package hasten --package hasten-tls --package hasten-gzip
    scripts/shim.sh "$target/$triple" arm64
    for library in "$libraries"/{hasten,libhasten_{tls,gzip}.so}; do
        wanted=$("${tools}readelf" --wide --version-info "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
        [[ $(printf '%s\n' "GLIBC_$floor" "$wanted" | sort -V | tail -1) == "GLIBC_$floor" ]] ||
            die "$library asks for $wanted: it is to load with glibc $floor; see what refers to it with \`${tools}readelf --dyn-syms\`"
        ! "${tools}readelf" --wide --segments "$library" | grep -q 'GNU_STACK.*RWE' || die "$library wants a stack that can be executed"
    done
}

# Those of the parts that have code for arm64 of their own.
unit_tests() {
    say "Unit tests, emulated"
    # The emulator does not know sockets' cookies (SO_COOKIE), by which two of the tests tell them apart.
    with_arm64 test --package hasten-hook --package hasten-tls --lib -- --skip sockets_are_told_apart --skip follows_a_descriptor
    # ISA-L for arm64 writes other bytes, so that its output of this one's text calls for no rival.
    with_arm64 test --release --package hasten-deflate --lib -- --skip what_a_rival_does_wrong
}

# What it says of such a machine, and of a program there.
command_itself() {
    local verdict
    say "The command, emulated"
    "${emulator[@]}" "$libraries/hasten" --version
    expect "no gain is claimed on arm64" "$("${emulator[@]}" "$libraries/hasten" check)"
    expect "multibuffer.*not here.*graviola.*passed" "$("${emulator[@]}" "$libraries/hasten" selftest | tr '\n' ' ')"
    expect "x86-64 only" "$("${emulator[@]}" "$libraries/hasten" snapshot $$ 2>&1 || true)"
    if ! in_system /usr/sbin/nginx -v 2>/dev/null; then
        say "Without \`hasten run\`: this kernel gives no namespace an emulator of its own, as Linux does since 6.7"
        return
    fi
    verdict=$(in_system /opt/hasten check --json -- nginx)
    python3 -c '
import json, sys

accelerators = {one["name"]: one for one in json.load(sys.stdin)["program"]["accelerators"]}
decisions = {name: accelerators[name]["decision"] for name in ("tls", "gzip")}
wrong = decisions != {"tls": "apply", "gzip": "apply"}
sys.exit(f"error: hasten check says {decisions}" if wrong else 0)' <<<"$verdict"
    expect "OpenSSL 3.5" "$verdict"
    expect "/opt/libhasten.so" "$(in_system /opt/hasten run --dry-run -- nginx)"
    cp "$(type -P true)" "$scratch/foreign"
    expect "not built for arm64" "$(in_system /opt/hasten check -- "$scratch/foreign" 2>&1)"
}

# expect PATTERN TEXT
expect() { grep -q -- "$1" <<<"$2" || die "hasten does not say \"$1\", but: $2"; }

# in_system COMMAND…: as on such a machine. The kernel knows the emulator in a namespace of our own only, so that nobody else's
# programs meet it; and nobody is root there, so that nginx keeps its user.
in_system() {
    # shellcheck disable=SC2016 # its own variables
    unshare --user --map-root-user --mount bash -euc '
        system=$1 libraries=$2 scratch=$3 emulator=$4
        shift 4
        mkdir -p "$system"/{dev,proc,opt} "$system$scratch"
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
        printf ":arm64:M::%s:%s:%s:F" "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00" \
            "\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff" "$emulator" \
            >/proc/sys/fs/binfmt_misc/register
        mount --rbind /proc "$system/proc"
        mount --rbind /dev "$system/dev"
        mount --bind "$libraries" "$system/opt"
        mount --bind "$scratch" "$system$scratch"
        exec unshare --user --map-user=1000 --map-group=1000 --root="$system" --wd=/ -- "$@"' \
        in-system "$system" "$libraries" "$scratch" "$(type -P "${emulator[0]}")" "$@"
}

serve() {
    [[ -x $hasten ]] || die "$hasten is missing, which reads the counters: run \`make build\`"
    configure
    # A worker is to live until its counters are read.
    if in_system /usr/sbin/nginx -v 2>/dev/null; then
        say "Debian 13's nginx of arm64, emulated, by \`hasten run\`"
        in_system /opt/hasten run -- /usr/sbin/nginx -p "$scratch" -c "$scratch/nginx.conf" 2>"$scratch/stderr" &
    else
        say "Debian 13's nginx of arm64, emulated, with both libraries"
        "${emulator[@]}" -E LD_PRELOAD="$libraries/libhasten_tls.so $libraries/libhasten_gzip.so" "$system/usr/sbin/nginx" \
            -p "$scratch" -c "$scratch/nginx.conf" 2>"$scratch/stderr" &
    fi
    for _ in {1..600}; do [[ ! -S $scratch/rsa-2048 || ! -s $scratch/pid ]] || break; sleep 0.1; done
    [[ -s $scratch/pid ]] || die "nginx of arm64 does not start: $(tail -n 3 "$scratch/stderr")"
    server=$(cat "$scratch/pid")
    handshakes
    reload
    counters
    say "All of it works; nothing was measured"
}

end() {
    [[ -z ${server:-} ]] || { kill "$server" && wait; } 2>/dev/null || true
    rm -rf "$scratch"
    rmdir "$system$scratch" 2>/dev/null || true
}

# A server for each certificate, by a socket of its own: no port can be taken by somebody else.
configure() {
    local name key servers=
    mkdir "$scratch/www"
    # Words of letters: text with many numbers goes to another engine.
    python3 -c '
import random, string

random.seed(1)
words = ["".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))) for _ in range(2000)]
print(*random.choices(words, k=60000))' >"$scratch/www/text.txt"
    for name in p-256 p-384 rsa-2048; do
        case $name in
            rsa-*) key=(-newkey "rsa:${name#rsa-}") ;;
            *) key=(-newkey ec -pkeyopt "ec_paramgen_curve:${name^^}") ;;
        esac
        openssl req -x509 "${key[@]}" -nodes -keyout "$scratch/$name.key" -out "$scratch/$name.pem" -subj /CN=localhost \
            -addext subjectAltName=DNS:localhost 2>/dev/null
        servers+="server { listen unix:$scratch/$name ssl; ssl_certificate $name.pem; ssl_certificate_key $name.key; }"
    done
    cat >"$scratch/nginx.conf" <<-CONFIGURATION
		daemon off; worker_processes 1; pid $scratch/pid; error_log $scratch/error.log notice; user $(id -un) $(id -gn);
		events {}
		http {
		    access_log off; root $scratch/www; types { text/plain txt; }
		    gzip on; gzip_types text/plain; gzip_comp_level 1; keepalive_timeout 0;
		    client_body_temp_path $scratch/t1; proxy_temp_path $scratch/t2; fastcgi_temp_path $scratch/t3;
		    uwsgi_temp_path $scratch/t4; scgi_temp_path $scratch/t5;
		    $servers
		}
	CONFIGURATION
}

# fetch_body CERTIFICATE CURL…: the text, compressed on its way, by a connection that is verified.
fetch_body() {
    local certificate=$1
    "${@:2}" --silent --show-error --max-time 60 --compressed --cacert "$scratch/$certificate.pem" --unix-socket "$scratch/$certificate" \
        --output "$scratch/body" https://localhost/text.txt && cmp "$scratch/body" "$scratch/www/text.txt" ||
        die "nginx of arm64 with the libraries does not serve by $certificate: see what it says: $(tail -3 "$scratch/error.log" "$scratch/stderr")"
}

handshakes() {
    local certificate protocol
    for certificate in p-256 p-384 rsa-2048; do
        for protocol in "--tlsv1.3" "--tlsv1.2 --tls-max 1.2"; do
            # shellcheck disable=SC2086 # words
            for _ in {1..20}; do fetch_body "$certificate" curl $protocol; done
        done
    done
    # Only its client has the post-quantum group.
    for _ in {1..5}; do fetch_body p-256 "${emulator[@]}" "$system/usr/bin/curl" --curves X25519MLKEM768; done
}

# Three times, while clients come.
reload() {
    local at
    for at in {1..30}; do
        ((at % 10 != 5)) || kill -HUP "$(cat "$scratch/pid")"
        fetch_body p-256 curl
    done
    # The new worker has what the counters are to show, too.
    handshakes
}

counters() {
    "$hasten" top --json | python3 -c '
import json, sys

server = int(sys.argv[1])
pages = {page["accelerator"]: page for page in json.load(sys.stdin)["programs"]
         if any(process["pid"] == server for process in page["processes"])}
event = lambda page, name: next(event["total"] for event in pages[page]["events"] if event["name"] == name)
single = {one["name"]: one["total"]["single"] for one in pages["tls"]["algorithms"]}
seen = {name: single[name] for name in ("p-256-sign", "p-384-sign", "x25519-keygen", "x25519-derive")}
seen |= {name: event("tls", name) for name in ("hkdf-direct", "mac-direct", "fetch-cached", "hybrid-exchange")}
seen["deflate-isal-bytes"] = event("gzip", "deflate-isal-bytes")
print(*(f"  {name} {count}" for name, count in seen.items()), sep="\n")
failed = sum(one["total"]["failed"] for one in pages["tls"]["algorithms"])
missing = [name for name, count in seen.items() if not count]
sys.exit(f"error: not accelerated: {missing}" if missing else f"error: {failed} operations failed" if failed else 0)
' "$server"
}

main
