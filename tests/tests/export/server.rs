//! nginx under a name that is unique on this host, so that its series are its own.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hasten_bench::certificates::KeyKind;
use hasten_bench::cpu;
use hasten_bench::port::Port;
use hasten_bench::server::ServerKind;
use hasten_tests::pki::Pki;
use hasten_tests::subject::send;
use hasten_tests::{bodies, product, tools, wait};
use rustix::process::Signal;
use tempfile::TempDir;

/// The uncompressed size of the answer to `/`.
pub(crate) const BODY: usize = 60_000;

/// An accelerated nginx with TLS and compression; dropping it ends it.
pub(crate) struct Server {
    dir: TempDir,
    port: Port,
    /// The program's name, and thus the label's value.
    pub(crate) name: String,
    process: Child,
    workers: usize,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with_workers(2)
    }

    pub(crate) fn with_workers(workers: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nginx-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        // The workers of a server started by root run as another user.
        let mut builder = tempfile::Builder::new();
        let dir =
            builder.prefix("hasten-export-").permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let nginx =
            ServerKind::Nginx.program().unwrap_or_else(|missing| panic!("{missing}: {}", missing.fix()));
        fs::copy(nginx, dir.path().join(&name)).unwrap();
        fs::write(dir.path().join("index.html"), bodies::page(BODY)).unwrap();
        let port = Port::reserve().unwrap();
        let address = port.address();
        fs::write(dir.path().join("nginx.conf"), configuration(dir.path(), address, workers)).unwrap();
        let process = spawn(dir.path(), &name);
        let server = Self { dir, port, name, process, workers };
        server.wait_for_workers();
        server
    }

    /// Ends it, and starts the same program again.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.process = spawn(self.dir.path(), &self.name);
        self.wait_for_workers();
    }

    pub(crate) fn end(&mut self) {
        send(self.process.id(), Signal::TERM);
        self.process.wait().expect("nginx ends");
    }

    /// The number of the first process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills a worker, as the kernel does when memory is short, and waits for the next.
    pub(crate) fn lose_a_worker(&self) {
        let before = cpu::children(self.process.id());
        send(before[0], Signal::KILL);
        wait::until("another worker", || {
            let now = cpu::children(self.process.id());
            now.len() == before.len() && !now.contains(&before[0])
        });
    }

    /// One connection, one handshake, one compressed answer, by a different TLS implementation; returns the
    /// answer's size.
    pub(crate) fn request(&self) -> u64 {
        let url = format!("https://{}/", self.port.address());
        let mut curl = Command::new(tools::tool("curl", "curl"));
        curl.args(["--silent", "--show-error", "--insecure", "--max-time", "60", "--output", "/dev/null"]);
        curl.args([
            "--header",
            "Accept-Encoding: gzip",
            "--write-out",
            "%{http_code} %{size_download}",
            &url,
        ]);
        let answer = String::from_utf8(tools::run(&mut curl).stdout).unwrap();
        let size = answer.strip_prefix("200 ").unwrap_or_else(|| panic!("{answer}: {}", self.log()));
        size.parse().unwrap()
    }

    fn wait_for_workers(&self) {
        wait::until("nginx to listen", || std::net::TcpStream::connect(self.port.address()).is_ok());
        wait::until("its workers", || cpu::children(self.process.id()).len() == self.workers);
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("error.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let children = cpu::children(self.process.id());
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Workers notice the end of their master only when they look.
        for child in children.into_iter().filter_map(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
        {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
    }
}

fn spawn(dir: &Path, name: &str) -> Child {
    let mut command = Command::new(product::hasten());
    command.args(["run", "--quiet", "--only", "tls,gzip", "--"]).arg(dir.join(name));
    command.arg("-p").arg(dir).args(["-e", "error.log", "-c", "nginx.conf"]);
    // hasten does not know the program by its name, and would try itself out only before the sixteenth handshake.
    command.env("HASTEN_TLS_TRIAL", "1");
    command.stdin(Stdio::null()).spawn().expect("hasten starts")
}

fn configuration(dir: &Path, address: SocketAddr, workers: usize) -> String {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let (chain, key) = (dir.join("chain.pem"), dir.join("key.pem"));
    fs::copy(&certificate.chain, &chain).unwrap();
    fs::copy(&certificate.key, &key).unwrap();
    let (chain, key, dir) = (chain.display(), key.display(), dir.display());
    format!(
        "worker_processes {workers};
daemon off;
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
    types {{ text/html html; }}
    gzip on;
    gzip_comp_level 1;
    server {{
        listen {address} ssl;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        root {dir};
    }}
}}
"
    )
}
