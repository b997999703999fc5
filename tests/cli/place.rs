//! A directory to run the program in, and what it answered.

use test_support::scratch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use scratch::scratch;
use tempfile::TempDir;

/// A directory of its own for one test.
pub struct Place(TempDir);

/// What the program answered.
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory can be made"))
    }

    /// A place on the disk that the tests were built on, so that O_DIRECT works.
    pub fn on_disk() -> Self {
        Self(scratch())
    }

    /// A place with the runs that were kept by earlier formats.
    pub fn with_kept_runs() -> Self {
        let place = Self::new();
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/runs");
        for run in std::fs::read_dir(kept).expect("the kept runs are there") {
            let run = run.expect("the kept runs can be listed").path();
            let copy = place.path("plimsoll-runs").join(run.file_name().expect("a run has a name"));
            std::fs::create_dir_all(&copy).expect("a directory can be made");
            for file in ["run.json", "intervals.jsonl"] {
                std::fs::copy(run.join(file), copy.join(file)).expect("a run can be copied");
            }
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file can be written");
    }

    /// The program with nothing of the tester's own surroundings: no terminal, no settings.
    pub fn plimsoll(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_plimsoll")), arguments)
    }

    /// The same, and a terminal that closes ends it also where the tester works under `nohup`.
    pub fn plimsoll_that_hangs_up(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_plimsoll")]);
        self.prepared(command, arguments)
    }

    fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        for name in ["PLIMSOLL_TARGET", "PLIMSOLL_RUNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        Answer::from(self.plimsoll(arguments).output().expect("the program can be started"))
    }

    /// Runs what must be done without complaint.
    pub fn done(&self, arguments: &[&str]) -> Answer {
        let answer = self.run(arguments);
        assert_eq!(answer.code, Some(0), "{arguments:?}\n{answer}");
        answer
    }

    /// Two small schemas in the usual directory.
    pub fn set_up(&self) {
        self.done(&["slob", "setup", "-s", "2", "SCALE=2000", "--redo-size", "8M", "--redo-files", "3", "--quiet"]);
    }

    /// The ids of the runs that are kept, first to last.
    pub fn runs(&self) -> Vec<String> {
        let list: serde_json::Value = self.done(&["runs", "list", "--json"]).json();
        let ids = list.as_array().expect("a list").iter().map(|run| run["id"].as_str().expect("an id").to_owned());
        ids.collect()
    }
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// The run in the report that `--json` printed.
    pub fn run(&self) -> serde_json::Value {
        self.json()["run"].take()
    }

    /// Everything the user sees. Nothing of it may depend on the machine.
    pub fn reported(&self) -> String {
        self.to_string()
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The kinds of operations that finished in the first step of a run.
pub fn kinds(run: &serde_json::Value) -> Vec<&str> {
    let operations = run["steps"][0]["operations"].as_array().expect("a list");
    operations.iter().map(|of| of["kind"].as_str().expect("a kind")).collect()
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        write!(f, "exit code {code}\n-- stdout\n{}-- stderr\n{}", self.stdout, self.stderr)
    }
}
