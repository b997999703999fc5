//! The witness: notes what a load says was acknowledged, over a connection or from a pipe.
//!
//! It notes one load, then ends. A load says something at least twice a second, so silence says that its machine is gone. A connection that
//! is closed at once says the opposite: a machine without power closes nothing.

use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::brief;
use crate::notes::{MAX_LINE_BYTES, Refused, Writer};
use crate::opening::{Closing, How, Opening};
use targets::network::wire::{
    Acceptor, Control, Key, Known, PROVES_IN, Role, Version, WireError, accept_connections, greet,
};

/// How often a load says something, if only that it is there.
pub const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// A load that says nothing for so long is gone.
const SILENT_AFTER: Duration = Duration::from_secs(10);
/// How long a load may take to hear why its witness ends.
const LEAVES_IN: Duration = Duration::from_secs(1);
/// How often is looked whether the witness is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a load says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromLoad {
    /// Said first. Answered by [`FromWitness::Welcome`] or [`FromWitness::Refused`].
    Hello(Version),
    /// Everything is made, and load begins. Answered by [`FromWitness::Opened`] or [`FromWitness::Refused`].
    Open(Box<Opening>),
    /// Sessions, each with the number of a commit that was acknowledged to it. Answered by [`FromWitness::Noted`] with the same.
    Notes(Vec<(u32, u64)>),
    /// It is there still.
    Alive,
    /// It is over. Answered by [`FromWitness::Closed`].
    End(End),
}

/// How a load ended, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Whether an error ended it.
    pub has_failed: bool,
    /// Whether that was a target which does not answer any more, as a server whose power was cut.
    pub is_target_gone: bool,
    /// For how long nothing had been acknowledged, in milliseconds.
    pub idle_ms: u64,
    /// Which.
    pub why: String,
}

impl End {
    /// A server whose power was cut is silent before it is given up; one that was stopped closes its connections at once.
    fn silence(&self) -> Duration {
        if self.is_target_gone { Duration::from_millis(self.idle_ms) } else { Duration::ZERO }
    }

    fn how(&self) -> How {
        match (self.has_failed, self.is_target_gone) {
            (false, _) => How::Done,
            (true, false) => How::Failed,
            (true, true) => How::TargetGone,
        }
    }
}

/// What a witness says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWitness {
    /// The load may begin.
    Welcome,
    /// It may not.
    Refused(String),
    /// The opening is noted, durably.
    Opened,
    /// These commits are noted.
    Noted(Vec<(u32, u64)>),
    /// The end is noted, durably.
    Closed,
    /// Nothing more is noted.
    Failed(String),
}

/// What a witness tells its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A load has begun.
    Opened {
        /// Its target.
        target: String,
        /// Its sessions.
        sessions: u32,
    },
    /// The load has said something.
    Heard,
    /// Its end is noted.
    Ended,
    /// Something else came, or came without the token.
    TurnedAway {
        /// From where.
        from: IpAddr,
        /// Why it was.
        why: String,
    },
}

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { target, sessions } => write!(f, "noting the commits of {sessions} sessions on `{target}`"),
            Self::Heard => f.write_str("the load is there"),
            Self::Ended => f.write_str("the load has ended"),
            Self::TurnedAway { from, why } => write!(f, "{from} turned away: {why}"),
        }
    }
}

/// What a witness did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many commits it noted.
    pub notes: u64,
    /// How the load ended; none if none came.
    pub closing: Option<Closing>,
}

/// Why a witness cannot go on.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum WitnessError {
    /// Nothing can come any more.
    #[error("the witness takes no connections any more: {0}")]
    Accept(io::Error),
    /// The notes could not be written.
    #[error("the notes end here, since they cannot be written: {0}")]
    #[diagnostic(help("free some space, or use another file for the next run"))]
    Write(String),
    /// The load says what no load says.
    #[error("the notes end here, since what came is not from a load of commits: {0}")]
    #[diagnostic(help("pipe `plimsoll durable load` into it, of the same version on both hosts"))]
    Strange(String),
    /// Standard input cannot be read.
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
}

/// A witness that is at work.
struct Keeper<'a> {
    key: &'a Key,
    stop: &'a AtomicBool,
    tell: &'a (dyn Fn(&Event) + Sync),
    is_over: AtomicBool,
    desk: Mutex<Desk>,
}

struct Desk {
    writer: Writer,
    is_taken: bool,
    closing: Option<Closing>,
    error: Option<WitnessError>,
}

impl Desk {
    fn new(writer: Writer) -> Self {
        Self { writer, is_taken: false, closing: None, error: None }
    }

    /// Notes the end of a load, where one has begun.
    fn close(&mut self, how: How, why: &str, silent: Duration) {
        if !self.writer.is_open() {
            return;
        }
        let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
        let closing = Closing { how, why: brief(why), silent_ms, at_us: 0, notes: self.writer.notes() };
        if let Err(error) = self.writer.close(&closing) {
            self.error.get_or_insert(WitnessError::Write(error.to_string()));
        }
        self.closing.get_or_insert(closing);
    }

    fn fail(&mut self, error: WitnessError) {
        self.close(How::Stopped, &error.to_string(), Duration::ZERO);
        self.error.get_or_insert(error);
    }

    fn end(self) -> Result<Summary, WitnessError> {
        let summary = Summary { notes: self.writer.notes(), closing: self.closing };
        self.writer.discard();
        self.error.map_or(Ok(summary), Err)
    }
}

/// Notes the load that comes to `listener`, until it ends or `stop` is set.
///
/// # Errors
/// When the notes cannot be written, or nothing can come.
pub fn serve(
    listener: &TcpListener,
    key: &Key,
    writer: Writer,
    stop: &AtomicBool,
    tell: &(dyn Fn(&Event) + Sync),
) -> Result<Summary, WitnessError> {
    let keeper = Keeper { key, stop, tell, is_over: AtomicBool::new(false), desk: Mutex::new(Desk::new(writer)) };
    let accepted = std::thread::scope(|scope| accept_connections(&keeper, listener, scope));
    let desk = keeper.desk.into_inner().unwrap_or_else(PoisonError::into_inner);
    let summary = desk.end();
    accepted.map_err(WitnessError::Accept)?;
    summary
}

impl Acceptor for Keeper<'_> {
    fn is_closing(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    fn attend(&self, stream: Arc<TcpStream>, _: IpAddr, known: &Known) -> Result<(), WireError> {
        let deadline = Instant::now() + PROVES_IN;
        let met = greet(&stream, self.key, || None, deadline);
        known.say();
        if met?.0 != Role::Load {
            return Err(WireError::malformed("a hello", "something else than a load comes to a witness"));
        }
        // It may just have been closed, to make room.
        let stream = Arc::into_inner(stream).ok_or(WireError::NoTest)?;
        let mut control = Control::<FromLoad, FromWitness>::new(stream);
        let FromLoad::Hello(version) = control.expect(deadline)? else {
            return Err(WireError::malformed("a load's first message", "it is not its hello"));
        };
        let refused = match version.check() {
            Err(error) => Some(error.to_string()),
            Ok(()) if std::mem::replace(&mut self.desk().is_taken, true) => {
                Some("it notes another load: a witness has one, and one file of notes".to_owned())
            }
            Ok(()) => None,
        };
        if let Some(why) = refused {
            control.send(&FromWitness::Refused(why.clone()))?;
            control.close();
            return Err(WireError::malformed("a load", why));
        }
        let attended = {
            // Whatever ends it, a panic too, the desk is free again or the witness over: before the load learns that it has ended, since
            // it may come again.
            let _leaving = Leaving(self);
            control.send(&FromWitness::Welcome).and_then(|()| self.attend_load(&mut control))
        };
        control.leave(Instant::now() + LEAVES_IN);
        attended
    }

    fn turned_away(&self, from: IpAddr, why: &dyn Display) {
        (self.tell)(&Event::TurnedAway { from: from.to_canonical(), why: brief(&why.to_string()) });
    }

    fn could_not_take(&self, why: &io::Error) {
        self.turned_away(IpAddr::from([0, 0, 0, 0]), &format_args!("no connection can be taken for now: {why}"));
    }
}

struct Leaving<'a, 'b>(&'a Keeper<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        let mut desk = self.0.desk();
        desk.is_taken = false;
        if desk.writer.is_open() {
            // Where the end has been noted, it stays.
            if desk.closing.is_none() {
                desk.close(How::Closed, "the witness failed", Duration::ZERO);
            }
            self.0.is_over.store(true, Ordering::Relaxed);
        }
    }
}

impl Keeper<'_> {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attend_load(&self, control: &mut Control<FromLoad, FromWitness>) -> Result<(), WireError> {
        let mut heard = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                self.desk().close(How::Stopped, "", heard.elapsed());
                // It ends at once, and says why.
                let _ = control.send(&FromWitness::Failed("the witness was stopped".to_owned()));
                return Ok(());
            }
            match control.receive(Instant::now() + LOOK_EVERY) {
                Ok(Some(said)) => {
                    heard = Instant::now();
                    (self.tell)(&if matches!(said, FromLoad::End(_)) { Event::Ended } else { Event::Heard });
                    let answer = self.hear(said);
                    let is_last =
                        matches!(answer, Some(FromWitness::Closed | FromWitness::Failed(_) | FromWitness::Refused(_)));
                    if let Some(answer) = answer
                        && let Err(error) = control.send(&answer)
                        && !is_last
                    {
                        self.desk().close(How::Closed, &error.to_string(), heard.elapsed());
                        return Ok(());
                    }
                    if is_last {
                        return Ok(());
                    }
                }
                Ok(None) if heard.elapsed() >= SILENT_AFTER => {
                    self.desk().close(How::Silent, "", heard.elapsed());
                    return Ok(());
                }
                Ok(None) => {}
                Err(error) => {
                    self.desk().close(How::Closed, &error.to_string(), heard.elapsed());
                    return Ok(());
                }
            }
            let mut desk = self.desk();
            if let Err(error) = desk.writer.look() {
                desk.error.get_or_insert(WitnessError::Write(error.to_string()));
                desk.close(How::Stopped, "the notes cannot be written", Duration::ZERO);
                drop(desk);
                let _ = control.send(&FromWitness::Failed("the notes cannot be written".to_owned()));
                return Ok(());
            }
        }
    }

    /// What is answered.
    fn hear(&self, said: FromLoad) -> Option<FromWitness> {
        let mut desk = self.desk();
        match said {
            FromLoad::Alive => None,
            FromLoad::Hello(_) => Some(FromWitness::Refused("a second hello".to_owned())),
            FromLoad::Open(opening) => Some(match desk.writer.open(&opening) {
                Ok(()) => {
                    let target = brief(&opening.target);
                    drop(desk);
                    (self.tell)(&Event::Opened { target, sessions: opening.shape.sessions });
                    FromWitness::Opened
                }
                Err(why) => {
                    // Half an opening may be there, which no other may follow.
                    if let Refused::File(error) = &why {
                        desk.error.get_or_insert(WitnessError::Write(error.to_string()));
                        self.is_over.store(true, Ordering::Relaxed);
                    }
                    FromWitness::Refused(why.to_string())
                }
            }),
            FromLoad::Notes(commits) => Some(match desk.writer.note(&commits) {
                Ok(()) => FromWitness::Noted(commits),
                Err(why) => {
                    if let Refused::File(error) = &why {
                        desk.error.get_or_insert(WitnessError::Write(error.to_string()));
                    }
                    desk.close(How::Stopped, &why.to_string(), Duration::ZERO);
                    FromWitness::Failed(why.to_string())
                }
            }),
            FromLoad::End(_) if !desk.writer.is_open() => {
                Some(FromWitness::Refused("an end without a beginning".to_owned()))
            }
            FromLoad::End(end) => {
                desk.close(end.how(), &end.why, end.silence());
                Some(FromWitness::Closed)
            }
        }
    }
}

/// Begins what a load writes to a pipe; the version of the program follows.
pub const PIPE_HEADING: &str = "plimsoll durable load 1 ";

/// Notes the load that writes to `input`, until it ends or `stop` is set.
///
/// # Errors
/// When the notes cannot be written, or what comes is not a load's.
pub fn listen(
    input: impl AsFd,
    writer: Writer,
    stop: &AtomicBool,
    tell: &(dyn Fn(&Event) + Sync),
) -> Result<Summary, WitnessError> {
    let mut listener =
        Listener { desk: Desk::new(writer), line: Vec::new(), commits: Vec::new(), is_greeted: false, tell };
    let mut heard = Instant::now();
    let mut piece = vec![0; MAX_LINE_BYTES];
    let mut is_over = false;
    while !is_over && listener.desk.closing.is_none() {
        if stop.load(Ordering::Relaxed) {
            listener.desk.close(How::Stopped, "", heard.elapsed());
            break;
        }
        let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => {
                if listener.desk.writer.is_open() && heard.elapsed() >= SILENT_AFTER {
                    listener.desk.close(How::Silent, "", heard.elapsed());
                }
            }
            Ok(_) => match rustix::io::read(&input, &mut piece[..]) {
                Ok(0) => {
                    listener.desk.close(How::Closed, "the pipe was closed", heard.elapsed());
                    is_over = true;
                }
                Ok(read) => {
                    heard = Instant::now();
                    tell(&Event::Heard);
                    if let Err(why) = listener.take_in(&piece[..read]) {
                        listener.desk.close(How::Stopped, &why.to_string(), Duration::ZERO);
                        listener.desk.error.get_or_insert(why);
                        is_over = true;
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => {
                    listener.desk.fail(WitnessError::Input(error.into()));
                    is_over = true;
                }
            },
            Err(error) => {
                listener.desk.fail(WitnessError::Input(error.into()));
                is_over = true;
            }
        }
        if let Err(error) = listener.desk.writer.look() {
            listener.desk.error.get_or_insert(WitnessError::Write(error.to_string()));
            listener.desk.close(How::Stopped, "the notes cannot be written", Duration::ZERO);
            is_over = true;
        }
    }
    listener.desk.end()
}

struct Listener<'a> {
    desk: Desk,
    /// What has come of a line whose end has not.
    line: Vec<u8>,
    commits: Vec<(u32, u64)>,
    is_greeted: bool,
    tell: &'a (dyn Fn(&Event) + Sync),
}

impl Listener<'_> {
    fn take_in(&mut self, mut bytes: &[u8]) -> Result<(), WitnessError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let text =
                std::str::from_utf8(&line).map_err(|_| WitnessError::Strange("a line is not text".to_owned()))?;
            if let Err(why) = self.hear(text) {
                // What came before it was acknowledged all the same.
                self.write()?;
                return Err(why);
            }
            line.clear();
            self.line = line;
            if self.desk.closing.is_some() {
                return Ok(());
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_LINE_BYTES {
            return Err(WitnessError::Strange("a line is longer than a load writes".to_owned()));
        }
        // What came together is written together.
        self.write()
    }

    fn write(&mut self) -> Result<(), WitnessError> {
        if self.commits.is_empty() {
            return Ok(());
        }
        let noted = self.desk.writer.note(&self.commits);
        self.commits.clear();
        noted.map_err(not_noted)
    }

    fn hear(&mut self, line: &str) -> Result<(), WitnessError> {
        let strange = || WitnessError::Strange(format!("`{}`", brief(line)));
        if !self.is_greeted {
            let program = line.strip_prefix(PIPE_HEADING).ok_or_else(strange)?;
            self.is_greeted = true;
            let ours = Version::ours().program;
            return if program == ours {
                Ok(())
            } else {
                Err(WitnessError::Strange(format!("it is plimsoll {}, and this is {ours}", brief(program))))
            };
        }
        if line == "alive" {
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("open ") {
            let opening: Opening = serde_json::from_str(text).map_err(|_| strange())?;
            self.desk.writer.open(&opening).map_err(not_noted)?;
            let target = brief(&opening.target);
            (self.tell)(&Event::Opened { target, sessions: opening.shape.sessions });
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("end ") {
            (self.tell)(&Event::Ended);
            self.write()?;
            let end: End = serde_json::from_str(text).map_err(|_| strange())?;
            self.desk.close(end.how(), &end.why, end.silence());
            return Ok(());
        }
        let (session, seq) = line.split_once(' ').ok_or_else(strange)?;
        let commit = (session.parse().map_err(|_| strange())?, seq.parse().map_err(|_| strange())?);
        self.commits.push(commit);
        Ok(())
    }
}

fn not_noted(why: Refused) -> WitnessError {
    match why {
        Refused::File(error) => WitnessError::Write(error.to_string()),
        why => WitnessError::Strange(why.to_string()),
    }
}

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;
