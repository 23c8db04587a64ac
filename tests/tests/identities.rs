//! Which certificate a server shows, which keys it has, and whom it wants to see, while handshakes are being batched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::Reason;
use hasten_tests::openssl::s_client;
use hasten_tests::pki::{Pki, self_sign};
use hasten_tests::{Subject, same_as_stock, tools};

const PROTOCOLS: [&str; 2] = ["-tls1_2", "-tls1_3"];

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

/// What every protocol makes of a connection with these options.
fn outcomes(server: &Subject, options: &[&str]) -> Vec<Vec<String>> {
    let once = |protocol| s_client(server.address(), &[&[protocol], options].concat());
    PROTOCOLS.map(|protocol| once(protocol).essence()).into()
}

fn all_served(outcomes: &[Vec<String>]) -> bool {
    outcomes.iter().all(|outcome| outcome.iter().any(|line| line == "served true"))
}

fn none_served(outcomes: &[Vec<String>]) -> bool {
    outcomes.iter().all(|outcome| outcome.iter().any(|line| line == "served false"))
}

#[test]
fn nginx_rejects_a_name_it_does_not_have() {
    let pki = Pki::new();
    let strict = "server { listen {address} ssl default_server; ssl_reject_handshake on; }";
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256)).http_lines(strict);
    let (known, unknown) = same_as_stock(&spec, |server| {
        server.under_load(|| (outcomes(server, &[]), outcomes(server, &["-servername", "elsewhere.example"])))
    });
    assert!(all_served(&known) && none_served(&unknown), "{known:#?} {unknown:#?}");
}

#[test]
fn haproxy_rejects_a_name_it_does_not_have() {
    let pki = Pki::new();
    let spec =
        ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::P256)).server_lines("strict-sni");
    let (known, unknown) = same_as_stock(&spec, |server| {
        server.under_load(|| (outcomes(server, &[]), outcomes(server, &["-servername", "elsewhere.example"])))
    });
    assert!(all_served(&known) && none_served(&unknown), "{known:#?} {unknown:#?}");
}

#[test]
fn the_client_chooses_between_an_rsa_and_an_ecdsa_certificate() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        let spec =
            ServerSpec::new(kind, pki.certificate(KeyKind::P256)).also(pki.certificate(KeyKind::Rsa2048));
        let (rsa, ecdsa) = same_as_stock(&spec, |server| {
            server.under_load(|| {
                let rsa = outcomes(server, &["-sigalgs", "RSA-PSS+SHA256:RSA+SHA256"]);
                (rsa, outcomes(server, &["-sigalgs", "ECDSA+SHA256"]))
            })
        });
        assert!(all_served(&rsa) && all_served(&ecdsa), "{kind}: {rsa:#?} {ecdsa:#?}");
        assert_ne!(rsa, ecdsa, "{kind} shows one certificate to both");
    }
}

#[test]
fn nginx_chooses_a_certificate_by_a_variable() {
    let pki = Pki::new();
    for (name, kind) in [("a.example", KeyKind::Rsa2048), ("b.example", KeyKind::P384)] {
        let certificate = pki.named(kind, name);
        for (from, to) in [(&certificate.chain, "crt"), (&certificate.key, "key")] {
            let copy = pki.dir().join(format!("{name}.{to}"));
            fs::copy(from, &copy).unwrap();
            // A worker, which is not root, reads it during the handshake.
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
    let dir = pki.dir().display();
    let variable = format!(
        "server {{ listen {{address}} ssl; server_name *.example; ssl_certificate {dir}/$ssl_server_name.crt; \
         ssl_certificate_key {dir}/$ssl_server_name.key; return 200 ok; }}"
    );
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256)).http_lines(&variable);
    let [a, b, missing] = same_as_stock(&spec, |server| {
        server.under_load(|| {
            ["a.example", "b.example", "c.example"].map(|name| outcomes(server, &["-servername", name]))
        })
    });
    assert!(all_served(&a) && all_served(&b) && none_served(&missing), "{a:#?} {b:#?} {missing:#?}");
}

#[test]
fn nginx_asks_for_client_certificates() {
    let pki = Pki::new();
    let good = pki.unusual("client", CLIENT_KEY);
    let lines = format!("ssl_verify_client on; ssl_client_certificate {};", good.chain.display());
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::Rsa2048)).server_lines(&lines);
    asks_for_client_certificates(&pki, &spec, &good);
}

#[test]
fn haproxy_asks_for_client_certificates() {
    let pki = Pki::new();
    let good = pki.unusual("client", CLIENT_KEY);
    let lines = format!("ca-file {} verify required", good.chain.display());
    let spec = ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::Rsa2048)).server_lines(&lines);
    asks_for_client_certificates(&pki, &spec, &good);
}

const CLIENT_KEY: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];

fn asks_for_client_certificates(pki: &Pki, spec: &ServerSpec, good: &Certificate) {
    let stranger = pki.unusual("stranger", CLIENT_KEY);
    let shows = |certificate: &Certificate| {
        [
            "-cert".to_owned(),
            text(&certificate.chain).to_owned(),
            "-key".to_owned(),
            text(&certificate.key).to_owned(),
        ]
    };
    let [good, stranger] = [shows(good), shows(&stranger)];
    let crowd = |server: &Subject, options: &[String]| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        // The usual load would be refused; these are enough at a time for several handshakes in a turn.
        hasten_tests::parallel::repeat(8, 4, |_| outcomes(server, &options))
    };
    let [good, none, stranger] =
        same_as_stock(spec, |server| [crowd(server, &good), crowd(server, &[]), crowd(server, &stranger)]);
    assert!(good.iter().all(|outcome| all_served(outcome)), "{good:#?}");
    assert!(none.iter().all(|outcome| none_served(outcome)), "{none:#?}");
    assert!(stranger.iter().all(|outcome| none_served(outcome)), "{stranger:#?}");
}

#[test]
fn nginx_staples_an_ocsp_response() {
    let pki = Pki::new();
    let (certificate, response) = with_ocsp_response(&pki);
    let lines = format!("ssl_stapling on; ssl_stapling_file {};", response.display());
    let spec = ServerSpec::new(ServerKind::Nginx, certificate).server_lines(&lines);
    let outcomes = same_as_stock(&spec, |server| server.under_load(|| outcomes(server, &["-status"])));
    let stapled = |outcome: &Vec<String>| outcome.iter().any(|line| line.contains("successful"));
    assert!(outcomes.iter().all(stapled) && all_served(&outcomes), "{outcomes:#?}");
}

/// A self-signed certificate that also signs the statement that it is good.
fn with_ocsp_response(pki: &Pki) -> (Certificate, PathBuf) {
    let certificate = pki.unusual("stapled", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    let openssl = || Command::new(tools::tool("openssl", "openssl"));
    let chain = text(&certificate.chain);
    let shown = tools::run(openssl().args(["x509", "-noout", "-serial", "-in", chain]));
    let serial = String::from_utf8_lossy(&shown.stdout).trim().replace("serial=", "");
    let index = pki.write("index", &format!("V\t491231235959Z\t\t{serial}\tunknown\t/CN=localhost\n"));
    let response = pki.dir().join("response.der");
    let mut ocsp = openssl();
    ocsp.args([
        "ocsp",
        "-index",
        text(&index),
        "-CA",
        chain,
        "-issuer",
        chain,
        "-cert",
        chain,
        "-ndays",
        "7",
    ]);
    ocsp.args(["-rsigner", chain, "-rkey", text(&certificate.key), "-respout", text(&response)]);
    tools::run(&mut ocsp);
    (certificate, response)
}

#[test]
fn keys_without_an_engine_take_the_original_path() {
    let pki = Pki::new();
    let keys: [(&str, &[&str]); 3] = [
        ("ed25519", &["-algorithm", "ed25519"]),
        ("p-521", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"]),
        (
            "rsa-e3",
            &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_pubexp:3"],
        ),
    ];
    for (name, key) in keys {
        let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256));
        let unusual = pki.unusual(name, key);
        let (chain, key) = (unusual.chain.display(), unusual.key.display());
        let spec = spec.http_lines(&format!(
            "server {{ listen {{address}} ssl; server_name unusual.example; ssl_certificate {chain}; \
             ssl_certificate_key {key}; return 200 ok; }}"
        ));
        let outcomes = same_as_stock(&spec, |server| {
            let outcomes = server.under_load(|| outcomes(server, &["-servername", "unusual.example"]));
            if server.is_accelerated() {
                assert!(server.counters()[Reason::UnsupportedKey] > 0, "{name} was not seen");
            }
            outcomes
        });
        assert!(all_served(&outcomes), "{name}: {outcomes:#?}");
    }
}

#[test]
fn key_exchanges_without_an_engine_take_the_original_path() {
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::Rsa2048))
        .server_lines("ssl_ecdh_curve X25519:P-256:P-384:P-521; ssl_ciphers ALL;");
    let ways: [&[&str]; 4] = [
        &["-tls1_3", "-groups", "P-521"],
        &["-tls1_2", "-groups", "P-521"],
        &["-tls1_2", "-cipher", "AES128-SHA256"],
        &["-tls1_2", "-cipher", "AES256-GCM-SHA384"],
    ];
    let sessions = same_as_stock(&spec, |server| {
        server.under_load(|| ways.map(|way| s_client(server.address(), way).essence()))
    });
    assert!(sessions.iter().all(|essence| essence.iter().any(|line| line == "served true")), "{sessions:#?}");
}

#[test]
fn a_key_in_a_security_module_is_left_alone() {
    let pki = Pki::new();
    let key = pki.dir().join("hsm-key.pem");
    let openssl = tools::tool("openssl", "openssl");
    tools::run(Command::new(openssl).args(["genpkey", "-algorithm", "RSA", "-out"]).arg(&key));
    let chain = pki.dir().join("hsm.pem");
    self_sign(&key, &chain, &[]);
    let config = security_module(&pki, &key);

    let hsm = format!(
        "server {{ listen {{address}} ssl; server_name hsm.example; ssl_certificate {}; ssl_certificate_key \
         'engine:pkcs11:pkcs11:token=test;object=test;type=private;pin-value=1234'; return 200 ok; }}",
        chain.display()
    );
    let spec = ServerSpec::new(ServerKind::Nginx, pki.certificate(KeyKind::P256))
        .main_lines("user root; env SOFTHSM2_CONF;")
        .http_lines(&hsm)
        .env("SOFTHSM2_CONF", config)
        .env("OPENSSL_CONF", engine(&pki));
    let served = same_as_stock(&spec, |server| {
        let served = server.under_load(|| outcomes(server, &["-servername", "hsm.example"]));
        if server.is_accelerated() {
            assert!(server.counters()[Reason::NotExportable] > 0, "the key was not seen");
        }
        served
    });
    assert!(all_served(&served), "{served:#?}");
}

/// A software security module with this key in it; its configuration file.
fn security_module(pki: &Pki, key: &Path) -> PathBuf {
    let tokens = pki.dir().join("tokens");
    fs::create_dir(&tokens).unwrap();
    let config = pki.write("softhsm2.conf", &format!("directories.tokendir = {}\n", tokens.display()));
    let util = tools::tool("softhsm2-util", "softhsm2");
    let run = |arguments: &[&str]| {
        tools::run(Command::new(&util).env("SOFTHSM2_CONF", &config).args(arguments));
    };
    run(&["--init-token", "--free", "--label", "test", "--pin", "1234", "--so-pin", "1234"]);
    run(&["--import", text(key), "--token", "test", "--label", "test", "--id", "01", "--pin", "1234"]);
    config
}

/// Makes OpenSSL use security modules; the file that says so.
fn engine(pki: &Pki) -> PathBuf {
    let module = tools::file_of("/usr/lib/softhsm/libsofthsm2.so", "softhsm2");
    let engine = tools::file_of("/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so", "libengine-pkcs11-openssl");
    let config = format!(
        "openssl_conf = start\n[start]\nengines = engines\n[engines]\npkcs11 = pkcs11\n[pkcs11]\n\
         engine_id = pkcs11\ndynamic_path = {}\nMODULE_PATH = {}\ninit = 1\n",
        engine.display(),
        module.display()
    );
    pki.write("openssl.cnf", &config)
}
