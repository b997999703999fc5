//! `plimsoll durable layers`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::FormatArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::sheets;
use ::durable::layers::{Answer, Layers, Place};
use model::plain::{self, Links};
use model::units::Bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll durable verify --target raw:/dev/sdb --notes cut1.notes \\
    --json > cut1.json
  plimsoll durable layers cut*.json

Cut the same stack with the load on the device, on files, and on the database. A layer is named if it loses, the one below it \
kept everything, and chance explains that in fewer than 5 % of cases. Four cuts of each can show it. Of two directories the first named \
is the lower one. \
Exit code 0: every layer kept all. 1: commits are lost. 2: neither.";

/// Longest answer that is read.
const MAX_ANSWER: Bytes = Bytes::mib(1);

/// Arguments of `plimsoll durable layers`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Answers of `plimsoll durable verify --json`, one for each cut, and layers of one kind from below
    #[arg(value_name = "FILE", required = true)]
    answers: Vec<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let answers = arguments.answers.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let layers = Layers::of(&answers).map_err(|error| Failure::new(&error).with_hint(model::hint(&error)))?;
    let exit = match layers.place() {
        Place::Nowhere => Exit::Done,
        Place::At { .. } | Place::AtOrBelow | Place::TooFew { .. } => Exit::NotMet,
        Place::Unknown => Exit::NoVerdict,
    };
    match sheets::show(&layers.sheet(), arguments.format.format()) {
        // Its reader has gone, and the exit code says the same.
        Ok(_) | Err(Failure::PipeClosed) => Ok(exit),
        Err(failure) => Err(failure),
    }
}

fn read(path: &Path) -> Result<Answer, Failure> {
    let text =
        plain::read_text(path, Links::Followed, MAX_ANSWER).map_err(|error| Failure::of_file("read", path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        let failure =
            Failure::new(format_args!("`{}` does not hold an answer of a verification: {error}", path.display()));
        failure.with_hint("write it with `plimsoll durable verify --json` of the same version".to_owned())
    })
}
