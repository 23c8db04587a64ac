//! A systemd with an nginx that serves TLS.

use std::fs;
use std::net::TcpStream;
use std::process::Output;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Load, Target};
use hasten_bench::port::Port;
use hasten_tests::booted::Booted;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{assert_perfect, crowd};
use hasten_tests::traffic::Traffic;
use hasten_tests::wait;
use serde_json::Value;

pub(crate) const DROP_IN: &str = "/etc/systemd/system/nginx.service.d/50-hasten.conf";
const BODY: &str = "hello from a service";

pub(crate) struct Host {
    pub(crate) booted: Booted,
    target: Target,
    port: Port,
    _pki: Pki,
}

impl Host {
    /// Debian's nginx.service with Debian's own settings, where it serves a certificate; it runs.
    pub(crate) fn with_nginx() -> Option<Self> {
        let host = Self::new()?;
        host.booted.systemctl(&["start", "nginx"]);
        host.serve();
        Some(host)
    }

    pub(crate) fn new() -> Option<Self> {
        Some(Self::of(Booted::start()?))
    }

    pub(crate) fn of(booted: Booted) -> Self {
        let (pki, port) = (Pki::new(), Port::reserve().unwrap());
        let certificate = pki.certificate(KeyKind::P256);
        booted.copy(&certificate.chain, "/etc/nginx/chain.pem", 0o644);
        booted.copy(&certificate.key, "/etc/nginx/key.pem", 0o644);
        let [chain, key] =
            [&certificate.chain, &certificate.key].map(|file| fs::read_to_string(file).unwrap());
        booted.write("/etc/haproxy/both.pem", &format!("{chain}{key}"));
        booted.write(
            "/etc/nginx/nginx.conf",
            &configuration(&port, "www-data", "/run/nginx.pid", "/var/lib/nginx"),
        );
        let target = target(&port, &certificate);
        Self { booted, target, port, _pki: pki }
    }

    /// The configuration of an nginx without rights, in a folder of its own.
    pub(crate) fn unprivileged(&self, folder: &str) -> String {
        let text = configuration(&self.port, "", &format!("{folder}/nginx.pid"), folder);
        format!("daemon off;\n{text}")
    }

    /// As in Debian's own configuration: a change of root, and sockets in /run.
    pub(crate) fn haproxy(&self) -> String {
        format!(
            "global
    log /dev/log local0
    chroot /var/lib/haproxy
    stats socket /run/haproxy/admin.sock mode 660 level admin
    user haproxy
    group haproxy
defaults
    mode http
    timeout connect 5s
    timeout client 50s
    timeout server 50s
frontend tls
    bind {} ssl crt /etc/haproxy/both.pem
    http-request return status 200 content-type text/plain string \"{BODY}\\n\"
",
            self.port.address()
        )
    }

    /// Clients that go on until they are stopped.
    pub(crate) fn traffic(&self) -> Traffic {
        wait::until("the port to be open", || TcpStream::connect(self.target.address).is_ok());
        Traffic::start(&self.target, &crowd())
    }

    pub(crate) fn unit(&self, name: &str, text: &str) {
        self.booted.write(&format!("/etc/systemd/system/{name}"), text);
        self.booted.systemctl(&["daemon-reload"]);
    }

    /// Many clients are served, and none notices anything.
    pub(crate) fn serve(&self) {
        // systemd does not wait for every kind of service to listen.
        wait::until("the port to be open", || TcpStream::connect(self.target.address).is_ok());
        let load = Load { duration: Duration::from_millis(300), ..crowd() };
        let outcome = drive::run(&self.target, &load).unwrap();
        let log = self.booted.command("journalctl").args(["--no-pager", "--lines=20"]).output().unwrap();
        assert_perfect(&outcome, &format!("{} {}", outcome.failures, said(&log)));
    }

    /// The row of `hasten status`.
    pub(crate) fn status(&self, unit: &str) -> Value {
        let output = self.booted.hasten(&["status", "--json"]);
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = report["services"].as_array().unwrap();
        let row = rows.iter().find(|row| row["unit"] == unit);
        row.unwrap_or_else(|| panic!("no {unit} in {report:#}")).clone()
    }

    pub(crate) fn state(&self, unit: &str) -> String {
        self.status(unit)["state"].as_str().unwrap().to_owned()
    }

    /// `hasten` with these arguments, which must succeed; what it said.
    pub(crate) fn does(&self, arguments: &[&str]) -> String {
        let output = self.booted.hasten(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// The same, which must fail.
    pub(crate) fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.booted.hasten(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// Nothing of a copy of a service is left.
    pub(crate) fn is_without_trial(&self) -> bool {
        let is_trial = |folder: &str| {
            let entries = fs::read_dir(self.booted.path(folder)).into_iter().flatten().flatten();
            entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("hasten-trial"))
        };
        let mounts = fs::read_to_string(self.booted.path("/proc/1/mounts")).unwrap();
        !is_trial("/run") && !is_trial("/run/systemd/system") && !mounts.contains("hasten-trial")
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.booted.path(path).exists()
    }
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn target(port: &Port, certificate: &Certificate) -> Target {
    let body = Some(format!("{BODY}\n").into_bytes());
    Target { address: port.address(), certificate: Some(certificate.leaf.clone()), body }
}

fn configuration(port: &Port, user: &str, pid: &str, folder: &str) -> String {
    let user = if user.is_empty() { String::new() } else { format!("user {user};") };
    let address = port.address();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};"))
        .concat();
    format!(
        "{user}
worker_processes 1;
pid {pid};
error_log stderr;
events {{ }}
http {{
    access_log off;
    {temporary}
    server {{
        listen {address} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate /etc/nginx/chain.pem;
        ssl_certificate_key /etc/nginx/key.pem;
        location / {{ default_type text/plain; return 200 \"{BODY}\\n\"; }}
    }}
}}
"
    )
}
