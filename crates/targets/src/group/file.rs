//! A file of a group as storage: what opens where a file of this machine does.

use std::any::Any;
use std::io;
use std::sync::Arc;

use super::buffer::{Buffer, PAGE_BYTES};
use super::map::FileMap;
use super::queue::GroupQueue;
use crate::io::{Arena, Caching, Scrub, Scrubbed, StorageFile, VirtualFile, VirtualQueue};
use model::record::ChannelStats;

/// An open file of a group.
#[derive(Debug)]
pub struct GroupFile(pub(super) Arc<FileMap>);

impl GroupFile {
    /// Its name in the group.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Pieces of whole pages that lie in one range each, by offset and length in bytes.
    fn pieces(&self, offset: u64, bytes: usize) -> io::Result<Vec<(u64, usize)>> {
        let end =
            offset.checked_add(bytes as u64).filter(|end| *end <= self.0.bytes.next_multiple_of(PAGE_BYTES as u64));
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut pieces = Vec::new();
        let mut at = offset;
        while at < end {
            let bytes = self.0.range(at, end - at).bytes;
            pieces.push((at, bytes as usize));
            at += u64::from(bytes);
        }
        Ok(pieces)
    }

    /// Calls `each` with every piece of whole pages that `bytes` bytes at `offset` touch, and where in the memory it begins.
    fn with_pages(
        &self,
        offset: u64,
        bytes: usize,
        mut each: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
        memory: &mut [u8],
    ) -> io::Result<()> {
        let page = PAGE_BYTES as u64;
        let first = offset / page * page;
        let last = (offset + bytes as u64).next_multiple_of(page);
        for (at, bytes) in self.pieces(first, (last - first) as usize)? {
            let start = (at - first) as usize;
            each(at, &mut memory[start..start + bytes])?;
        }
        Ok(())
    }
}

/// Pages that `bytes` bytes at `offset` touch, in bytes, and where in them they begin.
fn pages(offset: u64, bytes: usize) -> (usize, usize) {
    let start = (offset % PAGE_BYTES as u64) as usize;
    ((start + bytes).next_multiple_of(PAGE_BYTES), start)
}

impl VirtualFile for GroupFile {
    fn protocol(&self) -> &'static str {
        "disk group"
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.bytes)
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.0.state.check_health().map(|()| true).map_err(io::Error::other)
    }

    fn known_failure(&self) -> Option<io::Error> {
        let state = &self.0.state;
        state.has_failed().then(|| io::Error::other(state.failure()))
    }

    fn unit_bytes(&self) -> u32 {
        let state = &self.0.state;
        let unit = |file: &Arc<StorageFile>| file.direct_unit_bytes().max(file.logical_sector_bytes().unwrap_or(0));
        state.current().map(|(_, file)| unit(file)).max().unwrap_or(PAGE_BYTES as u32)
    }

    fn is_page_cached(&self) -> bool {
        self.0.state.current().any(|(_, file)| file.caching() == Caching::PageCache)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.state.sync()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.0.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (bytes, start) = pages(offset, buffer.len());
        let mut memory = Buffer::new(bytes);
        let read = |at, piece: &mut [u8]| self.0.read(self.0.range(at, piece.len() as u64), piece);
        self.with_pages(offset, buffer.len(), read, &mut memory)?;
        buffer.copy_from_slice(&memory[start..start + buffer.len()]);
        Ok(())
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.0.bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (bytes, start) = pages(offset, buffer.len());
        let mut memory = Buffer::new(bytes);
        if bytes != buffer.len() {
            let read = |at, piece: &mut [u8]| self.0.read(self.0.range(at, piece.len() as u64), piece);
            self.with_pages(offset, buffer.len(), read, &mut memory)?;
        }
        memory[start..start + buffer.len()].copy_from_slice(buffer);
        let write = |at, piece: &mut [u8]| self.0.write(self.0.range(at, piece.len() as u64), piece);
        self.with_pages(offset, buffer.len(), write, &mut memory)
    }

    fn take_channels(&self) -> Vec<ChannelStats> {
        self.0.state.channels.take()
    }

    fn read_sound(&self, buffer: &mut [u8], offset: u64, is_sound: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        let range = self.0.range(offset, buffer.len() as u64);
        if self.0.state.shape.copies == 1 || range.bytes as usize != buffer.len() {
            // What lies in two pieces, or once, has no copy that could be judged.
            return Ok(false);
        }
        Ok(self.0.read_sound(range, buffer, is_sound))
    }

    fn scrub(&self, scrub: &Scrub<'_>) -> Option<Scrubbed> {
        (self.0.state.shape.copies > 1).then(|| scrub.run(&self.0))
    }

    fn open_queue(
        &self,
        files: &[Arc<dyn VirtualFile>],
        arena: Arc<Arena>,
        depth: u32,
    ) -> io::Result<Box<dyn VirtualQueue>> {
        let map = |file: &Arc<dyn VirtualFile>| {
            let file: &dyn Any = file.as_ref();
            file.downcast_ref::<Self>().map(|file| Arc::clone(&file.0)).ok_or(io::ErrorKind::Unsupported)
        };
        let maps = files.iter().map(map).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(GroupQueue::new(maps, &arena, depth)?))
    }
}
