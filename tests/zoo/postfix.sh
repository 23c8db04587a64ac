# A queue of its own, and as many services as it takes to talk to it.
etc={dir}/postfix.{port}
queue={dir}/queue.{port}
mkdir -p "$etc" "$queue/pid"
for folder in data private public active incoming deferred maildrop; do
    mkdir -p "$queue/$folder"
    chown postfix "$queue/$folder"
done
cat >"$etc/main.cf" <<END
compatibility_level = 3.6
queue_directory = $queue
data_directory = $queue/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
maillog_file = $queue/log
maillog_file_prefixes = /
# Its processes get no other variables.
import_environment = MAIL_CONFIG LD_PRELOAD HASTEN_TLS_EAGER HASTEN_TLS_BREAK_EVEN
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = localhost
alias_maps =
alias_database =
local_recipient_maps =
smtpd_tls_chain_files = {key}, {chain}
smtpd_tls_security_level = may
smtpd_client_connection_count_limit = 0
END
cat >"$etc/master.cf" <<END
127.0.0.1:{port} inet n - n - - smtpd
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
END
