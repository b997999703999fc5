//! The loads that are asked for, each a command that could be typed by itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::arguments::Measured;
use crate::cli::exit::{Exit, Failure};
use crate::cli::typed::{self, ONE_LOAD as COMMANDS, Why};
use crate::cli::{Command, host, io, net, orders, parse, refuse, say, slob};
use model::config::Tag;
use model::config::io::letter;
use model::units::Nanos;

/// More have no letters that anybody remembers, and no whole round ends.
const MAX_LOADS: usize = 8;
/// What stands between loads.
const SEPARATOR: &str = "--";
/// What has to be known of a load before it is started.
struct Part {
    measured: Measured,
    /// A directory that it needs for itself.
    directory: Option<PathBuf>,
}

/// What is known of the load of a command; absent where the command cannot take part. Whatever takes part opens its recording by
/// `Recording::begin` and carries out one step by `Recording::step`: that is where a supervised run waits for the others.
fn part(command: &Command) -> Option<Result<Part, Failure>> {
    match command {
        Command::Io(command) => match &**command {
            io::Command::Run(arguments) if arguments.is_one_load() => {
                Some(Ok(Part { measured: arguments.measured(), directory: None }))
            }
            _ => None,
        },
        Command::Host(host::Command::Run(arguments)) => {
            Some(arguments.measured().map(|measured| Part { measured, directory: None }))
        }
        Command::Net(net::Command::Run(arguments)) => {
            Some(arguments.measured().map(|measured| Part { measured, directory: None }))
        }
        Command::Slob(command) => match &**command {
            slob::Command::Run(arguments) => Some(arguments.measured().map(|measured| {
                let directory = arguments.directory().and_then(|path| std::path::absolute(path).ok());
                Part { measured, directory }
            })),
            _ => None,
        },
        Command::Orders(command) => match &**command {
            orders::Command::Run(arguments) => {
                let directory = arguments.directory().and_then(|path| std::path::absolute(path).ok());
                Some(Ok(Part { measured: arguments.measured(), directory }))
            }
            _ => None,
        },
        _ => None,
    }
}

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Load {
    /// Its letter.
    pub(in crate::cli) letter: char,
    /// The command as it was typed, secrets removed.
    pub(in crate::cli) typed: String,
    /// All arguments of its process.
    pub(in crate::cli) arguments: Vec<OsString>,
}

/// What was said for all loads.
pub(in crate::cli) struct Given<'a> {
    /// The command that measures them.
    pub(in crate::cli) command: &'static str,
    pub(in crate::cli) duration: Option<Nanos>,
    pub(in crate::cli) warmup: Option<Nanos>,
    pub(in crate::cli) tags: &'a [Tag],
    /// Flags that name where each run is sent.
    pub(in crate::cli) push: Vec<String>,
    pub(in crate::cli) runs: &'a Path,
}

/// What came of reading.
pub(in crate::cli) enum Read {
    /// The loads, and when all of them are measured.
    Loads(Vec<Load>, Measured),
    /// One of them was refused as if it had been typed alone, and that was reported.
    Refused(Exit),
}

/// Reads and checks everything that can be known before a load is started.
pub(super) fn read(words: &[OsString], given: &Given<'_>) -> Result<Read, Failure> {
    let commands: Vec<&[OsString]> = words.split(|word| word == SEPARATOR).collect();
    if commands.len() < 2 || commands.iter().any(|words| words.is_empty()) {
        let failure = Failure::new(match commands.len() {
            0 | 1 => "one load alone has nothing beside it",
            _ => "a load is missing between `--` and `--`, or at the end",
        });
        return Err(
            failure.with_hint("write two loads or more: `plimsoll beside -- slob run 8 -- io run …`".to_owned())
        );
    }
    if commands.len() > MAX_LOADS {
        let failure = Failure::new(format_args!("{} loads are given, but the maximum is {MAX_LOADS}", commands.len()));
        return Err(failure.with_hint("leave some out, or make one load of several alike".to_owned()));
    }
    checked(&commands, given)
}

/// The same of one load alone.
pub(in crate::cli) fn only(words: &[OsString], given: &Given<'_>) -> Result<Read, Failure> {
    let commands: Vec<&[OsString]> = words.split(|word| word == SEPARATOR).collect();
    if let [words] = commands.as_slice()
        && !words.is_empty()
    {
        return checked(&commands, given);
    }
    let failure = Failure::new(format_args!("{} loads are given, and one is needed", commands.len()));
    Err(failure.with_hint("write one load behind `--`: `-- orders run --rate 500 …`".to_owned()))
}

fn checked(commands: &[&[OsString]], given: &Given<'_>) -> Result<Read, Failure> {
    let mut loads = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    for (place, words) in commands.iter().enumerate() {
        let load = load(letter(place), words, given)?;
        let typed: Vec<OsString> = std::iter::once("plimsoll".into()).chain(load.arguments.iter().cloned()).collect();
        let command = match parse(&typed) {
            Ok(cli) => cli.command,
            Err(error) => {
                let exit = refuse(error, &typed);
                say::hint(format_args!("that is load {}: `{}`", load.letter, load.typed));
                return Ok(Read::Refused(exit));
            }
        };
        let part = part(&command).ok_or_else(|| cannot_take_part(&load))?;
        let part = part.map_err(|failure| of_load(&load, failure))?;
        let same = parts.iter().position(|known| known.directory.is_some() && known.directory == part.directory);
        if let (Some(known), Some(directory)) = (same, &part.directory) {
            return Err(share_a_directory(&loads[known], &load, directory));
        }
        parts.push(part);
        loads.push(load);
    }
    let first = parts[0].measured;
    match loads.iter().zip(&parts).find(|(_, part)| part.measured != first) {
        None => Ok(Read::Loads(loads, first)),
        Some((other, part)) => Err(differ((&loads[0], first), (other, part.measured))),
    }
}

fn load(letter: char, words: &[OsString], given: &Given<'_>) -> Result<Load, Failure> {
    let words = typed::without_program(words);
    let mut load = Load { letter, typed: typed::shown(words), arguments: words.to_vec() };
    // Read as it was typed first: a command that cannot take part may not know what is added.
    if !typed::is_one_of(words, &COMMANDS) {
        return Err(cannot_take_part(&load));
    }
    match typed::forbidden(words) {
        Some((flag, Why::OfAll(why))) => {
            let failure = Failure::new(format_args!("`{flag}` stands in load {letter}: {why}"));
            return Err(
                failure.with_hint(format!("write it before the first `--`: `plimsoll {} {flag} …`", given.command))
            );
        }
        Some((flag, Why::WrittenAgain)) => {
            let failure =
                Failure::new(format_args!("`{flag}` stands in load {letter}: every turn would write that file"));
            return Err(failure.with_hint("leave it out; each turn is a run that `plimsoll report` writes".to_owned()));
        }
        None => {}
    }
    let mut add = |flag: &str, value: OsString| load.arguments.extend([flag.into(), value]);
    given.duration.into_iter().for_each(|time| add("--duration", typed_time(time).into()));
    given.warmup.into_iter().for_each(|time| add("--warmup", typed_time(time).into()));
    given.tags.iter().for_each(|tag| add("--tag", tag.to_string().into()));
    add("--runs", given.runs.into());
    // A load that is sent elsewhere is sent there.
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let has = |flag: &String| words.iter().any(|word| name(&word.to_string_lossy()) == name(flag));
    load.arguments.extend(given.push.iter().filter(|flag| !has(flag)).map(OsString::from));
    Ok(load)
}

/// A time as it can be typed behind any flag.
fn typed_time(time: Nanos) -> String {
    const SECOND: u64 = 1_000_000_000;
    if time.0.is_multiple_of(SECOND) { format!("{}s", time.0 / SECOND) } else { format!("{}ns", time.0) }
}

fn cannot_take_part(load: &Load) -> Failure {
    let can: Vec<String> = COMMANDS.iter().map(|command| format!("`{command} …`")).collect();
    Failure::new(format_args!("load {}, `{}`, cannot take part", load.letter, load.typed))
        .with_hint(format!("what can: {}", can.join(", ")))
}

/// What is wrong with one of the loads.
fn of_load(load: &Load, failure: Failure) -> Failure {
    match failure {
        Failure::Reported(mut reported) => {
            reported.message = format!("load {}, `{}`: {}", load.letter, load.typed, reported.message);
            Failure::Reported(reported)
        }
        Failure::PipeClosed => failure,
    }
}

fn share_a_directory(a: &Load, b: &Load, directory: &Path) -> Failure {
    Failure::new(format_args!(
        "loads {} and {} have their data in `{}`, which one process at a time can use",
        a.letter,
        b.letter,
        directory.display()
    ))
    .with_hint("set up another directory for one of them. Your own server takes any number: `postgres://…`".to_owned())
}

fn differ((a, of_a): (&Load, Measured), (b, of_b): (&Load, Measured)) -> Failure {
    let words = |Measured { warmup, duration }: Measured| {
        format!("{duration} after {}", crate::cli::live::warmup_words(warmup))
    };
    Failure::new(format_args!(
        "loads that run together must be measured at the same time: load {} is measured for {}, load {} for {}",
        a.letter,
        words(of_a),
        b.letter,
        words(of_b)
    ))
    .with_hint(format!(
        "say it once for all: `plimsoll beside --duration {} --warmup {} -- …`, and leave it out of the loads",
        typed_time(of_a.duration),
        typed_time(of_a.warmup)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help;

    #[test]
    fn every_command_that_is_listed_can_take_part() {
        let root = help::command();
        for words in COMMANDS {
            let mut command = &root;
            for word in words.split(' ') {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("there is no `{words}`"));
            }
            for flag in ["duration", "warmup", "runs", "tags"] {
                assert!(command.get_arguments().any(|known| known.get_id() == flag), "`{words}` has no --{flag}");
            }
        }
        assert!(super::super::EXAMPLES.contains(&COMMANDS.map(|command| format!("`{command}`")).join(", ")));
    }

    #[test]
    fn a_time_is_typed_so_that_every_load_reads_it() {
        assert_eq!(
            (typed_time(Nanos::seconds(30)), typed_time(Nanos::millis(1_500))),
            ("30s".to_owned(), "1500000000ns".to_owned())
        );
    }
}
