//! Which file a descriptor was at a moment.
//!
//! A descriptor is looked up some time after the call that names it, when it may be another file already. So each look has its moments,
//! and the kernel's events have those at which descriptors changed: a look is right for a call if no change lies between the two.

use std::collections::HashMap;

/// Descriptors that are remembered.
const MAX_OPEN: usize = if cfg!(test) { 100 } else { 262_144 };
/// From so many on they are forgotten as soon as that harms the least.
const MANY_OPEN: usize = MAX_OPEN / 4 * 3;

/// Changes of a descriptor that are remembered.
const MAX_CHANGES: usize = if cfg!(test) { 10 } else { 1_000 };
/// A call has moved the position of its file a moment before its end is an event.
pub(super) const MARGIN_NS: u64 = 50_000;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A file, by its place in the list of files.
    File(u16),
    /// A pipe, a socket or the like.
    NotFile,
    /// Nothing: it was closed, or the process had ended.
    Gone,
}

/// What `/proc` showed of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// When looking began.
    pub(super) from_ns: u64,
    /// When looking had ended, with [`MARGIN_NS`].
    pub(super) to_ns: u64,
    pub(super) found: Found,
    /// Where the next read or write would be.
    pub(super) position: u64,
    /// Size of the file in bytes.
    pub(super) size: u64,
    /// Flags with which it is open.
    pub(super) flags: u32,
}

/// A moment at which a descriptor became another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) at_ns: u64,
    /// Whether a file was opened at it: then its position is at the beginning.
    pub(super) is_open: bool,
}

/// Whose the position of a descriptor is from a moment on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    at_ns: u64,
    /// When its file was opened; 0 if that was not seen.
    opened_ns: u64,
    /// Whether another descriptor of the process has the same position.
    is_shared: bool,
}

/// A descriptor of a process.
#[derive(Debug, Default)]
pub(super) struct Descriptor {
    /// In the order of time.
    changes: Vec<Change>,
    looks: Vec<Look>,
    /// In the order of time.
    shares: Vec<Share>,
    /// The only other descriptor with its position, after what was read so far.
    twin: Option<u32>,
    /// What was before is forgotten.
    known_from_ns: u64,
    position: Option<Position>,
    /// Whether another look may find the position.
    wants_look: bool,
}

/// Position of a file after what was followed so far.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// The change before: it is that of no other file.
    since: Option<Change>,
    /// From when on it is as much shared as now.
    shared_ns: u64,
    /// Unknown if looking did not help.
    bytes: Option<u64>,
    /// When the look began that did not help.
    looked_ns: u64,
}

impl Descriptor {
    fn share(&self, at_ns: u64) -> Share {
        let after = self.shares.partition_point(|share| share.at_ns <= at_ns);
        after.checked_sub(1).map_or_else(Share::default, |last| self.shares[last])
    }

    fn set_share(&mut self, share: Share) {
        if self.shares.len() >= MAX_CHANGES {
            self.known_from_ns = self.known_from_ns.max(self.shares.remove(0).at_ns);
        }
        let place = self.shares.partition_point(|known| known.at_ns <= share.at_ns);
        self.shares.insert(place, share);
    }

    fn is_same_position(&self, position: &Position, at_ns: u64) -> bool {
        position.since == self.since(at_ns) && position.shared_ns == self.share(at_ns).at_ns
    }

    fn change(&mut self, change: Change) {
        if change.is_open {
            self.set_share(Share { at_ns: change.at_ns, opened_ns: change.at_ns, is_shared: false });
        }
        if self.changes.len() >= MAX_CHANGES {
            self.known_from_ns = self.known_from_ns.max(self.changes.remove(0).at_ns);
        }
        let place = self.changes.partition_point(|known| *known <= change);
        self.changes.insert(place, change);
    }

    /// The change before a moment.
    pub(super) fn since(&self, at_ns: u64) -> Option<Change> {
        let after = self.changes.partition_point(|change| change.at_ns <= at_ns);
        Some(self.changes[after.checked_sub(1)?])
    }

    fn until(&self, at_ns: u64) -> Option<u64> {
        let after = self.changes.partition_point(|change| change.at_ns <= at_ns);
        self.changes.get(after).map(|change| change.at_ns)
    }

    /// The look that is right for a moment: the first one after it, else the last one before.
    pub(super) fn look(&self, at_ns: u64) -> Option<Look> {
        if at_ns < self.known_from_ns {
            return None;
        }
        let since_ns = self.since(at_ns).map_or(self.known_from_ns, |change| change.at_ns);
        let until_ns = self.until(at_ns).unwrap_or(u64::MAX);
        let is_right = |look: &&Look| look.from_ns >= since_ns && look.to_ns < until_ns;
        let after = self.looks.iter().filter(is_right).find(|look| look.to_ns >= at_ns);
        after.or_else(|| self.looks.iter().rev().find(is_right)).copied()
    }

    /// Whether a look now would help with a moment: there is none yet, and no later change is known.
    pub(super) fn needs_look(&self, at_ns: u64) -> bool {
        let is_known = at_ns >= self.known_from_ns;
        is_known && (self.wants_look || self.look(at_ns).is_none()) && self.until(at_ns).is_none()
    }

    pub(super) fn looked(&mut self, look: Look) {
        self.wants_look = false;
        self.looks.push(look);
    }

    /// Forgets what is of no use after a moment.
    pub(super) fn forget(&mut self, at_ns: u64) {
        if let Some(since) = self.since(at_ns) {
            self.changes.retain(|change| *change >= since);
            self.looks.retain(|look| look.from_ns >= since.at_ns);
        }
        let before = self.shares.partition_point(|share| share.at_ns <= at_ns);
        self.shares.drain(..before.saturating_sub(1));
        let before = self.looks.partition_point(|look| look.to_ns < at_ns);
        self.looks.drain(..before.saturating_sub(1));
    }

    /// Whether the position at a moment has to be found out, with what `look` saw.
    pub(super) fn needs_position(&self, at_ns: u64, look: &Look) -> bool {
        match self.position.filter(|position| self.is_same_position(position, at_ns)) {
            Some(position) => position.bytes.is_none() && position.looked_ns < look.from_ns,
            None => true,
        }
    }

    /// What a look says of the position at a moment.
    pub(super) fn found_position(&mut self, at_ns: u64, look: &Look, bytes: Option<u64>) {
        self.wants_look |= bytes.is_none();
        let (since, shared_ns) = (self.since(at_ns), self.share(at_ns).at_ns);
        self.position = Some(Position { since, shared_ns, bytes, looked_ns: look.from_ns });
    }

    /// The position for a call that began at a moment.
    pub(super) fn position(&self, at_ns: u64) -> Option<u64> {
        // What a call that is forgotten moved is not known.
        let position = self.position.filter(|_| at_ns >= self.known_from_ns)?;
        if self.is_same_position(&position, at_ns) { position.bytes } else { None }
    }

    /// A call that began at a moment moved it.
    pub(super) fn set_position(&mut self, at_ns: u64, bytes: u64) {
        if at_ns < self.known_from_ns {
            return;
        }
        let (since, shared_ns) = (self.since(at_ns), self.share(at_ns).at_ns);
        let looked_ns = self.position.map_or(0, |position| position.looked_ns);
        self.position = Some(Position { since, shared_ns, bytes: Some(bytes), looked_ns });
    }

    /// Whether its file was opened at the change before a moment, and the position is still its own.
    pub(super) fn is_just_opened(&self, at_ns: u64) -> bool {
        self.since(at_ns).is_some_and(|change| change.is_open && change.at_ns == self.share(at_ns).at_ns)
    }

    /// Whether a look saw the position that counts at a moment.
    pub(super) fn shows_position(&self, at_ns: u64, look: &Look) -> bool {
        look.from_ns >= self.share(at_ns).at_ns
    }

    /// Whether it was closed at a moment, and nothing is known of what it is since.
    fn is_closed_since(&self, at_ns: u64) -> bool {
        self.changes.last().is_some_and(|change| change.at_ns == at_ns && !change.is_open)
            && self.looks.iter().all(|look| look.from_ns < at_ns)
            && self.shares.iter().all(|share| share.at_ns <= at_ns)
    }
}

/// The descriptors of a process.
#[derive(Debug, Default)]
struct Process {
    known: HashMap<u32, Descriptor>,
    /// The last change of a range: an event of before may be read later, and make one known.
    changed: Option<(u32, u32, u64)>,
    /// When it last began a process or was begun: what was open then is shared.
    forked_ns: u64,
}

/// The descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct Table {
    processes: HashMap<u32, Process>,
    count: usize,
    /// What was before is forgotten.
    known_from_ns: u64,
    /// The last change.
    last_ns: u64,
}

impl Table {
    pub(super) fn get(&mut self, process: u32, descriptor: u32) -> Option<&mut Descriptor> {
        self.processes.get_mut(&process)?.known.get_mut(&descriptor)
    }

    /// They are looked up again when they are named again.
    fn make_room(&mut self) {
        if self.count >= MAX_OPEN || self.processes.len() >= MAX_OPEN {
            self.clear(self.last_ns.saturating_add(1));
        }
    }

    fn process(&mut self, process: u32) -> &mut Process {
        self.make_room();
        self.processes.entry(process).or_default()
    }

    /// It, made where it is not known.
    pub(super) fn of(&mut self, process: u32, descriptor: u32) -> &mut Descriptor {
        if self.get(process, descriptor).is_none() {
            self.make_room();
            let known_from_ns = self.known_from_ns;
            let of_process = self.process(process);
            let mut new = Descriptor::default();
            if let Some((first, last, at_ns)) = of_process.changed
                && (first..=last).contains(&descriptor)
            {
                new.change(Change { at_ns, is_open: false });
            }
            new.known_from_ns = new.known_from_ns.max(known_from_ns);
            of_process.known.insert(descriptor, new);
            self.count += 1;
        }
        self.processes.entry(process).or_default().known.entry(descriptor).or_default()
    }

    /// A moment up to which events were read: if all is forgotten, only what comes later is known.
    pub(super) fn reached(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Whether so many are known that all should be forgotten soon.
    pub(super) fn has_many(&self) -> bool {
        self.count >= MANY_OPEN || self.processes.len() >= MANY_OPEN
    }

    /// A change of one.
    pub(super) fn change(&mut self, process: u32, descriptor: u32, change: Change) {
        let known = self.of(process, descriptor);
        known.change(change);
        // Its twin alone has the position from now on.
        if let Some(twin) = known.twin.take()
            && let Some(twin) = self.get(process, twin).filter(|twin| twin.twin == Some(descriptor))
        {
            twin.twin = None;
            let share = twin.share(change.at_ns);
            twin.set_share(Share { at_ns: change.at_ns, is_shared: false, ..share });
        }
    }

    /// A descriptor becomes a further one of the file of another, and has its position.
    pub(super) fn duplicate(&mut self, process: u32, (old, new): (u32, u32), at_ns: u64) {
        if old == new {
            return;
        }
        self.change(process, new, Change { at_ns, is_open: false });
        let first = self.of(process, old);
        let share = Share { at_ns, is_shared: true, ..first.share(at_ns) };
        // Of three or more it is not followed which are left.
        let is_first = !first.share(at_ns).is_shared;
        let before = std::mem::replace(&mut first.twin, is_first.then_some(new));
        first.set_share(share);
        if let Some(before) = before.and_then(|before| self.get(process, before)) {
            before.twin = None;
        }
        let second = self.of(process, new);
        second.twin = is_first.then_some(old);
        second.set_share(share);
    }

    /// A process begins another, which has all that is open.
    pub(super) fn fork(&mut self, parent: u32, child: u32, at_ns: u64) {
        for process in [parent, child] {
            self.process(process).forked_ns = at_ns;
        }
    }

    /// Whether another descriptor, of this process or another one, has the position of this one too.
    pub(super) fn is_shared(&self, process: u32, descriptor: u32, at_ns: u64) -> bool {
        let Some(process) = self.processes.get(&process) else { return false };
        let Some(share) = process.known.get(&descriptor).map(|known| known.share(at_ns)) else { return false };
        share.is_shared || process.forked_ns > share.opened_ns
    }

    /// Forgets those of a range that were closed at a moment.
    pub(super) fn forget_closed(&mut self, process: u32, (first, last): (u32, u32), at_ns: u64) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        let before = process.known.len();
        if first == last {
            if process.known.get(&first).is_some_and(|known| known.is_closed_since(at_ns)) {
                process.known.remove(&first);
            }
        } else {
            process.known.retain(|number, known| !((first..=last).contains(number) && known.is_closed_since(at_ns)));
        }
        self.count -= before - process.known.len();
    }

    /// A change of those of a process that are in a range.
    pub(super) fn change_range(&mut self, process: u32, (first, last): (u32, u32), at_ns: u64) {
        let process = self.process(process);
        process.changed = Some((first, last, at_ns));
        let in_range = process.known.iter_mut().filter(|(number, _)| (first..=last).contains(*number));
        in_range.for_each(|(_, descriptor)| descriptor.change(Change { at_ns, is_open: false }));
    }

    /// Forgets a process that has ended.
    pub(super) fn remove(&mut self, process: u32) {
        self.count -= self.processes.remove(&process).map_or(0, |process| process.known.len());
    }

    /// Forgets all: what was before a moment is not known from now on.
    pub(super) fn clear(&mut self, known_from_ns: u64) {
        self.known_from_ns = self.known_from_ns.max(known_from_ns);
        self.processes.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(from_ns: u64, to_ns: u64) -> Look {
        Look { from_ns, to_ns, found: Found::File(1), position: 0, size: 0, flags: 0 }
    }

    #[test]
    fn a_look_is_right_only_between_two_changes() {
        let mut descriptor = Descriptor::default();
        descriptor.looked(look(100, 110));
        assert_eq!(descriptor.look(50), Some(look(100, 110)), "nothing changed in between");
        descriptor.change(Change { at_ns: 70, is_open: false });
        assert_eq!((descriptor.look(50), descriptor.needs_look(50)), (None, false), "it was closed after the call");
        assert_eq!(descriptor.look(80), Some(look(100, 110)));
        // A change while looking may have been seen in part.
        descriptor.change(Change { at_ns: 105, is_open: true });
        assert_eq!((descriptor.look(80), descriptor.look(120)), (None, None));
        assert!(descriptor.needs_look(120));
        descriptor.looked(look(130, 140));
        assert_eq!(descriptor.look(120), Some(look(130, 140)));
        descriptor.forget(120);
        assert_eq!((descriptor.changes.len(), descriptor.looks.len()), (1, 1));
    }

    #[test]
    fn a_position_ends_with_a_change_and_is_looked_for_again() {
        let mut descriptor = Descriptor::default();
        descriptor.looked(look(11, 12));
        assert!(descriptor.needs_position(10, &look(11, 12)) && !descriptor.needs_look(10));
        descriptor.found_position(10, &look(11, 12), None);
        assert!(descriptor.needs_look(20) && !descriptor.needs_position(13, &look(11, 12)));
        assert!(descriptor.needs_position(20, &look(21, 22)));
        descriptor.set_position(20, 7);
        assert_eq!((descriptor.position(30), descriptor.needs_position(30, &look(31, 32))), (Some(7), false));
        descriptor.change(Change { at_ns: 25, is_open: true });
        assert_eq!((descriptor.position(30), descriptor.needs_position(30, &look(31, 32))), (None, true));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut table = Table::default();
        for descriptor in 0..1_000 {
            table.change(descriptor % 7, descriptor, Change { at_ns: 1, is_open: true });
            assert!(table.count <= MAX_OPEN);
            table.reached(1);
            assert_eq!(table.count, table.processes.values().map(|process| process.known.len()).sum::<usize>());
        }
        (0..7).for_each(|process| table.remove(process));
        assert_eq!(table.count, 0);
        // What was before that is not found out by a later look.
        let forgotten = table.of(1, 3);
        assert!(!forgotten.needs_look(1) && forgotten.needs_look(2));
        forgotten.looked(look(10, 11));
        assert!(forgotten.look(1).is_none() && forgotten.look(2).is_some());
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let mut table = Table::default();
        for descriptor in 0..10 * MAX_OPEN as u32 {
            let at_ns = u64::from(descriptor) * 10;
            table.change(1, descriptor, Change { at_ns, is_open: true });
            table.change(1, descriptor, Change { at_ns: at_ns + 5, is_open: false });
            table.forget_closed(1, (descriptor, descriptor), at_ns + 4);
            assert_eq!(table.count, 1, "it is open then");
            table.forget_closed(1, (descriptor, descriptor), at_ns + 5);
            assert_eq!(table.count, 0);
        }
        // What it is since is known already.
        table.change(1, 3, Change { at_ns: 20, is_open: false });
        table.of(1, 3).looked(look(30, 31));
        table.forget_closed(1, (0, u32::MAX), 20);
        assert_eq!((table.count, table.known_from_ns), (1, 0));
    }

    #[test]
    fn a_position_is_shared_until_one_is_left() {
        let mut table = Table::default();
        let open = |at_ns| Change { at_ns, is_open: true };
        table.change(1, 3, open(10));
        table.duplicate(1, (3, 1), 20);
        let shared = |table: &Table, at_ns| [3, 1].map(|descriptor| table.is_shared(1, descriptor, at_ns));
        assert_eq!((shared(&table, 15), shared(&table, 20)), ([false, false], [true, true]));
        table.change(1, 3, Change { at_ns: 30, is_open: false });
        assert!(table.is_shared(1, 1, 25) && !table.is_shared(1, 1, 30));
        // A look of before may have seen another position.
        let one = table.of(1, 1);
        assert!(!one.shows_position(40, &look(25, 26)) && one.shows_position(40, &look(30, 31)));
        table.fork(1, 2, 50);
        assert!(table.is_shared(1, 1, 60));
        // Of three, two are left.
        table.change(1, 5, open(60));
        table.duplicate(1, (5, 6), 61);
        table.duplicate(1, (6, 7), 62);
        table.change(1, 7, Change { at_ns: 63, is_open: false });
        assert!(table.is_shared(1, 5, 70) && table.is_shared(1, 6, 70));
        // What is opened later is its own.
        table.change(1, 1, open(80));
        table.change(2, 1, open(80));
        assert!(!table.is_shared(1, 1, 90) && !table.is_shared(2, 1, 90));
    }

    #[test]
    fn a_descriptor_that_changes_without_end_is_known_for_a_while() {
        let mut descriptor = Descriptor::default();
        (10..1_000).for_each(|at_ns| descriptor.change(Change { at_ns, is_open: true }));
        assert_eq!(descriptor.changes.len(), MAX_CHANGES);
        descriptor.looked(look(2_000, 2_001));
        assert!(descriptor.look(999).is_some() && descriptor.look(500).is_none());
    }

    #[test]
    fn a_range_of_descriptors_changes() {
        let mut table = Table::default();
        for descriptor in [3, 4] {
            table.of(1, descriptor).looked(look(10, 11));
        }
        table.change_range(1, (4, u32::MAX), 20);
        // One that becomes known later changed as well.
        table.of(1, 9).looked(look(10, 11));
        let mut is_known = |descriptor| table.get(1, descriptor).unwrap().look(30).is_some();
        assert_eq!([is_known(3), is_known(4), is_known(9)], [true, false, false]);
    }
}
