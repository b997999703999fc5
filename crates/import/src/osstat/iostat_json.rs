//! iostat of sysstat with `-o JSON`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::clock::{self, Day, Stamp};
use super::devices::{Invocation, Row, Sample, draft};
use super::header::Header;
use crate::{Draft, ImportError, Notes, Source};
use model::record::Environment;

/// Whether a text is of iostat with `-o JSON`. That of sar and mpstat has `cpu-load`, and `disk-device` with a hyphen.
pub(crate) fn recognises(head: &str) -> bool {
    let Some(text) = document(head) else { return false };
    let after = |name: &str| text.find(name).map(|at| text.get(at..).unwrap_or(""));
    let in_order =
        after("\"sysstat\"").is_some_and(|rest| rest.contains("\"hosts\"") && rest.contains("\"statistics\""));
    in_order && (text.contains("\"disk_device\"") || text.contains("\"avg-cpu\"") || text.contains("\"Device\""))
}

/// Whether a text is of sadf with `-j`: what sar recorded.
pub(crate) fn recognises_sar(head: &str) -> bool {
    let keys = ["\"cpu-load\"", "\"disk-device\"", "\"memfree\"", "\"cpu-load-all\""];
    document(head).is_some_and(|text| text.contains("\"statistics\"") && keys.iter().any(|key| text.contains(key)))
}

/// The text from the document on; a prompt may stand before it.
fn document(text: &str) -> Option<&str> {
    let mut from = 0;
    for line in text.split_inclusive('\n').take(10) {
        if line.trim_start().starts_with('{') {
            let rest = text.get(from..)?;
            let key = rest.trim_start().strip_prefix('{')?.trim_start();
            return key.starts_with("\"sysstat\"").then_some(rest);
        }
        from += line.len();
    }
    None
}

/// Its runs: one for each host of each document.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let text =
        document(source.text()).ok_or_else(|| ImportError::no_result(source, "it holds no document of sysstat"))?;
    let (text, begins_with_sample) = without_leading_commas(text);
    let text = text.as_ref();
    let mut found = Vec::new();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut whole = 0;
    while let Some(read) = documents.next() {
        match read {
            Ok(document) => hosts(&document, false, begins_with_sample, notes, &mut found),
            Err(error) if error.is_eof() => {
                let rest = mend(text.get(whole..).unwrap_or(""));
                match rest.and_then(|rest| serde_json::from_str::<Value>(&rest).ok()) {
                    Some(document) => hosts(&document, true, begins_with_sample, notes, &mut found),
                    None if found.is_empty() => {
                        let what = "it ends before the first sample does";
                        return Err(ImportError::damaged(source, line_of(&error), what));
                    }
                    None => notes.not_understood(None, "a document that ends before its first sample does"),
                }
                break;
            }
            // A prompt may follow.
            Err(_) if !found.is_empty() && !text.get(whole..).unwrap_or("").trim_start().starts_with('{') => break,
            Err(error) => {
                return Err(ImportError::damaged(source, line_of(&error), format!("it is not JSON: {error}")));
            }
        }
        whole = documents.byte_offset();
    }
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no sample of iostat or sar"));
    }
    Ok(found)
}

/// The text without the comma that sysstat up to 12.1.4 writes before the first sample when it leaves out the one since boot (`-y`), and
/// whether one stood there.
fn without_leading_commas(text: &str) -> (Cow<'_, str>, bool) {
    let (mut quoted, mut escaped, mut opened) = (false, false, false);
    let mut commas = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if opened && !quoted => commas.push(at),
            _ => {}
        }
        opened = !quoted && (byte == b'[' || (opened && byte.is_ascii_whitespace()));
    }
    if commas.is_empty() {
        return (Cow::Borrowed(text), false);
    }
    let mut mended = text.to_owned();
    commas.into_iter().for_each(|at| mended.replace_range(at..=at, " "));
    (Cow::Owned(mended), true)
}

fn line_of(error: &serde_json::Error) -> Option<u64> {
    u64::try_from(error.line()).ok().filter(|line| *line > 0)
}

/// A document that ends early, as that of a killed iostat, cut after its last whole sample and closed.
fn mend(text: &str) -> Option<String> {
    // Of `{"sysstat": {"hosts": [{… "statistics": [`.
    const DEPTH_OF_SAMPLES: usize = 5;
    let (mut depth, mut quoted, mut escaped, mut end) = (0_usize, false, false, None);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == DEPTH_OF_SAMPLES && byte == b'}' {
                    end = Some(at + 1);
                }
            }
            _ => {}
        }
    }
    Some(format!("{}]}}]}}}}", text.get(..end?)?))
}

fn hosts(document: &Value, cut: bool, begins_with_sample: bool, notes: &mut Notes, found: &mut Vec<Draft>) {
    let hosts = document.pointer("/sysstat/hosts").and_then(Value::as_array);
    for host in hosts.into_iter().flatten() {
        let mut invocation = invocation(host, cut, notes);
        invocation.begins_with_sample |= begins_with_sample;
        if !invocation.samples.is_empty() {
            found.push(draft(invocation));
        }
    }
}

fn invocation(host: &Value, cut: bool, notes: &mut Notes) -> Invocation {
    let text = |name: &str| host.get(name).and_then(Value::as_str).map(str::to_owned);
    let date = text("date").unwrap_or_default();
    let environment = Environment {
        hostname: text("nodename"),
        kernel: text("release"),
        architecture: text("machine"),
        cpus: host.get("number-of-cpus").and_then(Value::as_u64).and_then(|cpus| u32::try_from(cpus).ok()),
        ..Environment::default()
    };
    let (day, long_year) = clock::date_of(&date).unwrap_or((Day::Unreported, false));
    let mut made = Invocation {
        header: Some(Header { environment, day, month_first: clock::day_order(&date), long_year }),
        ..Invocation::default()
    };
    if cut {
        made.notes.push("The file ends in the middle of a sample: that one is left out.".to_owned());
    }
    let statistics = host.get("statistics").and_then(Value::as_array);
    for statistic in statistics.into_iter().flatten() {
        let timestamp = statistic.get("timestamp");
        let of_sadf = timestamp.and_then(|time| stamp_of_sadf(time, &mut made));
        let stamp = timestamp.and_then(Value::as_str).and_then(clock::leading).map(|(stamp, _)| stamp).or(of_sadf);
        let mut sample = Sample { stamp, ..Sample::default() };
        let cpu = statistic.get("avg-cpu").and_then(Value::as_object);
        sample.host =
            cpu.into_iter().flatten().filter_map(|(name, value)| Some((format!("%{name}"), value.as_f64()?))).collect();
        sample.host.extend(host_of_sadf(statistic));
        let disks = statistic.get("disk").or_else(|| statistic.get("filesystem")).and_then(Value::as_array);
        for disk in disks.into_iter().flatten().filter_map(Value::as_object) {
            match row(disk, &mut made) {
                Some(row) => sample.rows.push(row),
                None => notes.not_understood(None, "a disk without a name; `disk_device` was expected"),
            }
        }
        if !sample.rows.is_empty() || !sample.host.is_empty() {
            made.samples.push(sample);
        }
    }
    made
}

/// The time of a sample of sadf, with how long it was.
fn stamp_of_sadf(time: &Value, made: &mut Invocation) -> Option<Stamp> {
    let text = |name: &str| time.get(name).and_then(Value::as_str);
    let (stamp, _) = clock::leading(&format!("{}T{}", text("date")?, text("time")?))?;
    (made.program, made.begins_with_sample) = ("sar", true);
    made.pace_s = made.pace_s.or(time.get("interval").and_then(Value::as_f64));
    Some(Stamp { utc: time.get("utc").and_then(Value::as_u64) == Some(1), ..stamp })
}

/// What sadf has of the whole machine, by the names that sar gives it in its text.
fn host_of_sadf(statistic: &Value) -> Vec<(String, f64)> {
    let loads = ["cpu-load", "cpu-load-all"].iter().find_map(|name| statistic.get(*name)?.as_array());
    let all = loads.into_iter().flatten().find(|load| load.get("cpu").and_then(Value::as_str) == Some("all"));
    let shares = all.and_then(Value::as_object).into_iter().flatten();
    let memory = statistic.get("memory").and_then(Value::as_object).into_iter().flatten();
    let of_memory = |name: &str| match name.strip_suffix("-percent") {
        Some(name) => format!("%{name}"),
        None => format!("kb{}", name.replace("inactive", "inact")),
    };
    let figure = |name: String, value: &Value| Some((name, value.as_f64()?));
    shares
        .filter_map(|(name, value)| figure(format!("%{name}"), value))
        .chain(memory.filter_map(|(name, value)| figure(of_memory(name), value)))
        .collect()
}

/// Percentages have the names of the text form, so that both can be compared.
fn row(disk: &Map<String, Value>, made: &mut Invocation) -> Option<Row> {
    let name = ["disk_device", "disk-device", "filesystem_name", "Device"]
        .iter()
        .find_map(|name| disk.get(*name)?.as_str())?;
    let mut values = Vec::with_capacity(disk.len());
    for (column, value) in disk.iter().filter(|(_, value)| !value.is_string()) {
        let column = match column.as_str() {
            "util" | "rrqm" | "wrqm" | "drqm" => made.columns.number(&format!("%{column}")),
            "util-percent" => made.columns.number("%util"),
            "rkB" | "wkB" | "dkB" | "rd_sec" | "wr_sec" => made.columns.number(&format!("{column}/s")),
            column => made.columns.number(column),
        };
        values.extend(column.map(|column| (column, value.as_f64().unwrap_or(f64::NAN))));
    }
    Some(Row { device: made.devices.number(name)?, group: false, values })
}

#[cfg(test)]
mod tests {
    use crate::osstat::tests::figure_value;
    use crate::specimens::only;

    #[test]
    fn what_sar_recorded_is_read_from_sadf() {
        let text = r#"{"sysstat": {"hosts": [{"nodename": "db7", "release": "5.14.0", "machine": "x86_64", "number-of-cpus": 2,
"file-date": "2026-11-30", "statistics": [
{"timestamp": {"date": "2026-11-30", "time": "00:10:01", "utc": 1, "interval": 600},
 "cpu-load": [{"cpu": "all", "user": 10.0, "nice": 0.0, "system": 2.0, "iowait": 4.0, "steal": 0.0, "idle": 84.0}],
 "memory": {"memfree": 1000, "memused": 3000, "memused-percent": 30.0, "inactive": 5},
 "disk": [{"disk-device": "sda", "tps": 100.0, "rkB": 800.0, "wkB": 400.0, "await": 2.0, "util": 10.0}]},
{"timestamp": {"date": "2026-11-30", "time": "00:20:01", "utc": 1, "interval": 600},
 "cpu-load": [{"cpu": "all", "user": 30.0, "nice": 0.0, "system": 6.0, "iowait": 8.0, "steal": 0.0, "idle": 56.0}],
 "memory": {"memfree": 2000, "memused": 2000, "memused-percent": 20.0, "inactive": 7},
 "disk": [{"disk-device": "sda", "tps": 300.0, "rkB": 2400.0, "wkB": 1200.0, "await": 4.0, "util": 30.0}]}]}]}}"#;
        let draft = only("sar-json", text);
        let step = &draft.steps[0];
        let names = ["%user", "sda rkB/s", "sda await", "sda %util", "kbmemfree", "kbinact", "%memused"];
        let means = [20.0, 1_600.0, 3.5, 20.0, 1_500.0, 6.0, 25.0];
        assert_eq!(names.map(|name| figure_value(step, name)), means);
        assert_eq!((draft.program, step.window.duration_ns), ("sar", 1_200_000_000_000));
        assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2026-11-30T00:00:01Z");
    }
}
