//! Private servers that the parts about databases measure on: made by the first command, kept running between all of them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{Bench, Failure, number, run_of};

/// Sessions of the read figures, on as many schemas.
pub(crate) const SESSIONS: usize = 16;
/// Blocks of one operation of the read figures.
pub(crate) const WORK_UNIT: usize = 64;

/// Bytes that the figures of loading are about.
pub(crate) const GIB: f64 = 1_073_741_824.0;

/// A private server in a directory.
pub(crate) struct Server<'a> {
    bench: &'a Bench,
    directory: PathBuf,
    scheme: &'static str,
}

impl Server<'_> {
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.scheme, self.directory.display())
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.scheme == "pg"
    }

    /// A command of `slob` on the server.
    pub(crate) fn slob(&self, arguments: &[&str]) -> Result<Value, Failure> {
        self.command("slob", arguments)
    }

    /// A command of a workload on the server.
    pub(crate) fn command(&self, workload: &str, arguments: &[&str]) -> Result<Value, Failure> {
        let address = self.address();
        let mut all = vec![workload];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&["--json", "--quiet", "--target", &address, "--keep-running"]);
        run_of(&self.bench.plimsoll_text(&all)?)
    }

    /// One run of reads by all sessions, after a warm-up.
    pub(crate) fn reads(&self, more: &[&str]) -> Result<Value, Failure> {
        let (run_time, runs) = (format!("RUN_TIME={}", self.bench.seconds), self.bench.runs.display().to_string());
        let sessions = SESSIONS.to_string();
        let words = ["run", "-s", &sessions, "-t", "1", "UPDATE_PCT=0", &run_time, "--warmup", "2s", "--runs", &runs];
        self.slob(&[words.as_slice(), more].concat())
    }

    /// Rows a second of a set-up of one schema, until it can be used.
    pub(crate) fn load(&self) -> Result<f64, Failure> {
        let reported = self.slob(&["setup", "-s", "1", "SCALE=1G", "SCAN_TABLE_SZ=0", "--replace"])?;
        Ok(GIB / number(&reported["block_bytes"])? * 1e9 / number(&reported["elapsed_ns"])?)
    }

    /// Removes the data, and the server with them.
    pub(crate) fn drop(&self) -> Result<(), Failure> {
        self.bench.plimsoll_text(&["slob", "drop", "--yes", "--target", &self.address()])?;
        Ok(())
    }
}

impl Bench {
    /// The server in a directory beside the engine's data, by the word that addresses begin with.
    pub(crate) fn server(&self, scheme: &'static str) -> Server<'_> {
        Server { bench: self, directory: self.data.with_file_name(scheme), scheme }
    }
}

/// How often a second a counter of a run's window grew, by the server's own name.
pub(crate) fn own_rate(run: &Value, name: &str) -> Result<f64, Failure> {
    let server = &run["steps"][0]["servers"][0];
    Ok(number(&server["own"][name])? * 1e9 / number(&server["elapsed_ns"])?)
}

/// The client's share of the processor time that the machine used in a run's window.
pub(crate) fn client_share(run: &Value) -> Result<f64, Failure> {
    let step = &run["steps"][0];
    let busy = |cpu: &Value| Ok::<_, Failure>(number(&cpu["user_ns"])? + number(&cpu["system_ns"])?);
    Ok(busy(&step["process_cpu"])? / busy(&step["host_cpu"])?)
}

/// Reads of data files a second that the kernel saw in a run's window.
pub(crate) fn traced_reads(run: &Value) -> Result<f64, Failure> {
    let traces = run["steps"][0]["traces"].as_array().ok_or("nothing was traced")?;
    let reads = traces.iter().find(|trace| trace["layer"] == "OS file" && trace["event"] == "data read");
    let reads = reads.ok_or("no reads were traced")?;
    Ok(number(&reads["count"])? * 1e9 / number(&reads["elapsed_ns"])?)
}

/// Time that all sessions of a rival have to connect: they begin at one instant. While some still connect the others would have the
/// CPUs for themselves, and what they do then would count as done in the time of the test.
pub(crate) const UNTIL_RIVALS_BEGIN: &str = "INTERVAL '4' SECOND";

/// Runs one command for each session at once, until all have ended. Each prints the seconds that it worked; gives their mean.
pub(crate) fn at_once(command: impl Fn(usize) -> Command) -> Result<f64, Failure> {
    let start = |n| command(n).stdout(Stdio::piped()).spawn();
    let sessions = (1..=SESSIONS).map(start).collect::<Result<Vec<Child>, _>>()?;
    let mut worked_s = 0.0;
    for session in sessions {
        let output = session.wait_with_output()?;
        if !output.status.success() {
            return Err("a session of the loop inside the server failed".into());
        }
        worked_s += String::from_utf8(output.stdout)?.trim().parse::<f64>()?;
    }
    Ok(worked_s / SESSIONS as f64)
}
