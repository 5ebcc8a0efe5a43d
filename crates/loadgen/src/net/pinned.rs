//! Accepts a self-signed certificate that the user named as its own authority (`--ca-file`), as
//! OpenSSL and curl do. Everything else is left to the usual verifier.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The error of the usual verifier for an authority used as a server's certificate. It has checked
/// the dates before.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The usual verifier, and the certificates of `--ca-file`.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub usual: Arc<WebPkiServerVerifier>,
    pub trusted: Vec<CertificateDer<'static>>,
}

impl Pinned {
    fn is_trusted_itself(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
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
        let usual =
            self.usual
                .verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        match usual {
            Err(error) if self.is_trusted_itself(certificate, &error) => {
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
        self.usual
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
