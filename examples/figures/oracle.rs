//! What Oracle's load costs the client, against the responder of the tests on loopback: no database is measured here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::model::Model;
use crate::responder::{Options, Responder};
use crate::{Bench, Failure, figure, median, number, run_of, verdict};

/// Schemas, and sessions of the figures of processor time.
const SCHEMAS: usize = 16;
/// Sessions for each schema, to have a thousand.
const MANY: usize = 63;

impl Bench {
    /// Processor time of a statement and of a hundred operations in batches, and memory of a session.
    pub(crate) fn oracle_client(&self) -> Result<(), Failure> {
        let password = self.data.with_file_name("password");
        fs::write(&password, "secret\n")?;
        fs::set_permissions(&password, Permissions::from_mode(0o600))?;
        let options = Options { hashings: 1, keeps_calls: false, ..Options::default() };
        let responder = Responder::start(options, Model::default());
        let target = format!("oracle://slob@127.0.0.1:{}/orcl?password-file={}", responder.port(), password.display());
        let schemas = SCHEMAS.to_string();
        let slob = |words: &[&str]| {
            run_of(&self.plimsoll_text(&[&["slob"], words, &["--json", "--quiet", "--target", &target]].concat())?)
        };
        slob(&["setup", "-s", &schemas, "SCALE=1000", "SCAN_TABLE_SZ=0"])?;
        let (run_time, runs) = (format!("RUN_TIME={}", self.seconds), self.runs.display().to_string());
        let run = |send: &str, threads: usize| -> Result<Value, Failure> {
            let threads = threads.to_string();
            let words =
                ["run", "-t", &threads, "--send", send, "UPDATE_PCT=0", &run_time, "--warmup", "1s", "--runs", &runs];
            Ok(slob(&words)?["steps"][0].take())
        };
        let cost_us = |step: &Value| -> Result<f64, Failure> {
            let cpu = &step["process_cpu"];
            let cpu_ns = number(&cpu["user_ns"])? + number(&cpu["system_ns"])?;
            Ok(cpu_ns / 1e3 / number(&step["counters"]["operations"])?)
        };
        let (mut statements, mut batches) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            statements.push(cost_us(&run("statement", 1)?)?);
            batches.push(cost_us(&run("batch", 1)?)? * 100.0);
        }
        for (what, costs) in [("a statement", statements), ("100 operations in batches", batches)] {
            let cost = median(costs.into_iter());
            figure(&format!(
                "| Oracle's client against the responder, {SCHEMAS} sessions: processor time of {what}, us | {cost:.1} | - | - | at most \
                 25 | {} |",
                verdict(cost <= 25.0)
            ));
        }
        let memory = |step: &Value| number(&step["peak_memory_bytes"]);
        let (few, many) = (memory(&run("batch", 1)?)?, run("batch", MANY)?);
        let sessions = ((MANY - 1) * SCHEMAS) as f64;
        let each = (memory(&many)? - few) / sessions / 1024.0;
        figure(&format!(
            "| the same, {} sessions: memory of each, KiB | {each:.0} | - | - | at most 256 | {} |",
            MANY * SCHEMAS,
            verdict(each <= 256.0)
        ));
        self.plimsoll_text(&["slob", "drop", "--yes", "--target", &target]).map(drop)
    }
}
