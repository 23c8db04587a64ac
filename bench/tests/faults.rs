//! Every way in which a server can be wrong must be counted under its own name: a driver that overlooks a fault
//! would turn a broken acceleration into a fast one.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{self, Cipher, FailureKind, Group, Load, Outcome, Protocol, Target};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{ServerConfig, ServerConnection, SignatureAlgorithm, SignatureScheme, StreamOwned};

const BODY: &str = "hello from the fixture\n";

/// What a connection gets in place of a handshake and an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Answer(&'static str),
    /// Accepts and closes.
    CloseAtOnce,
    /// Completes the handshake and closes without an answer.
    CloseAfterHandshake,
    /// Accepts and stays silent.
    Silence,
    /// Sends bytes that are not TLS.
    Garbage,
}

fn good_answer() -> &'static str {
    "HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\nhello from the fixture\n"
}

struct Fixture {
    _dir: tempfile::TempDir,
    certificate: Certificate,
}

impl Fixture {
    fn new(kind: KeyKind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let certificate = Certificate::create(dir.path(), kind).unwrap();
        Self { _dir: dir, certificate }
    }

    fn key(&self) -> CertifiedKey {
        let chain =
            CertificateDer::pem_file_iter(&self.certificate.chain).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(&self.certificate.key).unwrap();
        CertifiedKey::new(chain, rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap())
    }

    fn target(&self, address: SocketAddr) -> Target {
        Target {
            address,
            certificate: Some(self.certificate.leaf.clone()),
            body: Some(BODY.as_bytes().to_vec()),
        }
    }

    fn drive(&self, behaviour: Behaviour) -> Outcome {
        let address = serve(self.key(), behaviour);
        drive::run(&self.target(address), &short()).unwrap()
    }
}

fn short() -> Load {
    Load {
        concurrency: 4,
        duration: Duration::from_millis(300),
        timeout: Duration::from_millis(200),
        ..Load::default()
    }
}

/// A server in threads of this process; it ends with the process.
fn serve(key: CertifiedKey, behaviour: Behaviour) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(key))));
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || converse(stream, config, behaviour));
        }
    });
    address
}

/// Errors are left to the client: it must notice them.
fn converse(mut stream: TcpStream, config: Arc<ServerConfig>, behaviour: Behaviour) {
    match behaviour {
        Behaviour::CloseAtOnce => return,
        Behaviour::Silence => {
            let _ = stream.read_to_end(&mut Vec::new());
            return;
        }
        Behaviour::Garbage => {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            return;
        }
        Behaviour::Answer(_) | Behaviour::CloseAfterHandshake => {}
    }
    let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut request = [0; 1024];
    if tls.read(&mut request).is_err() {
        return;
    }
    if let Behaviour::Answer(answer) = behaviour {
        let _ = tls.write_all(answer.as_bytes());
        tls.conn.send_close_notify();
        let _ = tls.flush();
    }
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Signs, and flips one bit of every signature after the first `good` ones.
#[derive(Debug)]
struct Forger {
    real: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
    good: std::sync::atomic::AtomicUsize,
}

impl SigningKey for Forger {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.real.choose_scheme(&[self.scheme]).filter(|_| offered.contains(&self.scheme))?;
        use std::sync::atomic::Ordering::SeqCst;
        let good = self.good.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        Some(Box::new(Forgery { signer, good }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.real.algorithm()
    }
}

#[derive(Debug)]
struct Forgery {
    signer: Box<dyn Signer>,
    good: bool,
}

impl Signer for Forgery {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let mut signature = self.signer.sign(message)?;
        if !self.good {
            let middle = signature.len() / 2;
            signature[middle] ^= 1;
        }
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

/// Nothing succeeded, something failed, and every failure has this reason.
fn assert_only(outcome: &Outcome, kind: FailureKind) {
    assert_eq!(outcome.ops, 0, "{}", outcome.failures);
    assert!(outcome.failures.count(kind) > 0, "{}", outcome.failures);
    assert_eq!(outcome.failures.total(), outcome.failures.count(kind), "{}", outcome.failures);
}

#[test]
fn a_good_server_has_no_failure() {
    let outcome = Fixture::new(KeyKind::P256).drive(Behaviour::Answer(good_answer()));
    assert_eq!(outcome.failures.total(), 0, "{}", outcome.failures);
    assert!(outcome.ops >= 4);
    assert_eq!(outcome.ops, outcome.latency.len());
}

#[test]
fn a_wrong_body() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nhello from the fixturE\n";
    assert_only(&Fixture::new(KeyKind::P256).drive(Behaviour::Answer(answer)), FailureKind::Body);
}

#[test]
fn bytes_after_the_body() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nhello from the fixture\nmore";
    assert_only(&Fixture::new(KeyKind::P256).drive(Behaviour::Answer(answer)), FailureKind::Body);
}

#[test]
fn another_status() {
    let answer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    let outcome = Fixture::new(KeyKind::P256).drive(Behaviour::Answer(answer));
    assert_only(&outcome, FailureKind::Status);
    assert!(outcome.failures.to_string().contains("500 Internal Server Error"));
}

#[test]
fn an_answer_that_ends_early() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nhello";
    assert_only(&Fixture::new(KeyKind::P256).drive(Behaviour::Answer(answer)), FailureKind::ClosedEarly);
}

#[test]
fn a_server_that_closes() {
    let fixture = Fixture::new(KeyKind::P256);
    assert_only(&fixture.drive(Behaviour::CloseAtOnce), FailureKind::ClosedEarly);
    assert_only(&fixture.drive(Behaviour::CloseAfterHandshake), FailureKind::ClosedEarly);
}

#[test]
fn a_server_that_is_silent() {
    let outcome = Fixture::new(KeyKind::P256).drive(Behaviour::Silence);
    assert_only(&outcome, FailureKind::Timeout);
    assert!(outcome.failures.to_string().contains("in the handshake"));
}

#[test]
fn a_server_that_does_not_speak_tls() {
    assert_only(&Fixture::new(KeyKind::P256).drive(Behaviour::Garbage), FailureKind::Tls);
}

#[test]
fn no_server() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let outcome = drive::run(&Fixture::new(KeyKind::P256).target(address), &short()).unwrap();
    assert_only(&outcome, FailureKind::Connect);
    // A slot rests after a failure: four of them, three sweeps.
    assert!(outcome.failures.total() < 40, "{}", outcome.failures);
}

#[test]
fn another_certificate() {
    let (expected, other) = (Fixture::new(KeyKind::P256), Fixture::new(KeyKind::P256));
    let address = serve(other.key(), Behaviour::Answer(good_answer()));
    let outcome = drive::run(&expected.target(address), &short()).unwrap();
    assert_only(&outcome, FailureKind::Certificate);
}

#[test]
fn wrong_signatures_among_right_ones() {
    for (kind, scheme) in [
        (KeyKind::P256, SignatureScheme::ECDSA_NISTP256_SHA256),
        (KeyKind::P384, SignatureScheme::ECDSA_NISTP384_SHA384),
        (KeyKind::Rsa2048, SignatureScheme::RSA_PSS_SHA256),
    ] {
        for protocol in [Protocol::Tls13, Protocol::Tls12] {
            let fixture = Fixture::new(kind);
            let mut key = fixture.key();
            let good = 10.into();
            key.key = Arc::new(Forger { real: Arc::clone(&key.key), scheme, good });
            let address = serve(key, Behaviour::Answer(good_answer()));
            let load = Load { protocol, ..short() };
            let outcome = drive::run(&fixture.target(address), &load).unwrap();
            let what = format!("{kind} {protocol}: {}", outcome.failures);
            assert_eq!(outcome.ops, 10, "{what}");
            assert!(outcome.failures.count(FailureKind::Signature) > 0, "{what}");
            assert_eq!(outcome.failures.total(), outcome.failures.count(FailureKind::Signature), "{what}");
        }
    }
}

#[test]
fn groups_ciphers_and_threads() {
    let fixture = Fixture::new(KeyKind::P256);
    let address = serve(fixture.key(), Behaviour::Answer(good_answer()));
    for group in [Group::X25519, Group::P256, Group::P384] {
        for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            for protocol in [Protocol::Tls13, Protocol::Tls12] {
                let duration = Duration::from_millis(50);
                let load =
                    Load { group, cipher: Some(cipher), protocol, threads: 2, duration, ..Load::default() };
                let load = Load { concurrency: 5, ..load };
                let outcome = drive::run(&fixture.target(address), &load).unwrap();
                let what = format!("{group} {cipher} {protocol}");
                assert_eq!(outcome.failures.total(), 0, "{what}: {}", outcome.failures);
                assert!(outcome.ops >= 5, "{what}: {} operations", outcome.ops);
            }
        }
    }
}
