//! Load and cold calls on a server with faults.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::test_server::TestServer;
use super::{Limits, NfsClaim, NfsError, NfsFile, NfsMount};
use crate::record::ChannelStats;
use crate::targets::io::{Arena, Completion, Direction, Durability, Patience, Request, VirtualFile, VirtualQueue};

const BLOCK: u32 = 8192;

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
        assert!(self.finish()?.into_values().all(|bytes| bytes.unwrap() == BLOCK));
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
    let port = server.url("", "").split_once("mountport=").unwrap().1.to_owned();
    format!("&paths=127.0.0.1:{port},127.0.0.2:{port}")
}

#[test]
fn data_survive_pieces_short_answers_and_any_order() {
    let server = TestServer::begin();
    server.set(|faults| {
        (faults.most_bytes, faults.moves_bytes, faults.fragment_bytes, faults.reorders) = (6_000, 2_500, 777, 3);
    });
    let mut load = Load::on(&new_file(&server, "&connections=2&outstanding=5"));
    load.write(48, 1).unwrap();
    load.sync().unwrap();
    load.read_and_check(48, 1);
    let channels = load.channels();
    assert_eq!(channels.len(), 2);
    assert!(channels.iter().all(|channel| channel.reads > 48 && channel.most_outstanding <= 6), "{channels:?}");
    assert_eq!(channels.iter().map(|channel| channel.read_bytes).sum::<u64>(), 48 * u64::from(BLOCK));
    // 48 requests of which each connection takes five calls: most had to wait.
    assert!(channels.iter().map(|channel| channel.queued.unwrap()).sum::<u64>() > 20, "{channels:?}");
    assert_eq!(server.contents("data").len(), 48 * BLOCK as usize);
}

#[test]
fn large_requests_go_straight_to_their_place() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    load.write(48, 3).unwrap();
    for fragment_bytes in [usize::MAX, 100_001] {
        server.set(|faults| faults.fragment_bytes = fragment_bytes);
        (0..48 * u64::from(BLOCK) / 8).for_each(|word| load.arena.store(word * 8, 0));
        load.push(Direction::Read, 0, 0, 48 * BLOCK);
        assert_eq!(load.finish().unwrap().remove(&0).unwrap().unwrap(), 48 * BLOCK);
        for word in 0..48 * u64::from(BLOCK) / 8 {
            let (block, word) = (word / 1024, word % 1024);
            assert_eq!(load.arena.load((block * 1024 + word) * 8), 3 << 32 | block << 16 | word);
        }
    }
}

#[test]
fn a_read_past_the_end_is_short_and_one_behind_it_empty() {
    let server = TestServer::begin();
    server.set(|faults| faults.most_bytes = 4096);
    let mut load = Load::on(&new_file(&server, ""));
    load.write(2, 1).unwrap();
    load.push(Direction::Read, 1, 0, 2 * BLOCK);
    load.push(Direction::Read, 5, 9, BLOCK);
    load.push(Direction::Read, 0, 10, 0);
    load.push(Direction::Nothing, 0, 11, 0);
    let finished: HashMap<u64, u32> =
        load.finish().unwrap().into_iter().map(|(token, bytes)| (token, bytes.unwrap())).collect();
    assert_eq!(finished, HashMap::from([(0, BLOCK), (9, 0), (10, 0), (11, 0)]));
    assert_eq!(server.calls(0), 1);
    assert_eq!(load.channels()[0].nothing.count(), 1);
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

#[test]
fn writes_that_a_restarted_server_forgot_are_sent_again_before_they_are_called_durable() {
    let server = TestServer::begin();
    let file = new_file(&server, "");
    let mut load = Load::on(&file);
    load.write(4, 1).unwrap();
    load.sync().unwrap();
    server.restart(false);
    // Everything was durable: this restart lost nothing.
    load.write(4, 2).unwrap();
    load.sync().unwrap();
    load.write(4, 3).unwrap();
    server.restart(false);
    assert_eq!(first_words(&server), of_generation(0..4, 2));
    load.sync().unwrap();
    assert_eq!(first_words(&server), of_generation(0..4, 3));
    assert_eq!(resent(&mut load), (4, 4 * u64::from(BLOCK)));
    // The same by cold calls, and a restart between two writes of the same blocks: the later one counts.
    load.write(4, 4).unwrap();
    server.restart(false);
    load.write(2, 5).unwrap();
    file.commit().unwrap();
    assert_eq!(first_words(&server), [of_generation(0..2, 5), of_generation(2..4, 4)].concat());
    // What two threads wrote, the second after the restart.
    load.write(4, 6).unwrap();
    server.restart(false);
    Load::on(&file).write(1, 7).unwrap();
    load.sync().unwrap();
    assert_eq!(first_words(&server), [of_generation(0..1, 7), of_generation(1..4, 6)].concat());
}

#[test]
fn over_a_new_connection_nothing_is_read_that_a_restarted_server_has_lost() {
    let server = TestServer::begin();
    let file = new_file(&server, "&connections=2");
    let mut load = Load::on(&file);
    load.write(16, 1).unwrap();
    load.sync().unwrap();
    load.write(16, 2).unwrap();
    server.restart(true);
    load.read_and_check(16, 2);
    load.write(16, 3).unwrap();
    server.restart(true);
    let mut back = vec![0; 8];
    file.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(back, (3_u64 << 32).to_le_bytes());
}

#[test]
fn a_write_without_an_answer_is_sent_again_when_the_server_has_restarted() {
    let server = TestServer::begin();
    for durability in [Durability::OnSync, Durability::EachWrite] {
        let name = format!("/export/{durability:?}");
        let file = NfsFile::create(&server.mount("&connections=2"), &name, durability).unwrap();
        let mut load = Load::on(&file);
        load.write(16, 1).unwrap();
        server.set(|faults| faults.restarts_at_write = 1);
        load.write(16, 2).unwrap();
        load.sync().unwrap();
        load.read_and_check(16, 2);
        assert!(load.channels().iter().map(|channel| channel.retries.unwrap()).sum::<u64>() > 0);
    }
}

#[test]
fn a_server_that_loses_writes_again_and_again_ends_the_run() {
    let server = TestServer::begin();
    let file = new_file(&server, "");
    let mut load = Load::on(&file);
    load.write(4, 1).unwrap();
    server.set(|faults| faults.restarts_at_commit = true);
    let error = load.sync().unwrap_err();
    assert!(error.to_string().contains("restarted before `/export/data` was committed"), "{error}");
    let nothing =
        Request { direction: Direction::Nothing, file: 0, file_offset: 0, arena_offset: 0, bytes: 0, token: 0 };
    assert!(load.queue.push(nothing).is_err());
    let error = file.commit().unwrap_err();
    assert!(matches!(error, NfsError::LostWrites { .. }) && error.hint().contains("lay it out again"), "{error}");
}

#[test]
fn room_for_what_is_not_durable_is_made_by_commits_that_are_counted() {
    let server = TestServer::begin();
    let limits = server.mount("").limits();
    let mount = server.mount_within("", Limits { kept_bytes: 20 * u64::from(BLOCK), ..limits });
    let file = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap();
    let mut load = Load::on(&file);
    (1..4).for_each(|generation| load.write(60, generation).unwrap());
    assert!(file.open_file().writes.kept_bytes() <= 80 * u64::from(BLOCK));
    let commits = load.channels()[0].room_commits.unwrap();
    assert!(commits >= 2 && commits == server.calls(21), "{commits}");
    file.write_all_at(&vec![7; 40 * BLOCK as usize], 0).unwrap();
    load.sync().unwrap();
    assert_eq!(file.open_file().writes.kept_bytes(), 0);
}

#[test]
fn each_write_is_durable_or_the_run_ends() {
    let server = TestServer::begin();
    let mount = server.mount("");
    let file = NfsFile::create(&mount, "/export/data", Durability::EachWrite).unwrap();
    let mut load = Load::on(&file);
    load.write(3, 1).unwrap();
    server.restart(false);
    load.sync().unwrap();
    load.read_and_check(3, 1);
    server.set(|faults| faults.never_durable = true);
    let error = load.write(3, 2).unwrap_err();
    assert!(error.to_string().contains("not durable"), "{error}");
}

#[test]
fn reads_leave_a_silent_path_and_late_answers_do_no_harm() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, &two_paths(&server)));
    load.write(32, 1).unwrap();
    load.sync().unwrap();
    server.set(|faults| faults.stalled = Some([127, 0, 0, 2].into()));
    load.read_and_check(32, 1);
    let channels = load.channels();
    let of = |channels: &[ChannelStats], path: &str| {
        channels.iter().find(|channel| channel.within.as_ref().unwrap().starts_with(path)).cloned().unwrap()
    };
    let (near, far) = (of(&channels, "127.0.0.1"), of(&channels, "127.0.0.2"));
    assert!(near.retries.unwrap() > 0 && far.errors > 0, "{channels:?}");
    // It comes back, and is used again.
    server.set(|faults| faults.stalled = None);
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        load.read_and_check(32, 1);
        let far = of(&load.channels(), "127.0.0.2");
        if far.reads > 0 {
            break;
        }
        assert!(Instant::now() < patience, "the path is not used again");
        thread::sleep(Duration::from_millis(10));
    }
    load.write(32, 2).unwrap();
    load.read_and_check(32, 2);
}

#[test]
fn a_write_without_an_answer_ends_the_run_and_names_the_path() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, &two_paths(&server)));
    load.write(8, 1).unwrap();
    server.set(|faults| faults.stalled = Some([127, 0, 0, 2].into()));
    let error = load.write(8, 2).unwrap_err();
    assert!(
        error.to_string().contains("a write over the path 127.0.0.2:") && error.to_string().contains("overwrite newer"),
        "{error}"
    );
    server.set(|faults| faults.stalled = None);

    let mut load =
        Load::on(&NfsFile::open(&server.mount(&two_paths(&server)), "/export/data", Durability::OnSync).unwrap());
    server.set(|faults| faults.hangs_up_at_write = Some([127, 0, 0, 1].into()));
    let error = load.write(8, 2).unwrap_err();
    assert!(error.to_string().contains("a write over the path 127.0.0.1:"), "{error}");
}

#[test]
fn a_broken_connection_is_made_again_and_its_reads_are_asked_again() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    load.write(16, 1).unwrap();
    load.sync().unwrap();
    server.set(|faults| faults.hangs_up = Some([127, 0, 0, 1].into()));
    load.read_and_check(16, 1);
    let channels = load.channels();
    assert_eq!(channels[0].reconnects, Some(1));
    assert!(channels[0].retries.unwrap() >= 1 && channels[0].errors >= 1, "{channels:?}");
    // An idle connection that goes harms no write.
    server.restart(true);
    let mut done = Vec::new();
    load.queue.wait(Patience::Until(Duration::from_millis(200)), &mut done).unwrap();
    load.write(16, 2).unwrap();
    assert_eq!(load.channels()[0].reconnects, Some(1));
}

#[test]
fn a_server_that_stays_silent_ends_the_run() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    load.write(4, 1).unwrap();
    server.set(|faults| faults.stalled = Some([127, 0, 0, 1].into()));
    load.push(Direction::Read, 0, 0, BLOCK);
    let error = load.finish().unwrap_err();
    assert!(error.to_string().contains("did not answer READ within"), "{error}");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    server.set(|faults| faults.stalled = None);
}

#[test]
fn a_server_that_is_not_ready_is_asked_again() {
    let server = TestServer::begin();
    let file = new_file(&server, "");
    let mut load = Load::on(&file);
    load.write(4, 1).unwrap();
    server.set(|faults| faults.not_ready = 5);
    load.read_and_check(4, 1);
    server.set(|faults| faults.not_ready = 1);
    assert_eq!(file.length().unwrap(), 4 * u64::from(BLOCK));
}

#[test]
fn a_refusal_is_of_its_request_and_has_the_systems_number() {
    let server = TestServer::begin();
    server.set(|faults| faults.most_bytes = 4096);
    let mut load = Load::on(&new_file(&server, ""));
    server.set(|faults| faults.status = 28);
    load.push(Direction::Write, 0, 1, 5 * BLOCK);
    let error = load.finish().unwrap().remove(&1).unwrap().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    server.set(|faults| faults.status = 0);
    load.write(4, 1).unwrap();
    load.read_and_check(4, 1);
}

#[test]
fn what_is_no_reply_ends_the_run_and_names_the_path() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    load.write(1, 1).unwrap();
    let far_too_long = [0xff; 64].to_vec();
    let no_reply = [0x80, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0].to_vec();
    for garbage in [far_too_long, no_reply] {
        let mut load = Load::on(&NfsFile::open(&server.mount(""), "/export/data", Durability::OnSync).unwrap());
        server.set(|faults| faults.garbage = Some(garbage));
        load.push(Direction::Read, 0, 0, BLOCK);
        let error = load.finish().unwrap_err();
        assert!(
            error.to_string().contains("the server at 127.0.0.1:") && error.to_string().contains("no reply"),
            "{error}"
        );
    }
    server.set(|faults| faults.rejects = 5);
    load.push(Direction::Read, 0, 0, BLOCK);
    let error = load.finish().unwrap_err();
    assert!(error.to_string().contains("rejected READ") && error.to_string().contains("below 1024"), "{error}");
}

#[test]
fn the_waker_ends_a_wait() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    let waker = load.queue.waker();
    let began = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        waker.wake();
    });
    load.queue.wait(Patience::Until(Duration::from_secs(20)), &mut Vec::new()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn one_call_in_a_hundred_is_followed_by_one_that_asks_for_nothing() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, ""));
    load.write(10, 1).unwrap();
    (0..20).for_each(|_| load.read_and_check(10, 1));
    // The last one may still be on its way.
    load.push(Direction::Nothing, 0, 0, 0);
    load.finish().unwrap();
    assert_eq!((server.calls(0), load.channels()[0].nothing.count()), (3, 3));
}

#[test]
fn files_are_created_once_claimed_once_and_known_again() {
    let server = TestServer::begin();
    let mount = server.mount("");
    server.set(|faults| faults.says_little = true);
    let file = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap();
    let error = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap_err();
    assert!(error.is_already_there() && error.to_string().contains("refused CREATE of `/export/data`"), "{error}");
    let error = NfsFile::open(&mount, "/export/other", Durability::OnSync).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let again = NfsFile::open(&mount, "/export/data", Durability::OnSync).unwrap();
    assert_eq!(file.identity(), again.identity());

    let claim = NfsClaim::take(&mount, "/export/data", "host db1, process 7").unwrap();
    let error = NfsClaim::take(&mount, "/export/data", "another").unwrap_err();
    assert!(error.to_string().contains("`/export/.data.plimsoll-claim` says `host db1, process 7`"), "{error}");
    assert!(error.hint().contains("remove the claim file"));
    drop(claim);
    drop(NfsClaim::take(&mount, "/export/data", "another").unwrap());

    assert!(file.is_linked().unwrap());
    mount.rename("/export/data", "/export/moved").unwrap();
    assert!(!file.is_linked().unwrap());
    server.replace("data");
    let error = file.is_linked().unwrap_err();
    assert!(error.to_string().contains("another file now"), "{error}");
    mount.remove("/export/moved").unwrap();
    assert!(mount.remove("/export/moved").unwrap_err().is_not_found());
    assert_eq!(mount.space().unwrap().available_bytes, 1 << 38);
}

#[test]
fn cold_calls_read_and_write_exactly() {
    let server = TestServer::begin();
    server.set(|faults| (faults.most_bytes, faults.moves_bytes) = (3_000, 1_001));
    let file = new_file(&server, "");
    let data: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
    file.write_all_at(&data, 5).unwrap();
    assert_eq!(file.length().unwrap(), 10_005);
    let mut back = vec![0; 10_000];
    file.read_exact_at(&mut back, 5).unwrap();
    assert_eq!(back, data);
    assert_eq!(file.read_exact_at(&mut back, 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    file.sync().unwrap();
    assert_eq!(server.contents("data")[5..], data);
    // The connection is closed while nothing is asked: the next call is sent by a new one.
    server.restart(true);
    thread::sleep(Duration::from_millis(50));
    file.write_all_at(&data, 5).unwrap();
    server.restart(false);
    file.sync().unwrap();
    assert_eq!(server.contents("data")[5..], data);
}

#[test]
fn what_cannot_be_mounted_is_said() {
    let server = TestServer::begin();
    let refused =
        NfsMount::connect(&server.url("data", "").replace("/export/", "/other/").parse().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("lets nothing be mounted above `/other/data`: NFSERR_ACCES"), "{refused}");
    assert!(refused.hint().contains("squash root"));
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody =
        NfsMount::connect(&format!("nfs://127.0.0.1:{free}/e/f?mountport={free}").parse().unwrap()).unwrap_err();
    assert!(nobody.to_string().contains("cannot connect to the mount service"), "{nobody}");
    let local = server.url("data", "&local=192.0.2.1");
    let local = NfsMount::connect(&local.parse().unwrap()).unwrap_err();
    assert!(local.to_string().contains("cannot connect"), "{local}");
}

#[test]
fn queues_to_come_have_as_many_connections_as_they_are_told() {
    let server = TestServer::begin();
    let file = new_file(&server, "&paths=127.0.0.1,127.0.0.2");
    let connections = |file: &NfsFile| {
        let mut load = Load::on(file);
        load.write(4, 1).unwrap();
        drop(load);
        file.take_channels().iter().map(|channel| channel.channels).sum::<u32>()
    };
    assert_eq!(connections(&file), 2);
    file.use_connections(3);
    assert_eq!(connections(&file), 6);
    file.use_connections(1);
    assert_eq!(connections(&file), 2);
}
