//! Which platforms of the catalogue carry a database, for a terminal.

use std::io::{self, Write};

use jiff::civil::Date;

use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::platforms::{memory, not_in_the_catalogue};
use super::text::NARROWEST;
use super::words::UNKNOWN;
use analysis::capacity::{Rates, Share};
use model::platforms::{Cache, Combination, MEASURED_OF_PUBLISHED, Need, Ranking, Sized, State, Volumes, covered_by};
use model::units::{group_thousands, percent};

/// How many of those that carry it, and of those that do not, are shown where not all are asked for.
const SHOWN: usize = 15;

const LEGEND: &str = "By limits that clouds publish, in the long run: bursts are not counted. The load is spread evenly, the host's cache cold; \
                      what is measured is less. Latency is not compared: measure the one that you choose, and ask with `--capacity`. `*`: some \
                      limits of machine or volumes are from a secondary copy; `!`: some are older than a year, so look before you buy.";

const TRACE_LEGEND: &str = "By limits that clouds publish. `allows` is of the busiest interval, `times` of all. `cached` is the share of the \
                            reads that one machine's host cache answers, which begins empty. Latency is not compared: replay the trace \
                            on the one that you choose. `*`: some limits of machine or volumes are from a secondary copy; `!`: some are \
                            older than a year, so look before you buy.";

/// The headroom of a platform, where it is known.
pub type HeadroomOf<'a> = dyn Fn(&Combination) -> Option<f64> + 'a;

/// What was asked.
pub struct Question<'a> {
    /// Who.
    pub database: &'a str,
    /// How much of its demand.
    pub share: Share,
    /// What it asks for.
    pub rates: &'a Rates,
    /// How many times that.
    pub headroom: f64,
    /// What the platforms must allow by that.
    pub need: &'a Need,
    /// Whether processors and memory were asked for; else they are what was seen to be used.
    pub is_given: (bool, bool),
    /// What prices are in; absent where there are none.
    pub unit: Option<&'a str>,
    /// The day on which figures are old or not.
    pub today: Date,
    /// The trace whose every interval is judged; absent where one rate is.
    pub recorded: Option<Recorded>,
    /// Which share of the reads a host cache of so many GiB answers, where that is known.
    pub hit_share: Option<&'a dyn Fn(f64) -> Option<f64>>,
    /// How many times the demand a platform allows whose host cache answers nothing, where that is known.
    pub without_hits: Option<&'a HeadroomOf<'a>>,
}

/// A trace that is the demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// How many intervals it has.
    pub intervals: usize,
    /// How long each is, in words.
    pub interval: String,
    /// The command that shows what of the first platform is exceeded and when.
    pub next: Option<String>,
    /// What else is to be said of how it is judged.
    pub remarks: Vec<String>,
    /// What is to be said of the hit share, where a host cache is used.
    pub of_hits: &'static str,
}

impl Question<'_> {
    /// How many times the demand a platform allows.
    pub fn headroom_of(&self, sized: &Sized) -> f64 {
        sized.per_s / (self.need.per_s / self.headroom)
    }

    /// The share of the reads that the host cache of a platform answers; absent without one, and where it is not known.
    pub fn cached_share(&self, platform: &Combination) -> Option<f64> {
        let gib = platform.machine.cache_gib.filter(|_| platform.cache == Cache::Read)?;
        self.hit_share?(gib)
    }

    /// How many times the demand a platform allows if its host cache answers nothing; absent without one, and where it is not known.
    pub fn headroom_without_hits(&self, platform: &Combination) -> Option<f64> {
        self.cached_share(platform)?;
        self.without_hits?(platform)
    }

    /// Whether a platform sustains the demand by its host cache alone.
    fn is_by_cache(&self, sized: &Sized) -> bool {
        let without = self.headroom_without_hits(&sized.platform);
        self.headroom_of(sized) >= self.headroom && without.is_some_and(|times| times < self.headroom)
    }
}

/// Writes the ranking for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn ranking(
    out: &mut impl Write,
    question: &Question<'_>,
    ranking: &Ranking,
    shows_all: bool,
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    let need = question.need;
    paper.remark(&format!(
        "`{}` asks for {} requests/s of {:.1} KB at {}, {} % of them reads; {} times that are {} requests/s, {} MB/s.",
        question.database,
        group_thousands(need.per_s / question.headroom),
        need.asked.block_bytes / 1e3,
        match (&question.recorded, question.share) {
            (Some(recorded), _) => format!("its busiest {}", recorded.interval),
            (None, Share::Peak) => "its peak".to_owned(),
            (None, Share::Quantile(_)) => question.share.name(),
        },
        percent(need.asked.read_share).trim_end_matches(".0"),
        question.headroom,
        group_thousands(need.per_s.ceil()),
        group_thousands((need.per_s * need.asked.block_bytes / 1e6).ceil())
    ))?;
    if let Some(recorded) = &question.recorded {
        paper.remark(&format!(
            "Every one of its {} intervals of {} is judged, with burst credits that are full at its beginning.",
            group_thousands(recorded.intervals as f64),
            recorded.interval
        ))?;
        recorded.remarks.iter().try_for_each(|remark| paper.remark(&sentence(remark)))?;
    }
    match question.rates.redo {
        Some(redo) if redo > 0.0 => paper.remark(&format!(
            "Its redo, {redo:.1} MB/s, comes on top of that: give it volumes of its own, which are not sized here. It passes the machines, \
             and {:.1} MB/s for each copy are counted among what they send to volumes; how many requests it makes is not.",
            redo * question.headroom
        ))?,
        Some(_) => {}
        None => paper.remark("How much redo it writes is not reported: nothing of it is counted.")?,
    }
    paper.remark(&compared(question))?;
    paper.remark(&format!(
        "Of {} platforms that were measured in the first seed, {} reached what {} times leave of the published limits.",
        MEASURED_OF_PUBLISHED.len(),
        covered_by(question.headroom),
        question.headroom
    ))?;
    let all = ranking.carry.len() + ranking.fail.len();
    paper.remark(&match ranking.carry.len() {
        0 => format!("None of {all} platforms allows that."),
        carry => format!("{carry} of {all} platforms allow that."),
    })?;
    let most = if shows_all { usize::MAX } else { SHOWN };
    let by = if question.unit.is_some() { "the cheapest first" } else { "the fewest processors first" };
    part(&mut paper, &format!("They sustain it, {by}"), question, &ranking.carry, most)?;
    if let Some(first) = ranking.carry.first() {
        first.platform.cautions(question.today).iter().try_for_each(|caution| paper.remark(caution))?;
    }
    if question.unit.is_none() && !ranking.carry.is_empty() {
        paper
            .remark("Without `--prices` the fewest and smallest volumes come first, which may not be the cheapest.")?;
    }
    if need.gib == 0.0 {
        paper.remark("The size of the data is unknown: add `--data`.")?;
    }
    // Of each machine the one that comes nearest.
    let mut seen: Vec<&str> = Vec::new();
    let nearest = ranking.fail.iter().filter(|sized| {
        let machine = sized.platform.machine.name.as_str();
        let carries = ranking.carry.iter().any(|carry| carry.platform.machine.name == machine);
        let is_first = !carries && !seen.contains(&machine);
        if is_first {
            seen.push(machine);
        }
        shows_all || is_first
    });
    let fail: Vec<Sized> = nearest.cloned().collect();
    part(&mut paper, "They do not, and what binds", question, &fail, most)?;
    if !ranking.left_out.is_empty() {
        let left_out = ranking.left_out.len();
        paper.aside(&format!(
            "{left_out} were left out; `--json` says why for each. Reasons: too few CPUs, too little memory, not attachable, ephemeral \
             (`--ephemeral`), for large requests only, retired, or without published limits."
        ))?;
    }
    if !ranking.gaps.is_empty() {
        paper.remark(&not_in_the_catalogue(&ranking.gaps))?;
    }
    match &question.recorded {
        None => paper.aside(LEGEND),
        Some(recorded) => {
            let has_cache = |sized: &Sized| sized.platform.cache == Cache::Read;
            if ranking.carry.iter().chain(&fail).any(has_cache) {
                paper.remark(&sentence(recorded.of_hits))?;
            }
            if ranking.carry.iter().any(|sized| question.is_by_cache(sized)) {
                paper
                    .remark("`~`: by the host cache alone; if it answers nothing, some interval exceeds the limits.")?;
            }
            paper.aside(TRACE_LEGEND)?;
            recorded.next.iter().try_for_each(|next| paper.aside(&format!("next: {next}")))
        }
    }
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// Whether machines are compared by processors and memory.
fn compared(question: &Question<'_>) -> String {
    let seen = |is_given: bool| if is_given { "" } else { " (as was seen in use)" };
    let processors = match question.need.processors {
        Some(processors) => format!("{:.1} processors{}", processors, seen(question.is_given.0)),
        None => "any number of processors, since nothing reports how many are busy (`--cpus`)".to_owned(),
    };
    let memory = match question.need.memory_gib {
        Some(gib) => format!("{gib:.1} GiB of memory{}", seen(question.is_given.1)),
        None => "any memory, since nothing reports how much is used (`--memory`)".to_owned(),
    };
    format!("The machines have at least {processors}, and {memory}, all nodes together.")
}

fn part(
    paper: &mut Terminal<'_>,
    title: &str,
    question: &Question<'_>,
    platforms: &[Sized],
    most: usize,
) -> io::Result<()> {
    let price = question.unit.map(|unit| format!("price ({unit})"));
    let header = ["platform", "vCPU", "GiB", "allows", "times", "what binds"].map(str::to_owned);
    let is_cached = platforms.iter().take(most).any(|sized| sized.platform.cache == Cache::Read);
    let cached = is_cached.then(|| "cached".to_owned());
    let mut grid = Grid::new(1, header.into_iter().chain(cached).chain(price.clone()));
    for sized in platforms.iter().take(most) {
        let machine = &sized.platform.machine;
        let volumes = sized.platform.volumes.as_ref().map(provisioned).unwrap_or_default();
        let standings = || sized.platform.standings().map(|(_, standing)| standing);
        let is_previous = standings().any(|standing| standing.state == Some(State::Previous));
        let previous = if is_previous { ", previous generation" } else { "" };
        let marks: Vec<String> = standings().map(|standing| standing.marks(question.today)).collect();
        let mut marks: String =
            ["*", "!"].into_iter().filter(|mark| marks.iter().any(|it| it.contains(mark))).collect();
        if question.is_by_cache(sized) {
            marks.push('~');
        }
        let mut row = vec![
            format!("{}{volumes}{previous} {marks}", sized.platform.name()).trim_end().to_owned(),
            machine.processors.map_or_else(|| UNKNOWN.to_owned(), |it| it.to_string()),
            memory(machine),
            group_thousands(sized.per_s.floor()),
            format!("{:.2}", question.headroom_of(sized)),
            sized.whose.words().to_owned(),
        ];
        if is_cached {
            let share = question.cached_share(&sized.platform);
            row.push(share.map_or_else(String::new, |share| format!("{} %", percent(share).trim_end_matches(".0"))));
        }
        if price.is_some() {
            row.push(sized.price.map_or_else(|| UNKNOWN.to_owned(), group_thousands));
        }
        grid.push(row);
    }
    paper.table(title, &grid)?;
    let more = platforms.len().saturating_sub(most);
    if more > 0 {
        paper.remark(&format!("and {more} more: `--all`"))?;
    }
    Ok(())
}

/// What has to be bought for each volume beyond its size.
fn provisioned(volumes: &Volumes) -> String {
    let is_bought = |rule: &Option<model::platforms::Rule>| rule.as_ref().is_some_and(|rule| rule.provisioned);
    let iops = volumes.each.iops.filter(|_| is_bought(&volumes.kind.iops));
    let throughput = volumes.each.mb_per_s.filter(|_| is_bought(&volumes.kind.throughput));
    let throughput = throughput.map(|mb| mb / volumes.kind.unit.in_megabytes(1.0));
    let words = [
        iops.map(|iops| format!("{} IOPS", group_thousands(iops))),
        throughput.map(|it| format!("{} {}", group_thousands(it), volumes.kind.unit.name())),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { String::new() } else { format!(" ({} each)", words.join(", ")) }
}
