//! Servers that terminate TLS for others. Two of them refuse to run as root, so they get another user.

use crate::animals::{NOTHING, POSTGRESQL};
use crate::cage::Animal;

/// libev, and a process that starts another one.
const NGHTTPX: Animal = Animal {
    name: "nghttpx",
    program: "nghttpx",
    package: "nghttp2-proxy",
    arguments: &[
        "--conf=/dev/null",
        "--frontend=127.0.0.1,{port}",
        "--backend=127.0.0.1,{back}",
        "--workers=2",
        "--no-ocsp",
        "--errorlog-file={dir}/nghttpx.log",
        "{key}",
        "{chain}",
    ],
    ..NOTHING
};

/// A separate event loop per thread; OpenSSL reads and writes through its buffers.
const H2O: Animal = Animal {
    name: "h2o",
    program: "h2o",
    package: "h2o",
    arguments: &["-c", "{dir}/h2o.conf"],
    files: &[(
        "h2o.conf",
        "user: root\nnum-threads: 2\nlisten:\n  host: 127.0.0.1\n  port: {port}\n  ssl:\n    certificate-file: {chain}\n\
         \x20   key-file: {key}\n    ocsp-update-interval: 0\nhosts:\n  default:\n    paths:\n      /:\n\
         \x20       file.dir: {dir}\n",
    )],
    ..NOTHING
};

/// One thread accepts connections and another performs the handshakes; epoll is edge-triggered.
const TRAFFIC_SERVER: Animal = Animal {
    name: "trafficserver",
    program: "traffic_server",
    package: "trafficserver",
    arguments: &["--run-root={dir}/ts.{port}"],
    prepare: include_str!("../../zoo/traffic_server.sh"),
    ..NOTHING
};

/// epoll with handlers that are set again before each wait.
pub(crate) const SQUID: Animal = Animal {
    name: "squid",
    program: "sh",
    package: "squid-openssl",
    arguments: &["{dir}/unprivileged.sh", "{dir}", "squid", "-N", "-f", "{dir}/squid.conf"],
    files: &[
        UNPRIVILEGED,
        (
            "squid.conf",
            "https_port 127.0.0.1:{port} accel defaultsite=localhost tls-cert={chain} tls-key={key}\n\
             cache_peer 127.0.0.1 parent {back} 0 no-query originserver\nhttp_access allow all\ncache deny all\n\
             pid_filename none\naccess_log none\ncache_log {dir}/squid.log\nnetdb_filename none\n\
             visible_hostname localhost\nshutdown_lifetime 0 seconds\n",
        ),
    ],
    ..NOTHING
};

/// libevent, and TLS that begins in the middle of a conversation.
pub(crate) const PGBOUNCER: Animal = Animal {
    name: "pgbouncer",
    program: "sh",
    package: "pgbouncer",
    arguments: &["{dir}/unprivileged.sh", "{dir}", "pgbouncer", "{dir}/pgbouncer.ini"],
    files: &[
        UNPRIVILEGED,
        (
            "pgbouncer.ini",
            "[databases]\n* = host=127.0.0.1 port={back}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = plain\nauth_file = {dir}/users.txt\nclient_tls_sslmode = require\n\
             client_tls_cert_file = {chain}\nclient_tls_key_file = {key}\n",
        ),
        ("users.txt", "\"zoo\" \"zoo\"\n"),
    ],
    // A password is requested.
    answer: b"R\0\0\0\x08\0\0\0\x03",
    ..POSTGRESQL
};

/// Its router for HTTPS: epoll, and handshakes done by `SSL_read` alone.
const UWSGI: Animal = Animal {
    name: "uwsgi",
    program: "uwsgi-core",
    package: "uwsgi-core",
    arguments: &[
        "--plugins=http",
        "--https=127.0.0.1:{port},{chain},{key}",
        "--http-to=127.0.0.1:{back}",
        "--http-processes=1",
        "--master",
        "--die-on-term",
    ],
    ..NOTHING
};

pub(crate) const UNPRIVILEGED: (&str, &str) = ("unprivileged.sh", include_str!("../../zoo/unprivileged.sh"));

zoo! {
    #[ignore = "a part of `make zoo`"]
    nghttpx => NGHTTPX;
    #[ignore = "a part of `make zoo`"]
    h2o => H2O;
    #[ignore = "a part of `make zoo`"]
    traffic_server => TRAFFIC_SERVER;
    #[ignore = "a part of `make zoo`"]
    squid => SQUID;
    #[ignore = "a part of `make zoo`"]
    pgbouncer => PGBOUNCER;
    #[ignore = "a part of `make zoo`"]
    uwsgi => UWSGI;
}
