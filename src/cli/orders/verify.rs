//! `plimsoll orders verify`.

use std::io::Write;

use clap::Args;

use super::audit::{self, ACKNOWLEDGED_FILE};
use super::with;
use crate::cli::arguments::{Format, FormatArgs, RunsArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::servers::ServerArgs;
use crate::cli::{Interrupt, say, sheets};
use crate::databases;
use model::plain::{self, Links};
use model::units::Bytes;
use targets::TargetError;
use targets::orders::Acknowledgements;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders verify --target pg:/u01/pgdata
  plimsoll orders verify --target postgres://bench@db1/bench --run last

Exit code 1: a rule is broken, such as an order whose total is not the sum of its items. It is also 1 if an order \
that the server acknowledged during the run is missing.";

/// Arguments of `plimsoll orders verify`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Also check that everything the server acknowledged during this run is there
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    runs: RunsArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let acknowledged = arguments.run.as_deref().map_or(Ok(Acknowledgements::default()), |run| read(arguments, run))?;
    let address = arguments.target.address();
    let audit = with(databases::orders(address, &arguments.server.options(address)?)?, |database| {
        let outcome = database.audit(&acknowledged, interrupt.flag());
        database.notes().iter().for_each(say::note);
        outcome.map_err(|error| match (error, interrupt.exit()) {
            (TargetError::Interrupted, Some(exit)) => {
                Failure::new("interrupted; not all data were looked at").with_exit(exit)
            }
            (error, _) => Failure::from(error),
        })
    })?;
    let sheet = audit::sheet(&audit, &acknowledged);
    match arguments.format.format() {
        Format::Json => say::json(&sheet.document)?,
        Format::Text => {
            let mut out = say::output();
            sheets::write(&mut out, &sheet)?;
            out.flush()?;
        }
    }
    Ok(if audit.is_sound() { Exit::Done } else { Exit::NotMet })
}

/// The longest list of what was acknowledged.
const MAX_ACKNOWLEDGED: Bytes = Bytes::gib(1);

/// What servers acknowledged during a run.
fn read(arguments: &Arguments, run: &str) -> Result<Acknowledgements, Failure> {
    let path = arguments.runs.store().find(run)?.join(ACKNOWLEDGED_FILE);
    let text = plain::read_text(&path, Links::Refused, MAX_ACKNOWLEDGED).map_err(|error| {
        Failure::new(format_args!("`{}` cannot be read: {error}", path.display()))
            .with_hint("name a run of `plimsoll orders run` in which orders were made".to_owned())
    })?;
    Acknowledgements::from_text(&text).map_err(|(line, text)| {
        Failure::new(format_args!("`{}`, line {line}: `{text}` says nothing that was acknowledged", path.display()))
            .with_hint("the file was changed or damaged; verify without `--run`".to_owned())
    })
}
