//! The server itself: connections, what is refused before anything is looked up, and how much is done at once.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

use super::address::{Listen, names_this_machine};
use super::body::Body;
use super::patience::Patient;
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
    making: Semaphore,
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
        let making = Semaphore::new(processors.saturating_sub(1).clamp(1, MAX_MAKING));
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
    let site = Arc::clone(&shared);
    let Ok(Ok(_turn)) = timeout(LONGEST_QUEUE, shared.making.acquire()).await else { return Err(Problem::Busy) };
    let made = tokio::task::spawn_blocking(move || site.site.answer(&asked)).await;
    made.unwrap_or_else(|error| Err(Problem::Unmade { reason: format!("its making was given up ({error})") }))
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
