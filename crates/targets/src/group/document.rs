//! What a group remembers of itself: its members, and its files with their allocation units.

use serde::{Deserialize, Serialize};

use super::GroupError;
use super::layout::{divide, most_extents};
use super::stripe::Striping;
use model::units::Bytes;

/// Files that a group can have.
pub const MAX_FILES: usize = 256;
/// Parts of each file of which is remembered whether they were changed.
pub const PARTS_OF_FILE: u32 = 512;
const MAX_FILE_NAME: usize = 64;

/// How a group was made; never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The group's name.
    pub name: String,
    /// Allocation unit, in bytes.
    pub unit_bytes: u64,
    /// Copies of each extent.
    pub copies: u32,
    /// Failure group of each member, from 0.
    pub groups: Vec<u16>,
    /// Allocation units of each member.
    pub units: Vec<u32>,
}

impl Shape {
    /// How many failure groups there are.
    pub fn failure_groups(&self) -> usize {
        self.groups.iter().map(|group| usize::from(*group) + 1).max().unwrap_or(0)
    }

    /// In how many failure groups the members of a list are.
    pub fn groups_of(&self, members: impl Iterator<Item = usize>) -> usize {
        let mut groups: Vec<u16> = members.map(|member| self.groups[member]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.len()
    }
}

/// What is known of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// It missed writes: it is not read before it is resynchronised.
    pub dropped: bool,
    /// It may lack anything, not only what was changed meanwhile.
    pub whole: bool,
    /// Generation in which it was dropped; 0 for one that is not.
    pub since: u64,
}

/// Allocation units that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The first.
    pub first: u32,
    /// How many.
    pub units: u32,
}

/// A file of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its place in the map of changes.
    pub slot: u16,
    /// Makes it itself, whatever its name: no other file of the group has it, or had it.
    pub serial: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// How its data go over its extents.
    pub striping: Striping,
    /// Its allocation units on each member.
    pub runs: Vec<Vec<Run>>,
}

impl FileEntry {
    /// Its allocation units on each member.
    pub fn units(&self) -> Vec<u64> {
        self.runs.iter().map(|runs| runs.iter().map(|run| u64::from(run.units)).sum()).collect()
    }
}

/// Everything that a group remembers; written as a whole each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// How the group was made.
    pub shape: Shape,
    /// Whether nobody had it open for writing when this was written: then all copies are alike.
    pub clean: bool,
    /// The members.
    pub members: Vec<MemberState>,
    /// The files, in the order of their making.
    pub files: Vec<FileEntry>,
    /// Files that were ever made.
    pub made: u64,
}

impl Document {
    /// Of a new group.
    pub fn new(shape: Shape) -> Self {
        let members = vec![MemberState::default(); shape.groups.len()];
        Self { shape, clean: true, members, files: Vec::new(), made: 0 }
    }

    /// Members that are not dropped, as bits.
    pub fn online(&self) -> u64 {
        let online = self.members.iter().enumerate().filter(|(_, state)| !state.dropped);
        online.fold(0, |mask, (member, _)| mask | 1 << member)
    }

    /// Whether it can be what it claims: nothing in it reaches beyond what it says of the members.
    pub fn is_sound(&self) -> bool {
        let Shape { unit_bytes, copies, groups, units, .. } = &self.shape;
        let members = groups.len();
        let shape_is_sound = unit_bytes.is_power_of_two()
            && (20..=26).contains(&unit_bytes.trailing_zeros())
            && (1..=3).contains(copies)
            && (1..=64).contains(&members)
            && units.len() == members
            && self.members.len() == members
            && self.files.len() <= MAX_FILES
            && groups.iter().all(|group| usize::from(*group) < members)
            && self.shape.groups_of(0..members) == self.shape.failure_groups();
        shape_is_sound && self.files.iter().all(|file| self.is_file_sound(file)) && self.units_are_used_once()
    }

    fn is_file_sound(&self, file: &FileEntry) -> bool {
        let shape = &self.shape;
        if file.runs.len() != shape.groups.len() || usize::from(file.slot) >= MAX_FILES || file.bytes == 0 {
            return false;
        }
        let fits = |run: &Run, units: u32| run.first.checked_add(run.units).is_some_and(|end| end <= units);
        if !file.runs.iter().zip(&shape.units).all(|(runs, units)| runs.iter().all(|run| fits(run, *units))) {
            return false;
        }
        let units = file.units();
        let all: u64 = units.iter().sum();
        let extents = all / u64::from(shape.copies);
        let mut of_group = vec![0; shape.failure_groups()];
        units.iter().zip(&shape.groups).for_each(|(units, group)| of_group[usize::from(*group)] += units);
        all == extents * u64::from(shape.copies)
            && file.bytes.div_ceil(shape.unit_bytes) == extents
            && of_group.iter().all(|units| *units <= extents)
    }

    fn units_are_used_once(&self) -> bool {
        (0..self.shape.groups.len()).all(|member| {
            let mut runs = self.used(member);
            runs.sort_unstable_by_key(|run| run.first);
            runs.windows(2).all(|pair| pair[0].first + pair[0].units <= pair[1].first)
        })
    }

    fn used(&self, member: usize) -> Vec<Run> {
        self.files.iter().flat_map(|file| file.runs[member].iter().copied()).filter(|run| run.units > 0).collect()
    }

    /// Free units of each member, as runs.
    fn free(&self, member: usize) -> Vec<Run> {
        let mut used = self.used(member);
        used.sort_unstable_by_key(|run| run.first);
        used.push(Run { first: self.shape.units[member], units: 0 });
        let mut free = Vec::new();
        let mut next = 0;
        for run in used {
            if run.first > next {
                free.push(Run { first: next, units: run.first - next });
            }
            next = run.first + run.units;
        }
        free
    }

    /// Free units of each member.
    fn free_units(&self) -> Vec<u64> {
        let units = |runs: Vec<Run>| runs.iter().map(|run| u64::from(run.units)).sum();
        (0..self.shape.groups.len()).map(|member| units(self.free(member))).collect()
    }

    /// Free units of each failure group.
    fn free_of_groups(&self, free: &[u64]) -> Vec<u64> {
        let mut of_group = vec![0; self.shape.failure_groups()];
        free.iter().zip(&self.shape.groups).for_each(|(units, group)| of_group[usize::from(*group)] += units);
        of_group
    }

    /// Length of the longest file that can be made, in bytes.
    pub fn free_bytes(&self) -> u64 {
        most_extents(&self.free_of_groups(&self.free_units()), self.shape.copies) * self.shape.unit_bytes
    }

    /// Takes units for a file and puts it into the list. The units of each failure group and member are in proportion to what
    /// is free there, so that all fill up together.
    ///
    /// # Errors
    /// When the name is bad or taken, or there is no room.
    pub fn add_file(&mut self, name: &str, bytes: u64, striping: Striping) -> Result<&FileEntry, GroupError> {
        let group = || self.shape.name.clone();
        check_name(name)?;
        if self.files.iter().any(|file| file.name == name) {
            return Err(GroupError::Exists { group: group(), file: name.to_owned() });
        }
        let slot = (0..MAX_FILES as u16).find(|slot| self.files.iter().all(|file| file.slot != *slot));
        let slot =
            slot.ok_or_else(|| GroupError::Directory { group: group(), why: format!("{MAX_FILES} are there") })?;
        let (extents, copies) = (bytes.div_ceil(self.shape.unit_bytes).max(1), u64::from(self.shape.copies));
        let free = self.free_units();
        let of_groups = self.free_of_groups(&free);
        if most_extents(&of_groups, self.shape.copies) < extents || extents > u64::from(u32::MAX) {
            let (needed, free) = (extents.saturating_mul(self.shape.unit_bytes), self.free_bytes());
            let file = name.to_owned();
            return Err(GroupError::Full { group: group(), file, needed: Bytes(needed), free: Bytes(free) });
        }
        let shares = divide(extents * copies, &of_groups, extents);
        let mut runs = vec![Vec::new(); free.len()];
        for (number, share) in shares.into_iter().enumerate() {
            let members: Vec<usize> =
                (0..free.len()).filter(|member| usize::from(self.shape.groups[*member]) == number).collect();
            let weights: Vec<u64> = members.iter().map(|member| free[*member]).collect();
            for (member, units) in members.iter().zip(divide(share, &weights, u64::MAX)) {
                runs[*member] = first_runs(&self.free(*member), units);
            }
        }
        self.made += 1;
        self.files.push(FileEntry { name: name.to_owned(), slot, serial: self.made, bytes, striping, runs });
        Ok(self.files.last().expect("it was just put there"))
    }
}

/// Whether a file can have a name.
///
/// # Errors
/// [`GroupError::FileName`].
pub fn check_name(name: &str) -> Result<(), GroupError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > MAX_FILE_NAME || !name.chars().all(plain) {
        return Err(GroupError::FileName { file: name.to_owned() });
    }
    Ok(())
}

/// The first `units` units of free runs.
fn first_runs(free: &[Run], units: u64) -> Vec<Run> {
    let mut left = units;
    let mut runs = Vec::new();
    for run in free {
        let taken = left.min(u64::from(run.units)) as u32;
        if taken > 0 {
            runs.push(Run { first: run.first, units: taken });
            left -= u64::from(taken);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(copies: u32, groups: &[u16], units: &[u32]) -> Document {
        let shape =
            Shape { name: "data".into(), unit_bytes: 1 << 20, copies, groups: groups.to_vec(), units: units.to_vec() };
        Document::new(shape)
    }

    proptest! {
        #[test]
        fn files_come_and_go_and_no_unit_has_two_owners(steps in prop::collection::vec((0..8u8, 1..30u64), 1..40)) {
            let mut group = group(2, &[0, 0, 1, 1, 2], &[40, 20, 30, 30, 7]);
            let all = group.free_bytes();
            for (file, units) in steps {
                let name = format!("f{file}");
                if group.files.iter().any(|file| file.name == name) {
                    group.files.retain(|file| file.name != name);
                } else {
                    let fits = units << 20 <= group.free_bytes();
                    prop_assert_eq!(group.add_file(&name, units << 20, Striping::Coarse).is_ok(), fits);
                }
                prop_assert!(group.is_sound());
            }
            group.files.clear();
            prop_assert_eq!(group.free_bytes(), all);
        }
    }

    #[test]
    fn a_full_group_says_what_is_free() {
        let mut group = group(2, &[0, 1], &[8, 10]);
        let error = group.add_file("a", 9 << 20, Striping::Coarse).unwrap_err();
        assert_eq!(error.to_string(), "disk group `data` has 8 MiB free, and `a` needs 9 MiB");
        group.add_file("a", 8 << 20, Striping::Coarse).unwrap();
        assert_eq!(group.free_bytes(), 0);
        assert!(matches!(group.add_file("a", 1, Striping::Coarse), Err(GroupError::Exists { .. })));
        assert!(matches!(group.add_file("a/b", 1, Striping::Coarse), Err(GroupError::FileName { .. })));
    }

    #[test]
    fn what_reaches_beyond_the_members_is_not_believed() {
        let mut sound = group(2, &[0, 1], &[8, 8]);
        sound.add_file("a", 4 << 20, Striping::Fine).unwrap();
        assert!(sound.is_sound());
        let broken = |change: &dyn Fn(&mut Document)| {
            let mut document = sound.clone();
            change(&mut document);
            assert!(!document.is_sound(), "{document:?}");
        };
        broken(&|document| document.files[0].runs[0][0].first = 6);
        broken(&|document| document.files[0].runs[0][0].units = u32::MAX);
        broken(&|document| document.files[0].bytes = 5 << 20);
        broken(&|document| document.files.push(document.files[0].clone()));
        broken(&|document| document.shape.unit_bytes = 3);
        broken(&|document| document.shape.groups[1] = 9);
        broken(&|document| document.files[0].runs = vec![vec![Run { first: 0, units: 8 }], vec![]]);
    }
}
