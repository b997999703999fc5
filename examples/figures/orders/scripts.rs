//! The scripts of pgbench and sysbench: what they do is in files beside this one, and the statements that they send are the program's own.

use std::fmt::Write as _;
use std::path::PathBuf;

use plimsoll::config::TargetAddress;
use plimsoll::databases::statements;

use super::CUSTOMERS;
use crate::server::Server;
use crate::{Bench, Failure};

/// Schema or database of the data.
const NAMESPACE: &str = "plimsoll";
/// How often products are looked at, at most.
const MAX_LOOKS: u32 = 23;

/// Kinds of transaction that pgbench can do: it has no lists and no loops, so it cannot order what it found.
pub(super) const KINDS: [(&str, &str); 6] = [
    ("NCR", include_str!("scripts/customer_registration.pgbench")),
    ("BP", include_str!("scripts/browse_products.pgbench")),
    ("PO", include_str!("scripts/process_orders.pgbench")),
    ("SQ", include_str!("scripts/sales_rep_query.pgbench")),
    ("WQ", include_str!("scripts/warehouse_query.pgbench")),
    ("WA", include_str!("scripts/warehouse_activity_query.pgbench")),
];

/// What each event of sysbench does: it cannot read what a prepared statement answered, so it does what needs none of that.
const EVENTS: &str = include_str!("scripts/queries.lua");

/// The statements of a server, by name.
fn texts(server: &Server<'_>) -> Result<Vec<(String, String)>, Failure> {
    let address: TargetAddress = server.address().parse().map_err(|error| format!("{error}"))?;
    Ok(statements(&address, NAMESPACE)?)
}

/// Parts of a mix such as `SQ=2,WQ=1`.
fn parts(mix: &str) -> Result<Vec<(&str, u32)>, Failure> {
    let part = |part| -> Result<(&str, u32), Failure> {
        let (kind, weight) = str::split_once(part, '=').ok_or_else(|| format!("`{part}` is no part of a mix"))?;
        Ok((kind, weight.parse()?))
    };
    mix.split(',').map(part).collect()
}

impl Bench {
    /// Writes the scripts of a mix, and gives them as `-f FILE@WEIGHT` wants them.
    pub(super) fn pgbench_scripts(&self, server: &Server<'_>, mix: &str) -> Result<Vec<String>, Failure> {
        let texts = texts(server)?;
        let mut written = Vec::new();
        for (kind, weight) in parts(mix)? {
            let (_, script) = KINDS.iter().find(|(name, _)| *name == kind).ok_or("pgbench cannot do that")?;
            let mut script = (*script).to_owned();
            if kind == "BP" {
                for look in 1..=MAX_LOOKS {
                    let _ = write!(
                        script,
                        "\\if :looks >= {look}\n\\set product random(1, 1000)\n{{Product product}}\n\\endif\n"
                    );
                }
            }
            let path = self.data.with_file_name(format!("{kind}.pgbench"));
            std::fs::write(&path, filled(&script, &texts)?)?;
            written.push(format!("{}@{weight}", path.display()));
        }
        Ok(written)
    }

    /// Writes the script of a mix for sysbench.
    pub(super) fn sysbench_script(&self, server: &Server<'_>, mix: &str) -> Result<PathBuf, Failure> {
        let weight = |kind: &str, parts: &[(&str, u32)]| {
            parts.iter().find_map(|(name, weight)| (*name == kind).then_some(*weight)).unwrap_or(0)
        };
        let (parts, mut script) = (parts(mix)?, String::new());
        let begin = if server.is_postgres() { "BEGIN" } else { "START TRANSACTION" };
        writeln!(script, "customers, begin, texts, weights = {CUSTOMERS}, '{begin}', {{}}, {{}}")?;
        let sent: [(&str, &[&str]); 4] = [
            ("SQ", &["SalesRep"]),
            ("WQ", &["Warehouse"]),
            ("WA", &["WarehouseActivity"]),
            ("BP", &["Customer", "AddLogon", "Product"]),
        ];
        let texts = texts(server)?;
        for (kind, names) in sent {
            let weight = weight(kind, &parts);
            writeln!(script, "weights.{kind} = {weight}")?;
            for (name, text) in texts.iter().filter(|(name, _)| weight > 0 && names.contains(&name.as_str())) {
                // Each has one value.
                writeln!(script, "texts.{name} = [[{}]]", text.replace("$1", "?"))?;
            }
        }
        script.push_str(EVENTS);
        let path = self.data.with_file_name("orders.lua");
        std::fs::write(&path, script)?;
        Ok(path)
    }
}

/// A script with its marks filled in: `{Statement variable...}` is a statement with these variables as its values.
fn filled(script: &str, texts: &[(String, String)]) -> Result<String, Failure> {
    let mut made = String::new();
    for line in script.lines() {
        let Some((mark, rest)) = line.strip_prefix('{').and_then(|line| line.split_once('}')) else {
            made.push_str(line);
            made.push('\n');
            continue;
        };
        let mut words = mark.split(' ');
        let name = words.next().unwrap_or_default();
        let (_, text) =
            texts.iter().find(|(known, _)| known == name).ok_or_else(|| format!("no statement `{name}`"))?;
        let mut text = text.clone();
        // From the last on, so that `$1` is not found in `$10`.
        for (place, variable) in words.enumerate().collect::<Vec<_>>().into_iter().rev() {
            text = text.replace(&format!("${}", place + 1), &format!(":{variable}"));
        }
        if text.contains('$') {
            return Err(format!("a value is missing in `{text}`").into());
        }
        let end = if rest.is_empty() { ";" } else { rest };
        writeln!(made, "{text}{end}")?;
    }
    Ok(made)
}
