//! The table that charbench prints at its end when it is asked for a report (`-mr`): the figures of a results file.

use super::{Fields, Section};

const TITLE: &str = "Results of Charbench Run";
/// What stands in the table, and section and name of the same in a results file.
const OVERALL: [(&str, &str, &str); 14] = [
    ("Benchmark Name", "Overview", "BenchmarkName"),
    ("Time of Run", "Overview", "TimeOfRun"),
    ("Length of Benchmark", "Overview", "TotalRunTime"),
    ("Total Logon Time", "Overview", "TotalLogonTime"),
    ("Total Completed Transactions", "Overview", "TotalCompletedTransactions"),
    ("Total Failed Transactions", "Overview", "TotalFailedTransactions"),
    ("Maximum Transactions/min", "Overview", "MaximumTransactionRate"),
    ("Average Transactions/sec", "Overview", "AverageTransactionsPerSecond"),
    ("Total Select Statements", "DMLResults", "SelectStatements"),
    ("Total Insert Statements", "DMLResults", "InsertStatements"),
    ("Total Update Statements", "DMLResults", "UpdateStatements"),
    ("Total Delete Statements", "DMLResults", "DeleteStatements"),
    ("Total Commit Statements", "DMLResults", "CommitStatements"),
    ("Total Rollback Statements", "DMLResults", "RollbackStatements"),
];
/// The same of each transaction.
const PER_TRANSACTION: [(&str, &str); 8] = [
    ("Minimum Response Time", "MinimumResponse"),
    ("Maximum Response Time", "MaximumResponse"),
    ("Average Response Time", "AverageResponse"),
    ("Geometric Mean Response Time", "GeometricMean"),
    ("Median Response Time", "FiftiethPercentile"),
    ("Number of Transactions", "TransactionCount"),
    ("Failed Transactions", "FailedTransactionCount"),
    ("Rolled Back Transactions", "RollbackCount"),
];

/// The cells of a line of a table; nothing if it is none.
pub(super) fn cells(text: &str) -> Option<Vec<&str>> {
    let inside = text.strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').take(4).map(str::trim).collect())
}

/// One such table. There are others, of the wizards that make the tables.
#[derive(Debug, Default)]
pub(super) struct Report {
    begun: bool,
    fields: Fields,
}

impl Report {
    /// Takes a line of it.
    pub fn line(&mut self, cells: &[&str]) {
        match *cells {
            [TITLE] => self.begun = true,
            _ if !self.begun => {}
            [one] => {
                let name = one.strip_prefix("Transaction").and_then(|rest| rest.trim_start().strip_prefix(':'));
                let begun = name.map(|name| Section { name: name.trim().to_owned(), fields: Vec::new() });
                self.fields.transactions.extend(begun);
            }
            [name, value] => {
                if let Some(transaction) = self.fields.transactions.last_mut() {
                    let known = PER_TRANSACTION.iter().find(|(known, _)| *known == name);
                    transaction.fields.extend(known.map(|(_, name)| ((*name).to_owned(), value.to_owned())));
                } else if let Some((_, section, name)) = OVERALL.iter().find(|(known, ..)| *known == name) {
                    self.fields.push(section, name, value.to_owned());
                }
            }
            _ => {}
        }
    }

    /// What a results file would say, if the table was there.
    pub fn fields(&self) -> Option<&Fields> {
        self.fields.section("Overview").map(|_| &self.fields)
    }
}
