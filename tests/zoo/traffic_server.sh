# A tree of its own, with as much configuration as it takes to serve what is behind it.
tree={dir}/ts.{port}
mkdir -p "$tree"
cp /etc/trafficserver/ip_allow.yaml /etc/trafficserver/logging.yaml "$tree"
for folder in sysconf data localstate runtime log cache; do
    echo "${folder}dir: $tree"
done >"$tree/runroot.yaml"
cat >>"$tree/runroot.yaml" <<END
prefix: /usr
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/sbin
libexecdir: /usr/lib/trafficserver/modules
END
cat >"$tree/records.config" <<END
CONFIG proxy.config.http.server_ports STRING {port}:ssl:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 2
CONFIG proxy.config.http.cache.http INT 0
CONFIG proxy.config.log.logging_enabled INT 0
END
echo "dest_ip=* ssl_cert_name={chain} ssl_key_name={key}" >"$tree/ssl_multicert.config"
echo "$tree 16M" >"$tree/storage.config"
echo "map / http://127.0.0.1:{back}/" >"$tree/remap.config"
