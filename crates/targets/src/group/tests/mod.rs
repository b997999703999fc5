//! Groups over files, over members that fail at will, and over members that are lost while a process is killed.

mod faults;
mod flaky;
mod killed;
mod opening;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::io::{
    Arena, Completion, Direction, Durability, IoEngine, Patience, Queue, Request, Scrub, Scrubbed, StorageFile,
};
use model::config::group::GroupSpec;

const BLOCK: u64 = 8192;

/// Members `m0`, `m1`, … of a directory, made with so many MiB each.
fn make_members(folder: &Path, sizes: &[u64]) -> Vec<PathBuf> {
    let path = |number: usize| folder.join(format!("m{number}"));
    for (number, size) in sizes.iter().enumerate() {
        let file = OpenOptions::new().write(true).create_new(true).open(path(number)).unwrap();
        file.set_len(size << 20).unwrap();
    }
    (0..sizes.len()).map(path).collect()
}

/// A group as the user writes it, with the numbers of members in place of their names: `normal,au=1M:0|1`.
fn spec(text: &str, paths: &[PathBuf]) -> GroupSpec {
    let mut spec: GroupSpec = format!("data={text}").parse().unwrap();
    for member in spec.failure_groups.iter_mut().flatten() {
        *member = paths[member.parse::<usize>().unwrap()].display().to_string();
    }
    spec
}

fn storage(path: &Path) -> Result<Arc<StorageFile>, String> {
    StorageFile::open(path, Durability::OnSync).map(Arc::new).map_err(|error| error.to_string())
}

fn offers(spec: &GroupSpec) -> Vec<MemberOffer> {
    let offer = |name: &str| MemberOffer { name: name.to_owned(), file: storage(Path::new(name)) };
    spec.members().map(|(_, name)| offer(name)).collect()
}

fn create(spec: &GroupSpec) {
    let members: Vec<_> = offers(spec).into_iter().map(|offer| offer.file.unwrap()).collect();
    DiskGroup::create(spec, &members).unwrap();
}

fn open_offers(spec: &GroupSpec, offers: Vec<MemberOffer>) -> Result<DiskGroup, GroupError> {
    let engine = IoEngine::best_available().0;
    DiskGroup::open(spec, offers, GroupAccess::Write, engine, &|_, _| {}, &AtomicBool::new(false))
}

fn open(spec: &GroupSpec) -> Result<DiskGroup, GroupError> {
    open_offers(spec, offers(spec))
}

/// A block that says where it belongs and which write it is of.
fn block(number: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![(number ^ version) as u8; BLOCK as usize];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    let last = bytes.len() - 8;
    bytes[last..].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// The version of a block that is sound.
fn version_of(number: u64, bytes: &[u8]) -> Option<u64> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (word(0) == number && bytes == block(number, word(8))).then(|| word(8))
}

fn read_block(file: &StorageFile, number: u64) -> Option<u64> {
    let mut bytes = vec![0; BLOCK as usize];
    file.read_exact_at(&mut bytes, number * BLOCK).unwrap();
    version_of(number, &bytes)
}

fn write_all(file: &StorageFile, blocks: u64, version: u64) {
    (0..blocks).for_each(|number| file.write_all_at(&block(number, version), number * BLOCK).unwrap());
}

/// Compares all copies of the file, any of which may be right.
fn scrub(group: &DiskGroup, name: &str) -> Scrubbed {
    let judge = |offset: u64, bytes: &[u8]| version_of(offset / BLOCK, bytes);
    let stop = AtomicBool::new(false);
    let scrub = Scrub {
        grain_bytes: BLOCK as u32,
        block_bytes: BLOCK as u32,
        judge: &judge,
        progress: &|_, _| {},
        stop: &stop,
    };
    group.open_file(name).unwrap().scrub(&scrub).unwrap()
}

/// Where on a member the first sector of a block stands.
fn find(member: &File, block: &[u8]) -> u64 {
    let length = member.metadata().unwrap().len();
    let mut sector = vec![0; 512];
    let stands_at = |offset: &u64| {
        member.read_exact_at(&mut sector, *offset).unwrap();
        sector == block[..512]
    };
    ((1 << 20)..length).step_by(BLOCK as usize).find(stands_at).unwrap()
}

/// A queue with memory of its own for so many requests of a block.
struct Load {
    queue: Queue,
    arena: Arc<Arena>,
    done: Vec<Completion>,
}

impl Load {
    fn new(file: &Arc<StorageFile>, depth: u32) -> Self {
        let arena = Arc::new(Arena::new(depth as usize * BLOCK as usize).unwrap());
        let engine = IoEngine::best_available().0;
        let queue = Queue::new(engine, std::slice::from_ref(file), Arc::clone(&arena), depth).unwrap();
        Self { queue, arena, done: Vec::new() }
    }

    fn push(&mut self, direction: Direction, number: u64, slot: u64) {
        let (file_offset, arena_offset) = (number * BLOCK, slot * BLOCK);
        let request = Request { direction, file: 0, file_offset, arena_offset, bytes: BLOCK as u32, token: slot };
        self.queue.push(request).unwrap();
    }

    fn write(&mut self, number: u64, version: u64, slot: u64) {
        self.arena.store_bytes(slot * BLOCK, &block(number, version));
        self.push(Direction::Write, number, slot);
    }

    fn wait(&mut self) -> Vec<Completion> {
        while self.done.is_empty() && self.queue.in_flight() > 0 {
            self.queue.wait(Patience::Until(Duration::from_secs(5)), &mut self.done).unwrap();
        }
        std::mem::take(&mut self.done)
    }

    /// Waits for a single request.
    fn result(&mut self) -> Result<u32, std::io::Error> {
        let done = self.wait();
        assert_eq!(done.len(), 1);
        done[0].bytes()
    }

    fn version(&self, number: u64, slot: u64) -> Option<u64> {
        let words = (0..BLOCK / 8).flat_map(|word| self.arena.load(slot * BLOCK + word * 8).to_le_bytes());
        version_of(number, &words.collect::<Vec<u8>>())
    }
}
