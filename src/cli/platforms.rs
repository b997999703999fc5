//! `plimsoll platforms`, and the catalogue that all commands use.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::arguments::{Format, FormatArgs};
use super::exit::{Exit, Failure};
use super::say;
use model::plain;
use model::platforms::{Catalogue, Machine, NameError, Source, VolumeKind};
use model::units::Bytes;
use report;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll platforms list
  plimsoll platforms show Standard_M64s
  plimsoll platforms show gp2
  plimsoll platforms check               which figures are older than a year";

const LIST_EXAMPLES: &str = "\
Examples:
  plimsoll platforms list
  plimsoll platforms list m64            whose names, clouds or kinds hold it
  plimsoll platforms list premium --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  plimsoll platforms show D8s_v3         with where each figure is from
  plimsoll platforms show gp3 --json";

const CHECK_EXAMPLES: &str = "\
Examples:
  plimsoll platforms check               look these up before you buy
  plimsoll platforms check azure --json";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the machines and volumes with published limits
    #[command(visible_alias = "ls", after_long_help = LIST_EXAMPLES)]
    List(ListArguments),
    /// Show the limits of a machine or volume, and where they are published
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(ShowArguments),
    /// List those whose source is older than a year or undated
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(ListArguments),
}

/// Arguments of `plimsoll platforms list` and `plimsoll platforms check`.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Only those whose name, cloud or type contains this [default: all]
    #[arg(value_name = "WORD")]
    word: Option<String>,

    #[command(flatten)]
    files: PlatformsArgs,

    #[command(flatten)]
    format: FormatArgs,
}

/// Arguments of `plimsoll platforms show`.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Machine or volume, such as `Standard_D8s_v3` or `gp2`
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    files: PlatformsArgs,

    #[command(flatten)]
    format: FormatArgs,
}

/// What adds to the catalogue that is built in.
#[derive(Debug, Args)]
pub(super) struct PlatformsArgs {
    /// File of machines and volumes that adds to the catalogue, or corrects it
    ///
    /// The default is $XDG_CONFIG_HOME/plimsoll/platforms.toml, if it exists.
    #[arg(long, value_name = "FILE", help_heading = "Catalogue")]
    platforms_file: Vec<PathBuf>,
}

impl PlatformsArgs {
    /// The same options, as the words of a command.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let of = |file: &PathBuf| ["--platforms-file".to_owned(), file.display().to_string()];
        self.platforms_file.iter().flat_map(of)
    }

    /// What is built in, with the user's own file and those that were named.
    pub(super) fn catalogue(&self) -> Result<Catalogue, Failure> {
        let mut catalogue = Catalogue::built_in().clone();
        if let Some(own) = own_file().filter(|own| own.exists()) {
            add(&mut catalogue, &own)?;
        }
        self.platforms_file.iter().try_for_each(|file| add(&mut catalogue, file))?;
        Ok(catalogue)
    }
}

/// Has the reports of this process know what the user's own file has. One that cannot be read is left out, with a note: it is no reason
/// not to report a run.
pub(super) fn for_reports() {
    let Some(own) = own_file().filter(|own| own.exists()) else { return };
    let mut catalogue = Catalogue::built_in().clone();
    match add(&mut catalogue, &own) {
        Ok(()) => catalogue.use_in_reports(),
        Err(Failure::Reported(reported)) => say::note(format_args!("{}; it is left out", reported.message)),
        Err(Failure::PipeClosed) => {}
    }
}

/// Where a user's own file is looked for.
fn own_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("plimsoll/platforms.toml"))
}

/// The longest list of platforms or prices.
pub(super) const MAX_LIST: Bytes = Bytes::mib(16);

fn add(catalogue: &mut Catalogue, file: &Path) -> Result<(), Failure> {
    let text = plain::read_named_text(file, MAX_LIST).map_err(|problem| {
        let failure = Failure::new(format_args!("cannot read `{}`: {problem}", file.display()));
        failure.with_hint("docs/recipes/azure-rac.md says what such a file holds".to_owned())
    })?;
    let added = catalogue.add(&file.display().to_string(), &text);
    added.map_err(|problem| Failure::new(&problem).with_hint(problem.hint))
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(arguments) => list(&arguments, false),
            Self::Check(arguments) => list(&arguments, true),
            Self::Show(arguments) => show(&arguments),
        }
    }
}

/// The day on which figures are old or not.
pub(super) fn today() -> Date {
    jiff::Zoned::now().date()
}

fn list(arguments: &ListArguments, only_old: bool) -> Result<Exit, Failure> {
    let catalogue = arguments.files.catalogue()?;
    let today = today();
    let word = arguments.word.as_deref().unwrap_or("").to_lowercase();
    let holds = |texts: &[&str]| texts.iter().any(|text| text.to_lowercase().contains(&word));
    let machines = catalogue.machines().iter().filter(|it| holds(&[&it.name, &it.cloud]));
    let volumes = catalogue.volumes().iter().filter(|it| holds(&[&it.name, &it.cloud, &it.kind]));
    let (mut machines, mut volumes): (Vec<&Machine>, Vec<&VolumeKind>) = (machines.collect(), volumes.collect());
    let all = machines.len() + volumes.len();
    if machines.is_empty() && volumes.is_empty() {
        let failure = Failure::new(format_args!("no machine or volume has `{word}` in its name, cloud or kind"));
        return Err(failure.with_hint("`plimsoll platforms list` shows all".to_owned()));
    }
    if only_old {
        machines.retain(|machine| machine.standing.is_old(today));
        volumes.retain(|kind| kind.standing.is_old(today));
    }
    let gaps = catalogue.gaps();
    match arguments.format.format() {
        Format::Json => say::json(&json!({
            "format": 1,
            "not_in_the_catalogue": gaps,
            "machines": machines.iter().map(|it| of_machine(it, &catalogue)).collect::<Vec<_>>(),
            "volumes": volumes.iter().map(|it| of_volume(it, &catalogue)).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            let mut out = say::output();
            if only_old {
                let old = machines.len() + volumes.len();
                writeln!(out, "{old} of {all} entries are older than a year, or of no known date.\n")?;
            }
            report::platforms::list(&mut out, &machines, &volumes, (&gaps, today), say::width())?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

fn show(arguments: &ShowArguments) -> Result<Exit, Failure> {
    let catalogue = arguments.files.catalogue()?;
    let name = &arguments.name;
    let (width, from) = (say::width(), (&catalogue, today()));
    let mut out = say::output();
    match (catalogue.machine(name), catalogue.volume(name), arguments.format.format()) {
        (Ok(machine), _, Format::Text) => report::platforms::machine(&mut out, machine, from, width)?,
        (Ok(machine), ..) => return json_of(of_machine(machine, &catalogue)),
        (_, Ok(volume), Format::Text) => report::platforms::volume(&mut out, volume, from, width)?,
        (_, Ok(volume), _) => return json_of(of_volume(volume, &catalogue)),
        (Err(machine), Err(volume), _) => return Err(neither(name, &machine, &volume)),
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn json_of(document: Value) -> Result<Exit, Failure> {
    say::json(&document)?;
    Ok(Exit::Done)
}

/// The more telling of two answers: the one that names candidates.
fn neither(name: &str, machine: &NameError, volume: &NameError) -> Failure {
    match (machine, volume) {
        (NameError::Ambiguous { .. }, _) => Failure::new(machine).with_hint(machine.hint()),
        (_, NameError::Ambiguous { .. }) => Failure::new(volume).with_hint(volume.hint()),
        (NameError::Unknown { near, .. }, NameError::Unknown { near: others, .. }) => {
            let near: Vec<&str> = near.iter().chain(others).map(String::as_str).collect();
            let hint = if near.is_empty() { machine.hint() } else { format!("the nearest are {}", near.join(", ")) };
            Failure::new(format_args!("no machine or volume is called `{name}`")).with_hint(hint)
        }
    }
}

fn sources<'a>(names: impl Iterator<Item = &'a String>, catalogue: &Catalogue) -> Vec<Source> {
    names.filter_map(|name| catalogue.source(name)).cloned().collect()
}

/// What is known of a machine, and from where.
fn of_machine(machine: &Machine, catalogue: &Catalogue) -> Value {
    json!({ "machine": machine, "old": machine.standing.is_old(today()), "sources": sources(machine.sources.iter(), catalogue) })
}

fn of_volume(kind: &VolumeKind, catalogue: &Catalogue) -> Value {
    let from = sources([&kind.source].into_iter().chain(&kind.also), catalogue);
    json!({ "volume": kind, "old": kind.standing.is_old(today()), "sources": from })
}
