//! nginx with compression: a site with a location for every setting, on a socket beside the fixture's port.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use tempfile::TempDir;

use crate::http::Client;
use crate::pki::Pki;
use crate::upstream::Upstream;

/// Files, a socket, an upstream, and the configuration of a server with them.
pub struct Site {
    dir: TempDir,
    pki: Pki,
    upstream: Upstream,
    locations: String,
    only: &'static str,
    key: KeyKind,
    environment: Vec<(&'static str, &'static str)>,
}

impl Site {
    /// A site with only the gzip accelerator.
    #[must_use]
    pub fn new() -> Self {
        // The workers of a server started by root run as another user.
        let mut builder = tempfile::Builder::new();
        let dir = builder.prefix("hasten-site-").permissions(Permissions::from_mode(0o755)).tempdir();
        let dir = dir.expect("a directory for a site");
        fs::create_dir(dir.path().join("files")).expect("a directory for files");
        let upstream = Upstream::start();
        Self {
            dir,
            pki: Pki::new(),
            upstream,
            locations: String::new(),
            only: "gzip",
            key: KeyKind::P256,
            environment: Vec::new(),
        }
    }

    /// The accelerators to apply.
    #[must_use]
    pub fn under(mut self, only: &'static str) -> Self {
        self.only = only;
        self
    }

    /// The key type that signs handshakes.
    #[must_use]
    pub fn signing_with(mut self, key: KeyKind) -> Self {
        self.key = key;
        self
    }

    /// A variable of the server's environment.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// A file of the site.
    #[must_use]
    pub fn file(self, name: &str, content: &[u8]) -> Self {
        fs::write(self.dir.path().join("files").join(name), content).expect("a file of the site");
        self
    }

    /// Serves the files under `/NAME/` with these directives.
    #[must_use]
    pub fn location(mut self, name: &str, directives: &str) -> Self {
        let files = self.dir.path().join("files");
        let _ = writeln!(self.locations, "location /{name}/ {{ alias {}/; {directives} }}", files.display());
        self
    }

    /// Passes `/NAME/…` on to the upstream with these directives.
    #[must_use]
    pub fn proxied(mut self, name: &str, directives: &str) -> Self {
        let upstream = self.upstream.address();
        let _ = writeln!(
            self.locations,
            "location /{name}/ {{ proxy_pass http://{upstream}/; proxy_http_version 1.1; {directives} }}"
        );
        self
    }

    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    #[must_use]
    pub fn client(&self) -> Client {
        Client::of(&self.socket())
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The server; on the fixture's own port, the fixture answers `GET /`.
    #[must_use]
    pub fn spec(&self) -> ServerSpec {
        // The last server's socket would be in the way of the next.
        let _ = fs::remove_file(self.socket());
        let lines = self.lines();
        let spec = ServerSpec::new(ServerKind::Nginx, self.pki.certificate(self.key));
        let spec = spec.http_lines(&lines).server_lines(&self.locations).env("HASTEN_ONLY", self.only);
        self.environment.iter().fold(spec, |spec, (name, value)| spec.env(name, value))
    }

    /// The `http` block: everything is compressed, however small.
    #[must_use]
    pub fn lines(&self) -> String {
        let (socket, locations) = (self.socket(), &self.locations);
        format!(
            "types {{ text/html html shtml; text/css css; }}
    default_type text/html;
    gzip on;
    gzip_min_length 0;
    gzip_proxied any;
    server {{
        listen unix:{} sndbuf=16k;
        {locations}
    }}",
            socket.display()
        )
    }

    /// The certificate for a further TLS server.
    #[must_use]
    pub fn identity(&self) -> String {
        let Certificate { chain, key, .. } = self.pki.certificate(KeyKind::P256);
        format!("ssl_certificate {}; ssl_certificate_key {};", chain.display(), key.display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}
