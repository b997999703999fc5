//! Version 4.1: what a server that restarts, or forgets this client, takes with it is made anew.

use std::thread;
use std::time::Duration;

use super::{DELAY, Load, V4, VERSIONS, first_words, new_file, of_generation, until};
use crate::io::{Direction, Durability, VirtualFile};
use crate::nfs::NfsFile;
use crate::nfs::test_server::{Kind, Loss, TestServer};
use crate::nfs::wire::nfs4::Op;

#[test]
fn after_a_restart_files_are_open_again_and_nothing_is_read_that_was_lost() {
    // With the grace period, in which nothing but what was open is opened, or without; with connections that break, or stay.
    for (takes_reclaims, is_in_grace, hangs_up) in [(true, true, true), (true, true, false), (false, false, false)] {
        let server = TestServer::begin();
        let file = new_file(&server, "&version=4.1&connections=2");
        let mut load = Load::on(&file);
        load.write(16, 1).unwrap();
        load.sync().unwrap();
        load.write(16, 2).unwrap();
        server.set(|faults| (faults.takes_reclaims, faults.is_in_grace) = (takes_reclaims, is_in_grace));
        server.restart(hangs_up);
        load.read_and_check(16, 2);
        load.write(16, 3).unwrap();
        load.sync().unwrap();
        assert_eq!(first_words(&server), of_generation(0..16, 3));
        // And by what is asked beside load.
        load.write(16, 4).unwrap();
        server.restart(hangs_up);
        let mut back = [0; 8];
        file.read_exact_at(&mut back, 0).unwrap();
        assert_eq!(u64::from_le_bytes(back), 4 << 32);
    }
}

#[test]
fn a_file_that_cannot_be_reclaimed_is_opened_once_the_grace_period_is_over() {
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, V4));
    load.write(4, 1).unwrap();
    server.set(|faults| (faults.takes_reclaims, faults.is_in_grace) = (false, true));
    server.restart(true);
    let ends = server.clone();
    let grace = thread::spawn(move || {
        until(|| ends.done(Op::ReclaimComplete) == 2);
        thread::sleep(Duration::from_millis(60));
        ends.set(|faults| faults.is_in_grace = false);
    });
    load.read_and_check(4, 1);
    grace.join().unwrap();
}

#[test]
fn a_client_that_was_forgotten_goes_on_under_its_name() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    load.write(8, 1).unwrap();
    server.forget_clients();
    load.write(8, 2).unwrap();
    server.forget_clients();
    load.sync().unwrap();
    assert_eq!(first_words(&server), of_generation(0..8, 2));
    server.forget_clients();
    load.read_and_check(8, 2);
    // It is seen that the load was not what was asked for.
    assert!(load.channels()[0].retries.unwrap() >= 3);
    server.forget_clients();
    file.write_all_at(&[7; 8], 0).unwrap();
    server.forget_clients();
    NfsFile::open(file.mount(), "/export/data", Durability::OnSync).unwrap();
    assert_eq!(server.clients(), 1);
    // The server itself has forgotten no write.
    assert_eq!(server.done(Op::Write), 17);
}

#[test]
fn writes_that_a_server_forgot_are_sent_again_although_sessions_stay() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    load.write(8, 1).unwrap();
    server.forget_writes();
    load.sync().unwrap();
    assert_eq!(first_words(&server), of_generation(0..8, 1));
    load.write(8, 2).unwrap();
    server.forget_writes();
    file.commit().unwrap();
    assert_eq!(first_words(&server), of_generation(0..8, 2));
    assert_eq!(server.done(Op::CreateSession), 2);
}

#[test]
fn what_was_begun_after_a_restart_and_broken_off_is_done_again() {
    let server = TestServer::begin();
    let file = new_file(&server, V4);
    let mut load = Load::on(&file);
    load.write(4, 1).unwrap();
    // Once more than a call is sent.
    server.set(|faults| faults.hangs_up_at = Some((Op::ReclaimComplete, 2)));
    server.restart(false);
    load.write(4, 2).unwrap();
    load.sync().unwrap();
    assert_eq!(first_words(&server), of_generation(0..4, 2));
    server.set(|faults| faults.hangs_up_at = Some((Op::ReclaimComplete, 2)));
    server.restart(false);
    assert!(file.length().is_err());
    NfsFile::open(file.mount(), "/export/data", Durability::OnSync).unwrap();
    // The server is not ready for it at first, or restarts again before it.
    server.refuse(Op::ReclaimComplete, DELAY, 1);
    server.restart(false);
    NfsFile::open(file.mount(), "/export/data", Durability::OnSync).unwrap();
    server.refuse(Op::ReclaimComplete, 10052, 1);
    server.restart(false);
    load.read_and_check(4, 2);
}

#[test]
fn a_server_may_restart_while_lost_writes_are_sent_again() {
    for version in VERSIONS {
        let server = TestServer::begin();
        let mut load = Load::on(&new_file(&server, version));
        load.write(8, 1).unwrap();
        server.restart(true);
        // At the first writes that are sent again, twice.
        server.set(|faults| faults.restarts_at_write = 2);
        load.sync().unwrap();
        assert_eq!(first_words(&server), of_generation(0..8, 1));
    }
}

#[test]
fn a_server_that_breaks_off_whatever_is_begun_is_asked_with_pauses_until_the_load_is_given_up() {
    const HANGS_UP: u32 = 10_000;
    let server = TestServer::begin();
    let mut load = Load::on(&new_file(&server, V4));
    load.write(4, 1).unwrap();
    server.set(|faults| faults.hangs_up_at = Some((Op::ReclaimComplete, HANGS_UP)));
    server.restart(false);
    load.write(4, 2).unwrap_err();
    let mut left = 0;
    server.set(|faults| left = faults.hangs_up_at.unwrap().1);
    // Twice in an attempt. It is given up after 2.4 s, and pauses before that take 0.1, 0.2, 0.4 and 0.8 s.
    assert!((2..=16).contains(&(HANGS_UP - left)), "{}", HANGS_UP - left);
}

#[test]
fn a_write_that_was_sent_twice_in_sessions_that_are_gone_ends_the_run_unless_the_server_restarted() {
    for is_restart in [true, false] {
        let server = TestServer::begin();
        let mut load = Load::on(&new_file(&server, V4));
        load.write(4, 1).unwrap();
        server.set(|faults| faults.loses_reply = Some((Kind::Write, Loss::HangUp)));
        load.push(Direction::Write, 0, 0, 8);
        load.queue.flush().unwrap();
        until(|| server.done(Op::Write) == 5);
        if is_restart {
            server.restart(true);
            assert_eq!(load.finish().unwrap().remove(&0).unwrap().unwrap(), 8);
            load.sync().unwrap();
            assert_eq!(first_words(&server), of_generation(0..4, 1));
        } else {
            server.forget_clients();
            let error = load.finish().unwrap_err().to_string();
            assert!(error.contains("a write over the path 127.0.0.1:") && error.contains("overwrite newer"), "{error}");
        }
    }
}
