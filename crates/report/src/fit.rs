//! Whether a platform carries a database: the answer in a sentence, what it rests on, and what makes it doubtful.

use std::io::{self, Write};

use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::text::NARROWEST;
use super::trend::{length, minute};
use super::words::{UNKNOWN, number};
use analysis::capacity::{
    Answer, Basis, Compared, Demand, Fit, FitDoubt, LatencyThere, MapFit, NotKnown, NotPlaced, Platform, Share, Verdict,
};
use analysis::{MapPlace, QuantileValue};
use model::record::Metric;
use model::units::{Bytes, group_thousands, percent};

const LEGEND: &str = "Headroom is capacity over demand, both as measured: nothing is extrapolated. `*` decides the answer. It is about \
                      storage; processors, memory and network are not compared. MB: 1,000,000 bytes. `?`: not known.";

/// What stands before the command that decides.
const CHECK_DECIDES: &str = "What answers it, on that platform, with a load like the database's own";
/// What stands before any other command.
pub const DECIDES: &str = "What decides it, on that platform, and then the same question with `--capacity last`";

/// Writes the answer for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn fit(out: &mut impl Write, fit: &Fit, demand: &Demand, platform: &Platform, width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    paper.remark(&sentence(fit, demand, platform))?;
    if let Some(command) = &fit.command {
        let answers_itself = command.starts_with("plimsoll check ");
        paper.remark(&format!("{}:", if answers_itself { CHECK_DECIDES } else { DECIDES }))?;
        // In one line, however wide the terminal is, so that it can be pasted.
        writeln!(paper.out, "    {command}")?;
    }
    // A map has no capacity of reads alone beside that of writes: its windows say it.
    if fit.basis != Basis::Map {
        paper.table("Demand and capacity", &compared(fit, demand))?;
    }
    paper.aside(&rests_on(fit, demand, platform))?;
    paper.aside(&latency(fit, demand, platform))?;
    match &fit.map {
        Some(map) => {
            let [inside, outside, unknown] = map.counts();
            let title = format!("Windows and the map's line: {inside} inside, {outside} outside, {unknown} unknown");
            paper.table(&title, &windows(map))?;
            if map.windows.len() > TIGHTEST {
                paper.aside(&format!(
                    "Of {} windows these {TIGHTEST} come first: outside, unknown, inside, each by headroom.",
                    map.windows.len()
                ))?;
            }
        }
        None => levels(&mut paper, platform)?,
    }
    if !fit.doubts.is_empty() {
        paper.title("Why it may be otherwise")?;
        for doubt in &fit.doubts {
            paper.paragraph(&doubt_sentence(doubt), "warning: ")?;
            if let Some(advice) = doubt_advice(doubt) {
                paper.paragraph(&advice, "     -> ")?;
            }
        }
    }
    paper.gap()?;
    paper.remark(LEGEND)
}

/// Writes the answers to several questions, before what the worst of them rests on.
///
/// # Errors
/// If `out` fails.
pub fn several(out: &mut impl Write, sentences: &[String], width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    for sentence in sentences {
        paper.paragraph(sentence, "- ")?;
    }
    paper.gap()?;
    paper.remark("The worst answer counts:")
}

/// The answer.
pub fn sentence(fit: &Fit, demand: &Demand, platform: &Platform) -> String {
    let (database, name) = (&demand.database, &platform.name);
    let share = share_words(demand.share);
    let target = &platform.target;
    let binding = fit.compared.iter().find(|compared| Some(compared.respect) == fit.binding);
    let (at_least, binding) = (if fit.is_at_least { "at least " } else { "" }, binding.zip(fit.headroom()));
    match (fit.answer, binding) {
        (Answer::Carries, _) if fit.basis == Basis::Windows => format!(
            "`{name}` sustains `{database}` at {share} with {target}: each window of the database is below a level that met it."
        ),
        (Answer::Carries | Answer::DoesNot, _)
            if fit.basis == Basis::Map
                && let Some(map) = &fit.map =>
        {
            by_map(fit.answer, map, &format!("`{database}` at {share} with {target}"), name)
        }
        (Answer::Carries, _) if let Basis::Trivial(level) = &fit.basis => format!(
            "`{name}` sustains `{database}` at {share} with {target}: its whole demand is less than 1 % of {level}, which met it \
             easily."
        ),
        (Answer::Carries, Some((compared, headroom))) => format!(
            "`{name}` sustains `{database}` at {share} with {target}: it reached {at_least}{} times the {} demanded, its smallest \
             headroom.",
            times(headroom),
            compared.respect.heading()
        ),
        (Answer::Carries, None) => format!("`{name}` sustains `{database}` at {share} with {target}."),
        (Answer::DoesNot, Some((compared, headroom))) => format!(
            "`{name}` does not sustain `{database}` at {share} with {target}: it reached {} of the {} {} demanded ({} times).",
            number(compared.capacity),
            number(Some(compared.demand)),
            compared.respect.heading(),
            times(headroom)
        ),
        (Answer::DoesNot, None) if platform.levels.iter().any(|level| level.verdict != Verdict::Missed) => {
            format!(
                "`{name}` does not sustain `{database}` at {share} with {target}: it missed that at a level with no more load."
            )
        }
        (Answer::DoesNot, None) => format!(
            "`{name}` does not sustain `{database}` at {share} with {target}: it missed that at every level, even with no more \
             load."
        ),
        (Answer::Unknown(why), binding) => {
            let known = binding.map_or_else(String::new, |(compared, headroom)| {
                format!(
                    " Within the target it reached {at_least}{} times the {}.",
                    times(headroom),
                    compared.respect.heading()
                )
            });
            format!(
                "Unknown whether `{name}` sustains `{database}` at {share} with {target}: {}.{known}",
                not_known(why, fit, demand)
            )
        }
    }
}

/// The answer by a map.
fn by_map(answer: Answer, map: &MapFit, what: &str, name: &str) -> String {
    let (all, [inside, outside, _]) = (map.windows.len(), map.counts());
    let windows = |count: usize, is: &str, are: &str| match (count, all) {
        (1, 1) => format!("the window {is}"),
        (1, _) => format!("1 of {all} windows {is}"),
        _ => format!("{count} of {all} windows {are}"),
    };
    if answer == Answer::Carries {
        let least = map.times(true).map_or_else(String::new, |least| {
            format!("; the line is at {} times the load of the closest", times(least))
        });
        return format!("`{name}` sustains {what}: {} inside of the map's line{least}.", windows(inside, "is", "are"));
    }
    let least = map
        .times(false)
        .map_or_else(String::new, |least| format!("; the line is at {} times the load of the worst", times(least)));
    format!("`{name}` does not sustain {what}: {} outside of the map's line{least}.", windows(outside, "is", "are"))
}

/// Why windows are neither inside nor outside.
fn not_placed(map: &MapFit) -> String {
    let why = |why: NotPlaced| {
        let count = map.windows.iter().filter(|window| window.not_placed == Some(why)).count();
        let words = match why {
            NotPlaced::TooClose => "too close to the map's line",
            NotPlaced::NotMeasured => "of a mix that was not measured",
            NotPlaced::OtherSize => "of requests of another size",
            NotPlaced::NotReported => "without reported writes or bytes",
            NotPlaced::Sum => "the sum of peaks that need not come together",
        };
        (count > 0).then(|| format!("{count} {words}"))
    };
    let parts: Vec<String> = NotPlaced::ALL.into_iter().filter_map(why).collect();
    format!("of {} windows {} {}", map.windows.len(), if map.counts()[2] == 1 { "is" } else { "are" }, parts.join(", "))
}

/// When a window began; to the second where windows are shorter than a minute.
fn instant(from: jiff::Timestamp, seconds: f64) -> String {
    if seconds < 60.0 { from.strftime("%Y-%m-%d %H:%M:%S").to_string() } else { minute(from) }
}

/// How many windows are shown.
const TIGHTEST: usize = 10;

/// Windows on a map.
fn windows(map: &MapFit) -> Grid {
    let mut grid = Grid::new(1, ["window (UTC)", "reads/s", "writes/s", "MB/s", "is", "headroom"]);
    for window in map.windows.iter().take(TIGHTEST) {
        let place = match window.place {
            MapPlace::Inside { .. } => "inside",
            MapPlace::Outside { .. } => "outside",
            MapPlace::Unknown { .. } => UNKNOWN,
        };
        grid.push(vec![
            window.from.map_or_else(|| "sum".to_owned(), |from| instant(from, window.seconds)),
            number(window.rates.reads),
            number(window.rates.writes),
            number(window.rates.megabytes),
            place.to_owned(),
            window.place.times().map_or_else(|| UNKNOWN.to_owned(), times),
        ]);
    }
    grid
}

fn share_words(share: Share) -> String {
    match share {
        Share::Peak => "its peak".to_owned(),
        Share::Quantile(quantile) => {
            format!("what it needs for {} % of the time", percent(quantile).trim_end_matches(".0"))
        }
    }
}

fn not_known(why: NotKnown, fit: &Fit, demand: &Demand) -> String {
    match why {
        NotKnown::NoDemand => "no window says how many requests or bytes the database needs".to_owned(),
        NotKnown::NotReported(respect) => {
            format!(
                "the report does not say how many {} the database needs, and storage has to sustain them too",
                respect.heading()
            )
        }
        NotKnown::NotJudged => "no level of the platform can be judged by that target".to_owned(),
        NotKnown::NotMeasured(respect) => format!(
            "the platform was measured without {}, or did not report them; the database demands {}",
            respect.heading(),
            number(demand.rates.of(respect))
        ),
        NotKnown::FromMemory => {
            "the load on the platform went through the page cache: it measured memory, not storage".to_owned()
        }
        NotKnown::BeyondLevels => {
            "no measured level missed the target, and none that met it had so much load".to_owned()
        }
        NotKnown::BelowLevels => {
            "no level met the target, and each had more load in some respect than the database demands".to_owned()
        }
        NotKnown::OnMap => fit.map.as_ref().map_or_else(String::new, not_placed),
        NotKnown::MapChanged => "storage changed while the map was measured".to_owned(),
        NotKnown::Apart => {
            "some level reached each demanded rate, but no level is known to have reached all of them at once"
                .to_owned()
        }
        NotKnown::Between => {
            let short = fit.compared.iter().filter(|it| it.is_decisive && it.headroom().is_some_and(|room| room < 1.0));
            let names: Vec<&str> = short.map(|compared| compared.respect.heading()).collect();
            let what = if names.is_empty() { "less".to_owned() } else { format!("fewer {}", names.join(" and ")) };
            format!(
                "levels that met the target reached {what} than demanded, and those that missed it had more load in some respect; \
                 nothing between was measured"
            )
        }
    }
}

/// `2.0` or `12`; small shortfalls are not rounded to one.
fn times(headroom: f64) -> String {
    match headroom {
        room if room >= 10.0 => group_thousands(room),
        room if (room - 1.0).abs() < 0.1 => format!("{room:.2}"),
        room => format!("{room:.1}"),
    }
}

fn compared(fit: &Fit, demand: &Demand) -> Grid {
    let mut grid = Grid::new(1, ["", &format!("demand ({})", demand.share.name()), "capacity", "headroom"]);
    for compared in &fit.compared {
        let mark = if compared.is_decisive { " *" } else { "" };
        let capacity = compared.capacity.map_or_else(|| UNKNOWN.to_owned(), |capacity| number(Some(capacity)));
        grid.push(vec![
            format!("{}{mark}", compared.respect.heading()),
            number(Some(compared.demand)),
            if fit.is_at_least && compared.capacity.is_some() { format!("at least {capacity}") } else { capacity },
            compared.headroom().map_or_else(|| UNKNOWN.to_owned(), times),
        ]);
    }
    grid
}

fn rests_on(fit: &Fit, demand: &Demand, platform: &Platform) -> String {
    let windows = if demand.windows == 1 { "1 window".to_owned() } else { format!("{} windows", demand.windows) };
    let (least, most) = demand.lengths_s;
    let lengths = if most - least < 60.0 { length(most) } else { format!("{} to {}", length(least), length(most)) };
    let capacity = match &fit.level {
        Some(level) => format!("capacity of level {level} of `{}`, which met the target", platform.name),
        None if fit.basis == Basis::Map => format!("each is compared with the line of `{}`", platform.name),
        None if fit.basis == Basis::Windows => {
            format!(
                "capacity is the most of any level of `{}` that met the target, and each window is within one",
                platform.name
            )
        }
        None => format!("no level of `{}` met the target", platform.name),
    };
    format!("Demand is taken from {windows} of {lengths}, each figure by itself; {capacity}.")
}

fn latency(fit: &Fit, demand: &Demand, platform: &Platform) -> String {
    let quantile = platform.target.quantile_name();
    let there = match &fit.latency {
        None if platform.is_map => {
            format!("The latency of `{}` is known only at the points of its map.", platform.name)
        }
        None => format!("`{}` was not measured at that rate, so its latency there is not known.", platform.name),
        Some(there) => format!("On `{}` {}.", platform.name, latency_there(there, &quantile)),
    };
    let Some(window) = &demand.window else { return there };
    let own = match (window.mean_ms, window.quantile) {
        (None, None) => "no latency is reported".to_owned(),
        (mean, value) => {
            let mean = mean.map(|mean| format!("{} on average", milliseconds(mean)));
            let value = value.map(|value| format!("{quantile} of {value}"));
            let values: Vec<String> = mean.into_iter().chain(value).collect();
            format!("{} took {}", window.subject, values.join(", "))
        }
    };
    format!("In the database itself, from {} to {}, {own}. {there}", minute(window.from), minute(window.to))
}

fn latency_there(there: &LatencyThere, quantile: &str) -> String {
    let mean = there.mean_ms.map(|mean| format!("{} on average", milliseconds(mean)));
    let value = there.quantile.map(|value| format!("{quantile} of {value}"));
    let values = mean.into_iter().chain(value).collect::<Vec<_>>().join(", ");
    match there.levels.as_slice() {
        [least] if there.is_below => {
            format!("it was {values} at {least}, the least level that was measured, which is more")
        }
        [level] => format!("it was {values} at {level}, which is that rate"),
        levels => format!("it is about {values} at that rate, on a straight line between {}", levels.join(" and ")),
    }
}

/// A quantile in a table, as reports show it.
fn edge(value: QuantileValue) -> String {
    format!("{}{}", if value.is_bound { "<=" } else { "" }, value.ns)
}

fn milliseconds(ms: f64) -> String {
    model::units::Nanos((ms * 1e6).round() as u64).to_string()
}

fn levels(paper: &mut Terminal<'_>, platform: &Platform) -> io::Result<()> {
    let quantile = platform.target.quantile_name();
    let header = ["level", "reads/s", "writes/s", "MB/s", "mean", &quantile, "target"];
    let mut grid = Grid::new(1, header);
    for level in &platform.levels {
        let time = |ms: Option<f64>| ms.map_or_else(|| UNKNOWN.to_owned(), milliseconds);
        grid.push(vec![
            level.label.clone(),
            number(level.rates.reads),
            number(level.rates.writes),
            number(level.rates.megabytes),
            time(level.mean_ms),
            level.quantile.map_or_else(|| UNKNOWN.to_owned(), edge),
            verdict(level.verdict).to_owned(),
        ]);
    }
    paper.table(&format!("Levels of `{}`, judged by {}", platform.name, platform.target), &grid)
}

/// A verdict in a word or two.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::TooWide => "buckets too wide",
        Verdict::NotJudged => "not judged",
        Verdict::OnlyMean => "only a mean",
    }
}

/// A doubt in a sentence.
pub fn doubt_sentence(doubt: &FitDoubt) -> String {
    match doubt {
        FitDoubt::MeansOf(seconds) => format!(
            "Demand is the mean of windows of up to {}: within one the load was higher for a time, and how much is not reported.",
            length(*seconds)
        ),
        FitDoubt::LittleKnown { windows, covered_share } => format!(
            "Of the database {} known, with {} % of the time from first to last covered: its busiest hour may not be among them.",
            if *windows == 1 { "one window is".to_owned() } else { format!("{windows} windows are") },
            percent(*covered_share)
        ),
        FitDoubt::OneInstance(name) => format!(
            "`{name}` is one instance of a cluster: what the others ask of the same storage is not in the demand."
        ),
        FitDoubt::OtherLimit(limit) => format!(
            "The map was made by {limit}: its line says nothing of another limit, and only its points were compared."
        ),
        FitDoubt::ShortLevels(seconds) => format!(
            "No level of the platform lasted longer than {}. Burst credit, caches and garbage collection of flash may last longer: \
             a steady load may get less.",
            length(*seconds)
        ),
        FitDoubt::UnreportedLengths => {
            "The platform's results do not say how long its levels lasted, and each is one reading: burst credit and \
             caches may have served them."
                .to_owned()
        }
        FitDoubt::OnlyMeans(levels) => format!(
            "{} report only a mean latency. A mean proves a percentile only where it is far below the limit: 1 % of it for p99, 10 % \
             for p90.",
            listed(levels)
        ),
        FitDoubt::OtherMix(asked, measured) => format!(
            "The database reads with {} % of its requests, the load on the platform with {} %: writes may cost more or less than reads.",
            percent(*asked),
            percent(*measured)
        ),
        FitDoubt::OtherSize(asked, measured) => format!(
            "The database's requests are of {} on average, those on the platform of {}: neither requests nor bytes alone \
             compare them.",
            Bytes(asked.round() as u64),
            Bytes(measured.round() as u64)
        ),
        FitDoubt::NotLoaded(respects) => format!(
            "The load on the platform made no {}, or does not report: log writes are not in the answer.",
            respects.iter().map(|respect: &Metric| respect.heading()).collect::<Vec<_>>().join(" and no ")
        ),
        FitDoubt::TooWide(levels) => format!(
            "The buckets of {} are too wide to say whether the target was met: the limit lies inside the one that decides.",
            listed(levels)
        ),
        FitDoubt::NotMonotonic { missed, met } => format!(
            "{missed} missed the target though it did less than {met}, which met it: something else disturbed one of them."
        ),
        FitDoubt::OtherSubject { demand, platform } => {
            format!("The database timed {demand}, and the platform is judged by {platform}: these are not the same.")
        }
        FitDoubt::OfRun(sentence, _) => sentence.clone(),
    }
}

fn listed(levels: &[String]) -> String {
    const MAX: usize = 4;
    let more = if levels.len() > MAX { format!(" and {} more", levels.len() - MAX) } else { String::new() };
    format!("{}{more}", levels.iter().take(MAX).cloned().collect::<Vec<_>>().join(", "))
}

/// What to do about a doubt.
pub fn doubt_advice(doubt: &FitDoubt) -> Option<String> {
    let advice = match doubt {
        FitDoubt::MeansOf(_) => "take reports of shorter windows of the busiest hour, or keep more headroom",
        FitDoubt::LittleKnown { .. } => "give reports that cover a whole month or the busiest days of it",
        FitDoubt::OneInstance(_) => {
            "import the report of all instances (awrgrpt), or the reports of each, and name them all: `--demand A --demand B`"
        }
        FitDoubt::ShortLevels(_) => "measure the level that matters for an hour: `plimsoll io soak`, or RUN_TIME=3600",
        FitDoubt::UnreportedLengths => "measure the level that matters again, for an hour: `plimsoll io soak`",
        FitDoubt::OnlyMeans(_) => {
            "ask for what a mean can prove, such as `--limit p90=5ms`, or measure the platform with `plimsoll io`"
        }
        FitDoubt::OtherLimit(_) => {
            "leave out `--limit`, or make a map by that limit: `plimsoll io map --limit p99=5ms`"
        }
        FitDoubt::OtherMix(..) => "measure the platform with the database's own share of writes",
        FitDoubt::OtherSize(..) => "measure the platform with requests of that size",
        FitDoubt::NotLoaded(_) => "measure with updates: `plimsoll slob sweep UPDATE_PCT=20`",
        FitDoubt::TooWide(_) => "ask for a limit at an edge of its buckets with `--limit`",
        FitDoubt::NotMonotonic { .. } => "measure both levels again",
        FitDoubt::OtherSubject { .. } => "name what is judged: `--limit EVENT:p99=5ms`",
        FitDoubt::OfRun(_, advice) => return advice.clone(),
    };
    Some(advice.to_owned())
}

/// The answer in a word for programs: `sustains`, `does_not_sustain`, `not_known`.
pub fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Carries => "sustains",
        Answer::DoesNot => "does_not_sustain",
        Answer::Unknown(_) => "not_known",
    }
}

/// Headroom for programs and people alike: absent where capacity is not known.
pub fn headrooms(fit: &Fit) -> impl Iterator<Item = (&Compared, Option<f64>)> {
    fit.compared.iter().map(|compared| (compared, compared.headroom()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::LatencyTarget;
    use analysis::trend::Trends;
    use model::record::Run;
    use model::record::sample::windows::{Hour, QUICK, history, report};
    use model::record::sample::{self};

    fn rendered(runs: &[Run], share: Share, capacity: &Run, limit: &str) -> String {
        let runs: Vec<&Run> = runs.iter().collect();
        let target: LatencyTarget = limit.parse().unwrap();
        let demand = Demand::of(&Trends::of(&runs).trends[0], &runs, share, &target);
        let platform = Platform::of(capacity, &target);
        let answer = Fit::of(&demand, &platform, capacity, &target);
        let mut out = Vec::new();
        fit(&mut out, &answer, &demand, &platform, 110).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn reads_only(mut runs: Vec<Run>) -> Vec<Run> {
        for run in &mut runs {
            let counters = &mut run.steps[0].counters;
            (counters.physical_writes, counters.physical_write_bytes) = (Some(0), Some(0));
        }
        runs
    }

    #[test]
    fn a_history_that_is_carried() {
        insta::assert_snapshot!(rendered(&reads_only(history()), Share::Peak, &sample::sweep(60), "p99=5ms"));
    }

    #[test]
    fn edges_of_another_programs_buckets_are_not_passed_off_as_percentiles() {
        let hour = |at, reads_per_s| {
            report(Hour { at, minutes: 60, reads_per_s, writes_per_s: 0, within_ms: [60, 20, 15, 5, 0, 0] })
        };
        let words = rendered(&[hour(9, 4_000)], Share::Peak, &hour(30, 9_000), "p99=10ms");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("p99 of at most 8.19 ms at snapshots 130 to 131, the least level"), "{words}");
        assert!(words.contains(" <=8.19 ms met"), "{words}");
        let own = rendered(&[hour(9, 4_000)], Share::Peak, &sample::sweep(60), "p99=10ms");
        assert!(!own.contains("<=") && own.contains("p99 of at most 8.19 ms"), "that of the database: {own}");
    }

    #[test]
    fn one_report_that_is_not() {
        let one = report(Hour { at: 9, minutes: 60, reads_per_s: 50_000, writes_per_s: 0, within_ms: QUICK });
        insta::assert_snapshot!(rendered(&[one], Share::Quantile(0.95), &sample::sweep(60), "p99=5ms"));
    }

    #[test]
    fn a_level_that_met_the_target_is_not_said_to_have_missed_it() {
        let one = || report(Hour { at: 9, minutes: 60, reads_per_s: 60_000, writes_per_s: 20_000, within_ms: QUICK });
        let first = |text: String| text.lines().take(2).collect::<Vec<_>>().join(" ");
        // The levels that met it wrote nothing, so that no headroom binds.
        let mut run = sample::sweep(60);
        let last = &mut run.steps.last_mut().unwrap().counters;
        (last.physical_writes, last.physical_write_bytes) = (Some(60_000), Some(60_000 * 8_192));
        let some = first(rendered(&[one()], Share::Peak, &run, "p99=5ms"));
        assert!(some.contains("does not sustain") && some.contains("missed that at a level with"), "{some}");
        let none = first(rendered(&[one()], Share::Peak, &sample::sweep(60), "p99=1us"));
        assert!(none.contains("missed that at every level"), "{none}");
    }

    #[test]
    fn writes_that_nobody_measured() {
        let text = rendered(&history(), Share::Peak, &sample::sweep(60), "p99=5ms");
        let first = text.lines().take(3).collect::<Vec<_>>().join(" ");
        assert!(first.contains(": the platform was measured without writes/s"), "{first}");
        assert!(text.contains("MB/s *"), "{text}");
    }
}
