//! Certificates for one test, removed with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::{Authority, Certificate, KeyKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;

use crate::tools;

/// A directory and an authority that signs whatever the test needs.
pub struct Pki {
    dir: TempDir,
    authority: Authority,
}

impl Pki {
    #[must_use]
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("hasten-pki-").tempdir().unwrap();
        open_to_all(dir.path());
        let authority = Authority::create(dir.path(), KeyKind::P256).unwrap();
        Self { dir, authority }
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// For `localhost`.
    #[must_use]
    pub fn certificate(&self, kind: KeyKind) -> Certificate {
        self.named(kind, "localhost")
    }

    #[must_use]
    pub fn named(&self, kind: KeyKind, name: &str) -> Certificate {
        self.authority.issue(self.dir(), kind, name).unwrap()
    }

    /// A self-signed certificate with a key that only OpenSSL can make; `key` contains the arguments of `openssl
    /// genpkey`.
    #[must_use]
    pub fn unusual(&self, file: &str, key: &[&str]) -> Certificate {
        let (key_file, chain) =
            (self.dir().join(format!("{file}.key")), self.dir().join(format!("{file}.pem")));
        tools::run(
            Command::new(tools::tool("openssl", "openssl"))
                .arg("genpkey")
                .args(key)
                .arg("-out")
                .arg(&key_file),
        );
        self_sign(&key_file, &chain, &[]);
        files(&chain, &key_file, &chain)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Default for Pki {
    fn default() -> Self {
        Self::new()
    }
}

/// A certificate not made by the authority; the root is its signer.
#[must_use]
pub fn files(chain: &Path, key: &Path, root: &Path) -> Certificate {
    let bundle = chain.with_extension("bundle.pem");
    let both = fs::read_to_string(chain).unwrap() + &fs::read_to_string(key).unwrap();
    fs::write(&bundle, both).unwrap();
    Certificate {
        // Only its own constructor looks at the kind.
        kind: KeyKind::Rsa2048,
        chain: chain.to_owned(),
        key: key.to_owned(),
        bundle,
        root: root.to_owned(),
        leaf: CertificateDer::from_pem_file(chain).unwrap(),
    }
}

/// Makes a certificate for `localhost` with a key file, or with a key that `extra` options describe.
pub fn self_sign(key: &Path, chain: &Path, extra: &[&str]) {
    let openssl = tools::tool("openssl", "openssl");
    let mut command = Command::new(openssl);
    command.args(["req", "-x509", "-new", "-days", "30", "-subj", "/CN=localhost"]);
    command.args([
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    command.args(extra).arg("-key").arg(key).arg("-out").arg(chain);
    tools::run(&mut command);
}

/// A certificate, and its authority's signed statement that it is good.
#[must_use]
pub fn stapled(pki: &Pki) -> (Certificate, PathBuf) {
    let openssl = || Command::new(tools::tool("openssl", "openssl"));
    let path = |name: &str| pki.dir().join(name);
    let (ca, ca_key, leaf, key) = (path("ca.pem"), path("ca.key"), path("leaf.pem"), path("leaf.key"));
    for key in [&ca_key, &key] {
        let options = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        tools::run(openssl().args(options).arg(key));
    }
    tools::run(
        openssl().args(["req", "-x509", "-new", "-subj", "/CN=ca", "-key"]).arg(&ca_key).arg("-out").arg(&ca),
    );
    let authority = ["-CA", ca.to_str().unwrap(), "-CAkey", ca_key.to_str().unwrap(), "-set_serial", "0x11"];
    self_sign(&key, &leaf, &authority);

    let index = pki.write("index", "V\t350101000000Z\t\t11\tunknown\t/CN=localhost\n");
    let response = path("response.der");
    let mut ocsp = openssl();
    ocsp.arg("ocsp").arg("-index").arg(&index).arg("-CA").arg(&ca).arg("-rsigner").arg(&ca);
    ocsp.arg("-rkey").arg(&ca_key).arg("-issuer").arg(&ca).arg("-cert").arg(&leaf);
    tools::run(ocsp.args(["-ndays", "7", "-respout"]).arg(&response));

    let bundle = [&leaf, &key, &ca].map(|file| fs::read_to_string(file).unwrap()).concat();
    let certificate = files(&leaf, &key, &ca);
    fs::write(&certificate.bundle, bundle).unwrap();
    (certificate, response)
}

/// Workers change user, and some configurations have them read files themselves.
fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
}
