//! Data and sessions on which a run would measure something else, or would change what is not ours.

use crate::model::{Model, Table};
use crate::responder::{Answer, Column, Generation, Value};
use crate::whole::Site;

fn answer(model: &Model, part: &str, answers: impl IntoIterator<Item = Answer>) {
    model.with(|database| database.answered.push((part.to_owned(), answers.into_iter().collect())));
}

fn numbers<const N: usize>(rows: Vec<[i64; N]>) -> Answer {
    Answer::rows(["N"; N].map(Column::number), rows.into_iter().map(|row| row.map(Value::from)).collect())
}

/// The command is refused, in these words.
fn refused(site: &Site, words: &[&str], says: &[&str]) {
    let said = site.run(words);
    assert_eq!(said.code, Some(2), "{said}");
    for part in says {
        assert!(said.stderr.contains(part), "`{part}` is not in:\n{said}");
    }
}

const RUN: [&str; 6] = ["slob", "run", "WORK_LOOP=20", "--warmup", "0", "--quiet"];

/// `role=sysdba` makes the session SYS's, who sees none of the user's tables among its own and may drop them all.
#[test]
fn a_session_of_another_user_touches_nothing() {
    let site = Site::new(Generation::V23);
    site.set_up();
    let before = site.model.with(|database| database.tables.clone());
    let landed = ["SYS", "SYS", "ORCLPDB", "orcl", "ONE1", "PRIMARY", "5"];
    let landed = Answer::rows(["C"; 7].map(Column::text), vec![landed.map(Value::from)]);
    answer(&site.model, "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT(", [landed]);
    for words in [
        &["slob", "setup", "-s", "2", "SCALE=300"][..],
        &["slob", "setup", "-s", "1", "SCALE=200", "--replace"],
        &["slob", "drop", "--yes"],
        &RUN,
    ] {
        refused(&site, words, &["is of the user `SYS`", "the user `SLOB`", "without `role`"]);
    }
    site.model.with(|database| assert!(database.tables == before));
}

#[test]
fn whoever_removes_data_needs_no_right_to_make_any() {
    let site = Site::new(Generation::V23);
    site.set_up();
    let refusal = ("CREATE TABLE".to_owned(), 1031, "insufficient privileges".to_owned());
    site.model.with(|database| database.refused.push(refusal));
    site.done(&["slob", "drop", "--yes"]);
    site.model.with(|database| assert!(database.tables.is_empty()));
}

/// The lock goes with the data that are replaced, and whoever comes then must not make the same tables.
#[test]
fn data_that_replace_others_are_made_under_the_lock_too() {
    let site = Site::new(Generation::V19);
    site.set_up();
    site.done(&["slob", "setup", "-s", "1", "SCALE=200", "--replace", "--seed", "8", "--quiet"]);
    site.model.with(|database| {
        assert_eq!(database.tables["slob_1"].rows.len(), 200);
        assert_eq!(database.unlocked, [""; 0], "tables that were made while nobody held the lock");
    });
}

#[test]
fn a_table_that_only_has_a_name_of_ours_is_not_emptied() {
    let site = Site::new(Generation::V23);
    // What a set-up leaves that was ended at its very beginning is no obstacle.
    site.model.with(|database| drop(database.tables.insert("plimsoll_lock".to_owned(), Table::default())));
    site.set_up();
    let site = Site::new(Generation::V23);
    site.model.with(|database| drop(database.tables.insert("plimsoll_load".to_owned(), Table::default())));
    let foreign = [Value::from("plimsoll_load"), 2_i64.into(), 0_i64.into()];
    let columns = [Column::text("TABLE"), Column::number("ALL"), Column::number("KNOWN")];
    answer(&site.model, "GROUP BY table_name", [Answer::rows(columns, vec![foreign])]);
    refused(&site, &["slob", "setup", "-s", "1", "SCALE=300"], &["holds `plimsoll_load`, which Plimsoll did not make"]);
    site.model.with(|database| assert_eq!(database.tables.len(), 1));
}

#[test]
fn a_damaged_descriptor_costs_nobody_more_than_its_tables() {
    let site = Site::new(Generation::V23);
    site.set_up();
    site.model.with(|database| {
        let (_, _, text) = database.descriptor.as_mut().unwrap();
        *text = text.replace("\"block_bytes\":8192", "\"block_bytes\":64");
    });
    refused(&site, &RUN, &["is damaged: it has blocks of 64 bytes", "drop that table", "or name another user"]);
}

#[test]
fn nothing_is_made_in_the_database_s_own_tablespace() {
    for (name, says) in [("SYSTEM", Some("is the database's own")), ("DATA", None)] {
        let site = Site::new(Generation::V19);
        let mut place = [name, "", "ONLINE", "PERMANENT", "MANUAL", "NO", "NO"].map(Value::from);
        place[1] = 8192_i64.into();
        let mut columns = ["C"; 7].map(Column::text);
        columns[1] = Column::number("BLOCK");
        answer(&site.model, "FROM user_users u JOIN user_tablespaces t", [Answer::rows(columns, vec![place])]);
        match says {
            Some(says) => refused(&site, &["slob", "setup", "-s", "1", "SCALE=300"], &[says, "DEFAULT TABLESPACE"]),
            None => drop(site.set_up()),
        }
    }
}

#[test]
fn whoever_uses_slob_s_tables_needs_no_tablespace() {
    let site = Site::new(Generation::V19);
    refused(
        &site,
        &[&RUN[..], &["--layout", "slob"]].concat(),
        &["no table cf1 of user1", "GRANT SELECT, UPDATE ON \"USER1\".cf1"],
    );
    site.model.set_up_as_slob(2, 300);
    answer(&site.model, "FROM user_users u JOIN user_tablespaces t", [numbers::<1>(Vec::new())]);
    let run = [&RUN[..], &["--layout", "slob"]].concat();
    refused(&site, &run, &["how large a block is", "GRANT SELECT ON SYS.V_$PARAMETER TO \"SLOB\""]);
    let size = Answer::rows([Column::text("VALUE")], vec![["16384".into()]]);
    answer(&site.model, "SELECT value FROM v$parameter WHERE name = 'db_block_size'", [size]);
    site.done(&run);
    let info = site.done(&["slob", "info", "--layout", "slob"]);
    assert!(info.stdout.contains("16 KiB") && info.stdout.contains("no tablespace"), "{info}");
    refused(&site, &["slob", "info"], &["has no tablespace"]);
}

#[test]
fn what_slob_s_tables_take_is_unknown_and_how_they_are_mended_is_slob_s_affair() {
    let site = Site::new(Generation::V23);
    site.model.set_up_as_slob(2, 300);
    let info = site.done(&["slob", "info", "--layout", "slob"]);
    assert!(!info.stdout.contains("0 B") && !info.stdout.contains("with their indexes"), "{info}");
    let document = site.done(&["slob", "info", "--layout", "slob", "--json"]).json();
    assert!(document.to_string().contains("\"bytes\":null"), "{document}");
    site.model.with(|database| drop(database.tables.get_mut("user2.cf1").unwrap().rows.remove(&300)));
    let run = [&RUN[..], &["--layout", "slob"]].concat();
    refused(&site, &run, &["go from 1 to 299 instead of 1 to 300", "by SLOB's own `setup.sh`"]);
}

#[test]
fn rows_that_go_on_in_another_block_are_refused_where_that_can_be_seen() {
    let fact = |site: &Site| {
        let run = site.done(&["slob", "run", "-s", "1", "WORK_LOOP=20", "--warmup", "0", "--json"]).json();
        run["run"]["target"]["facts"]["other"]["layout.continued_rows"].as_str().map(str::to_owned)
    };
    let site = Site::new(Generation::V19);
    site.set_up();
    assert_eq!(fact(&site).as_deref(), Some("not known"));
    let asked = site.responder.calls().iter().filter(|call| call.sql.contains("v$mystat")).count();
    assert_eq!(asked, 1, "what was refused is not asked again");
    // Continued rows that were read before are none of ours.
    answer(&site.model, "FROM v$mystat", [numbers(vec![[7]])]);
    assert_eq!(fact(&site).as_deref(), Some("none"));
    let site = Site::new(Generation::V19);
    site.set_up();
    answer(&site.model, "FROM v$mystat", [numbers(vec![[7]]), numbers(vec![[39]])]);
    refused(&site, &RUN, &["32 of 32 rows", "go on in another block", "slob setup --replace"]);
}

#[test]
fn a_row_that_is_there_twice_is_one_fault() {
    let site = Site::new(Generation::V23);
    site.set_up();
    let row = |(place, key): (u8, i64)| {
        let rowid = format!("AAAR3sAAEAAAAA{}AAA", char::from(b'B' + place));
        [Value::from(key), rowid.as_str().into(), (19 * 128_i64).into()]
    };
    let keys = (0..19).filter(|key| *key != 2).chain([1, 19]);
    let mut keys: Vec<i64> = keys.collect();
    keys.sort_unstable();
    let rows = (0_u8..).zip(keys).map(row).collect();
    let columns = [Column::number("KEY"), Column::text("ROWID"), Column::number("BYTES")];
    answer(&site.model, "NVL(LENGTHB(t.c20), 0) AS filling FROM \"SLOB\".scan_1 t", [Answer::rows(columns, rows)]);
    let said = site.run(&["slob", "verify"]);
    assert_eq!(said.code, Some(1), "{said}");
    for part in ["several rows with key 1", "no row with key 2"] {
        assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(!said.stdout.contains("no row with key 3"), "{said}");
}
