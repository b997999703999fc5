//! The first contact: both outcomes of each doubt, and a table that goes whatever happens.

use std::process::{Command, Stdio};

use crate::model::Model;
use crate::place::Answer as Said;
use crate::responder::{Answer, Column, Generation, Value};
use crate::whole::{PASSWORD, Site};

/// What a server shows.
#[derive(Clone, Copy)]
struct Shown {
    compatible: &'static str,
    edge: i64,
    /// Rows, blocks, rows that are not the first of their block.
    layout: [i64; 3],
    /// Blocks that the first pass cleans, and bytes of redo for it.
    cleaned: [i64; 2],
    /// Reads of single blocks, and of several at once.
    reads: [i64; 2],
    /// `redo synch writes` of 100 commits that wait and of 100 plain ones.
    asked: [i64; 2],
    /// `log file sync` of the former.
    seen: i64,
    /// What the pluggable database counts of its database writers and of the log writer.
    own: [i64; 2],
}

/// As documents say it is.
const EXPECTED: Shown = Shown {
    compatible: "19.0.0",
    edge: 1 << 32,
    layout: [4096, 4096, 0],
    cleaned: [64, 9_000],
    reads: [4100, 0],
    asked: [100, 1],
    seen: 100,
    own: [4096, 3],
};

fn named(all: &[(&str, i64)]) -> Answer {
    let row = |(name, count): &(&str, i64)| [Value::from(*name), (*count).into()];
    Answer::rows([Column::text("NAME"), Column::number("VALUE")], all.iter().map(row).collect())
}

fn waits(single: i64, several: i64, commits: i64) -> Answer {
    let all = [("db file sequential read", single), ("db file parallel read", several), ("log file sync", commits)];
    let columns = [Column::text("EVENT"), Column::number("TOTAL_WAITS"), Column::number("TIME_WAITED_MICRO")];
    let there = all.into_iter().filter(|(_, count)| *count > 0);
    Answer::rows(columns, there.map(|(event, count)| [event.into(), count.into(), (count * 150).into()]).collect())
}

fn numbers<const N: usize>(values: [i64; N]) -> Answer {
    Answer::rows(std::array::from_fn(|_| Column::number("N")), vec![values.map(Value::from)])
}

fn answer(model: &Model, part: &str, answers: impl IntoIterator<Item = Answer>) {
    model.with(|database| {
        database.answered.retain(|(other, _)| other != part);
        // Before all others: a statement may have several of the parts in it.
        database.answered.insert(0, (part.to_owned(), answers.into_iter().collect()));
    });
}

/// A server that shows this.
fn site(shown: Shown) -> Site {
    let Shown { compatible, edge, layout, cleaned, reads, asked, seen, own } = shown;
    let site = Site::new(Generation::V19);
    let model = &site.model;
    let way = ["tcp", "3", "db1.example.com", "client7", "10.1.2.3"].map(Value::from);
    answer(model, "NETWORK_PROTOCOL", [Answer::rows(["C"; 5].map(Column::text), vec![way])]);
    let parameter =
        Answer::rows(["NAME", "VALUE"].map(Column::text), vec![["compatible", compatible].map(Value::from)]);
    answer(model, "FROM v$parameter", [parameter]);
    answer(model, "MAX(wait_time_micro)", [numbers([edge])]);
    answer(model, "followers FROM", [numbers(layout)]);
    let counted = |cleaned: i64, redo: i64, asked: i64| {
        named(&[
            ("cleanouts only - consistent read gets", cleaned),
            ("redo size", redo),
            ("redo synch writes", asked),
            ("user commits", asked),
        ])
    };
    let after = [cleaned[0] + 5, cleaned[1] + 700];
    let counts = [
        counted(5, 700, 1),
        counted(after[0], after[1], 1),
        counted(after[0], after[1], 1),
        counted(after[0], after[1], 1),
        counted(after[0], after[1] + 60_000, 1 + asked[0]),
        counted(after[0], after[1] + 120_000, 1 + asked[0] + asked[1]),
    ];
    answer(model, "'Commit SCN cached'", counts);
    let [single, several] = reads;
    let seen_so_far = [0, 0, 0, 0, seen, seen + asked[1]];
    let read_so_far =
        [[0, 0], [single, several], [single, several], [single, several], [single, several], [single, several]];
    let all = read_so_far.into_iter().zip(seen_so_far).map(|([single, several], seen)| waits(single, several, seen));
    answer(model, "event, total_waits", all);
    let written = |own: [i64; 2], all: i64| {
        named(&[
            ("own physical writes from cache", own[0]),
            ("own redo writes", own[1]),
            ("all physical writes from cache", 9_000 + all),
            ("all redo writes", 800 + all / 100),
        ])
    };
    answer(model, "'own ' || name", [written([0, 0], 0), written(own, 4096)]);
    for part in [
        "MINIMIZE RECORDS_PER_BLOCK",
        "FORALL place",
        "custid < first_key + 64",
        "FOR at_key",
        "SET c20 = 'w'",
        "INTO \"SLOB\".plimsoll_try",
    ] {
        answer(model, part, [Answer::Ok]);
    }
    answer(model, "ALTER SYSTEM CHECKPOINT", [Answer::Ok]);
    site
}

fn contact(site: &Site, words: &[&str]) -> Said {
    let address = site.address();
    let mut command = site.place.plimsoll(&[&["doctor", "--first-contact", &address][..], words].concat());
    let said = Said::from(command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).output().unwrap());
    assert!(!said.to_string().contains(PASSWORD));
    said
}

fn is_gone(site: &Site) -> bool {
    site.model.with(|database| !database.tables.contains_key("plimsoll_try"))
}

fn dropped(site: &Site) -> usize {
    site.responder.calls().iter().filter(|call| call.sql.starts_with("DROP TABLE")).count()
}

#[test]
fn a_server_that_is_as_expected_settles_every_doubt() {
    let site = site(EXPECTED);
    let said = contact(&site, &["--yes", "-o", "contact.txt"]);
    assert_eq!(said.code, Some(0), "{said}");
    assert_eq!(said.stderr.matches("step: ").count(), 5, "{said}");
    for part in [
        "names: settled: with `compatible` at 19.0.0 names have up to 128 bytes",
        "last edge of histograms: settled: 4294967296 us, a power of two",
        "layout: settled: 4,096 rows lie in 4,096 blocks, each the first of its block",
        "first reads: settled: the first pass cleaned 64 of 4,096 blocks",
        "reads: settled: 64 operations touched 4,096 rows",
        "commits in blocks: settled: of 100 commits with WAIT 100 requested a wait for redo, of plain ones 1: only WAIT",
        "waits of commits: settled: 100 commits requested a wait for redo, and 100 were seen",
        "writes of the database writers: settled: `physical writes from cache` grew by 4,096 here",
        "writes of the log writer: settled: `redo writes` grew by 3 here",
    ] {
        assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(!said.stdout.contains("open: ") && !said.stdout.contains("problem"), "{said}");
    let text = std::fs::read_to_string(site.place.path("contact.txt")).unwrap();
    assert!(text.starts_with("plimsoll doctor --first-contact, version "), "{text}");
    for part in ["first_contact.settled = 9 of 9", "first_pass.redo size = 9700", "oracle://slob@host-1:"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    for secret in ["127.0.0.1", "db1", "client7", "10.1.2.3", PASSWORD] {
        assert!(!text.contains(secret), "`{secret}` is in:\n{text}");
    }
    assert!(is_gone(&site) && dropped(&site) == 1);
    // Reading is done by a session that has not loaded.
    let of = |part: &str| {
        let calls = site.responder.calls();
        calls.iter().find(|call| call.sql.contains(part)).unwrap_or_else(|| panic!("{part}")).session
    };
    assert_ne!(of("FORALL place"), of("custid < first_key + 64"));
}

#[test]
fn a_server_that_is_otherwise_settles_them_otherwise() {
    type Other<'a> = (Shown, Option<i32>, &'a [&'a str]);
    let others: [Other<'_>; 8] = [
        (Shown { compatible: "12.1.0.2.0", ..EXPECTED }, Some(0), &["names have up to 30 bytes; ours have 30 at most"]),
        (Shown { edge: 4_294_967_295, ..EXPECTED }, Some(0), &["4294967295 us, which stands for no edge"]),
        (Shown { layout: [4096, 4096, 9], ..EXPECTED }, Some(0), &["9 of them are not numbered as the first"]),
        (Shown { layout: [4096, 1400, 2696], ..EXPECTED }, Some(1), &["4096 rows lie in 1400 blocks, not one in each"]),
        (
            Shown { cleaned: [4032, 420_000], reads: [200, 60], ..EXPECTED },
            Some(0),
            &[
                "the first pass cleaned 4,032 of 4,096 blocks",
                "leave out the first run",
                "60 of several blocks at once",
            ],
        ),
        (Shown { asked: [100, 100], ..EXPECTED }, Some(0), &["of plain ones 100: plain ones wait here too"]),
        (
            Shown { asked: [40, 1], ..EXPECTED },
            Some(1),
            &["of 100 commits with WAIT 40 requested a wait for redo", "do not take commits here for durable"],
        ),
        (
            Shown { seen: 12, own: [0, 0], ..EXPECTED },
            Some(0),
            &["and 12 were seen in `log file sync`", "does not count them, and runs call them unknown"],
        ),
    ];
    for (shown, code, says) in others {
        let site = site(shown);
        let said = contact(&site, &["--yes"]);
        assert_eq!(said.code, code, "{said}");
        for part in says {
            assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
        }
        assert!(is_gone(&site), "{said}");
    }
}

#[test]
fn what_the_server_does_not_show_stays_open() {
    let site = site(EXPECTED);
    let missing = Answer::error(942, "table or view does not exist");
    for part in ["FROM v$parameter", "'Commit SCN cached'", "event, total_waits", "'own ' || name"] {
        answer(&site.model, part, [missing.clone()]);
    }
    let said = contact(&site, &["--yes"]);
    assert_eq!((said.code, said.stdout.matches("open: ").count()), (Some(0), 7), "{said}");
    assert!(said.stdout.contains("prints the GRANT"), "{said}");
    let site = self::site(Shown { own: [0, 0], ..EXPECTED });
    answer(&site.model, "ALTER SYSTEM CHECKPOINT", [Answer::error(1031, "insufficient privileges")]);
    let same = named(&[("own physical writes from cache", 7), ("all physical writes from cache", 9)]);
    answer(&site.model, "'own ' || name", [same]);
    let said = contact(&site, &["--yes"]);
    assert!(said.stdout.contains("open: no checkpoint was allowed"), "{said}");
}

#[test]
fn the_table_goes_when_a_step_fails_and_one_of_somebody_else_stays() {
    for (part, code) in [("FORALL place", 1536), ("FOR at_key", 4031), ("CREATE UNIQUE INDEX", 1652)] {
        let site = site(EXPECTED);
        answer(&site.model, part, [Answer::error(code, "no")]);
        let said = contact(&site, &["--yes", "-o", "contact.txt"]);
        assert!(said.code == Some(2) && said.stderr.contains(&format!("ORA-{code:05}")), "{said}");
        assert!(said.stderr.contains("hint: ") && is_gone(&site) && dropped(&site) == 1, "{said}");
        assert!(!site.place.path("contact.txt").exists());
    }
    // The session that made it is gone: another one removes it.
    let site = site(EXPECTED);
    answer(&site.model, "FORALL place", [Answer::Close]);
    let said = contact(&site, &["--yes"]);
    assert!(said.code == Some(2) && said.stderr.contains("is gone") && is_gone(&site), "{said}");
    // What cannot be removed is named with the way to do it.
    let site = self::site(EXPECTED);
    answer(&site.model, "DROP TABLE", [Answer::error(54, "resource busy")]);
    let said = contact(&site, &["--yes"]);
    assert!(said.code == Some(2) && said.stderr.contains("is still there"), "{said}");
    assert!(said.stderr.contains("DROP TABLE \"SLOB\".plimsoll_try PURGE"), "{said}");

    let site = self::site(EXPECTED);
    site.model.with(|database| database.tables.insert("plimsoll_try".to_owned(), Default::default()));
    let said = contact(&site, &["--yes"]);
    assert!(said.code == Some(2) && said.stderr.contains("ORA-00955"), "{said}");
    assert!(said.stderr.contains("DROP TABLE \"SLOB\".plimsoll_try PURGE") && dropped(&site) == 0, "{said}");
}

#[test]
fn an_interrupt_ends_it_and_the_table_goes() {
    let site = site(EXPECTED);
    let loading = Answer::Delay(std::time::Duration::from_secs(3), Box::new(Answer::Ok));
    answer(&site.model, "FORALL place", [loading]);
    let address = site.address();
    let mut command = site.place.plimsoll(&["doctor", "--first-contact", &address, "--yes"]);
    let command = command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let loads = |call: &crate::responder::Call| call.sql.contains("FORALL place");
    site.responder
        .wait_until("rows are loaded", |sessions| sessions.iter().any(|session| session.calls.iter().any(loads)));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_gone(&site) && dropped(&site) == 1);
}

#[test]
fn nothing_is_done_that_nobody_agreed_to() {
    let site = site(EXPECTED);
    let said = contact(&site, &[]);
    assert!(said.code == Some(2) && said.stderr.contains("must be confirmed"), "{said}");
    assert!(said.stderr.contains("`--yes`") && site.responder.sessions().is_empty(), "{said}");
    let said = site.place.run(&["doctor", "--first-contact", "--script"]);
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stdout.lines().all(|line| line.len() <= 2_000), "{said}");
    assert!(said.stdout.contains("DROP TABLE plimsoll_try PURGE;"), "{said}");
    for (words, says) in [
        (&["doctor", "--first-contact"][..], "needs the address"),
        (&["doctor", "--first-contact", "pg:x", "--yes"], "supports Oracle only"),
        (&["doctor", "--first-contact", "oracle://sys@h/s?role=sysdba", "--yes"], "SYS must not have it"),
        (&["doctor", "--script"], "--first-contact"),
    ] {
        let said = site.place.run(words);
        assert!(said.code == Some(2) && said.stderr.contains(says), "{words:?}\n{said}");
    }
}
