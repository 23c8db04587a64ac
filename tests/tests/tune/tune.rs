//! A session with the planted service.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hasten_tests::product;
use serde_json::Value;
use tempfile::TempDir;

/// A folder, a port and a command line.
pub(crate) struct Tune {
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
}

impl Tune {
    /// With knobs that set a variable to `on`.
    pub(crate) fn of(variables: &[&str], budget: &str) -> Self {
        let knob = |variable: &&str| {
            let name = variable.trim_start_matches("PLANTED_").to_lowercase().replace('_', "-");
            ["--knob".to_owned(), format!("{name}=env:{variable}=on"), "--only".to_owned(), name]
        };
        let mut arguments: Vec<String> = variables.iter().flat_map(knob).collect();
        arguments.extend(["--budget", budget, "--seed", "1"].map(str::to_owned));
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { folder, port: listener.local_addr().unwrap().port(), arguments }
    }

    /// The session, with the built-in driver.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.driven();
        command.args(["--", env!("CARGO_BIN_EXE_planted"), &self.port.to_string()]);
        command
    }

    /// The same without a service.
    pub(crate) fn driven(&self) -> Command {
        let mut command = self.hasten();
        command.args(["--url", &format!("http://127.0.0.1:{}/", self.port), "--connections", "1"]);
        command.args(["--duration", "200ms", "--warm-up", "0s"]).args(&self.arguments);
        command
    }

    /// `hasten tune` in the folder.
    pub(crate) fn hasten(&self) -> Command {
        let mut command = Command::new(product::hasten());
        command.arg("tune").current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.folder.path().join("hasten-tune")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn report(&self) -> Value {
        let report = fs::read_to_string(self.out().join("report.json")).expect("there is a report");
        serde_json::from_str(&report).expect("the report is JSON")
    }

    /// Trials in the session's file.
    pub(crate) fn trials(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.out().join("session.json")).unwrap_or_default();
        let session: Value = serde_json::from_str(&text).unwrap_or_default();
        session["trials"].as_array().cloned().unwrap_or_default()
    }

    /// Whether nobody answers any more.
    pub(crate) fn is_stopped(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err()
    }
}

/// All output, for a failing test.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}
