//! A disk with a cache that forgets when its power is cut, served to QEMU as a network block device. An honest one writes its cache
//! down when told to; a lying one says that it did, and does so a second later.
//!
//! Ending QEMU alone loses nothing of what a guest wrote: the host's page cache keeps it. So the disk is here.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

/// What its cache holds or loses as a whole.
const PAGE: usize = 4096;

/// How long a lying disk keeps in its cache what it called durable.
const LATE: Duration = Duration::from_secs(1);

const MEBIBYTE: usize = 1 << 20;

/// XFS wants 300 MiB.
const SIZE: usize = 400 * MEBIBYTE;

/// No request of QEMU's is larger.
const LARGEST: u32 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Honesty {
    /// What was flushed stays.
    Honest,
    /// The same, and each write request is there whole or not at all.
    Whole,
    /// Flushes are answered and ignored.
    Lying,
}

struct Store {
    honesty: Honesty,
    durable: Vec<u8>,
    /// Pages that are not durable, by number, with when each was first written.
    cache: BTreeMap<usize, Cached>,
    /// How many writes there were.
    writes: u64,
    /// State of a generator of chances, so that each loss is another.
    chance: u64,
}

struct Cached {
    since: Instant,
    /// The last write that changed it.
    write: u64,
    bytes: Vec<u8>,
}

impl Store {
    fn new(honesty: Honesty, size: usize, chance: u64) -> Self {
        Self { honesty, durable: vec![0; size], cache: BTreeMap::new(), writes: 0, chance }
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        for (offset, piece) in pieces(at, into.len()) {
            let (page, within) = (piece.start / PAGE, piece.start % PAGE);
            let from = match self.cache.get(&page) {
                Some(Cached { bytes, .. }) => &bytes[within..within + piece.len()],
                None => &self.durable[piece.clone()],
            };
            into[offset..offset + piece.len()].copy_from_slice(from);
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.writes += 1;
        let write = self.writes;
        for (offset, piece) in pieces(at, bytes.len()) {
            let (page, within) = (piece.start / PAGE, piece.start % PAGE);
            let durable = &self.durable[page * PAGE..(page + 1) * PAGE];
            let new = || Cached { since: Instant::now(), write, bytes: durable.to_vec() };
            let cached = self.cache.entry(page).or_insert_with(new);
            cached.write = write;
            cached.bytes[within..within + piece.len()].copy_from_slice(&bytes[offset..offset + piece.len()]);
        }
    }

    /// Makes pages durable.
    fn keep(&mut self, is_kept: impl Fn(usize, Instant) -> bool) {
        let Self { cache, durable, .. } = self;
        cache.retain(|page, Cached { since, bytes, .. }| {
            let is_kept = is_kept(*page, *since);
            if is_kept {
                durable[page * PAGE..(page + 1) * PAGE].copy_from_slice(bytes);
            }
            !is_kept
        });
    }

    fn flush(&mut self) {
        if self.honesty != Honesty::Lying {
            self.keep(|_, _| true);
        }
    }

    /// What a write with "force unit access" wants.
    fn flush_pages(&mut self, at: usize, length: usize) {
        if self.honesty != Honesty::Lying {
            let pages = at / PAGE..(at + length).div_ceil(PAGE);
            self.keep(|page, _| pages.contains(&page));
        }
    }

    /// Cuts the power. An honest disk keeps a random half of what it was not told to write: of pages, or of whole writes. Says how many
    /// pages are lost.
    fn lose(&mut self) -> usize {
        if self.honesty != Honesty::Lying {
            let pages: Vec<(usize, u64)> = self.cache.iter().map(|(page, cached)| (*page, cached.write)).collect();
            let mut by_write = BTreeMap::new();
            let mut kept = Vec::new();
            for (page, write) in pages {
                let toss = self.toss();
                let is_kept =
                    if self.honesty == Honesty::Whole { *by_write.entry(write).or_insert(toss) } else { toss };
                kept.extend(is_kept.then_some(page));
            }
            self.keep(|page, _| kept.binary_search(&page).is_ok());
        }
        let lost = self.cache.len();
        self.cache.clear();
        lost
    }

    fn toss(&mut self) -> bool {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance & 1 == 1
    }
}

/// A range of bytes cut at pages: where each piece is in the request, and where on the disk.
fn pieces(at: usize, length: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let start = at + offset;
        let end = (at + length).min((start / PAGE + 1) * PAGE);
        let piece = (offset, start..end);
        offset += end.saturating_sub(start);
        (start < at + length).then_some(piece)
    })
}

/// A disk that is served until this process ends.
pub struct LossyDisk {
    store: Arc<Mutex<Store>>,
}

impl LossyDisk {
    pub fn serve(honesty: Honesty, socket: &Path) -> io::Result<Self> {
        let store = Arc::new(Mutex::new(Store::new(honesty, SIZE, 0x9e37_79b9_7f4a_7c15)));
        let listener = UnixListener::bind(socket)?;
        let serving = Arc::clone(&store);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A client is gone when its guest was ended; the next one comes with the next boot.
                let _ = serve(client, &serving);
            }
        });
        if honesty == Honesty::Lying {
            let aging = Arc::downgrade(&store);
            thread::spawn(move || {
                while let Some(store) = aging.upgrade() {
                    locked(&store).keep(|_, since| since.elapsed() > LATE);
                    drop(store);
                    thread::sleep(LATE / 10);
                }
            });
        }
        Ok(Self { store })
    }

    /// How many pages a cut may lose.
    pub fn unwritten(&self) -> usize {
        locked(&self.store).cache.len()
    }

    /// Cuts its power; the guest has to be ended before. How many pages are lost.
    pub fn lose_power(&self) -> usize {
        locked(&self.store).lose()
    }
}

fn locked(store: &Mutex<Store>) -> std::sync::MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

// The protocol of network block devices: "fixed newstyle", big-endian.
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const UNSUPPORTED: u32 = 0x8000_0001;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
/// It has flags, takes flushes, and takes "force unit access".
const ABILITIES: u16 = 1 | 4 | 8;
const FORCE_UNIT_ACCESS: u16 = 1;
const INVALID: u32 = 22;

fn take<const N: usize>(client: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn serve(mut client: UnixStream, store: &Mutex<Store>) -> io::Result<()> {
    let size = (SIZE as u64).to_be_bytes();
    client.write_all(b"NBDMAGICIHAVEOPT\x00\x03")?;
    take::<4>(&mut client)?;
    loop {
        take::<8>(&mut client)?;
        let option = u32::from_be_bytes(take(&mut client)?);
        let length = u32::from_be_bytes(take(&mut client)?).min(LARGEST);
        io::copy(&mut (&client).take(u64::from(length)), &mut io::sink())?;
        let reply = |kind: u32, data: &[u8]| {
            let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
            bytes.extend(option.to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
            bytes
        };
        match option {
            // "Export name", which has no reply but the disk.
            1 => {
                client.write_all(&[&size[..], &ABILITIES.to_be_bytes()].concat())?;
                break;
            }
            2 => return client.write_all(&reply(1, &[])),
            // "Information", and "go", which ends the options.
            6 | 7 => {
                let export = [&[0, 0][..], &size, &ABILITIES.to_be_bytes()].concat();
                client.write_all(&reply(3, &export))?;
                client.write_all(&reply(1, &[]))?;
                if option == 7 {
                    break;
                }
            }
            _ => client.write_all(&reply(UNSUPPORTED, &[]))?,
        }
    }
    loop {
        take::<4>(&mut client)?;
        let flags = u16::from_be_bytes(take(&mut client)?);
        let kind = u16::from_be_bytes(take(&mut client)?);
        let handle: [u8; 8] = take(&mut client)?;
        let at = u64::from_be_bytes(take(&mut client)?) as usize;
        let length = u32::from_be_bytes(take(&mut client)?).min(LARGEST) as usize;
        let mut bytes = vec![0; if matches!(kind, READ | WRITE) { length } else { 0 }];
        if kind == WRITE {
            client.read_exact(&mut bytes)?;
        }
        let is_within = at.checked_add(bytes.len()).is_some_and(|end| end <= SIZE);
        let mut error = 0;
        match kind {
            _ if !is_within => error = INVALID,
            READ => locked(store).read(at, &mut bytes),
            WRITE => {
                let mut store = locked(store);
                store.write(at, &bytes);
                if flags & FORCE_UNIT_ACCESS != 0 {
                    store.flush_pages(at, length);
                }
            }
            FLUSH => locked(store).flush(),
            DISCONNECT => return Ok(()),
            _ => error = INVALID,
        }
        client.write_all(&0x6744_6698_u32.to_be_bytes())?;
        client.write_all(&error.to_be_bytes())?;
        client.write_all(&handle)?;
        if kind == READ && error == 0 {
            client.write_all(&bytes)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(honesty: Honesty) -> Store {
        Store::new(honesty, 64 * PAGE, 1)
    }

    fn read(store: &Store, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        store.read(at, &mut bytes);
        bytes
    }

    #[test]
    fn an_honest_disk_keeps_what_was_flushed_and_loses_some_of_the_rest() {
        let mut disk = store(Honesty::Honest);
        disk.write(100, &[1; 2 * PAGE]);
        disk.flush();
        disk.write(PAGE, &[2; 32 * PAGE]);
        assert_eq!(read(&disk, PAGE, 32 * PAGE), [2; 32 * PAGE]);
        let lost = disk.lose();
        assert!((1..32).contains(&lost), "{lost} of 32 pages are lost");
        assert_eq!(read(&disk, 100, PAGE - 100), [1; PAGE - 100]);
        assert_eq!(read(&disk, PAGE, 32 * PAGE).iter().filter(|byte| **byte == 2).count(), (32 - lost) * PAGE);
    }

    #[test]
    fn a_disk_that_does_not_tear_keeps_writes_whole() {
        let mut disk = store(Honesty::Whole);
        (0..16).for_each(|write| disk.write(write * 4 * PAGE, &[1; 4 * PAGE]));
        let lost = disk.lose();
        assert!((1..64).contains(&lost) && lost.is_multiple_of(4), "{lost} of 64 pages are lost");
        for write in 0..16 {
            let there = read(&disk, write * 4 * PAGE, 4 * PAGE);
            assert!(there.iter().all(|byte| *byte == there[0]), "write {write}");
        }
    }

    #[test]
    fn forced_writes_are_durable_alone() {
        let mut disk = store(Honesty::Honest);
        disk.write(0, &[1; 40 * PAGE]);
        disk.write(PAGE, &[2; PAGE]);
        disk.flush_pages(PAGE, PAGE);
        assert!(disk.lose() > 0);
        assert_eq!(read(&disk, PAGE, PAGE), [2; PAGE]);
    }

    #[test]
    fn a_lying_disk_loses_what_it_called_durable() {
        let mut disk = store(Honesty::Lying);
        disk.write(0, &[1; PAGE]);
        disk.flush();
        disk.flush_pages(0, PAGE);
        assert_eq!(disk.lose(), 1);
        assert_eq!(read(&disk, 0, PAGE), [0; PAGE]);
    }
}
