//! What is called durable is, and what is read was not lost.

use super::{BLOCK, Load, VERSIONS, first_words, new_file, of_generation, resent};
use crate::io::{Direction, Durability, Request, VirtualFile};
use crate::nfs::test_server::TestServer;
use crate::nfs::{Limits, NfsError, NfsFile};

#[test]
fn writes_that_a_restarted_server_forgot_are_sent_again_before_they_are_called_durable() {
    for version in VERSIONS {
        let server = TestServer::begin();
        let file = new_file(&server, version);
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
}

#[test]
fn over_a_new_connection_nothing_is_read_that_a_restarted_server_has_lost() {
    for version in VERSIONS {
        let server = TestServer::begin();
        let file = new_file(&server, &format!("{version}&connections=2"));
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
}

#[test]
fn a_write_without_an_answer_is_sent_again_when_the_server_has_restarted() {
    for version in VERSIONS {
        let server = TestServer::begin();
        for durability in [Durability::OnSync, Durability::EachWrite] {
            let name = format!("/export/{durability:?}");
            let file = NfsFile::create(&server.mount(&format!("{version}&connections=2")), &name, durability).unwrap();
            let mut load = Load::on(&file);
            load.write(16, 1).unwrap();
            server.set(|faults| faults.restarts_at_write = 1);
            load.write(16, 2).unwrap();
            load.sync().unwrap();
            load.read_and_check(16, 2);
            assert!(load.channels().iter().map(|channel| channel.retries.unwrap()).sum::<u64>() > 0);
        }
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
    for version in VERSIONS {
        let server = TestServer::begin();
        let mount = server.mount(version);
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
}
