//! OpenVPN, which carries TLS in its own packets: OpenSSL reads from memory on both sides.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hasten_bench::certificates::KeyKind;
use hasten_tests::program::{EAGER, EVERY_BATCH, preload, without_library};
use hasten_tests::{Side, tools};

use crate::cage::Cage;

const COMPLETED: &str = "Initialization Sequence Completed";
const PATIENCE: Duration = Duration::from_secs(60);

/// One end of a tunnel, and its output.
struct End {
    child: Child,
    log: String,
}

impl End {
    fn start(cage: &Cage, side: Side, port: u16, arguments: &[&str]) -> Self {
        let fill = |text: &str| cage.fill(text, (Ipv4Addr::LOCALHOST, port).into());
        let log = fill(&format!("{{dir}}/{}.{port}.log", &arguments[0][2..]));
        let mut command = Command::new(tools::tool("openvpn", "openvpn"));
        command.args(["--dev", "null", "--proto", "udp", "--ifconfig-noexec", "--verb", "3", "--log", &log]);
        command.args(["--ca", "{root}", "--cert", "{chain}", "--key", "{key}"].map(fill));
        command.args(arguments.iter().map(|argument| fill(argument)));
        match side {
            Side::Stock => without_library(&mut command),
            Side::Accelerated => preload(&mut command, &[EAGER, EVERY_BATCH]),
        }
        command.stdin(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log }
    }

    /// Its output about the handshake, without the time.
    fn verdict(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let begins = ["Control Channel: ", COMPLETED];
        let line = |line: &str| begins.iter().find_map(|begin| Some(line[line.find(begin)?..].to_owned()));
        log.lines().filter_map(line).collect()
    }

    fn is_up(&self) -> bool {
        self.verdict().iter().any(|line| line == COMPLETED)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of both ends when the tunnel is up, or patience has run out.
fn tunnel(cage: &Cage, side: Side, version: &str) -> [Vec<String>; 2] {
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr())
        .expect("a port")
        .port();
    let (server, client) = (
        [
            "--tls-server",
            "--dh",
            "none",
            "--local",
            "127.0.0.1",
            "--lport",
            "{port}",
            "--tls-version-max",
            version,
        ],
        ["--tls-client", "--nobind", "--remote", "127.0.0.1", "{port}"],
    );
    let ends = [End::start(cage, side, port, &server), End::start(cage, side, port, &client)];
    let begin = Instant::now();
    while !ends.iter().all(End::is_up) && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    ends.map(|end| end.verdict())
}

#[test]
#[ignore = "a part of `make zoo`"]
fn tunnels_are_the_same() {
    for kind in [KeyKind::Rsa2048, KeyKind::P256] {
        let cage = Cage::new(kind);
        for version in ["1.2", "1.3"] {
            let stock = tunnel(&cage, Side::Stock, version);
            let is_up = |end: &Vec<String>| end.iter().any(|line| line == COMPLETED) && end.len() > 1;
            assert!(stock.iter().all(is_up), "{version}: stock fails: {stock:?}");
            assert_eq!(tunnel(&cage, Side::Accelerated, version), stock);
        }
    }
}
