//! Version 4.1: what is sent in a slot is done once, however often it is sent, and the server remembers whoever says something.

use std::time::{Duration, Instant};

use super::{BLOCK, DELAY, Load, V4, first_words, new_file, of_generation, two_paths, until};
use crate::io::{Direction, Durability, Patience, VirtualFile};
use crate::nfs::NfsFile;
use crate::nfs::test_server::{Kind, Loss, Refusal, TestServer};
use crate::nfs::wire::nfs4::Op;

/// Statuses by their numbers.
const GRACE: u32 = 10013;
const BADSESSION: u32 = 10052;

#[test]
fn what_is_asked_in_sessions_is_done_once_and_the_server_forgets_whoever_has_gone() {
    let server = TestServer::begin();
    let file = new_file(&server, "&version=4.1&connections=2");
    let mut load = Load::on(&file);
    load.write(16, 1).unwrap();
    load.sync().unwrap();
    load.read_and_check(16, 1);
    assert_eq!([Op::Write, Op::Commit, Op::Read].map(|op| server.done(op)), [16, 1, 16]);
    let again = NfsFile::open(file.mount(), "/export/data", Durability::OnSync).unwrap();
    assert_eq!(file.identity(), again.identity());
    assert_eq!(server.clients(), 1);
    drop((load, file, again));
    assert_eq!((server.clients(), server.done(Op::Close)), (0, 2));
}

#[test]
fn a_call_whose_reply_is_lost_is_sent_again_in_its_slot_and_done_once() {
    let server = TestServer::begin();
    let loses = |kind| server.set(|faults| faults.loses_reply = Some((kind, Loss::HangUp)));
    let mount = server.mount(V4);
    loses(Kind::Open);
    let file = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap();
    assert_eq!(server.done(Op::Open), 1);
    let mut load = Load::on(&file);
    loses(Kind::Write);
    load.write(16, 1).unwrap();
    loses(Kind::Commit);
    load.sync().unwrap();
    assert_eq!((server.done(Op::Write), server.done(Op::Commit)), (16, 1));
    assert_eq!(first_words(&server), of_generation(0..16, 1));
    // The server was not asked to keep what was read.
    loses(Kind::Read);
    load.read_and_check(16, 1);
    assert_eq!(server.done(Op::Read), 17);
    let channels = load.channels();
    assert!(channels[0].reconnects == Some(3) && channels[0].retries.unwrap() >= 3, "{channels:?}");
    // The same of what is asked beside load.
    loses(Kind::Write);
    file.write_all_at(&[7; 8], 0).unwrap();
    loses(Kind::Read);
    file.read_exact_at(&mut [0; 8], 0).unwrap();
    assert_eq!((server.done(Op::Write), server.done(Op::Read)), (17, 19));
}

#[test]
fn a_commit_whose_reply_was_lost_covers_nothing_that_was_written_after_it() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, &format!("{V4}{}", two_paths(&server))));
    load.write(4, 1).unwrap();
    server.set(|faults| faults.loses_reply = Some((Kind::Commit, Loss::Silence)));
    load.push(Direction::Sync, 0, 63, 0);
    load.queue.flush().unwrap();
    until(|| server.done(Op::Commit) == 1);
    // Some of it is answered by the other path before the silent one is given up.
    load.write(4, 2).unwrap();
    server.set(|faults| faults.stalled = None);
    server.restart(false);
    load.sync().unwrap();
    assert_eq!(first_words(&server), of_generation(0..4, 2));
}

#[test]
fn calls_of_a_silent_path_are_done_once_by_another_one_writes_too() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, &format!("{V4}{}", two_paths(&server))));
    load.write(32, 1).unwrap();
    server.set(|faults| faults.stalled = Some([127, 0, 0, 2].into()));
    load.write(32, 2).unwrap();
    // What the silent path still holds comes to the server late.
    server.set(|faults| faults.stalled = None);
    load.sync().unwrap();
    load.read_and_check(32, 2);
    assert_eq!(server.done(Op::Write), 64);
    assert_eq!(first_words(&server), of_generation(0..32, 2));
    let near = load.channels().into_iter().find(|channel| channel.within.as_ref().unwrap().starts_with("127.0.0.1"));
    assert!(near.unwrap().retries.unwrap() > 0);
}

#[test]
fn a_server_that_is_not_ready_or_waits_for_others_is_asked_again() {
    for status in [DELAY, GRACE] {
        let server = TestServer::begin();
        let mount = server.mount(V4);
        [Op::Open, Op::Write, Op::Commit, Op::Read].into_iter().for_each(|op| server.refuse(op, status, 1));
        let file = NfsFile::create(&mount, "/export/data", Durability::OnSync).unwrap();
        let mut load = Load::on(&file);
        load.write(4, 1).unwrap();
        load.sync().unwrap();
        load.read_and_check(4, 1);
        [Op::Open, Op::Write].into_iter().for_each(|op| server.refuse(op, status, 1));
        NfsFile::open(&mount, "/export/data", Durability::OnSync).unwrap();
        file.write_all_at(&[7; 8], 0).unwrap();
        assert_eq!([Op::Open, Op::Write, Op::Commit, Op::Read].map(|op| server.done(op)), [2, 5, 1, 4]);
    }
}

#[test]
fn numbers_of_slots_go_on_where_the_server_was_not_ready_for_a_session() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    server.refuse(Op::Sequence, DELAY, 1);
    load.write(4, 1).unwrap();
    server.refuse(Op::Sequence, DELAY, 1);
    assert_eq!(file.length().unwrap(), 4 * u64::from(BLOCK));
    let other = NfsFile::open(file.mount(), "/export/data", Durability::OnSync).unwrap();
    server.refuse(Op::Sequence, DELAY, 1);
    drop(other);
    assert_eq!(server.done(Op::Close), 1);
    assert_eq!(file.length().unwrap(), 4 * u64::from(BLOCK));
    // A write that the server was not ready for was not done, so that the session goes then leaves no doubt of it.
    server.refuse(Op::Sequence, DELAY, 1);
    server.refuse(Op::Sequence, BADSESSION, 1);
    load.push(Direction::Write, 0, 0, BLOCK);
    assert_eq!(load.finish().unwrap().remove(&0).unwrap().unwrap(), BLOCK);
    assert_eq!((server.done(Op::Write), server.done(Op::CreateSession)), (5, 3));
}

#[test]
fn a_session_that_is_of_no_use_is_made_anew() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    // BADSESSION, DEADSESSION, STALE_CLIENTID, EXPIRED, CONN_NOT_BOUND_TO_SESSION, BADSLOT, SEQ_MISORDERED, SEQ_FALSE_RETRY.
    for (status, generation) in [10052, 10078, 10022, 10011, 10055, 10053, 10063, 10076].into_iter().zip(1..) {
        server.refuse(Op::Sequence, status, 1);
        load.write(4, generation).unwrap();
        server.refuse(Op::Sequence, status, 1);
        load.sync().unwrap();
        assert_eq!((server.done(Op::Write), server.done(Op::Commit)), (4 * generation, generation));
        server.refuse(Op::Sequence, status, 1);
        load.read_and_check(4, generation);
        server.refuse(Op::Sequence, status, 1);
        assert_eq!(file.length().unwrap(), 4 * u64::from(BLOCK));
    }
    drop((load, file));
    assert_eq!(server.clients(), 0, "sessions that are of no use are ended all the same");
}

#[test]
fn a_server_that_forgets_each_session_ends_the_run() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    load.write(4, 1).unwrap();
    server.refuse(Op::Sequence, BADSESSION, u32::MAX);
    let error = load.write(4, 2).unwrap_err().to_string();
    assert!(error.contains("in each of 5 sessions") && error.contains("NFSERR_BADSESSION"), "{error}");
    let error = file.attributes().unwrap_err();
    assert!(error.to_string().contains("refused GETATTR in each of 5 sessions"), "{error}");
    assert!(error.hint().contains("`version=3`"));
}

#[test]
fn an_answer_in_a_session_that_is_gone_meanwhile_counts() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, V4));
    load.write(2, 1).unwrap();
    // The first of two reads is done and its answer kept for a while, the second refused at once.
    let refusal = Refusal { op: Op::Sequence, status: BADSESSION, after: 1, times: 1 };
    server.set(|faults| (faults.reorders, faults.refusals_overtake, faults.refuses) = (3, true, vec![refusal]));
    load.read_and_check(2, 1);
    assert_eq!(server.done(Op::Read), 2);
}

#[test]
fn an_open_state_that_the_server_does_not_know_any_more_is_made_anew() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    // EXPIRED, STALE_STATEID, OLD_STATEID, BAD_STATEID, ADMIN_REVOKED.
    for (status, generation) in [10011, 10023, 10024, 10025, 10047].into_iter().zip(1..) {
        let opened = server.done(Op::Open);
        server.refuse(Op::Write, status, 1);
        load.write(4, generation).unwrap();
        server.refuse(Op::Read, status, 1);
        load.read_and_check(4, generation);
        server.refuse(Op::Write, status, 1);
        file.write_all_at(&(generation << 32).to_le_bytes(), 0).unwrap();
        // The load takes over what was opened beside it.
        assert!(server.done(Op::Open) >= opened + 2);
    }
}

#[test]
fn a_server_that_nobody_asks_anything_is_told_that_this_client_is_there() {
    let server = TestServer::begin();
    server.set(|faults| faults.lease_s = 1);
    let mut load = Load::on(&new_file(&server, V4));
    let asks_for_nothing = |load: &mut Load| {
        load.push(Direction::Nothing, 0, 0, 0);
        assert!(load.finish().is_ok());
    };
    let waits = |load: &mut Load| {
        load.queue.wait(Patience::Until(Duration::from_millis(5)), &mut Vec::new()).unwrap();
    };
    // Calls that ask for nothing are in no session, so they are no sign of life.
    for pass_time in [&waits as &dyn Fn(&mut Load), &asks_for_nothing] {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let (mut silence, mut renewals) = server.renewals();
            while renewals < 2 {
                assert!(Instant::now() < patience, "the client is forgotten");
                pass_time(&mut load);
                let (longer, more) = server.renewals();
                (silence, renewals) = (silence.max(longer), renewals + more);
            }
            // A machine that stood still meanwhile gets another chance.
            if silence < Duration::from_secs(1) {
                break;
            }
        }
    }
}
