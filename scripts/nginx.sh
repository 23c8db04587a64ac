#!/usr/bin/env bash
# nginx.sh: builds the nginx that packaging/nginx.txt pins with the libssl of OpenSSL 4.0 (scripts/openssl.sh), in .deps/nginx.
# A server that was built for 3.0 runs with any 3.x, but 4.0 has another soname.
source "$(dirname "$0")/lib.sh"

pin=packaging/nginx.txt
library=$root/.deps/openssl/4.0
target=.deps/nginx

main() {
    local inputs hash url
    inputs=$(sha256sum "$pin" scripts/nginx.sh "$library/inputs.txt")
    [[ $(cat "$target/inputs.txt" 2>/dev/null) != "$inputs" ]] || return 0
    read -r hash url < <(sed '/^#/d' "$pin")
    say "Building nginx with OpenSSL 4.0 (${url##*/})"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    fetch_file "$url" "$hash" "$scratch/source.tar.gz" ||
        die "cannot fetch $url as $pin pins it: check the network; if the archive has another release now, pin that"
    tar --extract --gzip --file "$scratch/source.tar.gz" --directory "$scratch" --strip-components 1
    (compile) >"$scratch/log" 2>&1 || die "nginx does not build with OpenSSL 4.0: $(tail -n 3 "$scratch/log")"
    install -D -m 755 "$scratch/objs/nginx" "$target/nginx"
    printf '%s\n' "$inputs" >"$target/inputs.txt"
}

# Without OCSP stapling, which looks into a structure that 4.0 has made opaque. 4.0 also returns more const pointers than
# this source has variables for: warnings.
compile() {
    cd "$scratch"
    ./configure --with-http_ssl_module --without-http_gzip_module \
        --with-cc-opt="-I$library/include -DOPENSSL_NO_OCSP -Wno-error=discarded-qualifiers" --with-ld-opt="-L$library/lib"
    nice -n 5 make -j "$(nproc)"
}

main
