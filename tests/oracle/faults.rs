//! What goes wrong with an Oracle database, and what its user reads then: Oracle's number, our words, a hint, and the right end.

use std::time::{Duration, Instant};

use crate::model::Model;
use crate::responder::{Answer, Fault, GENERATIONS, Generation, Options, Responder, Stage, Way};
use crate::whole::{PASSWORD, Site};

/// What makes data unfit.
type Spoil<'a> = &'a dyn Fn(&Model);

/// Checks what is said, and that it ends with what to do about it.
fn refused(site: &Site, address: &str, words: &[&str], says: &[&str]) {
    let answer = site.run_at(address, words);
    assert_eq!(answer.code, Some(2), "{answer}");
    for part in says {
        assert!(answer.stderr.contains(part), "`{part}` is not in:\n{answer}");
    }
    assert!(answer.stderr.contains("hint: "), "{answer}");
    assert!(!answer.stderr.contains("panicked"), "{answer}");
}

#[test]
fn whoever_cannot_connect_learns_why_and_what_to_do() {
    let site = Site::new(Generation::V19);
    let (address, port) = (site.address(), site.responder.port());
    let info = ["slob", "info"];
    refused(&site, &address.replace("orcl", "nosuch"), &info, &["ORA-12514", "no service `nosuch`", "lsnrctl"]);
    refused(&site, "oracle://slob@127.0.0.1:1/orcl", &info, &["Connection refused", "127.0.0.1:1/orcl"]);
    let faults = [
        (Fault::Refuse(12_516), "ORA-12516", "listener"),
        (
            Fault::Logon { code: 1017, message: "invalid username/password".to_owned() },
            "ORA-01017",
            "PLIMSOLL_ORACLE_PASSWORD",
        ),
        (Fault::Logon { code: 28_000, message: "the account is locked".to_owned() }, "ORA-28000", "ACCOUNT UNLOCK"),
        (Fault::OldServer, "older than 12.1", "12.1 or later"),
        (Fault::OldVerifier, "old password", "IDENTIFIED BY"),
        (Fault::NativeEncryption, "native network encryption", "SQLNET.ENCRYPTION_SERVER"),
        (Fault::Close(Stage::Accepted), "closed", "listener"),
        (Fault::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), "does not answer", "check host and port"),
    ];
    for (fault, says, hint) in faults {
        let what = format!("{fault:?}");
        // Only those bytes leave the program waiting until then. All others say something, on a busy machine late.
        let timeout = if matches!(fault, Fault::Bytes(_)) { 2 } else { 20 };
        site.responder.set_fault(Some(fault));
        let answer = site.run_at(&format!("{address}?connect-timeout={timeout}"), &info);
        assert_eq!(answer.code, Some(2), "{what}\n{answer}");
        assert!(answer.stderr.contains(says) && answer.stderr.contains(hint), "{what}\n{answer}");
        assert!(!answer.stderr.contains("panicked"), "{what}\n{answer}");
    }
    // A listener that sends the client on is followed.
    let options = Options { hashings: 1, password: PASSWORD.to_owned(), ..Options::default() };
    let other = Responder::start(options, Model::default());
    site.responder.set_fault(Some(Fault::Redirect(other.address())));
    refused(&site, &format!("oracle://slob@127.0.0.1:{port}/orcl"), &info, &["no SLOB data"]);
    assert_eq!(other.sessions().len(), 1);
}

#[test]
fn whoever_stops_answering_while_somebody_connects_is_not_waited_for_without_end() {
    let stops = [
        Fault::Silence(Stage::Connect),
        Fault::Silence(Stage::Accepted),
        Fault::Silence(Stage::Password),
        Fault::StopInTheMiddle,
    ];
    for generation in GENERATIONS {
        let site = Site::new(generation);
        let address = format!("{}?connect-timeout=1", site.address());
        for stop in &stops {
            site.responder.set_fault(Some(stop.clone()));
            let asked = Instant::now();
            refused(&site, &address, &["slob", "info"], &["ORA-12170", "answer", "connect-timeout=60"]);
            assert!(asked.elapsed() < Duration::from_secs(30), "{stop:?} {generation:?}");
        }
        // The same address serves again once the cause is gone.
        site.responder.set_fault(None);
        refused(&site, &site.address(), &["slob", "info"], &["no SLOB data"]);
    }
}

/// There is no client where this is tested. Where there is one, it cannot speak with the responder, and says something else.
#[test]
fn an_installed_client_is_asked_for_in_words_and_its_lack_has_a_cure() {
    let site = Site::new(Generation::V19);
    let address = format!("{}?driver=oci&connect-timeout=2", site.address());
    let info = ["slob", "info"];
    if !cfg!(feature = "oracle-oci") {
        let says = ["built without the driver", "make build FEATURES=oracle-oci", "leave out `driver=oci`"];
        return refused(&site, &address, &info, &says);
    }
    let is_there = std::process::Command::new("ldconfig").arg("-p").output();
    if is_there.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains("libclntsh")) {
        return crate::skip::skip("the error without an Oracle client cannot be seen where one is installed");
    }
    refused(
        &site,
        &address,
        &info,
        &["no Oracle client could be loaded", "DPI-1047", "instant-client", "LD_LIBRARY_PATH"],
    );
    assert!(site.responder.sessions().is_empty());
}

#[test]
fn refusals_of_a_set_up_say_what_is_missing() {
    for (text, code, message, hint) in [
        ("CREATE TABLE", 1031, "insufficient privileges", "GRANT"),
        ("INSERT /*+ APPEND_VALUES */", 1652, "unable to extend temp segment", "tablespace"),
        ("INSERT /*+ APPEND_VALUES */", 1536, "space quota exceeded", "QUOTA"),
        ("CREATE UNIQUE INDEX", 1652, "unable to extend temp segment", "tablespace"),
    ] {
        let site = Site::new(Generation::V19);
        site.model.with(|database| database.refused.push((text.to_owned(), code, message.to_owned())));
        let words = ["slob", "setup", "-s", "1", "SCALE=300", "--quiet"];
        let number = format!("ORA-{code:05}");
        refused(&site, &site.address(), &words, &[&number, message, hint]);
        // The same command goes on from there once the cause is gone.
        site.model.with(|database| database.refused.clear());
        site.done(&words);
        assert!(site.done(&["slob", "verify"]).stdout.contains("sound"));
    }
}

#[test]
fn errors_that_cost_an_operation_do_not_end_a_load_and_others_do() {
    let site = Site::new(Generation::V19);
    site.set_up();
    for (code, ends) in
        [(60, false), (1555, false), (1013, false), (942, true), (1031, true), (1578, true), (3113, true)]
    {
        for send in ["statement", "batch"] {
            let updates = if send == "batch" { ":operations" } else { ":touched" };
            let message = format!("as the model was asked for {code}");
            site.model.with(|database| database.refused = vec![(updates.to_owned(), code, message.clone())]);
            let words = ["slob", "run", "--send", send, "UPDATE_PCT=50", "WORK_LOOP=40", "--warmup", "0"];
            let answer = site.run(&words);
            let number = format!("ORA-{code:05}");
            assert!(
                answer.to_string().contains(&number) && answer.to_string().contains(&message),
                "{code} {send}\n{answer}"
            );
            // Damaged data are another end than a load that could not go on.
            let end = if code == 1578 { 1 } else { 2 };
            assert!(!ends || answer.code == Some(end), "{code} {send}\n{answer}");
        }
    }
}

#[test]
fn an_instance_that_goes_away_ends_the_load_with_what_was_measured() {
    let site = Site::new(Generation::V23);
    site.set_up();
    let address = site.address();
    let words = ["slob", "run", "--threads", "2", "RUN_TIME=60", "--warmup", "0", "--target", &address];
    let mut child = site
        .place
        .plimsoll(&words)
        .env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    site.responder.wait_until("the load runs", |sessions| {
        sessions.iter().map(|session| session.round_trips).sum::<u64>() > 2_000
    });
    site.responder.go_away();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let id = site.place.runs().pop().unwrap();
    let shown = site.place.run(&["report", &id, "--json"]);
    let run = &shown.json()["run"];
    assert!(run["steps"][0]["counters"]["operations"].as_u64().unwrap() > 0, "{shown}");
    assert!(run["outcome"]["failed"]["error"].as_str().unwrap().contains("is gone"), "{shown}");
}

#[test]
fn data_that_do_not_lie_as_the_method_needs_are_refused_before_the_load() {
    let run = ["slob", "run", "WORK_LOOP=10", "--quiet"];
    let spoil: [(Spoil<'_>, &str); 4] = [
        (&|model| assert!(model.with(|database| database.indexes.remove("slob_1_key"))), "is missing"),
        (
            &|model| {
                model.with(|database| {
                    let rows = &mut database.tables.get_mut("slob_2").unwrap().rows;
                    let block = rows[&0].block;
                    rows.get_mut(&299).unwrap().block = block;
                });
            },
            "share a block",
        ),
        (
            &|model| model.with(|database| drop(database.tables.get_mut("slob_1").unwrap().rows.remove(&150))),
            "299 rows",
        ),
        (
            &|model| {
                let line = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
                let plan = vec![line("SELECT STATEMENT", "", ""), line("TABLE ACCESS", "FULL", "SLOB_1")];
                model.with(|database| database.plan = plan);
            },
            "TABLE ACCESS FULL",
        ),
    ];
    for (spoil, says) in spoil {
        let site = Site::new(Generation::V19);
        site.set_up();
        spoil(&site.model);
        refused(&site, &site.address(), &run, &[says]);
        assert!(site.executed().is_empty(), "nothing was measured");
    }
}

#[test]
fn a_standby_takes_no_data_and_no_updates() {
    let site = Site::new(Generation::V19);
    site.model.with(|database| database.role = "PHYSICAL STANDBY".to_owned());
    refused(&site, &site.address(), &["slob", "setup", "-s", "1", "SCALE=300"], &["physical standby", "primary"]);
}

#[test]
fn times_that_no_block_of_ours_has_written_end_the_load_and_blame_no_data() {
    let site = Site::new(Generation::V23);
    site.set_up();
    for bytes in [vec![7; 16], vec![0; 16 * 40], Vec::new()] {
        let answer = Answer::Block { ways: vec![Way::In, Way::Out], out: vec![vec![bytes.into()]] };
        site.model.with(|database| database.answered = vec![(":operations".to_owned(), [answer].into())]);
        let words = ["slob", "run", "--send", "batch", "UPDATE_PCT=0", "RUN_TIME=1", "--warmup", "0"];
        refused(&site, &site.address(), &words, &["other times", "--send statement"]);
    }
}
