//! oratcptest of Oracle, which times messages between two hosts as Data Guard would send them.

use super::draft::{reported_figure, step, whole};
use super::numbers::{number, ungrouped};
use super::{Draft, ImportError, Notes, Source, interval};
use model::record::{Ending, Metric, Outcome, Step, Target, TargetKind, Workload};

/// Whether a text is of its client; the server prints no results.
pub(super) fn recognises(head: &str) -> bool {
    let mut requested = false;
    head.lines().take(400).any(|line| {
        requested |= line.contains("[Requesting a test]");
        requested
            && (setting(line).is_some_and(|(name, _)| name == "Transport mode") || line.contains("1 Mbyte = 1024x1024"))
    })
}

/// Its runs: one for each request; tests that are repeated with `-freq` are steps.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut requests: Vec<ClientRequest> = Vec::new();
    let mut command = Vec::new();
    for (line_number, line) in source.lines() {
        if let Some(found) = command_of(line) {
            command = found;
        }
        if line.contains("[Requesting a test]") {
            requests.push(ClientRequest { command: std::mem::take(&mut command), ..ClientRequest::default() });
        } else if let Some(request) = requests.last_mut()
            && let Err(what) = request.line(line)
        {
            notes.not_understood(line_number, what);
        } else if clock(line).is_none() && setting(line).is_none() {
            notes.unknown(line_number, line);
        }
    }
    let found: Vec<Draft> = requests.into_iter().filter_map(ClientRequest::draft).collect();
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no result of oratcptest"));
    }
    Ok(found)
}

/// `java -jar oratcptest.jar 10.0.2.2 -mode=sync …` after a prompt.
fn command_of(line: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().take(60).collect();
    let jar = words.iter().position(|word| word.rsplit('/').next() == Some("oratcptest.jar"))?;
    let from = words.get(..jar)?.iter().position(|word| word.rsplit('/').next() == Some("java")).unwrap_or(jar);
    Some(words.get(from..)?.iter().map(|word| (*word).to_owned()).collect())
}

/// `Transport mode         = SYNC`.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let name = name.trim();
    (!name.is_empty() && !name.starts_with('(') && name.len() < 40).then_some((name, value.trim()))
}

/// Seconds of `(18:08:20)`, and what follows.
fn clock(line: &str) -> Option<(f64, &str)> {
    let (time, rest) = line.trim_start().strip_prefix('(')?.split_once(')')?;
    let mut parts = time.split(':').map(|part| part.trim().parse::<u8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    Some(((f64::from(hour) * 60.0 + f64::from(minute)) * 60.0 + f64::from(second), rest.trim()))
}

/// `1 minute 30 seconds`, `10 seconds`.
fn seconds_of(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let mut seconds = None;
    while let Some(word) = words.next() {
        let unit_s = match words.next()?.trim_end_matches([',', 's']) {
            "millisecond" | "m" => 1e-3,
            "second" | "sec" => 1.0,
            "minute" | "min" => 60.0,
            "hour" => 3_600.0,
            "day" => 86_400.0,
            _ => return None,
        };
        *seconds.get_or_insert(0.0) += number(word)? * unit_s;
    }
    seconds
}

/// A rate in bytes per second; 1 Mbyte = 1024x1024 bytes.
fn rate_of(value: &str, unit: &str) -> Option<f64> {
    let factor = match unit.to_ascii_lowercase().strip_suffix("/s")?.trim_end_matches('s') {
        "byte" => 1.0,
        "kbyte" => 1_024.0,
        "mbyte" => 1_048_576.0,
        "gbyte" => 1_073_741_824.0,
        _ => return None,
    };
    // A damaged figure may be larger than a rate can be.
    Some(ungrouped(value)? * factor).filter(|rate| rate.is_finite())
}

/// A time in milliseconds.
fn latency_of(value: &str, unit: &str) -> Option<f64> {
    super::numbers::duration_ns(&format!("1{unit}")).zip(ungrouped(value)).map(|(ns, value)| value * ns / 1e6)
}

/// What stands before `(disk-write 1.025 ms)`, and that time in milliseconds: with `-write` the other end says it.
fn disk_write(text: &str) -> (&str, Option<f64>) {
    let Some((before, inside)) = text.split_once("(disk-write ") else { return (text, None) };
    let time = inside.trim_end().strip_suffix(')').and_then(|time| time.split_once(' '));
    (before.trim_end(), time.and_then(|(value, unit)| latency_of(value, unit)))
}

/// `151.234 Mbytes/s`, and with SYNC also `0.250 ms`.
fn figures(text: &str) -> Option<(f64, Option<f64>)> {
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    match words.as_slice() {
        [value, unit] => Some((rate_of(value, unit)?, None)),
        [value, unit, latency, latency_unit] => Some((rate_of(value, unit)?, Some(latency_of(latency, latency_unit)?))),
        _ => None,
    }
}

/// One test.
#[derive(Debug, Default)]
struct Test {
    began_s: Option<f64>,
    /// The clock at the end of each interval, with its rate in bytes per second and its latencies in milliseconds: of all, and of writing.
    intervals: Vec<(f64, f64, [Option<f64>; 2])>,
    finished: bool,
    throughput: Option<f64>,
    latency_ms: Option<f64>,
    disk_write_ms: Option<f64>,
}

/// One request, which the client may repeat.
#[derive(Debug, Default)]
struct ClientRequest {
    command: Vec<String>,
    settings: Vec<(String, String)>,
    tests: Vec<Test>,
}

impl ClientRequest {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let expected = || {
            format!("{:?}; a throughput with its unit was expected", line.trim().chars().take(60).collect::<String>())
        };
        if let Some((at_s, rest)) = clock(line) {
            if rest.starts_with("The server is ready") || rest.contains("is ready") {
                self.tests.push(Test { began_s: Some(at_s), ..Test::default() });
            } else if let Some(test) = self.tests.last_mut() {
                if rest.starts_with("Test finished") {
                    test.finished = true;
                } else if rest.contains("bytes/s") {
                    let (rest, disk_write_ms) = disk_write(rest);
                    let (throughput, latency_ms) = figures(rest).ok_or_else(expected)?;
                    test.intervals.push((at_s, throughput, [latency_ms, disk_write_ms]));
                }
            }
        } else if let Some((name, value)) = setting(line) {
            let two = || value.split_once(' ').map(|(value, unit)| (value, unit.trim()));
            match (self.tests.last_mut(), name) {
                (Some(test), "Avg. throughput") => {
                    test.throughput = Some(two().and_then(|(value, unit)| rate_of(value, unit)).ok_or_else(expected)?);
                }
                (Some(test), "Avg. latency") => {
                    let (value, disk_write_ms) = disk_write(value);
                    let two = || value.split_once(' ').map(|(value, unit)| (value, unit.trim()));
                    test.disk_write_ms = disk_write_ms;
                    test.latency_ms =
                        Some(two().and_then(|(value, unit)| latency_of(value, unit)).ok_or_else(expected)?);
                }
                (Some(_), name) => self.settings.push((format!("{name} (used)"), value.to_owned())),
                (None, name) => self.settings.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn draft(self) -> Option<Draft> {
        let mode = self.get("Transport mode").unwrap_or("");
        let argument = |word: &&String| !word.starts_with('-') && !word.ends_with(".jar") && !word.ends_with("java");
        let host = self.command.iter().find(argument).cloned();
        let title = match (mode, &host) {
            ("", None) => "oratcptest".to_owned(),
            (mode, None) => format!("{mode} messages"),
            (mode, Some(host)) => format!("{mode} to {host}").trim_start().to_owned(),
        };
        let mut draft = Draft::new(Workload::Network, "oratcptest", title);
        let pace_s = self.get("Statistics interval").and_then(seconds_of);
        let asked_s = self.get("Test duration").and_then(seconds_of);
        let connections = self.get("Number of connections").and_then(|count| count.parse().ok());
        let tests = self.tests.iter().filter(|test| test.throughput.is_some() || !test.intervals.is_empty());
        for (index, test) in tests.enumerate() {
            let mut step = test.step(index, pace_s, asked_s);
            step.load.sessions = connections;
            draft.steps.push(step);
        }
        if draft.steps.is_empty() {
            return None;
        }
        if draft.steps.iter().any(|step| step.outcome == Outcome::Interrupted) {
            draft.notes.push("A test has no summary: it did not end, or the file was cut off.".to_owned());
        }
        if self.tests.iter().any(|test| test.latency_ms.is_some()) {
            draft
                .notes
                .push("Latency is the time from sending a message until its acknowledgement, on average.".to_owned());
        }
        let port = self.command.iter().find_map(|word| word.strip_prefix("-port="));
        if let Some(host) = host {
            let address = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
            draft.target = Target { kind: Some(TargetKind::Network), address, ..Target::default() };
        }
        draft.parameters = self.settings.into_iter().collect();
        draft.command = self.command;
        Some(draft)
    }
}

impl Test {
    fn step(&self, index: usize, pace_s: Option<f64>, asked_s: Option<f64>) -> Step {
        const DAY_S: f64 = 86_400.0;
        let label = if index == 0 { "oratcptest".to_owned() } else { format!("oratcptest {}", index + 1) };
        let mut made = step(index, label, 0);
        let mut before_s = self.began_s;
        const NAMES: [&str; 2] = ["latency", "disk write"];
        for (at_s, throughput, latencies_ms) in &self.intervals {
            // Clocks are in whole seconds: the pace that was asked is nearer, if both agree within one.
            let passed_s = before_s.map(|before_s| (at_s - before_s).rem_euclid(DAY_S));
            let length_s = match (passed_s, pace_s) {
                (Some(passed_s), Some(pace_s)) if (passed_s - pace_s).abs() <= 1.0 => pace_s,
                (Some(passed_s), _) => passed_s,
                (None, pace_s) => pace_s.unwrap_or(0.0),
            };
            before_s = Some(*at_s);
            let offset_ns = made.window.duration_ns;
            let duration_ns = whole(length_s * 1e9).unwrap_or(0);
            let mut interval = interval::of(&made, offset_ns, duration_ns);
            interval.reported.insert("throughput".to_owned(), *throughput);
            let latencies = NAMES.iter().zip(latencies_ms);
            interval.reported.extend(latencies.filter_map(|(name, ms)| Some(((*name).to_owned(), (*ms)?))));
            made.intervals.push(interval);
            made.window.duration_ns = offset_ns.saturating_add(duration_ns);
        }
        let whole_test = self.throughput.is_some();
        if let Some(asked_s) = asked_s.filter(|_| whole_test && self.finished) {
            made.window.duration_ns = whole(asked_s * 1e9).unwrap_or(0);
            made.window.ending = Ending::Time;
        }
        if !whole_test {
            made.outcome = Outcome::Interrupted;
            made.window.ending = Ending::Unknown;
        }
        made.reported.extend(self.throughput.map(|bytes_per_s| {
            reported_figure("network", "throughput", "bytes/s", bytes_per_s).is(Metric::NetworkMegabytes, 1e-6)
        }));
        let latencies = NAMES.iter().zip([self.latency_ms, self.disk_write_ms]);
        made.reported.extend(latencies.filter_map(|(name, ms)| Some(reported_figure("network", *name, "ms", ms?))));
        made
    }
}

#[cfg(test)]
mod tests {
    use model::record::{Ending, Outcome, Workload};
    use proptest::prelude::*;

    use crate::specimens::{damaged, drafts, source, survives};
    use crate::{importers, read, recognise};

    const SYNC: &str = "\
$ java -jar /tmp/oratcptest.jar db4-priv -mode=sync -duration=6s -interval=3s -port=5566 > out
[Requesting a test]
\tMessage payload        = 64 kbytes
\tNumber of connections  = 4
\tSocket send buffer     = (system default)
\tTransport mode         = SYNC
\tDisk write             = NO
\tStatistics interval    = 3 seconds
\tTest duration          = 6 seconds
\t(1 Mbyte = 1024x1024 bytes)

(23:59:57) The server is ready.
                        Throughput                 Latency
(00:00:00)         40.000 Mbytes/s                1.500 ms
(00:00:03)        512.000 Kbytes/s                2.500 ms
(00:00:03) Test finished.
\t       Socket send buffer = 166400 bytes
\t          Avg. throughput = 20.250 Mbytes/s
\t             Avg. latency = 2.000 ms

";

    #[test]
    fn a_synchronous_test_has_throughput_and_latency() {
        let draft = drafts("oratcptest", SYNC).remove(0);
        let step = &draft.steps[0];
        assert_eq!(
            (draft.workload, draft.title.as_str(), draft.target.address.as_str()),
            (Workload::Network, "SYNC to db4-priv", "db4-priv:5566")
        );
        assert_eq!(
            (step.load.sessions, step.window.duration_ns, step.window.ending),
            (Some(4), 6_000_000_000, Ending::Time)
        );
        let figures: Vec<(&str, &str, f64)> =
            step.reported.iter().map(|figure| (figure.name.as_str(), figure.unit.as_str(), figure.value)).collect();
        assert_eq!(figures, [("throughput", "bytes/s", 20.25 * 1_048_576.0), ("latency", "ms", 2.0)]);
        let last = &step.intervals[1];
        assert_eq!((last.offset_ns, last.duration_ns), (3_000_000_000, 3_000_000_000), "midnight lies before it");
        assert_eq!((last.reported["throughput"], last.reported["latency"]), (524_288.0, 2.5));
        assert_eq!(draft.parameters["Message payload"], "64 kbytes");
        assert_eq!(draft.parameters["Socket send buffer (used)"], "166400 bytes");
        assert_eq!(draft.command.last().map(String::as_str), Some(">").map(|_| "out"));
    }

    #[test]
    fn an_asynchronous_test_has_no_latency_and_repeated_tests_are_steps() {
        let line = |line: &str| {
            line.split("                1.").next().unwrap().split("                2.").next().unwrap().to_owned()
                + "\r\n"
        };
        let text: String = SYNC.lines().filter(|line| !line.contains("latency")).map(line).collect();
        let repeated =
            format!("{text}(00:01:00) The server is ready.\n(00:01:03) 10.000 Mbytes/s\n(00:01:05) 1.000 Mbytes/s\n");
        let draft = drafts("oratcptest", &repeated).remove(0);
        assert!(draft.steps[0].reported.iter().all(|figure| figure.name == "throughput"));
        let second = &draft.steps[1];
        assert_eq!(
            (second.label.as_str(), second.outcome.clone(), second.intervals.len()),
            ("oratcptest 2", Outcome::Interrupted, 2)
        );
        assert!(second.reported.is_empty(), "no average was reported");
        assert!(draft.notes.iter().any(|note| note.contains("no summary")));
    }

    #[test]
    fn several_requests_are_several_runs() {
        assert_eq!(drafts("oratcptest", &format!("{SYNC}{SYNC}")).len(), 2);
    }

    #[test]
    fn what_is_not_understood_is_noted_and_nothing_is_an_error() {
        let (_, _, notes) = read(&source(&SYNC.replace("512.000 Kbytes/s", "512.000 Xbytes/s"))).unwrap();
        assert_eq!(notes.into_list()[0].line, Some(15));
        let refused = &SYNC[..SYNC.find("(23:59:57)").unwrap()];
        assert!(read(&source(refused)).unwrap_err().to_string().contains("no result"));
        assert!(recognise("OraTcpTest server started.\n[A test was requested.]\n\tTransport mode = SYNC\n").is_none());
    }

    #[test]
    fn no_other_importer_claims_it() {
        assert_eq!(importers().iter().filter(|importer| (importer.recognises)(SYNC)).count(), 1);
    }

    proptest! {
        #[test]
        fn damaged_text_never_panics(file in damaged(&[SYNC])) {
            survives(file);
        }
    }

    #[test]
    fn a_rate_beyond_all_numbers_is_none() {
        assert_eq!(super::rate_of("1e308", "Mbytes/s"), None);
        assert_eq!(super::rate_of("2", "kbytes/s"), Some(2_048.0));
    }
}
