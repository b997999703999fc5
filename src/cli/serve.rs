//! `plimsoll serve`.

use std::io::Write;

use clap::Args;

use super::arguments::RunsArgs;
use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use super::say;
use model::record::store::StoreError;
use serve::{Listen, Problem, Server};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll serve                        http://127.0.0.1:8321/ until Ctrl-C
  plimsoll serve --runs /u01/plimsoll-runs
  plimsoll serve --listen 127.0.0.1:0   any free port; standard output has it
  plimsoll serve --listen 0.0.0.0:8321  for everybody who can reach this machine

Nothing can be changed through it. From another machine, `ssh -L 8321:localhost:8321 HOST` is the safe way to reach it.";

/// Arguments of `plimsoll serve`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Address and port to listen on, such as 127.0.0.1:8321, [::1]:8321 or localhost:8321; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8321")]
    listen: Listen,

    #[command(flatten)]
    runs: RunsArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let directory = store.path().to_owned();
    let server = Server::open(arguments.listen, store).map_err(not_opened)?;
    let ender = server.ender();
    Interrupt::end_with(move || ender.end())?;
    let url = format!("http://{}/", server.address());
    let runs = server.runs();
    let plural = if runs == 1 { "run" } else { "runs" };
    say::line(format_args!("Serving {runs} {plural} in `{}` at {url} (Ctrl-C ends it)", directory.display()));
    if !arguments.listen.is_local() {
        say::note("everybody who can reach this machine can read these runs");
    }
    let mut out = say::output();
    // Nobody need read the address: whoever has closed standard output can still read the pages.
    let _ = writeln!(out, "{url}").and_then(|()| out.flush());
    drop(out);
    server.serve()?;
    Ok(Exit::Done)
}

/// A directory that is missing has another reason before the first look than after it.
fn not_opened(problem: Problem) -> Failure {
    let is_missing = matches!(
        &problem,
        Problem::Store(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound
    );
    let failure = Failure::from(problem);
    if is_missing {
        failure.with_hint("`--runs DIR` names the directory in which runs are kept; the first run makes it".to_owned())
    } else {
        failure
    }
}
