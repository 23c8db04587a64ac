//! Certificates like those of public servers: a leaf, an intermediate in the chain file, a root outside it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::pki_types::CertificateDer;

/// The key of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    Rsa2048,
    Rsa3072,
    Rsa4096,
    P256,
    P384,
}

impl KeyKind {
    pub const ALL: [Self; 5] = [Self::Rsa2048, Self::Rsa3072, Self::Rsa4096, Self::P256, Self::P384];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa-2048",
            Self::Rsa3072 => "rsa-3072",
            Self::Rsa4096 => "rsa-4096",
            Self::P256 => "p-256",
            Self::P384 => "p-384",
        }
    }

    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            Self::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            Self::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            Self::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
            Self::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        }
    }

    /// The key with which a public authority would sign this kind.
    fn authority(self) -> Self {
        match self {
            Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096 => Self::Rsa2048,
            Self::P256 | Self::P384 => self,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KeyKind {
    type Err = UnknownKeyKind;

    fn from_str(given: &str) -> Result<Self, UnknownKeyKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == given);
        known.ok_or_else(|| UnknownKeyKind(given.to_owned()))
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown certificate {0:?}: use one of rsa-2048, rsa-3072, rsa-4096, p-256, p-384")]
pub struct UnknownKeyKind(String);

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot make a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// A certificate on disk, in the forms that servers and clients need.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub kind: KeyKind,
    /// Leaf and intermediate, as a server's `ssl_certificate` wants them.
    pub chain: PathBuf,
    pub key: PathBuf,
    /// Chain and key in one file, as HAProxy's `crt` wants them.
    pub bundle: PathBuf,
    /// The root that a client trusts.
    pub root: PathBuf,
    pub leaf: CertificateDer<'static>,
}

impl Certificate {
    /// A certificate for `localhost` and 127.0.0.1, with its own authority.
    pub fn create(dir: &Path, kind: KeyKind) -> Result<Self, CertificateError> {
        Authority::create(dir, kind.authority())?.issue(dir, kind, "localhost")
    }
}

/// A root and an intermediate that sign leaves: for servers, or for clients that must present one.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    intermediate: String,
    root: PathBuf,
}

impl Authority {
    pub fn create(dir: &Path, kind: KeyKind) -> Result<Self, CertificateError> {
        let root_key = kind.generate()?;
        let root = authority("hasten test root");
        let root_pem = root.self_signed(&root_key)?.pem();
        let root_issuer = Issuer::new(root, root_key);

        let key = kind.generate()?;
        let params = authority("hasten test intermediate");
        let intermediate = params.signed_by(&key, &root_issuer)?.pem();
        let path = dir.join(format!("{kind}-root.pem"));
        write(&path, &root_pem)?;
        Ok(Self { issuer: Issuer::new(params, key), intermediate, root: path })
    }

    /// A leaf for the DNS name `name`; `localhost` also covers 127.0.0.1.
    pub fn issue(&self, dir: &Path, kind: KeyKind, name: &str) -> Result<Certificate, CertificateError> {
        let mut names = vec![name.to_owned()];
        if name == "localhost" {
            names.push("127.0.0.1".to_owned());
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;

        let key = kind.generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let chain_pem = leaf.pem() + &self.intermediate;
        let key_pem = key.serialize_pem();
        let file = |suffix: &str| dir.join(format!("{kind}-{name}{suffix}.pem"));
        let (chain, key, bundle) = (file(""), file("-key"), file("-bundle"));
        write(&chain, &chain_pem)?;
        write(&key, &key_pem)?;
        write(&bundle, &(chain_pem + &key_pem))?;
        Ok(Certificate { kind, chain, key, bundle, root: self.root.clone(), leaf: leaf.der().clone() })
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn write(path: &Path, text: &str) -> Result<(), CertificateError> {
    fs::write(path, text).map_err(|source| CertificateError::Write { path: path.to_owned(), source })
}
