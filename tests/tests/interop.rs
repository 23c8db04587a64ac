//! Clients with different TLS stacks: each has the same outcome with the accelerated server as with the stock one.
//!
//! Go, Node, Python, curl and `openssl s_client`, with rustls as the load running beside them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::openssl::s_client;
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, effort, same_as_stock, tools};

const VERSIONS: [&str; 2] = ["1.2", "1.3"];

#[test]
fn foreign_clients_end_as_with_the_stock_server() {
    let pki = Pki::new();
    // Longer keys of RSA take the same way as short ones.
    let longer: &[KeyKind] = effort(&[], &[KeyKind::Rsa3072, KeyKind::Rsa4096]);
    for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384].iter().chain(longer).copied() {
        let certificate = pki.certificate(kind);
        for server in ServerKind::ALL {
            let spec = ServerSpec::new(server, certificate.clone());
            let outcomes = same_as_stock(&spec, |subject| {
                subject.under_load(|| VERSIONS.map(|version| everybody(subject, &certificate, version)))
            });
            for outcome in outcomes.iter().flatten() {
                assert!(outcome.contains("hello from the fixture"), "{server}, {}: {outcome}", kind.as_str());
            }
        }
    }
}

/// Every client's report on one connection.
fn everybody(server: &Subject, certificate: &Certificate, version: &str) -> Vec<String> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    let mut python = Command::new(tools::tool("python3", "python3"));
    python.arg(clients.join("client.py"));
    let mut node = Command::new(tools::tool("node", "nodejs"));
    node.arg(clients.join("client.js"));
    let mut outcomes: Vec<String> = [Command::new(go_client()), python, node]
        .into_iter()
        .map(|mut client| {
            let client = client.arg(server.address().to_string()).arg(&certificate.root).arg(version);
            let output = client.output().expect("a client starts");
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        })
        .collect();
    outcomes.push(curl(server, certificate, version));
    outcomes
}

fn curl(server: &Subject, certificate: &Certificate, version: &str) -> String {
    let url = format!("https://localhost:{}/", server.address().port());
    let mut curl = Command::new(tools::tool("curl", "curl"));
    curl.args(["--silent", "--show-error", "--tls-max", version, &format!("--tlsv{version}"), "--cacert"]);
    let output = tools::run(curl.arg(&certificate.root).arg(url));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Built once; Go's cache makes it quick the next time.
fn go_client() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let client = target.join("go-client");
        let mut go = Command::new(tools::tool("go", "golang-go"));
        go.args(["build", "-o"]).arg(&client).arg("client.go");
        go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients"));
        // Nothing is fetched, and nothing is left in the home directory.
        go.env("GOPROXY", "off").env("GO111MODULE", "off").env("GOCACHE", target.join("go-cache"));
        tools::run(&mut go);
        client
    })
}

/// Every cipher suite and group of OpenSSL's default lists, and every signature scheme that the key allows.
#[test]
fn every_parameter_gives_the_same_outcome() {
    let pki = Pki::new();
    let suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
    let groups = ["X25519", "P-256", "P-384", "P-521", "X448", "ffdhe2048"];
    for (kind, schemes) in [
        (
            KeyKind::Rsa2048,
            vec!["RSA-PSS+SHA256", "RSA-PSS+SHA384", "RSA-PSS+SHA512", "RSA+SHA256", "RSA+SHA512"],
        ),
        (KeyKind::P256, vec!["ECDSA+SHA256", "ECDSA+SHA384", "ECDSA+SHA512"]),
        (KeyKind::P384, vec!["ECDSA+SHA384", "ECDSA+SHA256"]),
    ] {
        let mut ways: Vec<Vec<&str>> = Vec::new();
        ways.extend(suites.iter().map(|suite| vec!["-tls1_3", "-ciphersuites", suite]));
        ways.extend(
            groups
                .iter()
                .flat_map(|group| ["-tls1_2", "-tls1_3"].map(|protocol| vec![protocol, "-groups", group])),
        );
        ways.extend(
            schemes
                .iter()
                .flat_map(|scheme| ["-tls1_2", "-tls1_3"].map(|protocol| vec![protocol, "-sigalgs", scheme])),
        );
        // The suites differ in how the key authenticates, which does not depend on an ECDSA key's curve.
        let ciphers = if kind == KeyKind::P384 { Vec::new() } else { old_ciphers() };
        ways.extend(ciphers.iter().map(|cipher| vec!["-tls1_2", "-cipher", cipher]));
        let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(kind))
            .server_lines("ssl_ecdh_curve X25519:P-256:P-384:P-521:X448; ssl_ciphers ALL;");
        let outcomes = same_as_stock(&spec, |server| server.under_load(|| essences(server, &ways)));
        let served =
            outcomes.iter().filter(|essence| essence.iter().any(|line| line == "served true")).count();
        assert!(served > ways.len() / 4, "{}: only {served} of {} were served", kind.as_str(), ways.len());
    }
}

/// The outcome of `s_client` for each of these option sets, a few at a time.
fn essences(server: &Subject, ways: &[Vec<&str>]) -> Vec<Vec<String>> {
    const AT_A_TIME: usize = 6;
    thread::scope(|scope| {
        let part = |ways: &'_ [Vec<&str>]| -> Vec<Vec<String>> {
            ways.iter().map(|way| s_client(server.address(), way).essence()).collect()
        };
        let threads: Vec<_> =
            ways.chunks(ways.len().div_ceil(AT_A_TIME)).map(|ways| scope.spawn(move || part(ways))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no client panics")).collect()
    })
}

/// OpenSSL's own list for TLS 1.2.
fn old_ciphers() -> Vec<String> {
    let openssl = tools::tool("openssl", "openssl");
    let output = tools::run(Command::new(openssl).args(["ciphers", "-s", "-tls1_2"]));
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    list.trim().split(':').map(str::to_owned).collect()
}
