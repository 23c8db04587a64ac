//! nginx of another release, in its image and with the release's own OpenSSL.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::thread;

use hasten_bench::certificates::Certificate;
use hasten_bench::drive::Target;
use hasten_bench::port::Port;
use hasten_telemetry::Counters;
use rustix::process::Signal;

use crate::image::{Image, LIBRARIES, as_root};
use crate::program::EVERY_BATCH;
use crate::subject::{counters_of, send};
use crate::{hello, product, tools, wait};

const BODY: &str = "hello from another release";
const CONFIGURATION: &str = "/etc/guest.conf";
const LOG: &str = "/var/log/nginx/guest.log";
/// nginx looks both up; the image has no users.
const USERS: [(&str, &str); 2] =
    [("etc/passwd", "www-data:x:33:33::/:/bin/sh\n"), ("etc/group", "www-data:x:33:\n")];

/// A running nginx; dropping it ends its processes.
pub struct Guest {
    image: Image,
    target: Target,
    _port: Port,
    master: Child,
}

impl Guest {
    #[must_use]
    pub fn stock(image: Image, certificate: &Certificate) -> Self {
        Self::start(image, certificate, &[])
    }

    /// Every batch is worthwhile for it, as OpenSSL may be fast, and the machine idle.
    #[must_use]
    pub fn accelerated(image: Image, certificate: &Certificate) -> Self {
        Self::with(image, certificate, &[])
    }

    /// The same with more variables.
    #[must_use]
    pub fn with(image: Image, certificate: &Certificate, variables: &[(&str, &str)]) -> Self {
        let library = format!("{LIBRARIES}/libhasten_tls.so");
        Self::start(image, certificate, &[&[("LD_PRELOAD", &*library), EVERY_BATCH], variables].concat())
    }

    fn start(image: Image, certificate: &Certificate, variables: &[(&str, &str)]) -> Self {
        let image = image.with([product::library().as_path(), &certificate.chain, &certificate.key]);
        let port = Port::reserve().unwrap();
        let address = port.address();
        for folder in ["etc", "proc", "var/lib/nginx", "var/log/nginx"] {
            fs::create_dir_all(image.path(folder)).unwrap();
        }
        for (file, line) in USERS {
            fs::write(image.path(file), line).unwrap();
        }
        fs::write(image.path(CONFIGURATION), configuration(address, certificate)).unwrap();
        // A container has a /proc; this one is gone with its namespace.
        let script = r#"mount -t proc proc "$1/proc" && exec chroot "$@""#;
        let mut command = as_root(&tools::tool("unshare", "util-linux"));
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(image.path("")).args(["/bin/sh", "-c"]);
        command.args([r#"exec env "$@""#, "sh"]);
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(["/usr/sbin/nginx", "-e", LOG, "-c", CONFIGURATION]);
        let master = command.spawn().unwrap();
        let body = Some(BODY.as_bytes().to_vec());
        let target = Target { address, certificate: Some(certificate.leaf.clone()), body };
        let guest = Self { image, target, _port: port, master };
        wait::until("the guest to listen", || std::net::TcpStream::connect(address).is_ok());
        let _ = hello::react(address, b"");
        guest
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.image.name
    }

    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Its first process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.master.id()
    }

    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.image.path(LOG)).unwrap_or_default()
    }

    #[must_use]
    pub fn counters(&self) -> Counters {
        counters_of(self.pid())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}: {}", self.name(), self.log());
        }
        send(self.master.id(), Signal::TERM);
        let _ = self.master.wait();
    }
}

fn configuration(address: SocketAddr, certificate: &Certificate) -> String {
    let file = |path: &Path| format!("{LIBRARIES}/{}", path.file_name().unwrap().to_string_lossy());
    let (chain, key) = (file(&certificate.chain), file(&certificate.key));
    format!(
        "daemon off; user www-data www-data; worker_processes 1; error_log {LOG} notice; pid /guest.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    server {{
        listen {address} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        location / {{ return 200 \"{BODY}\"; }}
    }}
}}
"
    )
}
