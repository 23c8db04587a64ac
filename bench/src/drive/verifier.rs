//! The server's proof of identity, checked in full but off the clock.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::failure::{Failure, Failures};

/// Accepts one leaf certificate, byte for byte, and keeps the handshakes' signatures for [`settle`](Self::settle).
///
/// Building a chain would find nothing that the comparison misses. Verifying a P-384 signature costs more than a
/// batched server needs for the whole handshake: if done immediately, the driver and not the server would be the limit.
#[derive(Debug)]
pub(super) struct DeferredVerifier {
    certificate: OnceLock<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
    pending: Mutex<Vec<Proof>>,
}

#[derive(Debug)]
struct Proof {
    verify: Verify,
    message: Vec<u8>,
    signature: DigitallySignedStruct,
}

type Verify = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error>;

impl DeferredVerifier {
    pub(super) fn new(
        certificate: Option<CertificateDer<'static>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        let certificate = certificate.map(OnceLock::from).unwrap_or_default();
        Self { certificate, algorithms, pending: Mutex::default() }
    }

    /// Verifies every signature since the last call; each wrong one is a failure.
    pub(super) fn settle(&self) -> Failures {
        let proofs = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = Failures::default();
        let Some(certificate) = self.certificate.get() else { return failures };
        for proof in proofs {
            if let Err(error) =
                (proof.verify)(&proof.message, certificate, &proof.signature, &self.algorithms)
            {
                failures.record(&Failure::Tls(error));
            }
        }
        failures
    }

    fn defer(
        &self,
        verify: Verify,
        message: &[u8],
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let proof = Proof { verify, message: message.to_vec(), signature: signature.clone() };
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(proof);
        Ok(HandshakeSignatureValid::assertion())
    }
}

impl ServerCertVerifier for DeferredVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let expected = self.certificate.get_or_init(|| end_entity.clone().into_owned());
        if expected == end_entity {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.defer(verify_tls12_signature, message, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.defer(verify_tls13_signature, message, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
