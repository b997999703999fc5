use super::*;
use crate::sql::{Commits, Reads};
use targets::database::{Filling, Replace};

fn request() -> SetupRequest {
    SetupRequest {
        schemas: 3,
        scale_blocks: 10_000,
        scan_blocks: 128,
        block_bytes: 8192,
        filling: Filling::Incompressible,
        streams: 2,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    }
}

fn parameters(words: &str) -> SlobParameters {
    SlobParameters::from_settings(&model::config::slob_conf::parse(words, "slob.conf").unwrap()).unwrap()
}

fn script(sql: Sql, words: &str) -> Script {
    Script::new(sql, "DATA", &request(), &parameters(words))
}

fn own() -> Sql {
    Sql::new("PLIMSOLL", 8192)
}

#[test]
fn sql_plus_is_given_what_it_takes() {
    for words in ["UPDATE_PCT=25\nREDO_STRESS=HEAVY\nSCAN_PCT=5", "UPDATE_PCT=0"] {
        for reads in [Reads::Range, Reads::KeyByKey] {
            for layout in [Layout::Plimsoll, Layout::Slob] {
                let text = script(own().with_reads(reads).with_layout(layout), words).text();
                for line in text.lines() {
                    // It refuses lines of more than 2,499 characters.
                    assert!(line.len() < 2_000, "{line}");
                    assert!(!(line.starts_with("--") && line.ends_with([';', '-'])), "{line}");
                }
                let statements = script(own().with_reads(reads).with_layout(layout), words).sections();
                let executed = statements.iter().flat_map(|section| &section.parts).filter(|part| !part.is_shown_only);
                let blocks = executed.filter(|part| part.is_block).count();
                assert_eq!(text.lines().filter(|line| *line == "/").count(), blocks, "each block is executed once");
            }
        }
    }
}

#[test]
fn what_is_bound_is_what_stands_in_the_text_in_its_order() {
    for sql in [own(), own().with_reads(Reads::KeyByKey), own().with_layout(Layout::Slob)] {
        let script = script(sql, "UPDATE_PCT=25\nSCAN_PCT=5");
        let sections = script.sections();
        let parts = sections.iter().flat_map(|section| &section.parts).filter(|part| !part.is_shown_only);
        for part in parts {
            let mut at = 0;
            for (name, _) in &part.values {
                let placeholder = format!(":{name}");
                let found = part.text[at..].find(&placeholder);
                at += found.unwrap_or_else(|| panic!("{placeholder} is not in its place in: {}", part.text));
            }
            let unbound: Vec<&str> = part.text.match_indices(':').map(|(at, _)| &part.text[at..]).collect();
            let count = unbound.iter().filter(|rest| rest[1..].starts_with(|c: char| c.is_ascii_lowercase())).count();
            assert_eq!(count, part.values.len(), "{}", part.text);
        }
    }
}

#[test]
fn grants_come_first_and_removal_is_only_shown() {
    let text = script(own(), "UPDATE_PCT=25").text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("`{words}` is missing"));
    assert!(at("GRANT CREATE SESSION") < at("SET DEFINE OFF"));
    assert!(at("MINIMIZE RECORDS_PER_BLOCK") < at("CREATE UNIQUE INDEX"));
    assert!(at("CREATE UNIQUE INDEX") < at("COMMIT WRITE IMMEDIATE WAIT"));
    let data_goes = text.lines().filter(|line| line.contains("DROP TABLE") && line.contains("slob_"));
    let data_goes: Vec<&str> = data_goes.collect();
    assert!(data_goes.len() == 3 && data_goes.iter().all(|line| line.starts_with("--")), "{data_goes:?}");
}

#[test]
fn only_what_the_load_does_is_in_it() {
    let reads = script(own(), "UPDATE_PCT=0").text();
    assert!(!reads.contains("UPDATE /*+") && !reads.contains("COMMIT WRITE"));
    let slob = script(own().with_layout(Layout::Slob).with_commits(Commits::Slob), "UPDATE_PCT=25").text();
    assert!(slob.contains("GRANT SELECT, UPDATE ON \"USER3\".cf1 TO \"PLIMSOLL\""));
    assert!(
        !slob.contains("CREATE TABLE \"") && !slob.contains("COMMIT WRITE"),
        "nothing is made beside SLOB's tables"
    );
    assert!(slob.contains("Commits are SLOB's"));
}

#[test]
fn the_descriptor_is_the_one_that_set_up_writes() {
    let script = script(own(), "UPDATE_PCT=25");
    let described = script.sections().into_iter().flat_map(|section| section.parts).find_map(|part| {
        part.values.into_iter().find_map(|(name, value)| match value {
            Value::Text(text) if name == "descriptor" => Some(text),
            _ => None,
        })
    });
    let described = described.unwrap();
    let read: DataSet = serde_json::from_str(described.trim_matches('\'')).unwrap();
    assert_eq!((read.schemas, read.scale_blocks, read.column_bytes), (3, 10_000, 128));
    assert_eq!(read, script.data);
}

/// Before 12.2, and wherever COMPATIBLE is lower, a longer name is ORA-00972: that would be met hours after the load has begun.
#[test]
fn no_name_is_longer_than_oracle_12_1_takes() {
    const MAX_NAME_BYTES: usize = 30;
    let sections = [own(), own().with_reads(Reads::KeyByKey), own().with_layout(Layout::Slob)]
        .map(|sql| script(sql, "UPDATE_PCT=25\nREDO_STRESS=HEAVY\nSCAN_PCT=5").sections());
    let parts = sections.into_iter().flatten().flat_map(|section| section.parts).map(|part| part.text);
    let grants = grants("PLIMSOLL", "DATA").into_iter().map(|grant| grant.statement);
    let mut names = std::collections::BTreeSet::new();
    for text in parts.chain(grants).chain(order_entry("PLIMSOLL")) {
        // Every other piece is a text in quotes.
        for piece in text.split('\'').step_by(2) {
            let words = piece.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_$#".contains(letter));
            names.extend(words.map(str::to_lowercase));
        }
    }
    for name in ["plimsoll_orders_load", "slob_1_key", "descriptions_product_fk", "plimsoll_warehouse_activity"] {
        assert!(names.contains(name), "{name}");
    }
    // Schemas are numbered: the highest has the longest name.
    names.extend(
        [own().index(u32::MAX - 1), own().scan_table(u32::MAX - 1)].map(|name| name.replace("\"PLIMSOLL\".", "")),
    );
    let long: Vec<&String> = names.iter().filter(|name| name.len() > MAX_NAME_BYTES).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn all_of_it_names_the_user_and_binds_each_value_once() {
    let all = order_entry("PLIMSOLL");
    assert!(all.len() > 150, "{}", all.len());
    for text in &all {
        assert!(text.contains("\"PLIMSOLL\"") || text.contains(" user_") || text.contains("dba_"), "{text}");
        let mut bound: Vec<&str> = text
            .split(':')
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
            .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
            .collect();
        let count = bound.len();
        bound.sort_unstable();
        bound.dedup();
        assert_eq!(bound.len(), count, "{text}");
    }
}
