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

use crate::byte_servers::{ThreadedServer, read_request, respond_to_all};

/// How long the proxy waits for bytes from one side.
const READ_TIMEOUT: Duration = Duration::from_millis(1);

/// A self-signed certificate, its key and its PEM file.
pub struct Certificate {
    pub ca_file: PathBuf,
    certified: CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    pub fn for_names(names: &[&str]) -> Self {
        Self::with(names, |_| {})
    }

    /// `change` modifies the fields of the certificate.
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
    pub fn trusting_options(&self) -> TlsOptions {
        TlsOptions {
            ca_file: Some(self.ca_file.display().to_string()),
            ..TlsOptions::default()
        }
    }

    /// The certificate and its key in PEM format, for a client.
    pub fn pem_with_key(&self) -> String {
        self.certified.cert.pem() + &self.certified.signing_key.serialize_pem()
    }

    /// A server configuration that accepts only clients with the certificate of `client`.
    pub fn config_for_client(&self, client: &Self) -> Arc<ServerConfig> {
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

/// What marks the end of a body without a length.
#[derive(Clone, Copy)]
pub enum BodyEnd {
    /// A TLS close_notify alert.
    CloseNotify,
    /// Only the end of the TCP connection.
    ConnectionClose,
}

/// Responds with `body` over TLS and HTTP/1.1.
pub fn https_server(certificate: &Certificate, body: Vec<u8>) -> ThreadedServer {
    https_server_after(certificate, body, 0)
}

/// Responds with `hello` over TLS, after a handshake that takes at least this long.
pub fn https_server_with_slow_handshake(
    certificate: &Certificate,
    handshake_delay_ns: u64,
) -> ThreadedServer {
    https_server_after(certificate, b"hello".to_vec(), handshake_delay_ns)
}

/// Responds with `hello`, but only to clients with the certificate `client`.
pub fn https_server_for_client(certificate: &Certificate, client: &Certificate) -> ThreadedServer {
    https_server_with(certificate.config_for_client(client), b"hello".to_vec(), 0)
}

fn https_server_after(
    certificate: &Certificate,
    body: Vec<u8>,
    handshake_delay_ns: u64,
) -> ThreadedServer {
    https_server_with(certificate.config(&["http/1.1"]), body, handshake_delay_ns)
}

fn https_server_with(
    config: Arc<ServerConfig>,
    body: Vec<u8>,
    handshake_delay_ns: u64,
) -> ThreadedServer {
    ThreadedServer::start(move |stream, counters| {
        thread::sleep(Duration::from_nanos(handshake_delay_ns));
        let mut stream =
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        respond_to_all(&mut stream, counters, &body);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

/// Responds with the close-delimited body `hello`.
pub fn https_server_until_close(certificate: &Certificate, end: BodyEnd) -> ThreadedServer {
    let config = certificate.config(&["http/1.1"]);
    ThreadedServer::start(move |stream, _| {
        let mut stream =
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        if read_request(&mut stream).is_none() {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
        if matches!(end, BodyEnd::CloseNotify) {
            stream.conn.send_close_notify();
        }
        let _ = stream.flush();
        close_gracefully(&stream.sock);
    })
}

/// A TLS proxy for HTTP/2 that reads no faster than its backend.
pub fn http2_proxy(backend: SocketAddr, certificate: &Certificate) -> ThreadedServer {
    let config = certificate.config(&["h2"]);
    ThreadedServer::start(move |stream, _| {
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut client = StreamOwned::new(connection, stream);
        let mut server = TcpStream::connect(backend).unwrap();
        server.set_read_timeout(Some(READ_TIMEOUT)).unwrap();

        // Data from the backend is forwarded when the client sends nothing.
        while let Some(count) = forward(&mut client, &mut server) {
            if count == 0 && forward(&mut server, &mut client).is_none() {
                return;
            }
        }
    })
}

/// Forwards data that arrives within [`READ_TIMEOUT`]; returns the number of bytes, or `None` after
/// the end of a connection.
fn forward(from: &mut impl Read, to: &mut impl Write) -> Option<usize> {
    let mut buffer = [0; 16 * 1024];
    match from.read(&mut buffer) {
        Ok(0) => None,
        Ok(count) => to.write_all(&buffer[..count]).ok().map(|()| count),
        Err(error) => (error.kind() == ErrorKind::WouldBlock).then_some(0),
    }
}

/// Shuts down the sending side and waits until the client closes the connection: a reset would
/// discard data in transit.
fn close_gracefully(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}
