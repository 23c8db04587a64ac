//! Servers with protocols of their own.

use crate::animals::{BIND, NOTHING, UNBOUND};
use crate::cage::Animal;
use crate::proxies::UNPRIVILEGED;

/// libevent reads and writes for OpenSSL, in several threads that pass connections on.
const COTURN: Animal = Animal {
    name: "coturn",
    program: "turnserver",
    package: "coturn",
    arguments: &[
        "-n",
        "--listening-ip=127.0.0.1",
        "--relay-ip=127.0.0.1",
        "--tls-listening-port={port}",
        "--no-udp",
        "--no-tcp",
        "--no-dtls",
        "--no-cli",
        "--no-auth",
        "--cert={chain}",
        "--pkey={key}",
        "--userdb={dir}/turn.{port}.db",
        "--pidfile={dir}/turn.{port}.pid",
        "--log-file=stdout",
        "--relay-threads=2",
    ],
    // What is my address? It answers the same number.
    question: b"\0\x01\0\0\x21\x12\xa4\x42twelve bytes",
    answer: b"\x21\x12\xa4\x42twelve bytes",
    ..NOTHING
};

/// libevent in several processes.
const NSD: Animal = Animal {
    name: "nsd",
    program: "nsd",
    package: "nsd",
    arguments: &["-d", "-c", "{dir}/nsd.conf"],
    files: &[
        (
            "nsd.conf",
            "server:\n ip-address: 127.0.0.1@{port}\n tls-port: {port}\n tls-service-pem: \"{chain}\"\n\
             \x20tls-service-key: \"{key}\"\n server-count: 2\n username: \"\"\n chroot: \"\"\n zonesdir: \"{dir}\"\n\
             \x20database: \"\"\n pidfile: \"\"\n zonelistfile: \"{dir}/nsd.{port}.list\"\n xfrdfile: \"\"\n\
             \x20xfrdir: \"{dir}\"\n tcp-count: 200\nremote-control:\n control-enable: no\nzone:\n name: \"zoo\"\n\
             \x20zonefile: \"zoo.zone\"\n",
        ),
        BIND.files[1],
    ],
    question: UNBOUND.question,
    answer: UNBOUND.answer,
    ..NOTHING
};

/// As root it would print a warning and wait for half a minute. One thread, which rebuilds its poll list before each
/// wait.
const ZNC: Animal = Animal {
    name: "znc",
    program: "sh",
    package: "znc",
    arguments: &["{dir}/unprivileged.sh", "{dir}", "znc", "--foreground", "--datadir={dir}/znc.{port}"],
    files: &[
        UNPRIVILEGED,
        (
            "znc.conf",
            "Version = 1.8.2\nSSLCertFile = {chain}\nSSLKeyFile = {key}\nAnonIPLimit = 1000\n<Listener l>\n Port = {port}\n\
         \x20Host = 127.0.0.1\n IPv4 = true\n IPv6 = false\n SSL = true\n</Listener>\n<User zoo>\n Pass = plain#zoo\n\
         \x20Admin = true\n</User>\n",
        ),
    ],
    prepare: "mkdir -p znc.{port}/configs && cp znc.conf znc.{port}/configs/znc.conf",
    question: b"NICK zoo\r\nUSER zoo 0 * :zoo\r\n",
    answer: b"464",
    ..NOTHING
};

zoo! {
    #[ignore = "a part of `make zoo`"]
    coturn => COTURN;
    #[ignore = "a part of `make zoo`"]
    nsd => NSD;
    #[ignore = "a part of `make zoo`"]
    znc => ZNC;
}
