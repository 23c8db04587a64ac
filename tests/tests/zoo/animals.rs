//! Servers of the distribution, by the dozen.

use crate::cage::{self, Animal, HTTP, PYTHON};

pub(crate) const NOTHING: Animal = Animal {
    name: "",
    program: "",
    package: "",
    arguments: &[],
    files: &[],
    prepare: "",
    variables: &[],
    preamble: &[],
    question: HTTP.0,
    answer: HTTP.1,
    visits: 240,
};

pub(crate) const MOSQUITTO: Animal = Animal {
    name: "mosquitto",
    program: "mosquitto",
    package: "mosquitto",
    arguments: &["-c", "{dir}/mosquitto.conf"],
    files: &[(
        "mosquitto.conf",
        "listener {port} 127.0.0.1\ncertfile {chain}\nkeyfile {key}\nallow_anonymous true\nuser root\n",
    )],
    // CONNECT, without a client name, and CONNACK.
    question: b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0",
    answer: b"\x20\x02\0\0",
    ..NOTHING
};

const MEMCACHED: Animal = Animal {
    name: "memcached",
    program: "memcached",
    package: "memcached",
    arguments: &[
        "-u",
        "root",
        "-l",
        "127.0.0.1",
        "-p",
        "{port}",
        "-Z",
        "-o",
        "ssl_chain_cert={chain},ssl_key={key}",
    ],
    question: b"version\r\n",
    answer: b"VERSION",
    ..NOTHING
};

pub(crate) const LIGHTTPD: Animal = Animal {
    name: "lighttpd",
    program: "lighttpd",
    package: "lighttpd",
    arguments: &["-D", "-f", "{dir}/lighttpd.conf"],
    files: &[(
        "lighttpd.conf",
        "server.document-root = \"{dir}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
         server.modules = (\"mod_openssl\")\nssl.engine = \"enable\"\nssl.pemfile = \"{chain}\"\n\
         ssl.privkey = \"{key}\"\n",
    )],
    ..NOTHING
};

const STUNNEL: Animal = Animal {
    name: "stunnel",
    program: "stunnel4",
    package: "stunnel4",
    arguments: &["{dir}/stunnel.conf"],
    files: &[(
        "stunnel.conf",
        "foreground = yes\npid =\n[zoo]\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{back}\n\
         cert = {chain}\nkey = {key}\n",
    )],
    ..NOTHING
};

const HITCH: Animal = Animal {
    name: "hitch",
    program: "hitch",
    package: "hitch",
    arguments: &["--config={dir}/hitch.conf"],
    files: &[(
        "hitch.conf",
        "frontend = \"[127.0.0.1]:{port}\"\nbackend = \"[127.0.0.1]:{back}\"\npem-file = \"{bundle}\"\n\
         workers = 2\nuser = \"root\"\n",
    )],
    ..NOTHING
};

const REDIS: Animal = Animal {
    name: "redis",
    program: "redis-server",
    package: "redis-server",
    arguments: &[
        "--port",
        "0",
        "--tls-port",
        "{port}",
        "--tls-cert-file",
        "{chain}",
        "--tls-key-file",
        "{key}",
        "--tls-ca-cert-file",
        "{root}",
        "--tls-auth-clients",
        "no",
        "--save",
        "",
        "--dir",
        "{dir}",
    ],
    question: b"PING\r\n",
    answer: b"+PONG",
    ..NOTHING
};

const TORNADO: Animal = Animal {
    name: "tornado",
    program: PYTHON,
    package: "python3-tornado",
    arguments: &["{dir}/server.py", "{port}", "{chain}", "{key}"],
    files: &[("server.py", include_str!("../../zoo/tornado.py"))],
    ..NOTHING
};

const NIO4R: Animal = Animal {
    name: "nio4r",
    program: "ruby",
    package: "ruby-nio4r",
    arguments: &["{dir}/server.rb", "{port}", "{chain}", "{key}"],
    files: &[("server.rb", include_str!("../../zoo/nio4r.rb"))],
    ..NOTHING
};

pub(crate) const POSTGRESQL: Animal = Animal {
    name: "postgresql",
    program: "sh",
    package: "postgresql",
    arguments: &["{dir}/start.sh", "{dir}", "{port}", "{chain}", "{key}"],
    files: &[("start.sh", include_str!("../../zoo/postgresql.sh"))],
    preamble: &[(b"\0\0\0\x08\x04\xd2\x16\x2f", b"S")],
    // A startup packet for the user "zoo", and the reply that nobody has to authenticate.
    question: b"\0\0\0\x12\0\x03\0\0user\0zoo\0\0",
    answer: b"R\0\0\0\x08\0\0\0\0",
    ..NOTHING
};

const HTTP_SERVER: Animal = Animal {
    name: "http.server",
    program: PYTHON,
    package: "python3",
    arguments: &["{dir}/http_server.py", "{port}", "{chain}", "{key}"],
    files: &[("http_server.py", include_str!("../../zoo/http_server.py"))],
    ..NOTHING
};

const ASYNCIO: Animal = Animal {
    name: "asyncio",
    program: PYTHON,
    package: "python3",
    arguments: &["{dir}/asyncio_server.py", "{port}", "{chain}", "{key}"],
    files: &[("asyncio_server.py", include_str!("../../zoo/asyncio_server.py"))],
    ..NOTHING
};

const WEBRICK: Animal = Animal {
    name: "webrick",
    program: "ruby",
    package: "ruby-webrick",
    arguments: &["{dir}/webrick.rb", "{port}", "{chain}", "{key}"],
    files: &[("webrick.rb", include_str!("../../zoo/webrick.rb"))],
    ..NOTHING
};

const PHP: Animal = Animal {
    name: "php",
    program: cage::PHP,
    package: "php-cli",
    arguments: &["{dir}/server.php", "{port}", "{chain}", "{key}"],
    files: &[("server.php", include_str!("../../zoo/server.php"))],
    // One connection at a time.
    visits: 64,
    ..NOTHING
};

const PERL: Animal = Animal {
    name: "perl",
    program: "/usr/bin/perl",
    package: "libio-socket-ssl-perl",
    arguments: &["{dir}/server.pl", "{port}", "{chain}", "{key}"],
    files: &[("server.pl", include_str!("../../zoo/server.pl"))],
    // One connection at a time.
    visits: 64,
    ..NOTHING
};

const NODE: Animal = Animal {
    name: "node",
    program: "/usr/bin/node",
    package: "nodejs",
    arguments: &["{dir}/server.js", "{port}", "{chain}", "{key}"],
    files: &[("server.js", include_str!("../../zoo/server.js"))],
    ..NOTHING
};

const ERLANG: Animal = Animal {
    name: "erlang",
    program: "escript",
    package: "erlang-ssl",
    arguments: &["{dir}/server.escript", "{port}", "{chain}", "{key}"],
    files: &[("server.escript", include_str!("../../zoo/server.escript"))],
    ..NOTHING
};

const APACHE: Animal = Animal {
    name: "apache",
    program: "apache2",
    package: "apache2-bin",
    arguments: &["-X", "-f", "{dir}/apache.conf"],
    files: &[(
        "apache.conf",
        "ServerRoot {dir}\nServerName localhost\nPidFile apache.pid\nErrorLog apache.log\nListen 127.0.0.1:{port}\n\
         LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
         LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n\
         DocumentRoot {dir}\nSSLEngine on\nSSLCertificateFile {chain}\nSSLCertificateKeyFile {key}\n",
    )],
    ..NOTHING
};

const GUNICORN: Animal = Animal {
    name: "gunicorn",
    program: "gunicorn",
    package: "gunicorn",
    arguments: &[
        "--worker-class",
        "gevent",
        "--workers",
        "2",
        "--bind",
        "127.0.0.1:{port}",
        "--certfile",
        "{chain}",
        "--keyfile",
        "{key}",
        "application:application",
    ],
    files: &[("application.py", include_str!("../../zoo/application.py"))],
    ..NOTHING
};

const PUMA: Animal = Animal {
    name: "puma",
    program: "puma",
    package: "puma",
    arguments: &["--quiet", "--bind", "ssl://127.0.0.1:{port}?key={key}&cert={chain}", "{dir}/config.ru"],
    files: &[("config.ru", include_str!("../../zoo/config.ru"))],
    ..NOTHING
};

pub(crate) const UNBOUND: Animal = Animal {
    name: "unbound",
    program: "unbound",
    package: "unbound",
    arguments: &["-d", "-c", "{dir}/unbound.conf"],
    files: &[(
        "unbound.conf",
        "server:\n directory: \"{dir}\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n use-syslog: no\n\
         interface: 127.0.0.1@{port}\n tls-port: {port}\n tls-service-pem: \"{chain}\"\n tls-service-key: \"{key}\"\n\
         incoming-num-tcp: 100\n local-data: \"zoo. A 127.0.0.9\"\nremote-control:\n control-enable: no\n",
    )],
    // Who is "zoo"? 127.0.0.9.
    question: b"\0\x15\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03zoo\0\0\x01\0\x01",
    answer: b"\x7f\0\0\x09",
    ..NOTHING
};

pub(crate) const BIND: Animal = Animal {
    name: "bind",
    program: "named",
    package: "bind9",
    arguments: &["-g", "-n", "2", "-c", "{dir}/named.conf"],
    files: &[
        (
            "named.conf",
            "tls zoo { cert-file \"{chain}\"; key-file \"{key}\"; };\ncontrols {};\n\
             options { directory \"{dir}\"; pid-file none; session-keyfile none; lock-file none; recursion no; dnssec-validation no;\n\
             listen-on port {port} tls zoo { 127.0.0.1; }; listen-on-v6 { none; }; };\n\
             zone \"zoo\" { type primary; file \"zoo.zone\"; };\n",
        ),
        ("zoo.zone", "$TTL 60\n@ SOA a b 1 2 3 4 5\n@ NS @\n@ A 127.0.0.9\n"),
    ],
    question: UNBOUND.question,
    answer: UNBOUND.answer,
    ..NOTHING
};

const DNSDIST: Animal = Animal {
    name: "dnsdist",
    program: "dnsdist",
    package: "dnsdist",
    arguments: &["-C", "{dir}/dnsdist.conf", "--supervised", "--disable-syslog"],
    files: &[(
        "dnsdist.conf",
        "setLocal(\"127.0.0.2:{port}\")\nsetSecurityPollSuffix(\"\")\nnewServer(\"127.0.0.1:{back}\")\n\
         addTLSLocal(\"127.0.0.1:{port}\", \"{chain}\", \"{key}\", {provider=\"openssl\"})\n\
         addAction(AllRule(), SpoofAction(\"127.0.0.9\"))\n",
    )],
    question: UNBOUND.question,
    answer: UNBOUND.answer,
    ..NOTHING
};

/// A process per client, which blocks.
const SOCAT: Animal = Animal {
    name: "socat",
    program: "socat",
    package: "socat",
    arguments: &[
        "OPENSSL-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,cert={chain},key={key},verify=0",
        "EXEC:cat",
    ],
    question: b"zoo\n",
    answer: b"zoo\n",
    ..NOTHING
};

const DOVECOT: Animal = Animal {
    name: "dovecot",
    program: "dovecot",
    package: "dovecot-imapd",
    arguments: &["-F", "-c", "{dir}/dovecot.conf"],
    files: &[(
        "dovecot.conf",
        "base_dir = {dir}/run\nlog_path = {dir}/dovecot.log\nprotocols = imap\npassdb {\n driver = static\n}\nssl = required\nssl_cert = <{chain}\n\
         ssl_key = <{key}\nlisten = 127.0.0.1\nservice imap-login {\n inet_listener imap {\n port = 0\n }\n\
         inet_listener imaps {\n port = {port}\n ssl = yes\n }\n service_count = 0\n}\n",
    )],
    question: b"a LOGOUT\r\n",
    answer: b"a OK",
    ..NOTHING
};

zoo! {
    mosquitto => MOSQUITTO;
    memcached => MEMCACHED;
    lighttpd => LIGHTTPD;
    stunnel => STUNNEL;
    hitch => HITCH;
    redis => REDIS;
    tornado_that_starts_programs => TORNADO;
    ruby_with_nio4r_and_a_callback => NIO4R;
    postgresql => POSTGRESQL;
    #[ignore = "a part of `make zoo`"]
    apache_event => APACHE;
    #[ignore = "a part of `make zoo`"]
    python_http_server => HTTP_SERVER;
    #[ignore = "a part of `make zoo`"]
    python_asyncio => ASYNCIO;
    #[ignore = "a part of `make zoo`"]
    gunicorn_with_gevent => GUNICORN;
    #[ignore = "a part of `make zoo`"]
    webrick => WEBRICK;
    #[ignore = "a part of `make zoo`"]
    puma => PUMA;
    #[ignore = "a part of `make zoo`"]
    php => PHP;
    #[ignore = "a part of `make zoo`"]
    perl => PERL;
    #[ignore = "a part of `make zoo`"]
    node_of_debian => NODE;
    #[ignore = "a part of `make zoo`"]
    erlang => ERLANG;
    #[ignore = "a part of `make zoo`"]
    unbound => UNBOUND;
    #[ignore = "a part of `make zoo`"]
    dovecot => DOVECOT;
    #[ignore = "a part of `make zoo`"]
    bind => BIND;
    #[ignore = "a part of `make zoo`"]
    dnsdist => DNSDIST;
    #[ignore = "a part of `make zoo`"]
    socat => SOCAT;
}
