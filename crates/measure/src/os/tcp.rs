//! What the kernel says of a TCP connection: `TCP_INFO`, read as bytes, since each release of Linux has a longer one.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt;

/// More than any kernel has (Linux 6.18 has 280).
const MAX_INFO_BYTES: usize = 512;
/// What Linux 4.9 has, all up to `tcpi_delivery_rate`: older kernels cannot say why a connection stops.
const MIN_INFO_BYTES: usize = 192;
/// A rate without a limit.
const NO_RATE: u64 = u64::MAX;
/// The kernel's word for "no round trip seen yet".
const NO_RTT_US: u32 = u32::MAX;

/// One reading of a connection. Counts are since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Whether the latest delivery rate was limited by the program.
    pub is_app_limited: bool,
    /// Largest segment that is sent, in bytes.
    pub mss_bytes: u32,
    /// Largest packet of the path, as far as the kernel knows, in bytes.
    pub path_mtu_bytes: u32,
    /// Smoothed round trip.
    pub rtt_ns: u64,
    /// Least round trip; `None` before the first one.
    pub min_rtt_ns: Option<u64>,
    /// Congestion window, in segments.
    pub cwnd_segments: u32,
    /// Segments sent again.
    pub segments_resent: u32,
    /// Rate at which the kernel lets it send, in bytes per second; `None` without a limit.
    pub pacing_bytes_per_s: Option<u64>,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments sent.
    pub segments_sent: u32,
    /// Bytes in the send buffer that were not sent yet.
    pub unsent_bytes: u32,
    /// Latest rate at which the other end received, in bytes per second.
    pub delivery_bytes_per_s: u64,
    /// Time with something to send.
    pub busy_ns: u64,
    /// Of it, held back by the receiver's window.
    pub rwnd_limited_ns: u64,
    /// Of it, held back by the send buffer.
    pub sndbuf_limited_ns: u64,
    /// Bytes sent, those sent again included (Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Bytes sent again (Linux 4.19).
    pub bytes_resent: Option<u64>,
    /// Segments that the other end had already when they came again (Linux 4.19).
    pub segments_duplicate: Option<u32>,
    /// Segments that came out of order (Linux 5.4).
    pub segments_out_of_order: Option<u32>,
    /// Window that the other end offers, in bytes (Linux 5.4).
    pub peer_window_bytes: Option<u32>,
}

impl TcpInfo {
    /// Reads that of a socket.
    ///
    /// # Errors
    /// What `getsockopt(2)` says; `Unsupported` where the kernel is too old to say what this needs (before Linux 4.9).
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = MaybeUninit::<[u8; MAX_INFO_BYTES]>::zeroed();
        let mut length = MAX_INFO_BYTES as libc::socklen_t;
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: the buffer is as long as `length` says, both are writable and outlive the call, and the descriptor is open.
        let done = unsafe {
            libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: any bytes are valid, and the zeroes it started with are there where the kernel wrote none.
        let bytes = unsafe { bytes.assume_init() };
        let known = bytes.get(..length as usize).unwrap_or_default();
        Self::parse(known).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    /// From the bytes of `struct tcp_info`, as many as the kernel has (`include/uapi/linux/tcp.h`).
    fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < MIN_INFO_BYTES {
            return None;
        }
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let micros = |us: u64| us.saturating_mul(1_000);
        Some(Self {
            // The kernel's bit fields begin with the lowest bit where numbers begin with the lowest byte.
            is_app_limited: bytes[7] & if cfg!(target_endian = "little") { 1 } else { 0x80 } != 0,
            mss_bytes: word(16)?,
            path_mtu_bytes: word(60)?,
            rtt_ns: micros(word(68)?.into()),
            min_rtt_ns: word(148).filter(|us| *us != NO_RTT_US).map(|us| micros(us.into())),
            cwnd_segments: word(80)?,
            segments_resent: word(100)?,
            pacing_bytes_per_s: long(104).filter(|rate| *rate != NO_RATE),
            bytes_acked: long(120)?,
            bytes_received: long(128)?,
            segments_sent: word(136)?,
            unsent_bytes: word(144)?,
            delivery_bytes_per_s: long(160)?,
            busy_ns: micros(long(168)?),
            rwnd_limited_ns: micros(long(176)?),
            sndbuf_limited_ns: micros(long(184)?),
            bytes_sent: long(200),
            bytes_resent: long(208),
            segments_duplicate: word(216),
            segments_out_of_order: word(224),
            peer_window_bytes: word(228),
        })
    }
}

/// What a socket has. The kernel lets buffers grow whose size nobody asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketFacts {
    /// Its congestion control.
    pub congestion_control: Option<String>,
    /// Its send buffer, in bytes, as the kernel counts it: twice what a program asks for.
    pub send_buffer_bytes: Option<u64>,
    /// Its receive buffer likewise.
    pub receive_buffer_bytes: Option<u64>,
}

impl SocketFacts {
    /// Of a socket; what cannot be read is absent.
    pub fn of(socket: impl AsFd) -> Self {
        let socket = socket.as_fd();
        let bytes = |size: rustix::io::Result<usize>| size.ok().and_then(|bytes| u64::try_from(bytes).ok());
        Self {
            congestion_control: sockopt::tcp_congestion(socket).ok(),
            send_buffer_bytes: bytes(sockopt::socket_send_buffer_size(socket)),
            receive_buffer_bytes: bytes(sockopt::socket_recv_buffer_size(socket)),
        }
    }

    /// Takes in those of another socket: the smaller buffers are kept.
    pub(super) fn take_in(&mut self, other: Self) {
        let smaller = |known: Option<u64>, other: Option<u64>| known.into_iter().chain(other).min();
        self.send_buffer_bytes = smaller(self.send_buffer_bytes, other.send_buffer_bytes);
        self.receive_buffer_bytes = smaller(self.receive_buffer_bytes, other.receive_buffer_bytes);
        self.congestion_control = other.congestion_control.or(self.congestion_control.take());
    }
}

/// Largest packet of the path of a connected socket, as the kernel knows it now (`IP_MTU`), in bytes.
pub fn path_mtu(socket: impl AsFd) -> Option<u32> {
    let socket = socket.as_fd();
    sockopt::ip_mtu(socket).or_else(|_| sockopt::ipv6_mtu(socket)).ok()
}

/// Bytes that have come for a socket and wait to be taken.
pub fn unread_bytes(socket: impl AsFd) -> Option<u64> {
    rustix::io::ioctl_fionread(socket).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_on_loopback_tells_what_went_over_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 10_000]).unwrap();
        far.read_exact(&mut [0; 10_000]).unwrap();
        far.write_all(b"!").unwrap();
        near.read_exact(&mut [0]).unwrap();
        let info = TcpInfo::of(&near).unwrap();
        assert_eq!(unread_bytes(&far), Some(0));
        assert!(info.bytes_acked >= 10_000, "{info:?}");
        assert_eq!(info.bytes_received, 1);
        assert!(info.rtt_ns > 0 && info.min_rtt_ns.is_some_and(|least| least <= 1_000_000_000), "{info:?}");
        assert!(info.mss_bytes > 500 && info.cwnd_segments >= 1 && info.segments_sent > 1, "{info:?}");
        assert_eq!(path_mtu(&near), Some(info.path_mtu_bytes));
        let facts = SocketFacts::of(&near);
        assert!(facts.send_buffer_bytes.unwrap() > 1_000 && !facts.congestion_control.unwrap().is_empty());
    }

    #[test]
    fn what_is_no_connection_and_what_an_old_kernel_says_are_refused() {
        assert!(TcpInfo::of(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
        assert_eq!(TcpInfo::parse(&[0; 104]), None);
        let old = TcpInfo::parse(&[0; 192]).unwrap();
        assert_eq!((old.bytes_sent, old.peer_window_bytes), (None, None));
    }

    #[test]
    fn fields_are_read_where_the_kernel_has_them() {
        let mut bytes = [0; 280];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(68, &250u32.to_ne_bytes());
        put(148, &u32::MAX.to_ne_bytes());
        put(104, &u64::MAX.to_ne_bytes());
        put(176, &3u64.to_ne_bytes());
        put(208, &4096u64.to_ne_bytes());
        put(216, &5u32.to_ne_bytes());
        put(228, &65_535u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes).unwrap();
        assert_eq!((info.rtt_ns, info.min_rtt_ns, info.pacing_bytes_per_s), (250_000, None, None));
        assert_eq!((info.rwnd_limited_ns, info.bytes_resent), (3_000, Some(4_096)));
        assert_eq!((info.segments_duplicate, info.peer_window_bytes), (Some(5), Some(65_535)));
    }
}
