//! What becomes of requests: data, short answers, silence, nonsense.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::{BLOCK, DELAY, Load, V4, VERSIONS, new_file, two_paths};
use crate::io::{Completion, Direction, Durability, Patience, VirtualFile};
use crate::nfs::NfsFile;
use crate::nfs::test_server::TestServer;
use crate::nfs::ways::Limits;
use crate::nfs::wire::nfs4::Op;
use model::record::ChannelStats;

#[test]
fn data_survive_pieces_short_answers_and_any_order() {
    for version in VERSIONS {
        let server = TestServer::begin();
        server.set(|faults| {
            (faults.most_bytes, faults.moves_bytes, faults.fragment_bytes, faults.reorders) = (6_000, 2_500, 777, 3);
        });
        let mut load = Load::on(&new_file(&server, &format!("{version}&connections=2&outstanding=5")));
        load.write(48, 1).unwrap();
        load.sync().unwrap();
        load.read_and_check(48, 1);
        let channels = load.channels();
        assert_eq!(channels.len(), 2);
        assert!(channels.iter().all(|channel| channel.reads > 0 && channel.most_outstanding <= 6), "{channels:?}");
        // None of them brings a whole block.
        assert_eq!(channels.iter().map(|channel| channel.reads).sum::<u64>(), 4 * 48, "{channels:?}");
        assert_eq!(channels.iter().map(|channel| channel.read_bytes).sum::<u64>(), 48 * u64::from(BLOCK));
        // 48 requests of which each connection takes five calls: most had to wait.
        assert!(channels.iter().map(|channel| channel.queued.unwrap()).sum::<u64>() > 20, "{channels:?}");
        assert_eq!(server.contents("data").len(), 48 * BLOCK as usize);
    }
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
fn calls_that_go_from_one_silent_connection_to_the_other_are_given_up() {
    for version in VERSIONS {
        let server = TestServer::begin();
        let mut load = Load::on(&new_file(&server, &format!("{version}&connections=2")));
        load.write(8, 1).unwrap();
        load.sync().unwrap();
        server.set(|faults| faults.stalled = Some([127, 0, 0, 1].into()));
        (0..8).for_each(|block| load.push(Direction::Read, block, block, BLOCK));
        let error = load.finish().unwrap_err();
        assert!(error.to_string().contains("127.0.0.1:"), "{error}");
    }
}

#[test]
fn reads_do_not_wait_for_what_writes_wait_for() {
    let server = TestServer::begin();
    let limits = Limits { kept_bytes: 4 * u64::from(BLOCK), ..server.mount(V4).limits() };
    let mount = server.mount_within(V4, limits);
    let file = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap();
    let mut load = Load::on(&file);
    // A COMMIT over these connections has shown that the server is the one that has it all.
    load.write(1, 1).unwrap();
    load.sync().unwrap();
    load.write(4, 1).unwrap();
    // The server is not ready for COMMITs, which would make room.
    server.refuse(Op::Commit, DELAY, 1_000);
    (4..8).for_each(|block| load.push(Direction::Write, block, block, BLOCK));
    load.push(Direction::Read, 0, 20, BLOCK);
    let mut done: Vec<Completion> = Vec::new();
    let patience = Instant::now() + Duration::from_secs(20);
    while !done.iter().any(|completion| completion.token == 20) {
        assert!(Instant::now() < patience, "the read waits");
        load.queue.wait(Patience::Until(Duration::from_millis(10)), &mut done).unwrap();
    }
    assert!(load.queue.in_flight() > 0, "a write has no room yet");
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
    for (garbage, version) in [far_too_long, no_reply].into_iter().zip(VERSIONS) {
        let mut load = Load::on(&NfsFile::open(&server.mount(version), "/export/data", Durability::OnSync).unwrap());
        server.set(|faults| faults.garbage = Some(garbage));
        load.push(Direction::Read, 0, 0, BLOCK);
        let error = load.finish().unwrap_err();
        assert!(
            error.to_string().contains("the server at 127.0.0.1:") && error.to_string().contains("invalid reply"),
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
