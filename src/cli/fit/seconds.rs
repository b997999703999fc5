//! `plimsoll fit --trace`: the demand is what a trace asked of storage, second by second.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{PublishedArgs, document_fit_platforms, gib_needed};
use crate::cli::arguments::Format;
use crate::cli::exit::{Exit, Failure};
use crate::cli::expect::CacheChoice;
use crate::cli::live::Verbosity;
use crate::cli::platforms::today;
use crate::cli::say;
use crate::cli::trace::{MEAN_HITS, check_judged, left_over, names, read_all};
use crate::observed;
use ::trace::profile::{Profile, ProfileOptions, Profiler};
use analysis::capacity::{Rates, Share};
use model::platforms::{self, Cache, Combination, Need, Seconds};
use model::record::Run;
use model::units::{Nanos, shell_command, shell_word};
use report::ranking::{Question, Recorded};

/// A trace in the place of `--demand`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// Trace of what a system asks of its storage, of any format that `plimsoll trace formats` lists
    ///
    /// Each second of it counts. With a sweep as `--capacity`, its busiest second is the demand.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with = "demand",
        help_heading = "Question"
    )]
    pub(super) trace: Vec<PathBuf>,

    /// Host cache in front of the volumes
    ///
    /// The share of the reads that it answers is the trace's own, at the size of one machine's cache.
    ///
    /// By default it is used where fewer volumes are enough with it.
    #[arg(long, value_enum, requires = "trace", requires = "platforms", help_heading = "Published limits")]
    host_cache: Option<CacheChoice>,
}

/// A trace that was read.
pub(super) struct Observed {
    profile: Profile,
    /// The trace as a run.
    pub(super) run: Run,
    /// Its file, for messages.
    pub(super) name: String,
    /// Its files, as they are typed.
    files: Vec<String>,
}

impl TraceArgs {
    /// The trace, read to its end; absent where none was named.
    pub(super) fn read(&self) -> Result<Option<Result<Observed, Exit>>, Failure> {
        let Some(first) = self.trace.first() else { return Ok(None) };
        let mut profiler = Profiler::new(ProfileOptions::default());
        let read = read_all(&self.trace, Verbosity::Normal, &mut |batch, _| {
            batch.iter().for_each(|request| profiler.add(request));
            Ok(())
        })?;
        let source = match read {
            Ok(source) => source,
            Err(exit) => return Ok(Some(Err(exit))),
        };
        let (header, end) = (source.header(), source.end());
        let profile = profiler.finish(header, &end);
        observed::notes(&end, &profile).iter().for_each(say::note);
        let name = names(&self.trace);
        let run = observed::run(first, header, &end, &profile);
        let run = run.filter(|_| profile.counted.read.requests + profile.counted.write.requests > 0);
        let run = run.ok_or_else(|| {
            let failure = Failure::new(format_args!("`{name}` has neither reads nor writes"));
            failure.with_hint(format!(
                "`plimsoll trace show {}` shows what it has",
                shell_word(&first.display().to_string())
            ))
        })?;
        check_judged(&name, header, &profile)?;
        let files = self.trace.iter().map(|path| path.display().to_string()).collect();
        Ok(Some(Ok(Observed { profile, run, name, files })))
    }
}

/// Ranks the catalogue by the seconds of a trace.
pub(super) fn rank(
    observed: &Observed,
    arguments: &TraceArgs,
    published: &PublishedArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let (catalogue, prices) = published.read()?;
    let redundancy: platforms::Redundancy = published.redundancy.into();
    let Observed { profile, name, .. } = observed;
    let recorded = observed::recorded(profile);
    let busiest =
        recorded.busiest().ok_or_else(|| Failure::new(format_args!("`{name}` has no second with a request")))?;
    let need = Need {
        asked: busiest.asked(0.0),
        per_s: busiest.per_s() * published.headroom,
        gib: gib_needed(published, redundancy),
        // A trace has the writes of redo among its own.
        redo_bytes: 0.0,
        processors: published.cpus.map(f64::from),
        memory_gib: published.memory.map(|memory| memory.0 as f64 / f64::from(1 << 30)),
        ephemeral: published.ephemeral,
    };
    let cache = arguments.host_cache.map(Cache::from);
    if cache == Some(Cache::Read) && profile.counted.read.requests == 0 {
        let failure = Failure::new(format_args!("`{name}` has no reads that a host cache could answer"));
        return Err(failure.with_hint("leave out `--host-cache`".to_owned()));
    }
    let hit_share = |gib: f64| observed::hit_share(profile, gib);
    let seconds = Seconds { recorded: &recorded, headroom: published.headroom, hit_share: &hit_share, cache };
    let nodes = (published.nodes, redundancy);
    let ranking = platforms::rank_recorded(&catalogue, &need, nodes, prices.as_ref(), seconds);
    let interval = Nanos(profile.series.interval_ns);
    // `trace show` judges one machine with one copy.
    let first = ranking.carry.first().or(ranking.fail.first());
    let first = first.filter(|_| published.nodes == 1 && redundancy.copies() <= 1.0);
    let next = first.map(|sized| next(observed, &sized.platform, published));
    let without_hits = |platform: &Combination| recorded.times(platform, 0.0).map(|(times, _)| times);
    let rates = Rates {
        reads: Some(busiest.reads_per_s),
        writes: Some(busiest.writes_per_s),
        io: Some(busiest.per_s()),
        megabytes: Some(busiest.bytes_per_s() / 1e6),
        redo: Some(0.0),
        commits: None,
    };
    let question = Question {
        database: name,
        share: Share::Peak,
        rates: &rates,
        headroom: published.headroom,
        need: &need,
        is_given: (published.cpus.is_some(), published.memory.is_some()),
        today: today(),
        unit: prices.as_ref().map(|prices| prices.unit.as_str()),
        recorded: Some(Recorded {
            intervals: recorded.intervals(),
            interval: interval.to_string(),
            next,
            remarks: left_over(profile).into_iter().collect(),
            of_hits: MEAN_HITS,
        }),
        hit_share: Some(&hit_share),
        without_hits: Some(&without_hits),
    };
    match format {
        Format::Json => {
            let mut document = document_fit_platforms(&question, &ranking);
            document["trace"] = serde_json::json!({
                "intervals": recorded.intervals(),
                "interval_ns": profile.series.interval_ns,
                "left_over_ns": observed::left_over_ns(profile),
                "next": question.recorded.as_ref().and_then(|recorded| recorded.next.as_deref()),
            });
            say::json(&document)?;
        }
        Format::Text => {
            let mut out = say::output();
            report::ranking::ranking(&mut out, &question, &ranking, published.all, say::width())?;
            out.flush()?;
        }
    }
    Ok(if ranking.carry.is_empty() { Exit::NotMet } else { Exit::Done })
}

/// The command that shows when the limits of a platform are exceeded.
fn next(observed: &Observed, platform: &Combination, published: &PublishedArgs) -> String {
    let volumes = platform.volumes.as_ref().map_or_else(|| "local".to_owned(), platforms::Volumes::typed);
    let mut words = vec!["plimsoll".to_owned(), "trace".to_owned(), "show".to_owned()];
    words.extend(observed.files.iter().cloned());
    words.extend(["--machine".to_owned(), platform.machine.name.clone(), "--volume".to_owned(), volumes]);
    if platform.cache == Cache::Read {
        words.extend(["--host-cache".to_owned(), "read".to_owned()]);
    }
    words.extend(published.files.words());
    shell_command(words)
}
