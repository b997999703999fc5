//! An open file of a group: where its bytes lie, and how one piece of them is read, written and repaired.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::buffer::{Buffer, PAGE_BYTES};
use super::document::{FileEntry, PARTS_OF_FILE};
use super::layout::spread;
use super::member::FIRST_UNIT;
use super::state::State;
use super::stripe::Stripes;
use measure::ChannelCounter;

/// Where one copy of an extent lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentCopy {
    /// Number of the member.
    pub member: u16,
    /// Allocation unit on it.
    pub unit: u32,
}

/// A range of a file that lies in one piece on each member that has a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Number of the extent.
    pub extent: u32,
    /// Offset in the extent, in bytes.
    pub within: u32,
    /// Length, in bytes.
    pub bytes: u32,
}

/// An open file of a group.
#[derive(Debug)]
pub struct FileMap {
    /// Its group.
    pub state: Arc<State>,
    /// Its name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Its place in the map of changes.
    pub slot: u16,
    /// What no other file of the group has or had.
    pub serial: u64,
    /// How its data go over its extents.
    pub stripes: Stripes,
    /// Copies of each extent, primary first.
    places: Box<[ExtentCopy]>,
    copies: usize,
    extents_of_part: u32,
}

impl FileMap {
    /// Of a file that the group remembers.
    pub fn new(state: &Arc<State>, entry: &FileEntry) -> Self {
        let shape = &state.shape;
        let copies = shape.copies as usize;
        // The units of a member are taken in the order of its runs.
        let mut units: Vec<_> =
            entry.runs.iter().map(|runs| runs.iter().flat_map(|run| run.first..run.first + run.units)).collect();
        let members = spread(shape.copies, &shape.groups, &entry.units());
        let place = |member: &u16| ExtentCopy {
            member: *member,
            unit: units[usize::from(*member)].next().expect("a file has as many places as units"),
        };
        let places: Box<[ExtentCopy]> = members.iter().map(place).collect();
        let extents = (places.len() / copies) as u32;
        Self {
            state: Arc::clone(state),
            name: entry.name.clone(),
            bytes: entry.bytes,
            slot: entry.slot,
            serial: entry.serial,
            stripes: Stripes::new(entry.striping, shape.unit_bytes, u64::from(extents)),
            places,
            copies,
            extents_of_part: extents.div_ceil(PARTS_OF_FILE).max(1),
        }
    }

    /// How many extents it has.
    pub fn extents(&self) -> u32 {
        (self.places.len() / self.copies) as u32
    }

    /// Parts of which is remembered whether they were changed.
    pub fn parts(&self) -> u32 {
        self.extents().div_ceil(self.extents_of_part)
    }

    /// The part that an extent is in.
    #[inline]
    pub fn part(&self, extent: u32) -> u32 {
        extent / self.extents_of_part
    }

    /// The copies of an extent, primary first.
    #[inline]
    pub fn places(&self, extent: u32) -> &[ExtentCopy] {
        let first = extent as usize * self.copies;
        &self.places[first..first + self.copies]
    }

    /// Members that the file lies on, each once.
    pub fn members(&self) -> Vec<u16> {
        let mut members: Vec<u16> = self.places.iter().map(|place| place.member).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Where a place in an extent lies on the member, in bytes.
    #[inline]
    pub fn offset(&self, place: ExtentCopy, within: u32) -> u64 {
        FIRST_UNIT + u64::from(place.unit) * self.state.shape.unit_bytes + u64::from(within)
    }

    /// The first piece of `bytes` bytes at `offset`, which lie in the file.
    #[inline]
    pub fn range(&self, offset: u64, bytes: u64) -> Range {
        let spot = self.stripes.spot(offset);
        Range { extent: spot.extent, within: spot.within, bytes: bytes.min(u64::from(spot.room)) as u32 }
    }

    /// The copy to read: that of the preferred failure group, or else the first that is current and not among `failed`, bits of
    /// copies.
    #[inline]
    pub fn copy_to_read(&self, extent: u32, failed: u8) -> Option<usize> {
        let online = self.state.online();
        let places = self.places(extent);
        let can = |copy: &usize| failed & 1 << copy == 0 && online & 1 << places[*copy].member != 0;
        if let Some(preferred) = self.state.preferred {
            let is_near = |copy: &usize| self.state.shape.groups[usize::from(places[*copy].member)] == preferred;
            if let Some(copy) = (0..self.copies).filter(is_near).find(can) {
                return Some(copy);
            }
        }
        (0..self.copies).find(can)
    }

    /// What must be done before an extent is written; [`Self::end_write`] must follow.
    ///
    /// # Errors
    /// When the map of changes cannot be written, or the group has failed.
    #[inline]
    pub fn begin_write(&self, extent: u32) -> io::Result<()> {
        if self.copies == 1 {
            return Ok(());
        }
        let part = self.part(extent);
        if !self.state.is_changed(self.slot, part) {
            self.state.mark_changed(self.slot, part, self.parts())?;
        }
        self.state.gates.enter(self.slot, extent);
        Ok(())
    }

    /// A write of an extent has finished on all copies.
    #[inline]
    pub fn end_write(&self, extent: u32) {
        if self.copies > 1 {
            self.state.gates.leave(self.slot, extent);
        }
    }

    /// Reads one copy, blocking. Memory, offset and length are whole pages.
    ///
    /// # Errors
    /// The system's error, or `NotFound` where its member is absent or not current.
    pub fn read_copy(&self, range: Range, copy: usize, memory: &mut [u8]) -> io::Result<()> {
        let place = self.places(range.extent)[copy];
        if !self.state.is_online(place.member) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.state.file(usize::from(place.member))?.read_exact_at(memory, self.offset(place, range.within))
    }

    /// Writes one copy, blocking. Memory, offset and length are whole pages.
    ///
    /// # Errors
    /// The system's error, or `NotFound` where its member is absent.
    pub fn write_copy(&self, range: Range, copy: usize, memory: &[u8]) -> io::Result<()> {
        let place = self.places(range.extent)[copy];
        self.state.file(usize::from(place.member))?.write_all_at(memory, self.offset(place, range.within))
    }

    /// Reads a range from whichever copy can be read, and repairs those that cannot. Blocking.
    ///
    /// # Errors
    /// The last copy's error.
    pub fn read(&self, range: Range, memory: &mut [u8]) -> io::Result<()> {
        let (mut failed, mut last) = (0, None);
        while let Some(copy) = self.copy_to_read(range.extent, failed) {
            match self.read_copy(range, copy, memory) {
                Ok(()) => {
                    if failed != 0 {
                        self.repair(range, failed, &|_| true);
                    }
                    return Ok(());
                }
                Err(error) => {
                    failed |= 1 << copy;
                    last = Some(error);
                    self.read_failed(range.extent, copy);
                }
            }
        }
        Err(last.unwrap_or_else(|| self.no_copy(range)))
    }

    /// The error of data of which no copy is current.
    pub fn no_copy(&self, range: Range) -> io::Error {
        let names =
            self.places(range.extent).iter().map(|place| self.state.members[usize::from(place.member)].name.as_str());
        let names: Vec<&str> = names.collect();
        io::Error::other(format!(
            "no copy of extent {} of `{}` is left: they were on {}",
            range.extent,
            self.name,
            names.join(", ")
        ))
    }

    /// A copy could not be read. A member that has shrunk is dropped: a repair would make it long again, with zeroes where
    /// other data were.
    pub fn read_failed(&self, extent: u32, copy: usize) {
        let member = usize::from(self.places(extent)[copy].member);
        if self.copies > 1 && self.state.writable && self.state.has_shrunk(member) {
            // A failure of the group is found by the next request.
            let _ = self.state.drop_member(member, "it was truncated", true);
        }
    }

    /// Writes a range to all current copies, blocking, and finishes with the slowest.
    ///
    /// # Errors
    /// When no copy was written, or the redundancy does not bear those that failed.
    pub fn write(&self, range: Range, memory: &[u8]) -> io::Result<()> {
        if self.state.has_failed() {
            return Err(io::Error::other(self.state.failure()));
        }
        self.begin_write(range.extent)?;
        let done = self.write_copies(range, memory);
        self.end_write(range.extent);
        done
    }

    fn write_copies(&self, range: Range, memory: &[u8]) -> io::Result<()> {
        let mut written = false;
        for copy in 0..self.copies {
            let member = self.places(range.extent)[copy].member;
            if !self.state.is_online(member) {
                continue;
            }
            match self.write_copy(range, copy, memory) {
                Ok(()) => written = true,
                Err(error) => self.state.write_failed(usize::from(member), error)?,
            }
        }
        if written { Ok(()) } else { Err(self.no_copy(range)) }
    }

    /// Writes the copies in `bad`, bits of copies, again from another one whose data pass `is_sound`, while load writes nothing
    /// there. Gives whether that was done, and puts it down. What else is on the pages of the range was not judged, and stays as it is
    /// where it can be read: it may be the last good copy of a neighbour. Blocking.
    pub fn repair(&self, range: Range, bad: u8, is_sound: &dyn Fn(&[u8]) -> bool) -> bool {
        if !self.state.writable {
            return false;
        }
        let Some(_closed) = self.state.gates.close(self.slot, range.extent) else {
            self.state.unrepaired.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        // Read again: it may have been written since it was found bad.
        let (pages, judged) = whole_pages(range);
        let (mut memory, mut own) = (Buffer::new(pages.bytes as usize), Buffer::new(pages.bytes as usize));
        let is_good = |copy: usize, memory: &mut [u8]| {
            self.read_copy(pages, copy, memory).is_ok() && is_sound(&memory[judged.clone()])
        };
        let good = (0..self.copies).filter(|copy| bad & 1 << copy == 0).find(|copy| is_good(*copy, &mut memory));
        if good.is_none() {
            return false;
        }
        let mut all = true;
        for copy in (0..self.copies).filter(|copy| bad & 1 << copy != 0) {
            let member = usize::from(self.places(range.extent)[copy].member);
            if !self.state.is_online(member as u16) {
                continue;
            }
            let has_own = judged.len() < own.len() && self.read_copy(pages, copy, &mut own).is_ok();
            if has_own {
                own[judged.clone()].copy_from_slice(&memory[judged.clone()]);
            }
            match self.write_copy(pages, copy, if has_own { &own } else { &memory }) {
                Ok(()) => self.state.count(member, ChannelCounter::Repairs, 1),
                Err(error) => all &= self.state.write_failed(member, error).is_ok(),
            }
        }
        all
    }

    /// Looks through all copies of a range for one that passes `is_sound`, puts it into `into`, and writes those that do not
    /// pass again. Gives whether there is one. Blocking.
    pub fn read_sound(&self, range: Range, into: &mut [u8], is_sound: &dyn Fn(&[u8]) -> bool) -> bool {
        let (mut bad, mut found) = (0, false);
        let (pages, judged) = whole_pages(range);
        let mut memory = Buffer::new(pages.bytes as usize);
        for copy in 0..self.copies {
            if self.read_copy(pages, copy, &mut memory).is_ok() && is_sound(&memory[judged.clone()]) {
                if !found {
                    into.copy_from_slice(&memory[judged.clone()]);
                }
                found = true;
            } else {
                bad |= 1 << copy;
            }
        }
        if found && bad != 0 {
            self.repair(range, bad, is_sound);
        }
        found
    }
}

/// All pages that a range touches, and where in them it lies: repairs go past the page cache. An extent is whole pages long.
fn whole_pages(range: Range) -> (Range, std::ops::Range<usize>) {
    let page = PAGE_BYTES as u32;
    let within = range.within / page * page;
    let start = (range.within - within) as usize;
    let pages = Range { within, bytes: (range.within + range.bytes).next_multiple_of(page) - within, ..range };
    (pages, start..start + range.bytes as usize)
}
