#!/bin/sh
# apache.sh FILE: Apache packing a page with mod_deflate, over plain HTTP and over TLS, before and after a graceful
# restart. What it prints depends on contents alone, except for the last line: the packed bytes.
set -eu

openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 1 -subj /CN=localhost 2>/dev/null
mkdir www
cp "$1" www/page.html
head -c 900 "$1" >www/small.html
: >www/empty.html
modules=/usr/lib/apache2/modules

configure() {
    {
        for module in mpm_event authz_core filter deflate mime ssl; do
            echo "LoadModule ${module}_module $modules/mod_$module.so"
        done
        cat <<-CONFIGURATION
			ServerRoot $PWD
			ServerName localhost
			Listen 127.0.0.1:$plain
			Listen 127.0.0.1:$tls
			PidFile pid
			ErrorLog log
			DefaultRuntimeDir $PWD
			Mutex pthread
			TypesConfig /etc/mime.types
			DocumentRoot $PWD/www
			User www-data
			Group www-data
			AddOutputFilterByType DEFLATE text/html
			SSLSessionCache none
			<VirtualHost 127.0.0.1:$tls>
			SSLEngine on
			SSLCertificateFile certificate.pem
			SSLCertificateKeyFile key.pem
			</VirtualHost>
		CONFIGURATION
    } >apache.conf
}

answers() {
    curl --silent --output /dev/null --max-time 5 "http://127.0.0.1:$plain/empty.html"
}

# A port that was free a moment ago may be taken now.
start() {
    for attempt in 1 2 3 4 5; do
        ports=$(python3 -c 'import socket; s = [socket.create_server(("127.0.0.1", 0)) for _ in "ab"]; print(*[x.getsockname()[1] for x in s])')
        plain=${ports% *} tls=${ports#* }
        configure
        apache2 -f "$PWD/apache.conf" -DFOREGROUND 2>console &
        server=$!
        while kill -0 $server 2>/dev/null; do
            answers && return
            sleep 0.1
        done
    done
    cat console log >&2
    exit 1
}

look() {
    for page in page small empty; do
        for site in "http://127.0.0.1:$plain" "https://127.0.0.1:$tls"; do
            curl --silent --show-error --insecure --fail --compressed --max-time 60 "$site/$page.html" | sha256sum
        done
    done
}

chmod 755 . www
start
trap 'kill $server 2>/dev/null || :' EXIT
look
apache2 -f "$PWD/apache.conf" -k graceful 2>>console
look
curl --silent --insecure --head --header 'Accept-Encoding: gzip' "https://127.0.0.1:$tls/page.html" | grep -i '^content-encoding'
grep -c 'exit signal' log || :
curl --silent --header 'Accept-Encoding: gzip' "http://127.0.0.1:$plain/page.html" | sha256sum
kill $server
wait $server || :
