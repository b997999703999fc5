//! A wire that takes time: two TUN devices, and a thread for each direction that keeps packets for a while.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::spaces::{CLIENT, SERVER, Spaces};

/// Packets that may be under way.
const QUEUE: usize = 4_000;

/// Ends when it is dropped.
pub struct Wire {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wire {
    /// Between client and server, `delay` in each direction.
    pub fn lay(spaces: &Spaces, delay: Duration) -> Self {
        let near = device(spaces, "c", CLIENT, SERVER);
        let far = device(spaces, "s", SERVER, CLIENT);
        let stop = Arc::new(AtomicBool::new(false));
        let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
        let carry = |(from, to): (File, File)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || carry(from, to, delay, &stop))
        };
        let threads = ways.map(carry).into();
        Self { stop, threads }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A TUN device in a namespace, whose packets are read from and written to the file.
fn device(spaces: &Spaces, end: &str, address: &str, peer: &str) -> File {
    let open = || {
        spaces.enter(end);
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
        let file = file.unwrap();
        // SAFETY: a structure of integers and pointers, for which zeroes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name[..2].copy_from_slice(&[b'e' as _, b'0' as _]);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as _;
        // SAFETY: the request is writable, of the type that the call takes, and outlives it.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        file
    };
    let file = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
    spaces.run_in(end, "ip", &["addr", "add", address, "peer", peer, "dev", "e0"]);
    spaces.run_in(end, "ip", &["link", "set", "e0", "txqueuelen", "4000", "up"]);
    file
}

/// Takes packets from one device and gives each to the other after `delay`.
fn carry(mut from: File, mut to: File, delay: Duration, stop: &AtomicBool) {
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut packet = [0; 2_000];
    while !stop.load(Ordering::Relaxed) {
        while let Ok(length) = from.read(&mut packet) {
            if under_way.len() < QUEUE {
                under_way.push_back((Instant::now() + delay, packet[..length].to_vec()));
            }
        }
        while under_way.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let (_, packet) = under_way.pop_front().unwrap();
            // What the other end has no room for is lost, as on any wire.
            let _ = to.write(&packet);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}
