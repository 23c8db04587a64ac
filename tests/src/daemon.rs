//! nginx as a daemon: only a master that has left its parent accepts a binary upgrade.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;

use hasten_bench::certificates::Certificate;
use hasten_bench::cpu;
use hasten_bench::drive::Target;
use hasten_bench::port::Port;
use hasten_bench::server::ServerKind;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::subject::send;
use crate::{lanes, product, tools, wait};

const BODY: &str = "hello from the daemon";

/// An accelerated nginx; dropping it ends all its processes.
#[derive(Debug)]
pub struct Daemon {
    dir: TempDir,
    target: Target,
    _port: Port,
    /// The first master, whose process group contains all later ones.
    first: u32,
}

impl Daemon {
    #[must_use]
    pub fn accelerated(certificate: &Certificate, workers: usize) -> Self {
        Self::under("tls", certificate, workers, "")
    }

    /// With these accelerators, and with these lines in the `http` context.
    #[must_use]
    pub fn under(only: &str, certificate: &Certificate, workers: usize, http_lines: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("hasten-daemon-").tempdir().unwrap();
        let port = Port::reserve().unwrap();
        let address = port.address();
        let config = dir.path().join("nginx.conf");
        fs::write(&config, configuration(dir.path(), address, certificate, workers, http_lines)).unwrap();
        let nginx =
            ServerKind::Nginx.program().unwrap_or_else(|missing| panic!("{missing}: {}", missing.fix()));
        let mut command = Command::new(product::hasten());
        command
            .args(["run", "--quiet", "--only", only, "--"])
            .arg(nginx)
            .arg("-p")
            .arg(dir.path())
            .arg("-e")
            .arg("error.log")
            .envs(lanes::variable());
        tools::run(command.arg("-c").arg(&config));
        let body = Some(BODY.as_bytes().to_vec());
        let target = Target { address, certificate: Some(certificate.leaf.clone()), body };
        let mut daemon = Self { dir, target, _port: port, first: 0 };
        daemon.first = wait::for_some("the daemon's pid file", || daemon.read_pid("nginx.pid"));
        // Between writing its pid file and starting its workers, a master accepts a signal but acts only on the next.
        wait::until("its workers", || cpu::children(daemon.first).len() == workers);
        daemon
    }

    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("error.log")).unwrap_or_default()
    }

    /// The master of the pid file.
    #[must_use]
    pub fn master(&self) -> u32 {
        self.read_pid("nginx.pid").unwrap_or(self.first)
    }

    /// Starts the executable again beside the running one; returns the new master once it has all its workers.
    #[must_use]
    pub fn upgrade(&self) -> u32 {
        let old = self.master();
        send(old, Signal::USR2);
        let new = || self.read_pid("nginx.pid").filter(|master| *master != old);
        let new = wait::for_some("a second master", new);
        wait::until("its workers", || cpu::children(new).len() == cpu::children(old).len() - 1);
        new
    }

    /// Ends one of two masters, and returns once the other can be upgraded: one whose parent is still a master ignores
    /// the signal, and a parent's pid file disappears before the parent does.
    pub fn retire(&self, master: u32) {
        send(master, Signal::QUIT);
        wait::until("the other master to end", || !self.dir.path().join("nginx.pid.oldbin").exists());
        let other = self.master();
        wait::until("its child to be nobody's", || !cpu::children(master).contains(&other));
    }

    fn read_pid(&self, file: &str) -> Option<u32> {
        fs::read_to_string(self.dir.path().join(file)).ok()?.trim().parse().ok()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log());
        }
        if let Some(group) = Pid::from_raw(self.first.cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn configuration(
    dir: &std::path::Path,
    address: SocketAddr,
    certificate: &Certificate,
    workers: usize,
    http_lines: &str,
) -> String {
    let (chain, key, dir) = (certificate.chain.display(), certificate.key.display(), dir.display());
    format!(
        "worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log notice;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    ssl_protocols TLSv1.2 TLSv1.3;
    {http_lines}
    server {{
        listen {address} ssl;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        return 200 '{BODY}';
    }}
}}
"
    )
}
