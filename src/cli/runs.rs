//! `plimsoll runs`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::arguments::{Format, FormatArgs, RunsArgs};
use super::exit::{Exit, Failure};
use super::say;
use analysis::ListedVerdict;
use model::config::Tag;
use model::record::store::{self, Headline, Store, StoreError, Summary};
use model::record::{Clock, Outcome, Run, Timestamp};
use model::shown::shown;
use model::units::shell_command;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll runs list
  plimsoll runs show last
  plimsoll runs rm 20261120-103000-slob --dry-run";

const LIST_EXAMPLES: &str = "\
Examples:
  plimsoll runs list
  plimsoll runs list vm=d8s 202611                only these
  plimsoll runs list --runs /u01/plimsoll-runs
  plimsoll runs list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  plimsoll runs show last          its request, and how each step ended
  plimsoll runs show last --json   the run document, as run.json has it";

const TAG_EXAMPLES: &str = "\
Examples:
  plimsoll runs tag last vm=d8s disk=p30x2
  plimsoll runs tag 20261120 vm=d16s            a run by the beginning of its id
  plimsoll runs tag vm=d8s region=west          all runs with that tag";

const REMOVE_EXAMPLES: &str = "\
Examples:
  plimsoll runs rm 20261120-103000-slob
  plimsoll runs rm vm=d8s --dry-run                    only say what would go";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the runs in the order in which they were made
    #[command(visible_alias = "ls", after_long_help = LIST_EXAMPLES)]
    List(ListArguments),
    /// Show the request of a run, where it ran, and how it ended
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(ShowArguments),
    /// Add tags to kept runs, or change the values of those that they have
    #[command(after_long_help = TAG_EXAMPLES)]
    Tag(TagArguments),
    /// Remove runs, and nothing but runs
    #[command(after_long_help = REMOVE_EXAMPLES)]
    Rm(RemoveArguments),
}

/// Arguments of `plimsoll runs list`.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Only these: id, beginning of ids, name, tag as in `vm=d8s`, directory, or `last` [default: all]
    #[arg(value_name = "RUN")]
    words: Vec<String>,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    runs: RunsArgs,
}

/// Arguments of `plimsoll runs show`.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// A run: its id, the beginning of its id, its name, a tag as in `vm=d8s`, its directory, or `last`
    #[arg(default_value = "last")]
    run: String,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    runs: RunsArgs,
}

/// Arguments of `plimsoll runs tag`.
#[derive(Debug, Args)]
pub(super) struct TagArguments {
    /// A run: id, beginning of an id, name, directory, or `last`, or a tag as in `vm=d8s`
    ///
    /// All runs with the tag are taken. Every other word names one run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Tags such as `vm=d8s` (the name of the run does not change)
    #[arg(value_name = "KEY=VALUE", required = true)]
    tags: Vec<Tag>,
    /// Print what would be done, and exit
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    runs: RunsArgs,
}

/// Arguments of `plimsoll runs rm`.
#[derive(Debug, Args)]
pub(super) struct RemoveArguments {
    /// Runs: id, beginning of an id, name, directory, or `last`, or a tag as in `vm=d8s`
    ///
    /// All runs with the tag are taken. Every other word names one run.
    #[arg(value_name = "RUN", required = true)]
    names: Vec<String>,
    /// Print what would be done, and exit
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    runs: RunsArgs,
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(arguments) => list(&arguments),
            Self::Show(arguments) => show(&arguments),
            Self::Tag(arguments) => tag(&arguments),
            Self::Rm(arguments) => remove(&arguments),
        }
    }
}

fn list(arguments: &ListArguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let (runs, problems) = store.list_of(&arguments.words)?;
    match arguments.format.format() {
        Format::Json => {
            let listed: Vec<_> = runs
                .iter()
                .map(|summary| Listed { summary, answer: verdict(summary).map(|verdict| verdict.answer) })
                .collect();
            say::json(&listed)?;
        }
        Format::Text if runs.is_empty() => say::note(format_args!("no runs in `{}`", store.path().display())),
        Format::Text => {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
            let has_verdicts = runs.iter().any(|run| run.is_judged);
            // Rates and percentile are those of the largest load, of a check those at what was asked.
            let header = ["id", "name", "made", "outcome", "steps", "operations/s", "reads/s", "p99"];
            table.set_header(header.into_iter().chain(has_verdicts.then_some("verdict")).chain(["tags", "target"]));
            for run in &runs {
                let (made, steps) = (instant_words(run.started_at, run.clock), run.steps.to_string());
                let outcome = outcome_word(&run.outcome).to_owned();
                let figures = match &run.headline {
                    None => ["?"; 3].map(str::to_owned),
                    Some(reported) => [
                        Headline::rate_words(reported.operations_per_s),
                        Headline::rate_words(reported.reads_per_s),
                        reported.p99_words(),
                    ],
                };
                let verdict = || verdict(run).map(|verdict| verdict.words).unwrap_or_default();
                let row = [run.id.clone(), run.name.clone(), made, outcome, steps].into_iter().chain(figures);
                let row = row.chain(has_verdicts.then(verdict)).chain([pairs(&run.tags), run.target.clone()]);
                table.add_row(row.map(|cell| shown(&cell).into_owned()));
            }
            table.column_iter_mut().for_each(|column| {
                column.set_padding((0, 2));
            });
            let mut out = say::output();
            writeln!(out, "{}", table.trim_fmt())?;
            out.flush()?;
        }
    }
    for problem in &problems {
        say::note(problem);
    }
    Ok(Exit::Done)
}

/// A run in the list for programs.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Of a check, and of a run with limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
}

/// The verdict of a check, or of a run with limits: worked out from the run each time, as a report does it.
fn verdict(run: &Summary) -> Option<ListedVerdict> {
    let is_over = run.is_judged && run.outcome != Outcome::Unfinished;
    is_over.then(|| store::load(&run.path).ok().and_then(|run| ListedVerdict::of(&run)).unwrap_or_default())
}

fn show(arguments: &ShowArguments) -> Result<Exit, Failure> {
    let path = arguments.runs.store().find(&arguments.run)?;
    let run = store::load(&path)?;
    match arguments.format.format() {
        Format::Json => say::json(&run)?,
        Format::Text => {
            let mut out = say::output();
            write_run(&mut out, &run, &path)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

fn write_run(out: &mut impl Write, run: &Run, path: &Path) -> std::io::Result<()> {
    let clock = run.imported.as_ref().map(|imported| imported.clock);
    let ended = run.ended_at.map_or_else(|| "not known".to_owned(), |ended| instant_words(ended, clock));
    let facts = [
        ("id", run.id.clone()),
        ("name", run.name.clone()),
        ("kept in", path.display().to_string()),
        ("made by", format!("{} {}", run.tool.name, run.tool.version)),
        ("command", shell_command(&run.command)),
        ("began", instant_words(run.started_at, clock)),
        ("ended", ended),
        ("outcome", outcome_sentence(&run.outcome)),
        ("target", run.target.address.clone()),
        ("seed", run.seed.map_or_else(String::new, |seed| seed.to_string())),
        ("tags", pairs(&run.tags)),
        ("parameters", pairs(&run.parameters)),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{name:<11} {}", shown(value))?;
    }
    for note in &run.notes {
        writeln!(out, "{:<11} {}", "note", shown(note))?;
    }
    for step in &run.steps {
        let own = pairs(&step.parameters);
        let own = shown(&own);
        let sessions = if step.load.sessions == Some(1) { "session" } else { "sessions" };
        writeln!(
            out,
            "{:<11} {}: {} {sessions}, {}{}{own}",
            "step",
            shown(&step.label),
            step.load.sessions.map_or_else(|| "?".to_owned(), |sessions| sessions.to_string()),
            shown(&outcome_sentence(&step.outcome)),
            if own.is_empty() { "" } else { ", " },
        )?;
    }
    Ok(())
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn tag(arguments: &TagArguments) -> Result<Exit, Failure> {
    let tags = crate::plan::slob::tags_by_key(&arguments.tags)?;
    // All are found before the first is changed, so that a misspelt name changes nothing.
    for path in named_by(&arguments.runs.store(), &arguments.run)? {
        let tagged = if arguments.dry_run {
            "would tag"
        } else {
            store::tag(&path, &tags)?;
            "tagged"
        };
        say::line(format_args!("{tagged} `{}` with {}", path.display(), pairs(&tags)));
    }
    Ok(Exit::Done)
}

fn remove(arguments: &RemoveArguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    // All are found before the first goes, so that a misspelt name removes nothing.
    let mut paths: Vec<PathBuf> =
        arguments.names.iter().map(|word| named_by(&store, word)).collect::<Result<Vec<_>, _>>()?.concat();
    paths.sort();
    paths.dedup();
    for path in paths {
        if arguments.dry_run {
            say::line(format_args!("would remove `{}`", path.display()));
        } else {
            store::remove(&path)?;
            say::line(format_args!("removed `{}`", path.display()));
        }
    }
    Ok(Exit::Done)
}

/// The runs that a word means where they are changed: one, unless it is a tag, by which whoever writes it means all that have it.
fn named_by(store: &Store, word: &str) -> Result<Vec<PathBuf>, StoreError> {
    match store.find(word) {
        Err(StoreError::Ambiguous { .. }) if word.contains('=') => store.find_all(word),
        found => Ok(vec![found?]),
    }
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Unfinished => "unfinished",
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed { .. } => "failed",
    }
}

fn outcome_sentence(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { error } => format!("failed: {error}"),
        other => outcome_word(other).to_owned(),
    }
}

/// An instant with the clock that it was reported by.
fn instant_words(Timestamp(instant): Timestamp, clock: Option<Clock>) -> String {
    let clock = match clock {
        None | Some(Clock::Utc) => "UTC",
        Some(Clock::Wall) => "local",
        Some(Clock::FileTime) => "UTC (file)",
    };
    format!("{} {clock}", instant.strftime("%Y-%m-%d %H:%M:%S"))
}
