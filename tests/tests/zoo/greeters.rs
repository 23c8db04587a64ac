//! Servers that have a conversation before TLS begins.

use crate::animals::NOTHING;
use crate::cage::Animal;

const MARIADB: Animal = Animal {
    name: "mariadb",
    program: "mariadbd",
    package: "mariadb-server",
    // Without user tables anybody may connect, and without InnoDB it starts in an empty directory.
    arguments: &[
        "--no-defaults",
        "--user=root",
        "--datadir={dir}/tables.{port}",
        "--skip-grant-tables",
        "--innodb=OFF",
        "--default-storage-engine=Aria",
        "--bind-address=127.0.0.1",
        "--port={port}",
        "--socket={dir}/{port}.sock",
        "--ssl-cert={chain}",
        "--ssl-key={key}",
        // Clients that leave half-way are part of the test.
        "--max-connect-errors=1000000",
    ],
    prepare: "mkdir -p tables.{port}",
    preamble: &[
        (b"", b"mysql_native_password\0"),
        // A request for TLS. Nothing answers it but the handshake.
        (b"\x20\0\0\x01\x01\x8a\x08\0\0\0\0\x01\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b""),
    ],
    // The user "zoo", without a password.
    question: b"\x3b\0\0\x02\x01\x8a\x08\0\0\0\0\x01\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
                zoo\0\0mysql_native_password\0",
    answer: b"\x07\0\0\x03\0\0\0\x02\0\0\0",
    ..NOTHING
};

const POSTFIX: Animal = Animal {
    name: "postfix",
    program: "/usr/lib/postfix/sbin/master",
    package: "postfix",
    arguments: &["-d", "-c", "{dir}/postfix.{port}"],
    prepare: include_str!("../../zoo/postfix.sh"),
    preamble: &[(b"", b"220 "), (b"EHLO zoo\r\n", b"250 CHUNKING\r\n"), (b"STARTTLS\r\n", b"220 ")],
    question: b"NOOP\r\n",
    answer: b"250 ",
    ..NOTHING
};

/// A process per client.
const PROFTPD: Animal = Animal {
    name: "proftpd",
    program: "proftpd",
    package: "proftpd-mod-crypto",
    arguments: &["--nodaemon", "--config", "{dir}/proftpd.conf"],
    prepare: include_str!("../../zoo/proftpd.sh"),
    preamble: &[(b"", b"220 "), (b"AUTH TLS\r\n", b"234 ")],
    question: b"FEAT\r\n",
    answer: b"211 End",
    ..NOTHING
};

zoo! {
    #[ignore = "a part of `make zoo`"]
    mariadb => MARIADB;
    #[ignore = "a part of `make zoo`"]
    postfix => POSTFIX;
    #[ignore = "a part of `make zoo`"]
    proftpd => PROFTPD;
}
