//! The systems: where a server comes from, and the OpenSSL that it gets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_bench::certificates::Certificate;
use hasten_bench::server::{Launcher, ServerKind, ServerSpec};
use hasten_openssl::{LIBSSL, SERIES, Series};
use hasten_tests::guest::Guest;
use hasten_tests::image::{Image, LIBRARIES};
use hasten_tests::pki::Pki;
use hasten_tests::program::{EVERY_BATCH, without_library};
use hasten_tests::{Side, product};
use serde_json::Value;

use crate::running::{Apache, Running};

/// What names a release, in texts and in what `OpenSSL_version_num` returns, and the same of a series to come.
const NEXT: [(&[u8], &[u8]); 2] =
    [(b"OpenSSL 3.6.", b"OpenSSL 3.7."), (&[0xb8, 0x30, 0x00, 0x60, 0x30], &[0xb8, 0x30, 0x00, 0x70, 0x30])];

/// Where [`System::debian_13`] has the product.
const PRODUCT: &str = "/opt";

/// Names and values of environment variables.
pub(crate) type Variables<'a> = &'a [(&'a str, &'a str)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    Apache,
}

/// A server's origin, and its OpenSSL's.
pub(crate) struct System {
    /// As the report has it.
    pub(crate) name: String,
    place: Place,
    servers: Vec<Kind>,
    /// Of its OpenSSL, if it is there for that; a mistake must not drive another one.
    series: Option<String>,
    is_known: bool,
}

enum Place {
    /// This machine, if nothing is in the place of its libssl and its nginx.
    Here { libraries: Option<PathBuf>, nginx: Option<PathBuf> },
    /// A system that two programs enter: one as `hasten` would be called, one that drops what is said to `hasten`.
    Root { path: PathBuf, accelerated: PathBuf, stock: PathBuf },
    /// By its name, a part of a system.
    Image(String),
}

/// What `hasten check` says of a server.
pub(crate) struct Check {
    pub(crate) decision: String,
    pub(crate) reasons: Vec<String>,
    /// Without the word OpenSSL.
    pub(crate) openssl: String,
    pub(crate) libc: String,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Apache => "apache2",
        }
    }

    pub(crate) fn fixture(self) -> Option<ServerKind> {
        match self {
            Self::Nginx => Some(ServerKind::Nginx),
            Self::Haproxy => Some(ServerKind::Haproxy),
            Self::Apache => None,
        }
    }
}

impl System {
    /// This machine, what `make reach` has built and installed, and every image with an nginx.
    pub(crate) fn all(pki: &Pki) -> Vec<Self> {
        let mut all = vec![Self::this_machine()];
        all.push(Self::debian_13(pki));
        let images = Image::all().into_iter().filter(|image| image.path("usr/sbin/nginx").exists());
        all.extend(images.map(|image| Self {
            place: Place::Image(image.name.clone()),
            name: image.name.replace("ubuntu-", "Ubuntu "),
            servers: vec![Kind::Nginx],
            series: None,
            is_known: true,
        }));
        all.extend(SERIES.iter().map(Self::of_series));
        all.extend(Self::stranger(pki));
        all
    }

    fn this_machine() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let value = |name: &str| {
            let rest = release.lines().find_map(|line| line.strip_prefix(name));
            rest.unwrap_or_default().trim_matches('"').to_owned()
        };
        let name = format!("{} {}", value("NAME="), value("VERSION_ID=")).replace(" GNU/Linux", "");
        let place = Place::Here { libraries: None, nginx: None };
        let servers = vec![Kind::Nginx, Kind::Haproxy, Kind::Apache];
        Self { name, place, servers, series: None, is_known: true }
    }

    fn of_series(series: &Series) -> Self {
        let libraries = built().join("openssl").join(series.name).join("lib");
        Self::with_libraries(&format!("OpenSSL {} from its source", series.name), series.name, libraries)
    }

    /// This machine with another libssl.
    fn with_libraries(name: &str, series: &str, libraries: PathBuf) -> Self {
        // What was built for 3.0 runs with any 3.x.
        let nginx = (!series.starts_with("3.")).then(|| built().join("nginx/nginx"));
        let place = Place::Here { libraries: Some(libraries), nginx };
        let (name, series) = (name.to_owned(), Some(series.to_owned()));
        Self { name, place, servers: vec![Kind::Nginx], series, is_known: true }
    }

    /// A copy of the newest 3.x, once that is there, that says it is of a series to come.
    fn stranger(pki: &Pki) -> Option<Self> {
        let (from, to) = (built().join("openssl/3.6/lib"), pki.dir().join("openssl-3.7"));
        if !from.exists() {
            return None;
        }
        fs::create_dir(&to).unwrap();
        for name in ["libcrypto.so.3", LIBSSL[0]] {
            let mut bytes = fs::read(from.join(name)).unwrap();
            for (is, becomes) in NEXT {
                replace(&mut bytes, is, becomes);
            }
            fs::write(to.join(name), bytes).unwrap();
        }
        let stranger = Self::with_libraries("OpenSSL 3.7, made up", "3.7", to);
        Some(Self { is_known: false, ..stranger })
    }

    fn debian_13(pki: &Pki) -> Self {
        let path = built().join("debian-13/root");
        let product = product::hasten().parent().unwrap();
        let (temporary, root) = (std::env::temp_dir(), path.display());
        let [temporary, product] = [&temporary, product].map(Path::display);
        // The fixture's files are where the fixture thinks; a /proc of its own is gone with the namespace.
        let enter = format!(
            "exec unshare --mount sh -c 'mkdir -p \"$0{temporary}\" && mount --bind {temporary} \"$0{temporary}\" && \
             mount --bind {product} \"$0{PRODUCT}\" && mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"' {root}"
        );
        let script = |name: &str, text: String| {
            let path = pki.write(name, &text);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        // The fixture's arguments are those of `hasten run --quiet --`.
        let stock = script("enter-stock", format!("#!/bin/sh\nshift 3\n{enter} \"$@\"\n"));
        let accelerated = script("enter", format!("#!/bin/sh\n{enter} {PRODUCT}/hasten \"$@\"\n"));
        Self {
            name: "Debian 13".to_owned(),
            place: Place::Root { path, accelerated, stock },
            servers: vec![Kind::Nginx, Kind::Haproxy, Kind::Apache],
            series: None,
            is_known: true,
        }
    }

    /// Whether a release is of the series that this system is there for.
    pub(crate) fn has_release(&self, version: &str) -> bool {
        let of = |series: &String| version.strip_prefix(&**series).is_some_and(|rest| rest.starts_with('.'));
        self.series.as_ref().is_none_or(of)
    }

    /// Whether hasten knows its series.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether TLS has hybrid groups there; a series to come has what the last one has.
    pub(crate) fn has_hybrids(&self, version: &str) -> bool {
        Series::of_text(version).map_or(!self.is_known, Series::has_hybrids)
    }

    /// Fails if it has not been made.
    pub(crate) fn require(&self) {
        let folder = match &self.place {
            Place::Here { libraries: Some(folder), .. } | Place::Root { path: folder, .. } => folder,
            Place::Here { .. } | Place::Image(_) => return,
        };
        assert!(folder.exists(), "{} is missing: run `make reach`, which makes it", folder.display());
    }

    pub(crate) fn servers(&self) -> &[Kind] {
        &self.servers
    }

    /// Whether its servers are reloaded, too: this machine's are by `make test`.
    pub(crate) fn is_reloaded(&self) -> bool {
        matches!(self.place, Place::Root { .. })
    }

    /// A running server with these variables; an accelerated one finds every batch worthwhile, as OpenSSL may be fast, and the
    /// machine idle.
    pub(crate) fn start(
        &self,
        side: Side,
        kind: Kind,
        certificate: &Certificate,
        variables: Variables,
    ) -> Result<Running, String> {
        if let Place::Image(name) = &self.place {
            let image = Image::named(name).expect("the image was there a moment ago");
            let guest = match side {
                Side::Stock => Guest::stock(image, certificate),
                Side::Accelerated => Guest::with(image, certificate, variables),
            };
            return Ok(Running::Guest(guest));
        }
        match self.spec(side, kind, certificate, variables) {
            Some(spec) => spec.start().map(Running::Fixture).map_err(|error| error.to_string()),
            None => Ok(Running::Apache(Apache::start(self.apache(side, variables), certificate))),
        }
    }

    /// The fixture of nginx or HAProxy.
    pub(crate) fn spec(
        &self,
        side: Side,
        kind: Kind,
        certificate: &Certificate,
        variables: Variables,
    ) -> Option<ServerSpec> {
        let mut spec = ServerSpec::new(kind.fixture()?, certificate.clone())
            .program(self.program(kind))
            .launcher(self.launcher(side));
        for (name, value) in self.environment(side, variables) {
            spec = spec.env(name, value);
        }
        Some(spec)
    }

    fn apache(&self, side: Side, variables: Variables) -> Command {
        let mut command = match self.launcher(side) {
            Launcher::Stock => Command::new(self.program(Kind::Apache)),
            Launcher::Hasten { exe } => {
                let mut command = Command::new(exe);
                command.args(["run", "--quiet", "--"]).arg(self.program(Kind::Apache));
                command
            }
        };
        without_library(&mut command);
        command.envs(self.environment(side, variables));
        command
    }

    fn environment(&self, side: Side, variables: Variables) -> Vec<(String, String)> {
        let mut all: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if side == Side::Accelerated {
            all.push((EVERY_BATCH.0.to_owned(), EVERY_BATCH.1.to_owned()));
        }
        if let Place::Here { libraries: Some(libraries), .. } = &self.place {
            all.push(("LD_LIBRARY_PATH".to_owned(), libraries.display().to_string()));
        }
        all
    }

    fn launcher(&self, side: Side) -> Launcher {
        match (&self.place, side) {
            (Place::Root { accelerated, .. }, Side::Accelerated) => {
                Launcher::Hasten { exe: accelerated.clone() }
            }
            (Place::Root { stock, .. }, Side::Stock) => Launcher::Hasten { exe: stock.clone() },
            (_, Side::Accelerated) => product::launcher(),
            (_, Side::Stock) => Launcher::Stock,
        }
    }

    fn program(&self, kind: Kind) -> PathBuf {
        match &self.place {
            Place::Here { nginx: Some(nginx), .. } if kind == Kind::Nginx => nginx.clone(),
            _ => Path::new("/usr/sbin").join(kind.name()),
        }
    }

    /// What `hasten check` says of a server there.
    pub(crate) fn check(&self, kind: Kind, variables: Variables) -> Check {
        let check = self.check_of(kind, variables);
        match kind {
            // It loads libssl as a module.
            Kind::Apache => Check { openssl: self.check_of(Kind::Nginx, variables).openssl, ..check },
            _ => check,
        }
    }

    fn check_of(&self, kind: Kind, variables: Variables) -> Check {
        let program = self.program(kind).display().to_string();
        let output = self.run(&["check", "--json", "--", &program], variables);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {output:?}", self.name));
        let all = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tls = all(&json["program"]["accelerators"])
            .into_iter()
            .find(|one| one["name"] == "tls")
            .unwrap_or_default();
        let libraries = all(&json["program"]["libraries"]);
        let library = |name: &str| {
            let is_it = |library: &&Value| library["name"].as_str().is_some_and(|is| is.starts_with(name));
            libraries.iter().find(is_it).cloned().unwrap_or_default()
        };
        let libssl = text(&library("libssl.so")["version"]);
        Check {
            decision: text(&tls["decision"]),
            reasons: all(&tls["reasons"]).iter().map(|reason| text(&reason["text"])).collect(),
            openssl: libssl.trim_start_matches("OpenSSL ").to_owned(),
            libc: self.glibc(&text(&library("libc.so.6")["path"])),
        }
    }

    /// The version of the server.
    pub(crate) fn version(&self, kind: Kind) -> String {
        let program = self.program(kind).display().to_string();
        let output = match &self.place {
            Place::Here { .. } => {
                Command::new(program).arg("-v").envs(self.environment(Side::Stock, &[])).output()
            }
            Place::Root { stock, .. } => {
                Command::new(stock).args(["run", "--quiet", "--", &program, "-v"]).output()
            }
            Place::Image(name) => Ok(Image::named(name).unwrap().shell(&[], &format!("{program} -v"))),
        };
        let output = output.expect("the server tells its version");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let mut words = text.split_whitespace();
        let word = words.find(|word| word.contains(|c: char| c.is_ascii_digit())).unwrap_or_default();
        word.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// `hasten` itself, there.
    fn run(&self, arguments: &[&str], variables: Variables) -> Output {
        let mut command = match &self.place {
            Place::Here { .. } => Command::new(product::hasten()),
            Place::Root { accelerated, .. } => Command::new(accelerated),
            Place::Image(name) => {
                let image =
                    Image::named(name).unwrap().with([product::hasten(), product::library().as_path()]);
                return image.shell(variables, &format!("exec {LIBRARIES}/hasten {}", arguments.join(" ")));
            }
        };
        without_library(&mut command);
        command.args(arguments).envs(self.environment(Side::Stock, variables));
        command.output().expect("hasten starts")
    }

    /// The version that a C library names in its text.
    fn glibc(&self, path: &str) -> String {
        const BEFORE: &[u8] = b"stable release version ";
        let bytes = match &self.place {
            Place::Here { .. } => fs::read(path),
            Place::Root { path: root, .. } => fs::read(root.join(path.trim_start_matches('/'))),
            Place::Image(name) => {
                let image = Image::named(name).unwrap();
                fs::read(image.path(path))
            }
        };
        let bytes = bytes.expect("a C library");
        let at = bytes.windows(BEFORE.len()).position(|window| window == BEFORE);
        let version = at.map(|at| &bytes[at + BEFORE.len()..]).unwrap_or_default();
        let version = version.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        String::from_utf8_lossy(&version.copied().collect::<Vec<_>>()).trim_end_matches('.').to_owned()
    }
}

/// Puts `becomes` wherever `is` stands.
fn replace(bytes: &mut [u8], is: &[u8], becomes: &[u8]) {
    for at in 0..bytes.len().saturating_sub(is.len()) {
        if bytes[at..].starts_with(is) {
            bytes[at..at + becomes.len()].copy_from_slice(becomes);
        }
    }
}

/// Where the scripts of `make reach` put what they make.
pub(crate) fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(".deps")
}
