//! The client side of TLS: one rustls configuration for all connections of a run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::ServerName;
use rustls::{Error, SupportedCipherSuite, SupportedProtocolVersion};

use super::failure::Failures;
use super::verifier::DeferredVerifier;

use super::{Load, Target};

/// The TLS version a run is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tls12,
    Tls13,
}

impl Protocol {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tls12 => "tls1.2",
            Self::Tls13 => "tls1.3",
        }
    }

    fn version(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &rustls::version::TLS12,
            Self::Tls13 => &rustls::version::TLS13,
        }
    }
}

/// The group of the key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    X25519,
    P256,
    P384,
    /// The hybrid of ML-KEM-768 and X25519, which browsers prefer. TLS 1.3 only.
    X25519MlKem768,
}

impl Group {
    pub const ALL: [Self; 4] = [Self::X25519, Self::P256, Self::P384, Self::X25519MlKem768];

    /// Whether it was made after TLS 1.2, and OpenSSL has it since 3.5 only.
    #[must_use]
    pub fn is_hybrid(self) -> bool {
        self == Self::X25519MlKem768
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::P256 => "p-256",
            Self::P384 => "p-384",
            Self::X25519MlKem768 => "x25519mlkem768",
        }
    }

    fn kx_group(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519 => kx_group::X25519,
            Self::P256 => kx_group::SECP256R1,
            Self::P384 => kx_group::SECP384R1,
            Self::X25519MlKem768 => kx_group::X25519MLKEM768,
        }
    }
}

/// The symmetric cipher, the same choice in both protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Cipher {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    fn suites(self) -> [SupportedCipherSuite; 3] {
        use cipher_suite as suite;
        match self {
            Self::Aes128Gcm => [
                suite::TLS13_AES_128_GCM_SHA256,
                suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            ],
            Self::Aes256Gcm => [
                suite::TLS13_AES_256_GCM_SHA384,
                suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            ],
            Self::ChaCha20Poly1305 => [
                suite::TLS13_CHACHA20_POLY1305_SHA256,
                suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            ],
        }
    }
}

/// A name that is not one of the choices.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {given:?}: use one of {choices}")]
pub struct UnknownName {
    what: &'static str,
    given: String,
    choices: &'static str,
}

macro_rules! named {
    ($type:ident, $what:literal, $choices:literal, [$($variant:ident),+]) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(given: &str) -> Result<Self, UnknownName> {
                [$(Self::$variant),+]
                    .into_iter()
                    .find(|choice| choice.as_str() == given)
                    .ok_or_else(|| UnknownName { what: $what, given: given.to_owned(), choices: $choices })
            }
        }
    };
}

named!(Protocol, "protocol", "tls1.2, tls1.3", [Tls12, Tls13]);
named!(
    Group,
    "key exchange group",
    "x25519, p-256, p-384, x25519mlkem768",
    [X25519, P256, P384, X25519MlKem768]
);
named!(
    Cipher,
    "cipher",
    "aes-128-gcm, aes-256-gcm, chacha20-poly1305",
    [Aes128Gcm, Aes256Gcm, ChaCha20Poly1305]
);

/// Shared by the connections of a run.
#[derive(Clone, Debug)]
pub(super) struct ClientTls {
    config: Arc<ClientConfig>,
    verifier: Arc<DeferredVerifier>,
    name: ServerName<'static>,
}

impl ClientTls {
    pub(super) fn new(target: &Target, load: &Load) -> Self {
        let provider = Arc::new(provider(load));
        let verifier = Arc::new(DeferredVerifier::new(
            target.certificate.clone(),
            provider.signature_verification_algorithms,
        ));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[load.protocol.version()])
            .expect("the provider has suites and groups for both protocols")
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_no_client_auth();
        // Every operation must be a full handshake.
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from("localhost").expect("a valid DNS name");
        Self { config: Arc::new(config), verifier, name }
    }

    pub(super) fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }

    /// Warms up the calling thread: the generator's first seed takes tens of milliseconds.
    pub(super) fn warm_up(&self) {
        // A generator that fails here fails again with the first connection, where it is counted.
        let _ = self.config.crypto_provider().secure_random.fill(&mut [0; 32]);
    }

    /// Checks every signature that the run's handshakes brought.
    pub(super) fn wrong_signatures(&self) -> Failures {
        self.verifier.settle()
    }
}

fn provider(load: &Load) -> CryptoProvider {
    let mut provider = default_provider();
    provider.kx_groups = vec![load.group.kx_group()];
    if load.protocol == Protocol::Tls12 {
        // In TLS 1.2 the list of groups also names the curves of ECDSA keys that the client accepts.
        let curves = [Group::P256, Group::P384].into_iter().filter(|&curve| curve != load.group);
        provider.kx_groups.extend(curves.map(Group::kx_group));
    }
    // Browsers' order: servers that leave the choice to the client get AES-128-GCM.
    let offered = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
    let chosen = offered.into_iter().filter(|&cipher| load.cipher.is_none_or(|only| only == cipher));
    provider.cipher_suites = chosen.flat_map(Cipher::suites).collect();
    provider
}
