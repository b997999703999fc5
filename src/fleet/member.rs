//! A part's end: comes to the meeting point, waits for each start, and ends when it is asked to.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::book::LEAD;
use super::{FleetError, FromMeeting, FromPart, Introduction, Judgement, OnPartEnd, plain};
use measure::{monotonic_ns, wall_ns};
use model::record::ClockOffset;
use targets::ending::EndSignal;
use targets::network::wire::{Control, Token, Version, WireError, prove_part};

/// Questions for the time that one comparison of clocks asks. On a busy machine few of them are not disturbed.
const EXCHANGES: u32 = 64;
/// How long one may take.
const ANSWERS_IN: Duration = Duration::from_secs(1);
/// A meeting point that does not come forward is tried again after this.
const TRY_EVERY: Duration = Duration::from_millis(200);
/// How long one attempt may take.
const CONNECTS_IN: Duration = Duration::from_secs(5);
/// How often the thread looks for what is to be said.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How often it says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// How often a request to end is looked for.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// A start is not farther ahead than this: [`LEAD`], and what is not known of the clocks.
const MAX_LEAD: Duration = Duration::from_secs(5);
/// How long the last comparison of clocks may take.
const LEAVES_IN: Duration = Duration::from_secs(2);

/// How a part comes to a meeting point.
#[derive(Debug, Clone)]
pub struct Joining {
    /// As the user named it: `HOST:PORT`.
    pub point: String,
    /// Host of it.
    pub host: String,
    /// Port of it.
    pub port: u16,
    /// The token that all parts have.
    pub token: Token,
    /// This part's number, from 0.
    pub number: u32,
    /// How many there are.
    pub parts: u32,
    /// Digest of all that decides the load.
    pub configuration: String,
    /// Name of this host.
    pub own_host: String,
    /// How long to try.
    pub patience: Duration,
    /// What happens when the meeting point goes away in the middle of a load.
    pub on_part_end: OnPartEnd,
}

/// A start that all parts have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// When load begins, by this host's monotonic clock.
    pub at_monotonic_ns: u64,
    /// The clocks as they were compared just before.
    pub offset: Offset,
}

/// A part that has been let in.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    point: String,
    /// Name of the host of part 0.
    host: String,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<Task>,
    begin: Option<(u32, u64)>,
    verdict: Option<(u32, Judgement)>,
    offset: Option<Offset>,
    /// How many times clocks have been compared.
    comparisons: u32,
    /// Why all are to end.
    stopped: Option<String>,
    lost: Option<WireError>,
    gone: Vec<String>,
    has_left: bool,
}

/// What the thread is asked.
#[derive(Debug)]
enum Task {
    Compare,
    Say(FromPart),
    Leave { early: Option<String> },
}

type MeetingControl = Control<FromMeeting, FromPart>;

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, tasks: impl IntoIterator<Item = Task>) {
        self.state().tasks.extend(tasks);
    }
}

impl Member {
    /// Comes to the meeting point, as long as that takes within [`Joining::patience`]. `on_stop` is called when the load is to end
    /// because the others do. None where `is_stopped` before that.
    ///
    /// # Errors
    /// When the meeting point is not there, is none, or refuses the part.
    pub fn join(
        joining: &Joining,
        is_stopped: &dyn Fn() -> bool,
        on_stop: Box<dyn Fn() + Send>,
    ) -> Result<Option<Self>, FleetError> {
        let end = EndSignal::from_now_on();
        let Some(stream) = connect(joining, is_stopped, &end)? else { return Ok(None) };
        let io = |action, source| FleetError::Wire {
            point: joining.point.clone(),
            source: WireError::Io { action, source },
        };
        stream.set_nodelay(true).map_err(|source| io("send without delay", source))?;
        let watched = stream.try_clone().map_err(|source| io("name the connection twice", source))?;
        match end.during(&watched, || Self::introduce(joining, stream, on_stop)) {
            Err(_) if is_stopped() => Ok(None),
            member => member.map(Some),
        }
    }

    /// Says who comes, and hears whether it is let in.
    fn introduce(joining: &Joining, stream: TcpStream, on_stop: Box<dyn Fn() + Send>) -> Result<Self, FleetError> {
        let wire = |source| FleetError::Wire { point: joining.point.clone(), source };
        let deadline = Instant::now() + CONNECTS_IN;
        prove_part(&stream, &joining.token.key(), deadline).map_err(wire)?;
        let mut control = MeetingControl::new(stream);
        let hello = Introduction {
            version: Version::ours(),
            number: joining.number,
            parts: joining.parts,
            configuration: joining.configuration.clone(),
            host: joining.own_host.clone(),
        };
        control.send(&FromPart::Hello(hello)).map_err(wire)?;
        let host = match control.expect(deadline).map_err(wire)? {
            FromMeeting::Welcome { host } => plain(&host),
            FromMeeting::Refused { why } => {
                return Err(FleetError::Refused {
                    point: joining.point.clone(),
                    number: joining.number,
                    why: plain(&why),
                });
            }
            _ => return Err(wire(WireError::malformed("the first answer", "it is not a welcome"))),
        };
        let shared = Arc::new(Shared::default());
        let line = Line { control, shared: Arc::clone(&shared), on_part_end: joining.on_part_end, on_stop };
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(move || line.attend());
        let thread = thread.map_err(|source| FleetError::Thread { source })?;
        Ok(Self { shared, point: joining.point.clone(), host, thread: Some(thread) })
    }

    /// Name of the host of part 0.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Compares the clocks, says that a step can begin here, and waits until it can everywhere. None where `is_stopped` before that.
    ///
    /// # Errors
    /// When the others stop, or the meeting point has gone.
    pub fn ready(&self, step: u32, label: &str, is_stopped: &dyn Fn() -> bool) -> Result<Option<Started>, FleetError> {
        let ready = FromPart::Ready { step, label: label.to_owned() };
        self.shared.ask([Task::Compare, Task::Say(ready)]);
        let begun = self.wait(is_stopped, |state| {
            let (begun, theirs_ns) = state.begin?;
            Some((state.offset.filter(|_| begun == step)?, theirs_ns))
        })?;
        begun
            .map(|(offset, theirs_ns)| {
                // The clocks may have been compared once more since it was heard.
                is_agreed(offset, theirs_ns)
                    .map_err(|source| FleetError::Wire { point: self.point.clone(), source })?;
                // Our clock had not begun then, so it cannot be reached any more; the beginning of time is late enough to say so.
                let at_monotonic_ns = offset.ours(theirs_ns).unwrap_or(0);
                Ok(Started { at_monotonic_ns, offset })
            })
            .transpose()
    }

    /// Says what came of a step here, and waits for what came of it everywhere. None where `is_stopped` before that.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn judged(
        &self,
        step: u32,
        judgement: Judgement,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Judgement>, FleetError> {
        self.shared.ask([Task::Say(FromPart::Judged { step, judgement })]);
        self.wait(is_stopped, |state| state.verdict.filter(|(judged, _)| *judged == step).map(|(_, verdict)| verdict))
    }

    /// Parts that have gone early, each with the reason, since this was asked last.
    pub fn take_gone(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().gone)
    }

    /// Why all are to end, if they are.
    pub fn stopped(&self) -> Option<FleetError> {
        let state = self.shared.state();
        state.stopped.clone().map(|why| FleetError::Stopped { why })
    }

    /// Goes, and says why if that is before the end. Returns the clocks as they were compared last, if they could be.
    pub fn leave(mut self, early: Option<String>) -> Option<Offset> {
        let before = self.shared.state().comparisons;
        self.shared.ask([Task::Compare, Task::Leave { early }]);
        let deadline = Instant::now() + LEAVES_IN;
        let is_late = || Instant::now() >= deadline;
        // The end is not held up by a meeting point that has gone: then the clocks are not compared.
        let _ = self.wait(&is_late, |state| (state.has_left).then_some(()));
        let state = self.shared.state();
        let offset = state.offset.filter(|_| state.comparisons > before);
        drop(state);
        self.thread.take();
        offset
    }

    fn wait<T>(
        &self,
        is_stopped: &dyn Fn() -> bool,
        mut done: impl FnMut(&State) -> Option<T>,
    ) -> Result<Option<T>, FleetError> {
        let mut state = self.shared.state();
        loop {
            if let Some(done) = done(&state) {
                return Ok(Some(done));
            }
            if let Some(why) = &state.stopped {
                return Err(FleetError::Stopped { why: why.clone() });
            }
            if let Some(source) = state.lost.take() {
                return Err(FleetError::Wire { point: self.point.clone(), source });
            }
            if state.has_left || is_stopped() {
                return Ok(None);
            }
            state = match self.shared.changed.wait_timeout(state, LOOK_AROUND) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shared.ask([Task::Leave { early: Some("its command ended".to_owned()) }]);
        }
    }
}

/// Connects, trying again: parts do not start together, and a name may not be known yet.
fn connect(joining: &Joining, is_stopped: &dyn Fn() -> bool, end: &EndSignal) -> Result<Option<TcpStream>, FleetError> {
    let Joining { point, host, port, patience, .. } = joining;
    let deadline = Instant::now() + *patience;
    loop {
        let attempt = (host.as_str(), *port).to_socket_addrs().map_err(|source| {
            let point = point.clone();
            FleetError::NoAddress { point, source }
        });
        let error = match attempt.map(|addresses| connect_to(addresses, deadline, end)) {
            Ok(Ok(stream)) => return Ok(Some(stream)),
            Ok(Err(source)) => FleetError::Connect { point: point.clone(), seconds: patience.as_secs(), source },
            Err(error) => error,
        };
        if is_stopped() {
            return Ok(None);
        }
        if Instant::now() + TRY_EVERY >= deadline {
            return Err(error);
        }
        std::thread::sleep(TRY_EVERY);
    }
}

fn connect_to(
    addresses: impl Iterator<Item = SocketAddr>,
    deadline: Instant,
    end: &EndSignal,
) -> io::Result<TcpStream> {
    let mut first_error = None;
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now()).clamp(TRY_EVERY, CONNECTS_IN);
        match end.connect(address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

/// The connection, in a thread of its own.
struct Line {
    control: MeetingControl,
    shared: Arc<Shared>,
    on_part_end: OnPartEnd,
    on_stop: Box<dyn Fn() + Send>,
}

impl Line {
    fn attend(mut self) {
        if let Err(error) = self.speak() {
            let ends = self.on_part_end == OnPartEnd::Stop;
            let mut state = self.shared.state();
            // Whoever is asked to end may find the port closed before it has said that it goes.
            if state.stopped.is_none() {
                state.gone.push(format!("the meeting point is gone: {error}"));
                state.lost = Some(error);
            }
            drop(state);
            if ends {
                (self.on_stop)();
            }
        }
        self.shared.state().has_left = true;
        self.shared.changed.notify_all();
        self.control.close();
    }

    fn speak(&mut self) -> Result<(), WireError> {
        let mut alive = Instant::now();
        loop {
            let task = self.shared.state().tasks.pop_front();
            match task {
                Some(Task::Compare) => self.compare()?,
                Some(Task::Say(message)) => self.control.send(&message)?,
                Some(Task::Leave { early }) => return self.control.send(&FromPart::Leaves { early }),
                None => {
                    if let Some(said) = self.control.receive(Instant::now() + LOOK_EVERY)? {
                        self.hear(said)?;
                    }
                }
            }
            if alive.elapsed() >= ALIVE_EVERY {
                self.control.send(&FromPart::Alive)?;
                alive = Instant::now();
            }
        }
    }

    fn compare(&mut self) -> Result<(), WireError> {
        let mut exchanges = Vec::with_capacity(EXCHANGES as usize);
        for number in 0..EXCHANGES {
            let sent_ns = monotonic_ns();
            self.control.send(&FromPart::Ask(number))?;
            let deadline = Instant::now() + ANSWERS_IN;
            loop {
                match self.control.expect(deadline)? {
                    FromMeeting::Time { asked, monotonic_ns: answered_ns, utc_ns: answered_utc_ns }
                        if asked == number =>
                    {
                        let (received_ns, received_utc_ns) = (monotonic_ns(), wall_ns());
                        let exchange = Exchange { sent_ns, received_ns, answered_ns, answered_utc_ns, received_utc_ns };
                        exchanges.push(exchange);
                        break;
                    }
                    FromMeeting::Time { .. } => {
                        return Err(WireError::malformed("an answer", "it is to another question"));
                    }
                    other => self.hear(other)?,
                }
            }
        }
        let mut state = self.shared.state();
        state.offset = Offset::of(&exchanges);
        state.comparisons += 1;
        Ok(())
    }

    fn hear(&self, said: FromMeeting) -> Result<(), WireError> {
        let mut state = self.shared.state();
        match said {
            FromMeeting::Begin { step, monotonic_ns: begins_ns } => {
                let Some(offset) = state.offset else {
                    return Err(WireError::malformed("the start of a step", "it came before the clocks were compared"));
                };
                is_agreed(offset, begins_ns)?;
                state.begin = Some((step, begins_ns));
            }
            FromMeeting::Verdict { step, judgement } => state.verdict = Some((step, judgement)),
            FromMeeting::Gone { why, .. } => state.gone.push(plain(&why)),
            FromMeeting::Stop { why } => {
                drop(state);
                // First: whoever hears that all have ended finds the load asked to end.
                (self.on_stop)();
                self.shared.state().stopped.get_or_insert_with(|| plain(&why));
            }
            // Said once only, and times only when asked for: nothing waits for them here.
            FromMeeting::Welcome { .. } | FromMeeting::Refused { .. } | FromMeeting::Time { .. } => {}
        }
        self.shared.changed.notify_all();
        Ok(())
    }
}

/// Refuses a start that is farther ahead than all have agreed.
fn is_agreed(offset: Offset, begins_ns: u64) -> Result<(), WireError> {
    let ahead = offset.ahead(begins_ns, monotonic_ns());
    if ahead > MAX_LEAD {
        let why = format!("it is {ahead:.1?} ahead, and {LEAD:?} are agreed");
        return Err(WireError::malformed("the start of a step", why));
    }
    Ok(())
}

/// A question for the time and its answer, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent, by our monotonic clock.
    pub sent_ns: u64,
    /// When the answer came, by the same.
    pub received_ns: u64,
    /// When it was answered, by the other's monotonic clock.
    pub answered_ns: u64,
    /// The same since 1970 by the other host's clock.
    pub answered_utc_ns: u64,
    /// When the answer came, since 1970 by our clock.
    pub received_utc_ns: u64,
}

/// What has to be added to our clocks to have the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// To the monotonic clock, in nanoseconds.
    pub monotonic_ns: i128,
    /// To the time since 1970.
    pub utc_ns: i64,
    /// Half of the round trip: the true offset is no farther away, whatever the two ways were.
    pub bound_ns: u64,
}

impl Offset {
    /// By the exchange of the least round trip, whose answer can have been given at no other time than between its two ends: the
    /// rule of NTP's clock filter (RFC 5905, section 10). None of no exchanges.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let round_trip = |exchange: &Exchange| exchange.received_ns.saturating_sub(exchange.sent_ns);
        let best = exchanges.iter().min_by_key(|exchange| round_trip(exchange))?;
        let half_ns = round_trip(best) / 2;
        let between =
            |answered: u64, received: u64| i128::from(answered) - (i128::from(received) - i128::from(half_ns));
        let utc_ns = between(best.answered_utc_ns, best.received_utc_ns);
        Some(Self {
            monotonic_ns: between(best.answered_ns, best.received_ns),
            utc_ns: i64::try_from(utc_ns).unwrap_or(if utc_ns < 0 { i64::MIN } else { i64::MAX }),
            bound_ns: half_ns.max(1),
        })
    }

    /// The reading of our monotonic clock when the other's reads `theirs_ns`; none before our clock began.
    pub fn ours(&self, theirs_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(theirs_ns) - self.monotonic_ns).ok()
    }

    /// How long it is until the other's monotonic clock reads `theirs_ns`, when ours reads `now_ns`; nothing where that has been.
    fn ahead(&self, theirs_ns: u64, now_ns: u64) -> Duration {
        let ahead_ns = i128::from(theirs_ns) - self.monotonic_ns - i128::from(now_ns);
        Duration::from_nanos(u64::try_from(ahead_ns.max(0)).unwrap_or(u64::MAX))
    }

    /// For the record, before a load.
    pub fn recorded(&self) -> ClockOffset {
        ClockOffset { before_ns: self.utc_ns, after_ns: None, bound_ns: self.bound_ns }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(offset_ns: i64, sent_ns: u64, there_ns: u64, back_ns: u64) -> Exchange {
        let answered = (sent_ns + there_ns).saturating_add_signed(offset_ns);
        Exchange {
            sent_ns,
            received_ns: sent_ns + there_ns + back_ns,
            answered_ns: answered,
            answered_utc_ns: answered + 5_000,
            received_utc_ns: sent_ns + there_ns + back_ns + 5_000,
        }
    }

    #[test]
    fn nothing_is_known_without_an_exchange() {
        assert_eq!(Offset::of(&[]), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            truth in -1_000_000_000_i64..1_000_000_000,
            ways in prop::collection::vec((0..5_000_000_u64, 0..5_000_000_u64), 1..50),
        ) {
            let exchanges: Vec<Exchange> =
                ways.iter().zip(1_u64..).map(|((there, back), at)| exchange(truth, at * 10_000_000_000, *there, *back)).collect();
            let offset = Offset::of(&exchanges).unwrap();
            let least = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(offset.bound_ns, (least / 2).max(1));
            let error = (offset.monotonic_ns - i128::from(truth)).unsigned_abs();
            prop_assert!(error <= u128::from(least.div_ceil(2)), "{error} {least}");
            prop_assert!((i128::from(offset.utc_ns) - offset.monotonic_ns).abs() <= 1);
            let theirs = 20_000_000_000_u64;
            let ours = i128::from(offset.ours(theirs).unwrap());
            prop_assert_eq!(ours + offset.monotonic_ns, i128::from(theirs));
        }
    }
}
