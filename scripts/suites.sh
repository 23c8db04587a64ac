#!/usr/bin/env bash
# suites.sh [SUITE…]: public test suites with and without the preload libraries. Every verdict must be the stock one.
#
# CPython's tests come with Debian's package. Others are run where a variable names a copy:
#   NGINX_TESTS       nginx's tests (github.com/nginx/nginx-tests)
#   HAPROXY_REGTESTS  a source tree of HAProxy with its reg-tests; VTEST_PROGRAM, or `vtest` in PATH, runs them
#   TLSFUZZER         tlsfuzzer (github.com/tlsfuzzer/tlsfuzzer), with nginx, and as the suite `envoy` with Envoy
# testssl.sh is Debian's; it examines nginx, and Envoy where there is one.
# Redis' tests come from Debian's source of it; they are of two kinds of memory ("eager": as with vm.overcommit_memory=2).
# NGINX_TESTS_ONLY and TLSFUZZER_ONLY may name a part of the files, as in NGINX_TESTS_ONLY='ssl*.t h2*.t'.
#
# Each is run twice stock, then with the libraries as they come ("loaded"), then with every handshake suspended and every
# batch done by the engine ("eager"). What stock runs do not agree on shows nothing and is left out; for what then differs,
# stock has two more runs to show the same. Verdicts and output stay in TARGET/suites.
source "$(dirname "$0")/lib.sh"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
libraries=$target/release/libhasten_tls.so:$target/release/libhasten_gzip.so:$target/release/libhasten_envoy.so
out=$target/suites
every_batch=rsa-2048-sign:1,rsa-3072-sign:1,rsa-4096-sign:1,x25519-derive:1,p-256-derive:1,p-384-derive:1
# Most of the time tests wait.
jobs=$((2 * $(nproc)))
PATH=$PATH:/usr/sbin:/sbin:$(scripts/envoy.sh --path)

# Of CPython's tests, those of TLS, compression and event loops, of what is built on them, and of child processes.
cpython_tests=(ssl asyncio zlib gzip zipfile tarfile selectors httplib httpservers ftplib imaplib poplib urllib2_localnet
    xmlrpc subprocess fork1 hashlib hmac)
# What says nothing without the programs that measure, or takes hours.
tlsfuzzer_without='timing|minerva|lucky13|marvin|bleichenbacher-workaround|invalid-client-hello-w-record-overflow|large-'

main() {
    local suite reason failed=() without=() suites=("$@")
    ((${#suites[@]} > 0)) || suites=(cpython nginx haproxy tlsfuzzer testssl envoy redis)
    # What the caller's shell says about hasten must not reach the tests.
    unset "${!HASTEN_@}" LD_PRELOAD
    for suite in "${suites[@]}"; do
        declare -F "run_$suite" >/dev/null || die "no suite is called $suite: there are cpython, nginx, haproxy, tlsfuzzer, testssl, envoy and redis"
        if reason=$("lacks_$suite"); then
            without+=("$suite: $reason")
        else
            compare "$suite" || failed+=("$suite")
        fi
    done
    ((${#without[@]} == 0)) || printf 'not run: %s\n' "${without[@]}"
    ((${#failed[@]} == 0)) || die "with the libraries something is different in ${failed[*]}: see above, and the files in $out"
}

# compare SUITE: all its runs, and a line about them.
compare() {
    local suite=$1 side bad=0 all=$out/$1
    for side in stock1 stock2 loaded eager; do observe "$suite" "$side"; done
    differing "$all" stock1 stock2 >"$all/moody"
    for side in loaded eager; do
        differing "$all" stock1 "$side" | grep -vxFf "$all/moody" >"$all/$side.differs" || true
    done
    if [[ -s $all/loaded.differs || -s $all/eager.differs ]]; then
        for side in stock3 stock4; do
            observe "$suite" "$side"
            differing "$all" stock1 "$side" >>"$all/moody"
        done
    fi
    for side in loaded eager; do
        grep -vxFf "$all/moody" "$all/$side.differs" >"$all/$side.bad" || true
        [[ ! -s $all/$side.bad ]] || { bad=1 && report "$all" "$side"; }
    done
    summary "$suite" || bad=1
    return "$bad"
}

# differing DIRECTORY SIDE SIDE: what has not the same verdicts on both.
differing() {
    comm -3 "$1/$2/verdicts" "$1/$3/verdicts" | sed 's/^\t//' | cut -f 1 | sort -u
}

report() {
    local name side
    while read -r name; do
        printf '%s\n' "$name"
        for side in stock1 "$2"; do
            printf '  %s: %s\n' "$side" "$(awk -F '\t' -v name="$name" '$1 == name { printf "%s ", $2 }' "$1/$side/verdicts")"
        done
    done <"$1/$2.bad"
}

# A suite shows nothing in which little passes twice, or nothing is accelerated.
summary() {
    local suite=$1 all=$out/$1 verdicts moody done
    verdicts=$(wc -l <"$all/stock1/verdicts")
    moody=$(sort -u "$all/moody" | wc -l)
    done=$(<"$all/eager/done")
    printf '%s: %s verdicts; %s differ with the libraries as they come, %s with everything batched; ' "$suite" "$verdicts" \
        "$(wc -l <"$all/loaded.bad")" "$(wc -l <"$all/eager.bad")"
    printf 'stock runs do not agree on %s; accelerated programs were seen with %s %s\n' "$moody" "$done" "$(counted | cut -d ' ' -f 2-)"
    if ! grep -q $'\tok$' "$all/stock1/verdicts" || ((moody * 20 > verdicts || done == 0)); then
        say "$suite: this shows nothing"
        return 1
    fi
}

# observe SUITE SIDE: one run, as sorted lines of a name, a tab and a verdict.
observe() {
    local here=$out/$1/$2 counter
    rm -rf "$here"
    mkdir -p "$here"
    say "$1, $2"
    count "${programs[$1]}" "$here/done" &
    counter=$!
    "run_$1" "$2" "$here" | sort -u >"$here/verdicts"
    kill "$counter"
    wait "$counter" || true
}

# count PROGRAM FILE: the most that its accelerated processes have counted at any one time.
count() {
    local most=0 now metric
    read -r metric _ < <(counted)
    echo 0 >"$2"
    while sleep 1; do
        now=$("$target/release/hasten" export --once 2>/dev/null |
            awk -v program="program=\"$1\"" -v metric="$metric" '
                $0 ~ "^" metric && index($0, program) { sum += $NF }
                END { print sum + 0 }')
        ((now <= most)) || { most=$now && echo "$most" >"$2"; }
    done
}

# counted: what shows that the suite's programs are accelerated, and what to call it.
counted() {
    case $suite in
        redis) echo 'hasten_tier_bytes.*place="far" far bytes' ;;
        *) echo 'hasten_handshakes_total handshakes' ;;
    esac
}
# Debian's redis-server is a link.
declare -A programs=([cpython]=python3.11 [nginx]=nginx [haproxy]=haproxy [tlsfuzzer]=nginx [testssl]=nginx [envoy]=envoy [redis]=redis-check-rdb)

# settings SIDE: what `env` is told.
settings() {
    [[ $1 != stock* ]] || { printf '%s\n' --unset=LD_PRELOAD && return; }
    if [[ $suite == redis ]]; then
        printf '%s\n' "LD_PRELOAD=$target/release/libhasten_tier.so" HASTEN_TIER=0:0=1:3
        [[ $1 != eager ]] || printf '%s\n' HASTEN_TIER_DECOMMIT=1
    else
        printf '%s\n' "LD_PRELOAD=$libraries"
        [[ $1 != eager ]] || printf '%s\n' HASTEN_TLS_EAGER=1 "HASTEN_TLS_BREAK_EVEN=$every_batch"
    fi
}

# wrapper SIDE PROGRAM FILE: starts the program as this side has it; the tests that talk to it stay as they are.
wrapper() {
    local variables
    mapfile -t variables < <(settings "$1")
    printf '#!/bin/bash\nexec env %s %q "$@"\n' "$(printf '%q ' "${variables[@]}")" "$(type -P "$2")" >"$3"
    chmod +x "$3"
}

# in_parallel FUNCTION: for each line of the input.
in_parallel() {
    export -f "$1"
    # shellcheck disable=SC2016 # for the inner shell
    xargs -P "$jobs" -d '\n' -n 1 bash -c '"$0" "$1"' "$1" || true
}

lacks_cpython() {
    [[ -e /usr/lib/python3.11/test/test_ssl.py ]] || { echo "the package libpython3.11-testsuite is not installed" && return; }
    false
}

run_cpython() {
    local variables
    mapfile -t variables < <(settings "$1")
    mkdir "$2/tmp"
    # They write beside themselves, and into the working directory.
    (cd "$2/tmp" && env "${variables[@]}" TMPDIR="$2/tmp" /usr/bin/python3.11 -m test -j "$jobs" --timeout 600 \
        --junit-xml "$2/junit.xml" "${cpython_tests[@]/#/test_}") >"$2/output" 2>&1 </dev/null || true
    /usr/bin/python3.11 - "$2/junit.xml" <<-'PYTHON'
		import sys
		import xml.etree.ElementTree as tree

		for case in tree.parse(sys.argv[1]).iter("testcase"):
		    verdicts = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
		    print(" ".join(case.get("name").split()), verdicts[0] if verdicts else "ok", sep="\t")
	PYTHON
}

lacks_nginx() {
    [[ -n ${NGINX_TESTS:-} ]] || { echo "NGINX_TESTS does not name a copy of github.com/nginx/nginx-tests" && return; }
    [[ -d $NGINX_TESTS/lib/Test ]] || { echo "NGINX_TESTS=$NGINX_TESTS has no lib/Test" && return; }
    has nginx || { echo "nginx is not installed" && return; }
    false
}

run_nginx() {
    local here=$2
    wrapper "$1" nginx "$here/nginx"
    export TEST_NGINX_BINARY=$here/nginx TEST_NGINX_MODULES=/usr/lib/nginx/modules
    # Files of root's own temporary directories are not for workers of another user.
    ((EUID != 0)) || export TEST_NGINX_GLOBALS="user root; ${TEST_NGINX_GLOBALS:-}"
    export here
    (cd "$NGINX_TESTS" && printf '%s\n' ${NGINX_TESTS_ONLY:-*.t}) | in_parallel run_tap
    (cd "$here" && awk '
        FNR == 1 { file = FILENAME; gsub(/^\.\/|\.tap$/, "", file) }
        /^(not )?ok / {
            verdict = /^not/ ? "not ok" : "ok"
            if (/# (TODO|skip)/) verdict = verdict " " (/# TODO/ ? "todo" : "skip")
            sub(/^(not )?ok /, ""); gsub(/\t/, " ")
            print file " " $0 "\t" verdict
        }
        /^1\.\.|^exit/ { print file "\t" $0 }' ./*.tap)
}

run_tap() {
    cd "$NGINX_TESTS"
    timeout 300 perl "$1" >"$here/$1.tap" 2>"$here/$1.log" </dev/null
    echo "exit $?" >>"$here/$1.tap"
}

lacks_haproxy() {
    [[ -n ${HAPROXY_REGTESTS:-} ]] || { echo "HAPROXY_REGTESTS does not name a source tree of HAProxy" && return; }
    [[ -d $HAPROXY_REGTESTS/reg-tests ]] || { echo "HAPROXY_REGTESTS=$HAPROXY_REGTESTS has no reg-tests" && return; }
    has "${VTEST_PROGRAM:-vtest}" ||
        { echo "vtest (github.com/vtest/VTest) is neither in PATH nor named by VTEST_PROGRAM" && return; }
    has haproxy || { echo "haproxy is not installed" && return; }
    false
}

run_haproxy() {
    wrapper "$1" haproxy "$2/haproxy"
    (cd "$HAPROXY_REGTESTS" && HAPROXY_PROGRAM=$2/haproxy VTEST_PROGRAM=$(type -P "${VTEST_PROGRAM:-vtest}") TMPDIR=/tmp \
        scripts/run-regtests.sh --v --j "$(nproc)") >"$2/output" 2>&1 </dev/null || true
    sed -nE 's/^#\s+top\s+TEST (\S+) (passed|FAILED|skipped).*/\1\t\2/p' "$2/output" | sed 's/\tpassed$/\tok/'
}

lacks_tlsfuzzer() {
    [[ -n ${TLSFUZZER:-} ]] || { echo "TLSFUZZER does not name a copy of github.com/tlsfuzzer/tlsfuzzer" && return; }
    [[ -d $TLSFUZZER/tlsfuzzer ]] || { echo "TLSFUZZER=$TLSFUZZER has no tlsfuzzer" && return; }
    has nginx || { echo "nginx is not installed" && return; }
    false
}

run_tlsfuzzer() { converse_with nginx "$@"; }

lacks_envoy() {
    [[ -d ${TLSFUZZER:-}/tlsfuzzer ]] || { echo "TLSFUZZER does not name a copy of github.com/tlsfuzzer/tlsfuzzer" && return; }
    has envoy || { echo "there is no Envoy: run scripts/envoy.sh" && return; }
    false
}

run_envoy() { converse_with envoy "$@"; }

lacks_testssl() {
    has testssl || { echo "testssl is not installed (Debian: testssl.sh)" && return; }
    has nginx || { echo "nginx is not installed" && return; }
    false
}

# run_testssl SIDE DIRECTORY: each finding is a verdict, so that another finding is a difference.
run_testssl() {
    local name here port=${TESTSSL_PORT:-14434} server servers=(nginx)
    ! has envoy || servers+=(envoy)
    for name in "${servers[@]}"; do
        here=$2/$name
        mkdir "$here"
        "start_$name" "$1" "$here" "$port"
        server=$!
        timeout 900 testssl --quiet --color 0 --warnings off --jsonfile "$here/findings.json" "127.0.0.1:$port" \
            >"$here/output" 2>&1 </dev/null || true
        kill "$server" && wait "$server" || true
        python3 - "$name" "$here/findings.json" <<-'PYTHON'
			import json
			import sys

			# Not what depends on the certificate, which is another one in each run, or on the clock.
			for finding in json.load(open(sys.argv[2])):
			    if not finding["id"].startswith(("cert", "DROWN_hint", "HTTP_clock_skew", "scanTime", "TLS_timestamp")):
			        text = " ".join(finding["finding"].split())
			        print(f"{sys.argv[1]} {finding['id']}: {text}", finding["severity"].lower(), sep="\t")
		PYTHON
    done
}

lacks_redis() {
    has redis-server || { echo "redis-server is not installed" && return; }
    has tclsh || { echo "tclsh is not installed (Debian: tcl)" && return; }
    # Its tests are of its own release.
    [[ $(redis-server --version) == *"v=$redis "* ]] || { echo "redis-server is not $redis, whose tests are pinned" && return; }
    false
}

# run_redis SIDE DIRECTORY: in a tree of its own, whose programs are the installed ones.
run_redis() {
    local tree=$2/tree hash url name
    read -r hash url < <(sed '/^#/d' packaging/redis.txt)
    [[ -f $root/.deps/redis-$redis.tar.gz ]] || fetch_file "$url" "$hash" "$root/.deps/redis-$redis.tar.gz" ||
        die "cannot fetch $url as packaging/redis.txt pins it: check the network"
    mkdir "$tree"
    tar --extract --gzip --strip-components 1 --file "$root/.deps/redis-$redis.tar.gz" --directory "$tree"
    for name in redis-cli redis-benchmark redis-check-aof redis-check-rdb; do ln -s "$(type -P "$name")" "$tree/src/$name"; done
    wrapper "$1" redis-server "$tree/src/redis-server"
    # Commands for tests are off in a server that is installed, and what its own process is called is asked for.
    (cd "$tree" && ./runtest --clients "$jobs" --timeout 1200 ${REDIS_ONLY:+--single $REDIS_ONLY}) >"$2/output" 2>&1 </dev/null || true
    rm -rf "$tree"
    sed -E 's/\x1b\[[0-9;]*m//g' "$2/output" | awk '
        match($0, /^\[(ok|err|skip|ignore|exception)\]: /) {
            verdict = substr($0, 2, RLENGTH - 4); name = substr($0, RLENGTH + 1)
            # How long it took, and what else differs from run to run.
            sub(/ \([0-9]+ ms\)$/, "", name); sub(/ in tests\/.*$/, "", name); gsub(/\t/, " ", name)
            print name "\t" verdict
        }'
}
redis=7.0.15

# converse_with SERVER SIDE DIRECTORY: one server for all conversations. Scripts that can do without RSA key exchange are run
# that way, too.
converse_with() {
    local here=$3 port=${TLSFUZZER_PORT:-14433} packages=$root/.deps/tlsfuzzer server script
    [[ -d $packages ]] || fetch_packages packaging/requirements/tlsfuzzer.txt "$packages"
    "start_$1" "$2" "$here" "$port"
    server=$!
    (cd "$TLSFUZZER/scripts" && printf '%s\n' ${TLSFUZZER_ONLY:-test-*.py}) |
        grep -vE "$tlsfuzzer_without" | while read -r script; do
        script=${script%.py}
        echo "$script"
        ! grep -q "^    print(\" -d  " "$TLSFUZZER/tlsfuzzer/_apps/${script//-/_}.py" || echo "$script -d"
    done >"$here/scripts"
    export here port PYTHONPATH=$TLSFUZZER:$packages PYTHONHASHSEED=0
    in_parallel converse <"$here/scripts"
    kill "$server" && wait "$server" || true
    (cd "$here" && awk '
        FNR == 1 { file = FILENAME; gsub(/^\.\/|\.out$/, "", file); name = "" }
        # What is made up at random has another name each time.
        / \.\.\.$/ { name = $0; sub(/ \.\.\.$/, "", name); gsub(/StructuredRandom\(.*\)/, "random bytes", name) }
        name != "" && (/^OK/ || /^Error while processing/) {
            print file " " name "\t" (/^OK/ ? "ok" : "failed")
            name = ""
        }' ./*.out)
}
# converse "SCRIPT [OPTION]". Which of many conversations a script holds, and in which order, is left to chance: the same
# chance on both sides.
converse() {
    local script=${1% -d} options=()
    [[ $1 == "$script" ]] || options=(-d)
    cd "$TLSFUZZER/scripts"
    timeout 120 python3 -c 'import random, runpy, sys
random.seed(1)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$script.py" -h 127.0.0.1 -p "$port" -n 12 \
        "${options[@]}" >"$here/${1// /}.out" 2>&1 </dev/null
}

# fetch_packages REQUIREMENTS DIRECTORY: Python packages that need no build.
fetch_packages() {
    local scratch wheel
    scratch=$(mktemp -d)
    fetch_wheel "$1" "$scratch"
    for wheel in "$scratch"/*.whl; do python3 -m zipfile -e "$wheel" "$2"; done
    rm -rf "$scratch"
}

# start_nginx SIDE DIRECTORY PORT: in the background, with all that OpenSSL can be talked into.
start_nginx() {
    local here=$2
    certify "$here"
    wrapper "$1" nginx "$here/nginx"
    cat >"$here/nginx.conf" <<-CONF
		daemon off;
		worker_processes 2;
		pid $here/nginx.pid;
		error_log $here/error.log;
		events {}
		http {
		    access_log off;
		    client_body_temp_path $here/temp; proxy_temp_path $here/temp; fastcgi_temp_path $here/temp;
		    uwsgi_temp_path $here/temp; scgi_temp_path $here/temp;
		    server {
		        listen 127.0.0.1:$3 ssl;
		        ssl_certificate $here/chain.pem;
		        ssl_certificate_key $here/key.pem;
		        ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
		        ssl_ciphers ALL:@SECLEVEL=0;
		        ssl_ecdh_curve X25519:P-256:P-384:P-521;
		        ssl_session_cache shared:sessions:1m;
		        location / { return 200 hello; }
		    }
		}
	CONF
    "$here/nginx" -e "$here/error.log" -c "$here/nginx.conf" >"$here/nginx.log" 2>&1 </dev/null &
    await_server nginx "$here" "$3"
}

# start_envoy SIDE DIRECTORY PORT: likewise.
start_envoy() {
    local here=$2
    certify "$here"
    wrapper "$1" envoy "$here/envoy"
    cat >"$here/envoy.yaml" <<-CONF
		static_resources:
		  listeners:
		  - name: tls
		    address: { socket_address: { address: 127.0.0.1, port_value: $3 } }
		    filter_chains:
		    - transport_socket:
		        name: tls
		        typed_config:
		          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
		          common_tls_context:
		            tls_params: { tls_minimum_protocol_version: TLSv1_0, tls_maximum_protocol_version: TLSv1_3,
		              cipher_suites: [ ALL ], ecdh_curves: [ X25519MLKEM768, X25519, P-256, P-384, P-521 ] }
		            tls_certificates:
		            - { certificate_chain: { filename: $here/chain.pem }, private_key: { filename: $here/key.pem } }
		      filters:
		      - name: manager
		        typed_config:
		          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
		          stat_prefix: suite
		          route_config: { virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / },
		            direct_response: { status: 200, body: { inline_string: hello } } } ] } ] }
		          http_filters:
		          - { name: router, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }
	CONF
    "$here/envoy" -c "$here/envoy.yaml" --concurrency 2 --disable-hot-restart -l warn >"$here/envoy.log" 2>&1 </dev/null &
    await_server envoy "$here" "$3"
}

# certify DIRECTORY: a key and its certificate.
certify() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -keyout "$1/key.pem" -out "$1/chain.pem" 2>/dev/null
}

# await_server NAME DIRECTORY PORT
await_server() {
    for _ in {1..100}; do
        ! (: <"/dev/tcp/127.0.0.1/$3") 2>/dev/null || return 0
        sleep 0.1
    done
    die "$1 does not start: see $2/$1.log"
}

main "$@"
exit
