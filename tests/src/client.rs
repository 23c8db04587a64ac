//! One careful client: it verifies everything, makes one request, and reports exactly what happened.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hasten_bench::certificates::Certificate;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore};
use rustls::{SignatureScheme, SupportedProtocolVersion, version};

const PATIENCE: Duration = Duration::from_secs(20);

/// A client's configuration; `get` can be called repeatedly.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A complete answer over a verified connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub protocol: ProtocolVersion,
    pub handshake: HandshakeKind,
    pub certificate: Option<CertificateDer<'static>>,
    /// The request was sent, and taken, as early data.
    pub early: bool,
    pub status: String,
    pub body: String,
}

/// Builds a [`Client`].
#[derive(Debug)]
pub struct Builder {
    roots: RootCertStore,
    provider: CryptoProvider,
    versions: Vec<&'static SupportedProtocolVersion>,
    name: ServerName<'static>,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    resumption: Resumption,
    early_data: bool,
}

/// The kind of key that the server authenticates with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Rsa,
    Ecdsa,
}

impl Proof {
    fn is(self, scheme: SignatureScheme) -> bool {
        let name = scheme.as_str().unwrap_or_default();
        name.starts_with(match self {
            Self::Rsa => "RSA",
            Self::Ecdsa => "ECDSA",
        })
    }
}

impl Client {
    /// Trusts one root, and requests `localhost` with everything that rustls offers.
    #[must_use]
    pub fn trusting(root: &Path) -> Builder {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(root).unwrap()).unwrap();
        Builder {
            roots,
            provider: aws_lc_rs::default_provider(),
            versions: vec![&version::TLS13, &version::TLS12],
            name: ServerName::try_from("localhost").unwrap(),
            identity: None,
            resumption: Resumption::disabled(),
            early_data: false,
        }
    }

    /// The bytes of its ClientHello.
    #[must_use]
    pub fn hello(&self) -> Vec<u8> {
        let mut hello = Vec::new();
        self.connection().write_tls(&mut hello).unwrap();
        hello
    }

    /// Connects, requests `/`, and reads to the end.
    pub fn get(&self, address: SocketAddr) -> Result<Answer, String> {
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        self.get_over(socket)
    }

    /// As [`get`](Self::get), over a transport that may treat the bytes strangely.
    pub fn get_over(&self, mut socket: impl Read + Write) -> Result<Answer, String> {
        let mut tls = self.connection();
        let request = self.request();
        let sent_early = send_early(&mut tls, &request).map_err(|error| error.to_string())?;
        let text =
            converse(&mut tls, &mut socket, &request, sent_early).map_err(|error| error.to_string())?;
        let (head, body) =
            text.split_once("\r\n\r\n").ok_or_else(|| format!("incomplete answer: {text:?}"))?;
        Ok(Answer {
            protocol: tls.protocol_version().expect("the handshake is over"),
            handshake: tls.handshake_kind().expect("the handshake is over"),
            certificate: tls.peer_certificates().and_then(|chain| Some(chain.first()?.clone().into_owned())),
            early: sent_early && tls.is_early_data_accepted(),
            status: head.lines().next().unwrap_or_default().to_owned(),
            body: body.to_owned(),
        })
    }

    fn request(&self) -> String {
        format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.name.to_str())
    }

    /// A connection that has not started yet.
    #[must_use]
    pub fn connection(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone()).unwrap()
    }
}

fn send_early(tls: &mut ClientConnection, request: &str) -> io::Result<bool> {
    match tls.early_data() {
        Some(mut early) => early.write_all(request.as_bytes()).map(|()| true),
        None => Ok(false),
    }
}

/// Returns the answer to `request`, which may have been sent as early data and then rejected.
fn converse(
    tls: &mut ClientConnection,
    socket: &mut (impl Read + Write),
    request: &str,
    sent_early: bool,
) -> io::Result<String> {
    while tls.is_handshaking() {
        tls.complete_io(socket)?;
    }
    if !(sent_early && tls.is_early_data_accepted()) {
        tls.writer().write_all(request.as_bytes())?;
    }
    let mut text = String::new();
    match rustls::Stream::new(tls, socket).read_to_string(&mut text) {
        // Servers may omit close_notify: the caller sees whether the answer is complete.
        Err(error) if text.is_empty() || error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(text),
    }
}

impl Builder {
    #[must_use]
    pub fn only(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    /// Offers groups in this order, with a share of the first only.
    #[must_use]
    pub fn groups(mut self, groups: &[&'static dyn SupportedKxGroup]) -> Self {
        self.provider.kx_groups = groups.to_vec();
        self
    }

    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = ServerName::try_from(name.to_owned()).unwrap();
        self
    }

    /// Presents its own certificate when asked.
    #[must_use]
    pub fn showing(mut self, certificate: &Certificate) -> Self {
        let (chain, key) = (&certificate.chain, &certificate.key);
        let chain = CertificateDer::pem_file_iter(chain).unwrap().map(Result::unwrap).collect();
        self.identity = Some((chain, PrivateKeyDer::from_pem_file(key).unwrap()));
        self
    }

    /// Accepts only one kind of signature in the handshake (certificates are signed as they are).
    #[must_use]
    pub fn proved_by(mut self, proof: Proof) -> Self {
        let known = self.provider.signature_verification_algorithms.mapping.iter().copied();
        let wanted: Vec<_> = known.filter(|(scheme, _)| proof.is(*scheme)).collect();
        // Once per test.
        self.provider.signature_verification_algorithms.mapping = wanted.leak();
        self
    }

    /// Later calls resume the sessions of earlier ones.
    #[must_use]
    pub fn resuming(mut self) -> Self {
        self.resumption = Resumption::in_memory_sessions(64);
        self
    }

    /// Sends the request with the first bytes if possible: when it resumes a session.
    #[must_use]
    pub fn with_early_data(mut self) -> Self {
        self.early_data = true;
        self
    }

    #[must_use]
    pub fn build(self) -> Client {
        let builder = ClientConfig::builder_with_provider(Arc::new(self.provider));
        let builder =
            builder.with_protocol_versions(&self.versions).unwrap().with_root_certificates(self.roots);
        let mut config = match self.identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.enable_early_data = self.early_data;
        config.resumption = self.resumption;
        Client { config: Arc::new(config), name: self.name }
    }
}
