//! Writes the statements and blocks of set-up, proof, load and verification, in all their forms, into a folder, a file each, for a
//! parser to read. `make check-plsql` runs it, and adds what the program has sent in tests.
//!
//! `plsql FOLDER`

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll::config::{Key, Setting, SlobParameters};
use plimsoll::oracle::script::{Script, order_entry};
use plimsoll::oracle::sql::{AT_WORK, Commits, Kinds, Layout, Reads, Sql, grants};
use plimsoll::targets::database::{Filling, Replace, SetupRequest};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let texts = texts()?;
    std::fs::create_dir_all(&folder)?;
    for (number, text) in texts.iter().enumerate() {
        let word = text.split_whitespace().next().unwrap_or("empty").to_lowercase();
        std::fs::write(Path::new(&folder).join(format!("{number:04}-{word}.sql")), text)?;
    }
    Ok(())
}

/// Each text once, ended as SQL*Plus wants it.
fn texts() -> Result<BTreeSet<String>, Failure> {
    let mut texts = BTreeSet::new();
    for layout in [Layout::Plimsoll, Layout::Slob] {
        for commits in [Commits::Wait, Commits::Slob] {
            for reads in [Reads::Range, Reads::KeyByKey] {
                let sql = Sql::new("PLIMSOLL", 8192).with_layout(layout).with_commits(commits).with_reads(reads);
                for filling in [Filling::Incompressible, Filling::Compressible] {
                    for redo_stress in ["LITE", "HEAVY"] {
                        add(&mut texts, &sql, filling, redo_stress)?;
                    }
                }
                // The script has the kinds of one load at a time.
                for (updates, scans) in [(false, false), (false, true), (true, false), (true, true)] {
                    texts.extend([0, 1].map(|schema| sql.batch(schema, Kinds { updates, scans }) + "\n/\n"));
                }
            }
        }
    }
    texts.extend(order_entry("PLIMSOLL").into_iter().map(|text| {
        let end = if text.ends_with("END;") { "\n/\n" } else { ";\n" };
        text + end
    }));
    texts.extend(grants("PLIMSOLL", "DATA").into_iter().map(|grant| grant.statement + ";\n"));
    // Asked only where a server has been silent for long.
    texts.insert(format!("{AT_WORK};\n"));
    Ok(texts)
}

fn add(texts: &mut BTreeSet<String>, sql: &Sql, filling: Filling, redo_stress: &str) -> Result<(), Failure> {
    let settings = [(Key::UpdatePct, "25"), (Key::ScanPct, "5"), (Key::RedoStress, redo_stress)];
    let settings = settings.map(|(key, value)| Setting::from_command_line(key, value));
    let request = SetupRequest {
        schemas: 2,
        scale_blocks: 10_000,
        scan_blocks: 128,
        block_bytes: 8192,
        filling,
        streams: 1,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    };
    let script = Script::new(sql.clone(), "DATA", &request, &SlobParameters::from_settings(&settings)?);
    for part in script.sections().into_iter().flat_map(|section| section.parts) {
        // The parser knows no EXPLAIN, but what is explained.
        let text = part.text.strip_prefix("EXPLAIN PLAN SET STATEMENT_ID = 'plimsoll' FOR ").unwrap_or(&part.text);
        texts.insert(format!("{text}{}", if part.is_block { "\n/\n" } else { ";\n" }));
    }
    Ok(())
}
