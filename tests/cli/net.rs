//! `plimsoll net run`, `sweep` and `oratcptest`: what is refused, what is sent, what is kept.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, getsockname, socket_with};

use crate::errors::refused;
use crate::manners::{signal, wait_for, wait_for_intervals};
use crate::place::Place;

/// What the servers of these tests and their clients know.
pub(crate) const TOKEN: &str = "a token of tests";

/// A server of its own process, on a port that the kernel chose. Ends when it is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(place: &Place, more: &[&str]) -> Self {
        let words = ["net", "serve", "--listen", "127.0.0.1:0"];
        let mut command = place.plimsoll(&[&words, more].concat());
        command.env("PLIMSOLL_NET_TOKEN", TOKEN).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut address).expect("it says its address");
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine on which nothing listens, and nothing else can as long as this is there.
pub(crate) struct DeafPort {
    pub(crate) address: String,
    _bound: OwnedFd,
}

impl DeafPort {
    pub(crate) fn bind() -> Self {
        let bound = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let bound = bound.expect("a socket can be made");
        rustix::net::bind(&bound, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = SocketAddrV4::try_from(getsockname(&bound).expect("it has an address")).expect("of IPv4");
        Self { address: address.to_string(), _bound: bound }
    }
}

/// A run of half a second.
fn short<'a>(pattern: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["net", "run", "--to", "self", "--duration=500ms", "--warmup=0s", "--quiet", "--pattern", pattern];
    words.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn what_contradicts_itself_is_refused_before_anybody_is_reached() {
    let place = Place::new();
    for (line, message) in [
        ("net run --to self --flows 8", "`--connections` belongs to a pattern, and none was named"),
        ("net run --to self --pattern gc --durable", "`--durable` has no meaning for the pattern `gc`"),
        ("net run --to self --pattern redo --size 8k", "`redo` is not a pattern of a network"),
        ("net run --to :1 --pattern ping", "`:1` is not a server"),
        ("net run --to self --pattern ping --size-from last", "`--size-from` takes the size of redo writes"),
        ("net run --to self --pattern ping --duration 0", "a window of no length measures nothing"),
        ("net sweep --to self --pattern bulk --flows 1,2 --rate 5", "a sweep over rates has one number of connections"),
        ("net run --to localhost:1 --pattern ping", "no token was given for `localhost:1`"),
        ("net oratcptest -mode=sync", "no host is named"),
        ("net matrix --to db2", "a matrix needs at least two servers: db2"),
        ("net matrix --to db2,db2:7018", "the server `db2:7018` is listed twice"),
        ("net matrix --to db2,self", "`self` is a server in this process"),
        ("net matrix --to db2,db3 --flows 0", "`--flows` must be at least 1"),
        ("net matrix --to db2,db3 --flows 65", "65 flows to each of 2 servers are more than 128 at once"),
        ("beside -- net run --to self -- net run --to self", "without `--pattern` is a survey of several loads"),
    ] {
        let said = refused(&place, &line.split(' ').collect::<Vec<_>>());
        assert!(said.contains(message) && said.contains("hint:"), "{line}: {said}");
    }
    assert!(place.runs().is_empty(), "nothing is kept of what did not begin");
}

#[test]
fn where_nobody_serves_the_error_says_what_to_start() {
    let place = Place::new();
    let port = DeafPort::bind();
    let server = &port.address;
    let mut command = place.plimsoll(&["net", "run", "--to", server, "--pattern", "ping"]);
    let output = command.env("PLIMSOLL_NET_TOKEN", "a token of tests").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot connect to `{server}`")) && said.contains("plimsoll net serve"), "{said}");
}

#[test]
fn a_run_is_kept_with_what_both_ends_saw() {
    let place = Place::new();
    let run = place.done(&short("gc", &["--connections", "2", "--tag", "net=lo", "--json"])).json();
    let step = &run["run"]["steps"][0];
    assert_eq!((run["run"]["load"]["kind"].as_str(), step["label"].as_str()), (Some("network"), Some("c2")), "{run}");
    assert!(step["counters"]["operations"].as_u64().unwrap() > 0);
    let sides: Vec<&str> =
        step["network"].as_array().unwrap().iter().map(|end| end["side"].as_str().unwrap()).collect();
    assert!(sides.contains(&"client"), "{sides:?}");
    let said = place.done(&["report", "last"]).stdout;
    assert!(said.contains("Load (times from sent to finished") && said.contains("measures no network"), "{said}");
}

#[test]
fn bulk_flows_open_with_gigabits_and_a_sweep_has_a_step_for_each_number() {
    let place = Place::new();
    let said = place.done(&short("bulk", &["--flows", "2", "--direction", "both"])).stdout;
    assert!(said.lines().next().unwrap().contains("with two flows each way"), "{said}");
    let words = ["net", "sweep", "--to", "self", "--pattern", "ping", "--connections", "1,2", "--duration=300ms"];
    let words: Vec<&str> = words.into_iter().chain(["--warmup=0s", "--quiet", "--json"]).collect();
    let run = place.done(&words).json();
    let labels: Vec<&str> =
        run["run"]["steps"].as_array().unwrap().iter().map(|step| step["label"].as_str().unwrap()).collect();
    assert!(labels.starts_with(&["c1"]) && labels.contains(&"c2"), "{labels:?}");
}

#[test]
fn a_survey_answers_in_its_first_line() {
    let place = Place::new();
    let words = ["net", "run", "--to", "self", "--duration=250ms", "--warmup=50ms", "--redo-rate", "20M", "--quiet"];
    let said = place.done(&words).stdout;
    let first = said.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.contains("with eight flows (one flow") && first.contains("round trip"), "{said}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("A synchronous standby there adds about") && flat.contains("MB/s of redo"), "{said}");
    assert!(flat.contains("reach the other end uncut"), "{said}");
}

#[test]
fn oratcptest_writes_its_layout_and_the_importer_reads_it() {
    let place = Place::new();
    let words = ["net", "oratcptest", "--quiet", "self", "-mode=sync", "-length=8192", "-duration=2s", "-interval=1s"];
    let said = place.done(&words).stdout;
    for line in [
        "[Requesting a test]",
        "\tMessage payload        = 8 Kbytes",
        "\tTransport mode         = SYNC",
        "\tTest duration          = 2 seconds",
        "                        Throughput                 Latency",
    ] {
        assert!(said.lines().any(|known| known == line), "{line:?} is not in {said}");
    }
    assert_eq!(said.lines().filter(|line| line.starts_with('(') && line.ends_with(" ms")).count(), 2, "{said}");
    let kept = place.done(&["runs", "show", "last", "--json"]).json();
    let operations = kept["steps"][0]["counters"]["operations"].as_u64().unwrap();
    place.write("oratcptest.txt", &said);
    place.done(&["import", "oratcptest.txt", "--runs", "imported"]);
    let imported = place.done(&["runs", "show", "last", "--json", "--runs", "imported"]).json();
    let throughput = imported["steps"][0]["reported"]
        .as_array()
        .unwrap()
        .iter()
        .find(|figure| figure["name"] == "throughput")
        .and_then(|figure| figure["value"].as_f64())
        .unwrap();
    let sent = operations as f64 * 8_192.0 / 2.0;
    assert!((throughput / sent - 1.0).abs() < 0.02, "{throughput} of {sent}");
    assert_eq!(imported["parameters"]["Number of connections"], "1");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let place = Place::new();
    let words = ["net", "run", "--to", "self", "--pattern", "ping", "--duration=60", "--warmup=0s"];
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let rest = wait_for(&mut child, "measures no network");
    wait_for_intervals(&place, 1);
    signal(&child, "-INT");
    std::io::BufRead::lines(rest).for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!(run["outcome"], "interrupted", "{}", run["outcome"]);
    assert!(run["steps"][0]["counters"]["operations"].as_u64().is_some_and(|operations| operations > 0));
}

#[test]
fn what_would_be_done_is_said_without_a_server() {
    let place = Place::new();
    let said = place.done(&["net", "run", "--to", "db2", "--dry-run"]).stdout;
    assert!(said.contains("loaded_up") && said.contains("8 flows to send"), "{said}");
    let words = ["net", "sweep", "--to", "db2", "--pattern", "gc", "--rate", "1000..60000", "--dry-run"];
    assert!(place.done(&words).stdout.contains("search from 1000 to 60000 operations/s"));
}

#[test]
fn a_matrix_names_the_slow_link() {
    let place = Place::new();
    // 16 Mbit/s, where others have gigabits.
    let servers =
        [Served::start(&place, &[]), Served::start(&place, &["--max-rate", "2M"]), Served::start(&place, &[])];
    let to = servers.iter().map(|served| served.address.as_str()).collect::<Vec<_>>().join(",");
    let words = ["net", "matrix", "--to", &to, "--flows", "2", "--duration=600ms", "--warmup=0s", "--quiet", "--json"];
    let output = place.plimsoll(&words).env("PLIMSOLL_NET_TOKEN", TOKEN).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = run["run"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 11, "three of each server and two of all");
    let all = steps[9]["network"].as_array().unwrap();
    for served in &servers {
        let ends = all.iter().filter(|end| end["server"] == served.address.as_str());
        let mut sides: Vec<&str> = ends.map(|end| end["side"].as_str().unwrap()).collect();
        sides.sort_unstable();
        assert_eq!(sides, ["client", "server"], "both ends of {}: {all:#?}", served.address);
    }
    let said = place.done(&["report", "last"]).stdout;
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let slow = &servers[1].address;
    for words in ["to", "from"].map(|way| format!("A slow link: {way} {slow} ")) {
        assert!(flat.contains(&words), "{words}: {said}");
    }
    assert!(flat.contains("all at once") && flat.contains("both ends are on this host"), "{said}");
    assert!(said.contains("Links (Gbit/s that were received"), "{said}");
}

#[test]
fn a_matrix_begins_with_all_servers_or_not_at_all() {
    let place = Place::new();
    let served = Served::start(&place, &[]);
    let port = DeafPort::bind();
    let to = format!("{},{}", served.address, port.address);
    let mut command = place.plimsoll(&["net", "matrix", "--to", &to]);
    let output = command.env("PLIMSOLL_NET_TOKEN", TOKEN).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot connect to `{}`", port.address)) && said.contains("hint:"), "{said}");
    assert!(place.runs().is_empty(), "nothing ran");
    let said = place.done(&["net", "matrix", "--to", "db2,db3", "--dry-run"]).stdout;
    assert!(
        said.contains("db3:7018_down") && said.contains("all_up: 4 flows to send, chunks of 128 KiB; 4 flows"),
        "{said}"
    );
}

#[test]
fn a_matrix_that_is_ended_keeps_what_was_measured() {
    let place = Place::new();
    let servers = [Served::start(&place, &[]), Served::start(&place, &[])];
    let to = servers.iter().map(|served| served.address.as_str()).collect::<Vec<_>>().join(",");
    let mut command = place.plimsoll(&["net", "matrix", "--to", &to, "--duration=60", "--warmup=0s"]);
    command.env("PLIMSOLL_NET_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let rest = wait_for(&mut child, "step 1 of 8");
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&child, "-INT");
    rest.lines().for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let run = place.done(&["runs", "show", "last", "--json"]).json();
    assert_eq!((&run["outcome"], run["steps"].as_array().unwrap().len()), (&"interrupted".into(), 1), "{run}");
}

#[test]
fn a_load_on_a_network_runs_beside_another() {
    let place = Place::new();
    let net = "net run --to self --pattern redo-sync -- io run --path sim: --pattern randread --depth 2";
    let line = format!("beside --rounds 1 --duration 1s --warmup 0s --json -- {net}");
    let answer = place.run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert_eq!(place.runs().len(), 4, "each alone and both together");
}

#[test]
fn both_ends_on_one_host_are_no_limit_of_a_load_generator() {
    let place = Place::new();
    let said = place.done(&short("gc", &["--connections", "4"])).stdout;
    let first = said.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        first.contains(
            "both ends are on this host, so that this is what its processors and kernel do, and not a network"
        ),
        "{said}"
    );
    // A busy machine may stop it for a while, which says nothing of its limit.
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for limit in [
        "limit of the load generator",
        "stopped by the load generator",
        "load generator was the limit",
        "load generator had no processor time left",
    ] {
        assert!(!flat.contains(limit), "{said}");
    }
}

/// Nothing has been measured yet, so that there is nothing to wait for.
#[test]
fn one_ctrl_c_leaves_an_end_that_says_nothing() {
    let place = Place::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let part = ["--part", "1/2", "--meet", &address, "--meet-wait", "1h"];
    let load = ["io", "run", "--path", "sim:", "--pattern", "randread", "--depth", "2", "--duration", "1"];
    for words in
        [&["net", "run", "--to", &address, "--pattern", "ping", "--timeout", "1h"][..], &[&load[..], &part].concat()]
    {
        let mut command = place.plimsoll(words);
        command.env("PLIMSOLL_NET_TOKEN", TOKEN).env("PLIMSOLL_MEET_TOKEN", TOKEN);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let _connected = loop {
            match silent.accept() {
                Ok(connected) => break connected,
                Err(_) => assert!(child.try_wait().unwrap().is_none(), "{words:?} ended by itself"),
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        signal(&child, "-INT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words:?}");
    }
}
