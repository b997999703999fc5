//! Order entry as its user meets it, against the model behind the responder: from set-up over load and audit to removal.
//!
//! One set-up makes everything, and what comes after it works on copies of that.

use std::process::Stdio;
use std::sync::OnceLock;

use serde_json::Value as Json;

use crate::model::{Cell, Shop};
use crate::place::Answer as Said;
use crate::responder::{Answer, Column, Generation, Options, State};
use crate::whole::{PASSWORD, Site, longer};

const SET_UP: [&str; 7] = ["orders", "setup", "--scale", "0.001", "--seed", "7", "--quiet"];
const RUN: [&str; 8] = ["orders", "run", "--users", "2", "--warmup", "0s", "--no-trace", "--seed=3"];

/// Whole data, made by the program over all that may come between.
fn made() -> Shop {
    static MADE: OnceLock<Shop> = OnceLock::new();
    MADE.get_or_init(make_over_faults).clone()
}

/// A place with whole data.
pub fn site() -> Site {
    site_of(Options::of(Generation::V19))
}

fn site_of(options: Options) -> Site {
    let site = Site::with(options);
    let shop = made();
    site.model.with(|database| {
        database.shop = shop;
        let lock = crate::model::Table { rows: [(1, crate::model::Row::default())].into(), ..Default::default() };
        database.tables.insert("plimsoll_lock".to_owned(), lock);
    });
    site
}

fn run_of(answer: &Said) -> Json {
    answer.json()["run"].clone()
}

fn refused(answer: &Said, says: &[&str]) {
    assert_eq!(answer.code, Some(2), "{answer}");
    for part in says {
        assert!(answer.stderr.contains(part), "`{part}` is not in:\n{answer}");
    }
    assert!(answer.stderr.contains("hint: ") && !answer.stderr.contains("panicked"), "{answer}");
}

fn make_over_faults() -> Shop {
    let site = Site::new(Generation::V23);
    let dry = site.done(&["orders", "setup", "--scale", "0.001", "--dry-run"]);
    for part in ["GRANT CREATE SEQUENCE TO \"SLOB\"", "order entry of scale 0.001", "of redo"] {
        assert!(dry.stdout.contains(part), "{part}\n{dry}");
    }
    assert!(dry.to_string().contains("how much room the server has is not known"), "{dry}");
    assert!(!dry.stdout.contains("DBMS_WORKLOAD_REPOSITORY"), "{dry}");

    // Nothing is made where it has no room, or where somebody has such a table.
    site.model.with(|database| database.shop.quota = Some((0, 1 << 20)));
    refused(&site.run(&SET_UP), &["1 MiB are left for the user `SLOB`", "--scale"]);
    // A quota is none for who has space without limit.
    let privileges = Answer::rows([Column::text("PRIVILEGE")], vec![["UNLIMITED TABLESPACE".into()]]);
    site.model.with(|database| database.answered = vec![("FROM session_privs".to_owned(), [privileges].into())]);
    let unlimited = site.done(&["orders", "setup", "--scale", "0.001", "--dry-run"]);
    assert!(unlimited.to_string().contains("how much room the server has is not known"), "{unlimited}");
    site.model.with(|database| {
        database.answered.clear();
        (database.shop.quota, database.shop.room) = (Some((0, -1)), Some(1 << 40));
        database.shop.tables.insert("customers".to_owned(), Default::default());
    });
    refused(&site.run(&SET_UP), &["holds `customers`, which Plimsoll did not make"]);
    site.model.with(|database| database.shop.tables.clear());
    let roomy = site.done(&["orders", "setup", "--scale", "0.001", "--dry-run"]);
    assert!(!roomy.to_string().contains("not known"), "{roomy}");

    // Out of space, then without a right, then killed in the middle: the same command goes on each time.
    let refuse = |text: &str, code, message: &str| {
        site.model.with(|database| database.refused = vec![(text.to_owned(), code, message.to_owned())]);
    };
    refuse("INTO \"SLOB\".orders (", 1653, "unable to extend table SLOB.ORDERS");
    refused(&site.run(&SET_UP), &["ORA-01653", "unable to extend table", "tablespace is full"]);
    let info = site.done(&["orders", "info"]);
    assert!(info.stdout.contains("its set-up was never finished; the same `orders setup` goes on"), "{info}");
    refused(&site.run(&RUN), &["was never finished"]);
    site.model.with(|database| database.refused.clear());
    let address = site.address();
    let words = [&SET_UP[..], &["--target", &address]].concat();
    let before = site.responder.sessions().len();
    let mut child = site
        .place
        .plimsoll(&words)
        .env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_loading = |session: &crate::responder::SessionLog| {
        session.state == State::LoggedOn && session.statements().iter().any(|text| text.contains("APPEND_VALUES"))
    };
    site.responder.wait_until("rows are loaded", |sessions| sessions[before..].iter().any(is_loading));
    let cut: Vec<u32> =
        site.responder.sessions()[before..].iter().filter(|one| is_loading(one)).map(|one| one.session).collect();
    cut.into_iter().for_each(|session| site.responder.cut(session));
    assert_eq!(child.wait().unwrap().code(), Some(2), "its sessions are gone");
    let is_gone = |session: &crate::responder::SessionLog| session.state != State::LoggedOn;
    site.responder.wait_until("all sessions are gone", |sessions| sessions.iter().all(is_gone));
    site.model.with(|database| database.shop.take_back_all());
    refuse("CREATE SEQUENCE", 1031, "insufficient privileges");
    refused(&site.run(&SET_UP), &["ORA-01031", "`plimsoll orders setup --dry-run` prints every GRANT"]);
    site.model.with(|database| database.refused.clear());
    let done = site.done(&[&SET_UP[..], &["--json"]].concat());
    let validation = &done.json()["validation"];
    assert_eq!(validation["is_valid"], true, "{validation:#}");
    site.model.with(|database| database.shop.clone())
}

#[test]
fn partitions_are_made_for_those_alone_who_say_that_they_are_licensed() {
    const CONSENT: &str = "yes, Partitioning is licensed";
    let site = Site::new(Generation::V19);
    let asked = [&SET_UP[..], &["--partitions", "4"]].concat();
    refused(&site.run(&asked), &["licensed besides the database", CONSENT]);
    for words in ["yes", "Yes, Partitioning is licensed", ""] {
        refused(&site.run(&[&asked[..], &["--licensed", words]].concat()), &["does not say", CONSENT]);
    }
    assert!(site.responder.sessions().is_empty(), "nobody was asked before that was clear");
    let alone = site.run(&[&SET_UP[..], &["--licensed", CONSENT]].concat());
    assert!(alone.code == Some(2) && alone.stderr.contains("--partitions"), "{alone}");
    let elsewhere = site.run_at("pg:x", &[&asked[..], &["--licensed", CONSENT]].concat());
    refused(&elsewhere, &["`--licensed` is for Oracle"]);
    // An edition that does not have it says so, and that is no reason to be sent anything.
    let missing = ("PARTITION BY HASH".to_owned(), 439, "feature not enabled: Partitioning".to_owned());
    site.model.with(|database| database.refused.push(missing));
    let agreed = [&asked[..], &["--licensed", CONSENT]].concat();
    refused(&site.run(&agreed), &["ORA-00439", "leave `--partitions` out"]);
    site.model.with(|database| database.refused.clear());
    site.done(&agreed);
    let made = site.responder.calls().iter().filter(|call| call.sql.contains("PARTITION BY HASH")).count();
    assert!(made >= 5, "{made}");
}

#[test]
fn data_are_made_over_faults_and_go_without_a_trace() {
    let site = site();
    site.model.with(|database| {
        let shop = &database.shop;
        let count = |kind: &str| shop.parts.iter().filter(|(other, _)| *other == kind).count();
        assert_eq!((count("key"), count("index"), count("sequence")), (9, 27, 5));
        assert_eq!((count("foreign_key"), count("check")), (7, 5), "{:?}", shop.parts);
        assert_eq!(shop.gathered.len(), 11);
        assert_eq!(shop.tables["customers"].rows.len(), 1_000);
        assert_eq!(shop.descriptor.as_ref().map(|(_, stage, _)| stage.as_str()), Some("ready"));
        assert!(!shop.tables.contains_key("plimsoll_orders_load"));
    });
    let before = site.responder.round_trips();
    site.done(&SET_UP);
    assert!(site.responder.round_trips() - before < 30, "nothing was loaded again");
    let other = site.run(&["orders", "setup", "--scale", "0.002", "--seed", "7"]);
    refused(&other, &["the scale is 0.001 there and 0.002 here", "--replace"]);

    // SLOB's data lie beside it and keep what both need; procedures go with theirs.
    site.set_up();
    site.done(&[&RUN[..], &["--send", "procedure", "--duration", "1"]].concat());
    site.done(&["orders", "drop", "--yes"]);
    site.model.with(|database| {
        let shop = &database.shop;
        assert!(shop.tables.is_empty() && shop.parts.is_empty(), "{:?} {:?}", shop.tables.keys(), shop.parts);
        assert!(shop.procedures.is_empty(), "{:?}", shop.procedures.keys());
        assert!(database.tables.contains_key("plimsoll_lock"));
    });
    assert!(site.done(&["slob", "verify"]).stdout.contains("sound"));
    site.done(&["slob", "drop", "--yes"]);
    site.model.with(|database| assert!(database.tables.is_empty(), "{:?}", database.tables.keys()));
    refused(&site.run(&["orders", "info"]), &["no order entry data", "plimsoll orders setup"]);
}

#[test]
fn transactions_are_done_tried_again_and_audited() {
    let site = site();
    let say = |text: &str, code, message: &str| (text.to_owned(), code, message.to_owned());
    let rules = |answer: &Said| assert!(answer.to_string().contains("rules hold"), "{answer}");
    let are_all_refused = || site.model.with(|database| database.refused_once.is_empty());
    // How long it takes until each of them was tried depends on the machine.
    let attempt = |seconds: &str| {
        site.model.with(|database| {
            database.refused_once = vec![
                say("quantity_on_hand - 1", 60, "deadlock detected while waiting for resource"),
                say("SET order_status = :v1, order_total", 8177, "can't serialize access for this transaction"),
                say("INTO \"SLOB\".addresses", 1, "unique constraint (SLOB.ADDRESSES_PK) violated"),
            ];
        });
        site.done(&[&RUN[..], &["--duration", seconds, "--isolation", "serializable"]].concat())
    };
    rules(&longer(["5", "20", "80"], attempt, |_| are_all_refused()));
    let id = site.place.runs().pop().unwrap();
    let run = run_of(&site.place.run(&["report", &id, "--json"]));
    let text = run.to_string();
    for part in ["deadlock", "serialization", "constraint"] {
        assert!(text.contains(part), "{part}\n{run:#}");
    }
    site.model.with(|database| {
        let shop = &database.shop;
        assert!(database.refused_once.is_empty(), "{:?}", database.refused_once);
        assert!(shop.commits > 0 && shop.rollbacks > 0, "{} {}", shop.commits, shop.rollbacks);
        assert!(shop.tables["orders"].rows.len() > 1_429, "orders were made");
    });
    let calls = site.responder.calls();
    assert!(calls.iter().any(|call| &*call.sql == "ALTER SESSION SET ISOLATION_LEVEL = SERIALIZABLE"));
    assert!(site.done(&["orders", "verify"]).stdout.contains("8 rules in"));
    assert!(site.done(&["orders", "verify", "--run", &id]).stdout.contains("11 rules in"));
    let reconnecting = |seconds: &str| {
        let before = site.responder.sessions().len();
        rules(&site.done(&[&RUN[..], &["--duration", seconds, "--reconnect", "every"]].concat()));
        let done = site.kept().0["steps"][0]["counters"]["operations"].as_u64().unwrap() as usize;
        (done, site.responder.sessions().len() - before)
    };
    let (done, sessions) = longer(["1", "5", "20"], reconnecting, |(done, _)| *done > 0);
    assert!(done > 0 && sessions >= done, "{sessions} sessions for {done} transactions");

    calls_do_transactions_too(&site);

    // What breaks a rule is found.
    site.model.with(|database| {
        let orders = database.shop.tables.get_mut("orders").unwrap();
        let last = *orders.rows.keys().next_back().unwrap();
        orders.rows.remove(&last);
        let stocks = database.shop.tables.get_mut("inventories").unwrap();
        let row = stocks.rows.values_mut().next().unwrap();
        row[2] = Cell::Int(-1);
    });
    let found = site.run(&["orders", "verify", "--run", &id]);
    assert_eq!(found.code, Some(1), "{found}");
    for part in ["no stock is below zero", "each item has its order"] {
        assert!(found.to_string().contains(part), "{part}\n{found}");
    }
}

#[test]
fn pauses_that_no_procedure_of_a_release_can_make_are_refused_before_any_is_made() {
    let site = site_of(Options { release: Some(12), ..Options::of(Generation::V19) });
    let called = [&RUN[..], &["--send", "procedure", "--duration", "1"]].concat();
    let paused = [&called[..], &["--think-inside", "5ms"]].concat();
    refused(&site.run(&paused), &["is Oracle 12.", "cannot pause", "leave `--think-inside` out"]);
    assert!(site.model.with(|database| database.shop.procedures.is_empty()));
    site.done(&called);
    assert_eq!(site.model.with(|database| database.shop.procedures.len()), 9);
}

/// The same load as one call for each transaction, by procedures that are executed from their source.
fn calls_do_transactions_too(site: &Site) {
    fn calling(seconds: &str) -> Vec<&str> {
        [&RUN[..], &["--send", "procedure", "--duration", seconds]].concat()
    }
    let called = calling("2");
    let shop = |look: &dyn Fn(&mut Shop)| site.model.with(|database| look(&mut database.shop));
    let refuse = |text: &str, code, message: &str| {
        site.model.with(|database| database.refused_once.push((text.to_owned(), code, message.to_owned())));
    };
    refuse("CREATE PROCEDURE", 1031, "insufficient privileges");
    refused(&site.run(&called), &["ORA-01031", "`plimsoll orders setup --dry-run` prints every GRANT"]);
    shop(&|shop| drop(shop.procedures.insert("plimsoll_order_products".to_owned(), "PROCEDURE of others".to_owned())));
    refused(&site.run(&called), &["holds `plimsoll_order_products`, which Plimsoll did not make", "--send statement"]);
    shop(&|shop| {
        shop.procedures.clear();
        shop.broken =
            vec![("plimsoll_browse_orders".to_owned(), "PLS-00302: component 'SLEEP' must be declared".to_owned())];
    });
    refused(&site.run(&called), &["`plimsoll_browse_orders` cannot be executed", "PLS-00302", "--send statement"]);
    shop(&|shop| shop.broken.clear());
    // They are there by now; one is of another version.
    let old = |source: &str| source.replacen("version ", "version 0", 1);
    let count_of = |run: &Json| -> u64 {
        let operations = run["steps"][0]["operations"].as_array().unwrap();
        operations.iter().map(|operation| operation["count"].as_u64().unwrap()).sum()
    };
    let attempt = |seconds: &str| {
        shop(&|shop| {
            let browse = shop.procedures.get_mut("plimsoll_browse_products").unwrap();
            *browse = old(browse);
        });
        site.model.with(|database| database.refused_once.clear());
        refuse("plimsoll_order_products(", 60, "deadlock detected while waiting for resource");
        let earlier = site.model.with(|database| (database.shop.tables["orders"].rows.len(), database.shop.calls));
        let answer = site.done(&calling(seconds));
        assert!(answer.to_string().contains("audit: all 11 rules hold"), "{answer}");
        assert!(answer.to_string().contains("1 procedures were made"), "{answer}");
        let id = site.place.runs().pop().unwrap();
        (run_of(&site.place.run(&["report", &id, "--json"])), earlier)
    };
    let has_enough = |run: &Json| count_of(run) > 10 && site.model.with(|database| database.refused_once.is_empty());
    let (run, (orders, before)) = longer(["2", "8", "32"], attempt, |(run, _)| has_enough(run));
    assert!(run.to_string().contains("deadlock"), "{run:#}");
    let operations = run["steps"][0]["operations"].as_array().unwrap();
    let sum = |name: &str| -> u64 {
        operations.iter().map(|operation| operation["transactions"][name].as_u64().unwrap()).sum()
    };
    let done = count_of(&run);
    // That which was refused took a call and a rollback more; what ended outside of the window is in none of them.
    assert!(done > 10 && sum("round_trips").abs_diff(done) <= 2, "{} {done}", sum("round_trips"));
    assert!(sum("statements") > 2 * done && sum("rows_read") > 0 && sum("rows_changed") > 0 && sum("commits") > 0);
    shop(&|shop| {
        assert!(shop.calls - before >= done && shop.tables["orders"].rows.len() > orders, "{} {done}", shop.calls);
        assert_eq!(shop.procedures.len(), 9);
    });
    assert!(site.done(&["orders", "info"]).stdout.contains("plimsoll_warehouse_query"));
    assert!(site.done(&["orders", "drop", "--dry-run"]).to_string().contains("9 procedures"));
    // One that is gone ends the load.
    let mix = [&called[..], &["--mix", "SQ=1"]].concat();
    site.model.with(|database| {
        let gone = (":v9); END;".to_owned(), 6550, "PLS-00201: identifier must be declared".to_owned());
        database.refused.push(gone);
    });
    refused(&site.run(&mix), &["the procedure `plimsoll_sales_rep_query` is gone", "made anew"]);
    site.model.with(|database| database.refused.clear());
}

#[test]
fn load_that_cannot_be_or_that_ends_early_says_why() {
    let site = site();
    refused(
        &site.run(&[&RUN[..], &["--isolation", "repeatable-read"]].concat()),
        &["Oracle has no isolation level `repeatable read`", "--isolation serializable"],
    );
    assert!(site.place.runs().is_empty(), "nothing was begun");
    // A right that is gone stands against every transaction.
    site.model.with(|database| {
        let gone = ("SELECT customer_id".to_owned(), 942, "table or view does not exist".to_owned());
        database.refused = vec![gone];
    });
    refused(&site.run(&RUN), &["ORA-00942", "table or view does not exist"]);
    site.model.with(|database| database.refused.clear());

    let address = site.address();
    let words = [&RUN[..], &["--duration", "60", "--target", &address]].concat();
    let kept = site.place.runs();
    let before = site.responder.sessions().len();
    let mut child = site
        .place
        .plimsoll(&words)
        .env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    site.responder.wait_until("the load runs", |sessions| {
        sessions[before..].iter().map(|session| session.round_trips).sum::<u64>() > 1_000
    });
    site.responder.go_away();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let id = site.place.runs().into_iter().find(|id| !kept.contains(id)).unwrap();
    let run = run_of(&site.place.run(&["report", &id, "--json"]));
    assert!(run["outcome"]["failed"]["error"].as_str().unwrap().contains("is gone"), "{run:#}");
}
