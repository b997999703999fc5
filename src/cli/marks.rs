//! Instants of a failure that a person or another program marks while a load is measured: by Enter, or by HTTP.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::exit::Failure;
use super::say;
use super::token::{self, TokenOf};
use measure::monotonic_ns;
use serve::Listen;
use serve::marks::Mark;

/// What was marked so far; shared by all who may mark. Times are of the monotonic clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks(Arc<Mutex<Marked>>);

/// The instants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marked {
    /// The measured window; none before it is known.
    window: Option<Range<u64>>,
    /// When the failure began.
    pub(super) failed_ns: Option<u64>,
    /// When it was over.
    pub(super) recovered_ns: Option<u64>,
    /// Marks that came outside the window.
    pub(super) refused: u32,
}

impl Marks {
    /// Says between which instants marks count.
    pub(super) fn measured(&self, window: Range<u64>) {
        self.lock().window = Some(window);
    }

    /// What was marked so far.
    pub(super) fn so_far(&self) -> Marked {
        self.lock().clone()
    }

    /// Takes a mark, of the failure or else of what comes next. False where it does not count: outside the window, sent again, or of a
    /// recovery before the failure.
    fn take(&self, given: Option<Mark>, at_ns: u64) -> bool {
        let mut marked = self.lock();
        if !marked.window.as_ref().is_some_and(|window| window.contains(&at_ns)) {
            marked.refused += 1;
            return false;
        }
        let place = match (given, marked.failed_ns) {
            (Some(Mark::Failure), Some(_)) | (Some(Mark::Recovery), None) => return false,
            (_, None) => &mut marked.failed_ns,
            (_, Some(_)) => &mut marked.recovered_ns,
        };
        let is_first = place.is_none();
        place.get_or_insert(at_ns);
        is_first
    }

    fn lock(&self) -> MutexGuard<'_, Marked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes marks by Enter from now on.
    pub(super) fn by_enter(&self) {
        say::line("Press Enter when the failure begins, and Enter when it is over");
        let marks = self.clone();
        std::thread::spawn(move || {
            for _ in BufReader::new(std::io::stdin()).lines().map_while(Result::ok) {
                marks.take(None, monotonic_ns());
            }
        });
    }

    /// Takes marks by HTTP from now on, and says how they are sent.
    pub(super) fn by_http(&self, listen: Listen) -> Result<(), Failure> {
        let given = token::given(TokenOf::Marks, None)?;
        let is_given = given.is_some();
        let token = given.map_or_else(token::made, Ok)?;
        let marks = self.clone();
        let address = serve::marks::listen(listen, token.expose(), move |mark| marks.take(Some(mark), monotonic_ns()))?;
        if !address.ip().is_loopback() {
            say::note("the token of marks crosses the network as it is: keep it in a network of your own");
        }
        let host = if address.ip().is_unspecified() { "THIS-MACHINE".to_owned() } else { host_of(address.ip()) };
        let variable = TokenOf::Marks.variable();
        if !is_given {
            say::line(format_args!("Token, shown this once: {}", token.expose()));
        }
        let (port, header) = (address.port(), format!("\"Authorization: Bearer ${variable}\""));
        say::line(format_args!(
            "With the token in {variable}: curl -X POST -H {header} http://{host}:{port}/failure, later …/recovery"
        ));
        Ok(())
    }
}

fn host_of(ip: std::net::IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_once_within_the_window_and_a_recovery_follows_a_failure() {
        let marks = Marks::default();
        assert!(!marks.take(Some(Mark::Failure), 50), "nothing is measured yet");
        marks.measured(100..200);
        let takes = [
            (Some(Mark::Failure), 99, false),
            (Some(Mark::Recovery), 110, false),
            (Some(Mark::Failure), 120, true),
            (Some(Mark::Failure), 130, false),
            (None, 140, true),
            (Some(Mark::Recovery), 150, false),
            (None, 200, false),
        ];
        for (given, at_ns, is_taken) in takes {
            assert_eq!(marks.take(given, at_ns), is_taken, "{given:?} at {at_ns}");
        }
        let marked = marks.so_far();
        assert_eq!((marked.failed_ns, marked.recovered_ns, marked.refused), (Some(120), Some(140), 3));
    }
}
