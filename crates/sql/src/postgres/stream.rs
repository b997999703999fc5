//! Byte streams to a server, which the client's library opens and [`Executor`](super::executor::Executor) goes on with.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::SILENCE;
use super::login::{Server, socket_path};
use super::stream_limit::Limit;
use model::config::postgres::DEFAULT_PORT;

/// A connection that is idle this long is asked whether it is still there, so often, this many times: a network that swallows
/// everything is noticed within some 15 s, whether an answer is awaited or a statement on its way ([`SILENCE`]).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;

/// What bytes go over: a socket, or encryption over one.
trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A stream with several owners, of whom one uses it at a time: the lock is never waited for.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Limited<dyn Bytes>>>);

/// A stream over which no more comes than a server may say.
struct Limited<S: ?Sized> {
    limit: Limit,
    stream: S,
}

impl Shared {
    fn new(stream: impl Bytes + 'static, limit: Limit) -> Self {
        Self(Arc::new(Mutex::new(Limited { limit, stream })))
    }

    /// Opens a socket to a server, at one of its network addresses if it has any. The server is asked first whether it encrypts, or
    /// never.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) async fn open(server: &Server, address: Option<IpAddr>, may_encrypt: bool) -> io::Result<Self> {
        let limit = if may_encrypt { Limit::Undecided } else { Limit::messages() };
        let port = server.node.port.unwrap_or(DEFAULT_PORT);
        let Some(address) = address else {
            return Ok(Self::new(UnixStream::connect(socket_path(&server.node.host, port)).await?, limit));
        };
        let stream = TcpStream::connect((address, port)).await?;
        stream.set_nodelay(true)?;
        sockopt::set_tcp_user_timeout(&stream, SILENCE.as_millis() as u32)?;
        sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_RETRIES)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        Ok(Self::new(stream, limit))
    }

    fn lock(&self) -> MutexGuard<'_, Limited<dyn Bytes + 'static>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl AsyncRead for Shared {
    fn poll_read(self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Limited { limit, stream } = &mut *self.lock();
        let before = into.filled().len();
        let read = Pin::new(stream).poll_read(task, into);
        if matches!(read, Poll::Ready(Ok(()))) {
            limit.came(&into.filled()[before..])?;
        }
        read
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Limited { limit, stream } = &mut *self.lock();
        let written = Pin::new(stream).poll_write(task, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            limit.was_sent();
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(task)
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(task)
    }
}

/// Encrypts a stream, and keeps what it became.
pub(super) struct Encrypting {
    connector: <MakeRustlsConnect as MakeTlsConnect<Shared>>::TlsConnect,
    encrypted: Arc<OnceLock<Shared>>,
}

impl Encrypting {
    /// For a server of this name. The stream will be in `encrypted`, if the server encrypts.
    pub(super) fn new(tls: &MakeRustlsConnect, host: &str, encrypted: Arc<OnceLock<Shared>>) -> io::Result<Self> {
        let connector = MakeTlsConnect::<Shared>::make_tls_connect(&mut tls.clone(), host);
        Ok(Self { connector: connector.map_err(io::Error::other)?, encrypted })
    }
}

impl TlsConnect<Shared> for Encrypting {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Shared) -> Self::Future {
        Box::pin(async move {
            let encrypted = self.connector.connect(stream).await?;
            let binding = Mutex::new(Some(encrypted.channel_binding()));
            let stream = Shared::new(encrypted, Limit::messages());
            // Nobody else sets it: each attempt has one of its own.
            let _ = self.encrypted.set(stream.clone());
            Ok(Encrypted { stream, binding })
        })
    }
}

/// An encrypted stream for the client's library.
pub(super) struct Encrypted {
    stream: Shared,
    /// Asked for once, at login.
    binding: Mutex<Option<ChannelBinding>>,
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let binding = self.binding.lock().unwrap_or_else(PoisonError::into_inner).take();
        binding.unwrap_or_else(ChannelBinding::none)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
