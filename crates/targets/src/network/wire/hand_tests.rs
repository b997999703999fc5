//! Both halves of the handshake and of control connections, over sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;
use crate::network::wire::{
    ClientControl, Frames, FromClient, FromServer, MAX_FRAME_BYTES, Open, ServerControl, Token, Version,
};

/// Two ends of a connection: the server's and the client's.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, client)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn key(token: &str) -> Key {
    Token::new(token).unwrap().key()
}

type Met<T> = Result<T, WireError>;

/// What a server with the token `ours` and a client with the token `theirs` make of each other.
fn met(ours: &str, theirs: &str) -> (Met<(Role, Option<Session>)>, Met<Session>) {
    let (server, client) = pair();
    let ours = key(ours);
    let greeted = std::thread::spawn(move || greet(&server, &ours, || None, soon()));
    let proved = prove_control(&client, &key(theirs), soon());
    (greeted.join().unwrap(), proved)
}

#[test]
fn whoever_knows_the_token_is_let_in_and_both_have_a_session() {
    let (greeted, proved) = met("a long token", "a long token");
    let (role, session) = greeted.unwrap();
    let (ours, theirs) = (session.unwrap(), proved.unwrap());
    assert_eq!(role, Role::Control);
    // Data connections are let in by the session and the number of the test alone.
    for (session, number, is_let_in) in
        [(&theirs, 7, true), (&theirs, 8, false), (&Session(key("a long token")), 7, false)]
    {
        let (server, client) = pair();
        let ours = ours.clone();
        let greeted =
            std::thread::spawn(move || greet(&server, &key("a long token"), || Some((ours, 7)), soon()).map(|it| it.0));
        let flow = Flow { number: 3, carries: Carries::Down };
        let proved = prove_data(&client, session, number, flow, soon());
        let greeted = greeted.join().unwrap();
        if is_let_in {
            assert_eq!((greeted.unwrap(), proved.unwrap()), (Role::Data(flow), ()));
        } else {
            assert!(matches!(greeted, Err(WireError::TokenRefused)) && matches!(proved, Err(WireError::TokenRefused)));
        }
    }
}

#[test]
fn another_token_is_refused_and_both_hear_of_it() {
    let (greeted, proved) = met("a long token", "a wrong token");
    assert!(matches!(greeted, Err(WireError::TokenRefused)), "{greeted:?}");
    let error = proved.unwrap_err();
    assert_eq!(error.to_string(), "the server did not accept the token");
    assert!(error.hint().unwrap().contains("PLIMSOLL_NET_TOKEN"));
}

#[test]
fn data_connections_without_a_test_are_refused() {
    let (server, client) = pair();
    let greeted = std::thread::spawn(move || greet(&server, &key("a long token"), || None, soon()));
    let flow = Flow { number: 0, carries: Carries::Up };
    assert!(matches!(prove_data(&client, &Session(key("a long token")), 1, flow, soon()), Err(WireError::NoTest)));
    assert!(matches!(greeted.join().unwrap(), Err(WireError::NoTest)));
}

#[test]
fn what_was_heard_once_proves_nothing_again() {
    let key = key("a long token");
    let heard = Challenge::fresh().unwrap();
    let hello = HelloRead::made(Role::Control, &heard, &key, None).unwrap();
    assert!(hello.is_proved(&heard, &key, None));
    assert!(!hello.is_proved(&Challenge::fresh().unwrap(), &key, None));
    // Nor for another purpose.
    assert!(!hello.is_proved(&heard, &key, Some(0)));
    for byte in 0..HELLO_BYTES {
        let mut bytes = hello.bytes;
        bytes[byte] ^= 1;
        let is_taken = HelloRead::read(bytes).is_ok_and(|hello| hello.is_proved(&heard, &key, None));
        assert!(!is_taken, "byte {byte} is not proved");
    }
}

#[test]
fn a_server_that_does_not_know_the_token_is_found_out() {
    let (mut server, client) = pair();
    let liar = std::thread::spawn(move || {
        server.write_all(Challenge::fresh().unwrap().bytes()).unwrap();
        server.read_exact(&mut [0; HELLO_BYTES]).unwrap();
        server.write_all(&[0; VERDICT_BYTES]).unwrap();
        server
    });
    assert!(matches!(prove_control(&client, &key("a long token"), soon()), Err(WireError::Unproven)));
    drop(liar.join());
}

#[test]
fn strangers_are_named_and_the_silent_are_not_waited_for() {
    for (said, expected) in [
        (&b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"[..], "does not speak as plimsoll does"),
        (b"PLIMNET2 from a later time, and forty bytes", "speaks protocol 2, this program speaks 1"),
        (b"PLIMNET1 and no more", "no answer in the handshake"),
    ] {
        let (mut server, client) = pair();
        server.write_all(said).unwrap();
        let deadline = Instant::now() + Duration::from_millis(300);
        let error = prove_control(&client, &key("a long token"), deadline).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let (server, client) = pair();
    drop(client);
    let error = greet(&server, &key("a long token"), || None, soon()).unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[test]
fn the_deadline_is_for_all_bytes_and_not_for_each() {
    let (server, mut client) = pair();
    let dripping = std::thread::spawn(move || {
        while client.write_all(b"P").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let began = Instant::now();
    let greeted = greet(&server, &key("a long token"), || None, began + Duration::from_millis(300));
    assert!(matches!(greeted, Err(WireError::Silent { .. })), "{greeted:?}");
    server.shutdown(std::net::Shutdown::Both).unwrap();
    dripping.join().unwrap();
}

#[test]
fn messages_arrive_whole_in_order_and_in_pieces() {
    let (server, client) = pair();
    let serving = std::thread::spawn(move || {
        let key = key("a long token");
        greet(&server, &key, || None, soon()).unwrap();
        let mut control = ServerControl::accepted(server, soon()).unwrap();
        // Nothing has come yet, which is no error.
        let first = control.receive(Instant::now() + Duration::from_millis(1)).unwrap();
        control.send(&FromServer::Preparing { done_bytes: 1, of_bytes: 2 }).unwrap();
        let mut heard: Vec<FromClient> = first.into_iter().collect();
        while heard.len() < 3 {
            heard.push(control.expect(soon()).unwrap());
        }
        (heard, control.expect(soon()).unwrap_err())
    });
    let (mut control, _) = ClientControl::prove(client, &key("a long token"), soon()).unwrap();
    assert_eq!(control.expect(soon()).unwrap(), FromServer::Preparing { done_bytes: 1, of_bytes: 2 });
    let open = FromClient::Open(Open { what: "gc \u{1b}[31m".to_owned(), connections: 4, ..Open::default() });
    let said = [open, FromClient::Snapshot(u64::MAX), FromClient::End];
    said.iter().for_each(|message| control.send(message).unwrap());
    control.close();
    let (heard, end) = serving.join().unwrap();
    assert_eq!(heard, said);
    assert!(end.is_closed(), "{end}");
}

#[test]
fn a_message_that_is_none_ends_the_conversation() {
    let frame = |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
    let too_long = (u32::try_from(MAX_FRAME_BYTES).unwrap() + 1).to_le_bytes();
    for (bytes, expected) in [
        (too_long.to_vec(), "a message of 65537 bytes was announced, and at most 65536 are taken"),
        (vec![0xff; 4], "a message of 4294967295 bytes was announced"),
        (frame("\"begin\" x"), "a message is not what it should be"),
        (frame("\"destroy\""), "unknown variant"),
        (frame(r#"{"open":{"what":"","more":1}}"#), "unknown field"),
    ] {
        let (server, mut client) = pair();
        let said = frame(&serde_json::to_string(&FromClient::Version(Version::ours())).unwrap());
        client.write_all(&[said, bytes].concat()).unwrap();
        let mut control = ServerControl::accepted(server, soon()).unwrap();
        let error = control.receive(soon()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut frames: Frames<FromClient> = Frames::default();
    let mut heard = Vec::new();
    for byte in [frame("\"begin\""), frame("\"end\"")].concat() {
        frames.take_in(&[byte]);
        heard.extend(frames.next_message().unwrap());
    }
    assert_eq!(heard, [FromClient::Begin, FromClient::End]);
}

#[test]
fn another_version_is_named_at_both_ends() {
    let (server, client) = pair();
    let serving = std::thread::spawn(move || {
        greet(&server, &key("a long token"), || None, soon()).unwrap();
        ServerControl::accepted(server, soon()).unwrap_err().to_string()
    });
    prove_control(&client, &key("a long token"), soon()).unwrap();
    let text = r#"{"version":{"protocol":1,"program":"0.0.9\n"}}"#;
    let frame = [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
    (&client).write_all(&frame).unwrap();
    assert_eq!(serving.join().unwrap(), "the other end speaks protocol 1 (plimsoll 0.0.9 ), this program speaks 1");
}
