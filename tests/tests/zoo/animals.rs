//! Servers of the distribution, by the dozen.

use hasten_bench::certificates::KeyKind;

use crate::cage::{Animal, Cage, HTTP};

const NOTHING: Animal = Animal {
    name: "",
    program: "",
    package: "",
    arguments: &[],
    files: &[],
    prepare: "",
    preamble: &[],
    question: HTTP.0,
    answer: HTTP.1,
    visits: 240,
};

const MOSQUITTO: Animal = Animal {
    name: "mosquitto",
    program: "mosquitto",
    package: "mosquitto",
    arguments: &["-c", "{dir}/mosquitto.conf"],
    files: &[(
        "mosquitto.conf",
        "listener {port} 127.0.0.1\ncertfile {chain}\nkeyfile {key}\nallow_anonymous true\nuser root\n",
    )],
    // CONNECT, without a name of its own, and CONNACK.
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

const LIGHTTPD: Animal = Animal {
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
    program: "/usr/bin/python3",
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

const POSTGRESQL: Animal = Animal {
    name: "postgresql",
    program: "sh",
    package: "postgresql",
    arguments: &["{dir}/start.sh", "{dir}", "{port}", "{chain}", "{key}"],
    files: &[("start.sh", include_str!("../../zoo/postgresql.sh"))],
    preamble: &[(b"\0\0\0\x08\x04\xd2\x16\x2f", b"S")],
    // A startup packet for the user "zoo", and what says that nobody has to authenticate.
    question: b"\0\0\0\x12\0\x03\0\0user\0zoo\0\0",
    answer: b"R\0\0\0\x08\0\0\0\0",
    ..NOTHING
};

macro_rules! zoo {
    ($($(#[$attribute:meta])? $test:ident => $animal:expr;)+) => {
        $(#[test] $(#[$attribute])? fn $test() {
            for kind in [KeyKind::Rsa2048, KeyKind::P256] {
                let _ = Cage::new(kind).compare(&$animal);
            }
        })+
    };
}

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
}
