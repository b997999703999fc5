//! Bytes that real servers of releases 11, 18, 21 and 23 have sent, played to the driver and to the parser of the responder.
//!
//! The recordings lie beside the project, not in it. `PLIMSOLL_ORACLE_WIRE` names another folder.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use oracledb::{Config, ErrorKind};

use crate::responder::calls::Cursors;
use crate::responder::requests::{Asked, Execute, request};
use crate::responder::wire::Reader;
use crate::responder::{Answer, Call, Generation, Kind, Options, Responder};
use crate::skip::skip;

const FOLDER: &str = "PLIMSOLL_ORACLE_WIRE";
const HEADER_BYTES: usize = 8;
const DATA: u8 = 6;
const FLAGS_BYTES: usize = 2;

/// The folder of the recordings, unless there is none.
fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/oracle/wire");
    let folder = std::env::var_os(FOLDER).map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    skip(format!("no recordings of Oracle in {}; {FOLDER} names another folder", folder.display()));
    None
}

/// What was recorded of one connection.
struct Recording {
    /// In order: whether the client sent it, and the bytes.
    frames: Vec<(bool, Vec<u8>)>,
    /// What the recorder says about it.
    manifest: HashMap<String, String>,
}

impl Recording {
    fn read(folder: &Path, name: &str) -> Recording {
        let bytes = fs::read(folder.join(format!("{name}.tns-cassette"))).unwrap();
        let (head, mut rest) = bytes.split_at(9);
        assert_eq!(head, b"TNSCASS\0\x01");
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
            frames.push((rest[0] == 1, rest[13..13 + length].to_vec()));
            rest = &rest[13 + length..];
        }
        let manifest = fs::read_to_string(folder.join(format!("{name}.tns-cassette.manifest"))).unwrap();
        let manifest = manifest.lines().filter_map(|line| line.split_once(" = "));
        let manifest = manifest.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned()));
        Recording { frames, manifest: manifest.collect() }
    }

    /// What the server has sent, from the first frame to the last.
    fn answers(&self) -> Vec<u8> {
        self.frames.iter().filter(|(by_client, _)| !by_client).flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    fn requests(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().filter(|(by_client, _)| *by_client).map(|(_, bytes)| &bytes[..])
    }
}

/// The bytes of a file of hexadecimal digits.
fn digits(folder: &Path, name: &str) -> Vec<u8> {
    let text = fs::read_to_string(folder.join(format!("pre23ai_xe18_{name}.hex"))).unwrap();
    text.trim()
        .as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// A server of one connection that does what `script` says.
fn play(script: impl FnOnce(TcpStream) + Send + 'static) -> (Config, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Config::default().set_credentials("SLOB", "secret");
    let descriptor = format!(
        "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={port}))(CONNECT_DATA=(SERVICE_NAME=XEPDB1)))"
    );
    let player = thread::spawn(move || script(listener.accept().unwrap().0));
    (config.set_connect_string(&descriptor).unwrap(), player)
}

/// The kind and the body of the next packet. The length has four bytes once the connection is accepted.
fn packet(stream: &mut TcpStream, is_accepted: bool) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let length = match is_accepted {
        true => u32::from_be_bytes(header[..4].try_into().unwrap()) as usize,
        false => u16::from_be_bytes(header[..2].try_into().unwrap()).into(),
    };
    let mut body = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut body).ok()?;
    Some((header[4], body))
}

/// Sends an answer in one packet of data.
fn send(stream: &mut TcpStream, answer: &[u8]) {
    let length = (HEADER_BYTES + FLAGS_BYTES + answer.len()) as u32;
    stream.write_all(&[&length.to_be_bytes()[..], &[DATA, 0, 0, 0, 0, 0], answer].concat()).unwrap();
}

#[test]
fn the_driver_logs_on_to_a_recorded_server_and_reads_its_row() {
    let Some(folder) = folder() else { return };
    let select = Recording::read(&folder, "xe18-postauth");
    let (sql, value) = (select.manifest["sql"].clone(), select.manifest["expected_value"].clone());
    let (config, player) = play(move |mut stream| {
        let accept = digits(&folder, "accept_payload");
        packet(&mut stream, false).unwrap();
        let length = (HEADER_BYTES + accept.len()) as u16;
        stream.write_all(&[&length.to_be_bytes()[..], &[0, 0, 2, 0, 0, 0], &accept].concat()).unwrap();
        for step in ["protocol_negotiation", "data_types", "auth_phase_one", "auth_phase_two"] {
            packet(&mut stream, true).unwrap();
            send(&mut stream, &digits(&folder, &format!("{step}_response")));
        }
        packet(&mut stream, true).unwrap();
        stream.write_all(&select.answers()).unwrap();
        // The goodbye.
        packet(&mut stream, true).unwrap();
        send(&mut stream, &[9, 0, 0]);
    });
    let connection = oracledb::connect(config).unwrap();
    assert_eq!(connection.version().unwrap().to_string(), "18.0.0.0.0");
    let row = connection.query_row(&sql, &[]).unwrap();
    assert_eq!(row.get::<i64>("V").unwrap().to_string(), value);
    drop(connection);
    player.join().unwrap();
}

#[test]
fn recorded_listeners_are_understood() {
    let Some(folder) = folder() else { return };
    for name in ["xe11-connect", "xe18-connect", "xe21-connect", "free23-connect"] {
        let recording = Recording::read(&folder, name);
        let is_accepted = recording.manifest["outcome"] == "accept";
        let first_message = if recording.manifest["supports_fast_auth"] == "true" { 34 } else { 1 };
        let (config, player) = play(move |mut stream| {
            for (by_client, bytes) in &recording.frames {
                match by_client {
                    true => assert_eq!(packet(&mut stream, false).unwrap().0, bytes[4]),
                    false => stream.write_all(bytes).unwrap(),
                }
            }
            // Whoever was accepted goes on in the way that the server's release wants. Then the recording ends.
            let next = packet(&mut stream, true).map(|(kind, body)| (kind, body[FLAGS_BYTES]));
            assert_eq!(next, is_accepted.then_some((DATA, first_message)), "{name}");
        });
        let error = oracledb::connect(config).err().unwrap();
        match is_accepted {
            true => assert!(
                matches!(error.kind(), ErrorKind::DeadConnection | ErrorKind::StreamOperation),
                "{name}: {error}"
            ),
            false => assert!(matches!(error.kind(), ErrorKind::ServerVersionNotSupported), "{name}: {error}"),
        }
        player.join().unwrap();
    }
}

/// The logon of 23 was not recorded, so the responder logs on and then says what was.
#[test]
fn a_recorded_row_of_23_is_read() {
    let Some(folder) = folder() else { return };
    let recording = Recording::read(&folder, "select_7_plus_5");
    let calls = recording.frames.iter().skip_while(|(by_client, bytes)| !(*by_client && bytes.get(4) == Some(&DATA)));
    let answer: Vec<u8> =
        calls.skip(1).take_while(|(by_client, _)| !by_client).flat_map(|(_, bytes)| bytes.clone()).collect();
    let answers = move |call: &Call| match call.kind {
        Kind::Execute => Answer::Bytes(answer.clone()),
        _ => Answer::Ok,
    };
    let responder = Responder::start(Options { hashings: 1, ..Options::of(Generation::V23) }, answers);
    let config = Config::default().set_credentials("SLOB", "secret");
    let connection = oracledb::connect(config.set_connect_string(&responder.descriptor("orcl")).unwrap()).unwrap();
    let row = connection.query_row("select value from synthetic_fixture", &[]).unwrap();
    assert_eq!(row.get::<&str>("VALUE").unwrap(), "AL32UTF8");
}

/// Real servers have answered these requests of another client, so the responder has to understand them, too.
#[test]
fn recorded_requests_are_understood_by_the_responder() {
    let Some(folder) = folder() else { return };
    for (name, has_token, sql) in [
        ("xe18-postauth", false, "select cast(7 + 5 as number(6)) as v from dual"),
        ("select_7_plus_5", true, "select value from synthetic_fixture"),
    ] {
        let recording = Recording::read(&folder, name);
        let bytes = recording.requests().find(|bytes| bytes[4] == DATA).unwrap();
        let parsed =
            request(&mut Reader::new(&bytes[HEADER_BYTES + FLAGS_BYTES..]), &Cursors::new(1), has_token).unwrap();
        let Asked::Execute(Execute { sql: asked, is_query, is_executed, rows_wanted, binds, .. }) = parsed.asked else {
            panic!("{name}: an execution")
        };
        assert_eq!(
            (asked.as_deref(), is_query, is_executed, rows_wanted, binds),
            (Some(sql), true, true, 2, vec![vec![]]),
            "{name}"
        );
    }
}
