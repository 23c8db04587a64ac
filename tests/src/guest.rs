//! nginx of another release, or for musl, in its image and with the release's own OpenSSL.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::Certificate;
use hasten_bench::drive::{self, Group, Load, Protocol, Target};
use hasten_bench::port::Port;
use hasten_telemetry::Counters;
use rustix::process::Signal;

use crate::image::{Image, LIBRARIES, as_root};
use crate::program::EVERY_BATCH;
use crate::subject::{accelerated, assert_perfect, counters_of, crowd, send};
use crate::{hello, lanes, product, tools, wait};

const BODY: &str = "hello from another release";
/// Files below are compressed.
pub const PACKED: &str = "/packed/";
const FILES: &str = "/srv";
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
        let image = image.with([product::library().as_path()]);
        Self::preloaded_with(image, certificate, "libhasten_tls.so", variables)
    }

    /// As in an image with `ENV LD_PRELOAD`; the library is in the directory of the image's libraries.
    #[must_use]
    pub fn preloaded(image: Image, certificate: &Certificate, library: &str) -> Self {
        Self::preloaded_with(image, certificate, library, &[])
    }

    fn preloaded_with(
        image: Image,
        certificate: &Certificate,
        library: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let library = format!("{LIBRARIES}/{library}");
        Self::start(image, certificate, &[&[("LD_PRELOAD", &*library), EVERY_BATCH], variables].concat())
    }

    fn start(image: Image, certificate: &Certificate, variables: &[(&str, &str)]) -> Self {
        let image = image.with([certificate.chain.as_path(), &certificate.key]);
        let port = Port::reserve().unwrap();
        let address = port.address();
        for folder in ["etc", "proc", "var/lib/nginx", "var/log/nginx", FILES] {
            fs::create_dir_all(image.path(folder)).unwrap();
        }
        fs::write(image.path(FILES).join("index.html"), BODY).unwrap();
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

    /// Puts a file below [`PACKED`].
    pub fn add_file(&self, name: &str, body: &[u8]) {
        fs::write(self.image.path(FILES).join(name), body).unwrap();
    }

    /// Its first process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.master.id()
    }

    /// Tells it to end when it has served everyone; returns its exit status.
    pub fn quit(&mut self) -> ExitStatus {
        send(self.master.id(), Signal::QUIT);
        self.master.wait().unwrap()
    }

    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.image.path(LOG)).unwrap_or_default()
    }

    #[must_use]
    pub fn counters(&self) -> Counters {
        counters_of(self.pid())
    }

    /// Drives it until at least 300 handshakes are done, all well; their number, and the counters after them.
    #[must_use]
    pub fn drive_well(&self, load: &Load) -> (u64, Counters) {
        const ENOUGH: u64 = 300;
        let before = self.counters();
        let mut handshakes = 0;
        while handshakes < ENOUGH {
            let outcome = drive::run(&self.target, load).unwrap();
            assert_perfect(&outcome, &self.log());
            handshakes += outcome.ops;
        }
        let after = self.counters();
        let done = accelerated(&after) - accelerated(&before);
        // On a busy machine many RSA signatures are too few for a batch to pay.
        assert!(
            done > handshakes / 10 || !lanes::exist(),
            "{}: {done} in {handshakes} handshakes by {load:?}",
            self.name()
        );
        (handshakes, after)
    }
}

/// Enough connections for batches, for a fifth of a second.
#[must_use]
pub fn load(group: Group, protocol: Protocol) -> Load {
    Load { duration: Duration::from_millis(200), group, protocol, ..crowd() }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}: {}", self.name(), self.log());
        }
        if matches!(self.master.try_wait(), Ok(None)) {
            send(self.master.id(), Signal::TERM);
            let _ = self.master.wait();
        }
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
        location / {{ root {FILES}; }}
        location {PACKED} {{ alias {FILES}/; gzip on; gzip_types *; }}
    }}
}}
"
    )
}
