//! What a server says of a test that cannot be: this end knows what it sent, what came, and how much time passed.

use std::time::{Duration, Instant};

use crate::network::wire::{Seen, short};
use model::record::{NetworkEnd, NetworkFacts};

/// Messages that a server may send at once, and then each second: it reports ten times a second what it saw.
const MESSAGES: f64 = 200.0;
const MESSAGES_PER_S: f64 = 50.0;
/// Clocks of two hosts do not run alike, and the kernel counts processor time in hundredths of a second.
const CLOCKS_DIFFER: f64 = 0.02;
const LEEWAY: Duration = Duration::from_millis(500);
/// How much more processor time than time a processor or a thread may be said to have used.
const BUSY_BEYOND: u64 = 2;
/// What a call may have moved that this end counts only when it returns.
pub(super) const MOVED_BYTES: u64 = 4 << 20;

/// What this end knows at the moment at which it hears something.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Since the test was asked for.
    pub(super) asked: Duration,
    /// Bytes sent and received.
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Datagrams asked for.
    pub(super) datagrams: u64,
    /// What calls under way may have moved besides.
    pub(super) under_way_bytes: u64,
    /// A network may double datagrams.
    pub(super) may_double: bool,
}

/// What is wrong with what a server saw; `before` is what it had seen when it reported the last time.
pub(super) fn doubt(seen: &Seen, before: Option<&Seen>, known: &Known) -> Option<String> {
    let end = &seen.end;
    let most_ns = nanos(known.asked.mul_f64(1.0 + CLOCKS_DIFFER) + LEEWAY);
    if end.elapsed_ns > most_ns || seen.at_ns > most_ns {
        let reported = Duration::from_nanos(end.elapsed_ns.max(seen.at_ns));
        return Some(format!("it counts {reported:.1?} of a test that was requested {:.1?} ago", known.asked));
    }
    let doubled = |count: u64| if known.may_double { count.saturating_mul(2) } else { count };
    let most_bytes = doubled(known.sent_bytes).saturating_add(known.under_way_bytes);
    if end.received_bytes.is_some_and(|bytes| bytes > most_bytes) {
        let reported = end.received_bytes.unwrap_or_default();
        return Some(format!("it counts {reported} bytes received, and {} were sent", known.sent_bytes));
    }
    if seen.datagrams > doubled(known.datagrams) {
        return Some(format!("it counts {} datagrams answered, and {} were sent", seen.datagrams, known.datagrams));
    }
    let busiest = end.processors.iter().map(|processor| processor.busy_ns).max();
    let running = end.busiest_thread.map(|thread| thread.running_ns);
    if busiest.max(running) > Some(most_ns.saturating_mul(BUSY_BEYOND)) {
        return Some("it counts more processor time than time has passed".to_owned());
    }
    let earlier = before.map(|before| counts(&before.end)).unwrap_or_default();
    if counts(end).iter().zip(earlier).any(|(now, earlier)| now.zip(earlier).is_some_and(|(now, past)| now < past)) {
        return Some("its counts go backwards".to_owned());
    }
    None
}

/// What is wrong with what a server saw in all of a test that was open for `open` at this end, when all that goes on has ended.
pub(super) fn doubt_of_all(seen: &Seen, open: Duration, known: &Known) -> Option<String> {
    let least_ns = nanos(open.mul_f64(1.0 - CLOCKS_DIFFER).saturating_sub(LEEWAY / 10));
    if seen.end.elapsed_ns < least_ns {
        let reported = Duration::from_nanos(seen.end.elapsed_ns);
        return Some(format!("it counts {reported:.1?} of a test that was open for {open:.1?}"));
    }
    let least_bytes = known.received_bytes.saturating_sub(known.under_way_bytes);
    if !known.may_double && seen.end.sent_bytes.is_some_and(|bytes| bytes < least_bytes) {
        let reported = seen.end.sent_bytes.unwrap_or_default();
        return Some(format!("it counts {reported} bytes sent, and {} came", known.received_bytes));
    }
    None
}

/// How the counts of both ends differ when all that was sent has come, apart from `exchanged_bytes` that may be under way on
/// connections which were closed. Of datagrams some may be lost, which is measured.
pub(super) fn disagreement(seen: &Seen, known: &Known, exchanged_bytes: u64) -> Option<String> {
    if known.may_double {
        return None;
    }
    let differ = |sent: u64, came: u64| came > sent || sent - came > exchanged_bytes;
    let NetworkEnd { sent_bytes, received_bytes, .. } = seen.end;
    let up = received_bytes.filter(|came| differ(known.sent_bytes, *came));
    let down = sent_bytes.filter(|sent| differ(*sent, known.received_bytes));
    let up = up.map(|came| format!("this host sent {} bytes, and {came} reached the server", known.sent_bytes));
    up.or_else(|| down.map(|sent| format!("the server sent {sent} bytes, and {} came", known.received_bytes)))
}

fn counts(end: &NetworkEnd) -> [Option<u64>; 3] {
    [Some(end.elapsed_ns), end.sent_bytes, end.received_bytes]
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Replaces in all names and words what a terminal would obey.
pub(super) fn make_plain(end: &mut NetworkEnd) {
    let is_odd = |text: &String| text.chars().any(char::is_control);
    if end.counters.keys().any(is_odd) {
        end.counters =
            std::mem::take(&mut end.counters).into_iter().map(|(name, count)| (short(&name), count)).collect();
    }
    let Some(facts) = &mut end.facts else { return };
    let NetworkFacts { interface, driver, qdisc, congestion_control, settings, .. } = facts;
    for text in [interface, driver, qdisc, congestion_control].into_iter().flatten() {
        *text = short(text);
    }
    if settings.iter().any(|(name, value)| is_odd(name) || is_odd(value)) {
        *settings = std::mem::take(settings).iter().map(|(name, value)| (short(name), short(value))).collect();
    }
}

/// Counts the messages of a server.
#[derive(Debug)]
pub(super) struct Messages {
    since: Instant,
    count: u64,
}

impl Messages {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    /// Takes one in; says what is wrong if there are far more than a server has to say.
    pub(super) fn came(&mut self) -> Option<String> {
        self.count += 1;
        let seconds = self.since.elapsed().as_secs_f64();
        let is_flood = self.count as f64 > MESSAGES + MESSAGES_PER_S * seconds;
        is_flood.then(|| format!("it floods the control connection: {} messages in {seconds:.1} s", self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ProcessorTime;

    const SECOND: u64 = 1_000_000_000;

    fn seen(seconds: u64, sent: u64, received: u64) -> Seen {
        let (sent_bytes, received_bytes) = (Some(sent), Some(received));
        let end = NetworkEnd { elapsed_ns: seconds * SECOND, sent_bytes, received_bytes, ..NetworkEnd::default() };
        Seen { at_ns: seconds * SECOND, end, ..Seen::default() }
    }

    fn known() -> Known {
        let asked = Duration::from_secs(10);
        Known { asked, sent_bytes: 1_000, received_bytes: 500, datagrams: 7, ..Known::default() }
    }

    #[test]
    fn what_can_be_is_believed() {
        let before = seen(8, 400, 900);
        assert_eq!(doubt(&seen(10, 500, 1_000), Some(&before), &known()), None);
        assert_eq!(doubt(&seen(8, 400, 900), Some(&before), &known()), None);
        assert_eq!(doubt_of_all(&seen(10, 500, 1_000), Duration::from_secs(10), &known()), None);
        let doubled = Known { may_double: true, ..known() };
        assert_eq!(doubt(&Seen { datagrams: 14, ..seen(10, 0, 2_000) }, None, &doubled), None);
    }

    #[test]
    fn what_cannot_be_is_doubted() {
        let before = seen(8, 400, 900);
        let doubted = |seen: Seen| doubt(&seen, Some(&before), &known()).unwrap();
        assert_eq!(doubted(seen(12, 500, 1_000)), "it counts 12.0s of a test that was requested 10.0s ago");
        assert_eq!(doubted(seen(9, 500, 1_001)), "it counts 1001 bytes received, and 1000 were sent");
        assert_eq!(doubted(seen(9, 399, 1_000)), "its counts go backwards");
        assert_eq!(doubted(seen(7, 500, 1_000)), "its counts go backwards");
        assert!(doubted(Seen { datagrams: 8, ..seen(9, 500, 1_000) }).contains("8 datagrams answered, and 7"));
        let mut busy = seen(9, 500, 1_000);
        busy.end.processors = vec![ProcessorTime { busy_ns: 40 * SECOND, ..ProcessorTime::default() }];
        assert_eq!(doubted(busy), "it counts more processor time than time has passed");
        let whole = |seen: Seen| doubt_of_all(&seen, Duration::from_secs(10), &known()).unwrap();
        assert_eq!(whole(seen(1, 500, 1_000)), "it counts 1.0s of a test that was open for 10.0s");
        assert_eq!(whole(seen(10, 499, 1_000)), "it counts 499 bytes sent, and 500 came");
    }

    #[test]
    fn what_was_sent_and_did_not_come_is_a_disagreement() {
        let of = |sent, received, exchanged| disagreement(&seen(10, sent, received), &known(), exchanged);
        assert_eq!(of(500, 1_000, 0), None);
        assert_eq!(of(500, 999, 0).unwrap(), "this host sent 1000 bytes, and 999 reached the server");
        assert_eq!(of(500, 1_001, 8).unwrap(), "this host sent 1000 bytes, and 1001 reached the server");
        assert_eq!(of(1_000, 1_000, 0).unwrap(), "the server sent 1000 bytes, and 500 came");
        assert_eq!(of(499, 1_000, 8).unwrap(), "the server sent 499 bytes, and 500 came");
        assert_eq!(of(508, 992, 8), None, "what was under way when connections were closed");
        assert!(of(509, 1_000, 8).is_some() && of(500, 991, 8).is_some());
        let datagrams = Known { may_double: true, ..known() };
        assert_eq!(disagreement(&seen(10, 0, 0), &datagrams, 0), None);
    }

    #[test]
    fn words_obey_nobody() {
        let mut end = NetworkEnd { counters: [("a\x1b[2J".to_owned(), 3)].into(), ..NetworkEnd::default() };
        let settings = [("net\n".to_owned(), "\x07".to_owned())].into();
        end.facts = Some(NetworkFacts { driver: Some("e\r".to_owned()), settings, ..NetworkFacts::default() });
        make_plain(&mut end);
        assert!(!serde_json::to_string(&end).unwrap().contains('\\'), "{end:?}");
    }

    #[test]
    fn a_flood_is_more_than_a_server_has_to_say() {
        let mut messages = Messages::new();
        assert!((0..MESSAGES as u64).all(|_| messages.came().is_none()));
        let said = (0..10_000).find_map(|_| messages.came());
        assert!(said.is_some_and(|said| said.starts_with("it floods the control connection")));
    }
}
