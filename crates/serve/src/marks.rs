//! Marks that others set by HTTP while a load goes on: a POST to one of two addresses, by who has the token.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::problem::Problem;
use super::server::Listen;

/// Longest that a connection may take, from its beginning to its end.
const LONGEST: Duration = Duration::from_secs(2);
/// Connections at a time; more are closed. One that sends nothing keeps no other waiting, so that marks are taken when they come.
const MAX_CONNECTIONS: usize = 32;
/// Bytes of a request's head.
const LONGEST_HEAD: usize = 8 << 10;

/// What was marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `POST /failure`: it begins now.
    Failure,
    /// `POST /recovery`: it is over now.
    Recovery,
}

/// Listens for marks until the process ends, and hands each to `take`, which says whether it counts. Gives the address with the port
/// that was picked. A request without `Authorization: Bearer TOKEN` is refused; what it sends besides its head is not read.
///
/// # Errors
/// If the address cannot be listened on.
pub fn listen(
    listen: Listen,
    token: &str,
    take: impl Fn(Mark) -> bool + Send + Sync + 'static,
) -> Result<SocketAddr, Problem> {
    let cannot = |source| Problem::CannotListen { address: listen.0, source };
    let listener = TcpListener::bind(listen.0).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let cannot = |source| Problem::CannotStart { source };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let expected = format!("Bearer {token}");
    let begin = move || runtime.block_on(accept(listener, Arc::from(expected), Arc::new(take)));
    thread::Builder::new().name("marks".to_owned()).spawn(begin).map_err(cannot)?;
    Ok(address)
}

async fn accept(
    listener: TcpListener,
    expected: Arc<str>,
    take: Arc<impl Fn(Mark) -> bool + Send + Sync + 'static>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LONGEST).max_buf_size(LONGEST_HEAD).keep_alive(false);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files, as a rule: some will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (expected, take) = (Arc::clone(&expected), Arc::clone(&take));
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = judge(request.method(), request.uri().path(), request.headers(), &expected);
            let answer = answer.and_then(|mark| if take(mark) { Ok(mark) } else { Err(StatusCode::CONFLICT) });
            async move { Ok::<_, Infallible>(reply(answer)) }
        });
        let connection = timeout(LONGEST, http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client that sends nothing, or something else, has no mark.
            let _ = connection.await;
            drop(place);
        });
    }
}

fn judge(method: &Method, path: &str, headers: &HeaderMap, expected: &str) -> Result<Mark, StatusCode> {
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    if !is_same(given, expected.as_bytes()) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let mark = match path {
        "/failure" => Mark::Failure,
        "/recovery" => Mark::Recovery,
        _ => return Err(StatusCode::NOT_FOUND),
    };
    if method == Method::POST { Ok(mark) } else { Err(StatusCode::METHOD_NOT_ALLOWED) }
}

/// Compares in a time that tells nothing of where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn reply(answer: Result<Mark, StatusCode>) -> Response<String> {
    let (status, words) = match answer {
        Ok(Mark::Failure) => (StatusCode::OK, "failure marked\n"),
        Ok(Mark::Recovery) => (StatusCode::OK, "recovery marked\n"),
        Err(StatusCode::UNAUTHORIZED) => {
            (StatusCode::UNAUTHORIZED, "the header `Authorization: Bearer TOKEN` is missing or wrong\n")
        }
        Err(StatusCode::NOT_FOUND) => (StatusCode::NOT_FOUND, "POST to /failure or to /recovery\n"),
        Err(StatusCode::CONFLICT) => (
            StatusCode::CONFLICT,
            "not marked: nothing is measured now, it is marked already, or no failure was before it\n",
        ),
        Err(status) => (status, "marks are set by POST\n"),
    };
    let mut response = Response::new(words.to_owned());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_a_post_with_the_token_marks() {
        let (sender, marks) = mpsc::channel();
        let take = move |mark| sender.send(mark).is_ok() && mark == Mark::Failure;
        let address = listen("127.0.0.1:0".parse().unwrap(), "a token of tests", take).unwrap();
        // A silent client is not in the way.
        let _silent = TcpStream::connect(address).unwrap();
        let ask = |line: &str, token: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            said.split(' ').nth(1).unwrap().to_owned()
        };
        for (line, token, status) in [
            ("POST /failure", "a token of test", "401"),
            ("POST /failure", "a token of tesTs", "401"),
            ("POST /other", "a token of tests", "404"),
            ("GET /failure", "a token of tests", "405"),
            ("POST /failure", "a token of tests", "200"),
            ("POST /recovery", "a token of tests", "409"),
        ] {
            assert_eq!(ask(line, token), status, "{line}");
        }
        assert_eq!(marks.try_iter().collect::<Vec<_>>(), [Mark::Failure, Mark::Recovery]);
        let taken = listen(Listen(address), "a token of tests", |_| true).unwrap_err();
        assert!(matches!(taken, Problem::CannotListen { .. }), "{taken}");
    }
}
