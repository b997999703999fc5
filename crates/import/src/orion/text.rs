//! The summary, what ORION prints, and its histograms, line by line.

use super::super::draft::reported_figure;
use super::super::numbers::{duration_ns, number, whole_number};
use super::super::spool::clean;
use super::super::{Draft, ImportError, Notes, Source};
use super::assemble::{KINDS, Latency, Load, Parameters, Points, began_by_name, file_stem, short};
use super::{FIGURES, Figure, HISTOGRAM, MAX_RUNS, Point, Rows};
use model::record::{FileFacts, LunFacts, Metric, Target, TargetFacts, TargetKind, Workload};

/// Latencies of small and large reads and writes; first letters may be missing.
const LATENCIES: [&str; 4] =
    ["mall Read Latency: avg", "mall Write Latency: avg", "arge Read Latency: avg", "arge Write Latency: avg"];
/// What a summary says of the test.
const SETTINGS: [&str; 14] = [
    "Small IO size",
    "Large IO size",
    "IO Types",
    "Number of Concurrent IOs Per Stream",
    "Simulated Array Type",
    "Stripe Depth",
    "Cache Size",
    "Duration for each Data Point",
    "Small Columns",
    "Large Columns",
    "Total Data Points",
    "Test",
    "Write",
    "Name",
];
/// No walk has more points.
const MAX_POINTS: usize = 50_000;
/// Requests outstanding of a sequential stream, unless the command line says otherwise.
const DEFAULT_STREAM: u32 = 4;
/// Words of a command line that are kept.
const MAX_WORDS: usize = 100;

/// One invocation of ORION in the making.
#[derive(Default)]
struct OrionInvocation {
    version: String,
    /// Whether Plimsoll wrote it in ORION's layout.
    is_plimsoll: bool,
    command: Vec<String>,
    testname: Option<String>,
    parameters: Parameters,
    is_sequential: Option<bool>,
    requests_per_stream: Option<u32>,
    load: Load,
    devices: Vec<(String, u64)>,
    points: Points,
    /// Which figures there were: a second one of a kind belongs to the next invocation.
    seen: Vec<Figure>,
    /// The point and size whose histogram is being read.
    histogram: Option<(Point, usize)>,
    has_unit: Option<bool>,
}

/// A run for each invocation of the file.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut drafts = Vec::new();
    let mut reading = OrionInvocation::default();
    let mut is_command = false;
    let last = source.lines().filter(|(_, text)| !text.trim().is_empty()).last().map_or(0, |(line, _)| line);
    for (line, text) in source.lines() {
        if drafts.len() > MAX_RUNS || reading.points.len() > MAX_POINTS {
            return Err(ImportError::damaged(source, line, "it holds more results than any walk of ORION"));
        }
        let text = clean(text);
        if text.contains("RION VERSION") || text.contains("acle IO Numbers") {
            let before = std::mem::take(&mut reading);
            if before.points.is_empty() {
                // A prompt with the command line stands above what ORION prints.
                reading.set_command(before.command);
            } else {
                drafts.push(before.into_draft(source)?);
            }
            reading.set_version(&text);
            continue;
        }
        if is_command {
            if text.trim().is_empty() {
                continue;
            }
            is_command = false;
            reading.set_command(text.split_whitespace().take(MAX_WORDS).map(str::to_owned).collect());
            continue;
        }
        if text.trim_end().ends_with("ommandline:") {
            is_command = true;
            continue;
        }
        let figures = segments(&text);
        if figures.is_empty() {
            reading.other(line, &text, notes);
            continue;
        }
        for segment in figures {
            if let Segment::Figure(figure, _) = &segment {
                if reading.seen.contains(figure) {
                    drafts.push(std::mem::take(&mut reading).into_draft(source)?);
                }
                reading.seen.push(*figure);
            }
            if !reading.segment(&segment) {
                let what = format!("`{}`: a figure and its point were expected", short(segment.text()));
                if line == last {
                    return Err(ImportError::damaged(source, line, what));
                }
                notes.not_understood(line, what);
            }
        }
    }
    if !reading.points.is_empty() {
        drafts.push(reading.into_draft(source)?);
    }
    if drafts.is_empty() {
        return Err(ImportError::damaged(source, None, "no figure of it was understood"));
    }
    Ok(drafts)
}

/// A part of a line that reports something of a point. Copies have several in one line.
enum Segment {
    Figure(Figure, String),
    Latency(usize, String),
    Histogram(usize, String),
}

impl Segment {
    fn text(&self) -> &str {
        match self {
            Self::Figure(_, text) | Self::Latency(_, text) | Self::Histogram(_, text) => text,
        }
    }
}

fn segments(line: &str) -> Vec<Segment> {
    // Articles print what matters in bold.
    let line = line.replace('*', "");
    let mut begins: Vec<(usize, usize)> = Vec::new();
    let markers = FIGURES.iter().map(|(marker, _)| *marker).chain(LATENCIES).chain(["mall Read", "arge Read"]);
    for (number, marker) in markers.enumerate() {
        begins.extend(line.match_indices(marker).map(|(at, _)| (at, number)));
    }
    begins.sort_unstable();
    // The longer marker that begins at the same place comes first.
    begins.dedup_by_key(|(at, _)| *at);
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([line.len()]);
    let mut segments = Vec::new();
    for ((at, number), end) in begins.iter().zip(ends) {
        let text = line.get(*at..end).unwrap_or_default().to_owned();
        match *number {
            0..3 => segments.extend(FIGURES.get(*number).map(|(_, figure)| Segment::Figure(*figure, text))),
            3..7 => segments.push(Segment::Latency(number - 3, text)),
            number if text.contains(HISTOGRAM) => segments.push(Segment::Histogram(number - 7, text)),
            _ => {}
        }
    }
    segments
}

impl OrionInvocation {
    fn set_version(&mut self, banner: &str) {
        let after = banner.split_once("ERSION").or_else(|| banner.split_once("ersion")).map_or("", |(_, rest)| rest);
        self.is_plimsoll = after.contains("written by");
        let word = after.split_whitespace().next().unwrap_or_default();
        let word = word.strip_prefix("RDBMS_").unwrap_or(word);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            self.version = word.to_owned();
        }
    }

    /// The words after the name of the program.
    fn set_command(&mut self, words: Vec<String>) {
        let after = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).cloned()
        };
        for (option, key) in [("-run", "RUN"), ("-num_disks", "NUM_DISKS"), ("-matrix", "MATRIX")] {
            if let Some(value) = after(option) {
                self.parameters.insert(key.to_owned(), value);
            }
        }
        // Without the option large requests are random.
        let is_sequential = (!words.is_empty()).then(|| after("-type").is_some_and(|kind| kind == "seq"));
        self.is_sequential = self.is_sequential.or(is_sequential);
        self.requests_per_stream =
            self.requests_per_stream.or_else(|| after("-num_streamIO").and_then(|number| number.parse().ok()));
        self.command = words;
    }

    fn other(&mut self, line: u64, text: &str, notes: &mut Notes) {
        if let Some((point, size)) = self.histogram {
            if let Some(rows) = self.points.at(point).histograms.get_mut(size)
                && (rows.take(line, text) || text.contains("# of IOs"))
            {
                return;
            }
            let is_row = text.contains("us:") && text.contains('-');
            if is_row {
                let what = format!("`{}`: a row of a histogram was expected", short(text));
                notes.not_understood(line, what);
                return;
            }
            self.histogram = None;
        }
        // `$ $ORACLE_HOME/bin/orion -run simple -testname san`
        let call = text.split_once(" -run ").and_then(|(before, _)| before.rfind("orion"));
        if let Some(options) = call.and_then(|at| text.get(at..)) {
            let words = options.split_whitespace().skip_while(|word| !word.starts_with('-'));
            self.set_command(words.take(MAX_WORDS).map(str::to_owned).collect());
            return;
        }
        if self.testname.is_none() && began_by_name(text.trim(), false).is_some() && !text.trim().contains(' ') {
            self.testname = Some(text.trim().to_owned());
            return;
        }
        // A log may have put something before it.
        let setting = SETTINGS.iter().find_map(|name| {
            let (before, value) = text.split_once(name)?;
            let value = value.strip_prefix(':')?;
            (before.is_empty() || before.ends_with(' ')).then_some((*name, value))
        });
        if let Some((name, value)) = setting {
            self.setting(name, value.trim());
        } else {
            notes.unknown(line, text);
        }
    }

    fn setting(&mut self, name: &str, value: &str) {
        let mut set = |key: &str, value: String| {
            self.parameters.insert(key.to_owned(), value);
        };
        let kilobytes =
            |value: &str| value.split_once(' ').filter(|(_, unit)| *unit == "KB").map(|(size, _)| size.to_owned());
        let columns =
            |value: &str| value.split(',').map(str::trim).filter(|load| !load.is_empty()).collect::<Vec<_>>().join(",");
        match name {
            "Test" => set("TESTNAME", value.to_owned()),
            "Small IO size" => {
                if let Some(size) = kilobytes(value) {
                    self.load.small_bytes = whole_number(&size).and_then(|size| size.checked_mul(1_024));
                    set("SMALL_SIZE", format!("{size}K"));
                }
            }
            "Large IO size" => {
                if let Some(size) = kilobytes(value) {
                    set("LARGE_SIZE", format!("{size}K"));
                }
            }
            "IO Types" => {
                let is_sequential = value.to_ascii_lowercase().contains("sequential");
                set("TYPE", if is_sequential { "seq" } else { "rand" }.to_owned());
                self.is_sequential = Some(is_sequential);
            }
            "Number of Concurrent IOs Per Stream" => self.requests_per_stream = value.parse().ok(),
            "Simulated Array Type" => {
                set("SIMULATE", if value.starts_with("RAID") { "raid0" } else { "concat" }.to_owned());
            }
            "Stripe Depth" => {
                if let Some(size) = kilobytes(value) {
                    set("STRIPE", format!("{size}K"));
                }
            }
            "Write" => {
                self.load.write_pct = number(value.trim_end_matches('%'));
                set("WRITE_PCT", value.trim_end_matches('%').to_owned());
            }
            "Cache Size" => set("CACHE_SIZE", value.to_owned()),
            "Duration for each Data Point" => {
                let (seconds, unit) = value.split_once(' ').unwrap_or((value, "seconds"));
                if let Some(seconds) = whole_number(seconds).filter(|_| unit.starts_with("second")) {
                    self.load.duration_ns = seconds.saturating_mul(1_000_000_000);
                    set("DURATION_S", seconds.to_string());
                }
            }
            "Small Columns" => set("SMALL_COLUMNS", columns(value)),
            "Large Columns" => set("LARGE_COLUMNS", columns(value)),
            "Total Data Points" => set("DATA_POINTS", value.to_owned()),
            "Name" => {
                if let Some((path, size)) = value.rsplit_once("Size:") {
                    self.devices.extend(whole_number(size).map(|bytes| (path.trim().to_owned(), bytes)));
                }
            }
            _ => {}
        }
    }

    /// Whether it was understood.
    fn segment(&mut self, segment: &Segment) -> bool {
        self.histogram = None;
        let Some(point) = Point::of(segment.text().split_once('@').map_or("", |(_, point)| point)) else {
            return false;
        };
        match segment {
            Segment::Figure(figure, text) => self.figure(*figure, text, point),
            Segment::Latency(kind, text) => self.latency(*kind, text, point),
            Segment::Histogram(size, _) => {
                let rows = self.points.at(point).histograms.get_mut(*size);
                if let Some(rows) = rows {
                    // What ORION prints twice counts once.
                    *rows = Rows::default();
                }
                self.histogram = Some((point, *size));
                true
            }
        }
    }

    fn figure(&mut self, figure: Figure, text: &str, point: Point) -> bool {
        let Some(value) = text.split_once('=').and_then(|(_, rest)| rest.split('@').next()) else { return false };
        let (value, unit) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
        let Some(value) = number(value) else { return false };
        let extreme = match figure {
            Figure::Megabytes => reported_figure("OS file", "Maximum Large MBPS", "MB/s", value),
            Figure::Requests => {
                self.points.at(point).small_per_s = Some(value);
                reported_figure("OS file", "Maximum Small IOPS", "/s", value)
            }
            Figure::Latency => {
                let factor = match unit.trim().trim_matches(['(', ')']) {
                    "us" | "usec" | "usecs" => 1.0,
                    "ms" | "msec" | "msecs" => 1_000.0,
                    "" if prints_microseconds(&self.version) => 1.0,
                    "" => 1_000.0,
                    _ => return false,
                };
                self.has_unit = Some(!unit.is_empty());
                reported_figure("OS file", "Minimum Small Latency", "us", value * factor)
            }
        };
        self.points.at(point).reported.push(figure.known(extreme, point));
        true
    }

    fn latency(&mut self, kind: usize, text: &str, point: Point) -> bool {
        let Some((_, list)) = text.split_once(':') else { return false };
        let list = list.split('@').next().unwrap_or_default();
        let of = |name: &str| {
            let part = list.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))?;
            Some(duration_ns(part)? / 1e3)
        };
        let Some(mean) = of("avg") else { return false };
        let latency = Latency { mean: Some(mean), min: of("min"), max: of("max") };
        let deviation = of("std dev");
        let at = self.points.at(point);
        if let (Some(place), Some(name)) = (at.latencies.get_mut(kind), KINDS.get(kind)) {
            let is_new = place.mean.is_none();
            *place = latency;
            let of_reads = |metric| (*name == "read").then_some(metric);
            let figures = [
                ("avg", Some(mean), of_reads(Metric::ReadTime)),
                ("min", latency.min, None),
                ("max", latency.max, of_reads(Metric::ReadTimeMax)),
                ("std dev", deviation, None),
            ];
            for (figure, value, metric) in figures.into_iter().filter(|_| is_new) {
                let named = |us| reported_figure("OS file", format!("{name} latency {figure}"), "us", us);
                at.reported.extend(value.map(|us| named(us).is(metric, 1e-3)));
            }
        }
        true
    }

    fn into_draft(mut self, source: &Source) -> Result<Draft, ImportError> {
        for reported in self.points.iter() {
            for rows in reported.histograms.iter().filter(|rows| !rows.is_empty()) {
                rows.check(source)?;
            }
        }
        let named = self.testname.as_deref().or(file_stem(source.path()));
        let testname = self.parameters.get("TESTNAME").cloned();
        let title = testname.or_else(|| self.testname.clone()).unwrap_or_else(|| "ORION".to_owned());
        let mut draft = Draft::new(Workload::Orion, "ORION", title);
        draft.began =
            named.and_then(|name| began_by_name(name.strip_suffix("_summary").unwrap_or(name), self.is_plimsoll));
        draft.version = self.version;
        if self.is_plimsoll {
            draft.notes.push("Plimsoll wrote this in ORION's layout; its MBPS are units of 2^20 bytes".to_owned());
        } else if self.seen.contains(&Figure::Megabytes) {
            draft
                .notes
                .push("ORION does not report whether its MBPS are units of 2^20 or of 1,000,000 bytes".to_owned());
        }
        if self.has_unit == Some(false) {
            draft.notes.push(unit_note(&draft.version).to_owned());
        }
        if !self.command.is_empty() {
            draft.command = std::iter::once("orion".to_owned()).chain(self.command).collect();
        }
        self.load.requests_per_large = match self.is_sequential {
            Some(true) => self.requests_per_stream.or((!draft.command.is_empty()).then_some(DEFAULT_STREAM)),
            Some(false) => Some(1),
            None => None,
        };
        if let Some(requests) = self.requests_per_stream {
            self.parameters.insert("NUM_STREAMIO".to_owned(), requests.to_string());
        }
        draft.target = target(&self.devices, self.load.small_bytes);
        self.points.into_steps(&mut draft, &self.load);
        draft.parameters = self.parameters;
        Ok(draft)
    }
}

/// Whether a release is one that prints microseconds, from 11.2 on.
fn prints_microseconds(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(11), Some(2))
}

/// In which unit a latency without one was read, and why.
fn unit_note(version: &str) -> &'static str {
    match version {
        "" => {
            "the latency has neither a unit nor a version there. It is read as milliseconds: ORION up to 11.1 prints \
            those without a unit, and later releases name theirs"
        }
        version if prints_microseconds(version) => {
            "the latency has no unit there: it is taken for microseconds, as ORION prints it from 11.2 on"
        }
        _ => "the latency has no unit there: ORION up to 11.1 prints milliseconds",
    }
}

fn target(devices: &[(String, u64)], small_bytes: Option<u64>) -> Target {
    if devices.is_empty() {
        return Target { block_bytes: small_bytes, ..Target::default() };
    }
    let luns = devices.iter().map(|(path, bytes)| LunFacts { path: path.clone(), bytes: *bytes }).collect();
    Target {
        kind: Some(TargetKind::Block),
        address: devices.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>().join(","),
        block_bytes: small_bytes,
        data_bytes: Some(devices.iter().fold(0, |sum, (_, bytes)| bytes.saturating_add(sum))),
        facts: TargetFacts { files: FileFacts { luns, ..FileFacts::default() }, ..TargetFacts::default() },
        ..Target::default()
    }
}
