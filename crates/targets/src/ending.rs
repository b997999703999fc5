//! The user's request to end, for those who wait for another machine to let them in.
//!
//! There is one for the whole process, as there is one Ctrl-C: connections are made in many places, most of which have nobody to ask.
//! It ends attempts that are under way when it comes. Later ones go on as ever, for whoever ends his work in good order may have to
//! connect for that, such as to cancel what still runs.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect as begin_to_connect, socket_with, sockopt};

static END_SIGNAL: RwLock<Option<Arc<AtomicBool>>> = RwLock::new(None);

/// How often whoever waits looks for the signal.
pub const LOOK: Duration = Duration::from_millis(50);

/// Has attempts to connect end once this flag is set.
pub fn end_connecting_on(flag: &Arc<AtomicBool>) {
    *END_SIGNAL.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(flag));
}

/// The request as one attempt sees it.
#[derive(Debug)]
pub struct EndSignal(Option<Arc<AtomicBool>>);

impl EndSignal {
    /// As of an attempt that begins now: what was wished before does not end it.
    pub fn from_now_on() -> Self {
        Self::of(END_SIGNAL.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The same of another flag than the process's.
    pub fn of(flag: Option<Arc<AtomicBool>>) -> Self {
        Self(flag.filter(|flag| !flag.load(Ordering::Relaxed)))
    }

    /// Whether the attempt is to end.
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Connects within `limit`.
    ///
    /// # Errors
    /// Those of `connect(2)`; [`io::ErrorKind::TimedOut`] after `limit`, [`io::ErrorKind::Interrupted`] when the signal comes before.
    pub fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let stream = TcpStream::from(socket_with(family, SocketType::STREAM, flags, None)?);
        let deadline = Instant::now() + limit;
        match begin_to_connect(&stream, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                self.ready(&stream, deadline)?;
                sockopt::socket_error(&stream)??;
            }
            Err(error) => return Err(error.into()),
        }
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    /// Waits until the kernel has decided about a connection.
    fn ready(&self, stream: &TcpStream, deadline: Instant) -> io::Result<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = Timespec::try_from(left.min(LOOK)).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&wait)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.is_set() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Carries out an exchange that waits for what comes over `stream`. When the signal comes, the connection is shut, so that the
    /// exchange fails as if the other end had gone.
    pub fn during<T>(&self, stream: &TcpStream, exchange: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = || {
                while !is_over.load(Ordering::Acquire) {
                    if self.is_set() {
                        let _ = stream.shutdown(Shutdown::Both);
                        return;
                    }
                    std::thread::park_timeout(LOOK);
                }
            };
            // Without a thread to spare the exchange still ends by its own deadline.
            let watcher = std::thread::Builder::new().name("ending".to_owned()).spawn_scoped(scope, watch);
            // A panic of the exchange must not leave the watcher behind, which the scope would wait for.
            let _over = Over(&is_over, watcher.as_ref().ok().map(|watcher| watcher.thread().clone()));
            exchange()
        })
    }
}

/// Ends a watcher.
struct Over<'a>(&'a AtomicBool, Option<std::thread::Thread>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.iter().for_each(std::thread::Thread::unpark);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// A signal, and a thread that gives it.
    fn soon() -> (EndSignal, std::thread::JoinHandle<()>) {
        let flag = Arc::new(AtomicBool::new(false));
        let signal = EndSignal::of(Some(Arc::clone(&flag)));
        let gives = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        (signal, gives)
    }

    #[test]
    fn what_was_wished_before_does_not_end_an_attempt() {
        assert!(!EndSignal::of(Some(Arc::new(AtomicBool::new(true)))).is_set());
        assert!(!EndSignal::of(None).is_set());
    }

    #[test]
    fn a_connection_is_made_or_refused_as_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let signal = EndSignal::of(None);
        let stream = signal.connect(address, LONG).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        drop((stream, listener));
        assert_eq!(signal.connect(address, LONG).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    /// A listener whose queue is full takes no more connections, and says nothing.
    #[test]
    fn waiting_for_an_answer_ends_by_the_signal_and_by_the_limit() {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
        let short = Duration::from_millis(200);
        let filling: Vec<_> = (0..4).map(|_| EndSignal::of(None).connect(address, short)).collect();
        assert_eq!(filling[3].as_ref().unwrap_err().kind(), io::ErrorKind::TimedOut);
        let (signal, gives) = soon();
        assert_eq!(signal.connect(address, LONG).unwrap_err().kind(), io::ErrorKind::Interrupted);
        gives.join().unwrap();
    }

    #[test]
    fn an_exchange_with_a_silent_end_is_ended_by_the_signal() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (signal, gives) = soon();
        let stream = signal.connect(listener.local_addr().unwrap(), LONG).unwrap();
        assert_eq!(signal.during(&stream, || (&stream).read(&mut [0; 8])).unwrap(), 0);
        gives.join().unwrap();
        assert_eq!(EndSignal::of(None).during(&stream, || 7), 7);
    }
}
