//! What a server did for each transaction, by its own count: so that nobody is compared with who does less.

use std::collections::BTreeMap;

use crate::mysql::client;
use crate::postgres::psql;
use crate::server::Server;
use crate::{Failure, text};

/// Counts by name: of a server since it was made, or of a load for each of its transactions.
#[derive(Debug, Default, Clone)]
pub(super) struct Counted {
    counts: BTreeMap<String, f64>,
    /// Transactions that they were divided by.
    transactions: f64,
}

/// Of each table how often it was looked into by an index or read, and its new and changed rows.
const OF_POSTGRES: &str = "SELECT relname || ' ' || what, count FROM pg_stat_user_tables, LATERAL (VALUES \
    ('scans', coalesce(seq_scan, 0) + coalesce(idx_scan, 0)), ('rows inserted', n_tup_ins), ('rows updated', n_tup_upd)) \
    counts (what, count) WHERE schemaname = 'plimsoll' AND count > 0";

/// Statements of each kind. The session that asks, and those that watch the server, prepare nothing.
const OF_MYSQL: &str = "SELECT LOWER(variable_name), variable_value FROM information_schema.global_status WHERE LOWER(variable_name) \
    IN ('com_stmt_execute', 'com_begin', 'com_commit', 'com_insert', 'com_update')";

/// What a server did since it was made.
pub(super) fn counted(server: &Server<'_>) -> Result<Counted, Failure> {
    let answer = if server.is_postgres() {
        text(&mut psql(server, &["\\pset fieldsep '\\t'", OF_POSTGRES]))?
    } else {
        text(&mut client(server, &[OF_MYSQL]))?
    };
    let mut counts = BTreeMap::new();
    for line in answer.lines() {
        let (name, count) = line.split_once('\t').ok_or_else(|| format!("`{line}` is no count"))?;
        counts.insert(name.to_owned(), count.parse()?);
    }
    Ok(Counted { counts, transactions: 1.0 })
}

impl Counted {
    /// What it did since `before` for each of so many transactions.
    pub(super) fn since(&self, before: &Self, transactions: f64) -> Self {
        let grown = |name: &String, count: &f64| (count - before.counts.get(name).unwrap_or(&0.0)) / transactions;
        let counts = self.counts.iter().map(|(name, count)| (name.clone(), grown(name, count))).collect();
        Self { counts, transactions }
    }

    fn of(&self, name: &str) -> f64 {
        self.counts.get(name).copied().unwrap_or(0.0)
    }
}

/// How far counts may be apart for whatever reason: transactions that were under way when the load ended, or rolled back.
const TOLERANCE: f64 = 0.02;
/// How far beyond that chance may bring them, in standard errors of two counts of independent events.
const ERRORS: f64 = 4.0;
/// What one event may come to at most, of what rows and repeated looks are counted in.
const MAX_OF_EVENT: f64 = 14.0;

/// # Errors
/// What one side had the server do more often than the other, by more than chance has it.
pub(super) fn is_same(ours: &Counted, theirs: &Counted) -> Result<(), String> {
    if ours.counts.values().chain(theirs.counts.values()).all(|count| *count == 0.0) {
        return Err("the server counted nothing".to_owned());
    }
    for name in ours.counts.keys().chain(theirs.counts.keys()) {
        let (our, their) = (ours.of(name), theirs.of(name));
        let (our_count, their_count) = (our * ours.transactions, their * theirs.transactions);
        let is_by_row = name.ends_with("scans") || name == "com_stmt_execute";
        let event = if is_by_row { MAX_OF_EVENT } else { 1.0 };
        let chance = (event / our_count.max(1.0) + event / their_count.max(1.0)).sqrt();
        if (our - their).abs() > our.max(their) * (TOLERANCE + ERRORS * chance) {
            return Err(format!(
                "both should do the same work, but of `{name}` ours had {our:.4} for each transaction and theirs {their:.4} (of {:.0} \
                 and {:.0} transactions)",
                ours.transactions, theirs.transactions
            ));
        }
    }
    Ok(())
}
