//! The server itself: connections, what is refused before anything is looked up, and how much is done at once.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, thread};

use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

use super::problem::Problem;
use super::site::{Answer, PageRequest, Site};
use model::record::store::Store;
use report::html::{Kept, policy};
use report::openmetrics;

/// Connections at a time; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 128;
/// Most pages that are made at a time, however many processors there are: each holds a run in memory.
const MAX_MAKING: usize = 4;
/// Longest that somebody waits for others' pages to be made.
const LONGEST_QUEUE: Duration = Duration::from_secs(60);
/// Longest that somebody waits for his own page to be made.
pub(super) const LONGEST_MAKING: Duration = Duration::from_secs(30);
/// Longest that runs for it are read, so that there is time to draw it: drawing is not interrupted, and the runs of a page are limited.
const LONGEST_READING: Duration = Duration::from_secs(15);
/// Longest that a request may take to arrive, and that a connection stays open without one.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);
/// Longest that the other end may take nothing of a reply.
const LONGEST_STALL: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const LONGEST_HEAD: usize = 16 << 10;

/// A server that listens, and has looked at its runs once.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    ended: Arc<Notify>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    site: Site,
    making: Arc<Semaphore>,
    /// Whether only this machine can reach the server, so that only its own names may be used.
    is_local: bool,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Ender(Arc<Notify>);

impl Ender {
    /// Ends it at once, whatever it is doing. Nothing can be lost by that, since nothing is written.
    pub fn end(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Listens, and looks at the runs of `store`.
    ///
    /// # Errors
    /// If the address cannot be listened on, or there is no such store.
    pub fn open(listen: Listen, store: Store) -> Result<Self, Problem> {
        let cannot = |source| Problem::CannotListen { address: listen.0, source };
        let listener = TcpListener::bind(listen.0).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let making = Arc::new(Semaphore::new(processors.saturating_sub(1).clamp(1, MAX_MAKING)));
        let shared = Shared { site: Site::open(store)?, making, is_local: listen.is_local() };
        Ok(Self { listener, address, shared: Arc::new(shared), ended: Arc::new(Notify::new()) })
    }

    /// Where it listens, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs that can be read.
    pub fn runs(&self) -> usize {
        self.shared.site.runs()
    }

    /// What ends it.
    pub fn ender(&self) -> Ender {
        Ender(Arc::clone(&self.ended))
    }

    /// Serves until it is ended.
    ///
    /// # Errors
    /// If the system refuses to begin.
    pub fn serve(self) -> Result<(), Problem> {
        let cannot = |source| Problem::CannotStart { source };
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            // Besides pages that are made, files that are sent are read there.
            .max_blocking_threads(MAX_MAKING + 2)
            .thread_keep_alive(Duration::from_secs(5))
            .build()
            .map_err(cannot)?;
        let listening = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(cannot)?;
            tokio::spawn(accept(listener, self.shared));
            self.ended.notified().await;
            Ok(())
        });
        runtime.shutdown_background();
        listening
    }
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LONGEST_REQUEST).max_buf_size(LONGEST_HEAD);
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files, as a rule: some will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        let io = TokioIo::new(Patient::new(stream, LONGEST_STALL));
        let service = service_fn(move |request| reply(request, Arc::clone(&shared)));
        let connection = http.serve_connection(io, service);
        tokio::spawn(async move {
            // Whoever is at the other end has gone, or was reported already what is wrong with the request.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn reply(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let answer = match asked(&request, shared.is_local) {
        Ok(asked) => make(asked, shared).await,
        Err(problem) => Err(problem),
    };
    let mut response = answer.map_or_else(|problem| refusal(&problem), response);
    if is_head {
        let length = hyper::body::Body::size_hint(response.body()).lower();
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        *response.body_mut() = Body::empty();
    }
    Ok(response)
}

/// Makes the answer on a thread of its own, when it is its turn.
async fn make(asked: PageRequest, shared: Arc<Shared>) -> Result<Answer, Problem> {
    let making = Arc::clone(&shared.making).acquire_owned();
    let Ok(Ok(turn)) = timeout(LONGEST_QUEUE, making).await else { return Err(Problem::Busy) };
    let until = std::time::Instant::now() + LONGEST_READING;
    let made = tokio::task::spawn_blocking(move || {
        // Kept until the work is over, whether or not anybody still waits for it.
        let _turn = turn;
        shared.site.answer(&asked, until)
    });
    match timeout(LONGEST_MAKING, made).await {
        Ok(made) => {
            made.unwrap_or_else(|error| Err(Problem::Unmade { reason: format!("its making was given up ({error})") }))
        }
        Err(_) => Err(Problem::TooSlow { seconds: LONGEST_MAKING.as_secs() }),
    }
}

/// What the request asks for, unless it is refused for what it is.
fn asked(request: &Request<Incoming>, is_local: bool) -> Result<PageRequest, Problem> {
    if is_local {
        let named =
            |host: &str| names_this_machine(host).then_some(()).ok_or(Problem::ForeignHost { host: host.to_owned() });
        named(&text_of(request.headers(), &header::HOST).unwrap_or_default())?;
        request.uri().authority().map_or(Ok(()), |authority| named(authority.as_str()))?;
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Err(Problem::Method { method: request.method().to_string() });
    }
    Ok(PageRequest {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        known: text_of(request.headers(), &header::IF_NONE_MATCH),
    })
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

const HTML: &str = "text/html; charset=utf-8";

fn response(answer: Answer) -> Response<Body> {
    match answer {
        Answer::Page(page, etag) => {
            let mut response = with_headers(StatusCode::OK, HTML, Body::Whole(Some(page)));
            etag.iter().for_each(|etag| set(&mut response, header::ETAG, etag));
            response
        }
        Answer::Unchanged(etag) => {
            let mut response = with_headers(StatusCode::NOT_MODIFIED, HTML, Body::empty());
            set(&mut response, header::ETAG, &etag);
            response
        }
        Answer::Json(text) => with_headers(StatusCode::OK, "application/json", Body::Whole(Some(text))),
        Answer::Metrics(text) => with_headers(StatusCode::OK, openmetrics::CONTENT_TYPE, Body::Whole(Some(text))),
        Answer::File(download) => {
            let name = format!("attachment; filename=\"{}\"", download.name);
            let body = Body::of_file(download.file, download.bytes);
            let mut response = with_headers(StatusCode::OK, download.content_type, body);
            set(&mut response, header::CONTENT_DISPOSITION, &name);
            response
        }
    }
}

fn refusal(problem: &Problem) -> Response<Body> {
    let mut response = with_headers(problem.status(), HTML, Body::Whole(Some(problem.page().into())));
    if matches!(problem, Problem::Method { .. }) {
        set(&mut response, header::ALLOW, "GET, HEAD");
    }
    response
}

/// A reply with what stands in all of them: a browser may load nothing else, guess nothing, tell nobody, keep nothing
/// without asking.
fn with_headers(status: StatusCode, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let policy = format!("{}; frame-ancestors 'none'", policy(&Kept::Served { follow: None }));
    set(&mut response, header::CONTENT_TYPE, content_type);
    set(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, header::REFERRER_POLICY, "no-referrer");
    set(&mut response, header::CACHE_CONTROL, "no-cache");
    set(&mut response, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("our own headers are plain ASCII");
    response.headers_mut().insert(name, value);
}

/// An address to listen on: `127.0.0.1:8321`, `[::1]:0`, `localhost:8321`, `0.0.0.0:8321`. Port 0 means any free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

/// Text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--listen: `{text}` is not an address and a port")]
pub struct ListenError {
    text: String,
}

impl ListenError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        "write 127.0.0.1:8321 or [::1]:8321 for this machine only, 0.0.0.0:8321 for all that can reach it; port 0 picks a \
         free one"
            .to_owned()
    }
}

impl Listen {
    /// Whether only this machine can reach it.
    pub fn is_local(self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let refuse = || ListenError { text: text.to_owned() };
        match text.strip_prefix("localhost:") {
            Some(port) => {
                let port = port.parse().map_err(|_| refuse())?;
                Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
            }
            None => text.parse().map(Self).map_err(|_| refuse()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a `Host` header names this machine as itself, with any port or none. A page of the internet can have its own
/// name lead to 127.0.0.1 and read what a local server answers; only the name reports.
fn names_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').or(port.is_empty().then_some("0"))),
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    is_port && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

/// A stream whose writes fail once nothing could be written for `limit`.
#[derive(Debug)]
struct Patient<S> {
    stream: S,
    limit: Duration,
    /// Runs out when the patience does.
    end: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, end: Box::pin(sleep_until(Instant::now())), is_waiting: false }
    }

    /// Watches over a write that may have to wait.
    fn within<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.is_waiting = false;
            return result;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.end.as_mut().reset(Instant::now() + self.limit);
        }
        self.end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient<TcpStream> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient<TcpStream> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.within(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.within(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.within(cx, shut)
    }
}

// What is sent after the head of a reply: a page that is there, or a file piece by piece.

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 << 10;

/// The body of a reply.
#[derive(Debug)]
enum Body {
    /// All of it.
    Whole(Option<Bytes>),
    /// Pieces of a file, and how many bytes are still to come.
    Pieces(mpsc::Receiver<io::Result<Bytes>>, u64),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self::Whole(None)
    }

    /// The first `bytes` of `file`, read as fast as they are taken.
    pub(super) fn of_file(mut file: File, bytes: u64) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut left = bytes;
            while left > 0 {
                // A file system can be slow, and everybody else waits on this thread.
                let read = tokio::task::spawn_blocking(move || (piece(&mut file, left), file)).await;
                let Ok((piece, same)) = read else { return };
                file = same;
                left -= piece.as_ref().map_or(left, |piece| piece.len() as u64);
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Self::Pieces(receiver, bytes)
    }
}

fn piece(file: &mut File, left: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
    let read = file.read(&mut piece)?;
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
    }
    piece.truncate(read);
    Ok(piece.into())
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(receiver, left) => receiver.poll_recv(cx).map(|piece| {
                let piece = piece?;
                *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                Some(piece.map(Frame::data))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces(_, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Pieces(_, left) => *left,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn an_address_needs_a_port_and_a_place() {
        for (text, is_local) in [
            ("127.0.0.1:8321", true),
            ("[::1]:0", true),
            ("localhost:8321", true),
            ("127.8.9.1:80", true),
            ("0.0.0.0:8321", false),
            ("[::]:8321", false),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.is_local(), is_local, "{text}");
        }
        assert_eq!("localhost:1".parse::<Listen>().unwrap().to_string(), "127.0.0.1:1");
        for text in ["", ":8080", "8080", "127.0.0.1", "::1:80", "localhost", "host.example:80", "127.0.0.1:65536"] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")) && error.hint().contains("port 0"), "{error}");
        }
    }

    #[test]
    fn only_names_of_this_machine_itself_are_local() {
        for host in ["localhost", "LOCALHOST:8321", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:9", "[::1]", "[::1]:8321"] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in [
            "",
            ":8321",
            "evil.example",
            "evil.example:8321",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8321",
            "10.0.0.1",
            "[::2]:1",
            "[::1]x",
            "[::1",
            "localhost:",
            "localhost:x",
            "localhost:1:2",
            "user@localhost",
        ] {
            assert!(!names_this_machine(host), "{host}");
        }
    }

    #[test]
    fn an_end_that_takes_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let idle = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut patient = Patient::new(stream, Duration::from_millis(50));
            // More than both ends of a local connection hold in their buffers.
            let written = patient.write_all(&vec![0; 64 << 20]).await;
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop(idle);
        });
    }
}
