//! One row a step over many runs, in the layouts that people already have spreadsheets for.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::buckets::{self, Columns};
use super::html::{self, table::Around};
use super::sheet::{Cell, Sheet};
use analysis::{
    Expected, Figures, GeneratorVerdict, ListedVerdict, SINGLE_BLOCK_READ, Served, Tagged, Vocabulary,
    foreground_waits, highest_minute, is_on_server, mean_us, operations_are_requests, rate, single_block_reads,
    tagged_platform, wait,
};
use model::platforms::{Catalogue, Combination};
use model::record::facts::UNWAITED_MARK;
use model::record::{ASKED, CONNECT, Histogram, Metric, Run, ServerStats, Step, WaitStats, Waited, is_mark};
use model::units::{awr_count, group_thousands, percent};

/// Which columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Those of SLOB's `awr_info`.
    AwrInfo,
    /// Tags, I/O per second and the wait histogram of single-block reads.
    Matrix,
    /// Requests, bytes and times of raw storage.
    Requests,
    /// Transactions of users, their times and their connections.
    Transactions,
}

impl Style {
    /// The columns that fit these runs where nobody asks for others.
    pub fn usual(runs: &[Run]) -> Self {
        let all = |are: fn(&Run) -> bool| !runs.is_empty() && runs.iter().all(are);
        if all(operations_are_requests) {
            Self::Requests
        } else if all(|run| Vocabulary::of(run) == Vocabulary::Users) {
            Self::Transactions
        } else {
            Self::AwrInfo
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::AwrInfo => "Rates, latencies and top waits",
            Self::Matrix => "I/O per second and single-block reads",
            Self::Requests => "Requests and their times",
            Self::Transactions => "Transactions and their times",
        }
    }

    /// What the columns mean; a page is read by people who did not make the runs.
    pub(super) fn legend(self) -> &'static str {
        match self {
            Self::AwrInfo => {
                "One row a step. Rates are per second of the measured window. DB CPU and DB Tm are in seconds per second, columns in _MBS \
                 in MB of 2^20 bytes. In an Oracle report READ_MBS and WRITE_MBS count all I/O (the statistics `total bytes`), \
                 PREADS and PWRITES data files only. ELAPSED is in seconds. Columns in _LAT are mean microseconds: DFSR, DPR and \
                 DFPR of session waits, DFPW and LFPW of background processes. TOP WAIT is the wait with the most time. P99_US: 99th percentile in \
                 microseconds, of single-block reads where timed, else of operations; unknown where buckets only bound it. \
                 ANSWER: the verdict of a check, or of a run with limits. A dash means unknown."
            }
            Self::Matrix => {
                "One row a step. MAX_IOPS, RAC_IOPS and EXPECTED need tags that name a known machine and volumes (docs/recipes/azure-rac.md). \
                 MAX_IOPS: requests per second that each machine allows, uncached and cached. RAC_IOPS: that the volumes allow. \
                 EXPECTED: that all should reach with a cold cache, at the step's mix and size. IOPS_RESULT: read and write requests \
                 sent to storage, per second. On a database server: blocks that its sessions fetched from storage. In an Oracle \
                 report: physical reads and writes, which are blocks. DB_S_R_WAIT: single-block read waits (db file sequential read) \
                 in the measured window. P99_US: their 99th percentile in microseconds, unknown where buckets only bound it. \
                 Shares: percent of these waits below the heading and not below the one before. As in Oracle's tables, 1 ms in headings is \
                 1024 us. 0.0 is less than 0.05 %. K, M: thousands, millions. A dash means unknown."
            }
            Self::Requests => {
                "One row a step. IOPS, RIOPS, WIOPS: all, read and write requests per second. ASKED: the target rate. \
                 Columns in _MBS are MB (1,000,000 bytes) per second. Columns in _US are microseconds from due to finished (fio and \
                 similar programs: from sent), SERVICE_US from sent to finished. PCT_QUEUED: percent of the response time before \
                 requests were sent. READ_P99_US and WRITE_P99_US: each type separately, where there are both. ANSWER: the verdict of \
                 a check, or of a run with limits. A dash means unknown."
            }
            Self::Transactions => {
                "One row a step. TPS: successful transactions per second of the window. ASKED: the target rate. TPM_MAX: the maximum in any \
                 sixty seconds of the window, unknown for a shorter one. COMMITS and ERRORS are per second. Columns in _US are \
                 microseconds from due to finished. CONNECTS: new connections per second; CONNECT_P99_US: how long they took. \
                 ANSWER: the verdict of a run with limits. TOP WAIT is the wait that most session time went to. A dash means unknown."
            }
        }
    }
}

/// How they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What the style's readers expect: bare pipes for [`Style::AwrInfo`], aligned pipes for [`Style::Matrix`].
    Text,
    /// A Markdown table.
    Markdown,
    /// Comma-separated values, numbers unrounded.
    Csv,
    /// A list of objects, numbers unrounded.
    Json,
    /// A page for a browser that loads nothing.
    Html,
}

/// Writes one row for each step of each run.
///
/// # Errors
/// If `out` fails.
pub fn table(out: &mut impl Write, runs: &[Run], style: Style, format: Format) -> io::Result<()> {
    let each = if style == Style::AwrInfo { with_instances(runs) } else { Cow::Borrowed(runs) };
    let sheet = match style {
        // Bare pipes are cut by position, and end where SLOB's end. No check is SLOB's.
        Style::AwrInfo if format == Format::Text && runs.iter().all(|run| run.check.is_none()) => awr_info(&each),
        Style::AwrInfo if format == Format::Text => with_answers(awr_info(&each), &each),
        Style::AwrInfo => with_percentile_and_tags(with_answers(awr_info(&each), &each), &each),
        Style::Matrix => matrix(runs),
        Style::Requests => with_tags(with_answers(requests(runs), runs), runs),
        Style::Transactions => with_tags(with_answers(of_columns(runs, &TRANSACTIONS), runs), runs),
    };
    match (format, style) {
        (Format::Text, Style::AwrInfo) => sheet.write_piped(out),
        (Format::Text, Style::Matrix | Style::Requests | Style::Transactions) | (Format::Markdown, _) => {
            sheet.write_markdown(out)
        }
        (Format::Csv, _) => sheet.write_csv(out),
        (Format::Json, _) => sheet.write_json(out),
        (Format::Html, _) => {
            let caption = format!("{} of {}", style.title(), counted(runs));
            html::table::write(out, &sheet, &Around { caption: &caption, legend: style.legend() })
        }
    }
}

/// `1 run` or `2 runs, 7 steps`.
fn counted(runs: &[Run]) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let steps = steps(runs).count();
    if runs.len() == steps {
        many(steps, "run")
    } else {
        format!("{}, {}", many(runs.len(), "run"), many(steps, "step"))
    }
}

/// A figure that a column shows.
type Figure = fn(&Figures<'_>) -> Option<f64>;

/// Columns after `FILE` and before `TOP WAIT`, with their decimals. As in `awr_info`, figures are per second of the window, `DB CPU` and
/// `DB Tm` in seconds per second, MB are 2^20 bytes, and latencies are mean microseconds: those of reads in the foreground, those of
/// writes in the background.
const AWR_INFO: [(&str, usize, Figure); 16] = [
    ("SESSIONS", 0, |f| f.value(Metric::Sessions)),
    ("ELAPSED", 0, |f| Some(f.seconds()).filter(|seconds| *seconds > 0.0)),
    ("DB CPU", 1, |f| f.value(Metric::DatabaseProcessors)),
    ("DB Tm", 1, |f| f.sessions_in_calls()),
    ("EXECUTES", 0, |f| f.value(Metric::Executes)),
    ("LIO", 0, |f| f.value(Metric::LogicalReads)),
    ("PREADS", 0, |f| f.value(Metric::Reads)),
    ("READ_MBS", 1, |f| mebibytes(f.all_read_bytes_per_s())),
    ("PWRITES", 0, |f| f.value(Metric::Writes)),
    ("WRITE_MBS", 1, |f| mebibytes(f.all_written_bytes_per_s())),
    ("REDO_MBS", 1, |f| mebibytes(f.value(Metric::RedoMegabytes).map(|megabytes| megabytes * 1e6))),
    ("DFSR_LAT", 0, |f| foreground_us(f, SINGLE_BLOCK_READ)),
    ("DPR_LAT", 0, |f| foreground_us(f, "direct path read")),
    ("DFPR_LAT", 0, |f| foreground_us(f, "db file parallel read")),
    ("DFPW_LAT", 0, |f| background_us(f, "db file parallel write")),
    ("LFPW_LAT", 0, |f| background_us(f, "log file parallel write")),
];

fn mebibytes(bytes_per_s: Option<f64>) -> Option<f64> {
    bytes_per_s.map(|bytes| bytes / f64::from(1 << 20))
}

fn foreground_us(figures: &Figures<'_>, event: &str) -> Option<f64> {
    mean_us_of(figures, event, WaitStats::of_sessions)
}

/// Where the source does not know who waited for a writer, it was one of the background.
fn background_us(figures: &Figures<'_>, event: &str) -> Option<f64> {
    mean_us_of(figures, event, WaitStats::of_background)
        .or_else(|| mean_us_of(figures, event, |wait| Some(wait.sum()).filter(|_| wait.reported.is_empty())))
}

fn mean_us_of(figures: &Figures<'_>, event: &str, of: fn(&WaitStats) -> Option<Waited>) -> Option<f64> {
    let mut waits = figures.0.waits.iter().filter(|wait| wait.event == event);
    waits.find_map(|wait| of(wait)?.mean_ns()).map(|ns| ns / 1e3)
}

/// Columns after `FILE` and before `TOP WAIT`, with their decimals.
const TRANSACTIONS: [(&str, usize, Figure); 13] = [
    ("USERS", 0, |f| f.value(Metric::Sessions)),
    ("ASKED", 0, |f| f.value(Metric::Asked)),
    ("TPS", 1, |f| f.value(Metric::Operations)),
    ("TPM_MAX", 0, |f| highest_minute(f.0).map(|most| most as f64)),
    ("COMMITS", 1, |f| f.value(Metric::Commits)),
    ("ERRORS", 1, |f| rate(f.0.counters.errors, f.0.window.duration_ns)),
    ("MEAN_US", 0, |f| mean_us(&f.response()?)),
    ("P50_US", 0, |f| quantile_us(f, 0.5)),
    ("P99_US", 0, |f| quantile_us(f, 0.99)),
    ("P99.9_US", 0, |f| quantile_us(f, 0.999)),
    ("MAX_US", 0, |f| Some(f.response()?.max_ns()? as f64 / 1e3)),
    ("CONNECTS", 1, |f| rate(Some(wait(f.0, CONNECT)?.waits.count()), f.0.window.duration_ns)),
    ("CONNECT_P99_US", 0, |f| known_us(&wait(f.0, CONNECT)?.waits, 0.99)),
];

fn awr_info(runs: &[Run]) -> Sheet {
    of_columns(runs, &AWR_INFO)
}

/// Rows that begin with their run and end with what was waited for most.
fn of_columns(runs: &[Run], figures: &[(&str, usize, Figure)]) -> Sheet {
    let names = figures.iter().map(|(name, ..)| (*name).to_owned());
    let columns = ["FILE".to_owned()].into_iter().chain(names).chain(["TOP WAIT".to_owned()]).collect();
    let rows = steps(runs).map(|(run, step)| {
        let of_step = Figures(step);
        let values = figures.iter().map(|(_, decimals, value)| Cell::number(value(&of_step), *decimals));
        [Cell::Text(file(run, step))].into_iter().chain(values).chain([top_wait(run, step)]).collect()
    });
    Sheet { columns, rows: rows.collect(), shares_from: None }
}

/// The percentile by which a step is judged: of single-block reads where they are timed, else of operations.
fn with_percentile_and_tags(mut sheet: Sheet, runs: &[Run]) -> Sheet {
    sheet.columns.push("P99_US".to_owned());
    for (row, (_, step)) in sheet.rows.iter_mut().zip(steps(runs)) {
        let reads = single_block_reads(step);
        let p99 = match reads.first() {
            Some(reads) => known_us(&reads.waits, 0.99),
            None => quantile_us(&Figures(step), 0.99),
        };
        row.push(Cell::number(p99, 0));
    }
    with_tags(sheet, runs)
}

/// Verdicts, where any run has one: of a check in the rows of what was asked, of limits in that of the step that shows it.
fn with_answers(mut sheet: Sheet, runs: &[Run]) -> Sheet {
    let answers: Vec<Option<ListedVerdict>> = runs.iter().map(ListedVerdict::of).collect();
    if answers.iter().all(Option::is_none) {
        return sheet;
    }
    let of_steps = runs.iter().zip(&answers).flat_map(|(run, verdict)| {
        let first = run.steps.first().map(|step| &step.label);
        let is_shown = move |step: &Step| match verdict {
            Some(_) if run.check.is_some() => step.label.starts_with(ASKED),
            Some(verdict) => verdict.step.as_ref().or(first) == Some(&step.label),
            None => false,
        };
        run.steps.iter().map(move |step| verdict.as_ref().filter(|_| is_shown(step)))
    });
    sheet.columns.insert(1, "ANSWER".to_owned());
    for (row, answer) in sheet.rows.iter_mut().zip(of_steps) {
        row.insert(1, answer.map_or(Cell::Absent, |verdict| Cell::Text(verdict.answer.to_owned())));
    }
    sheet
}

/// Tags at the end of each row, where any run has some.
fn with_tags(mut sheet: Sheet, runs: &[Run]) -> Sheet {
    if runs.iter().all(|run| run.tags.is_empty()) {
        return sheet;
    }
    sheet.columns.push("TAGS".to_owned());
    for (row, (run, _)) in sheet.rows.iter_mut().zip(steps(runs)) {
        let tags: Vec<String> = run.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        row.push(if tags.is_empty() { Cell::Absent } else { Cell::Text(tags.join(" ")) });
    }
    sheet
}

/// Columns after `FILE` and before `LIMITED BY`, with their decimals. `PCT_QUEUED` is the share of the response time that
/// passed before requests were sent.
const REQUESTS: [(&str, usize, Figure); 14] = [
    ("OUTSTANDING", 0, |f| f.value(Metric::Sessions)),
    ("ASKED", 0, |f| f.value(Metric::Asked)),
    ("IOPS", 0, |f| f.value(Metric::Operations)),
    ("RIOPS", 0, |f| f.value(Metric::Reads)),
    ("WIOPS", 0, |f| f.value(Metric::Writes)),
    ("READ_MBS", 1, |f| f.value(Metric::ReadMegabytes)),
    ("WRITE_MBS", 1, |f| f.value(Metric::WriteMegabytes)),
    ("MEAN_US", 0, |f| mean_us(&f.response()?)),
    ("P50_US", 0, |f| quantile_us(f, 0.5)),
    ("P99_US", 0, |f| quantile_us(f, 0.99)),
    ("P99.9_US", 0, |f| quantile_us(f, 0.999)),
    ("MAX_US", 0, |f| Some(f.response()?.max_ns()? as f64 / 1e3)),
    ("SERVICE_US", 0, |f| mean_us(&f.service()?)),
    ("PCT_QUEUED", 1, |f| f.queued_share().map(|share| share * 100.0)),
];

/// Columns where steps have several kinds of operations, each with its kind.
const OF_KINDS: [(&str, &str); 2] = [("READ_P99_US", "read"), ("WRITE_P99_US", "write")];

fn quantile_us(figures: &Figures<'_>, quantile: f64) -> Option<f64> {
    known_us(&figures.response()?, quantile)
}

/// Unless wide buckets of another program only bound it.
fn known_us(times: &Histogram, quantile: f64) -> Option<f64> {
    let known = times.quantile_ns(quantile).filter(|_| times.knows_quantile(quantile));
    known.map(|ns| ns as f64 / 1e3)
}

/// What varies between the steps stands before the load.
fn requests(runs: &[Run]) -> Sheet {
    let varied: BTreeSet<&str> = steps(runs).flat_map(|(_, step)| step.parameters.keys().map(String::as_str)).collect();
    // The load has columns of its own.
    let varied: Vec<&str> = varied.into_iter().filter(|name| !["DEPTH", "RATE"].contains(name)).collect();
    let names = REQUESTS.iter().map(|(name, ..)| (*name).to_owned());
    let columns = ["FILE".to_owned()].into_iter().chain(varied.iter().map(|name| (*name).to_owned())).chain(names);
    // Of reads and writes together a program may report no percentile, and of each kind one.
    let is_mixed = |step: &Step| step.operations.iter().filter(|kind| kind.response.count() > 0).count() > 1;
    let of_kinds = if steps(runs).any(|(_, step)| is_mixed(step)) { &OF_KINDS[..] } else { &[] };
    let columns = columns.chain(of_kinds.iter().map(|(name, _)| (*name).to_owned()));
    let columns = columns.chain(["LIMITED BY".to_owned()]).collect();
    let rows = steps(runs).map(|(run, step)| {
        let figures = Figures(step);
        let varied = varied.iter().map(|name| parameter(run, step, name));
        let values = REQUESTS.iter().map(|(_, decimals, value)| Cell::number(value(&figures), *decimals));
        let of_kind = |(_, kind): &(&str, &str)| {
            let known = step.operations.iter().find(|operation| operation.kind == *kind);
            Cell::number(known.and_then(|operation| known_us(&operation.response, 0.99)), 0)
        };
        let values = values.chain(of_kinds.iter().map(of_kind));
        let limited_by = GeneratorVerdict::of(step).map(|verdict| verdict.limited_by.word());
        let limited_by = limited_by.map_or(Cell::Absent, |word| Cell::Text(word.to_owned()));
        [Cell::Text(file(run, step))].into_iter().chain(varied).chain(values).chain([limited_by]).collect()
    });
    Sheet { columns, rows: rows.collect(), shares_from: None }
}

/// Runs in which each instance of a cluster that timed its waits follows its step, as a step of its own.
fn with_instances(runs: &[Run]) -> Cow<'_, [Run]> {
    let timed = |step: &Step| step.servers.iter().filter(|server| !server.waits.is_empty()).count();
    if steps(runs).all(|(_, step)| timed(step) < 2) {
        return Cow::Borrowed(runs);
    }
    let of_instance = |step: &Step, server: &ServerStats| Step {
        outcome: step.outcome.clone(),
        parameters: step.parameters.clone(),
        window: step.window.clone(),
        counters: server.counters.clone(),
        waits: server.waits.clone(),
        servers: vec![server.clone()],
        ..Step::new(step.index, format!("{}/{}", step.label, server.node))
    };
    let of_step = |step: &Step| {
        let servers: &[ServerStats] = if timed(step) < 2 { &[] } else { &step.servers };
        let each: Vec<Step> = servers.iter().map(|server| of_instance(step, server)).collect();
        [Step { intervals: Vec::new(), ..step.clone() }].into_iter().chain(each).collect::<Vec<_>>()
    };
    runs.iter().map(|run| Run { steps: run.steps.iter().flat_map(of_step).collect(), ..run.clone() }).collect()
}

/// As the step has it, or else the run.
fn parameter(run: &Run, step: &Step, name: &str) -> Cell {
    run.parameter(step, name).map_or(Cell::Absent, |value| Cell::Text(value.to_owned()))
}

fn steps(runs: &[Run]) -> impl Iterator<Item = (&Run, &Step)> {
    runs.iter().flat_map(|run| run.steps.iter().map(move |step| (run, step)))
}

/// Whether its label says what must not be overlooked.
fn is_marked(step: &Step) -> bool {
    step.label.ends_with(UNWAITED_MARK)
}

/// The run, and which of its steps; an only one too where it is marked.
fn file(run: &Run, step: &Step) -> String {
    if run.steps.len() == 1 && !is_marked(step) { run.id.clone() } else { format!("{}/{}", run.id, step.label) }
}

/// What sessions waited for longest, and its share with what that is a share of. Where using processors takes more of DB time than
/// any wait, as the table of top events of a report shows it, that stands before. Of a server that does not time its waits, what its
/// sessions were found in most often.
fn top_wait(run: &Run, step: &Step) -> Cell {
    let figures = Figures(step);
    if is_on_server(step) && figures.db_time_ns().is_none() {
        let doing = Served::of(run, step).doing();
        let all: f64 = doing.values().sum();
        let Some((what, sessions)) = doing.iter().max_by(|a, b| a.1.total_cmp(b.1)).filter(|_| all > 0.0) else {
            return Cell::Absent;
        };
        return Cell::Text(format!("{what} {}% of samples", percent(sessions / all)));
    }
    let waits = foreground_waits(step);
    let top = waits.first().map(|wait| wait.event.as_str());
    if figures.db_time_ns().is_none() {
        // A share of those waits whose times are known is none of waiting.
        let are_known = waits.iter().all(|wait| wait.of_sessions().is_some_and(|waited| waited.total_ns.is_some()));
        let share = |event: &str| {
            let share = figures.share_of_waiting(event).filter(|_| are_known)?;
            Some(format!("{event} {}% of waiting", percent(share)))
        };
        return top.map_or(Cell::Absent, |event| Cell::Text(share(event).unwrap_or_else(|| event.to_owned())));
    }
    let wait = top.map(|event| (event, figures.share_of_db_time(event)));
    let cpu = figures.cpu_share_of_db_time().map(|share| ("DB CPU", Some(share)));
    let is_more = |cpu: &(&str, Option<f64>)| wait.is_none_or(|(_, share)| cpu.1 > share);
    let shown: Vec<String> = cpu
        .filter(is_more)
        .into_iter()
        .chain(wait)
        .map(|(what, share)| share.map_or_else(|| what.to_owned(), |share| format!("{what} {}%", percent(share))))
        .collect();
    if shown.is_empty() { Cell::Absent } else { Cell::Text(format!("{} of DB time", shown.join(", "))) }
}

/// Tags in the order in which people compare platforms: the machine, its disks and their number, then the cache.
const TAGS_IN_ORDER: [&str; 9] = ["vm", "max_iops", "disk", "iops", "qty", "qtr", "rac_iops", "cache", "caching"];

/// Names of all tags: those of the usual order in it, then the others by name. Which step of an experiment a run is tells nobody
/// anything of a platform.
fn tags(runs: &[Run]) -> Vec<&str> {
    let names = runs.iter().flat_map(|run| run.tags.keys().map(String::as_str));
    let names: BTreeSet<&str> = names.filter(|name| !is_mark(name)).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| TAGS_IN_ORDER.iter().position(|usual| usual == name).unwrap_or(TAGS_IN_ORDER.len()));
    names
}

/// What stands before the figures of a row: tags, then what varies.
struct Labels<'a> {
    run: Option<fn(&Run, &Step) -> String>,
    tags: Vec<&'a str>,
    parameters: BTreeSet<&'a str>,
    has_sessions: bool,
}

impl<'a> Labels<'a> {
    fn of(runs: &'a [Run]) -> Self {
        let tags = tags(runs);
        let sessions: BTreeSet<Option<u32>> = steps(runs).map(|(_, step)| step.load.sessions).collect();
        let parameters = steps(runs).flat_map(|(_, step)| step.parameters.keys().map(String::as_str)).collect();
        let run: Option<fn(&Run, &Step) -> String> = if tags.is_empty() { Some(|run, _| name(run)) } else { None };
        let mut labels = Self { run, tags, parameters, has_sessions: sessions.len() > 1 };
        let more = labels.distinct_names(runs);
        labels.parameters.extend(more);
        for run in [(|run, _| name(run)) as fn(&Run, &Step) -> String, file] {
            if !labels.alike(runs).is_empty() {
                labels.run = Some(run);
            }
        }
        if steps(runs).any(|(_, step)| is_marked(step)) {
            labels.run = Some(file);
        }
        labels
    }

    fn columns(&self) -> Vec<String> {
        let run = self.run.map(|_| "RUN".to_owned()).into_iter();
        let names = run.chain(self.tags.iter().map(|tag| tag.to_uppercase()));
        let names = names.chain(self.parameters.iter().map(|name| (*name).to_owned()));
        names.chain(self.has_sessions.then(|| "SESSIONS".to_owned())).collect()
    }

    fn cells(&self, run: &Run, step: &Step) -> Vec<Cell> {
        let text = |value: Option<&String>| value.map_or(Cell::Absent, |value| Cell::Text(value.clone()));
        let name = self.run.map(|name| Cell::Text(name(run, step))).into_iter();
        let cells = name.chain(self.tags.iter().map(|tag| text(run.tags.get(*tag))));
        let cells = cells.chain(self.parameters.iter().map(|name| parameter(run, step, name)));
        let sessions = || Cell::number(step.load.sessions.map(f64::from), 0);
        cells.chain(self.has_sessions.then(sessions)).collect()
    }

    /// Rows that these labels do not distinguish, if any of them was imported: names that other programs give to files say
    /// little, and one file may hold many readings.
    fn alike(&self, runs: &'a [Run]) -> Vec<Vec<(&'a Run, &'a Step)>> {
        let mut rows: BTreeMap<Vec<String>, Vec<(&Run, &Step)>> = BTreeMap::new();
        for (run, step) in steps(runs) {
            let labels = self.cells(run, step).iter().map(|cell| cell.text("")).collect();
            rows.entry(labels).or_default().push((run, step));
        }
        let is_imported = |rows: &Vec<(&Run, &Step)>| rows.iter().any(|(run, _)| run.imported.is_some());
        rows.into_values().filter(|rows| rows.len() > 1 && is_imported(rows)).collect()
    }

    /// Parameters of runs in which such rows differ.
    fn distinct_names(&self, runs: &'a [Run]) -> BTreeSet<&'a str> {
        let of_rows = |rows: Vec<(&'a Run, &'a Step)>| {
            let names: BTreeSet<&str> =
                rows.iter().flat_map(|(run, _)| run.parameters.keys()).map(String::as_str).collect();
            let differs = move |name: &&str| {
                let values: BTreeSet<_> = rows.iter().map(|(run, _)| run.parameters.get(*name)).collect();
                values.len() > 1
            };
            names.into_iter().filter(differs).collect::<Vec<_>>()
        };
        self.alike(runs).into_iter().flat_map(of_rows).collect()
    }
}

fn name(run: &Run) -> String {
    if run.name.is_empty() { run.id.clone() } else { run.name.clone() }
}

/// What the machines and volumes allow that tags name, beside what was measured. No columns where no run names a platform, nor those that
/// somebody's own tags are called already.
struct Platforms {
    columns: Vec<PlatformColumn>,
}

/// A column's title, and its cell of a step.
type PlatformColumn = (&'static str, fn(&Combination, &Run, &Step) -> Cell);

/// Requests per second that a machine allows past its host's cache and through it; that the volumes allow; and that all together should
/// reach in the long run with a cold cache. The latter two of the step's own mix and size.
const EXPECTED: [PlatformColumn; 3] = [
    ("MAX_IOPS", |platform, _, _| {
        let rates = [platform.machine.uncached, platform.machine.cached].into_iter().flatten();
        let rates: Vec<String> = rates.map(|rates| awr_count(rates.iops)).collect();
        if rates.is_empty() { Cell::Absent } else { Cell::Text(rates.join("/")) }
    }),
    ("RAC_IOPS", |platform, run, step| {
        let expected = Expected::of(run, step, platform);
        Cell::shown(expected.and_then(|expected| expected.volumes_allow()), |per_s| group_thousands(per_s.floor()))
    }),
    ("EXPECTED", |platform, run, step| {
        let sustained = Expected::of(run, step, platform).and_then(|expected| expected.cold.sustained());
        Cell::shown(sustained.map(|sustained| sustained.per_s), |per_s| group_thousands(per_s.floor()))
    }),
];

impl Platforms {
    fn of(runs: &[Run], labels: &Labels<'_>) -> Self {
        let names_one = |run: &Run| matches!(tagged_platform(run, Catalogue::in_reports()), Tagged::Platform(_));
        if !runs.iter().any(names_one) {
            return Self { columns: Vec::new() };
        }
        let taken = labels.columns();
        Self { columns: EXPECTED.into_iter().filter(|(name, _)| !taken.iter().any(|other| other == name)).collect() }
    }

    fn columns(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|(name, _)| (*name).to_owned())
    }

    fn cells(&self, run: &Run, step: &Step) -> Vec<Cell> {
        if self.columns.is_empty() {
            return Vec::new();
        }
        let platform = match tagged_platform(run, Catalogue::in_reports()) {
            Tagged::Platform(platform) => Some(platform),
            Tagged::Nearly(_) | Tagged::Nothing => None,
        };
        let cell =
            |of: &fn(&Combination, &Run, &Step) -> Cell| platform.as_ref().map_or(Cell::Absent, |it| of(it, run, step));
        self.columns.iter().map(|(_, of)| cell(of)).collect()
    }
}

/// What distinguishes rows, then I/O per second and the share of waits in each bucket.
pub(super) fn matrix(runs: &[Run]) -> Sheet {
    let labels = Labels::of(runs);
    let all_reads = || steps(runs).flat_map(|(_, step)| single_block_reads(step));
    let buckets = Columns::covering(all_reads().map(|reads| &reads.waits));

    let mut columns = labels.columns();
    let platforms = Platforms::of(runs, &labels);
    columns.extend(platforms.columns());
    columns.push("IOPS_RESULT".to_owned());
    // SLOB's users know the heading as that of one event. Where there are others, each row names its own.
    let names_events = all_reads().any(|reads| reads.event != SINGLE_BLOCK_READ);
    columns.extend(
        if names_events { vec!["READ_EVENT", "READ_WAITS"] } else { vec!["DB_S_R_WAIT"] }
            .into_iter()
            .map(str::to_owned),
    );
    columns.push("P99_US".to_owned());
    let shares_from = columns.len();
    columns.extend(buckets.headings());

    let row = |run: &Run, step: &Step, reads: Option<&WaitStats>| {
        let mut row = labels.cells(run, step);
        row.extend(platforms.cells(run, step));
        row.push(Cell::shown(Figures(step).physical_io_per_s(), group_thousands));
        if names_events {
            row.push(reads.map_or(Cell::Absent, |reads| Cell::Text(reads.event.clone())));
        }
        row.push(Cell::shown(reads.map(|reads| reads.waits.count() as f64), awr_count));
        row.push(Cell::number(reads.and_then(|reads| known_us(&reads.waits, 0.99)), 0));
        match reads {
            Some(reads) => row.extend(buckets.shares(&reads.waits).into_iter().map(|share| {
                // Made of the share itself, so that a report and this table round it to the same digit.
                share.map_or(Cell::Unknown, |share| Cell::Number {
                    value: share * 100.0,
                    shown: buckets::cell(Some(share)),
                })
            })),
            None => row.extend(buckets.headings().iter().map(|_| Cell::Absent)),
        }
        row
    };
    let rows = steps(runs).flat_map(|(run, step)| {
        let reads = single_block_reads(step);
        let of_none = reads.is_empty().then(|| row(run, step, None));
        let of_each: Vec<_> = reads.into_iter().map(|reads| row(run, step, Some(reads))).collect();
        of_none.into_iter().chain(of_each)
    });
    Sheet { columns, rows: rows.collect(), shares_from: Some(shares_from) }
}
