//! The local server over its own socket, with a client of a few lines.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::manners::{signal, wait_for};
use crate::pages::browser;
use crate::place::Place;
use crate::servers::wait_until;
use crate::skip::skip;

/// A server that runs until this is dropped.
pub(crate) struct Served {
    child: Child,
    address: String,
}

pub(crate) struct Reply {
    status: u16,
    head: String,
    pub(crate) body: String,
}

impl Served {
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_on(place, "127.0.0.1:0")
    }

    fn start_on(place: &Place, listen: &str) -> Self {
        let mut child = place
            .plimsoll(&["serve", "--listen", listen])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut url = String::new();
        let stdout = child.stdout.as_mut().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut url).expect("standard output can be read");
        let address = url.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).map(str::to_owned);
        Self { child, address: address.unwrap_or_else(|| panic!("no address: {url:?}")) }
    }

    /// Sends a request as it is and reads all that comes until the server closes.
    fn send(&self, request: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout can be set");
        stream.write_all(request.as_bytes()).expect("a request can be sent");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("the server answers and closes");
        let text = String::from_utf8(text).expect("a reply is text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Reply {
            status: status.unwrap_or_else(|| panic!("no status: {head}")),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> Reply {
        self.send(&format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address))
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

#[test]
fn the_kept_runs_are_listed_filtered_shown_and_sent() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    let list = served.get("/");
    assert_eq!(list.status, 200);
    for id in place.runs() {
        assert!(list.body.contains(&format!("href=\"/runs/{id}\"")), "{id}");
    }
    assert_eq!(served.get("/?q=updates").body.matches("name=\"run\"").count(), 1);
    let run = served.get("/runs/format-1-sweep");
    assert!(run.status == 200 && run.body.contains("format-1-sweep") && !run.body.contains("data-follow="));
    let document = served.get("/runs/format-1-sweep/run.json");
    let kept = std::fs::read_to_string(place.path("plimsoll-runs/format-1-sweep/run.json")).unwrap();
    assert_eq!((document.body.as_str(), document.header("content-type")), (kept.as_str(), Some("application/json")));
    assert_eq!(document.header("content-disposition"), Some("attachment; filename=\"format-1-sweep-run.json\""));
    let intervals = served.get("/runs/format-1-sweep/intervals.jsonl");
    let kept = std::fs::read_to_string(place.path("plimsoll-runs/format-1-sweep/intervals.jsonl")).unwrap();
    assert_eq!(intervals.body, kept);
    let rows: serde_json::Value = serde_json::from_str(&served.get("/runs.json").body).unwrap();
    assert_eq!((&rows["total"], rows["runs"].as_array().unwrap().len()), (&4.into(), 4));
    assert!(rows["runs"][0]["tags"].is_object());
}

#[test]
fn every_reply_tells_a_browser_to_load_nothing_and_guess_nothing() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    for path in ["/", "/runs/format-1-sweep", "/runs/format-1-sweep/run.json", "/runs.json", "/nothing"] {
        let reply = served.get(path);
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'; ") && policy.contains("connect-src 'self'"),
            "{path}: {policy}"
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-cache"), "{path}");
    }
}

#[test]
fn only_the_head_is_sent_to_whoever_asks_for_it_alone() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    for path in ["/runs/format-1-sweep", "/runs/format-1-sweep/run.json", "/nothing"] {
        let (whole, head) = (served.get(path), served.ask("HEAD", path, ""));
        assert_eq!((head.status, head.body.as_str()), (whole.status, ""), "{path}");
        assert_eq!(head.header("content-length"), Some(whole.body.len().to_string().as_str()), "{path}");
    }
}

#[test]
fn a_page_that_has_not_changed_is_not_sent_again() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    let etag = served.get("/runs/format-1-sweep").header("etag").expect("a tag").to_owned();
    let etag = etag.replace("w/", "W/");
    let again = served.ask("GET", "/runs/format-1-sweep", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let intervals = place.path("plimsoll-runs/format-1-sweep/intervals.jsonl");
    std::fs::write(intervals, "").unwrap();
    let changed = served.ask("GET", "/runs/format-1-sweep", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(changed.status, 200);
}

#[test]
fn what_cannot_be_answered_has_its_status_and_says_what_to_do() {
    let place = Place::with_kept_runs();
    place.write("plimsoll-runs/format-1-updates/run.json", "{\"format\": 1,");
    let served = Served::start(&place);
    for (path, status) in [
        ("/nothing", 404),
        ("/runs/nothing", 404),
        ("/runs/..%2fformat-1-sweep", 404),
        ("/runs/../../etc/passwd", 404),
        ("/runs/format-1-updates", 500),
        ("/?colour=blue", 400),
        ("/?page=7", 400),
        ("/compare?run=format-1-sweep", 400),
        ("/compare?run=format-1-sweep&run=nothing", 404),
    ] {
        let reply = served.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
        assert!(reply.body.contains("What to do: ") && reply.body.contains("All runs"), "{path}: {}", reply.body);
    }
    let list = served.get("/").body;
    assert!(list.contains("Not readable (1)") && list.contains("the file is cut short"), "{list}");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let reply = served.ask(method, "/runs/format-1-sweep", "Content-Length: 0\r\n");
        assert_eq!((reply.status, reply.header("allow")), (405, Some("get, head")), "{method}");
    }
    assert_eq!(served.get(&format!("/?q={}", "x".repeat(40_000))).status, 431);
    assert_eq!(served.get("/runs/format-1-sweep").status, 200, "it goes on serving");
}

#[test]
fn a_page_of_the_internet_cannot_borrow_the_address() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    let as_host = |host: &str| served.send(&format!("GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"));
    for host in ["Host: localhost\r\n", "Host: 127.0.0.1:1\r\n", "Host: [::1]:8321\r\n"] {
        assert_eq!(as_host(host).status, 200, "{host}");
    }
    for host in ["Host: evil.example\r\n", "Host: localhost.evil.example:8321\r\n", ""] {
        let reply = as_host(host);
        assert!(reply.status == 403 && !reply.body.contains("format-1"), "{host}: {}", reply.body);
    }
    let absolute = served.send("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(absolute.status, 403);
}

#[test]
fn whoever_lets_others_in_is_reported_and_may_use_any_name() {
    let place = Place::with_kept_runs();
    let mut served = Served::start_on(&place, "0.0.0.0:0");
    let reply = served.send("GET / HTTP/1.1\r\nHost: bench-7.example\r\nConnection: close\r\n\r\n");
    assert!(reply.status == 200 && reply.body.contains("format-1-sweep"), "{}", reply.body);
    signal(&served.child, "-TERM");
    let mut reported = String::new();
    served.child.stderr.take().unwrap().read_to_string(&mut reported).unwrap();
    assert!(reported.contains("note: every machine that can reach this one can read these runs"), "{reported}");
}

#[test]
fn a_port_in_use_and_a_missing_directory_are_reported_with_what_to_do() {
    let place = Place::with_kept_runs();
    let served = Served::start(&place);
    let second = place.run(&["serve", "--listen", &served.address]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(2), ""), "{second}");
    let reported = format!("error: cannot listen on {}: ", served.address);
    assert!(second.stderr.starts_with(&reported) && second.stderr.contains("--listen 127.0.0.1:0 picks a free one"));
    let missing = place.run(&["serve", "--listen", "127.0.0.1:0", "--runs", "nowhere"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""), "{missing}");
    assert!(missing.stderr.contains("`nowhere`") && missing.stderr.contains("hint: `--runs DIR`"), "{missing}");
    let wrong = place.run(&["serve", "--listen", ":8080"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("`:8080` is not an address and a port") && wrong.stderr.contains("hint: write "));
}

#[test]
fn a_signal_ends_it_at_once_and_is_no_failure() {
    for name in ["-INT", "-TERM"] {
        let place = Place::with_kept_runs();
        let mut served = Served::start(&place);
        let mut idle = TcpStream::connect(&served.address).unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
        let began = Instant::now();
        signal(&served.child, name);
        let status = served.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{name}");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}: {:?}", began.elapsed());
        let mut reported = String::new();
        served.child.stderr.take().unwrap().read_to_string(&mut reported).unwrap();
        let line = format!("Serving 4 runs in `./plimsoll-runs` at http://{}/ (Ctrl-C ends it)\n", served.address);
        assert_eq!(reported, line, "{name}");
    }
}

/// A run that goes on until it is ended.
struct LongRun {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl LongRun {
    /// Its first second is over.
    pub(crate) fn start(place: &Place) -> Self {
        let words = ["slob", "run", "RUN_TIME=300", "--warmup=0s", "--target", "sim:service=200us,servers=4"];
        let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = wait_for(&mut child, " ops/s ");
        Self { child, stderr }
    }

    fn end(mut self) {
        signal(&self.child, "-INT");
        self.stderr.read_to_string(&mut String::new()).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
    }
}

impl Drop for LongRun {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address of the only run's page.
fn page_of_the_run(place: &Place) -> String {
    let id = std::fs::read_dir(place.path("plimsoll-runs")).unwrap().next().unwrap().unwrap().file_name();
    format!("/runs/{}", id.to_string_lossy())
}

#[test]
fn a_run_is_followed_while_it_goes_on_and_then_said_to_have_ended() {
    let place = Place::new();
    let run = LongRun::start(&place);
    let served = Served::start(&place);
    let path = page_of_the_run(&place);
    assert!(served.get("/").body.contains("in progress"));
    let first = served.get(&path);
    assert!(first.body.contains(&format!("data-follow=\"{path}\" data-follow-seconds=\"")), "{}", first.body);
    let tag = |reply: &Reply| reply.header("etag").expect("a tag").to_owned();
    wait_until("the page changes", || {
        let next = served.get(&path);
        assert!(next.body.contains("data-follow="), "{}", next.body);
        tag(&next) != tag(&first)
    });
    run.end();
    // A page made just before the end may be answered once more, for one period at most.
    wait_until("the page says that the run has ended", || {
        let last = served.get(&path);
        assert_eq!(last.status, 200, "{}", last.body);
        !last.body.contains("data-follow=")
    });
    assert!(served.get("/").body.contains("interrupted"));
}

/// An address that hands everything on to a server, and how often a page was asked for there.
fn counted(server: &str, page: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (server, asked_for, asked) = (server.to_owned(), format!("GET {page} "), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
                let (asked_for, count) = (asked_for.clone(), Arc::clone(&count));
                std::thread::spawn(move || {
                    let mut bytes = [0; 16_384];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        let is_request = bytes[..read].starts_with(asked_for.as_bytes());
                        count.fetch_add(usize::from(is_request), Ordering::Relaxed);
                        if to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (address, asked)
}

#[test]
fn a_browser_keeps_up_with_a_run_by_itself() {
    let Some(browser) = browser() else { return };
    let place = Place::new();
    let run = LongRun::start(&place);
    let served = Served::start(&place);
    let path = page_of_the_run(&place);
    assert!(served.get(&path).body.contains("data-follow="));
    let (address, asked) = counted(&served.address, &path);
    // The browser's clock leaps from one look to the next, so that it looks very often while the run goes on.
    // On a busy machine looks are up to a minute apart by that clock: it has enough of it for 16,000 of them.
    let child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=1000000000"])
        .arg(format!("--user-data-dir={}", place.path("profile").display()))
        .args(["--dump-dom", &format!("http://{address}{path}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // However slowly it starts, it sees the run go on.
    wait_until("the browser looks again", || asked.load(Ordering::Relaxed) >= 3);
    run.end();
    let output = child.wait_with_output().unwrap();
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.contains(">The run has ended; this is all of it.</span>"), "{page}");
    assert!(page.contains(" · ended early<"), "the content is that of the ended run: {page}");
}

#[test]
fn the_metrics_of_a_run_grow_and_end_with_it() {
    let place = Place::new();
    let run = LongRun::start(&place);
    let served = Served::start(&place);
    let operations = || {
        let reply = served.get("/metrics");
        let content_type = reply.header("content-type").unwrap_or_default();
        assert!(reply.status == 200 && content_type.starts_with("application/openmetrics-text"), "{}", reply.head);
        assert!(reply.body.ends_with("# EOF\n"), "{}", reply.body);
        let line = reply.body.lines().find(|line| line.starts_with("plimsoll_operations_total{"))?;
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    let first = operations().expect("a run that goes on has operations");
    wait_until("more operations are counted", || operations().is_some_and(|now| now > first));
    run.end();
    wait_until("the run has gone", || operations().is_none());
    let dashboard: serde_json::Value = serde_json::from_str(&served.get("/grafana.json").body).unwrap();
    assert!(dashboard["panels"].is_array());
    assert_eq!(served.get("/metrics?run=x").status, 400);
}

/// Prometheus with a directory of its own.
pub(crate) struct Prometheus<'a> {
    served: Served,
    place: &'a Place,
}

impl<'a> Prometheus<'a> {
    /// Whether it is installed.
    pub(crate) fn is_installed() -> bool {
        Command::new("prometheus").arg("--version").output().is_ok()
    }

    pub(crate) fn start(place: &'a Place, config: &str, more: &[&str]) -> Self {
        place.write("prometheus.yml", config);
        let log = || std::fs::read_to_string(place.path("prometheus.log")).unwrap_or_default();
        let start = |_| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = Command::new("prometheus")
                .args([format!("--config.file={}", place.path("prometheus.yml").display())])
                .args([format!("--storage.tsdb.path={}", place.path("series").display())])
                .args([format!("--web.listen-address=127.0.0.1:{port}")])
                .args(more)
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(place.path("prometheus.log")).unwrap())
                .spawn()
                .unwrap();
            let mut started = Served { child, address: format!("127.0.0.1:{port}") };
            // Another process may take the port before it does, and then it ends.
            let mut has_ended = || started.child.try_wait().unwrap().is_some();
            wait_until("Prometheus is ready", || {
                has_ended() || log().contains("Server is ready to receive web requests")
            });
            (!has_ended()).then_some(started)
        };
        let served = (0..3).find_map(start).unwrap_or_else(|| panic!("Prometheus does not start: {}", log()));
        Self { served, place }
    }

    pub(crate) fn address(&self) -> &str {
        &self.served.address
    }

    /// The first value of a query, as soon as there is one.
    pub(crate) fn ask(&self, query: &str) -> f64 {
        let begun = Instant::now();
        loop {
            let log = || std::fs::read_to_string(self.place.path("prometheus.log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(120), "Prometheus has no {query}: {}", log());
            std::thread::sleep(Duration::from_millis(200));
            if TcpStream::connect(self.address()).is_err() {
                continue;
            }
            let reply = self.served.ask("GET", &format!("/api/v1/query?query={query}"), "");
            // Long answers come in pieces; the document stands between their lengths.
            let (from, to) = (reply.body.find('{').unwrap_or(0), reply.body.rfind('}').map_or(0, |at| at + 1));
            let answer: serde_json::Value = serde_json::from_str(&reply.body[from..to]).unwrap_or_default();
            if let Some(value) = answer["data"]["result"][0]["value"][1].as_str() {
                return value.parse::<f64>().unwrap();
            }
        }
    }
}

#[test]
fn prometheus_scrapes_the_metrics_of_a_run() {
    if !Prometheus::is_installed() {
        return skip("prometheus is not installed");
    }
    let place = Place::new();
    let run = LongRun::start(&place);
    let served = Served::start(&place);
    let config = format!(
        "scrape_configs:\n- job_name: plimsoll\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['{}']\n",
        served.address
    );
    let prometheus = Prometheus::start(&place, &config, &[]);
    let ask = |query: &str| prometheus.ask(query);
    assert!(ask("plimsoll_operations_total") > 0.0);
    assert!((ask("plimsoll_run_info") - 1.0).abs() < f64::EPSILON);
    // Storage that takes 200 us and has four places never answers sooner.
    let median = ask("histogram_quantile(0.5,sum(plimsoll_response_seconds_bucket)by(le))");
    assert!(median > 0.000_1 && median < 60.0, "{median} s");
    drop(prometheus);
    run.end();
}
