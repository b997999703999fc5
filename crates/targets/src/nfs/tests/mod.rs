//! Load and cold calls on a server with faults.

mod cold;
mod durable;
mod load;
mod restarts;
mod sessions;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::NfsFile;
use super::test_server::TestServer;
use crate::io::{Arena, Completion, Direction, Durability, Patience, Request, VirtualFile, VirtualQueue};
use model::record::ChannelStats;

const BLOCK: u32 = 8192;
/// Parameters of an address.
const V4: &str = "&version=4.1";
const VERSIONS: [&str; 2] = ["", V4];
/// NFS4ERR_DELAY.
const DELAY: u32 = 10008;

/// A file, a queue for it, and memory of some blocks.
struct Load {
    file: Arc<dyn VirtualFile>,
    queue: Box<dyn VirtualQueue>,
    arena: Arc<Arena>,
}

impl Load {
    fn on(file: &NfsFile) -> Self {
        let arena = Arc::new(Arena::new(64 * BLOCK as usize).unwrap());
        let file: Arc<dyn VirtualFile> = Arc::new(file.clone());
        let queue = file.open_queue(&[Arc::clone(&file)], Arc::clone(&arena), 64).unwrap();
        Self { file, queue, arena }
    }

    fn push(&mut self, direction: Direction, block: u64, slot: u64, bytes: u32) {
        let (file_offset, arena_offset) = (block * u64::from(BLOCK), slot * u64::from(BLOCK));
        self.queue.push(Request { direction, file: 0, file_offset, arena_offset, bytes, token: slot }).unwrap();
    }

    /// Until all requests have finished, by their tokens.
    fn finish(&mut self) -> io::Result<HashMap<u64, io::Result<u32>>> {
        let mut finished = HashMap::new();
        let mut done: Vec<Completion> = Vec::new();
        let patience = Instant::now() + Duration::from_secs(20);
        while self.queue.in_flight() > 0 {
            assert!(Instant::now() < patience, "requests do not finish");
            self.queue.wait(Patience::Until(Duration::from_secs(1)), &mut done)?;
            finished.extend(done.drain(..).map(|completion| (completion.token, completion.bytes())));
        }
        Ok(finished)
    }

    /// All blocks from 0 on, each with its number in all words.
    fn write(&mut self, blocks: u64, generation: u64) -> io::Result<()> {
        for block in 0..blocks {
            for word in 0..u64::from(BLOCK) / 8 {
                self.arena.store(block * u64::from(BLOCK) + word * 8, generation << 32 | block << 16 | word);
            }
            self.push(Direction::Write, block, block, BLOCK);
        }
        let finished = self.finish()?;
        assert!((0..blocks).all(|block| *finished[&block].as_ref().unwrap() == BLOCK), "{finished:?}");
        Ok(())
    }

    /// Reads blocks that [`Load::write`] wrote to where each does not lie yet.
    fn read_and_check(&mut self, blocks: u64, generation: u64) {
        for block in 0..blocks {
            self.push(Direction::Read, block, blocks - 1 - block, BLOCK);
        }
        let finished = self.finish().unwrap();
        assert_eq!(finished.len() as u64, blocks);
        assert!(finished.into_values().all(|bytes| bytes.unwrap() == BLOCK));
        self.check(blocks, generation);
    }

    fn check(&self, blocks: u64, generation: u64) {
        for block in 0..blocks {
            for word in 0..u64::from(BLOCK) / 8 {
                let found = self.arena.load((blocks - 1 - block) * u64::from(BLOCK) + word * 8);
                assert_eq!(found, generation << 32 | block << 16 | word, "block {block}, word {word}");
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.push(Direction::Sync, 0, 63, 0);
        self.finish()?.remove(&63).unwrap().map(|_| ())
    }

    fn channels(&self) -> Vec<ChannelStats> {
        self.file.take_channels()
    }
}

fn new_file(server: &TestServer, parameters: &str) -> NfsFile {
    NfsFile::create(&server.mount(parameters), "/export/data", Durability::OnSync).unwrap()
}

fn two_paths(server: &TestServer) -> String {
    let port = server.port();
    format!("&paths=127.0.0.1:{port},127.0.0.2:{port}")
}

/// Waits for what happens in another thread.
fn until(is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < patience, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Writes that were sent again, as channels count them: soon after it happened.
fn resent(load: &mut Load) -> (u64, u64) {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        load.queue.wait(Patience::Until(Duration::from_millis(20)), &mut Vec::new()).unwrap();
        let all = load.channels();
        let sum = |of: fn(&ChannelStats) -> Option<u64>| all.iter().map(|channel| of(channel).unwrap()).sum::<u64>();
        let (writes, bytes) = (sum(|channel| channel.resent_writes), sum(|channel| channel.resent_bytes));
        if writes > 0 {
            return (writes, bytes);
        }
        assert!(Instant::now() < patience, "nothing was sent again");
    }
}

fn first_words(server: &TestServer) -> Vec<u64> {
    let contents = server.contents("data");
    contents.chunks(BLOCK as usize).map(|block| u64::from_le_bytes(block[..8].try_into().unwrap())).collect()
}

fn of_generation(blocks: std::ops::Range<u64>, generation: u64) -> Vec<u64> {
    blocks.map(|block| generation << 32 | block << 16).collect()
}
