//! Accepts a self-signed certificate that the user named as its own authority (`--ca-file`), as
//! OpenSSL and curl do. Everything else is left to the standard verifier.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The standard verifier's error for a CA certificate used as a server certificate. The validity
/// dates were checked before.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The standard verifier, and the certificates of `--ca-file`.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub standard: Arc<WebPkiServerVerifier>,
    pub trusted: Vec<CertificateDer<'static>>,
}

impl Pinned {
    fn is_pinned(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(reason)) = error else {
            return false;
        };
        format!("{reason:?}").contains(AUTHORITY_AS_SERVER)
            && self.trusted.iter().any(|one| one == certificate)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result =
            self.standard
                .verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        match result {
            Err(error) if self.is_pinned(certificate, &error) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.standard
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.standard
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.standard.supported_verify_schemes()
    }
}
