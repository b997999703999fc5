//! What is asked beside load.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::{Load, new_file};
use crate::io::{Durability, VirtualFile};
use crate::nfs::test_server::TestServer;
use crate::nfs::{NfsClaim, NfsError, NfsFile, NfsMount};

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
fn a_silent_server_is_asked_once_and_given_up_in_the_time_that_it_has() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&asked);
    thread::spawn(move || {
        // All are held open, and none is read.
        let count = |stream| {
            counting.fetch_add(1, Ordering::Relaxed);
            stream
        };
        listener.incoming().map(count).collect::<Vec<_>>()
    });
    for version in ["version=4.1".to_owned(), format!("version=3&mountport={port}")] {
        asked.store(0, Ordering::Relaxed);
        let address = format!("nfs://127.0.0.1:{port}/e/f?{version}&timeout=1");
        let error = NfsMount::connect(&address.parse().unwrap()).unwrap_err();
        assert!(matches!(error, NfsError::Silent { waited_ns: 5_000_000_000, .. }), "{version}: {error}");
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{version}");
    }
}

#[test]
fn what_cannot_be_mounted_is_said() {
    let server = TestServer::begin();
    let refused =
        NfsMount::connect(&server.url("data", "").replace("/export/", "/other/").parse().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("lets nothing be mounted above `/other/data`: NFSERR_ACCES"), "{refused}");
    assert!(refused.hint().contains("squash root"));
    let closed = test_support::ports::closed();
    let nobody =
        NfsMount::connect(&format!("nfs://127.0.0.1:{closed}/e/f?mountport={closed}").parse().unwrap()).unwrap_err();
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
