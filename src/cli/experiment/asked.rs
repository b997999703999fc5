//! What is asked for: the file read, and every step's command checked as if it had been typed.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::children::{self, Planned};
use crate::cli::exit::{Exit, Failure};
use crate::cli::typed::{self, FAILURE, ONE_LOAD, SEVERAL_LOADS, Why};
use crate::cli::{Command, io, parse, refuse, say};
use crate::plan::experiment::{ExperimentPlan, Step};
use analysis::{LatencyTarget, limits_of_command};
use model::config::experiment::{Experiment, ExperimentError};
use model::plain::{self, Links};
use model::units::Bytes;

/// No experiment is as large; a file of another kind may be.
pub(super) const MAX_FILE: Bytes = Bytes::mib(1);

/// The copy of the file in an experiment's folder.
pub(super) const FILE: &str = "experiment.toml";
/// Where the name of a file has nothing that a folder could be called.
const UNNAMED: &str = "experiment";

/// The file.
#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// Experiment file, or the folder that holds its runs
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// What a file asks for.
pub(super) struct Asked {
    /// What it is called: the name of its file, without the ending.
    pub(super) name: String,
    /// The file as it was named.
    pub(super) file: PathBuf,
    /// The experiment's folder, where that was named in place of a file.
    folder: Option<PathBuf>,
    /// What stands in it.
    pub(super) text: String,
    pub(super) plan: ExperimentPlan,
}

/// What came of checking commands.
pub(super) enum Checked {
    /// The arguments of each step's process.
    Loads(Vec<Vec<OsString>>),
    /// One was refused as if it had been typed alone, and that was reported.
    Refused(Exit),
}

/// Reads a file, or the one in an experiment's folder.
pub(super) fn read(path: &Path) -> Result<Asked, Failure> {
    let folder = path.is_dir().then(|| path.to_owned());
    let file = folder.as_ref().map_or_else(|| path.to_owned(), |folder| folder.join(FILE));
    let cannot = |error: &dyn std::fmt::Display| {
        let failure = Failure::new(format_args!("cannot read `{}`: {error}", file.display()));
        failure.with_hint("name the experiment's file; `plimsoll experiment --help` shows one".to_owned())
    };
    let read = match folder {
        Some(_) => plain::read_text(&file, Links::Refused, MAX_FILE),
        None => plain::read_named_text(&file, MAX_FILE),
    };
    let text = read.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => cannot(&"it is larger than any experiment"),
        _ => cannot(&error),
    })?;
    let named = if folder.is_some() { path.file_name() } else { path.file_stem() };
    let name = name(&named.unwrap_or_default().to_string_lossy());
    let plan = plan(&file, &text).map_err(|error| Failure::new(&error).with_hint(error.hint))?;
    Ok(Asked { name, file, folder, text, plan })
}

/// What a folder is called for a file of this name.
fn name(stem: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = stem.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { UNNAMED.to_owned() } else { name.to_owned() }
}

/// The plan that a text asks for.
pub(super) fn plan(file: &Path, text: &str) -> Result<ExperimentPlan, ExperimentError> {
    let file = file.display().to_string();
    ExperimentPlan::of(Experiment::parse(&file, text)?, &file)
}

impl Asked {
    /// The experiment's folder below a directory of runs; the folder itself where that was named.
    pub(super) fn folder(&self, runs: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| runs.join(&self.name))
    }

    /// Checks every step's command; its runs go to `folder`.
    pub(super) fn loads(&self, folder: &Path) -> Result<Checked, Failure> {
        let mut loads = Vec::with_capacity(self.plan.steps.len());
        for step in &self.plan.steps {
            let words: Vec<OsString> = step.words.iter().map(OsString::from).collect();
            if !typed::is_one_of(&words, &loads_of_steps()) {
                return Err(self.no_load(step, &words));
            }
            if let Some((flag, why)) = typed::forbidden(&words) {
                let (why, hint) = match why {
                    Why::OfAll(why) => {
                        (why, format!("write it behind `plimsoll experiment run {}`", self.file.display()))
                    }
                    Why::WrittenAgain => (
                        "every run would write that file",
                        "leave it out; `plimsoll report` writes each run".to_owned(),
                    ),
                };
                let failure = self.of_step(step, Failure::new(format_args!("`{flag}` stands in its command: {why}")));
                return Err(failure.with_hint(hint));
            }
            let tags = step.tags.iter();
            let tags = tags.flat_map(|(name, value)| ["--tag".into(), OsString::from(format!("{name}={value}"))]);
            let arguments = typed::with_options(words, tags.chain(["--runs".into(), folder.into()]));
            let typed: Vec<OsString> = [OsString::from("plimsoll")].into_iter().chain(arguments.clone()).collect();
            match parse(&typed) {
                Ok(cli) => {
                    if is_calibration_of_database(&cli.command) {
                        let failure =
                            Failure::new("a database's own CALIBRATE_IO is kept there, and no run comes of it");
                        let failure = self.of_step(step, failure);
                        return Err(
                            failure.with_hint("call it by a script: `before = \"plimsoll io calibrate …\"`".to_owned())
                        );
                    }
                }
                Err(error) => {
                    let exit = refuse(error, &typed);
                    let (line, command) = (step.line, shown(step));
                    say::hint(format_args!(
                        "that is step {} of `{}`, line {line}: `{command}`",
                        step.number,
                        self.file.display()
                    ));
                    return Ok(Checked::Refused(exit));
                }
            }
            loads.push(arguments);
        }
        Ok(Checked::Loads(loads))
    }

    /// Whether something fails in this step.
    pub(super) fn has_failure(&self, step: usize) -> bool {
        let words: Option<Vec<OsString>> =
            self.plan.steps.get(step).map(|step| step.words.iter().map(OsString::from).collect());
        words.is_some_and(|words| typed::is_one_of(&words, &[FAILURE]))
    }

    /// How long each step's load is on. What cannot be planned is an error, unless a script before it may make what is missing: then
    /// nothing is known of it yet.
    pub(super) fn planned(&self, loads: &[Vec<OsString>]) -> Result<Vec<Option<Planned>>, Failure> {
        let of_step = |(step, load): (&Step, &Vec<OsString>)| match children::planned(load) {
            Ok(planned) => Ok(Some(planned)),
            Err(_) if self.plan.before.is_some() || step.before.is_some() => Ok(None),
            Err(failure) => Err(self.of_step(step, failure)),
        };
        self.plan.steps.iter().zip(loads).map(of_step).collect()
    }

    /// Latency limits of each step's command.
    pub(super) fn limits(&self) -> Vec<Vec<LatencyTarget>> {
        self.plan.steps.iter().map(|step| limits(&step.words)).collect()
    }

    fn no_load(&self, step: &Step, words: &[OsString]) -> Failure {
        let all: Vec<String> = loads_of_steps().iter().map(|name| format!("`{name}`")).collect();
        let failure = Failure::new(format_args!("`{}` is not a load that can be a step", typed::shown(words)));
        self.of_step(step, failure)
            .with_hint(format!("what can: {}; anything else goes into a script, `before` or `after`", all.join(", ")))
    }

    /// What is wrong with one of the steps.
    pub(super) fn of_step(&self, step: &Step, failure: Failure) -> Failure {
        match failure {
            Failure::Reported(mut reported) => {
                let (file, line) = (self.file.display(), step.line);
                reported.message =
                    format!("{file}, line {line}: step {}, `{}`: {}", step.number, shown(step), reported.message);
                Failure::Reported(reported)
            }
            Failure::PipeClosed => failure,
        }
    }
}

/// Commands that a step can have.
fn loads_of_steps() -> Vec<&'static str> {
    ONE_LOAD.into_iter().chain(SEVERAL_LOADS).chain([FAILURE]).collect()
}

/// The command of a step as it can be typed, secrets removed.
pub(super) fn shown(step: &Step) -> String {
    let words: Vec<OsString> = step.words.iter().map(OsString::from).collect();
    typed::shown(&words)
}

fn is_calibration_of_database(command: &Command) -> bool {
    let Command::Io(command) = command else { return false };
    matches!(&**command, io::Command::Calibrate(arguments) if arguments.is_of_database())
}

/// The limits of a command. All of them were parsed before.
fn limits(words: &[String]) -> Vec<LatencyTarget> {
    let load = words.iter().position(|word| word == "--").map_or(words, |at| &words[at + 1..]);
    // Transactions have names of their own there.
    limits_of_command(load, load.first().is_some_and(|first| first == "orders"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_can_be_called_as_the_file_is() {
        let names = ["evening", "my evening/2", "..hidden", "größe", ""].map(name);
        assert_eq!(names, ["evening", "my-evening-2", "hidden", "gr--e", "experiment"]);
    }

    #[test]
    fn limits_are_those_that_the_command_has() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |text: &str| limits(&words(text)).iter().map(ToString::to_string).collect::<Vec<_>>();
        let (spaced, joined) = (of("slob run 8 --limit p99=5ms"), of("slob run 8 --limit=p99=5ms"));
        assert_eq!((spaced.len(), &spaced), (1, &joined));
        assert_eq!(of("io run --limits x --limit").len(), 0);
        assert_ne!(of("orders run --limit OP:p99=50ms"), of("slob run --limit OP:p99=50ms"));
        assert_eq!(of("io sweep --limit p99=5ms --target-latency p50=1ms").len(), 2);
        let errors = |text: &str| limits(&words(text))[0].errors;
        assert_eq!(
            (errors("io run --limit p99=5ms"), errors("io run --errors=1% --limit p99=5ms")),
            (Some(0.0), Some(0.01))
        );
    }
}
