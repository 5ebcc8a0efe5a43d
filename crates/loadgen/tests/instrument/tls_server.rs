//! TLS servers with generated certificates.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use loadgen::plan::TlsOptions;
use rcgen::{CertificateParams, CertifiedKey};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::byte_servers::{Scripted, answer_all, read_request};

/// How long a proxy waits for bytes from one side.
const TICK: Duration = Duration::from_millis(1);

/// A self-signed certificate, and its file.
pub struct Certificate {
    pub ca_file: PathBuf,
    certified: CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    pub fn for_names(names: &[&str]) -> Self {
        Self::with(names, |_| {})
    }

    /// With these changes to its fields.
    pub fn with(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let cert = params.self_signed(&signing_key).unwrap();
        let certified = CertifiedKey { cert, signing_key };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("authority-{}-{number}.pem", std::process::id());
        let ca_file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        std::fs::write(&ca_file, certified.cert.pem()).unwrap();
        Self { ca_file, certified }
    }

    /// Options that trust only this certificate.
    pub fn trusted(&self) -> TlsOptions {
        TlsOptions {
            ca_file: Some(self.ca_file.display().to_string()),
            ..TlsOptions::default()
        }
    }

    /// The certificate and its key in one PEM text, for a client.
    pub fn pem_with_key(&self) -> String {
        self.certified.cert.pem() + &self.certified.signing_key.serialize_pem()
    }

    /// Serves only clients with this certificate.
    pub fn config_for(&self, client: &Self) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(client.certified.cert.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .build()
            .unwrap();
        let key = PrivateKeyDer::Pkcs8(self.certified.signing_key.serialize_der().into());
        let chain = vec![self.certified.cert.der().clone()];
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        Arc::new(config)
    }

    pub fn config(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(self.certified.signing_key.serialize_der().into());
        let chain = vec![self.certified.cert.der().clone()];
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Arc::new(config)
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.ca_file);
    }
}

/// How a body without length ends.
#[derive(Clone, Copy)]
pub enum End {
    /// With a TLS close_notify.
    Announced,
    /// With the end of the TCP connection only.
    CutOff,
}

/// Responds over TLS with HTTP/1.1.
pub fn answering(certificate: &Certificate, body: Vec<u8>) -> Scripted {
    answering_after(certificate, body, 0)
}

/// Responds with `hello` over TLS, after a slow handshake.
pub fn with_slow_handshake(certificate: &Certificate, handshake_delay_ns: u64) -> Scripted {
    answering_after(certificate, b"hello".to_vec(), handshake_delay_ns)
}

/// Responds with `hello`, only to clients with this certificate.
pub fn answering_client(certificate: &Certificate, client: &Certificate) -> Scripted {
    answering_by(certificate.config_for(client), b"hello".to_vec(), 0)
}

fn answering_after(certificate: &Certificate, body: Vec<u8>, handshake_delay_ns: u64) -> Scripted {
    answering_by(certificate.config(&["http/1.1"]), body, handshake_delay_ns)
}

fn answering_by(config: Arc<ServerConfig>, body: Vec<u8>, handshake_delay_ns: u64) -> Scripted {
    Scripted::start(move |stream, seen| {
        thread::sleep(Duration::from_nanos(handshake_delay_ns));
        let mut stream =
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        answer_all(&mut stream, seen, &body);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

/// Responds with a close-delimited body.
pub fn answering_until_close(certificate: &Certificate, end: End) -> Scripted {
    let config = certificate.config(&["http/1.1"]);
    Scripted::start(move |stream, _| {
        let mut stream =
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        if read_request(&mut stream).is_none() {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
        if matches!(end, End::Announced) {
            stream.conn.send_close_notify();
        }
        let _ = stream.flush();
        finish(&stream.sock);
    })
}

/// A proxy that ends the TLS of HTTP/2 connections, and reads no faster than its backend.
pub fn in_front_of(backend: SocketAddr, certificate: &Certificate) -> Scripted {
    let config = certificate.config(&["h2"]);
    Scripted::start(move |stream, _| {
        stream.set_read_timeout(Some(TICK)).unwrap();
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut client = StreamOwned::new(connection, stream);
        let mut server = TcpStream::connect(backend).unwrap();
        server.set_read_timeout(Some(TICK)).unwrap();
        // The backend's bytes can wait until the client has sent everything.
        while let Some(count) = forward(&mut client, &mut server) {
            if count == 0 && forward(&mut server, &mut client).is_none() {
                return;
            }
        }
    })
}

/// Forwards what arrives within a tick. Returns the number of bytes; `None` after the end of a
/// connection.
fn forward(from: &mut impl Read, to: &mut impl Write) -> Option<usize> {
    let mut buffer = [0; 16 * 1024];
    match from.read(&mut buffer) {
        Ok(0) => None,
        Ok(count) => to.write_all(&buffer[..count]).ok().map(|()| count),
        Err(error) => (error.kind() == ErrorKind::WouldBlock).then_some(0),
    }
}

/// Ends the sending side and waits for the client's: a reset would discard data in transit.
fn finish(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}
