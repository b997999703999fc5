//! A run as oratcptest would have printed it, for whatever reads that.
//!
//! Its units are kept: 1 Mbyte is 1024x1024 bytes, and latency is the mean in milliseconds. Bytes are those of messages.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use model::record::{Histogram, Interval, NetworkSide, Run, Step};

/// Parameter: bytes of each message, as they were asked for.
pub const LENGTH: &str = "LENGTH";
/// Parameter: whole seconds between two lines.
pub const INTERVAL: &str = "INTERVAL_S";
/// Parameter: seconds of the test.
pub const DURATION: &str = "DURATION_S";
/// Parameter: size of the socket buffers, where it was asked for.
pub const SOCKET_BUFFER: &str = "SOCKBUF";
/// Parameter: seconds for which nothing may come, where they were asked for.
pub const TIMEOUT: &str = "TIMEOUT_S";

const MEBI: f64 = 1_048_576.0;

/// The text of a run of one step, with clocks in `zone`. What is not known is left out.
pub fn text(run: &Run, zone: &TimeZone) -> String {
    let of = |name: &str| run.parameters.get(name).map(String::as_str);
    let number = |name: &str| of(name).and_then(|text| text.parse::<u64>().ok());
    let is_sync = of("PATTERN") == Some("redo-sync");
    let mode = if is_sync { "SYNC" } else { "ASYNC" };
    let yes = |is: bool| if is { "YES" } else { "NO" };
    let mut text = String::from("[Requesting a test]\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "\t{name:<22} = {value}");
    };
    row("Message payload", &number(LENGTH).map_or_else(String::new, bytes_words));
    row("Payload content type", "RANDOM");
    row("Delay between messages", "NO");
    row("Number of connections", of("CONNECTIONS").unwrap_or("1"));
    row(
        "Socket send buffer",
        &number(SOCKET_BUFFER).map_or_else(|| "(system default)".to_owned(), |it| format!("{it} bytes")),
    );
    row("Transport mode", mode);
    row("Disk write", yes(of("DURABLE") == Some("yes")));
    row("Statistics interval", &number(INTERVAL).map_or_else(String::new, seconds_words));
    row("Test duration", &number(DURATION).map_or_else(String::new, seconds_words));
    row("Test frequency", "NO");
    row("Network Timeout", &number(TIMEOUT).map_or_else(|| "NO".to_owned(), seconds_words));
    text += "\t(1 Mbyte = 1024x1024 bytes)\n\n";
    let (Some(step), Some(size)) = (run.steps.first(), message_bytes(run)) else { return text };
    let clock = |after_ns: u64| {
        let instant = run.started_at.0 + jiff::SignedDuration::from_nanos(after_ns as i64);
        instant.to_zoned(zone.clone()).strftime("(%H:%M:%S)").to_string()
    };
    let began_ns = step.window.offset_ns;
    let _ = writeln!(text, "{} The server is ready.", clock(began_ns));
    text += "                        Throughput";
    text += if is_sync { "                 Latency\n" } else { "\n" };
    let every_ns = number(INTERVAL).unwrap_or(1).max(1) * 1_000_000_000;
    let mut line = Line::default();
    let mut until_ns = began_ns;
    let seconds: Vec<&Interval> = step.intervals.iter().filter(|interval| !interval.warmup).collect();
    for (number, interval) in seconds.iter().enumerate() {
        until_ns += interval.duration_ns;
        line.add(interval);
        if line.elapsed_ns + 1_000_000 >= every_ns || number + 1 == seconds.len() {
            let line = std::mem::take(&mut line);
            let _ = write!(text, "{}{:>15.3} Mbytes/s", clock(until_ns), line.mebibytes_per_s(size));
            let latency = line.response.mean_ns().filter(|_| is_sync);
            let _ = latency.map_or(Ok(()), |ns| write!(text, "{:>21.3} ms", ns / 1e6));
            text += "\n";
        }
    }
    let _ = writeln!(text, "{} Test finished.", clock(until_ns));
    summary(&mut text, step, size, is_sync);
    text
}

fn summary(text: &mut String, step: &Step, size: f64, is_sync: bool) {
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "\t{name:>25} = {value}");
    };
    let client = step.network.iter().find(|end| end.side == NetworkSide::Client);
    let buffer = client.and_then(|end| end.facts.as_ref()?.send_buffer_bytes);
    if let Some(bytes) = buffer {
        row("Socket send buffer", format!("{bytes} bytes"));
    }
    let mut all = Line { elapsed_ns: step.window.duration_ns, ..Line::default() };
    for operations in &step.operations {
        all.operations += operations.count - operations.errors;
        all.response.merge(&operations.service);
    }
    row("Avg. throughput", format!("{:.3} Mbytes/s", all.mebibytes_per_s(size)));
    if let Some(ns) = all.response.mean_ns().filter(|_| is_sync) {
        row("Avg. latency", format!("{:.3} ms", ns / 1e6));
    }
}

/// Bytes of a message as it was sent.
fn message_bytes(run: &Run) -> Option<f64> {
    let model::units::Bytes(bytes) = run.parameters.get("SIZE")?.parse().ok()?;
    Some(bytes as f64)
}

/// What one line is about.
#[derive(Default)]
struct Line {
    elapsed_ns: u64,
    operations: u64,
    response: Histogram,
}

impl Line {
    fn add(&mut self, interval: &Interval) {
        self.elapsed_ns += interval.duration_ns;
        self.operations += interval.counters.operations.unwrap_or(0);
        self.response.merge(&interval.response);
    }

    fn mebibytes_per_s(&self, size: f64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.operations as f64 * size / MEBI / (self.elapsed_ns as f64 / 1e9) }
    }
}

/// `0 bytes`, `8 Kbytes`, `1 Mbyte`.
fn bytes_words(bytes: u64) -> String {
    let (number, unit) = match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => (bytes >> 20, "Mbyte"),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => (bytes >> 10, "Kbyte"),
        _ => (bytes, "byte"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// `1 second`, `10 seconds`, `2 minutes`.
fn seconds_words(seconds: u64) -> String {
    let (number, unit) =
        if seconds > 0 && seconds.is_multiple_of(60) { (seconds / 60, "minute") } else { (seconds, "second") };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
