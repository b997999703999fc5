//! The supervisor of this process: of a run that `plimsoll beside` or `plimsoll experiment` has started. The run says how it goes, waits
//! for its start where others begin with it, and ends when it is asked to.
//!
//! Orders come in on standard input, a line each, and what there is to say goes out on standard output in place of the report. Which
//! pipe the orders come through stands in a variable: a program that this one starts inherits the variable, but not that pipe.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::exit::{Exit, exit_code_of_signal};
use load::{Begin, Stop};
use measure::Clock;
use model::record::Interval;
use model::units::Nanos;
use report::interval_words;

/// The variable that holds a [`Ticket`].
pub(super) const VARIABLE: &str = "PLIMSOLL_SUPERVISOR";
/// Columns of what a second of a load was.
const SECOND_WIDTH: usize = 44;
/// How often a request to end is looked for.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// What a supervised run has to know before anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ticket {
    /// The pipe that orders come through, as the kernel names it.
    pub(super) pipe: String,
    /// Tags that the record gets.
    pub(super) tags: BTreeMap<String, String>,
    /// Whether others begin with it at one instant, for which it waits.
    pub(super) has_company: bool,
}

/// What a supervised run is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// To begin at this reading of the monotonic clock.
    Start { at_ns: u64 },
    /// To end, and to keep what was measured.
    Stop,
}

/// What a supervised run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// It would take so long, as far as that is known, of time that passes or of simulated time. Said in place of a run.
    Planned { time_ns: Option<u64>, is_simulated: bool },
    /// All of its sessions can begin.
    Ready,
    /// A second of its load is over.
    Second { over_ns: u64, words: String },
    /// It has ended and is kept.
    Ended { run: PathBuf, limits: Kept },
    /// It could not be done, or not to its end.
    Failed { message: String, hint: Option<String>, code: u8 },
}

/// Whether a run kept the limits that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept {
    /// None were given, or all were kept.
    Yes,
    /// That is not known.
    Unknown,
    /// At least one was not.
    No,
}

impl Kept {
    /// The exit code that says so.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Yes => Exit::Done,
            Self::Unknown => Exit::NoVerdict,
            Self::No => Exit::NotMet,
        }
    }
}

/// The supervisor of this process.
#[derive(Debug)]
pub(super) struct Supervisor {
    tags: BTreeMap<String, String>,
    has_company: bool,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    start_at_ns: Option<u64>,
    is_stopped: bool,
}

impl Supervisor {
    /// The supervisor, if this process has one.
    pub(super) fn of_this_process() -> Option<&'static Self> {
        static SUPERVISOR: OnceLock<Option<Supervisor>> = OnceLock::new();
        SUPERVISOR
            .get_or_init(|| {
                let ticket: Ticket = serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()?;
                let is_ours = pipe_name(0).is_some_and(|pipe| pipe == ticket.pipe);
                is_ours.then(|| Self {
                    tags: ticket.tags,
                    has_company: ticket.has_company,
                    orders: Mutex::default(),
                    changed: Condvar::new(),
                })
            })
            .as_ref()
    }

    /// Tags that the record gets.
    pub(super) fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// Whether others begin with it at one instant.
    pub(super) fn has_company(&self) -> bool {
        self.has_company
    }

    /// Takes orders from now on. Where whoever gives them has gone, nobody waits any more: the run is ended, and at once if it
    /// was asked to end before.
    pub(super) fn listen(&'static self, stop: Stop) -> std::io::Result<()> {
        let listen = move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(Order::Start { at_ns }) => self.orders().start_at_ns = Some(at_ns),
                    Ok(Order::Stop) => {
                        self.orders().is_stopped = true;
                        stop.ask();
                    }
                    Err(_) => {}
                }
                self.changed.notify_all();
            }
            if self.orders().is_stopped {
                signal_hook::low_level::exit(i32::from(exit_code_of_signal(signal_hook::consts::SIGINT)));
            }
            stop.ask();
        };
        std::thread::Builder::new().name("orders".to_owned()).spawn(listen).map(|_| ())
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that all is ready, and waits for the start. Also how late that was heard, if it was. `meanwhile` is called again and
    /// again until then, so that a server knows that somebody is there.
    pub(super) fn wait_for_start(
        &self,
        clock: Clock,
        stop: &Stop,
        meanwhile: &mut dyn FnMut(),
    ) -> (Begin, Option<Duration>) {
        self.say(&Said::Ready);
        let mut orders = self.orders();
        loop {
            if stop.is_asked() {
                return (Begin::NotAtAll, None);
            }
            if let Some(at_ns) = orders.start_at_ns {
                let instant_ns = clock.instant_of(at_ns);
                let late_ns = clock.now_ns().saturating_sub(instant_ns);
                return (Begin::At(instant_ns), (late_ns > 0).then(|| Duration::from_nanos(late_ns)));
            }
            orders = match self.changed.wait_timeout(orders, LOOK_AROUND) {
                Ok((orders, _)) => orders,
                Err(poisoned) => poisoned.into_inner().0,
            };
            meanwhile();
        }
    }

    /// Tells of a second that is over.
    pub(super) fn second(&self, interval: &Interval) {
        let over_ns = interval.offset_ns + interval.duration_ns;
        self.say(&Said::Second { over_ns, words: interval_words(interval, SECOND_WIDTH) });
    }

    /// Says something. If nobody hears it, the orders have ended too.
    pub(super) fn say(&self, said: &Said) {
        let Ok(line) = serde_json::to_string(said) else { return };
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Says, where somebody has asked for a plan and not for a run, how long its load is on: in all, or unknown where that follows from what
/// is measured.
pub(super) fn say_planned(time: Option<Nanos>, is_simulated: bool) {
    if let Some(supervisor) = Supervisor::of_this_process() {
        supervisor.say(&Said::Planned { time_ns: time.map(|time| time.0), is_simulated });
    }
}

/// The pipe behind a descriptor of this process, as the kernel names it: `pipe:[4711]`.
pub(super) fn pipe_name(descriptor: i32) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some(link.to_str()?.to_owned()).filter(|name| name.starts_with("pipe:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_seated_by_a_variable_alone() {
        // The tests are no run that was started beside others, whatever their standard input is.
        assert!(Supervisor::of_this_process().is_none());
    }

    #[test]
    fn what_is_said_is_one_line_and_is_understood() {
        let failed = Said::Failed { message: "no\nway".to_owned(), hint: None, code: 2 };
        let ended = Said::Ended { run: PathBuf::from("a b"), limits: Kept::No };
        let planned = Said::Planned { time_ns: None, is_simulated: true };
        for said in [planned, Said::Ready, Said::Second { over_ns: 1, words: "12 reads/s".to_owned() }, ended, failed] {
            let line = serde_json::to_string(&said).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Said>(&line).unwrap(), said);
        }
        let start = serde_json::to_string(&Order::Start { at_ns: u64::MAX }).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&start).unwrap(), Order::Start { at_ns: u64::MAX });
    }

    #[test]
    fn a_pipe_has_a_name_and_a_file_has_none() {
        use std::os::fd::AsRawFd;
        let (reader, writer) = std::io::pipe().unwrap();
        assert_eq!(pipe_name(reader.as_raw_fd()), pipe_name(writer.as_raw_fd()));
        assert!(pipe_name(reader.as_raw_fd()).is_some());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(pipe_name(file.as_raw_fd()), None);
    }
}
