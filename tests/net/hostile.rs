//! The server before clients that are slow, silent, many, or lie.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plimsoll::targets::network::wire::{
    Carries, ClientControl, FromClient, GREETING_BYTES, HELLO_BYTES, Introduction, MAX_FRAME_BYTES, Open, RequestHead,
    Token, VERDICT_BYTES, WireError,
};

use crate::peer::{Client, Serving, asking, exchange, exchanges, is_closed, send, soon, token, until};

/// A test works as it should, whatever happens beside it.
fn works(client: &mut Client) {
    client.ask(exchanges(1)).unwrap();
    let mut stream = client.flow(0, Carries::Exchanges).unwrap();
    client.begin();
    assert_eq!(exchange(&mut stream, asking(200, 8_192, 5)).sequence, 5);
    drop(stream);
    client.end();
}

#[test]
fn a_wrong_token_opens_nothing_and_is_reported_without_it() {
    let server = Serving::start();
    let wrong = Token::new("another secret").unwrap();
    let error = ClientControl::prove(server.connect(), &wrong.key(), soon()).unwrap_err();
    assert!(matches!(error, WireError::TokenRefused), "{error}");
    until("it is told", || {
        server.reported().contains("127.0.0.1 turned away: it did not prove that it knows the token")
    });
    assert!(!server.reported().contains("secret") && !server.reported().contains(crate::peer::TOKEN));
    works(&mut server.client());
}

#[test]
fn requests_to_be_written_are_not_taken_by_a_test_without_files() {
    let server = Serving::start();
    let mut client = server.client();
    client.ask(exchanges(2)).unwrap();
    let mut stream = client.flow(0, Carries::Exchanges).unwrap();
    let mut other = client.flow(1, Carries::Exchanges).unwrap();
    client.begin();
    send(&mut stream, RequestHead { is_durable: true, ..asking(8_192, 64, 1) });
    assert!(is_closed(&mut stream), "it was taken");
    until("it is told", || server.reported().contains("it is to be written, and the test was not opened for that"));
    assert_eq!(exchange(&mut other, asking(200, 8_192, 5)).sequence, 5);
    drop(other);
    client.end();
}

#[test]
fn a_handshake_that_was_heard_is_no_use() {
    let server = Serving::start();
    // A listener between a client and the server hears all that both say.
    let between = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = between.local_addr().unwrap();
    let client = std::thread::spawn(move || {
        let stream = TcpStream::connect(address).unwrap();
        let _ = ClientControl::prove(stream, &token().key(), soon());
    });
    let (mut theirs, mut ours) = (between.accept().unwrap().0, server.connect());
    let (mut greeting, mut hello, mut verdict) = ([0; GREETING_BYTES], [0; HELLO_BYTES], [0; VERDICT_BYTES]);
    ours.read_exact(&mut greeting).unwrap();
    theirs.write_all(&greeting).unwrap();
    theirs.read_exact(&mut hello).unwrap();
    drop(theirs);
    client.join().unwrap();
    let mut again = server.connect();
    again.read_exact(&mut [0; GREETING_BYTES]).unwrap();
    again.write_all(&hello).unwrap();
    again.read_exact(&mut verdict).unwrap();
    assert_ne!(verdict[0], 0, "what was heard was accepted again");
    assert_eq!(verdict[8..], [0; 32], "a proof for nobody");
    assert!(is_closed(&mut again));
}

#[test]
fn nothing_beyond_64_bytes_is_read_of_a_stranger() {
    let server = Serving::start();
    let mut stream = server.connect();
    // So much that it fits into no buffers of sockets: whoever took it would have to read it.
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let flood = vec![b'x'; 64 << 20];
    let sent = stream.write_all(&flood);
    assert!(sent.is_err(), "64 MiB were taken of somebody unknown");
    until("it is told", || server.reported().contains("a hello is not what it should be"));
    works(&mut server.client());
}

/// The same where many others connect: a connection may have to be tried again.
fn gets_through(server: &Serving) -> Result<(), WireError> {
    let (control, session) = ClientControl::prove(server.connect(), &token().key(), soon())?;
    let mut client = Client { control, session, address: server.address, test: 0 };
    client.ask(exchanges(1)).unwrap();
    let mut stream = client.flow(0, Carries::Exchanges)?;
    client.begin();
    assert_eq!(exchange(&mut stream, asking(200, 8_192, 5)).sequence, 5);
    drop(stream);
    client.end();
    Ok(())
}

#[test]
fn a_thousand_connections_that_say_nothing_keep_nobody_out() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const IDLE: usize = 1_000;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Some(current.unwrap_or(u64::MAX).max(4_096).min(maximum.unwrap_or(u64::MAX)));
    setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum }).unwrap();
    let server = Serving::start();
    let idle: Vec<TcpStream> = (0..IDLE)
        .filter_map(|_| TcpStream::connect_timeout(&server.address, Duration::from_millis(200)).ok())
        .collect();
    assert!(idle.len() >= 100, "only {} connections were made", idle.len());
    until("a client gets through", || gets_through(&server).is_ok());
    // Few of them are reported: nobody fills a log who has no token.
    let reported = server.reported().matches("turned away").count();
    assert!((1..=100).contains(&reported), "{reported} lines");
}

#[test]
fn a_silent_connection_is_given_up_after_five_seconds_and_a_slow_one_too() {
    let server = Serving::start();
    let began = Instant::now();
    let mut silent = server.connect();
    let mut slow = server.connect();
    let mut drip = slow.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while drip.write_all(b"P").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    assert!(is_closed(&mut silent) && is_closed(&mut slow));
    assert!(began.elapsed() >= Duration::from_millis(4_900), "{:?}", began.elapsed());
    let _ = slow.shutdown(Shutdown::Both);
    dripping.join().unwrap();
}

#[test]
fn a_message_that_is_too_long_or_none_ends_the_test() {
    let server = Serving::start();
    for lie in [
        u32::MAX.to_le_bytes().to_vec(),
        u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_le_bytes().to_vec(),
        [&9_u32.to_le_bytes()[..], b"\"destroy\""].concat(),
        [&4_u32.to_le_bytes()[..], b"\xff\xfe\xfd\xfc"].concat(),
    ] {
        let mut client = server.client();
        client.ask(exchanges(1)).unwrap();
        client.control.stream().write_all(&lie).unwrap();
        let mut stream = client.control.stream().try_clone().unwrap();
        assert!(is_closed(&mut stream), "{lie:?}");
        until("it is told", || server.reported().contains("a message"));
    }
    works(&mut server.client());
}

#[test]
fn a_head_that_lies_ends_its_connection_and_is_reported() {
    let server = Serving::start();
    let mut client = server.client();
    client.ask(exchanges(4)).unwrap();
    client.begin();
    for (number, lie, expected) in [
        (0, asking((1 << 20) + 1, 32, 0), "a request of 1048577 bytes was announced"),
        (1, asking(32, u32::MAX, 0), "an answer of 4294967295 bytes was announced"),
        (2, asking(0, 32, 0), "it is said to have 0 bytes"),
    ] {
        let mut stream = client.flow(number, Carries::Exchanges).unwrap();
        stream.write_all(&lie.bytes()).unwrap();
        assert!(is_closed(&mut stream));
        until("it is told", || server.reported().contains(expected));
    }
    let mut stream = client.flow(3, Carries::Exchanges).unwrap();
    // Writing was never asked for.
    send(&mut stream, plimsoll::targets::network::wire::RequestHead { is_durable: true, ..asking(64, 64, 1) });
    assert!(is_closed(&mut stream));
    let seen = client.end();
    assert!(seen.trouble.unwrap().contains("connection 1: a request of 1048577 bytes"));
    assert_eq!((seen.requests, seen.writes), (0, 0));
    works(&mut client);
}

#[test]
fn data_connections_are_those_that_were_asked_for() {
    let server = Serving::start();
    let mut client = server.client();
    assert!(matches!(client.flow(0, Carries::Up), Err(WireError::NoTest)), "without a test");
    client.ask(exchanges(2)).unwrap();
    let _one = client.flow(0, Carries::Up).unwrap();
    client.are_served(1);
    for number in [0, 2, u32::MAX] {
        let mut wrong = client.flow(number, Carries::Down).unwrap();
        let came = wrong.read(&mut [0; 1]);
        let is_refused =
            came.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |came| *came == 0);
        assert!(is_refused, "connection {number} was served: {came:?}");
    }
    // A session of another control connection is no session of this test.
    let mut other = server.client();
    other.test = client.test;
    assert!(matches!(other.flow(1, Carries::Up), Err(WireError::TokenRefused)));
    client.end();
    assert!(matches!(client.flow(1, Carries::Up), Err(WireError::NoTest)), "after the test");
}

#[test]
fn a_client_that_vanishes_stops_reading_or_says_nothing_ends_its_test_alone() {
    let server = Serving::start();
    // Vanishes.
    let mut client = server.client();
    client.ask(exchanges(1)).unwrap();
    let down = client.flow(0, Carries::Down).unwrap();
    client.begin();
    drop(client);
    until("it is told", || server.reported().contains("its client has gone"));
    drop(down);
    // Reads nothing of a flow down, sends half a request, and ends as it should: threads that wait for it leave.
    let mut client = server.client();
    client.ask(exchanges(2)).unwrap();
    let _down = client.flow(0, Carries::Down).unwrap();
    let mut half = client.flow(1, Carries::Exchanges).unwrap();
    client.begin();
    half.write_all(&asking(1_000, 32, 0).bytes()).unwrap();
    until("buffers are full", || {
        let sent = client.snapshot(1).end.sent_bytes;
        std::thread::sleep(Duration::from_millis(50));
        sent > Some(0) && client.snapshot(2).end.sent_bytes == sent
    });
    let seen = client.end();
    assert_eq!(seen.connections, 0, "a thread is left");
    // Says nothing for ten seconds.
    client.ask(exchanges(1)).unwrap();
    let began = Instant::now();
    client.begin();
    let (why, _) = client.ended();
    assert!(why.unwrap().contains("said nothing for 10 s") && began.elapsed() > Duration::from_secs(9));
    works(&mut server.client());
}

#[test]
fn no_datagram_goes_to_whoever_did_not_introduce_itself_as_the_client() {
    let server = Serving::start();
    let mut client = server.client();
    let door = client.ask(Open { has_datagrams: true, ..exchanges(1) }).unwrap().datagrams.unwrap();
    client.begin();
    let to = (server.address.ip(), door.port);
    let first = Introduction { nonce: door.nonce, number: 0 };
    let mut wrong = first;
    wrong.nonce[15] ^= 1;
    // Of another host's address, though with the right nonce: whoever sends with a made-up address would aim answers at it.
    let spoofed = UdpSocket::bind("127.0.0.2:0").unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut expected = 0;
    for (socket, bytes) in [
        (&spoofed, first.bytes()),
        (&spoofed, asking(32, 8_192, 0).bytes()),
        (&stranger, wrong.bytes()),
        (&stranger, asking(32, 8_192, 0).bytes()),
    ] {
        socket.send_to(&bytes, to).unwrap();
        expected += 1;
    }
    until("all has come", || client.snapshot(1).strange_datagrams == expected);
    // As many sockets as connections were asked for, and no more.
    let known = UdpSocket::bind("127.0.0.1:0").unwrap();
    known.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    known.send_to(&first.bytes(), to).unwrap();
    assert_eq!(known.recv(&mut [0; 64]).unwrap(), 32);
    stranger.send_to(&first.bytes(), to).unwrap();
    until("all has come", || client.snapshot(2).strange_datagrams == expected + 1);
    for socket in [&spoofed, &stranger] {
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; 64]).is_err(), "a datagram went to a third party");
    }
    assert_eq!(client.end().datagrams, 0);
}

#[test]
fn control_connections_are_few() {
    let server = Serving::start();
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    let stream = server.connect();
    let error = ClientControl::prove(stream, &token().key(), soon()).unwrap_err();
    assert!(error.is_closed(), "{error}");
    until("it is told", || server.reported().contains("there are 16 already"));
    works(&mut clients[7]);
    drop(clients);
    until("there is room again", || ClientControl::prove(server.connect(), &token().key(), soon()).is_ok());
}

#[test]
fn messages_out_of_turn_are_no_reason_to_fall() {
    let server = Serving::start();
    let mut client = server.client();
    for message in [FromClient::Begin, FromClient::End, FromClient::Snapshot(3), FromClient::Alive] {
        client.control.send(&message).unwrap();
    }
    works(&mut client);
    client.ask(exchanges(1)).unwrap();
    client.control.send(&FromClient::Open(exchanges(1))).unwrap();
    assert!(client.ended().0.unwrap().contains("does not keep to the protocol"));
}
