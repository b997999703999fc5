//! What is shown while something goes on: one status line on a terminal, plain lines elsewhere.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::say;
use analysis::LastMinute;
use load::StepPlan;
use model::record::Interval;
use model::shown::{shown, shown_lines};
use model::units::{Bytes, Nanos, group_thousands};
use report::{interval_line, interval_words, transactions_line, transactions_words};

/// How often a plain line reports on progress at most: it ends up in a log that somebody reads.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Steps longer than this have a plain line only so often.
const LONG_STEP: Nanos = Nanos::seconds(600);
const LONG_STEP_LINE: Nanos = Nanos::seconds(60);

/// Columns of the spinner and the blank after it, and one for the cursor.
const SPINNER: usize = 3;

/// Columns from which the status line has room for the label of the step.
const WIDE: usize = 80;

/// Whether progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// As fits the stream.
    Normal,
    /// Not at all.
    Quiet,
}

/// Where progress is shown.
enum ProgressOutput {
    Nowhere,
    Terminal(ProgressBar),
    Lines,
}

impl ProgressOutput {
    fn new(verbosity: Verbosity) -> Self {
        let bar = ProgressBar::no_length();
        match verbosity {
            Verbosity::Quiet => Self::Nowhere,
            // The bar knows best what it can be drawn on.
            Verbosity::Normal if bar.is_hidden() => Self::Lines,
            Verbosity::Normal => Self::Terminal(bar),
        }
    }
}

/// A phase, and when it began.
struct Begun {
    phase: String,
    at: Instant,
}

/// Progress of something that is counted in bytes.
pub(super) struct ByteProgress {
    what: &'static str,
    place: ProgressOutput,
    begun: Mutex<Begun>,
    last_line: Mutex<Instant>,
}

impl ByteProgress {
    /// `what` is done, in a word or two.
    pub(super) fn new(what: &'static str, verbosity: Verbosity) -> Self {
        let place = ProgressOutput::new(verbosity);
        if let ProgressOutput::Terminal(bar) = &place {
            bar.set_style(style("{prefix} {wide_bar} {percent:>3} %  {msg}"));
            bar.set_prefix(what);
        }
        let now = Instant::now();
        let begun = Mutex::new(Begun { phase: String::new(), at: now });
        Self { what, place, begun, last_line: Mutex::new(now) }
    }

    /// Tells how far it is. May be called from any thread.
    pub(super) fn update(&self, done_bytes: u64, total_bytes: u64) {
        self.show(&self.what, done_bytes, total_bytes, None);
    }

    fn show(&self, what: &dyn fmt::Display, done_bytes: u64, total_bytes: u64, row_bytes: Option<f64>) {
        let elapsed = self.begun.lock().unwrap_or_else(PoisonError::into_inner).at.elapsed();
        let words = || rate_and_rest(done_bytes, total_bytes, row_bytes, elapsed);
        match &self.place {
            ProgressOutput::Nowhere => {}
            ProgressOutput::Terminal(bar) => {
                bar.set_length(total_bytes);
                bar.set_position(done_bytes);
                bar.set_message(words());
            }
            ProgressOutput::Lines => {
                let mut last_line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
                if last_line.elapsed() >= LINE_EVERY {
                    *last_line = Instant::now();
                    let percent = done_bytes as f64 * 100.0 / total_bytes.max(1) as f64;
                    say::line(format_args!("{what} {percent:3.0} %  {}", words()));
                }
            }
        }
    }

    /// The same for work of several phases, of which this is one; its rate counts from where it began. Rows are reported too where
    /// they have `row_bytes` each.
    pub(super) fn update_phase(
        &self,
        phase: impl fmt::Display,
        done_bytes: u64,
        total_bytes: u64,
        row_bytes: Option<f64>,
    ) {
        let name = phase.to_string();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.phase != name {
            *begun = Begun { phase: name, at: Instant::now() };
        }
        drop(begun);
        if let ProgressOutput::Terminal(bar) = &self.place {
            bar.set_prefix(shown(&phase.to_string()).into_owned());
        }
        self.show(&phase, done_bytes, total_bytes, row_bytes);
    }

    /// Leaves nothing behind on the terminal.
    pub(super) fn end(&self) {
        if let ProgressOutput::Terminal(bar) = &self.place {
            bar.finish_and_clear();
        }
    }
}

/// `410 of 1074 MB, 512 MB/s, 2 s left`, and rows per second where they are counted.
fn rate_and_rest(done_bytes: u64, total_bytes: u64, row_bytes: Option<f64>, elapsed: Duration) -> String {
    let mega = |bytes: f64| bytes / 1e6;
    let amount = format!("{:.0} of {:.0} MB", mega(done_bytes as f64), mega(total_bytes as f64));
    let bytes_per_s = done_bytes as f64 / elapsed.as_secs_f64();
    if done_bytes == 0 || !bytes_per_s.is_finite() {
        return amount;
    }
    let left_s = total_bytes.saturating_sub(done_bytes) as f64 / bytes_per_s;
    let rows = row_bytes.map_or_else(String::new, |bytes| format!("{} rows/s, ", group_thousands(bytes_per_s / bytes)));
    format!("{amount}, {:.0} MB/s, {rows}{}", mega(bytes_per_s), left(Nanos((left_s * 1e9) as u64)))
}

/// `7 s left`, in whole seconds, the last one begun.
pub(super) fn left(time: Nanos) -> String {
    match time.0.div_ceil(1_000_000_000) {
        seconds @ 0..60 => format!("{seconds} s left"),
        seconds => format!("{} left", Nanos::seconds(seconds)),
    }
}

/// How many steps a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    /// So many, and load for so long in all.
    Known(usize, Nanos),
    /// As many as it takes, at most so many.
    UpTo(usize),
    /// As many as it takes, usually so many.
    About(usize),
}

impl Steps {
    /// So many as there are, with the time of them all, warm-ups included.
    pub(super) fn of<S>(steps: &[StepPlan<S>]) -> Self {
        Self::Known(steps.len(), Nanos(steps.iter().map(|step| step.time().0).fold(0, u64::saturating_add)))
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(steps, _) => write!(f, "{steps}"),
            Self::UpTo(steps) => write!(f, "at most {steps}"),
            Self::About(steps) => write!(f, "about {steps}"),
        }
    }
}

/// Progress of a run.
pub(super) struct RunProgress {
    place: ProgressOutput,
    steps: Steps,
    /// Load still to come after the present step, if that is known.
    later: Option<Nanos>,
    step: Option<(usize, String, Nanos)>,
    /// The last minute of users who do transactions.
    minute: Option<Mutex<LastMinute>>,
}

impl RunProgress {
    /// A run of so many steps.
    pub(super) fn new(steps: Steps, verbosity: Verbosity) -> Self {
        let place = ProgressOutput::new(verbosity);
        if let ProgressOutput::Terminal(bar) = &place {
            bar.set_style(style("{spinner} {msg}"));
        }
        let later = match steps {
            Steps::Known(_, duration) => Some(duration),
            Steps::UpTo(_) | Steps::About(_) => None,
        };
        Self { place, steps, later, step: None, minute: None }
    }

    /// The same, of users who do transactions.
    pub(super) fn of_transactions(self) -> Self {
        Self { minute: Some(Mutex::default()), ..self }
    }

    /// Redo that was read so far while a killed user's changes are made again.
    pub(super) fn recovering(&self, redo_bytes: u64) {
        // Plain lines wait for the note that says what was done: it is there in a moment.
        if let ProgressOutput::Terminal(bar) = &self.place {
            bar.set_message(format!("recovering: {} of redo read", Bytes(redo_bytes)));
        }
    }

    /// There is one more step than was thought.
    pub(super) fn one_more<S>(&mut self, plan: &StepPlan<S>) {
        let length = plan.time().0;
        self.later = self.later.map(|later| Nanos(later.0.saturating_add(length)));
        if let Steps::Known(steps, _) = &mut self.steps {
            *steps += 1;
        }
    }

    /// A step begins.
    pub(super) fn begin_step<S>(&mut self, plan: &StepPlan<S>) {
        let length = plan.time();
        self.later = self.later.map(|later| Nanos(later.0.saturating_sub(length.0)));
        let number = plan.index as usize + 1;
        match &self.place {
            ProgressOutput::Nowhere => {}
            ProgressOutput::Terminal(bar) => {
                bar.set_message(format!("step {number} of {}, {}", self.steps, shown(&plan.label)))
            }
            ProgressOutput::Lines => say::line(format_args!(
                "step {number} of {}, {}: {}, {} measured",
                self.steps,
                plan.label,
                warmup_words(plan.warmup),
                plan.duration
            )),
        }
        self.step = Some((number, plan.label.clone(), length));
    }

    /// A second of it is over.
    pub(super) fn interval(&self, interval: &Interval) {
        let per_minute =
            self.minute.as_ref().map(|minute| minute.lock().unwrap_or_else(PoisonError::into_inner).add(interval));
        let line = || match per_minute {
            Some(per_minute) => transactions_line(interval, per_minute),
            None => interval_line(interval),
        };
        match (&self.place, &self.step) {
            (ProgressOutput::Terminal(bar), Some((number, label, length))) => {
                let over = interval.offset_ns + interval.duration_ns;
                let of_step = length.0.saturating_sub(over);
                let width = say::status_width();
                // A narrow line is for the figures: which step it is, its number reports.
                let label = if width < WIDE { String::new() } else { format!(" {label}") };
                let place = match (self.later, self.steps) {
                    (Some(later), Steps::Known(steps, _)) => {
                        format!("{number}/{steps}{label}, {}: ", left(Nanos(of_step.saturating_add(later.0))))
                    }
                    _ => format!("step {number}{label}, {} of it: ", left(Nanos(of_step))),
                };
                let room = width.saturating_sub(SPINNER + place.chars().count());
                bar.tick();
                let words = match per_minute {
                    Some(per_minute) => transactions_words(interval, per_minute, room),
                    None => interval_words(interval, room),
                };
                bar.set_message(shown(&(place + &words)).into_owned());
            }
            (ProgressOutput::Lines, Some((_, _, length))) if length.0 > LONG_STEP.0 => {
                let over = Nanos(interval.offset_ns + interval.duration_ns);
                if over.0 / LONG_STEP_LINE.0 > interval.offset_ns / LONG_STEP_LINE.0 {
                    let later = self.later.map_or(0, |later| later.0);
                    let rest = Nanos(length.0.saturating_sub(over.0).saturating_add(later));
                    say::line(format_args!("{}  {}", line(), left(rest)));
                }
            }
            // The first of each ten seconds, so that the first one of all soon shows that there is load.
            (ProgressOutput::Lines, _)
                if interval.offset_ns % (LINE_EVERY.as_nanos() as u64) < interval.duration_ns =>
            {
                say::line(line());
            }
            (ProgressOutput::Lines, _) => {}
            (ProgressOutput::Terminal(_) | ProgressOutput::Nowhere, _) => {}
        }
    }

    /// Says something that stays while the status line goes on below it.
    pub(super) fn note(&self, note: &str) {
        match &self.place {
            ProgressOutput::Terminal(bar) => bar.suspend(|| say::note(note)),
            ProgressOutput::Lines | ProgressOutput::Nowhere => say::note(note),
        }
    }

    /// Says how things go in a line that stays, unless nothing is shown.
    pub(super) fn line(&self, line: &str) {
        match &self.place {
            ProgressOutput::Terminal(bar) => bar.suspend(|| say::line(line)),
            ProgressOutput::Lines => say::line(line),
            ProgressOutput::Nowhere => {}
        }
    }

    /// Leaves nothing behind on the terminal.
    pub(super) fn end(&self) {
        if let ProgressOutput::Terminal(bar) = &self.place {
            bar.finish_and_clear();
        }
    }
}

/// Tables that are drawn over and over on a terminal; plain lines elsewhere.
pub(super) struct Watch(ProgressOutput);

impl Watch {
    pub(super) fn new(verbosity: Verbosity) -> Self {
        let place = ProgressOutput::new(verbosity);
        if let ProgressOutput::Terminal(bar) = &place {
            bar.set_style(style("{msg}"));
        }
        Self(place)
    }

    /// Shows what is now: `table` gives it for a terminal of so many columns, `lines` for a display that scrolls.
    pub(super) fn show(&self, table: impl FnOnce(usize) -> String, lines: impl FnOnce() -> Vec<String>) {
        match &self.0 {
            ProgressOutput::Nowhere => {}
            ProgressOutput::Terminal(bar) => bar.set_message(shown_lines(&table(say::status_width())).into_owned()),
            ProgressOutput::Lines => lines().iter().for_each(say::line),
        }
    }

    /// Leaves nothing behind on the terminal.
    pub(super) fn end(&self) {
        if let ProgressOutput::Terminal(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// `2.00 s warm-up`, or `no warm-up`.
pub(super) fn warmup_words(warmup: Nanos) -> String {
    if warmup == Nanos(0) { "no warm-up".to_owned() } else { format!("{warmup} warm-up") }
}

fn style(template: &'static str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates here are constant, and a test reads them all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        let _ = style("{prefix} {wide_bar} {percent:>3} %  {msg}");
        let _ = style("{spinner} {msg}");
        let _ = style("{msg}");
    }

    #[test]
    fn progress_tells_amount_rate_and_rest() {
        let words = rate_and_rest(250_000_000, 1_000_000_000, None, Duration::from_secs(1));
        assert_eq!(words, "250 of 1000 MB, 250 MB/s, 3 s left");
        let rows = rate_and_rest(250_000_000, 1_000_000_000, Some(50.0), Duration::from_secs(1));
        assert_eq!(rows, "250 of 1000 MB, 250 MB/s, 5,000,000 rows/s, 3 s left");
        assert_eq!(rate_and_rest(0, 1_000_000, None, Duration::from_secs(1)), "0 of 1 MB");
        assert_eq!(rate_and_rest(5, 10, None, Duration::ZERO), "0 of 0 MB");
    }
}
