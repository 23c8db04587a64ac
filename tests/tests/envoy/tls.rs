//! Handshakes.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Group, Load, Outcome, Protocol, Target};
use hasten_telemetry::{Algorithm, Event};
use hasten_tests::client::Client;
use hasten_tests::effort::effort;
use hasten_tests::openssl::s_client;
use hasten_tests::pki::{self, Pki};
use hasten_tests::{lanes, tools, wait};
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::{HandshakeKind, ProtocolVersion, version};
use serde_json::{Value, json};

use crate::subject::{Envoy, How, Place, RELEASES, build};

const TYPE: &str = "type.googleapis.com/envoy.extensions";

/// Lets a single connection wait, so that it takes the same way as one of many.
pub(crate) const EAGER: &[(&str, &str)] = &[("HASTEN_TLS_EAGER", "1")];

/// A context for a listener with this certificate.
pub(crate) fn context(certificate: &Certificate) -> Value {
    json!({
        "@type": format!("{TYPE}.transport_sockets.tls.v3.DownstreamTlsContext"),
        "common_tls_context": {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [{
                "certificate_chain": {"filename": certificate.chain},
                "private_key": {"filename": certificate.key},
            }],
        },
    })
}

/// Without sessions: every handshake is a full one.
pub(crate) fn full(certificate: &Certificate) -> Value {
    let mut context = context(certificate);
    context["disable_stateless_session_resumption"] = json!(true);
    context["disable_stateful_session_resumption"] = json!(true);
    context
}

/// A configuration with a listener for each context, and the administration at a socket.
pub(crate) fn config(socket: &Path, contexts: &[Value]) -> Value {
    let listeners: Vec<_> = contexts
        .iter()
        .enumerate()
        .map(|(number, context)| {
            json!({
                "name": format!("tls-{number}"),
                "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
                "filter_chains": [{
                    "filters": [{"name": "manager", "typed_config": manager()}],
                    "transport_socket": {"name": "tls", "typed_config": context},
                }],
            })
        })
        .collect();
    json!({
        "admin": {"address": {"pipe": {"path": socket}}},
        "node": {"id": "test", "cluster": "test"},
        "static_resources": {"listeners": listeners},
    })
}

/// What answers every request.
fn manager() -> Value {
    json!({
        "@type": format!("{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "test",
        "delayed_close_timeout": "0s",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{
            "match": {"prefix": "/"},
            "direct_response": {"status": 200, "body": {"inline_string": "It works."}},
        }]}]},
        "http_filters": [{"name": "router", "typed_config": {
            "@type": format!("{TYPE}.filters.http.router.v3.Router"),
        }}],
    })
}

/// Starts Envoy with these listeners, and tells where they are.
pub(crate) fn start(place: &Place, build: &Path, contexts: &[Value], how: How) -> (Envoy, Vec<SocketAddr>) {
    start_with(place, build, |socket| config(socket, contexts), contexts.len(), how)
}

/// The same with a configuration that has as many listeners.
pub(crate) fn start_with(
    place: &Place,
    build: &Path,
    config: impl FnOnce(&Path) -> Value,
    listeners: usize,
    how: How,
) -> (Envoy, Vec<SocketAddr>) {
    let envoy = place.launch(build, config, how).wait_for("/ready");
    let count = listeners;
    let listeners = envoy.client().get("/listeners").expect("the administration").body;
    let listeners = String::from_utf8(listeners).expect("text");
    let address = |number: usize| {
        let name = format!("tls-{number}::");
        let line = listeners.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no {name} in {listeners}"))
    };
    let addresses = (0..count).map(address).collect();
    (envoy, addresses)
}

/// Full handshakes of many connections at once, each verified.
pub(crate) fn drive(
    address: SocketAddr,
    certificate: &Certificate,
    protocol: Protocol,
    group: Group,
) -> Outcome {
    let target =
        Target { address, certificate: Some(certificate.leaf.clone()), body: Some(b"It works.".to_vec()) };
    let load = Load {
        concurrency: 48,
        duration: Duration::from_millis(150),
        timeout: Duration::from_secs(20),
        protocol,
        group,
        ..Load::default()
    };
    let outcome = drive::run(&target, &load).expect("the driver");
    assert_eq!(outcome.failures.total(), 0, "{protocol} {group}: {}", outcome.failures);
    assert!(outcome.ops > 0);
    outcome
}

pub(crate) const fn signature(kind: KeyKind) -> Algorithm {
    match kind {
        KeyKind::Rsa2048 => Algorithm::Rsa2048Sign,
        KeyKind::Rsa3072 => Algorithm::Rsa3072Sign,
        KeyKind::Rsa4096 => Algorithm::Rsa4096Sign,
        KeyKind::P256 => Algorithm::P256Sign,
        KeyKind::P384 => Algorithm::P384Sign,
    }
}

/// Drives every key, protocol and group, and asserts that the engine has signed with each kind of key: in batches, or by RSA
/// one at a time, if a batch costs more.
pub(crate) fn drive_all(release: &str) {
    let (place, pki) = (Place::new(), Pki::new());
    let certificates = KeyKind::ALL.map(|kind| pki.certificate(kind));
    let contexts = certificates.each_ref().map(full);
    let (envoy, addresses) = start(&place, &build(release), &contexts, How::Accelerated(&[]));
    for (address, certificate) in addresses.iter().zip(&certificates) {
        for (protocol, group) in [
            (Protocol::Tls13, Group::X25519),
            (Protocol::Tls13, Group::P256),
            (Protocol::Tls12, Group::X25519),
        ] {
            drive(*address, certificate, protocol, group);
        }
        let counters = envoy.counters();
        let signed = lanes::accelerated(&counters, signature(certificate.kind));
        assert!(signed > 0, "{release} {}: {counters:?}", certificate.kind);
    }
    let counters = envoy.counters();
    assert!(lanes::batched(&counters, Algorithm::X25519Derive) > 0, "{release}: {counters:?}");
    assert_eq!(counters[Algorithm::X25519Derive].failed, 0, "{release}: {counters:?}");
    assert_eq!(counters[Event::HandshakeFailed], 0, "{release}");
    assert_eq!(counters[Event::HandshakeStarted], counters[Event::HandshakeFinished], "{release}");
    assert!(statistic(&envoy, "ssl.connection_error").iter().all(|count| *count == 0), "{release}");
    envoy.finish();
}

/// The values of Envoy's own statistics whose names end like this.
pub(crate) fn statistic(envoy: &Envoy, name: &str) -> Vec<u64> {
    let all = envoy.client().get("/stats").expect("the administration").body;
    let all = String::from_utf8(all).expect("text");
    let values = all.lines().filter_map(|line| line.split_once(": ").filter(|(of, _)| of.ends_with(name)));
    values.map(|(_, value)| value.parse().expect("a number")).collect()
}

#[test]
fn all_keys_sign_in_batches_and_every_handshake_verifies() {
    RELEASES.iter().for_each(|release| drive_all(release));
}

/// One connection at a time, which nobody shares a batch with.
#[test]
fn a_lone_connection_has_its_signature_from_an_engine() {
    const HANDSHAKES: u64 = 12;
    if lanes::are_missing() {
        return;
    }
    let (place, pki) = (Place::new(), Pki::new());
    let certificates = KeyKind::ALL.map(|kind| pki.certificate(kind));
    let contexts = certificates.each_ref().map(full);
    let (envoy, addresses) = start(&place, &build(RELEASES[0]), &contexts, How::Accelerated(&[]));
    for (address, certificate) in addresses.iter().zip(&certificates) {
        for turn in 0..HANDSHAKES {
            let version = if turn % 2 == 0 { &version::TLS13 } else { &version::TLS12 };
            let client = Client::trusting(&certificate.root).only(version).build();
            answered(&client, *address).expect("an answer");
        }
        let signed = envoy.counters()[signature(certificate.kind)];
        if certificate.kind == KeyKind::P256 {
            assert_eq!(signed.single + signed.batched, 0, "BoringSSL's own: {signed:?}");
        } else {
            assert!(signed.single + signed.batched > 0, "{}: {signed:?}", certificate.kind);
            assert_eq!((signed.queued(), signed.failed), (HANDSHAKES, 0), "{}: {signed:?}", certificate.kind);
        }
    }
    envoy.finish();
}

/// How a server answers a client: the protocol, whether it resumed, and whether it was served.
pub(crate) type Answered = Result<(ProtocolVersion, HandshakeKind, String), String>;

pub(crate) fn answered(client: &Client, address: SocketAddr) -> Answered {
    client.get(address).map(|answer| (answer.protocol, answer.handshake, answer.body))
}

/// Starts a stock and an accelerated Envoy, and asserts that both do the same.
pub(crate) fn same_as_stock<T: PartialEq + std::fmt::Debug>(
    context: &Value,
    edge: impl Fn(SocketAddr) -> T,
) -> T {
    let place = Place::new();
    let [stock, ours] = [How::Stock, How::Accelerated(EAGER)].map(|how| {
        let (envoy, addresses) = start(&place, &build(RELEASES[0]), slice::from_ref(context), how);
        let outcome = edge(addresses[0]);
        if matches!(how, How::Accelerated(_)) {
            assert!(envoy.counters()[Event::Suspended] > 0, "nothing has waited: {:?}", envoy.counters());
        }
        envoy.finish();
        outcome
    });
    assert_eq!(ours, stock, "accelerated (left) and stock differ");
    ours
}

#[test]
fn groups_and_protocols_are_those_of_stock() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P256);
    let mut context = full(&certificate);
    context["common_tls_context"]["tls_params"] = json!({
        "ecdh_curves": ["X25519MLKEM768", "X25519", "P-256"],
        "tls_minimum_protocol_version": "TLSv1_2",
        "tls_maximum_protocol_version": "TLSv1_3",
    });
    let clients = [
        Client::trusting(&certificate.root).build(),
        Client::trusting(&certificate.root).groups(&[kx_group::X25519MLKEM768]).build(),
        // A hello that is answered by another group's name.
        Client::trusting(&certificate.root).groups(&[kx_group::SECP384R1, kx_group::X25519]).build(),
        Client::trusting(&certificate.root).groups(&[kx_group::SECP384R1]).build(),
        Client::trusting(&certificate.root).only(&version::TLS12).build(),
    ];
    // The forecast of what a server takes is in it from the second round on.
    let outcome = same_as_stock(&context, |address| {
        (0..3)
            .flat_map(|_| clients.iter())
            .map(|client| answered(client, address).map_err(drop))
            .collect::<Vec<_>>()
    });
    let is_served = |outcome: &Result<_, ()>| outcome.is_ok();
    assert_eq!(outcome.iter().map(is_served).collect::<Vec<_>>(), [true, true, true, false, true].repeat(3));
}

#[test]
fn sessions_are_resumed() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    for version in [&version::TLS13, &version::TLS12] {
        let outcome = same_as_stock(&context(&certificate), |address| {
            let client = || Client::trusting(&certificate.root).only(version).resuming().build();
            // Sessions of one's own: the first of each worker does not wait, and those after it do.
            (0..8).for_each(|_| assert!(answered(&client(), address).is_ok()));
            let client = client();
            (0..4).map(|_| answered(&client, address)).collect::<Vec<_>>()
        });
        let kinds: Vec<_> = outcome.into_iter().map(|answer| answer.expect("an answer").1).collect();
        assert_ne!(kinds[0], HandshakeKind::Resumed);
        assert!(kinds[1..].iter().all(|kind| *kind == HandshakeKind::Resumed), "{kinds:?}");
    }
}

#[test]
fn client_certificates_are_asked_for_and_checked() {
    let (pki, strangers) = (Pki::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P384);
    let (friend, stranger) = (pki.named(KeyKind::P256, "client"), strangers.named(KeyKind::P256, "client"));
    let mut context = full(&certificate);
    context["require_client_certificate"] = json!(true);
    context["common_tls_context"]["validation_context"] =
        json!({"trusted_ca": {"filename": certificate.root}});
    let clients = [
        Client::trusting(&certificate.root).showing(&friend).build(),
        Client::trusting(&certificate.root).showing(&stranger).build(),
        Client::trusting(&certificate.root).build(),
    ];
    let outcome = same_as_stock(&context, |address| {
        clients.iter().map(|client| answered(client, address).map_err(drop)).collect::<Vec<_>>()
    });
    assert_eq!(outcome.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn openssls_client_sees_what_it_sees_of_stock() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    for options in [
        &["-tls1_3", "-groups", "X25519"][..],
        &["-tls1_3", "-groups", "P-384:X25519"],
        &["-tls1_3", "-groups", "P-521"],
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
        // A key exchange by RSA, in which the server decrypts.
        &["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
        &["-tls1_1"],
    ] {
        same_as_stock(&full(&certificate), |address| {
            // Others go ahead: the first of each worker does not wait.
            let others = (0..8).map(|_| s_client(address, &["-tls1_3", "-groups", "X25519"]).essence());
            (others.collect::<Vec<_>>(), s_client(address, options).essence())
        });
    }
}

/// The key is in the configuration itself, and a statement of the authority in a file.
#[test]
fn a_stapled_response_reaches_the_client_of_an_inline_key() {
    let pki = Pki::new();
    let (certificate, response) = pki::stapled(&pki);
    let mut context = full(&certificate);
    let inline = |path| json!({"inline_string": fs::read_to_string(path).expect("a file")});
    context["common_tls_context"]["tls_certificates"][0] = json!({
        "certificate_chain": inline(&certificate.chain),
        "private_key": inline(&certificate.key),
        "ocsp_staple": {"filename": response},
    });
    let outcome = same_as_stock(&context, |address| {
        let ask =
            |number: usize| s_client(address, &["-status", ["-tls1_2", "-tls1_3"][number % 2]]).essence();
        (0..8).map(ask).collect::<Vec<_>>()
    });
    let is_stapled = |essence: &Vec<String>| {
        essence.iter().any(|line| line.starts_with("OCSP Response Status successful"))
    };
    assert!(outcome.iter().all(is_stapled), "{outcome:?}");
}

/// Envoy has none for TCP: a client that has a session, and something to say at once, must wait.
#[test]
fn early_data_is_not_offered() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let data = pki.write("early", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let outcome = same_as_stock(&context(&certificate), |address| {
        let ask = |number: usize| {
            let session = pki.dir().join(format!("session-{number}"));
            let file = session.to_str().expect("text");
            let first = s_client(address, &["-tls1_3", "-sess_out", file]).essence();
            let early = ["-tls1_3", "-sess_in", file, "-early_data", data.to_str().expect("text")];
            (first, s_client(address, &early).essence())
        };
        (0..6).map(ask).collect::<Vec<_>>()
    });
    for (_, second) in outcome {
        assert!(second.iter().any(|line| line == "Early data was not sent"), "{second:?}");
        assert!(second.iter().any(|line| line == "served true"), "{second:?}");
    }
}

#[test]
fn curl_and_h2load_see_what_they_see_of_stock() {
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let by_curl = |address: SocketAddr, options: &[&str]| {
        let mut curl = Command::new(tools::tool("curl", "curl"));
        curl.args([
            "--silent",
            "--show-error",
            "--max-time",
            "30",
            "--write-out",
            " %{http_version} %{http_code}",
        ]);
        curl.arg("--cacert")
            .arg(&certificate.root)
            .args(["--resolve", &format!("localhost:{}:127.0.0.1", address.port())]);
        let output =
            curl.args(options).arg(format!("https://localhost:{}/", address.port())).output().expect("curl");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let by_h2load = |address: SocketAddr| {
        let mut h2load = Command::new(tools::tool("h2load", "nghttp2-client"));
        h2load.args(["-n", "400", "-c", "40", "-m", "2", &format!("https://{address}/")]);
        let text = String::from_utf8(tools::run(&mut h2load).stdout).expect("text");
        let is_told = |line: &&str| line.starts_with("requests:") || line.starts_with("status codes:");
        text.lines().filter(is_told).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut context = full(&certificate);
    context["common_tls_context"]["alpn_protocols"] = json!(["h2", "http/1.1"]);
    let outcome = same_as_stock(&context, |address| {
        let curls =
            [&["--http1.1"][..], &["--http2"], &["--tls-max", "1.2"], &["--tlsv1.3"], &["--tls-max", "1.1"]];
        let curls = curls.repeat(2).into_iter().map(|options| by_curl(address, options)).collect::<Vec<_>>();
        (by_h2load(address), curls)
    });
    assert!(outcome.0[0].contains(" 400 succeeded, 0 failed"), "{outcome:?}");
    assert_eq!(outcome.1[1], (Some(0), "It works. 2 200".to_owned()));
    assert!(outcome.1[4].0 != Some(0), "{outcome:?}");
}

#[test]
fn gos_client_sees_what_it_sees_of_stock() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P256);
    let mut context = context(&certificate);
    context["common_tls_context"]["tls_params"] = json!({
        "ecdh_curves": ["X25519MLKEM768", "X25519", "P-256", "P-384"],
        "tls_minimum_protocol_version": "TLSv1_2",
        "tls_maximum_protocol_version": "TLSv1_3",
    });
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the repository");
    let program = place.path().join("handshakes");
    let mut go = Command::new(repository.join("scripts/go.sh"));
    tools::run(go.args(["build", "-o"]).arg(&program).arg(repository.join("tests/clients/handshakes.go")));
    let outcome = same_as_stock(&context, |address| {
        let output = tools::run(Command::new(&program).arg(address.to_string()).arg(&certificate.root));
        let mut lines: Vec<_> =
            String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    let with = |word: &str| outcome.iter().filter(|line| line.contains(word)).count();
    assert_eq!((outcome.len(), with("It works."), with("resumed true")), (24, 21, 4), "{outcome:#?}");
}

/// A client that has said this, and nothing more.
fn say(address: SocketAddr, hello: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.write_all(hello).expect("a hello");
    socket
}

#[test]
fn connections_that_go_away_leave_nothing_behind() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let (envoy, addresses) =
        start(&place, &build(RELEASES[0]), &[full(&certificate)], How::Accelerated(EAGER));
    let address = addresses[0];
    let hello = Client::trusting(&certificate.root).build().hello();
    let leave = |rounds: usize| {
        for round in 0..rounds {
            let connections: Vec<_> = (0..32).map(|_| say(address, &hello)).collect();
            if round % 2 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            drop(connections);
        }
        // Handshakes behind them find their places free.
        drive(address, &certificate, Protocol::Tls13, Group::X25519);
    };
    leave(8);
    let before = envoy.footprint();
    // 10,000 of them in `make thorough`.
    leave(effort(64, 320));
    wait::until("all descriptors to be closed", || envoy.footprint().descriptors <= before.descriptors);
    let after = envoy.footprint();
    assert!(after.resident_kib < before.resident_kib + 16 * 1024, "{before:?}, then {after:?}");
    envoy.finish();
}

/// Envoy itself looks at the hello to choose a filter chain, without taking it.
#[test]
fn name_in_the_hello_chooses_the_certificate() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificates = [pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "other.test")];
    let by_name = |socket: &Path| {
        let mut config = config(socket, &certificates.each_ref().map(full));
        let listeners = &mut config["static_resources"]["listeners"];
        let mut other = listeners[1]["filter_chains"][0].take();
        other["filter_chain_match"] = json!({"server_names": ["other.test"]});
        listeners.as_array_mut().expect("listeners").truncate(1);
        listeners[0]["filter_chains"].as_array_mut().expect("chains").push(other);
        listeners[0]["listener_filters"] = json!([{"name": "inspector", "typed_config": {
            "@type": format!("{TYPE}.filters.listener.tls_inspector.v3.TlsInspector"),
        }}]);
        config
    };
    let (envoy, addresses) = start_with(&place, &build(RELEASES[0]), by_name, 1, How::Accelerated(EAGER));
    for _ in 0..8 {
        for (certificate, name) in certificates.iter().zip(["localhost", "other.test"]) {
            let client = Client::trusting(&certificate.root).named(name).build();
            let answer = client.get(addresses[0]).expect("an answer");
            assert_eq!(answer.certificate.as_ref(), Some(&certificate.leaf), "{name}");
        }
    }
    assert!(envoy.counters()[Event::Suspended] > 0);
    envoy.finish();
}

/// A connection may be closed while its handshake waits: here, because that takes too long.
#[test]
fn handshakes_that_take_too_long_are_given_up() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::Rsa4096);
    let impatient = |socket: &Path| {
        let mut config = config(socket, &[full(&certificate), full(&certificate)]);
        let chain = &mut config["static_resources"]["listeners"][0]["filter_chains"][0];
        chain["transport_socket_connect_timeout"] = json!("0.004s");
        config
    };
    let (envoy, addresses) = start_with(&place, &build(RELEASES[0]), impatient, 2, How::Accelerated(&[]));
    let target = Target { address: addresses[0], certificate: None, body: None };
    let load = Load { concurrency: 64, duration: Duration::from_millis(200), ..Load::default() };
    wait::until("handshakes that are given up while they wait", || {
        drive::run(&target, &load).expect("the driver");
        envoy.counters()[Event::Cancelled] > 20
    });
    let before = envoy.footprint().descriptors;
    drive(addresses[1], &certificate, Protocol::Tls13, Group::X25519);
    wait::until("all descriptors to be closed", || envoy.footprint().descriptors <= before);
    assert_eq!(envoy.counters()[Algorithm::Rsa4096Sign].failed, 0);
    envoy.finish();
}

/// Envoy reads the certificate from files anew whenever the directory's link is replaced.
#[test]
fn certificate_is_replaced_under_load() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificates = [pki.certificate(KeyKind::P256), pki.certificate(KeyKind::Rsa2048)];
    let secrets = place.path().join("secrets");
    fs::create_dir(&secrets).expect("a directory");
    let replace = |certificate: &Certificate| {
        let secret = json!({"resources": [{
            "@type": format!("{TYPE}.transport_sockets.tls.v3.Secret"),
            "name": "server",
            "tls_certificate": {
                "certificate_chain": {"filename": certificate.chain},
                "private_key": {"filename": certificate.key},
            },
        }]});
        let new = secrets.join("new.json");
        fs::write(&new, secret.to_string()).expect("a secret");
        fs::rename(new, secrets.join("secret.json")).expect("a secret");
    };
    replace(&certificates[0]);
    let mut context = full(&certificates[0]);
    let common = &mut context["common_tls_context"];
    common.as_object_mut().expect("a context").remove("tls_certificates");
    common["tls_certificate_sds_secret_configs"] = json!([{
        "name": "server",
        "sds_config": {
            "path_config_source": {"path": secrets.join("secret.json")},
            "resource_api_version": "V3",
        },
    }]);
    let (envoy, addresses) = start(&place, &build(RELEASES[0]), &[context], How::Accelerated(&[]));
    let client = Client::trusting(&certificates[0].root).build();
    let is_over = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        let clients: Vec<_> = (0..effort(24, 200))
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        let answer = client.get(addresses[0]).expect("an answer");
                        seen.push(answer.certificate.expect("a certificate"));
                    }
                    seen
                })
            })
            .collect();
        for round in 1..=20 {
            thread::sleep(Duration::from_millis(80));
            replace(&certificates[round % 2]);
        }
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect::<Vec<_>>()
    });
    for certificate in &certificates {
        let count = served.iter().filter(|seen| **seen == certificate.leaf).count();
        assert!(count > 0, "{} was never seen among {}", certificate.kind, served.len());
        let signed = lanes::accelerated(&envoy.counters(), signature(certificate.kind));
        assert!(signed > 0, "{} never signed by the engine", certificate.kind);
    }
    envoy.finish();
}

#[test]
fn switched_off_is_stock() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P256);
    let off: &[(&str, &str)] = &[("HASTEN_DISABLE", "tls")];
    let (envoy, addresses) = start(&place, &build(RELEASES[0]), &[full(&certificate)], How::Accelerated(off));
    drive(addresses[0], &certificate, Protocol::Tls13, Group::X25519);
    assert!(envoy.stands_by());
    envoy.finish();
}
