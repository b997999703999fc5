//! iperf3 as text.

use super::{Side, ended_by, figure, name, ns, of_stream, rate};
use crate::draft::{reported_figure, step};
use crate::numbers::number;
use crate::{Began, Draft, ImportError, Notes, Source, interval};
use model::record::{Ending, Outcome, Step, Target, TargetKind, Timestamp, Workload};

/// Lines that may stand before the header of the intervals.
const LINES_BEFORE: usize = 400;

/// What stands before a test begins; the most of it with `-V`.
#[derive(Debug, Default)]
struct Before {
    version: String,
    began: Option<Began>,
    /// In a file the error may come before all that was buffered.
    interrupted: bool,
}

impl Before {
    /// Takes a line; whether it is one of these.
    fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("iperf 3") {
            self.version = format!("3{}", version.split_whitespace().next().unwrap_or(""));
            return true;
        }
        if let Some(time) = line.strip_prefix("Time: ") {
            // `GMT` is a zone of RFC 2822 by its old name.
            let at = jiff::fmt::rfc2822::parse(&time.replace("GMT", "+0000").replace("UTC", "+0000"));
            self.began = at.ok().map(|at| Began::Utc(Timestamp(at.timestamp())));
            return true;
        }
        false
    }
}

/// Whether a text is of iperf3. iperf 2 says `Client connecting to` and `Server listening on TCP port`.
pub(crate) fn recognises(head: &str) -> bool {
    let mut own = false;
    for line in head.lines().take(LINES_BEFORE) {
        if line.contains("Client connecting to")
            || line.contains("Server listening on TCP")
            || line.contains("Server listening on UDP")
        {
            return false;
        }
        own |= line.contains("Connecting to host ") && line.contains(", port ");
        own |= line.contains("Server listening on ")
            || (line.contains("local ") && line.contains(" connected to ") && line.contains(" port "));
        if is_header(line) {
            // Somebody may have cut off what stands before the header; rows of iperf3 have two decimals.
            return own || head.lines().take(LINES_BEFORE).filter_map(Row::of).any(|row| row.decimals == 2);
        }
    }
    false
}

/// `[ ID] Interval           Transfer     Bitrate         Retr  Cwnd`; `[ ID][Role] Interval …` with `--bidir`.
fn is_header(line: &str) -> bool {
    line.contains("[ ID]")
        && line.contains("Interval")
        && line.contains("Transfer")
        && (line.contains("Bandwidth") || line.contains("Bitrate"))
}

/// Its runs: one for each test.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut tests: Vec<Test> = Vec::new();
    let mut before = Before::default();
    let mut lines = source.lines().peekable();
    let last_line_whole = source.text().ends_with('\n');
    while let Some((line_number, line)) = lines.next() {
        let is_cut = lines.peek().is_none() && !last_line_whole;
        // What the client repeats of its server has a beginning of its own.
        let repeated = tests.last().is_some_and(|test| test.server_output);
        if line.contains("Connecting to host ") || (line.contains("Accepted connection from ") && !repeated) {
            // One that measured nothing leaves nothing.
            if tests.last().is_some_and(Test::is_empty) {
                tests.pop();
            }
            tests.push(Test::new(line, &mut before));
            continue;
        }
        if !repeated && before.line(line) {
            continue;
        }
        before.interrupted |= tests.is_empty() && line.contains("iperf3: interrupt - the client ");
        let is_row = Row::of(line);
        if tests.is_empty() && (is_header(line) || is_row.is_some() || line.contains(" connected to ")) {
            tests.push(Test::new("", &mut before));
        }
        let Some(test) = tests.last_mut() else {
            notes.unknown(line_number, line);
            continue;
        };
        match is_row {
            Some(_) if test.server_output => {}
            Some(row) => test.row(row),
            None if test.line(line) || is_cut => {}
            None if looks_like_row(line) => {
                let shown: String = line.trim().chars().take(60).collect();
                notes.not_understood(
                    line_number,
                    format!("{shown:?}; an interval with its transfer and rate was expected"),
                );
            }
            None => notes.unknown(line_number, line),
        }
    }
    let found: Vec<Draft> = tests.into_iter().filter_map(Test::draft).collect();
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no result of iperf3"));
    }
    Ok(found)
}

fn looks_like_row(line: &str) -> bool {
    line.trim_start().starts_with('[') && line.contains(" sec ") && line.contains("Bytes")
}

/// `interrupt - the client has terminated`, as the side that was stopped says it, or `the client has terminated`.
fn is_interruption(error: &str) -> bool {
    ended_by(error.trim()).0 == Outcome::Interrupted
}

/// One test.
#[derive(Debug, Default)]
struct Test {
    before: Before,
    is_server: bool,
    reversed: bool,
    peer: String,
    port: String,
    streams: u32,
    /// What the header of the intervals reported.
    header: String,
    headers: u32,
    /// Whether the line before was a row of dashes, as it stands before the summary.
    dashed: bool,
    summary: bool,
    server_output: bool,
    outcome: Option<Outcome>,
    is_udp: bool,
    rows: Vec<Row>,
    ends: Vec<Row>,
    parameters: Vec<(&'static str, String)>,
    out_of_order: Option<f64>,
    cpu: Vec<(&'static str, String, f64)>,
}

impl Test {
    fn new(line: &str, before: &mut Before) -> Self {
        let rest = line
            .split_once("Connecting to host ")
            .or_else(|| line.split_once("Accepted connection from "))
            .map_or("", |(_, rest)| rest);
        let (peer, port) = rest.split_once(", port ").unwrap_or((rest, ""));
        Self {
            before: std::mem::take(before),
            is_server: line.contains("Accepted"),
            peer: peer.trim().to_owned(),
            port: port.trim().to_owned(),
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.ends.is_empty() && self.outcome.is_none()
    }

    fn row(&mut self, mut row: Row) {
        let is_end = row.side.is_some() || self.summary;
        if let Some(alone) = row.alone {
            if self.header.contains("Retr") {
                row.retransmits = Some(alone).filter(|_| row.side != Some(Side::Received));
            } else if self.header.contains("Total Datagrams") && row.datagrams.is_none() {
                row.datagrams = Some((None, alone));
            }
        }
        if is_end { self.ends.push(row) } else { self.rows.push(row) }
    }

    /// Takes what is no row; whether it was understood.
    fn line(&mut self, line: &str) -> bool {
        let after_dashes = std::mem::replace(&mut self.dashed, line.contains("- - - "));
        if is_header(line) && !self.server_output {
            // One that was stopped writes a header before its last interval too.
            self.headers += 1;
            self.summary |= self.headers > 1 && after_dashes;
            self.is_udp |= line.contains("Datagrams");
            self.header = line.to_owned();
        } else if line.contains(" connected to ") && line.contains("local ") {
            self.streams += u32::from(!self.server_output);
        } else if line.contains("Reverse mode, remote host") {
            self.reversed = true;
        } else if line.contains("Test Complete. Summary Results") {
            self.summary = true;
        } else if line.trim() == "Server output:" {
            self.server_output = true;
        } else if let Some((_, rest)) = line.split_once("CPU Utilization: ") {
            self.cpu(rest);
        } else if let Some((_, rest)) = line.split_once("Starting Test: ") {
            self.parameters.push(("test", rest.trim().to_owned()));
            self.is_udp |= rest.contains("UDP");
        } else if let Some((_, error)) = line.split_once("iperf3: error - ") {
            self.outcome = Some(ended_by(error.trim()).0);
        } else if let Some((_, error)) = line.split_once("iperf3: ").filter(|(_, error)| is_interruption(error)) {
            // Between tests a server is ended in no other way.
            if !self.is_server || self.ends.is_empty() {
                self.outcome = Some(ended_by(error.trim()).0);
            }
        } else if line.contains("iperf Done.") {
            self.server_output = false;
        } else if let Some((count, _)) = line.split_once(" datagrams received out-of-order") {
            self.out_of_order = count.split_whitespace().next_back().and_then(number);
        } else {
            return false;
        }
        true
    }

    /// `local/sender 1.9% (0.1%u/1.8%s), remote/receiver 4.2% (0.2%u/4.0%s)`. A server prints this before its client has reported:
    /// zeros, or figures of the test before.
    fn cpu(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let side = match word.split('/').next() {
                Some("local") => ("client", "host"),
                Some("remote") if !self.is_server => ("server", "remote"),
                _ => continue,
            };
            let percent = |text: &str| {
                number(text.trim_end_matches(['%', ',', ')', 'u', 's']).trim_end_matches('%').trim_start_matches('('))
            };
            self.cpu.extend(
                words.next().and_then(percent).map(|percent| (side.0, format!("{} total CPU", side.1), percent)),
            );
            let parts = words.next().and_then(|parts| parts.split_once('/'));
            if let Some((user, system)) = parts {
                self.cpu.extend(percent(user).map(|percent| (side.0, format!("{} user CPU", side.1), percent)));
                self.cpu.extend(percent(system).map(|percent| (side.0, format!("{} system CPU", side.1), percent)));
            }
        }
    }

    /// The side that the intervals are of: a sender of TCP counts retransmits where the system reports them, a receiver of UDP has
    /// jitter; else a client sends unless the test is reversed.
    fn local(&self) -> Side {
        let rows = |is: fn(&Row) -> bool| self.rows.iter().any(is);
        if rows(|row| row.jitter_ms.is_some()) {
            Side::Received
        } else if rows(|row| row.retransmits.is_some() || row.datagrams.is_some_and(|(lost, _)| lost.is_none())) {
            Side::Sent
        } else if self.is_server || self.reversed {
            Side::Received
        } else if self.peer.is_empty() {
            Side::Unreported
        } else {
            Side::Sent
        }
    }

    fn draft(self) -> Option<Draft> {
        if self.is_empty() {
            return None;
        }
        let protocol = if self.is_udp { "UDP" } else { "TCP" };
        let title = match (self.peer.as_str(), self.is_server) {
            ("", _) => "iperf3".to_owned(),
            (peer, true) => format!("{protocol} from {peer}"),
            (peer, false) => format!("{protocol} to {peer}"),
        };
        let mut draft = Draft::new(Workload::Network, "iperf3", title);
        draft.version.clone_from(&self.before.version);
        draft.began = self.before.began;
        draft.parameters = self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if !self.rows.is_empty() || !self.ends.is_empty() {
            draft.parameters.insert("protocol".to_owned(), protocol.to_owned());
        }
        if !self.peer.is_empty() {
            // The port of a client means nothing.
            let port = if self.is_server { "" } else { self.port.as_str() };
            let address =
                [self.peer.as_str(), port].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":");
            draft.target = Target { kind: Some(TargetKind::Network), address, ..Target::default() };
        }
        let mut step = step(0, "iperf3", 0);
        step.load.sessions = Some(self.streams).filter(|streams| *streams > 0);
        self.intervals(&mut step);
        self.results(&mut step, &mut draft.notes);
        step.outcome = match self.outcome {
            Some(outcome) => outcome,
            None if self.before.interrupted => Outcome::Interrupted,
            None if self.ends.is_empty() => {
                draft.notes.push("There is no summary: the test did not end, or the file was cut off.".to_owned());
                Outcome::Interrupted
            }
            None => Outcome::Completed,
        };
        step.window.ending = match &step.outcome {
            Outcome::Failed { .. } => Ending::Failure,
            Outcome::Interrupted => Ending::Interrupt,
            _ => Ending::Unknown,
        };
        draft.notes.push("iperf3 rounds figures to three digits in its text.".to_owned());
        draft.steps = vec![step];
        Some(draft)
    }

    /// Intervals by the sums of all streams, or by the only stream. The clock begins anew after omitted ones.
    fn intervals(&self, step: &mut Step) {
        let side = self.local();
        let several = self.rows.iter().any(|row| row.sum);
        // Where there are sums, those of the streams stand before them.
        let rows = self.rows.iter().filter(|row| several || (!row.sum && (self.streams <= 1 || row.role.is_some())));
        let mut key = None;
        for row in rows {
            let now = (row.from_s, row.to_s, row.omitted);
            if key != Some(now) {
                let (offset_ns, duration_ns) =
                    (step.window.warmup_ns.saturating_add(step.window.duration_ns), ns(row.seconds()));
                let mut interval = interval::of(step, offset_ns, duration_ns);
                interval.warmup = row.omitted;
                step.intervals.push(interval);
                let sum = if row.omitted { &mut step.window.warmup_ns } else { &mut step.window.duration_ns };
                *sum = sum.saturating_add(duration_ns);
                key = Some(now);
            }
            let Some(interval) = step.intervals.last_mut() else { continue };
            let reverse = row.role == Some(true);
            let side = match row.role {
                Some(reverse) if reverse == self.is_server => Side::Sent,
                Some(_) => Side::Received,
                None => side,
            };
            let of_way = |name: &str| format!("{}{name}", if reverse { "reverse " } else { "" });
            let mut figures =
                vec![(name(reverse, side, "bits/s"), row.bits_per_s), (name(reverse, side, "bytes"), row.bytes)];
            figures.extend(row.retransmits.map(|count| (of_way("retransmits"), count)));
            figures.extend(row.cwnd_bytes.map(|bytes| (of_way("cwnd"), bytes)));
            figures.extend(row.jitter_ms.map(|ms| (of_way("jitter"), ms)));
            if let Some((lost, all)) = row.datagrams {
                figures.push((of_way("datagrams"), all));
                figures.extend(lost.map(|lost| (of_way("lost datagrams"), lost)));
            }
            match row.stream.filter(|_| several) {
                Some(stream) => {
                    interval
                        .reported
                        .extend(figures.into_iter().map(|(name, value)| (of_stream(stream, &name), value)));
                }
                None => interval.reported.extend(figures),
            }
        }
        step.window.offset_ns = step.window.warmup_ns;
    }

    /// What the summary reports. Of a side that reports nothing while the other one does, nothing is known.
    fn results(&self, step: &mut Step, notes: &mut Vec<String>) {
        let several = self.ends.iter().any(|row| row.sum);
        let ends: Vec<&Row> = self.ends.iter().filter(|row| row.sum == several).collect();
        let only = several || self.streams <= 1 || self.ends.iter().all(|row| row.role.is_some());
        let anything = ends.iter().any(|row| row.bytes > 0.0) || self.rows.iter().any(|row| row.bytes > 0.0);
        for row in ends.iter().filter(|_| only) {
            let reverse = row.role == Some(true);
            let side = row.side.unwrap_or(Side::Unreported);
            let of_way = |name: &str| format!("{}{name}", if reverse { "reverse " } else { "" });
            if row.bytes > 0.0 || !anything {
                step.reported.push(rate(reverse, side, row.bits_per_s));
                step.reported.push(figure(name(reverse, side, "bytes"), "bytes", row.bytes));
            }
            let mut once = |name: String, unit: &str, value: Option<f64>| {
                if let Some(value) = value
                    && !step.reported.iter().any(|figure| figure.name == name)
                {
                    step.reported.push(figure(name, unit, value));
                }
            };
            once(of_way("retransmits"), "", row.retransmits);
            // The sender's row of UDP has zeros for what only the receiver knows, and so has the receiver's if it reported nothing.
            let known = row.side != Some(Side::Sent) && row.datagrams.is_some_and(|(_, all)| all > 0.0 || !anything);
            if let (Some((lost, all)), true) = (row.datagrams, known) {
                once(of_way("jitter"), "ms", row.jitter_ms);
                once(of_way("datagrams"), "", Some(all));
                once(of_way("lost datagrams"), "", lost);
                once(of_way("lost"), "%", lost.filter(|_| all > 0.0).map(|lost| lost / all * 100.0));
            }
            let window_ns = ns(row.seconds());
            if row.side != Some(Side::Received)
                || !ends.iter().any(|row| row.side == Some(Side::Sent) && row.bytes > 0.0)
            {
                step.window.duration_ns = window_ns;
            }
        }
        let rated = step.reported.iter().any(|figure| figure.unit == "bits/s");
        for row in self.ends.iter().filter(|row| several && row.bytes > 0.0) {
            let Some(stream) = row.stream else { continue };
            let side = row.side.unwrap_or(Side::Unreported);
            let way = if row.role == Some(true) { "reverse " } else { "" };
            let mut push = |name: String, unit: &str, value: Option<f64>| {
                let name = of_stream(stream, &name);
                step.reported.extend(value.map(|value| figure(name, unit, value)));
            };
            push(name(row.role == Some(true), side, "bits/s"), "bits/s", Some(row.bits_per_s));
            push(name(row.role == Some(true), side, "bytes"), "bytes", Some(row.bytes));
            push(format!("{way}retransmits"), "", row.retransmits);
            // The sender's row of UDP has zeros for what only the receiver knows.
            if let Some((lost, all)) = row.datagrams.filter(|_| row.side != Some(Side::Sent)) {
                push(format!("{way}jitter"), "ms", row.jitter_ms);
                push(format!("{way}datagrams"), "", Some(all));
                push(format!("{way}lost datagrams"), "", lost);
            }
        }
        if !rated && !step.intervals.is_empty() {
            let names: std::collections::BTreeSet<String> = step
                .intervals
                .iter()
                .flat_map(|interval| interval.reported.keys())
                .filter(|name| name.ends_with("bits/s"))
                .cloned()
                .collect();
            for name in names {
                let counted = step.intervals.iter().filter(|interval| !interval.warmup);
                let known = counted.filter_map(|interval| Some((interval.reported.get(&name)?, interval.duration_ns)));
                let (sum, seconds) = known.fold((0.0, 0.0), |(sum, seconds), (rate, length_ns)| {
                    let length_s = length_ns as f64 / 1e9;
                    (sum + rate * length_s, seconds + length_s)
                });
                if seconds > 0.0 {
                    step.reported.push(figure(name, "bits/s", sum / seconds));
                }
            }
            notes.push("The summary reports no rate: it is the average of the intervals.".to_owned());
        }
        step.reported.extend(self.out_of_order.map(|count| figure("out of order datagrams", "", count)));
        step.reported
            .extend(self.cpu.iter().map(|(layer, name, percent)| reported_figure(layer, name.clone(), "%", *percent)));
    }
}

/// One line of figures.
#[derive(Debug, Clone, Default)]
struct Row {
    pub(super) sum: bool,
    /// The number of its stream, unless it is the sum of all.
    pub(super) stream: Option<u64>,
    /// Whether it is of the way back, with `--bidir`; absent without.
    pub(super) role: Option<bool>,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// Digits after the point of the interval.
    pub(super) decimals: usize,
    pub(super) bytes: f64,
    pub(super) bits_per_s: f64,
    pub(super) retransmits: Option<f64>,
    pub(super) cwnd_bytes: Option<f64>,
    pub(super) jitter_ms: Option<f64>,
    /// Lost, and all.
    pub(super) datagrams: Option<(Option<f64>, f64)>,
    pub(super) side: Option<Side>,
    pub(super) omitted: bool,
    /// A number alone: retransmits or datagrams, which the header reports.
    pub(super) alone: Option<f64>,
}

impl Row {
    /// `[  5]   0.00-1.00   sec  6.06 GBytes  52.1 Gbits/sec    0    595 KBytes`, also behind a time.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (id, rest) = bracket(line)?;
        let mut row = Self { sum: id == "SUM", stream: id.parse().ok(), ..Self::default() };
        let rest = match rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // TX and RX of the client or the server: data goes from the client to the server in TX-C and RX-S.
            Some((role, rest)) => {
                row.role = Some(matches!(role, "RX-C" | "TX-S"));
                rest
            }
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        row.decimals = from.split_once('.').map_or(0, |(_, digits)| digits.len());
        (row.from_s, row.to_s) = (number(from)?, number(to)?);
        if words.next()? != "sec" {
            return None;
        }
        row.bytes = (number(words.next()?)? * bytes_of(words.next()?)?).round();
        row.bits_per_s = (number(words.next()?)? * bits_of(words.next()?)?).round();
        let mut last = None;
        for word in words.take(16) {
            match (word, last) {
                ("sender", _) => row.side = Some(Side::Sent),
                ("receiver", _) => row.side = Some(Side::Received),
                ("(omitted)", _) => row.omitted = true,
                ("ms", Some(ms)) => row.jitter_ms = Some(ms),
                (word, Some(size)) if bytes_of(word).is_some() => {
                    row.cwnd_bytes = bytes_of(word).map(|unit| (size * unit).round())
                }
                (word, _) if word.contains('/') => {
                    let (lost, all) = word.split_once('/')?;
                    row.datagrams = number(lost).zip(number(all)).map(|(lost, all)| (Some(lost), all));
                }
                (word, Some(alone)) if number(word).is_some() => row.alone = row.alone.or(Some(alone)),
                _ => {}
            }
            let before = last;
            last = number(word);
            if last.is_none()
                && before.is_some()
                && row.alone.is_none()
                && matches!(word, "sender" | "receiver" | "(omitted)")
            {
                row.alone = before;
            }
        }
        row.alone = row.alone.or(last);
        (row.to_s >= row.from_s).then_some(row)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// What stands in the first brackets that hold the number of a stream or `SUM`, and what follows.
fn bracket(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    for _ in 0..3 {
        let (id, after) = rest.split_once('[')?.1.split_once(']')?;
        let id = id.trim();
        if id == "SUM" || (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())) {
            return Some((id, after));
        }
        rest = after;
    }
    None
}

/// Bytes are counted in powers of 1024.
fn bytes_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "Bytes" => 1.0,
        "KBytes" => 1_024.0,
        "MBytes" => 1_048_576.0,
        "GBytes" => 1_073_741_824.0,
        "TBytes" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// Bits are counted in powers of 1000, unless `-f` asked for bytes.
fn bits_of(unit: &str) -> Option<f64> {
    Some(match unit.strip_suffix("/sec")? {
        "bits" => 1.0,
        "Kbits" => 1e3,
        "Mbits" => 1e6,
        "Gbits" => 1e9,
        "Tbits" => 1e12,
        bytes => bytes_of(bytes)? * 8.0,
    })
}
