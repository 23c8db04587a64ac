//! A server that runs, wherever it comes from.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use hasten_bench::certificates::Certificate;
use hasten_bench::drive::Target;
use hasten_bench::port::Port;
use hasten_bench::server::Server;
use hasten_telemetry::{Counters, Snapshot};
use hasten_tests::guest::Guest;
use hasten_tests::subject::send;
use hasten_tests::{hello, wait};
use rustix::process::Signal;
use tempfile::TempDir;

const BODY: &str = "hello from Apache";

pub(crate) enum Running {
    Fixture(Server),
    Guest(Guest),
    Apache(Apache),
}

impl Running {
    pub(crate) fn target(&self) -> &Target {
        match self {
            Self::Fixture(server) => server.target(),
            Self::Guest(guest) => guest.target(),
            Self::Apache(apache) => &apache.target,
        }
    }

    /// The process that was started.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Fixture(server) => server.pid(),
            Self::Guest(guest) => guest.pid(),
            Self::Apache(apache) => apache.child.id(),
        }
    }

    /// Everything that was counted since the start: nothing by a server that has had no handshake.
    pub(crate) fn counters(&self) -> Counters {
        let mut total = Counters::default();
        self.pages().iter().for_each(|page| total += &page.total());
        total
    }

    /// What the library says about itself; empty if there is nothing to say.
    pub(crate) fn note(&self) -> String {
        let notes = self.pages().into_iter().map(|page| page.note).filter(|note| !note.is_empty());
        notes.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ")
    }

    fn pages(&self) -> Vec<Snapshot> {
        let pages = hasten_telemetry::pages_of(self.pid()).unwrap_or_default();
        let pages = pages.iter().map(|page| page.read().expect("a readable counter page"));
        pages.filter(|page| page.accelerator == "tls").collect()
    }

    pub(crate) fn log(&self) -> String {
        match self {
            Self::Fixture(server) => server.log(),
            Self::Guest(guest) => guest.log(),
            Self::Apache(apache) => fs::read_to_string(apache.dir.path().join("log")).unwrap_or_default(),
        }
    }
}

/// Apache with threads; dropping it ends its processes.
pub(crate) struct Apache {
    dir: TempDir,
    target: Target,
    _port: Port,
    child: Child,
}

impl Apache {
    /// `command` starts Apache, and lacks its arguments.
    pub(crate) fn start(mut command: Command, certificate: &Certificate) -> Self {
        let dir = tempfile::Builder::new().prefix("hasten-apache-").tempdir().unwrap();
        let port = Port::reserve().unwrap();
        let configuration = dir.path().join("apache.conf");
        fs::write(&configuration, self::configuration(dir.path(), port.address(), certificate)).unwrap();
        fs::write(dir.path().join("index.html"), BODY).unwrap();
        open_to_all(dir.path());
        command.arg("-DFOREGROUND").arg("-f").arg(configuration);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let target = Target {
            address: port.address(),
            certificate: Some(certificate.leaf.clone()),
            body: Some(BODY.as_bytes().to_vec()),
        };
        let apache = Self { dir, target, _port: port, child };
        wait::until("Apache to listen", || TcpStream::connect(apache.target.address).is_ok());
        let _ = hello::react(apache.target.address, b"");
        apache
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        send(self.child.id(), Signal::TERM);
        let _ = self.child.wait();
    }
}

fn open_to_all(dir: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
}

fn configuration(dir: &std::path::Path, address: std::net::SocketAddr, certificate: &Certificate) -> String {
    let modules = ["mpm_event", "authz_core", "dir", "ssl"]
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"));
    let (dir, chain, key) = (dir.display(), certificate.chain.display(), certificate.key.display());
    format!(
        "ServerRoot {dir}\nServerName localhost\nPidFile {dir}/pid\nErrorLog {dir}/log\nDefaultRuntimeDir {dir}\n\
         Mutex pthread\nListen {address}\n{}User www-data\nGroup www-data\nDocumentRoot {dir}\nDirectoryIndex index.html\n\
         SSLProtocol -all +TLSv1.2 +TLSv1.3\nSSLSessionCache none\nSSLEngine on\nSSLCertificateFile {chain}\n\
         SSLCertificateKeyFile {key}\n",
        modules.concat()
    )
}
