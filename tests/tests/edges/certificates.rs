//! Which certificate a client gets, and what happens to keys that the engine does not support.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::{Algorithm, Reason};
use hasten_tests::client::{Client, Proof};
use hasten_tests::openssl::s_client;
use hasten_tests::pki::{Pki, stapled};
use hasten_tests::{Subject, lanes, parallel, same_as_stock, tools};

/// Server names, one that nobody has, and none at all.
const NAMES: [&str; 4] = ["localhost", "other.test", "unknown.test", "127.0.0.1"];

#[test]
fn nginx_chooses_by_name_and_rejects_unknown_ones() {
    let pki = Pki::new();
    let (first, other) = (pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "other.test"));
    let http = format!(
        "server {{ listen {{address}} ssl default_server; ssl_reject_handshake on; }}
        server {{
            listen {{address}} ssl;
            server_name other.test;
            ssl_certificate {};
            ssl_certificate_key {};
            return 200 'other';
        }}",
        other.chain.display(),
        other.key.display()
    );
    let spec = ServerSpec::new(ServerKind::Nginx, first.clone()).http_lines(&http);
    chooses_by_name(&spec, &first, &other);
}

#[test]
fn haproxy_chooses_by_name_and_rejects_unknown_ones() {
    let pki = Pki::new();
    let (first, other) = (pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "other.test"));
    let list = pki.write("list", &format!("{} other.test\n", other.bundle.display()));
    let bind = format!("crt-list {} strict-sni", list.display());
    let spec = ServerSpec::new(ServerKind::Haproxy, first.clone()).server_lines(&bind);
    chooses_by_name(&spec, &first, &other);
}

fn chooses_by_name(spec: &ServerSpec, first: &Certificate, other: &Certificate) {
    let clients = NAMES.map(|name| Client::trusting(&first.root).named(name).build());
    let answers = same_as_stock(spec, |server| {
        let get = |number: usize| {
            clients[number % clients.len()].get(server.address()).map(|answer| answer.certificate)
        };
        server.under_load(|| parallel::repeat(8, 12, get))
    });
    for (number, answer) in answers.into_iter().enumerate() {
        match NAMES[number % NAMES.len()] {
            "localhost" => assert_eq!(answer.unwrap().as_ref(), Some(&first.leaf)),
            "other.test" => assert_eq!(answer.unwrap().as_ref(), Some(&other.leaf)),
            name => assert!(answer.unwrap_err().contains("UnrecognisedName"), "{name}"),
        }
    }
}

/// nginx then reads a certificate and its key anew for every handshake.
#[test]
fn nginx_loads_the_certificate_that_a_variable_names() {
    let pki = Pki::new();
    let first = pki.certificate(KeyKind::P256);
    let named = [(KeyKind::Rsa2048, "a.test"), (KeyKind::P384, "b.test")];
    for (kind, name) in named {
        let certificate = pki.named(kind, name);
        fs::copy(&certificate.chain, pki.dir().join(format!("{name}.crt"))).unwrap();
        fs::copy(&certificate.key, pki.dir().join(format!("{name}.key"))).unwrap();
    }
    let http = format!(
        "server {{
            listen {{address}} ssl;
            server_name *.test;
            ssl_certificate {0}/$ssl_server_name.crt;
            ssl_certificate_key {0}/$ssl_server_name.key;
            return 200 $ssl_server_name;
        }}",
        pki.dir().display()
    );
    // Workers read the files themselves.
    let spec = ServerSpec::new(ServerKind::Nginx, first.clone()).http_lines(&http).main_lines("user root;");
    let names = ["a.test", "b.test", "missing.test"];
    let answers = same_as_stock(&spec, |nginx| {
        let clients = names.map(|name| Client::trusting(&first.root).named(name).build());
        let get =
            |number: usize| clients[number % clients.len()].get(nginx.address()).map(|answer| answer.body);
        nginx.under_load(|| parallel::repeat(12, 15, get))
    });
    for (number, answer) in answers.into_iter().enumerate() {
        match names[number % names.len()] {
            "missing.test" => assert!(answer.is_err()),
            name => assert_eq!(answer.as_deref(), Ok(name)),
        }
    }
}

/// HAProxy then signs a certificate inside a callback of the handshake.
#[test]
fn haproxy_generates_the_certificate_that_a_name_needs() {
    let pki = Pki::new();
    let first = pki.certificate(KeyKind::Rsa2048);
    let (key, root) = (pki.dir().join("ca.key"), pki.dir().join("ca.pem"));
    let openssl = tools::tool("openssl", "openssl");
    tools::run(Command::new(&openssl).args(["genpkey", "-algorithm", "RSA", "-out"]).arg(&key));
    let mut request = Command::new(&openssl);
    request.args(["req", "-x509", "-new", "-days", "30", "-subj", "/CN=hasten test", "-key"]).arg(&key);
    tools::run(request.arg("-out").arg(&root));
    let both =
        pki.write("ca-both.pem", &(fs::read_to_string(&root).unwrap() + &fs::read_to_string(&key).unwrap()));

    let bind = format!("generate-certificates ca-sign-file {}", both.display());
    let spec = ServerSpec::new(ServerKind::Haproxy, first).server_lines(&bind).workers(2);
    let haproxy = Subject::accelerated(&spec);
    let get = |number: usize| {
        let name = format!("name-{}.test", number % 24);
        Client::trusting(&root).named(&name).build().get(haproxy.address()).map(|answer| answer.body)
    };
    haproxy.under_load(|| {
        // HAProxy 2.6, even stock, closes most connections for which it has just made a certificate.
        parallel::repeat(8, 3, get);
        for answer in parallel::repeat(8, 6, get) {
            assert_eq!(answer.as_deref(), Ok("hello from the fixture\n"));
        }
    });
    haproxy.finish();
}

#[test]
fn rsa_and_ecdsa_live_on_one_server() {
    let pki = Pki::new();
    let (ecdsa, rsa) = (pki.certificate(KeyKind::P256), pki.certificate(KeyKind::Rsa2048));
    for kind in ServerKind::ALL {
        // HAProxy accepts a certificate of each kind for one name only from files with one name.
        let spec = match kind {
            ServerKind::Nginx => ServerSpec::new(kind, ecdsa.clone()).also(rsa.clone()),
            ServerKind::Haproxy => ServerSpec::new(kind, bundle_of_both(&pki, &ecdsa, &rsa)),
            ServerKind::Envoy | ServerKind::HaproxyAwsLc => unreachable!("not one of the distribution's"),
        };
        same_as_stock(&spec, |server| {
            let expected = [(Proof::Ecdsa, &ecdsa), (Proof::Rsa, &rsa)];
            let clients = expected.map(|(proof, _)| Client::trusting(&ecdsa.root).proved_by(proof).build());
            let get = |number: usize| {
                let answer = clients[number % 2].get(server.address()).unwrap();
                assert_eq!(answer.certificate.as_ref(), Some(&expected[number % 2].1.leaf));
            };
            server.under_load(|| parallel::repeat(16, 10, get));
        });
    }
}

/// `bundle.ecdsa` and `bundle.rsa`, which HAProxy loads as one.
fn bundle_of_both(pki: &Pki, ecdsa: &Certificate, rsa: &Certificate) -> Certificate {
    let bundle = pki.dir().join("bundle");
    fs::copy(&ecdsa.bundle, bundle.with_extension("ecdsa")).unwrap();
    fs::copy(&rsa.bundle, bundle.with_extension("rsa")).unwrap();
    Certificate { bundle, ..ecdsa.clone() }
}

#[test]
fn keys_that_the_engine_does_not_have_are_openssls() {
    if lanes::are_missing() {
        return;
    }
    const RSA: [&str; 4] = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
    let pki = Pki::new();
    let exponent_three = [&RSA[..], &["-pkeyopt", "rsa_keygen_pubexp:3"]].concat();
    let three_primes = [&RSA[..], &["-pkeyopt", "rsa_keygen_primes:3"]].concat();
    let keys: [(&str, &[&str], &[ServerKind]); 5] = [
        ("exponent-three", &exponent_three, &ServerKind::ALL),
        ("three-primes", &three_primes, &[ServerKind::Nginx]),
        ("odd-size", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2056"], &[ServerKind::Haproxy]),
        ("ed25519", &["-algorithm", "ED25519"], &ServerKind::ALL),
        ("p-521", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], &[ServerKind::Nginx]),
    ];
    for (name, options, kinds) in keys {
        let certificate = pki.unusual(name, options);
        for kind in kinds {
            let essence = same_as_stock(&ServerSpec::new(*kind, certificate.clone()), |server| {
                let essence =
                    server.under_load(|| s_client(server.address(), &["-groups", "X25519"]).essence());
                assert!(!server.is_accelerated() || server.counters()[Reason::UnsupportedKey] > 0, "{name}");
                essence
            });
            assert!(essence.contains(&"served true".to_owned()), "{kind} {name}: {essence:?}");
        }
    }
}

/// rustls, and so the driver, does not support these; without a crowd nothing is batched, but everything must work.
#[test]
fn rsa_pss_keys_are_openssls() {
    let pki = Pki::new();
    let certificate = pki.unusual("rsa-pss", &["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"]);
    for kind in ServerKind::ALL {
        let essences = same_as_stock(&ServerSpec::new(kind, certificate.clone()), |server| {
            parallel::repeat(8, 2, |_| s_client(server.address(), &["-tls1_3"]).essence())
        });
        assert!(essences.iter().all(|essence| essence.contains(&"served true".to_owned())), "{essences:?}");
    }
}

/// Groups and key exchanges besides the batched ones.
#[test]
fn exchanges_that_the_engine_does_not_have_are_openssls() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let parameters = pki.dir().join("dh.pem");
    let mut command = Command::new(tools::tool("openssl", "openssl"));
    command.args(["genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out"]);
    tools::run(command.arg(&parameters));
    let nginx =
        format!("ssl_ecdh_curve X25519:P-256:P-384:P-521:X448; ssl_dhparam {};", parameters.display());
    let nginx = ServerSpec::new(ServerKind::Nginx, certificate.clone()).server_lines(&nginx);
    let global = format!("ssl-dh-param-file {}", parameters.display());
    let haproxy = ServerSpec::new(ServerKind::Haproxy, certificate).main_lines(&global);
    let haproxy = haproxy.server_lines("curves X25519:P-256:P-384:P-521:X448 ciphers ALL");
    let options: [&[&str]; 8] = [
        &["-groups", "P-521"],
        &["-groups", "X448"],
        &["-tls1_2", "-groups", "P-521:P-256"],
        &["-tls1_2", "-cipher", "AES128-SHA256"],
        &["-tls1_2", "-cipher", "AES256-GCM-SHA384"],
        &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"],
        &["-groups", "ffdhe2048"],
    ];
    for spec in [nginx, haproxy] {
        let essences = same_as_stock(&spec, |server| {
            let connect =
                |number: usize| s_client(server.address(), options[number % options.len()]).essence();
            server.under_load(|| parallel::repeat(8, 2, connect))
        });
        let served = essences.iter().filter(|essence| essence.contains(&"served true".to_owned())).count();
        assert!(served >= 2 * (options.len() - 1), "{essences:#?}");
    }
}

#[test]
fn a_stapled_response_reaches_the_client() {
    let pki = Pki::new();
    let (certificate, response) = stapled(&pki);
    let nginx = format!("ssl_stapling on; ssl_stapling_file {};", response.display());
    // HAProxy finds the response beside the bundle.
    fs::copy(&response, certificate.bundle.with_extension("pem.ocsp")).unwrap();
    for (kind, lines) in [(ServerKind::Nginx, nginx.as_str()), (ServerKind::Haproxy, "")] {
        let spec = ServerSpec::new(kind, certificate.clone()).server_lines(lines);
        let essences = same_as_stock(&spec, |server| {
            let ask = |number: usize| {
                let version = ["-tls1_2", "-tls1_3"][number % 2];
                s_client(server.address(), &["-status", version]).essence()
            };
            server.under_load(|| parallel::repeat(6, 2, ask))
        });
        for essence in essences {
            let stapled = essence.iter().any(|line| line.starts_with("OCSP Response Status successful"));
            assert!(stapled, "{kind}: {essence:?}");
        }
    }
}

/// A key in a PKCS#11 token beside one in a file: the first is left alone, the second is batched.
#[test]
fn a_key_that_cannot_be_exported_is_left_alone() {
    let pki = Pki::new();
    let (in_file, in_token) = (pki.certificate(KeyKind::Rsa2048), pki.named(KeyKind::Rsa2048, "token.test"));
    let token = Token::with_key(&pki, &in_token.key);
    let http = format!(
        "server {{
            listen {{address}} ssl;
            server_name token.test;
            ssl_certificate {};
            ssl_certificate_key \"engine:pkcs11:{}\";
            return 200 'from the token';
        }}",
        in_token.chain.display(),
        token.uri
    );
    // A worker talks to the token itself, with the configuration from its environment.
    let main = "user root; env SOFTHSM2_CONF;";
    let spec = ServerSpec::new(ServerKind::Nginx, in_file).main_lines(main).http_lines(&http);
    let spec = spec.env("SOFTHSM2_CONF", &token.config).env("OPENSSL_CONF", &token.openssl);
    let client = Client::trusting(&in_token.root).named("token.test").build();
    let answers = same_as_stock(&spec, |nginx| {
        let get = |_| client.get(nginx.address()).map(|answer| answer.body);
        let answers = nginx.under_load(|| parallel::repeat(4, 5, get));
        if nginx.is_accelerated() {
            let counters = nginx.counters();
            assert!(counters[Reason::NotExportable] > 0, "the token's key is seen and left alone");
            assert!(lanes::batched(&counters, Algorithm::Rsa2048Sign) > 0, "the file's key is batched");
        }
        answers
    });
    answers.into_iter().for_each(|answer| assert_eq!(answer.as_deref(), Ok("from the token")));
}

struct Token {
    /// The token's configuration.
    config: PathBuf,
    /// The OpenSSL configuration that loads the engine.
    openssl: PathBuf,
    uri: &'static str,
}

impl Token {
    fn with_key(pki: &Pki, key: &Path) -> Self {
        let module = tools::file_of("/usr/lib/softhsm/libsofthsm2.so", "softhsm2");
        let engine = "/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so";
        let engine = tools::file_of(engine, "libengine-pkcs11-openssl");
        let tokens = pki.dir().join("tokens");
        fs::create_dir(&tokens).unwrap();
        let config = pki.write("softhsm2.conf", &format!("directories.tokendir = {}\n", tokens.display()));
        let util = || {
            let mut command = Command::new(tools::tool("softhsm2-util", "softhsm2"));
            command.env("SOFTHSM2_CONF", &config);
            command
        };
        let init = ["--init-token", "--free", "--label", "hasten", "--pin", "1234", "--so-pin", "1234"];
        tools::run(util().args(init));
        let import = ["--token", "hasten", "--label", "key", "--id", "01", "--pin", "1234", "--import"];
        tools::run(util().args(import).arg(key));
        let openssl = format!(
            "openssl_conf = init\n[init]\nengines = engines\n[engines]\npkcs11 = pkcs11\n[pkcs11]\n\
             engine_id = pkcs11\ndynamic_path = {}\nMODULE_PATH = {}\ninit = 1\n",
            engine.display(),
            module.display()
        );
        let openssl = pki.write("openssl.cnf", &openssl);
        Self { config, openssl, uri: "pkcs11:token=hasten;object=key;type=private;pin-value=1234" }
    }
}
