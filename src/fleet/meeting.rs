//! The meeting point: a port, a thread for each part, and the book that says how it goes on.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::book::Book;
use super::{FleetError, FromMeeting, FromPart, Introduction, Rules, plain};
use measure::{monotonic_ns, wall_ns};
use targets::network::wire::{
    Acceptor, Control, Key, Known, PROVES_IN, Role, Token, WireError, accept_connections, greet,
};

/// How often a part's thread looks for what is to be said to it.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long parts may take to go when part 0 has ended.
const GOES_IN: Duration = Duration::from_secs(5);

type PartControl = Control<FromPart, FromMeeting>;

/// A meeting point that is open. Ends when it is dropped: parts that are still there are stopped.
#[derive(Debug)]
pub struct Meeting {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    key: Key,
    book: Mutex<Book>,
    is_closing: AtomicBool,
    /// Those who were turned away, for the record of part 0; no more than a few.
    away: Mutex<Vec<String>>,
}

/// Most strangers that are named.
const MAX_AWAY: usize = 8;

/// Where part 0 listens for `host`: at the address that it is; for a name on all of them, because a host's own name is often an
/// address of its loopback (Debian's `/etc/hosts` has 127.0.1.1), and on loopback for `localhost`.
pub fn listening_addresses(host: &str, port: u16) -> Vec<SocketAddr> {
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let all = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
    let addresses: Vec<IpAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) if host.eq_ignore_ascii_case("localhost") => loopback.to_vec(),
        Err(_) => all.to_vec(),
    };
    addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect()
}

impl Meeting {
    /// Listens at the first address that can be listened at.
    ///
    /// # Errors
    /// When none can.
    pub fn open(point: &str, listen: &[SocketAddr], token: &Token, rules: Rules) -> Result<Self, FleetError> {
        let refused = |source| FleetError::Listen { point: point.to_owned(), source };
        let mut first_error = None;
        let listener = listen.iter().find_map(|address| {
            TcpListener::bind(address).map_err(|error| first_error.get_or_insert(error).kind()).ok()
        });
        let no_address = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let listener = listener.ok_or_else(|| refused(first_error.unwrap_or_else(no_address)))?;
        let address = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let shared = Arc::new(Shared {
            key: token.key(),
            book: Mutex::new(Book::new(rules, monotonic_ns())),
            is_closing: AtomicBool::new(false),
            away: Mutex::default(),
        });
        let keeper = Arc::clone(&shared);
        let attend = move || {
            std::thread::scope(|scope| {
                let looks = std::thread::Builder::new().name("meeting look".to_owned());
                let looks = looks.spawn_scoped(scope, || keeper.look_until_closed());
                let opened = looks.and_then(|_| accept_connections(&*keeper, &listener, scope));
                if let Err(error) = opened {
                    keeper.book().stop(format!("the meeting point cannot take connections: {error}"));
                    keeper.is_closing.store(true, Ordering::Relaxed);
                }
            });
        };
        let thread = std::thread::Builder::new().name("meeting".to_owned()).spawn(attend);
        let thread = thread.map_err(|source| FleetError::Thread { source })?;
        Ok(Self { shared, address, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many parts are here: `3 of 4 parts`.
    pub fn here(&self) -> String {
        self.shared.book().here()
    }

    /// Those who were turned away, each with the reason; a few at most.
    pub fn turned_away(&self) -> Vec<String> {
        self.shared.away.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all parts have gone, for 5 s at most, and closes.
    pub fn close(mut self) {
        let deadline = Instant::now() + GOES_IN;
        while !self.shared.book().is_empty() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
        self.end();
    }

    fn end(&mut self) {
        self.shared.book().stop("part 0 has ended".to_owned());
        self.shared.is_closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been printed; what was measured does not depend on it.
            let _ = thread.join();
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_until_closed(&self) {
        while !self.is_closing.load(Ordering::Relaxed) {
            self.book().look(monotonic_ns());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Attends to a part that has been let in, until it goes.
    fn attend_part(&self, control: &mut PartControl, number: u32) {
        let gone = loop {
            // What has been said to it last may be that it is to end: it hears that before the port closes.
            let is_closing = self.is_closing.load(Ordering::Relaxed);
            let next = self.book().take(number);
            match next {
                Some(message) => {
                    if let Err(error) = control.send(&message) {
                        break Some(format!("it went away: {error}"));
                    }
                    continue;
                }
                None if is_closing || !self.book().has(number) => break None,
                None => {}
            }
            match control.receive(Instant::now() + LOOK_EVERY) {
                Ok(None) => {}
                Ok(Some(said)) => match self.hear(control, number, said) {
                    Ok(Stays::Yes) => {}
                    Ok(Stays::No { early }) => {
                        self.book().left(number, early.as_deref(), monotonic_ns());
                        return control.close();
                    }
                    Err(error) => break Some(format!("it went away: {error}")),
                },
                Err(error) if error.is_closed() => {
                    break Some("its connection was closed: it was killed, or its host is gone".to_owned());
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        if let Some(why) = gone {
            self.book().left(number, Some(&why), monotonic_ns());
        }
        control.close();
    }

    fn hear(&self, control: &PartControl, number: u32, said: FromPart) -> Result<Stays, WireError> {
        let now_ns = monotonic_ns();
        // Before anything else: what a lock takes is taken for the way.
        if let FromPart::Ask(asked) = said {
            control.send(&FromMeeting::Time { asked, monotonic_ns: now_ns, utc_ns: wall_ns() })?;
        }
        let mut book = self.book();
        book.heard(number, now_ns);
        match said {
            FromPart::Ready { step, label } => book.ready(number, step, &label, now_ns),
            FromPart::Judged { step, judgement } => book.judged(number, step, judgement, now_ns),
            FromPart::Leaves { early } => return Ok(Stays::No { early }),
            FromPart::Hello(_) => return Err(WireError::malformed("a message", "a second hello")),
            FromPart::Alive | FromPart::Ask(_) => {}
        }
        Ok(Stays::Yes)
    }
}

enum Stays {
    Yes,
    No { early: Option<String> },
}

impl Acceptor for Shared {
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    fn attend(&self, stream: Arc<TcpStream>, from: IpAddr, known: &Known) -> Result<(), WireError> {
        let deadline = Instant::now() + PROVES_IN;
        let met = greet(&stream, &self.key, || None, deadline);
        known.say();
        if met?.0 != Role::Part {
            return Err(WireError::malformed("a hello", "something else than a part comes to a meeting point"));
        }
        // It may just have been closed, to make room.
        let stream = Arc::into_inner(stream).ok_or(WireError::NoTest)?;
        let mut control = PartControl::new(stream);
        let FromPart::Hello(who) = control.expect(deadline)? else {
            return Err(WireError::malformed("a part's first message", "it is not its hello"));
        };
        let joined = check(&who).and_then(|()| self.book().join(&who, monotonic_ns()));
        if let Err(why) = joined {
            self.turned_away(from, &format_args!("part {} on {}: {why}", who.number, plain(&who.host)));
            control.send(&FromMeeting::Refused { why })?;
            control.close();
            return Ok(());
        }
        self.attend_part(&mut control, who.number);
        Ok(())
    }

    fn turned_away(&self, from: IpAddr, why: &dyn Display) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.len() < MAX_AWAY {
            away.push(format!("{}: {why}", from.to_canonical()));
        }
    }

    fn could_not_take(&self, why: &io::Error) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let why = format!("a client that could not be let in at once: {why}");
        if away.len() < MAX_AWAY && !away.contains(&why) {
            away.push(why);
        }
    }
}

fn check(who: &Introduction) -> Result<(), String> {
    who.version.check().map_err(|error| error.to_string())
}
