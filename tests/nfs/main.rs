//! NFS versions 3 and 4.1 with a real server, nfs-ganesha: what is written is on its disk, what it forgets is noticed, and the hot path
//! allocates nothing. As root; says that it was skipped elsewhere.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod commands;
mod damaged;
#[path = "../../fuzz/nfs_entry.rs"]
mod fuzz_entry;
mod ganesha;
use test_support::scratch;
mod shaped;
use test_support::skip;
#[expect(dead_code, reason = "other tests plant more into their networks")]
#[path = "../network/spaces.rs"]
mod spaces;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ganesha::Ganesha;
use plimsoll::record::ChannelStats;
use plimsoll::targets::io::{
    Arena, Completion, Direction, Durability, IoEngine, Patience, Queue, Request, StorageFile,
};
use plimsoll::targets::nfs::{NfsClaim, NfsFile, NfsMount};

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const BLOCK: u32 = 8192;
const DEPTH: u32 = 32;
const BLOCKS: u64 = 512;

/// A file on the server under a queue, as load uses it.
struct Load {
    file: NfsFile,
    queue: Queue,
    arena: Arc<Arena>,
    done: Vec<Completion>,
}

fn mount(url: &str) -> Arc<NfsMount> {
    NfsMount::connect(&url.parse().unwrap()).unwrap_or_else(|error| panic!("{error}: {}", error.hint()))
}

impl Load {
    fn create(url: &str, durability: Durability) -> Self {
        let mount = mount(url);
        let path = mount.address().path.clone();
        Self::of(NfsFile::create(&mount, &path, durability).unwrap())
    }

    fn of(file: NfsFile) -> Self {
        let arena = Arc::new(Arena::new((DEPTH * BLOCK) as usize).unwrap());
        let storage = Arc::new(StorageFile::virtual_at(file.path().into(), Arc::new(file.clone())));
        let queue = Queue::new(IoEngine::Uring, &[storage], Arc::clone(&arena), DEPTH).unwrap();
        Self { file, queue, arena, done: Vec::new() }
    }

    fn stamp(block: u64, generation: u64, word: u64) -> u64 {
        (block << 32 | generation << 16 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Sends `count` requests, so many of them at a time, for the blocks that `block` names, and checks what was read.
    fn run(
        &mut self,
        direction: Direction,
        count: u64,
        generation: u64,
        mut block: impl FnMut(u64) -> u64,
    ) -> io::Result<()> {
        let mut of_slot = [0; DEPTH as usize];
        let words = u64::from(BLOCK) / 8;
        let mut sent = 0;
        let mut free: u32 = u32::MAX;
        let patience = Instant::now() + Duration::from_secs(120);
        while sent < count || self.queue.in_flight() > 0 {
            while sent < count && free != 0 {
                let slot = free.trailing_zeros();
                free &= !(1 << slot);
                let block = block(sent);
                sent += 1;
                of_slot[slot as usize] = block;
                let arena_offset = u64::from(slot * BLOCK);
                if direction == Direction::Write {
                    (0..words).for_each(|word| {
                        self.arena.store(arena_offset + word * 8, Self::stamp(block, generation, word))
                    });
                }
                let file_offset = block * u64::from(BLOCK);
                let token = slot.into();
                self.queue.push(Request { direction, file: 0, file_offset, arena_offset, bytes: BLOCK, token })?;
            }
            assert!(Instant::now() < patience, "requests do not finish");
            self.queue.wait(Patience::Until(Duration::from_secs(1)), &mut self.done)?;
            for completion in self.done.drain(..) {
                let slot = completion.token;
                free |= 1 << slot;
                let bytes = completion.bytes()?;
                if direction == Direction::Read {
                    assert_eq!(bytes, BLOCK);
                    let block = of_slot[slot as usize];
                    for word in 0..words {
                        let found = self.arena.load(slot * u64::from(BLOCK) + word * 8);
                        assert_eq!(found, Self::stamp(block, generation, word), "block {block}, word {word}");
                    }
                }
            }
        }
        Ok(())
    }

    fn write_all(&mut self, generation: u64) -> io::Result<()> {
        self.run(Direction::Write, BLOCKS, generation, |number| number)
    }

    fn read_scattered(&mut self, count: u64, generation: u64) -> io::Result<()> {
        self.run(Direction::Read, count, generation, |number| number * 7919 % BLOCKS)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.run(Direction::Sync, 1, 0, |_| 0)
    }

    fn channels(&self) -> Vec<ChannelStats> {
        plimsoll::targets::io::VirtualFile::take_channels(&self.file)
    }
}

fn on_disk(server: &Ganesha, load: &Load) -> Vec<u8> {
    std::fs::read(server.exported(load.file.path().trim_start_matches("/export/"))).unwrap()
}

fn assert_on_disk(contents: &[u8], generation: u64) {
    assert_eq!(contents.len() as u64, BLOCKS * u64::from(BLOCK));
    for (number, word) in (0..).zip(contents.chunks_exact(8)) {
        let (block, at) = (number / (u64::from(BLOCK) / 8), number % (u64::from(BLOCK) / 8));
        assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), Load::stamp(block, generation, at), "block {block}");
    }
}

#[test]
fn what_is_written_is_on_the_servers_disk_and_is_read_back() {
    let Some(server) = Ganesha::start() else { return };
    let (each, sync) = (Durability::EachWrite, Durability::OnSync);
    for (name, durability, is_4) in
        [("each", each, false), ("sync", sync, false), ("e4", each, true), ("s4", sync, true)]
    {
        let url = if is_4 { server.url_4(name, "&connections=2") } else { server.url(name, "&connections=2") };
        let mut load = Load::create(&url, durability);
        load.write_all(1).unwrap();
        load.sync().unwrap();
        assert_on_disk(&std::fs::read(server.exported(name)).unwrap(), 1);
        load.read_scattered(2_000, 1).unwrap();
        let channels = load.channels();
        assert_eq!(channels.len(), 2);
        assert_eq!(channels.iter().map(|channel| channel.reads).sum::<u64>(), 2_000);
        assert_eq!(channels.iter().map(|channel| channel.writes).sum::<u64>(), BLOCKS);
        let nothing: u64 = channels.iter().map(|channel| channel.nothing.count()).sum();
        assert!((20..=26).contains(&nothing), "{nothing}");
        assert!(channels.iter().all(|channel| channel.reads > 100 && channel.reconnects == Some(0)), "{channels:?}");
    }
}

/// Writes that were sent again, and connections that were made again, as channels count them soon after it happened.
fn resent(load: &mut Load) -> (u64, u64) {
    let patience = Instant::now() + Duration::from_secs(30);
    let (mut writes, mut reconnects) = (0, 0);
    while writes == 0 && Instant::now() < patience {
        load.queue.wait(Patience::Until(Duration::from_millis(20)), &mut load.done).unwrap();
        for channel in load.channels() {
            writes += channel.resent_writes.unwrap();
            reconnects += channel.reconnects.unwrap();
        }
    }
    (writes, reconnects)
}

#[test]
fn a_server_that_was_killed_before_the_commit_gets_its_writes_again() {
    let Some(mut server) = Ganesha::start() else { return };
    for url in [server.url("data", ""), server.url_4("data4", "")] {
        let load = Load::create(&url, Durability::OnSync);
        gets_its_writes_again(&mut server, load);
    }
}

fn gets_its_writes_again(server: &mut Ganesha, mut load: Load) {
    load.write_all(1).unwrap();
    load.sync().unwrap();
    load.write_all(2).unwrap();
    server.kill();
    server.start_again();
    // The old handle is good, and reads go on over a new connection.
    load.read_scattered(100, 2).unwrap();
    assert_eq!(resent(&mut load), (BLOCKS, 1));
    load.sync().unwrap();
    assert_on_disk(&on_disk(server, &load), 2);
}

#[test]
fn a_server_that_is_killed_under_load_is_waited_for() {
    let Some(mut server) = Ganesha::start() else { return };
    for url in [server.url("data", "&connections=3"), server.url_4("data4", "&connections=3")] {
        let load = Load::create(&url, Durability::OnSync);
        is_waited_for(&mut server, load);
    }
}

fn is_waited_for(server: &mut Ganesha, mut load: Load) {
    load.write_all(1).unwrap();
    load.sync().unwrap();
    let kill_at = |at: u64, server: &mut Ganesha, number: u64| {
        if number == at {
            server.kill();
            server.start_again();
        }
        number * 7919 % BLOCKS
    };
    load.run(Direction::Read, 600, 1, |number| kill_at(300, server, number)).unwrap();
    let channels = load.channels();
    assert!(channels.iter().map(|channel| channel.retries.unwrap()).sum::<u64>() > 0, "{channels:?}");
    assert!(channels.iter().all(|channel| channel.reads > 0), "{channels:?}");
    load.run(Direction::Write, 2 * BLOCKS, 2, |number| kill_at(BLOCKS, server, number)).unwrap();
    load.sync().unwrap();
    assert!(resent(&mut load).0 > 0);
    assert_on_disk(&on_disk(server, &load), 2);
    load.read_scattered(600, 2).unwrap();
}

#[test]
fn a_request_allocates_nothing() {
    let Some(server) = Ganesha::start() else { return };
    let few = "&connections=4&outstanding=5";
    for url in [server.url("data", few), server.url_4("data4", few)] {
        allocates_nothing(Load::create(&url, Durability::OnSync));
    }
}

fn allocates_nothing(mut load: Load) {
    load.write_all(1).unwrap();
    load.read_scattered(2_000, 1).unwrap();
    let before = ALLOCATIONS.get();
    load.read_scattered(2_000, 1).unwrap();
    load.write_all(1).unwrap();
    let allocated = ALLOCATIONS.get() - before;
    assert!(allocated <= 20, "{allocated} allocations for 2,512 requests");
    load.sync().unwrap();
}

#[test]
fn a_thousand_connections_work() {
    let Some(server) = Ganesha::start() else { return };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limit.maximum.or(Some(8192)), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).unwrap();
    let mut load = Load::create(&server.url("data", "&connections=1000"), Durability::OnSync);
    load.write_all(1).unwrap();
    load.sync().unwrap();
    load.read_scattered(5_000, 1).unwrap();
    // So many are told apart by their path only.
    let channels = load.channels();
    let seen: Vec<_> = channels.iter().map(|path| (path.channels, path.reads, path.writes)).collect();
    assert_eq!(seen, [(1000, 5_000, BLOCKS)]);
}

#[test]
fn files_are_created_once_and_claimed_once() {
    let Some(server) = Ganesha::start() else { return };
    for url in [server.url("data", ""), server.url_4("data", "")] {
        created_once_and_claimed_once(&server, &mount(&url));
        std::fs::remove_file(server.exported("data")).unwrap();
        std::fs::remove_dir(server.exported("folder")).unwrap();
    }
    let nowhere = server.url("data", "").replace("/export/", "/nowhere/");
    let error = NfsMount::connect(&nowhere.parse().unwrap());
    assert!(error.is_err_and(|error| error.to_string().contains("lets nothing be mounted")));
    let nowhere = server.url_4("data", "").replace("/export/", "/nowhere/");
    let error = NfsMount::connect(&nowhere.parse().unwrap());
    assert!(error.is_err_and(|error| error.is_not_found() && error.hint().contains("begins at the server's root")));
}

fn created_once_and_claimed_once(server: &Ganesha, mount: &Arc<NfsMount>) {
    let file = NfsFile::create(mount, "/export/data", Durability::OnSync).unwrap();
    let again = NfsFile::create(mount, "/export/data", Durability::OnSync).unwrap_err();
    assert!(again.is_already_there(), "{again}");
    let claim = NfsClaim::take(mount, "/export/data", "this test").unwrap();
    assert!(server.exported(".data.plimsoll-claim").exists());
    let error = NfsClaim::take(mount, "/export/data", "another").unwrap_err();
    assert!(error.to_string().contains("`this test`"), "{error}");
    drop(claim);
    assert!(!server.exported(".data.plimsoll-claim").exists());
    assert!(file.is_named().unwrap());
    mount.rename("/export/data", "/export/other").unwrap();
    assert!(!file.is_named().unwrap() && server.exported("other").exists());
    std::fs::write(server.exported("data"), "another file").unwrap();
    let error = file.is_named().unwrap_err();
    assert!(error.to_string().contains("another file now"), "{error}");
    mount.remove("/export/other").unwrap();
    assert!(mount.space().unwrap().available_bytes > 0);
    std::fs::create_dir(server.exported("folder")).unwrap();
    let error = NfsFile::open(mount, "/export/folder", Durability::OnSync).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[test]
fn a_session_has_as_many_slots_as_the_server_grants() {
    let Some(server) = Ganesha::start() else { return };
    let all = mount(&server.url_4("data", "&outstanding=1024"));
    assert_eq!(all.slots(), Some(64));
    let few = mount(&server.url_4("data", "&outstanding=3"));
    assert_eq!(few.slots(), Some(3));
    // More requests than slots wait, and no connection has more in flight.
    let mut load = Load::of(NfsFile::create(&few, "/export/data", Durability::OnSync).unwrap());
    load.write_all(1).unwrap();
    load.read_scattered(500, 1).unwrap();
    let channel = load.channels().remove(0);
    assert!(channel.most_outstanding <= 4 && channel.queued > Some(500), "{channel:?}");
    // A file that is open for nobody else is open for us, and another client may open it meanwhile.
    let other = NfsFile::open(&all, "/export/data", Durability::OnSync).unwrap();
    let mut back = [0; 8];
    plimsoll::targets::io::VirtualFile::read_exact_at(&other, &mut back, 0).unwrap();
    assert_eq!(u64::from_le_bytes(back), Load::stamp(0, 1, 0));
    load.sync().unwrap();
}
