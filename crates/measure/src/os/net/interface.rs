//! The interface that holds an address: its name, its largest packet, and what its driver says of it and counts.
//!
//! Everything is asked by system calls, since `/sys` shows the network that its mount was made in, which need not be the thread's.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, socket};

/// From `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// From `linux/ethtool.h`.
const GET_SETTINGS: u32 = 0x1;
const GET_DRIVER: u32 = 0x3;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
const STATS_SET: u32 = 1;
const STRING_BYTES: usize = 32;
/// Offsets in `struct ethtool_drvinfo`, which has this many bytes.
const DRIVER_BYTES: usize = 196;
const DRIVER_NAME: usize = 4;
const DRIVER_STATS: usize = 180;
/// Offsets in `struct ethtool_cmd`, likewise.
const SETTINGS_BYTES: usize = 44;
const SPEED_LOW: usize = 12;
const SPEED_HIGH: usize = 28;
/// What drivers say where they do not know.
const NO_SPEED: u32 = u32::MAX;
const NO_SPEED_16: u32 = 0xffff;
/// Drivers of large cards count some thousands of things.
const MAX_STATS: usize = 65_536;
/// Of a driver's counters, those that say that something was lost or held back.
const OF_LOSSES: &[&str] =
    &["allowance", "drop", "discard", "err", "no_buf", "nobuf", "out_of_buffer", "missed", "overrun"];

/// An interface of the network that the calling thread was in when it was found.
#[derive(Debug)]
pub(super) struct Interface {
    /// Its name.
    pub(super) name: String,
    /// A socket in its network, to ask by.
    socket: OwnedFd,
    /// Its driver's names of what it counts, by their places; read once.
    counted: Vec<(usize, String)>,
    stats: usize,
}

impl Interface {
    /// The one that holds `address`; `None` if there is none, or nobody may ask.
    pub(super) fn holding(address: IpAddr) -> Option<Self> {
        Self::named(name_holding(address.to_canonical())?)
    }

    fn named(name: String) -> Option<Self> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
        let mut found = Self { name, socket, counted: Vec::new(), stats: 0 };
        found.stats = found.driver().map_or(0, |(_, stats)| stats).min(MAX_STATS);
        found.counted = found.names().unwrap_or_default();
        Some(found)
    }

    /// Its largest packet, in bytes.
    pub(super) fn mtu_bytes(&self) -> Option<u32> {
        let mut request = self.request();
        self.call(libc::SIOCGIFMTU, &mut request).ok()?;
        // SAFETY: the call succeeded, and filled this member of the union.
        u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
    }

    /// The name of its driver, and how many things that counts.
    fn driver(&self) -> Option<(String, usize)> {
        let mut bytes = vec![0; DRIVER_BYTES];
        self.ask(GET_DRIVER, &mut bytes).ok()?;
        let name = text(bytes.get(DRIVER_NAME..DRIVER_NAME + STRING_BYTES)?);
        Some((name, word(&bytes, DRIVER_STATS)? as usize))
    }

    /// The name of its driver.
    pub(super) fn driver_name(&self) -> Option<String> {
        self.driver().map(|(name, _)| name).filter(|name| !name.is_empty())
    }

    /// Its speed in megabits per second, where it knows.
    pub(super) fn speed_mbit_per_s(&self) -> Option<u64> {
        let mut bytes = vec![0; SETTINGS_BYTES];
        self.ask(GET_SETTINGS, &mut bytes).ok()?;
        let half = |at: usize| Some(u32::from(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
        let speed = half(SPEED_HIGH)? << 16 | half(SPEED_LOW)?;
        (speed != 0 && speed != NO_SPEED && speed != NO_SPEED_16).then_some(speed.into())
    }

    fn names(&self) -> Option<Vec<(usize, String)>> {
        if self.stats == 0 {
            return None;
        }
        let mut bytes = vec![0; 12 + self.room() * STRING_BYTES];
        bytes[4..8].copy_from_slice(&STATS_SET.to_ne_bytes());
        bytes[8..12].copy_from_slice(&(self.stats as u32).to_ne_bytes());
        self.ask(GET_STRINGS, &mut bytes).ok()?;
        let names = bytes[12..].chunks(STRING_BYTES).take(self.stats).map(text).enumerate();
        let is_of_losses = |name: &str| {
            let name = name.to_ascii_lowercase();
            OF_LOSSES.iter().any(|word| name.contains(word))
        };
        Some(names.filter(|(_, name)| is_of_losses(name)).collect())
    }

    /// Adds what its driver counts of losses and limits, by its own names.
    pub(super) fn count(&self, counters: &mut BTreeMap<String, u64>) {
        if self.counted.is_empty() {
            return;
        }
        let mut bytes = vec![0; 8 + self.room() * 8];
        bytes[4..8].copy_from_slice(&(self.stats as u32).to_ne_bytes());
        if self.ask(GET_STATS, &mut bytes).is_err() {
            return;
        }
        for (place, name) in &self.counted {
            let at = 8 + place * 8;
            if let Some(Ok(value)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
                counters.insert(format!("{}.{name}", self.name), u64::from_ne_bytes(value));
            }
        }
    }

    /// Things to make room for: the kernel fills in as many as the driver counts by then, whatever was asked for, and a card whose
    /// queues were set anew meanwhile counts more.
    fn room(&self) -> usize {
        2 * self.stats + 4_096
    }

    /// Asks the driver: `bytes` is the structure of the command, as long as what it may fill.
    fn ask(&self, command: u32, bytes: &mut [u8]) -> io::Result<()> {
        bytes[..4].copy_from_slice(&command.to_ne_bytes());
        let mut request = self.request();
        request.ifr_ifru.ifru_data = bytes.as_mut_ptr().cast();
        self.call(SIOCETHTOOL, &mut request)
    }

    fn call(&self, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: `request` is writable, and what it points to was made as long as the command fills: both outlive the call.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), what as _, std::ptr::from_mut(request)) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: a structure of integers and pointers, for which zeroes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Name of the interface that holds `address`.
fn name_holding(address: IpAddr) -> Option<String> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call fills the pointer, which is given back below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = list;
    // SAFETY: the list is the library's until it is given back; each element is valid, and the last has no next one.
    while let Some(element) = unsafe { next.as_ref() } {
        // SAFETY: an address is absent or valid, and as long as its family says.
        if unsafe { ip_of(element.ifa_addr) } == Some(address) {
            // SAFETY: names are texts that end with NUL.
            found = Some(unsafe { CStr::from_ptr(element.ifa_name) }.to_string_lossy().into_owned());
            break;
        }
        next = element.ifa_next;
    }
    // SAFETY: made by `getifaddrs`, given back once, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// # Safety
/// `address` is null, or points to an address that is as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: as its family says.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as its family says.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_by_its_address_and_has_a_largest_packet() {
        let found = Interface::holding("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(found.name, "lo");
        assert!(found.mtu_bytes().unwrap() >= 1_500);
        let mut counters = BTreeMap::new();
        found.count(&mut counters);
        assert_eq!(counters, BTreeMap::new(), "it has no driver that counts");
        assert!(Interface::holding("::ffff:127.0.0.1".parse().unwrap()).is_some());
        // An address for documentation, which nobody has.
        assert!(Interface::holding("192.0.2.1".parse().unwrap()).is_none());
    }
}
