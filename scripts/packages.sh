#!/usr/bin/env bash
# packages.sh build|demo|deb|release|test|zoo|suites|reach|arm64|kubernetes: installs the Debian packages that are missing for that purpose.
# Touches neither the network nor the system when nothing is missing.
source "$(dirname "$0")/lib.sh"

# What is needed, and the package that brings it. A program counts wherever it comes from.
needs() {
    cat <<-'LIST'
		build program cc              gcc
		build program ld              binutils
		build program objcopy         binutils
		build program nasm            nasm
		build file    /usr/include/stdio.h libc6-dev
		build program cmake           cmake
		build program python3         python3
		build module  pip             python3-pip
		build program node            nodejs
		build program npm             npm
		build file    /etc/ssl/certs/ca-certificates.crt ca-certificates
		demo  program nginx           nginx
		demo  program haproxy         haproxy
		deb   program dpkg-scanpackages dpkg-dev
		deb   program rpmbuild        rpm
		deb   program musl-gcc        musl-tools
		deb   program openssl         openssl
		release program debootstrap   debootstrap
		release program gpg           gpg
		release program gpg-agent     gpg-agent
		release program lintian       lintian
		reach file    /usr/include/pcre2.h libpcre2-dev
		reach program make            make
		reach program perl            perl
		reach program debootstrap     debootstrap
		arm64 program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
		arm64 file    /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
		arm64 program qemu-aarch64-static qemu-user-static
		arm64 program mmdebstrap      mmdebstrap
		arm64 program openssl         openssl
		arm64 program curl            curl
		test  program c++             g++
		test  program git             git
		test  program pkg-config      pkg-config
		test  file    /usr/include/openssl/ssl.h libssl-dev
		test  program openssl         openssl
		test  program kill            procps
		test  program script          bsdutils
		test  program musl-gcc        musl-tools
		test  file    /lib/ld-linux.so.2 libc6-i386
		test  program curl            curl
		test  program h2load          nghttp2-client
		test  program softhsm2-util   softhsm2
		test  file    /usr/lib/x86_64-linux-gnu/libsocket_wrapper.so libsocket-wrapper
		test  file    /usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so libengine-pkcs11-openssl
		test  program valgrind        valgrind
		test  program go              golang-go
		test  file    /usr/include/zlib.h zlib1g-dev
		test  file    /usr/lib/python3.11/test/test_zlib.py libpython3.11-testsuite
		test  program perl            perl
		test  program rsync           rsync
		test  program apache2         apache2-bin
		test  program chromium        chromium
		test  program promtool        prometheus
		test  file    /usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py python3-prometheus-client
		test  program systemd-analyze systemd
		test  program dpkg-scanpackages dpkg-dev
		test  program rpmbuild        rpm
		test  program gpg             gpg
		test  program gpg-agent       gpg-agent
		test  program man             man-db
		test  program groff           groff-base
		test  program mandoc          mandoc
		test  program mosquitto       mosquitto
		test  program memcached       memcached
		test  program lighttpd        lighttpd
		test  file    /usr/lib/lighttpd/mod_openssl.so lighttpd-mod-openssl
		test  program stunnel4        stunnel4
		test  program hitch           hitch
		test  program redis-server    redis-server
		test  file    /usr/lib/x86_64-linux-gnu/libjemalloc.so.2 libjemalloc2
		test  program sqlite3         sqlite3
		test  program db_bench        rocksdb-tools
		test  file    /usr/lib/python3/dist-packages/tornado/__init__.py python3-tornado
		test  program ruby            ruby
		test  file    /usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/specifications/nio4r-2.5.8.gemspec ruby-nio4r
		test  program psql            postgresql
		zoo   file    /usr/lib/python3/dist-packages/gevent/__init__.py python3-gevent
		zoo   program gunicorn        gunicorn
		zoo   file    /usr/share/rubygems-integration/all/specifications/async-1.30.3.gemspec ruby-async
		zoo   file    /usr/share/rubygems-integration/all/gems/webrick-1.8.1/lib/webrick.rb ruby-webrick
		zoo   program puma            puma
		zoo   program php             php-cli
		zoo   file    /usr/share/perl5/IO/Socket/SSL.pm libio-socket-ssl-perl
		zoo   program escript         erlang-base
		zoo   file    /usr/lib/erlang/lib/ssl-10.8.7/ebin/ssl.app erlang-ssl
		zoo   program dovecot         dovecot-core
		zoo   file    /usr/lib/dovecot/imap dovecot-imapd
		zoo   program unbound         unbound
		zoo   program named           bind9
		zoo   program dnsdist         dnsdist
		zoo   program socat           socat
		zoo   program nghttpx         nghttp2-proxy
		zoo   program h2o             h2o
		zoo   program traffic_server  trafficserver
		zoo   file    /usr/lib/squid/security_file_certgen squid-openssl
		zoo   program pgbouncer       pgbouncer
		zoo   program turnserver      coturn
		zoo   file    /usr/lib/uwsgi/plugins/http_plugin.so uwsgi-core
		zoo   program nsd             nsd
		zoo   program znc             znc
		zoo   program proftpd         proftpd-core
		zoo   file    /usr/lib/proftpd/mod_tls.so proftpd-mod-crypto
		zoo   program sslscan         sslscan
		zoo   program mariadbd        mariadb-server
		zoo   program sendmail        postfix
		zoo   program openvpn         openvpn
		zoo   file    /usr/lib/nginx/modules/ngx_http_lua_module.so libnginx-mod-http-lua
		zoo   file    /usr/lib/nginx/modules/ngx_http_js_module.so libnginx-mod-http-js
		suites file   /usr/lib/nginx/modules/ngx_http_geoip_module.so libnginx-mod-http-geoip
		suites file   /usr/lib/nginx/modules/ngx_http_image_filter_module.so libnginx-mod-http-image-filter
		suites file   /usr/lib/nginx/modules/ngx_http_perl_module.so libnginx-mod-http-perl
		suites file   /usr/lib/nginx/modules/ngx_http_xslt_filter_module.so libnginx-mod-http-xslt-filter
		suites file   /usr/lib/nginx/modules/ngx_mail_module.so libnginx-mod-mail
		suites file   /usr/lib/nginx/modules/ngx_stream_module.so libnginx-mod-stream
		suites file   /usr/lib/nginx/modules/ngx_stream_geoip_module.so libnginx-mod-stream-geoip
		suites file   /usr/share/perl5/IO/Socket/SSL.pm libio-socket-ssl-perl
		suites program tclsh          tcl
		suites program testssl        testssl.sh
		kubernetes program runc       runc
		kubernetes program ip         iproute2
		kubernetes file /usr/lib/cni/bridge containernetworking-plugins
	LIST
}

main() {
    local purpose=$1 missing
    [[ $(uname -s)/$(uname -m) == Linux/x86_64 ]] || die "hasten runs on 64-bit x86 Linux, and this is $(uname -sm)"
    missing=$(missing_for "$purpose")
    [[ -n $missing ]] || return 0
    has apt-get || die "missing: $missing; only Debian's packages are installed for you: install these by hand"
    as_root true
    say "Installing Debian packages: $missing"
    hold_services
    # shellcheck disable=SC2086 # a list of words
    install_packages $missing
    # shellcheck disable=SC2086
    keep_disabled $missing
    missing=$(missing_for "$purpose")
    [[ -z $missing ]] || die "still missing after the installation: $missing"
}

missing_for() {
    local purposes="build $1"
    [[ $1 != test ]] || purposes="build demo test"
    [[ $1 != release ]] || purposes="build deb release"
    [[ $1 != reach ]] || purposes="build demo test reach"
    [[ $1 != zoo ]] || purposes="build demo test zoo"
    [[ $1 != suites ]] || purposes="build demo test suites"
    needs | while read -r purpose kind what package; do
        [[ " $purposes " == *" $purpose "* ]] || continue
        present "$kind" "$what" || printf '%s\n' "$package"
    done | sort -u | paste -sd ' '
}

present() {
    case $1 in
        # Servers live where an ordinary user's PATH does not look.
        program) PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin type -P "$2" >/dev/null ;;
        file) [[ -e $2 ]] ;;
        module) python3 -c "import $2" 2>/dev/null ;;
    esac
}

install_packages() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3) log
    log=$(as_root "${apt[@]}" update 2>&1 && as_root "${apt[@]}" install --yes --no-install-recommends "$@" 2>&1) && return
    grep '^E:' <<<"$log" >&2 || true
    die "apt-get could not install $*: check the network and /etc/apt/sources.list, then run make again"
}

# Debian starts a server as soon as it is installed, unless a policy says no. Here nobody asked for a server.
policy=/usr/sbin/policy-rc.d
hold_services() {
    if [[ -e $policy ]]; then
        # Somebody else's policy, as in container images: it is back in its place afterwards.
        as_root mv "$policy" "$policy.hasten"
        trap 'as_root mv "$policy.hasten" "$policy"' EXIT
    else
        trap 'as_root rm -f "$policy"' EXIT
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"
}

# Nor should one start at the next boot. Only what has just been installed is touched.
keep_disabled() {
    local package
    for package in "$@"; do
        case $package in
            nginx | haproxy | prometheus | mosquitto | memcached | lighttpd | stunnel4 | hitch | redis-server | postgresql) ;;
            mariadb-server | dovecot-core | unbound | postfix | openvpn) ;;
            h2o | trafficserver | pgbouncer | coturn | nsd | znc) ;;
            nghttp2-proxy) package=nghttpx ;;
            squid-openssl) package=squid ;;
            proftpd-core) package=proftpd ;;
            *) continue ;;
        esac
        as_root deb-systemd-helper disable "$package.service" >/dev/null 2>&1 || true
        as_root update-rc.d "$package" disable >/dev/null 2>&1 || true
        say "$package is installed, but neither started nor enabled as a service"
    done
}

main "$@"
