//! TLS over a non-blocking socket: rustls handles records, the socket transfers them.
//!
//! Independent of HTTP, except for the protocol name it negotiates (ALPN).

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, ConfigBuilder, Error,
    RootCertStore,
};

use crate::base::clock::monotonic_ns;
use crate::base::error::LoadError;
use crate::base::files::read_file;
use crate::net::pinned::Pinned;
use crate::net::socket::{Socket, Transfer};
use crate::net::unverified::Unverified;
use crate::plan::{HttpVersion, TlsOptions};

/// Much more than the certificates of all known authorities.
const MAX_PEM_BYTES: usize = 4 * 1024 * 1024;

const ALPN_HTTP1: &[u8] = b"http/1.1";
const ALPN_HTTP2: &[u8] = b"h2";

/// Settings common to all TLS connections of a load.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    needs_http2: bool,
}

impl TlsClient {
    /// Reads the trusted certificates.
    pub fn prepare(
        host: &str,
        options: &TlsOptions,
        version: HttpVersion,
    ) -> Result<Self, LoadError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| bad(format!("{host:?} is not a valid TLS host name")))?;
        let provider = Arc::new(ring::default_provider());
        let needs_http2 = version == HttpVersion::Http2;
        let mut config = client_config(provider, options)?;
        config.alpn_protocols = vec![if needs_http2 { ALPN_HTTP2 } else { ALPN_HTTP1 }.to_vec()];
        // Each connection represents a new user, who has no session to resume.
        config.resumption = Resumption::disabled();

        Ok(Self {
            config: Arc::new(config),
            name,
            needs_http2,
        })
    }

    /// A connection before its handshake.
    pub fn session(&self) -> io::Result<TlsSession> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| explained(&error))?;
        Ok(TlsSession {
            session,
            needs_http2: self.needs_http2,
            is_tcp_ready: false,
            received_ns: 0,
            is_emptied: false,
            end: None,
            refusal: None,
        })
    }
}

fn bad(message: String) -> LoadError {
    LoadError::Plan(message)
}

fn client_config(
    provider: Arc<CryptoProvider>,
    options: &TlsOptions,
) -> Result<ClientConfig, LoadError> {
    let builder = trusting(provider, options)?;
    let Some(path) = &options.client_cert else {
        if options.client_key.is_some() {
            return Err(bad("client key: add --client-cert FILE".to_owned()));
        }
        return Ok(builder.with_no_client_auth());
    };

    let unreadable = |file: &str, error: &dyn std::fmt::Display| {
        bad(format!(
            "client certificate {file}: {error}; use PEM files of a certificate and its key, without \
            a password"
        ))
    };
    let read = |file: &str| read_pem(file).map_err(|error| unreadable(file, &error));
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(path, &error))?;
    if chain.is_empty() {
        return Err(unreadable(path, &"it contains no certificate"));
    }

    let key_path = options.client_key.as_ref().unwrap_or(path);
    let key = PrivateKeyDer::from_pem_slice(&read(key_path)?)
        .map_err(|error| unreadable(key_path, &error))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| unreadable(path, &error))
}

/// Configures which servers are trusted.
fn trusting(
    provider: Arc<CryptoProvider>,
    options: &TlsOptions,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, LoadError> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?;
    if options.insecure {
        let verifier = Arc::new(Unverified(provider));
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(verifier));
    }

    let Some(path) = &options.ca_file else {
        return Ok(builder.with_root_certificates(roots_of_system()?));
    };
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier_of_file(path, provider)?)))
}

fn read_pem(path: &str) -> Result<Vec<u8>, String> {
    read_file(Path::new(path), MAX_PEM_BYTES)
}

fn verifier_of_file(path: &str, provider: Arc<CryptoProvider>) -> Result<Pinned, LoadError> {
    let unreadable =
        |error: &dyn std::fmt::Display| bad(format!("CA file {path}: {error}; use a PEM file"));
    let (mut roots, mut trusted) = (RootCertStore::empty(), Vec::new());

    let pem = read_pem(path).map_err(|error| unreadable(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        trusted.push(certificate.clone());
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"it contains no certificate"));
    }

    let standard = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unreadable(&error))?;
    Ok(Pinned { standard, trusted })
}

fn roots_of_system() -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let hint = "install them (package ca-certificates), or use --ca-file FILE or --insecure";
        return Err(bad(format!(
            "this system has no trusted certificates; {hint}"
        )));
    }

    Ok(roots)
}

/// How the connection ended: announced by the server, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Announced,
    Truncated,
}

/// One connection's TLS.
pub(crate) struct TlsSession {
    session: ClientConnection,
    needs_http2: bool,
    is_tcp_ready: bool,
    /// Time of the read that returned the latest plaintext.
    received_ns: u64,
    /// Whether the latest read emptied the socket.
    is_emptied: bool,
    end: Option<End>,
    /// The server's alert after the client completed the handshake: with TLS 1.3, the server
    /// verifies the client certificate only then.
    refusal: Option<io::Error>,
}

impl TlsSession {
    /// Continues the handshake; returns whether it is complete.
    pub fn is_connected(&mut self, socket: &Socket) -> io::Result<bool> {
        if !self.is_tcp_ready {
            self.is_tcp_ready = socket.is_connected()?;
        }

        while self.is_tcp_ready && self.session.is_handshaking() {
            if self.flush(socket) == Transfer::Closed {
                return Err(broken_off());
            }
            match self.pull(socket) {
                Ok(Transfer::Bytes(_)) => {}
                Ok(Transfer::WouldBlock) => return Ok(false),
                Ok(Transfer::Closed | Transfer::Broken) => return Err(broken_off()),
                Err(error) => {
                    // An alert tells the server why the client closes.
                    self.flush(socket);
                    return Err(explained(&error));
                }
            }
        }

        if self.is_tcp_ready {
            self.flush(socket);
            self.require_protocol()?;
        }

        Ok(self.is_tcp_ready)
    }

    fn require_protocol(&self) -> io::Result<()> {
        if self.needs_http2 && self.session.alpn_protocol() != Some(ALPN_HTTP2) {
            let reason = "the server does not offer HTTP/2 (ALPN h2); omit --http2";
            return Err(failure(Part::Protocol, reason));
        }
        Ok(())
    }

    /// Encrypts and sends as much as fits. Accepts nothing while earlier bytes wait for the socket,
    /// because bytes buffered by rustls would count as sent.
    pub fn send(&mut self, socket: &Socket, bytes: &[u8]) -> Transfer {
        match self.flush(socket) {
            Transfer::Bytes(_) => {}
            blocked_or_over => return blocked_or_over,
        }

        let accepted = self.session.writer().write(bytes).unwrap_or(0);
        match (self.flush(socket), accepted) {
            (Transfer::Closed, _) => Transfer::Closed,
            (_, 0) => Transfer::WouldBlock,
            _ => Transfer::Bytes(accepted),
        }
    }

    /// Sends what is encrypted but not yet sent.
    pub fn flush(&mut self, socket: &Socket) -> Transfer {
        let mut sent = 0;
        while self.session.wants_write() {
            match self.session.write_tls(&mut Carrier::of(socket)) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Transfer::WouldBlock;
                }
                // Part of it may have arrived: a later read finds out whether a response follows.
                Err(_) if sent > 0 => return Transfer::Bytes(sent),
                Err(_) => return Transfer::Closed,
            }
        }

        Transfer::Bytes(sent)
    }

    /// Returns plaintext as soon as there is any.
    pub fn receive(&mut self, socket: &Socket, buffer: &mut [u8]) -> Transfer {
        self.flush(socket);
        loop {
            match self.session.reader().read(buffer) {
                Ok(0) => {
                    self.end = Some(End::Announced);
                    return Transfer::Closed;
                }
                Ok(count) => return Transfer::Bytes(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.end.is_none() => {}
                Err(_) => {
                    self.end = Some(End::Truncated);
                    return Transfer::Closed;
                }
            }
            match self.pull(socket) {
                Ok(Transfer::Bytes(_)) => {}
                Ok(Transfer::WouldBlock) => return Transfer::WouldBlock,
                // Plaintext that arrived before the end is still readable.
                Ok(Transfer::Closed | Transfer::Broken) => self.end = Some(End::Truncated),
                Err(error) => {
                    self.end = Some(End::Truncated);
                    self.refusal = (self.received_ns == 0).then(|| explained(&error));
                }
            }
        }
    }

    /// Reads records from the socket.
    fn pull(&mut self, socket: &Socket) -> Result<Transfer, Error> {
        let mut carrier = Carrier::of(socket);
        let read = self.session.read_tls(&mut carrier);
        self.is_emptied = carrier.is_emptied;
        match read {
            Ok(0) => return Ok(Transfer::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Transfer::WouldBlock);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Ok(Transfer::Broken);
            }
            Err(error) => return Err(Error::General(error.to_string())),
        }

        let now_ns = monotonic_ns();
        let state = self.session.process_new_packets()?;
        if state.plaintext_bytes_to_read() > 0 {
            self.received_ns = now_ns;
        }

        Ok(Transfer::Bytes(1))
    }

    /// The server's reason for closing the connection before it sent anything, if it gave one.
    /// Returned once.
    pub fn take_refusal(&mut self) -> Option<io::Error> {
        self.refusal.take()
    }

    /// Time of the read that returned the latest plaintext.
    pub fn received_ns(&self) -> u64 {
        self.received_ns
    }

    /// Whether the read that returned the latest plaintext emptied the socket.
    pub fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// Whether the connection ended without a close_notify from the server: the latest bytes may be
    /// truncated.
    pub fn is_truncated(&self) -> bool {
        self.end == Some(End::Truncated)
    }

    /// Announces the close to the server.
    pub fn close(&mut self, socket: &Socket) {
        if self.end.is_none() && self.is_tcp_ready && !self.session.is_handshaking() {
            self.session.send_close_notify();
            self.flush(socket);
        }
    }
}

/// Adapts the socket to the interface that rustls needs.
struct Carrier<'a> {
    socket: &'a Socket,
    /// Whether the read got less than it asked for.
    is_emptied: bool,
}

impl<'a> Carrier<'a> {
    fn of(socket: &'a Socket) -> Self {
        Self {
            socket,
            is_emptied: false,
        }
    }
}

impl Read for Carrier<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.socket.receive(buffer) {
            Transfer::Bytes(count) => {
                self.is_emptied = count < buffer.len();
                Ok(count)
            }
            Transfer::WouldBlock => Err(io::ErrorKind::WouldBlock.into()),
            Transfer::Closed => Ok(0),
            Transfer::Broken => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

impl Write for Carrier<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.socket.send(bytes) {
            Transfer::Bytes(count) => Ok(count),
            Transfer::WouldBlock => Err(io::ErrorKind::WouldBlock.into()),
            Transfer::Closed | Transfer::Broken => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What failed: the beginning of a cause.
#[derive(Clone, Copy)]
enum Part {
    Certificate,
    Protocol,
    Handshake,
}

/// A failed handshake. As with other connections that end after they were established, its request
/// is `reset`.
fn failure(part: Part, reason: &str) -> io::Error {
    let part = match part {
        Part::Certificate => "certificate",
        Part::Protocol => "protocol",
        Part::Handshake => "handshake",
    };
    let cause = format!("TLS {part}: {reason}");
    io::Error::new(io::ErrorKind::ConnectionReset, cause)
}

fn broken_off() -> io::Error {
    failure(Part::Handshake, "the server ended the connection")
}

/// A failed handshake, with a hint.
fn explained(error: &Error) -> io::Error {
    let (part, reason) = match error {
        Error::InvalidCertificate(reason) => (Part::Certificate, rejected_certificate(reason)),
        Error::AlertReceived(alert) => refused_by_server(*alert, error),
        Error::PeerIncompatible(_) => (Part::Protocol, NO_COMMON_VERSION.to_owned()),
        Error::InvalidMessage(_) => {
            let reason = format!(
                "the server does not speak TLS ({error}); try a URL that begins with http://"
            );
            (Part::Protocol, reason)
        }
        _ => (Part::Handshake, error.to_string()),
    };
    failure(part, &reason)
}

const NO_COMMON_VERSION: &str =
    "the server shares no TLS version with loadgen; enable TLS 1.2 or 1.3 on the server";

fn rejected_certificate(reason: &CertificateError) -> String {
    match reason {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the server's certificate is for another name ({reason}); use that name in the \
                URL, or disable verification with --insecure"
            )
        }
        // rustls includes the time in these messages, so every connection would fail with a
        // different cause.
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired; renew it, or disable verification with \
            --insecure"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; check the clocks of both machines, or \
            disable verification with --insecure"
                .to_owned()
        }
        _ => format!(
            "the server's certificate is not trusted ({reason}); add its authority with --ca-file \
            FILE, or disable verification with --insecure"
        ),
    }
}

/// The server's alert.
fn refused_by_server(alert: AlertDescription, error: &Error) -> (Part, String) {
    match alert {
        AlertDescription::NoApplicationProtocol => {
            let reason = "the server does not offer the requested HTTP version (ALPN); try with or \
                without --http2";
            (Part::Protocol, reason.to_owned())
        }
        AlertDescription::ProtocolVersion => (Part::Protocol, NO_COMMON_VERSION.to_owned()),
        AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
            let reason = format!(
                "the server refused it ({error}); it requires a trusted client certificate \
                (--client-cert FILE), or shares no cipher with loadgen"
            );
            (Part::Handshake, reason)
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::DecryptError => {
            let reason = format!(
                "the server refused the client certificate ({error}); send one that it trusts \
                with --client-cert FILE"
            );
            (Part::Certificate, reason)
        }
        _ => (
            Part::Handshake,
            format!("the server refused it ({alert:?})"),
        ),
    }
}
