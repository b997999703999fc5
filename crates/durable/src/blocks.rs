//! Commits as blocks in a file or on a device: how they are written past the page cache, and read back.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::block;
use crate::opening::Means;
use model::units::Bytes;
use targets::durable::{Committer, Found, Owner, Shape};
use targets::group::buffer::Buffer;
use targets::{FileContext as _, TargetError};

/// What is written or read at once.
const PIECE_BYTES: usize = 1 << 20;

/// Where the slots of a session are.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    /// The file or device.
    pub(crate) path: PathBuf,
    /// Where the first one begins there.
    pub(crate) start: u64,
    /// Length of each.
    pub(crate) block_bytes: usize,
}

impl Slots {
    pub(crate) fn offset_of(&self, slot: u32) -> u64 {
        self.start + u64::from(slot) * self.block_bytes as u64
    }

    /// Writes zeroes to all of them; an error is put into words by `failed`.
    pub(crate) fn blank(
        &self,
        file: &File,
        blocks: u32,
        stop: &AtomicBool,
        failed: impl Fn(io::Error) -> TargetError,
    ) -> Result<(), TargetError> {
        let zeroes = Buffer::new(PIECE_BYTES);
        let end = self.offset_of(blocks);
        for at in (self.start..end).step_by(PIECE_BYTES) {
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            let bytes = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            write_at_once(file, &zeroes[..bytes], at).map_err(&failed)?;
        }
        Ok(())
    }

    /// Reads every block of a session, and says whether the file ends before them. A block that cannot be read keeps none of the others
    /// from being read.
    pub(crate) fn read(
        &self,
        file: &impl FileExt,
        (shape, session): (&Shape, u32),
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, Found),
    ) -> Result<bool, TargetError> {
        let Self { path, block_bytes, .. } = self;
        let block_bytes = *block_bytes;
        let mut memory = Buffer::new(PIECE_BYTES);
        let in_piece = (PIECE_BYTES / block_bytes) as u32;
        let mut ends_early = false;
        for first in (0..shape.blocks).step_by(in_piece as usize) {
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            let count = in_piece.min(shape.blocks - first);
            let bytes = count as usize * block_bytes;
            match read_at_once(file, &mut memory[..bytes], self.offset_of(first)) {
                Ok(read) => {
                    ends_early |= read < bytes;
                    for (slot, one) in (first..).zip(memory[..bytes].chunks_exact(block_bytes)) {
                        visit(session, slot, block::read(one, shape, session, slot));
                    }
                }
                // Which of them it is, is found one by one.
                Err(error) if is_of_the_media(&error) => {
                    for slot in first..first + count {
                        let (at, one) = (self.offset_of(slot), &mut memory[..block_bytes]);
                        let found = match read_at_once(file, one, at) {
                            Ok(read) => {
                                ends_early |= read < block_bytes;
                                block::read(one, shape, session, slot)
                            }
                            Err(error) if is_of_the_media(&error) => {
                                Found::Unreadable(format!("reading `{}` at offset {at}: {error}", path.display()))
                            }
                            Err(error) => return Err(error).of_file("read", path),
                        };
                        visit(session, slot, found);
                    }
                }
                Err(error) => return Err(error).of_file("read", path),
            }
        }
        Ok(ends_early)
    }
}

/// A session that commits there.
pub(crate) struct Session {
    file: File,
    slots: Slots,
    means: Means,
    shape: Shape,
    session: u32,
    memory: Buffer,
}

impl Session {
    pub(crate) fn new(file: File, slots: Slots, means: Means, shape: Shape, session: u32) -> Self {
        let memory = Buffer::new(slots.block_bytes);
        Self { file, slots, means, shape, session, memory }
    }
}

impl Committer for Session {
    fn commit(&mut self, seq: u64, _: &AtomicBool) -> Result<(), TargetError> {
        let Self { file, slots, means, shape, session, memory } = self;
        let slot = shape.slot_of(seq);
        block::fill(memory, &Owner { run: shape.run, session: *session, slot, seq }, measure::wall_ns());
        let offset = slots.offset_of(slot);
        write_at_once(file, memory, offset).map_err(|source| TargetError::Request {
            action: "write",
            path: slots.path.clone(),
            offset,
            bytes: memory.len() as u32,
            source,
        })?;
        let flushed = match means {
            Means::Fdatasync => file.sync_data(),
            Means::Dsync | Means::None => Ok(()),
        };
        flushed.of_file("make durable", &slots.path)
    }
}

/// What states that a power failure leaves a write of so many bytes whole or undone.
pub(crate) fn whole(path: &Path, block_bytes: u32) -> Option<String> {
    let found = measure::environment::capture(Some(path));
    // A partition hands on what its disk states; anything else between may split a write.
    let mut layers = found.devices.iter().filter(|device| device.layer.as_deref() != Some("partition"));
    let (Some(device), None) = (layers.next(), layers.next()) else { return None };
    let states = device.nvme.as_ref()?.atomic_write_power_fail_bytes?;
    (states >= block_bytes.into())
        .then(|| format!("`{}` states that for a command of up to {}", device.name, Bytes(states)))
}

/// Whether a read failed because what was written cannot be had any more, as opposed to a request that could not be made.
pub(crate) fn is_of_the_media(error: &io::Error) -> bool {
    const OF_THE_MEDIA: [Errno; 6] =
        [Errno::IO, Errno::NODATA, Errno::ILSEQ, Errno::UCLEAN, Errno::BADMSG, Errno::REMOTEIO];
    error.raw_os_error().is_some_and(|number| OF_THE_MEDIA.contains(&Errno::from_raw_os_error(number)))
}

/// Writes in one request, as the device would have it.
pub(crate) fn write_at_once(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let written = loop {
        match file.write_at(bytes, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    if written == bytes.len() { Ok(()) } else { Err(io::Error::new(ErrorKind::WriteZero, "only a part was written")) }
}

/// Reads until all is there or the file ends, and gives how much that was; the rest is zeroes.
pub(crate) fn read_at_once(file: &impl FileExt, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The end of a file that ends within a sector cannot be read past the page cache.
            Err(error)
                if done % block::SECTOR_BYTES != 0 && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    bytes[done..].fill(0);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 8192;
    static NEVER: AtomicBool = AtomicBool::new(false);

    /// A file of which some blocks cannot be read, by this number of an error.
    struct Bad<'a>(&'a [u8], std::ops::Range<u64>, i32);

    impl FileExt for Bad<'_> {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let Self(bytes, bad, number) = self;
            if bad.contains(&offset) {
                return Err(io::Error::from_raw_os_error(*number));
            }
            // As much as there is before that.
            let end = (offset + into.len() as u64).min(bytes.len() as u64);
            let end = if offset < bad.start { end.min(bad.start) } else { end };
            let there = &bytes[offset as usize..end as usize];
            into[..there.len()].copy_from_slice(there);
            Ok(there.len())
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            unreachable!("nothing is written")
        }
    }

    #[test]
    fn a_block_that_cannot_be_read_is_named_and_the_rest_is_read() {
        let shape = Shape { run: 9, sessions: 1, blocks: 300 };
        let mut bytes = vec![0; 300 * BLOCK_BYTES];
        for (slot, one) in (0..).zip(bytes.chunks_exact_mut(BLOCK_BYTES)) {
            block::fill(one, &Owner { run: 9, session: 0, slot, seq: u64::from(slot) + 1 }, 1);
        }
        let read = |number: Errno| {
            let slots = Slots { path: "/f".into(), start: 0, block_bytes: BLOCK_BYTES };
            let bad = Bad(&bytes, slots.offset_of(130) + 4096..slots.offset_of(132), number.raw_os_error());
            let mut found = Vec::new();
            let ends_early = slots.read(&bad, (&shape, 0), &NEVER, &mut |_, slot, here| found.push((slot, here)));
            (ends_early, found)
        };
        for number in [Errno::IO, Errno::NODATA, Errno::UCLEAN] {
            let (ends_early, found) = read(number);
            assert!(!ends_early.unwrap() && found.len() == 300);
            for (slot, here) in found {
                match slot {
                    130 | 131 => assert!(
                        matches!(&here, Found::Unreadable(why)
                            if why.contains(&format!("at offset {}", u64::from(slot) * BLOCK_BYTES as u64)) && why.contains("os error")),
                        "{here:?}"
                    ),
                    _ => assert_eq!(here, Found::Whole { seq: u64::from(slot) + 1 }),
                }
            }
        }
        // What is wrong with the request says nothing about what was written.
        for number in [Errno::INVAL, Errno::ACCESS, Errno::NOMEM, Errno::TIMEDOUT] {
            assert!(read(number).0.is_err(), "{number}");
        }
    }
}
