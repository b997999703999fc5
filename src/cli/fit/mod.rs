//! `plimsoll fit`.

mod seconds;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::arguments::{Format, FormatArgs, RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::expect::{RedundancyChoice, volumes_of};
use super::page_file::PageArgs;
use super::platforms::{MAX_LIST, PlatformsArgs, today};
use super::trend::load;
use super::{report as run_report, say};
use analysis::capacity::{Answer, Basis, Demand, Fit, MapFit, PlacedWindow, Platform, Share};
use analysis::trend::{Trend, Trends};
use analysis::{LatencyTarget, QuantileValue, limit_of_map};
use model::plain;
use model::platforms;
use model::platforms::{Asked, DEFAULT_HEADROOM, MEASURED_OF_PUBLISHED, Need, Prices, Sized, covered_by};
use model::record::{MapOf, Metric, Run};
use model::units::Bytes;
use report;
use report::fit::{doubt_advice, doubt_sentence, headrooms, sentence, verdict, word};
use report::html::Reported;
use report::ranking::Question;
use seconds::TraceArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll fit --demand 20261103-100000-awr --capacity last
  plimsoll fit --demand 202610 --capacity 20261120-120502 --at p95
  plimsoll fit --demand 202610 --capacity p30x2 --limit p99=10ms
  plimsoll fit --demand 202610 --capacity MAP -o hours.png  on a map
  plimsoll fit --demand crm erp --capacity p30x2            two databases
  plimsoll fit --demand 202610 --capacity p30x2 --json      for a program
  plimsoll fit --demand 202610 --platforms --data 4T        what to buy?
  plimsoll fit --demand 202610 --platforms --prices ours.toml
  plimsoll fit --trace monday.trace --platforms             a trace's seconds

The first compares one AWR report with the last run. The second takes October's reports, and what was enough for 95 \
% of the time. The exit code is 0 if the platform sustains the database, 1 if it does not, and 2 if the data cannot \
decide. Plimsoll does not extrapolate: beyond the largest measured level, capacity is `at least`. Between a level \
that met the target and one that missed it, capacity is unknown. The report then prints the command that decides it. \
`--platforms` measures nothing: it ranks platforms by the limits that clouds publish.";

/// Arguments of `plimsoll fit`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs that report what a database needs, such as imported AWR reports
    ///
    /// Each is an id, the beginning of ids, a name, a tag as in `db=prod`, a directory, or `last`.
    ///
    /// All matching runs are used. With names of several databases, all must fit together.
    #[arg(long, value_name = "RUN", required_unless_present = "trace", num_args = 1.., help_heading = "Question")]
    demand: Vec<String>,

    #[command(flatten)]
    trace: TraceArgs,

    /// Run that shows what a platform sustains: a sweep, a map, or an imported result with a latency
    ///
    /// It is one id, the beginning of an id, a name, tag, directory, or `last`.
    #[arg(
        long,
        value_name = "RUN",
        required_unless_present = "platforms",
        conflicts_with = "platforms",
        help_heading = "Question"
    )]
    capacity: Option<String>,

    #[command(flatten)]
    published: PublishedArgs,

    /// Moment of the demand to judge
    #[arg(long, value_name = "SHARE", value_enum, default_value_t, help_heading = "Question")]
    at: At,

    /// Latency limit, such as `p99=5ms` or `log file sync:p99.9=20ms` (repeatable) [default: p99=5ms]
    ///
    /// Each limit is judged, and the worst answer counts. A map has its own.
    #[arg(long = "limit", value_name = "[EVENT:]pQ=TIME", conflicts_with = "platforms", help_heading = "Question")]
    limits: Vec<LatencyTarget>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum At {
    /// The busiest window
    #[default]
    Peak,
    /// The load not exceeded in 99 % of the time
    P99,
    /// The load not exceeded in 95 % of the time
    P95,
    /// The load not exceeded in 90 % of the time
    P90,
}

impl At {
    fn share(self) -> Share {
        match self {
            Self::Peak => Share::Peak,
            Self::P99 => Share::Quantile(0.99),
            Self::P95 => Share::Quantile(0.95),
            Self::P90 => Share::Quantile(0.9),
        }
    }
}

/// One demand held against the platform within one limit.
struct Judged {
    fit: Fit,
    demand: Demand,
    platform: Platform,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.page.check(arguments.format.format())?;
    if arguments.capacity.is_none() {
        refuse_page(&arguments.page, None)?;
    }
    let each = |name: &String| Ok((name.clone(), load(std::slice::from_ref(name), &arguments.runs)?));
    let given = match arguments.trace.read()? {
        Some(Err(exit)) => return Ok(exit),
        Some(Ok(observed)) => {
            if arguments.capacity.is_none() {
                refuse_share(arguments.at)?;
                return seconds::rank(&observed, &arguments.trace, &arguments.published, arguments.format.format());
            }
            vec![(observed.name, vec![observed.run])]
        }
        None => arguments.demand.iter().map(each).collect::<Result<Vec<_>, Failure>>()?,
    };
    let databases = databases(&arguments.demand, &given)?;
    let Some(capacity) = &arguments.capacity else {
        let share = arguments.at.share();
        return run_fit_platforms(&arguments.published, &databases, share, arguments.format.format());
    };
    let (_, run) = Taken::default().load(&arguments.runs.store(), capacity)?;
    refuse_map_of_operations(&run)?;
    refuse_page(&arguments.page, Some(&run))?;
    let limits = match arguments.limits.as_slice() {
        // A map has the limit that it was made by.
        [] => vec![limit_of_map(&run).unwrap_or_default()],
        asked => asked.to_vec(),
    };
    let judged: Vec<Judged> =
        limits.iter().flat_map(|limit| judge(&databases, arguments.at.share(), &run, limit)).collect();
    let badness = |judged: &&Judged| judged.fit.answer.badness();
    // The first of those that are equally bad.
    let Some(worst) = judged.iter().rev().max_by_key(badness) else {
        return Err(Failure::new("no demand was given"));
    };
    if worst.platform.levels.is_empty() {
        let failure = Failure::new(format_args!("run `{}` has no level that was measured to its end", run.id));
        return Err(failure.with_hint("name a run with load levels: `--capacity RUN`".to_owned()));
    }
    match arguments.format.format() {
        Format::Json => say::json(&documents(worst, &judged))?,
        Format::Text if !arguments.page.has_text() => {}
        Format::Text => {
            let mut out = say::output();
            if judged.len() > 1 {
                let sentences: Vec<String> = judged.iter().map(Judged::sentence).collect();
                report::fit::several(&mut out, &sentences, say::width())?;
            }
            report::fit::fit(&mut out, &worst.fit, &worst.demand, &worst.platform, say::width())?;
            out.flush()?;
        }
    }
    if arguments.page.is_wanted() {
        write_page(&arguments.page, &run, &judged, worst)?;
    }
    Ok(match worst.fit.answer {
        Answer::Carries => Exit::Done,
        Answer::DoesNot => Exit::NotMet,
        Answer::Unknown(_) => Exit::CouldNot,
    })
}

/// What a production reports are requests to storage.
fn refuse_map_of_operations(run: &Run) -> Result<(), Failure> {
    if run.load.map().is_none_or(|map| map.of == MapOf::Requests) {
        return Ok(());
    }
    let failure = Failure::new(format_args!(
        "--capacity: run `{}` is a map of a database's operations, and a demand counts requests to storage",
        run.id
    ));
    Err(failure.with_hint("make a map of storage with `plimsoll io map`, or name another run".to_owned()))
}

/// Only a map is drawn with a demand on it.
fn refuse_page(page: &PageArgs, capacity: Option<&Run>) -> Result<(), Failure> {
    if !page.is_wanted() || capacity.is_some_and(|run| run.load.map().is_some()) {
        return Ok(());
    }
    let failure = Failure::new("`--output`: only a map is drawn with a demand on it");
    let hint = "make a map with `plimsoll io map`, or draw the run alone: `plimsoll report RUN -o FILE`";
    Err(failure.with_hint(hint.to_owned()))
}

/// Draws the windows of all databases on the map.
fn write_page(page: &PageArgs, run: &Run, judged: &[Judged], worst: &Judged) -> Result<(), Failure> {
    // Each limit has the same demands.
    let of_limit = judged.iter().filter(|judged| judged.platform.target == worst.platform.target);
    let windows: Vec<(f64, f64)> = of_limit.flat_map(|judged| judged.demand.points()).collect();
    if windows.is_empty() {
        say::note("no window reports both reads and writes, so the map is drawn without them");
    }
    let findings = run_report::findings(run, &[]);
    let reported = [Reported { run, findings: &findings, windows: &windows }];
    page.write(|| run_report::page(&reported), || run_report::picture(&reported))
}

/// A credit that lasts over 95 % of the seconds is not one that lasts.
fn refuse_share(at: At) -> Result<(), Failure> {
    if matches!(at, At::Peak) {
        return Ok(());
    }
    let failure = Failure::new("`--at` with a trace and `--platforms`: every second of the trace is judged");
    Err(failure.with_hint("leave out `--at`, or compare with a measured run: `--capacity RUN`".to_owned()))
}

impl Judged {
    fn sentence(&self) -> String {
        sentence(&self.fit, &self.demand, &self.platform)
    }
}

/// Each database by itself, and several also together: what one of them needs alone is the least of what all need.
fn judge(databases: &[(Trend, Vec<&Run>)], share: Share, run: &Run, limit: &LatencyTarget) -> Vec<Judged> {
    let platform = Platform::of(run, limit);
    let mut demands: Vec<Demand> =
        databases.iter().map(|(trend, runs)| Demand::of(trend, runs, share, limit)).collect();
    demands.extend(Demand::together(&demands));
    let held = |demand: Demand| {
        let fit = Fit::of(&demand, &platform, run, limit);
        Judged { fit, demand, platform: platform.clone() }
    };
    demands.into_iter().map(held).collect()
}

/// The databases whose demand is asked for, each with its runs. A name that takes runs of several databases is an error: others in
/// the same month, the sweep itself among them, are rarely meant.
fn databases<'a>(names: &[String], given: &'a [(String, Vec<Run>)]) -> Result<Vec<(Trend, Vec<&'a Run>)>, Failure> {
    for (name, runs) in given {
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>()).trends;
        if let [_, _, ..] = trends.as_slice() {
            let databases: Vec<String> = trends.iter().map(|trend| format!("`{}`", trend.database.name)).collect();
            let failure = Failure::new(format_args!(
                "the runs of `--demand {name}` are of more than one database: {}",
                databases.join(", ")
            ));
            let hint = "name runs of one database, and of one instance or of all instances together. To fit several \
                 databases at once, give a name for each";
            return Err(failure.with_hint(hint.to_owned()));
        }
    }
    let runs: Vec<&Run> = given.iter().flat_map(|(_, runs)| runs).collect();
    let trends = Trends::of(&runs).trends;
    if trends.is_empty() {
        let failure = Failure::new("none of the runs of `--demand` reports both when it was and for how long");
        return Err(failure.with_hint(format!("`plimsoll trend {}` says why each is left out", names.join(" "))));
    }
    let of_trend = |trend: Trend| {
        let is_in = |run: &&&Run| trend.windows.iter().any(|window| window.run == run.id);
        let its_runs = runs.iter().filter(is_in).copied().collect();
        (trend, its_runs)
    };
    Ok(trends.into_iter().map(of_trend).collect())
}

/// The document of the worst answer; of several, all of them stand in it too.
fn documents(worst: &Judged, judged: &[Judged]) -> Value {
    let one = |judged: &Judged| document(&judged.fit, &judged.demand, &judged.platform);
    let mut document = one(worst);
    if judged.len() > 1 {
        document["answers"] = judged.iter().map(one).collect();
    }
    document
}

fn in_ms(value: QuantileValue) -> f64 {
    value.ns.0 as f64 / 1e6
}

fn basis(basis: &Basis) -> &'static str {
    match basis {
        Basis::Level => "level",
        Basis::Windows => "windows",
        Basis::Map => "map",
        Basis::Trivial(_) => "trivial",
    }
}

/// Windows of a demand that a document lists at most.
const LISTED: usize = 100;

/// The windows of a demand on a map: how many, and the first of them.
fn windows_on(map: &MapFit) -> Value {
    let [inside, outside, unknown] = map.counts();
    let one = |window: &PlacedWindow| {
        json!({
            "from": window.from.map(|from| from.to_string()),
            "reads_per_s": window.rates.reads,
            "writes_per_s": window.rates.writes,
            "megabytes_per_s": window.rates.megabytes,
            "place": window.place,
            "why_not_known": window.not_placed,
        })
    };
    json!({
        "inside": inside,
        "outside": outside,
        "unknown": unknown,
        "first": map.windows.iter().take(LISTED).map(one).collect::<Vec<_>>(),
    })
}

fn document(fit: &Fit, demand: &Demand, platform: &Platform) -> Value {
    let compared = headrooms(fit).map(|(compared, headroom)| {
        json!({
            "figure": compared.respect.key(),
            "demand": compared.demand,
            "capacity": compared.capacity,
            "headroom": headroom,
            "decisive": compared.is_decisive,
        })
    });
    let level = |level: &analysis::capacity::Level| {
        json!({
            "level": level.label,
            "seconds": level.seconds,
            "reads_per_s": level.rates.reads,
            "writes_per_s": level.rates.writes,
            "megabytes_per_s": level.rates.megabytes,
            "mean_ms": level.mean_ms,
            "quantile_ms": level.quantile.map(in_ms),
            "quantile_is_bound": level.quantile.map(|value| value.is_bound),
            "target": verdict(level.verdict),
        })
    };
    let there = fit.latency.as_ref().map(|there| {
        json!({
            "mean_ms": there.mean_ms,
            "quantile_ms": there.quantile.map(in_ms),
            "quantile_is_bound": there.quantile.map(|value| value.is_bound),
            "levels": there.levels,
            "below_least_level": there.is_below,
        })
    });
    let own = demand.window.as_ref().map(|window| {
        json!({
            "run": window.run,
            "from": window.from.to_string(),
            "to": window.to.to_string(),
            "judged": window.subject,
            "mean_ms": window.mean_ms,
            "quantile_at_most_ms": window.quantile.map(in_ms),
        })
    });
    let doubts =
        fit.doubts.iter().map(|doubt| json!({ "sentence": doubt_sentence(doubt), "advice": doubt_advice(doubt) }));
    json!({
        "format": 1,
        "answer": word(fit.answer),
        "sentence": sentence(fit, demand, platform),
        "database": demand.database,
        "at": demand.share.name(),
        "windows": demand.windows,
        "covered_share": demand.covered_share,
        "target": platform.target.to_string(),
        "basis": basis(&fit.basis),
        "command": fit.command,
        "compared": compared.collect::<Vec<_>>(),
        "binding": fit.binding.map(Metric::key),
        "headroom": fit.headroom(),
        "at_least": fit.is_at_least,
        "level": fit.level,
        "levels": platform.levels.iter().map(level).collect::<Vec<_>>(),
        "map": fit.map.as_ref().map(windows_on),
        "latency": { "platform": there, "database": own },
        "doubts": doubts.collect::<Vec<_>>(),
    })
}

/// What makes a capacity of published limits.
#[derive(Debug, Args)]
struct PublishedArgs {
    /// Rank machines and volumes of the catalogue, instead of judging a measured run
    ///
    /// It shows which sustain the demand by the limits that clouds publish, and what stops the others.
    #[arg(long, help_heading = "Published limits")]
    platforms: bool,

    /// Factor by which published limits must exceed the demand
    #[arg(long, value_name = "TIMES", default_value_t = DEFAULT_HEADROOM, requires = "platforms", help_heading = "Published limits")]
    headroom: f64,

    /// Size of the data and of all that must fit next to it [default: not checked]
    ///
    /// Plimsoll adds the copies for redundancy.
    #[arg(long, value_name = "SIZE", requires = "platforms", help_heading = "Published limits")]
    data: Option<Bytes>,

    /// CPUs of all nodes together [default: those the host kept busy, times --headroom, if known]
    #[arg(long, value_name = "N", requires = "platforms", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Published limits")]
    cpus: Option<u32>,

    /// Memory of all nodes together [default: what the database uses, if known]
    #[arg(long, value_name = "SIZE", requires = "platforms", help_heading = "Published limits")]
    memory: Option<Bytes>,

    /// Allow data on local storage, which is lost when the machine stops
    #[arg(long, requires = "platforms", help_heading = "Published limits")]
    ephemeral: bool,

    /// Number of nodes that share the load
    #[arg(long, value_name = "N", default_value_t = 1, requires = "platforms", value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = "Published limits")]
    nodes: u32,

    /// Copies of each write: one, two or three
    #[arg(long, value_enum, default_value_t, requires = "platforms", help_heading = "Published limits")]
    redundancy: RedundancyChoice,

    /// Your price list, to rank by price
    ///
    /// Plimsoll has no prices of its own; docs/recipes/azure-rac.md shows the form.
    #[arg(long, value_name = "FILE", requires = "platforms", help_heading = "Published limits")]
    prices: Option<PathBuf>,

    /// Show all platforms instead of the first ones
    #[arg(long, requires = "platforms", help_heading = "Published limits")]
    all: bool,

    #[command(flatten)]
    files: PlatformsArgs,
}

impl PublishedArgs {
    /// The catalogue and the price list, once the headroom is one.
    fn read(&self) -> Result<(platforms::Catalogue, Option<Prices>), Failure> {
        if !(self.headroom.is_finite() && (1.0..=100.0).contains(&self.headroom)) {
            let failure = Failure::new(format_args!("`--headroom {}` is none", self.headroom));
            return Err(failure.with_hint("it is 1 to 100: how many times the demand must be allowed".to_owned()));
        }
        let catalogue = self.files.catalogue()?;
        let prices = match &self.prices {
            None => None,
            Some(file) => {
                let text = plain::read_named_text(file, MAX_LIST).map_err(|problem| {
                    let failure = Failure::new(format_args!("cannot read `{}`: {problem}", file.display()));
                    failure.with_hint("docs/recipes/azure-rac.md shows a list of prices".to_owned())
                })?;
                let read = Prices::read(&file.display().to_string(), &text, &catalogue);
                Some(read.map_err(|problem| Failure::new(&problem).with_hint(problem.hint))?)
            }
        };
        Ok((catalogue, prices))
    }
}

/// GiB that the volumes must hold with all copies; 0 where that is not known.
fn gib_needed(arguments: &PublishedArgs, redundancy: platforms::Redundancy) -> f64 {
    arguments.data.map_or(0.0, |data| data.0 as f64 / f64::from(1 << 30)) * redundancy.copies()
}

/// Ranks the catalogue by what `databases` ask for together.
fn run_fit_platforms(
    arguments: &PublishedArgs,
    databases: &[(Trend, Vec<&Run>)],
    share: Share,
    format: Format,
) -> Result<Exit, Failure> {
    let (catalogue, prices) = arguments.read()?;
    let target = LatencyTarget::default();
    let demands: Vec<Demand> = databases.iter().map(|(trend, runs)| Demand::of(trend, runs, share, &target)).collect();
    let demand = Demand::together(&demands).or_else(|| demands.into_iter().next());
    let demand = demand.ok_or_else(|| Failure::new("no demand was given"))?;
    let redundancy: platforms::Redundancy = arguments.redundancy.into();
    let need = need(&demand, arguments, redundancy)?;
    let ranking = platforms::rank(&catalogue, &need, (arguments.nodes, redundancy), prices.as_ref());
    let question = Question {
        database: &demand.database,
        share,
        rates: &demand.rates,
        headroom: arguments.headroom,
        need: &need,
        is_given: (arguments.cpus.is_some(), arguments.memory.is_some()),
        today: today(),
        unit: prices.as_ref().map(|prices| prices.unit.as_str()),
        recorded: None,
        hit_share: None,
        without_hits: None,
    };
    match format {
        Format::Json => say::json(&document_fit_platforms(&question, &ranking))?,
        Format::Text => {
            let mut out = say::output();
            report::ranking::ranking(&mut out, &question, &ranking, arguments.all, say::width())?;
            out.flush()?;
        }
    }
    Ok(if ranking.carry.is_empty() { Exit::NotMet } else { Exit::Done })
}

/// What the platforms must allow.
fn need(demand: &Demand, arguments: &PublishedArgs, redundancy: platforms::Redundancy) -> Result<Need, Failure> {
    let rates = &demand.rates;
    let missing = [Metric::Reads, Metric::Writes, Metric::Megabytes].into_iter().find(|it| rates.of(*it).is_none());
    if let Some(missing) = missing {
        let failure =
            Failure::new(format_args!("how many {} `{}` needs is not reported", missing.heading(), demand.database));
        return Err(
            failure.with_hint("name runs that report reads, writes and their bytes, such as AWR reports".to_owned())
        );
    }
    let (reads, writes) = (rates.reads.unwrap_or(0.0), rates.writes.unwrap_or(0.0));
    let requests = reads + writes;
    if requests <= 0.0 {
        let failure = Failure::new(format_args!("`{}` asks for no requests", demand.database));
        return Err(failure.with_hint("name runs in which it did something".to_owned()));
    }
    let asked = Asked {
        read_share: reads / requests,
        block_bytes: rates.megabytes.unwrap_or(0.0) * 1e6 / requests,
        hit_share: 0.0,
    };
    let redo_bytes = rates.redo.unwrap_or(0.0) * 1e6 / requests;
    let in_gib = |bytes: f64| bytes / f64::from(1 << 30);
    Ok(Need {
        asked,
        per_s: requests * arguments.headroom,
        gib: gib_needed(arguments, redundancy),
        redo_bytes,
        processors: arguments.cpus.map(f64::from).or(demand.processors.map(|busy| busy * arguments.headroom)),
        memory_gib: arguments.memory.map(|it| it.0 as f64).or(demand.memory_bytes).map(in_gib),
        ephemeral: arguments.ephemeral,
    })
}

fn document_fit_platforms(question: &Question<'_>, ranking: &platforms::Ranking) -> Value {
    let one = |sized: &Sized| {
        let volumes = volumes_of(&sized.platform);
        json!({
            "machine": sized.platform.machine.name,
            "cloud": sized.platform.machine.cloud,
            "nodes": sized.platform.nodes,
            "volumes": volumes,
            "host_cache": sized.platform.cache == platforms::Cache::Read,
            "cache_hit_share": question.cached_share(&sized.platform),
            "headroom_without_hits": question.headroom_without_hits(&sized.platform),
            "requests_per_s": sized.per_s,
            "headroom": question.headroom_of(sized),
            "binds": sized.whose,
            "price": sized.price,
            "processors": sized.platform.machine.processors,
            "memory_gib": sized.platform.machine.memory_gib,
            "cautions": sized.platform.cautions(question.today),
        })
    };
    let left_out = ranking.left_out.iter().map(|(what, why)| json!({ "platform": what, "why": why }));
    json!({
        "format": 1,
        "database": question.database,
        "at": question.share.name(),
        "headroom": question.headroom,
        "headroom_covers": { "measured_platforms": MEASURED_OF_PUBLISHED.len(), "of_these": covered_by(question.headroom) },
        "not_in_the_catalogue": ranking.gaps,
        "need": {
            "requests_per_s": question.need.per_s,
            "read_share": question.need.asked.read_share,
            "request_bytes": question.need.asked.block_bytes,
            "gib": question.need.gib,
            "processors": question.need.processors,
            "memory_gib": question.need.memory_gib,
            "ephemeral": question.need.ephemeral,
            "redo_megabytes_per_s": question.rates.redo.map(|redo| redo * question.headroom),
        },
        "price_unit": question.unit,
        "carry": ranking.carry.iter().map(one).collect::<Vec<_>>(),
        "fail": ranking.fail.iter().map(one).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::parsed;
    use model::record::sample;
    use model::record::sample::windows::{Hour, QUICK, report};
    use model::record::store::Store;

    fn exit_of(store: &Store, words: &[&str]) -> Result<Exit, Failure> {
        let runs = store.path().to_str().unwrap();
        run(&parsed(&[words, &["--json", "--runs", runs]].concat()))
    }

    #[test]
    fn the_exit_code_is_the_answer() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let sweep = sample::sweep(3);
        store.save(&sweep).unwrap();
        let demand = |at, reads_per_s, writes_per_s| {
            let run = report(Hour { at, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK });
            store.save(&run).unwrap();
            run.id
        };
        let (carried, beyond, mixed) = (demand(1, 20_000, 0), demand(2, 50_000, 0), demand(3, 20_000, 5_000));
        for (id, exit) in [(&carried, Exit::Done), (&beyond, Exit::NotMet), (&mixed, Exit::CouldNot)] {
            assert_eq!(exit_of(&store, &["--demand", id, "--capacity", &sweep.id]).unwrap(), exit, "{id}");
        }
        let strict = ["--demand", &carried, "--capacity", &sweep.id, "--limit", "p99=1us", "--at", "p95"];
        assert_eq!(exit_of(&store, &strict).unwrap(), Exit::NotMet);
        let two = ["--demand", "2026", "--capacity", &sweep.id];
        assert!(
            matches!(exit_of(&store, &two), Err(Failure::Reported(reported)) if reported.message.contains("more than one database"))
        );
    }

    #[test]
    fn of_several_limits_and_databases_the_worst_answer_counts() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let sweep = sample::sweep(3);
        store.save(&sweep).unwrap();
        let demand = |at, database: &str, reads_per_s| {
            let mut run = report(Hour { at, minutes: 60, reads_per_s, writes_per_s: 0, within_ms: QUICK });
            database.clone_into(&mut run.target.address);
            run.target.facts.database.id = None;
            store.save(&run).unwrap();
            run.id
        };
        let ask = |words: &[&str]| exit_of(&store, &[words, &["--capacity", &sweep.id]].concat()).unwrap();
        let (one, other) = (demand(1, "crm", 22_000), demand(2, "erp", 18_200));
        assert_eq!(ask(&["--demand", &one, "--limit", "p99=5ms", "--limit", "p90=5ms"]), Exit::Done);
        assert_eq!(ask(&["--demand", &one, "--limit", "p99=5ms", "--limit", "p99=1us"]), Exit::NotMet);
        assert_eq!(ask(&["--demand", &other]), Exit::Done);
        // Each alone is carried, and what was measured is too little for both at once.
        assert_eq!(ask(&["--demand", &one, &other]), Exit::CouldNot);
        let large = demand(3, "dwh", 50_000);
        assert_eq!(ask(&["--demand", &one, &large]), Exit::NotMet, "one alone is too much");
    }
}
