#!/usr/bin/env bash
# musl-image.sh: a root directory as of Alpine, in .deps/musl-image, in which tests run the libraries for musl: musl, Alpine's
# OpenSSL, and zlib and nginx built here from Debian's sources. Without the network it is left out.
source "$(dirname "$0")/lib.sh"

list=packaging/musl.txt
pin=packaging/requirements/musl-openssl.txt
target=.deps/musl-image
# The musl with which nginx runs; another beside it, for tests.
release=1.2.5
other=1.2.4

main() {
    local inputs
    inputs=$(sha256sum "$list" "$pin" scripts/musl-image.sh)
    [[ $(cat "$target/inputs.txt" 2>/dev/null) == "$inputs" ]] && return
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    tree=$scratch/tree
    mkdir -p "$tree"/{bin,etc,lib,tmp,usr/lib,usr/sbin,opt} "$scratch/packages"
    say "Fetching parts of an image of musl"
    fetch_parts || { say "Without the image of musl: cannot fetch what $list names, or it is not what it pins" && return; }
    # It says itself why it cannot.
    (fetch "$pin" "$scratch/wheel" --only-binary :all: --platform musllinux_1_2_x86_64 --python-version 3.12 --implementation cp) || return 0
    say "Building nginx for musl"
    libc "$release" "$tree/lib"
    mkdir "$tree/opt/musl-$other"
    libc "$other" "$tree/opt/musl-$other"
    programs
    openssl
    zlib
    nginx
    printf '%s\n' "$inputs" >"$tree/inputs.txt"
    rm -rf "$target"
    mv "$tree" "$target"
}

fetch_parts() {
    local name hash url
    while read -r name hash url; do
        fetch_file "$url" "$hash" "$scratch/packages/$name" || return
    done < <(sed '/^#/d' "$list")
}

# libc RELEASE FOLDER: the loader and C library, one file under two names.
libc() {
    dpkg-deb --extract "$scratch/packages/musl-$1" "$scratch/musl-$1"
    find "$scratch/musl-$1" -name libc.so -exec cp {} "$2/ld-musl-x86_64.so.1" \;
    ln -s ld-musl-x86_64.so.1 "$2/libc.musl-x86_64.so.1"
}

# As on Alpine, but static: programs that a library cannot be preloaded into.
programs() {
    local program
    dpkg-deb --extract "$scratch/packages/busybox" "$scratch/busybox"
    cp "$scratch"/busybox/usr/bin/busybox "$tree/bin/busybox"
    for program in sh env true sleep cat kill; do ln -s busybox "$tree/bin/$program"; done
}

# The wheel has given the libraries other names, in which there is a part of their sums.
openssl() {
    python3 -m zipfile -e "$scratch"/wheel/*.whl "$scratch/wheel"
    python3 - "$scratch"/wheel/*.libs "$tree/usr/lib" <<-'PYTHON'
		import re
		import sys
		from pathlib import Path

		source, target = map(Path, sys.argv[1:])
		for name in "libcrypto", "libssl":
		    (library,) = source.glob(f"{name}-*.so.3")
		    renamed = re.sub(
		        rb"(lib(?:crypto|ssl))-[0-9a-f]{8}(\.so\.3\0)", rb"\1\2" + bytes(9), library.read_bytes()
		    )
		    (target / f"{name}.so.3").write_bytes(renamed)
	PYTHON
    ln -s libssl.so.3 "$tree/usr/lib/libssl.so"
    ln -s libcrypto.so.3 "$tree/usr/lib/libcrypto.so"
}

zlib() {
    mkdir "$scratch/zlib"
    tar --extract --gzip --file "$scratch/packages/zlib" --directory "$scratch/zlib" --strip-components 1
    (cd "$scratch/zlib" && musl-gcc -O2 -fPIC -shared -DHAVE_UNISTD_H -w -Wl,-soname,libz.so.1 -o "$tree/usr/lib/libz.so.1" ./*.c)
    ln -s libz.so.1 "$tree/usr/lib/libz.so"
}

nginx() {
    local headers=$scratch/headers
    mkdir -p "$scratch/nginx" "$headers/openssl"
    # The interface is that of 3.0; nothing else of this machine's is used.
    ln -s /usr/include/openssl/* /usr/include/x86_64-linux-gnu/openssl/* "$headers/openssl/"
    cp "$scratch"/zlib/{zlib,zconf}.h "$headers/"
    # Debian's musl is without crypt(3): here no password is right.
    echo '#define crypt(key, salt) ((char *)0)' >"$headers/crypt.h"
    tar --extract --gzip --file "$scratch/packages/nginx" --directory "$scratch/nginx" --strip-components 1
    (
        cd "$scratch/nginx"
        CC=musl-gcc ./configure --with-cc-opt="-O2 -fPIE -I$headers" \
            --with-ld-opt="-pie -L$tree/usr/lib -Wl,--allow-shlib-undefined,-z,now,-z,relro" \
            --prefix=/var/lib/nginx --sbin-path=/usr/sbin/nginx --conf-path=/etc/nginx.conf --pid-path=/nginx.pid \
            --error-log-path=/var/log/nginx/error.log --without-http_rewrite_module --without-pcre \
            --with-http_ssl_module --with-http_v2_module --with-http_gunzip_module --with-http_gzip_static_module --with-threads
        make -j "$(nproc)"
    ) >"$scratch/nginx.log" 2>&1 || die "cannot build nginx for musl: $(tail -n 1 "$scratch/nginx.log")"
    cp "$scratch/nginx/objs/nginx" "$tree/usr/sbin/nginx"
}

main
