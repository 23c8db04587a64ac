# postgresql.sh DIRECTORY PORT CHAIN KEY: a server with an empty cluster, which root must not run.
set -e
directory=$1/cluster.$2
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
preload=$LD_PRELOAD
unset LD_PRELOAD
mkdir -m 700 "$directory"
as=
if [ "$(id -u)" = 0 ]; then
    chown postgres "$directory"
    as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
install -m 600 "$4" "$directory.key"
[ "$(id -u)" != 0 ] || chown postgres "$directory.key"
$as "$bin/initdb" --username=zoo --auth=trust --no-sync "$directory/data" >/dev/null
exec $as env LD_PRELOAD="$preload" "$bin/postgres" -D "$directory/data" -p "$2" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c fsync=off -c ssl=on -c ssl_cert_file="$3" -c ssl_key_file="$directory.key"
