//! A server that attacks its clients, in a separate thread.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;

use loadgen::plan::HttpVersion;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::attack::Attack;
use crate::http2_attacks::{HEADERS, SETTINGS, frame};
use crate::tls_server::Certificate;

const PREFACE_BYTES: usize = 24;

/// The server; runs until it is dropped.
pub struct AttackServer {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl AttackServer {
    pub fn start(attack: &Attack, version: HttpVersion, certificate: Option<&Certificate>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let protocol = match version {
            HttpVersion::Http1_0 | HttpVersion::Http1 => "http/1.1",
            HttpVersion::Http2 => "h2",
        };
        let acceptor = certificate.map(|certificate| certificate.config(&[protocol]).into());

        let attack = attack.clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.spawn(accept(listener, acceptor, attack, version));
            let _ = runtime.block_on(stopped);
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for AttackServer {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    attack: Attack,
    version: HttpVersion,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        // Without this, each short write over TLS waits 40 ms for the acknowledgement of the
        // previous one.
        let _ = stream.set_nodelay(true);
        let (acceptor, attack) = (acceptor.clone(), attack.clone());
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else {
                return serve(stream, &attack, version).await;
            };
            match acceptor.accept(stream).await {
                Ok(stream) => serve(stream, &attack, version).await,
                Err(error) => Err(error),
            }
        });
    }
}

/// Serves until either side closes the connection.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    attack: &Attack,
    version: HttpVersion,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    match version {
        HttpVersion::Http1_0 | HttpVersion::Http1 => read_head(&mut reader).await?,
        HttpVersion::Http2 => {
            reader.read_exact(&mut [0; PREFACE_BYTES]).await?;
            while read_frame(&mut reader).await? != HEADERS {}
            writer.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        }
    }
    writer.write_all(&attack.start).await?;
    writer.flush().await?;
    if attack.closes {
        return writer.shutdown().await;
    }

    let flood = async {
        while !attack.endless.is_empty() {
            if !attack.pause.is_zero() {
                tokio::time::sleep(attack.pause).await;
            }
            writer.write_all(&attack.endless).await?;
            writer.flush().await?;
        }
        std::future::pending::<io::Result<()>>().await
    };
    let mut sink = tokio::io::sink();
    tokio::select! {
        ended = flood => ended,
        ended = tokio::io::copy(&mut reader, &mut sink), if attack.keeps_reading => ended.map(drop),
    }
}

/// Reads the head of a request, and the part of the body that arrives with it.
async fn read_head(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut received = Vec::new();
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        if reader.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Reads a frame; returns its type.
async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<u8> {
    let mut header = [0; 9];
    reader.read_exact(&mut header).await?;
    let [high, middle, low, kind, ..] = header;
    let payload_bytes = u32::from_be_bytes([0, high, middle, low]);
    reader
        .read_exact(&mut vec![0; payload_bytes as usize])
        .await?;
    Ok(kind)
}
