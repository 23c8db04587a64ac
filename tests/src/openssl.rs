//! `openssl s_client`, for what rustls does not do.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::tools;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The output of `s_client`.
#[derive(Clone, Debug)]
pub struct Session {
    pub output: String,
}

/// Connects with these options, requests `/`, and reads to the end.
#[must_use]
pub fn s_client(address: SocketAddr, options: &[&str]) -> Session {
    let mut command = Command::new(tools::tool("timeout", "coreutils"));
    command.arg("30").arg(tools::tool("openssl", "openssl"));
    command.args(["s_client", "-ign_eof", "-servername", "localhost", "-connect", &address.to_string()]);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("openssl starts");
    // It may have ended already because the handshake failed.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(REQUEST);
    let output = child.wait_with_output().expect("openssl ends");
    let text = [output.stdout, output.stderr].concat();
    Session { output: String::from_utf8_lossy(&text).into_owned() }
}

impl Session {
    /// The rest of the first line that begins with `name`, without spaces.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let rest = self.output.lines().find_map(|line| line.trim().strip_prefix(name))?;
        Some(rest.trim_start_matches([':', ' ']).trim())
    }

    /// Whether the request was answered.
    #[must_use]
    pub fn was_served(&self) -> bool {
        self.output.contains("HTTP/1.1 200 OK")
    }

    /// What distinguishes a session: equal for stock and accelerated servers.
    #[must_use]
    pub fn essence(&self) -> Vec<String> {
        const FIELDS: [&str; 7] = [
            "New,",
            "Reused,",
            "Peer signing digest",
            "Peer signature type",
            "Server Temp Key",
            "Early data was",
            "OCSP Response Status",
        ];
        let mut essence: Vec<_> =
            FIELDS.iter().filter_map(|name| Some(format!("{name} {}", self.field(name)?))).collect();
        let alert = self.output.lines().find_map(|line| Some(line.split_once("SSL alert number")?.1.trim()));
        essence.extend(alert.map(|number| format!("alert {number}")));
        essence.push(format!("served {}", self.was_served()));
        essence
    }
}
