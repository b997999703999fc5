//! Load of order entry on a private server: what comes out, and what an audit finds when the server loses what it acknowledged.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::manners::long_enough;
use crate::place::{Place, kinds};
use crate::servers::{last_run, servers, signal, wait_until};
use crate::skip::skip;
use sql::postgres::test_server::is_installed;

/// A private server with the smallest data, which goes on running.
fn server(place: &Place) -> String {
    let address = format!("pg:{}", place.path("server").display());
    let set_up =
        ["orders", "setup", "--scale", "0.001", "--seed", "7", "--quiet", "--keep-running", "--target", &address];
    place.done(&set_up);
    address
}

/// Asks the private server, and gives the answer's lines.
fn ask(place: &Place, statement: &str) -> Vec<String> {
    let socket = place.path("server/run");
    let psql = Command::new("psql")
        .args(["-XAtq", "-U", "plimsoll", "-d", "plimsoll", "-h", &socket.display().to_string(), "-c", statement])
        .output()
        .unwrap();
    assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
    String::from_utf8(psql.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Kills a server with all its processes at one moment, as far as a signal can: what it has not written is gone. Returns whether
/// they are gone as well.
fn kill_all(directory: &Path) -> bool {
    let postmaster = servers(directory)[0];
    signal(postmaster, "STOP");
    let parent = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let children: Vec<String> = pids.filter(|pid| parent(pid) == Some(postmaster)).collect();
    let pids = children.iter().map(String::as_str).chain([&*postmaster.to_string()]).collect::<Vec<_>>().join(" ");
    assert!(Command::new("sh").args(["-c", &format!("kill -KILL {pids}")]).status().unwrap().success());
    // A server that starts takes one that nobody has buried yet for one that is alive, and not every container has somebody who does.
    let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
    let is_buried = || pids.split(' ').all(gone);
    let begun = Instant::now();
    while !is_buried() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    is_buried()
}

#[test]
fn an_audit_finds_exactly_the_orders_that_a_killed_server_lost() {
    loses_what_it_acknowledged("statement");
}

#[test]
fn an_audit_finds_exactly_the_orders_of_calls_that_a_killed_server_lost() {
    loses_what_it_acknowledged("procedure");
}

fn loses_what_it_acknowledged(send: &str) {
    if !is_installed() {
        return;
    }
    let place = Place::on_disk();
    let address = server(&place);
    // Commits are acknowledged before they are written.
    ask(&place, "ALTER ROLE plimsoll SET synchronous_commit = off");
    let run = ["orders", "run", "--users", "4", "--mix", "OP=1", "--duration", "300", "--warmup", "0s", "--no-trace"];
    let mut child = place
        .plimsoll(&[&run[..], &["--send", send, "--keep-running", "--target", &address]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let made = || ask(&place, "SELECT last_value FROM plimsoll.orders_seq")[0].parse::<u64>().unwrap();
    let first = made();
    wait_until("orders are made", || made() > first + 500);
    let is_buried = kill_all(&place.path("server"));
    assert_eq!(child.wait().unwrap().code(), Some(2));
    if !is_buried {
        return skip("nobody buries the processes of a killed server here, so none can be started in its place");
    }

    let id = place.runs().pop().unwrap();
    let kept = fs::read_to_string(place.path("plimsoll-runs").join(&id).join("acknowledged.txt")).unwrap();
    let acknowledged: Vec<u64> = kept.lines().filter_map(|line| line.strip_prefix("order ")?.parse().ok()).collect();
    assert!(!acknowledged.is_empty());
    let verify = ["orders", "verify", "--run", &id, "--keep-running", "--json", "--target", &address];
    let answer = place.run(&verify);
    assert!(!answer.stdout.is_empty(), "{answer}");
    let there: BTreeSet<u64> =
        ask(&place, "SELECT order_id FROM plimsoll.orders").iter().map(|key| key.parse().unwrap()).collect();
    let lost = acknowledged.iter().filter(|key| !there.contains(key)).count() as u64;
    let document: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let rules = document["rules"].as_array().unwrap();
    let found = |rule: &str| rules.iter().find(|found| found["rule"] == rule).unwrap()["violations"].as_u64().unwrap();
    assert_eq!(found("each order that was acknowledged is there"), lost, "{answer}");
    assert_eq!(answer.code, Some(if lost > 0 { 1 } else { 0 }), "{answer}");
    // What was not lost is whole.
    assert_eq!(found("each order's total is the sum of its items"), 0, "{answer}");
    if lost == 0 {
        skip("the server had written all that it acknowledged when it was killed");
    }
    // Somebody spoils the data.
    ask(&place, "UPDATE plimsoll.orders SET order_total = order_total + 1 WHERE order_id = 17");
    ask(
        &place,
        "UPDATE plimsoll.inventories SET quantity_on_hand = -3 WHERE product_id = 5 AND warehouse_id = (SELECT min(warehouse_id) FROM plimsoll.inventories WHERE product_id = 5)",
    );
    ask(&place, "ALTER TABLE plimsoll.order_items DROP CONSTRAINT order_items_order_fk");
    ask(&place, "DELETE FROM plimsoll.orders WHERE order_id = 18");
    let spoiled = place.run(&["orders", "verify", "--target", &address]);
    assert_eq!(spoiled.code, Some(1), "{spoiled}");
    for words in [
        "sum of its items: not so 1 times\n",
        "17, ",
        "no stock is below zero: not so 1 times",
        "5, ",
        "each item has its order: not so",
        "18, 1, ",
    ] {
        assert!(spoiled.stdout.contains(words), "{words}\n{spoiled}");
    }
    assert!(spoiled.stdout.contains("1428 of 1430 rows") || spoiled.stdout.contains("1429 of 1430 rows"), "{spoiled}");
}

#[test]
fn a_run_and_a_sweep_are_reported_kept_and_written_as_swingbench_does() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let address = server(&place);
    let any = ["--warmup", "0s", "--no-trace", "--keep-running", "--seed", "3", "--target", &address];
    let common = [&["--duration", "5"][..], &any].concat();
    let run = |seconds: &str, results: &str| {
        let words = ["orders", "run", "--users", "3", "--mix", "2.7", "--duration", seconds, "--results", results];
        place.run(&[&words[..], &any].concat())
    };
    let first = |seconds: &str| {
        let results = place.path(&format!("results{seconds}.xml")).to_str().unwrap().to_owned();
        let answer = run(seconds, &results);
        assert_eq!(answer.code, Some(0), "{answer}");
        (answer, results, last_run(&place))
    };
    let (answer, results, kept) = long_enough(first, |(.., kept)| {
        let kinds = kinds(kept);
        kinds.contains(&"browse products") && kinds.contains(&"order products")
    });
    let results = results.as_str();
    for words in ["Transactions", "per minute", "audit: all 11 rules hold"] {
        assert!(answer.stdout.contains(words), "{words}\n{answer}");
    }
    let again = run("1", results);
    assert_eq!(again.code, Some(2), "{again}");
    assert!(again.stderr.contains("is there already"), "{again}");
    let id = kept["id"].as_str().unwrap().to_owned();
    let imported = place.done(&["import", results, "--json"]).json();
    let imported = imported[0]["id"].as_str().unwrap();
    let read = place.done(&["report", imported, "--full"]);
    assert!(read.stdout.contains("Order Products"), "{read}");
    let full = place.done(&["report", &id, "--full"]);
    for words in ["browse products", "round trips", "rolled back"] {
        assert!(full.stdout.contains(words), "{words}\n{full}");
    }
    let sweep =
        [&["orders", "sweep", "--users", "1,2", "--limit", "order products response:p99=20s"][..], &common].concat();
    let swept = place.done(&sweep);
    assert!(
        swept.stdout.contains("u1 ") && swept.stdout.contains("u2 ") && swept.stdout.contains("transactions/s"),
        "{swept}"
    );
    // The same as calls of procedures, which come with the first run and go with the data.
    let called = [&["orders", "run", "--users", "3", "--send", "procedure"][..], &common].concat();
    let answer = place.done(&called);
    for words in ["9 procedures were made", "audit: all 11 rules hold", "send=procedure"] {
        assert!(answer.to_string().contains(words), "{words}\n{answer}");
    }
    let again = place.done(&called);
    assert!(!again.to_string().contains("procedures were made"), "{again}");
    let runs = place.runs();
    let [.., first, second] = runs.as_slice() else { panic!("{runs:?}") };
    let alike = place.done(&["compare", first, second]);
    assert!(!alike.stdout.contains("send"), "{alike}");
    let unlike = place.done(&["compare", &id, second, "--full"]);
    assert!(unlike.stdout.contains("send"), "{unlike}");
    let listed = place.done(&["orders", "run", "--dry-run", "--send", "procedure", "--target", &address]);
    assert!(listed.stdout.contains("plimsoll_order_products, plimsoll_process_orders"), "{listed}");
    let info = place.done(&["orders", "info", "--keep-running", "--target", &address]);
    assert!(info.stdout.contains("plimsoll_warehouse_query"), "{info}");
    let listed =
        place.done(&["orders", "run", "--dry-run", "--think-inside", "1ms..5ms", "--rate", "50", "--target", &address]);
    assert!(listed.stdout.contains("THINK_INSIDE=1ms..5ms") && listed.stdout.contains("50 transactions/s"), "{listed}");
    connections_are_made_anew(&place, &address);
    let last = ["orders", "drop", "--yes", "--target", &address];
    place.done(&last);
    assert!(!place.path("server").exists());
}

/// The wait for connections that were made anew within the window.
fn connects(document: &Value) -> Option<&Value> {
    document["run"]["steps"][0]["waits"].as_array()?.iter().find(|wait| wait["event"] == "connect")
}

/// On a server that goes on running, with data.
fn connections_are_made_anew(place: &Place, address: &str) {
    let run = |more: &[&str]| {
        let common = ["orders", "run", "--users", "3", "--warmup", "0s", "--no-trace", "--keep-running", "--target"];
        [&common[..], &[address], more].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let connecting = |more: &[&str]| {
        let of_length = |seconds: &str| {
            let words = run(&[more, &["--duration", seconds, "--json"]].concat());
            place.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let answer = long_enough(of_length, |answer| {
            connects(&answer.json()).is_some_and(|wait| wait["waits"]["count"].as_u64() > Some(2))
        });
        assert_eq!(answer.code, Some(0), "{answer}");
        answer
    };
    let document = connecting(&["--reconnect", "every", "--limit", "connect:p99=10s"]).json();
    let connects_anew = connects(&document).unwrap();
    assert!(connects_anew["waits"]["count"].as_u64() > Some(2), "{connects_anew}");
    assert_eq!(
        (connects_anew["layer"].as_str(), connects_anew["class"].as_str()),
        (Some("client"), Some("Connection"))
    );
    assert_eq!(document["run"]["parameters"]["RECONNECT"], "every");
    assert_eq!(document["verdict"]["answer"], "yes");
    let seconds = document["transactions"][0]["seconds"].as_array().unwrap();
    assert!(seconds.iter().all(|second| second["transactions_per_minute"].is_null()), "{seconds:?}");
    // A second may be spent on a checkpoint alone.
    let rates: Option<Vec<f64>> = seconds.iter().map(|second| second["transactions_per_s"].as_f64()).collect();
    assert!(rates.is_some_and(|rates| rates.iter().sum::<f64>() > 0.0), "{seconds:?}");
    let reported = place.done(&["report", "last", "--full"]);
    for words in ["Connections made anew", "p99.9"] {
        assert!(reported.stdout.contains(words), "{words}\n{reported}");
    }
    let table = place.done(&["table", "last", "--format", "json"]).json();
    assert!(table[0]["CONNECTS"].as_f64() > Some(0.0) && table[0]["TPM_MAX"].is_null(), "{table}");

    // Calls of procedures, which are there already, and each user's connection is made anew after two of them.
    let called = connecting(&["--reconnect", "2", "--send", "procedure", "--mix", "OP=1"]);
    assert!(called.to_string().contains("audit: all 11 rules hold"), "{called}");
    let document = called.json();
    let step = &document["run"]["steps"][0];
    let connects = connects(&document).unwrap()["waits"]["count"].as_u64().unwrap();
    let orders = step["counters"]["operations"].as_u64().unwrap();
    // Each of three users may have made one more for what ended outside.
    assert!(orders > 0 && connects.abs_diff(orders / 2) <= 6, "{connects} connections, {orders} orders");
    assert_eq!(step["counters"]["errors"], 0, "{step:#}");

    // From now on nobody is let in.
    let (hba, postmaster) = (place.path("server/data/pg_hba.conf"), servers(&place.path("server"))[0]);
    let lets_in = fs::read_to_string(&hba).unwrap();
    let words = run(&["--reconnect", "2", "--duration", "60"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("users are at work", || {
        ask(place, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%inventories%' AND pid <> pg_backend_pid()").len()
            > 1
    });
    fs::write(&hba, "local all all reject\n").unwrap();
    signal(postmaster, "HUP");
    let begun = Instant::now();
    let ended = child.wait_with_output().unwrap();
    fs::write(&hba, lets_in).unwrap();
    signal(postmaster, "HUP");
    let reported = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{reported}");
    assert!(
        reported.contains("pg_hba.conf rejects connection") && begun.elapsed() < Duration::from_secs(50),
        "{reported}"
    );
    wait_until("the server lets us in again", || {
        place.run(&["orders", "info", "--target", address, "--json"]).code == Some(0)
    });
}

#[test]
fn the_first_ctrl_c_ends_waiting_for_a_server_that_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new();
    for address in
        ["postgres://u@127.0.0.1:PORT/db?sslmode=disable", "mysql://u@127.0.0.1:PORT/db", "oracle://u@127.0.0.1:PORT/s"]
    {
        let address = address.replace("PORT", &port.to_string());
        let command = if address.starts_with("oracle") { "slob" } else { "orders" };
        let mut child = place
            .plimsoll(&[command, "info", "--target", &address])
            .env("PLIMSOLL_ORACLE_PASSWORD", "secret")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It is there once it has called; the listener never answers.
        let (called, _) = listener.accept().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        signal(child.id(), "INT");
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{address}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{address}: {:?}", begun.elapsed());
        drop(called);
    }
}

#[test]
fn load_that_makes_no_sense_is_refused_with_advice() {
    let place = Place::new();
    let target = format!("pg:{}", place.path("server").display());
    let cases = [
        (&["--mix", "NEW=1"][..], "there is no transaction `NEW`"),
        (&["--mix", "OP=0"], "every weight is 0"),
        (&["--mix", "OP"], "is neither NAME=WEIGHT nor a preset"),
        (&["--users", "0"], "--users"),
        (&["--think", "soon"], "--think"),
        (&["--think", "5ms..1ms"], "is longer than the longest"),
        (&["--think", "5ms", "--rate", "10"], "exclude each other"),
        (&["--duration", "0.5"], "shorter than one second"),
        (&["--isolation", "dirty"], "possible values"),
        (&["--limit", "scan:p99=1ms"], "scan"),
        (&["--reconnect", "0"], "a connection is made anew"),
        (&["--reconnect", "often"], "a connection is made anew"),
        (&["--limit", "connect:p99=1ms"], "--reconnect"),
        (&["--results", "/nonexistent/results.xml"], "there is no folder `/nonexistent`"),
        (&[], "plimsoll orders setup"),
    ];
    for (words, reason) in cases {
        let answer = place.run(&[&["orders", "run", "--target", &target][..], words].concat());
        assert_eq!(answer.code, Some(2), "{words:?}\n{answer}");
        assert!(answer.stderr.contains(reason), "{words:?}\n{answer}");
    }
    let answer = place.run(&["orders", "run", "--target", "sim:"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("cannot hold order entry"), "{answer}");
    assert!(!place.path("server").exists(), "nothing was made");
}
