//! What a client gets that does as it should.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use plimsoll::targets::network::server::WriteTo;
use plimsoll::targets::network::wire::{
    ANSWER_HEAD_BYTES, Answer, Carries, Introduction, Open, RequestHead, SocketOptions, Status,
};

use crate::common::scratch;
use crate::peer::{Serving, asking, exchange, exchanges, receive, send, until};

#[test]
fn requests_are_answered_in_order_with_the_length_that_was_asked_for() {
    let server = Serving::start();
    let mut client = server.client();
    client.ask(exchanges(2)).unwrap();
    let mut one = client.flow(0, Carries::Exchanges).unwrap();
    let mut two = client.flow(1, Carries::Exchanges).unwrap();
    client.begin();
    for (number, (asked, answered)) in [(32, 32), (200, 8_192), (1 << 20, 32), (32, 1 << 20)].into_iter().enumerate() {
        let answer = exchange(&mut one, asking(asked, answered, number as u64));
        assert_eq!((answer.answer_bytes, answer.sequence, answer.status), (answered, number as u64, Status::Done));
        assert_eq!(answer.durable_ns, 0);
    }
    // Many on their way, in pieces that have nothing to do with where requests end.
    let mut bytes = Vec::new();
    for number in 0..500 {
        let request = asking(40 + number as u32 % 7, 33 + number as u32 % 5, number);
        bytes.extend(request.bytes());
        bytes.resize(bytes.len() + request.request_bytes as usize - 32, 0);
    }
    let mut writer = two.try_clone().unwrap();
    let writing = std::thread::spawn(move || bytes.chunks(77).for_each(|piece| writer.write_all(piece).unwrap()));
    for number in 0..500 {
        let answer = receive(&mut two);
        assert_eq!((answer.sequence, answer.answer_bytes), (number, 33 + number as u32 % 5));
    }
    writing.join().unwrap();
    drop((one, two));
    let seen = client.end();
    assert_eq!((seen.requests, seen.connections, seen.trouble), (504, 0, None));
    let sent: u64 = 32 + 8_192 + 32 + (1 << 20) + (0..500).map(|number| 33 + number % 5).sum::<u64>();
    let received: u64 = 32 + 200 + (1 << 20) + 32 + (0..500).map(|number| 40 + number % 7).sum::<u64>();
    assert_eq!((seen.end.sent_bytes, seen.end.received_bytes), (Some(sent), Some(received)));
    assert!(
        server.reported().contains("ends test 1 after") && server.reported().contains("504 requests"),
        "{}",
        server.reported()
    );
}

#[test]
fn bulk_flows_both_ways_and_every_byte_is_counted() {
    const BYTES: u64 = 40 << 20;
    let server = Serving::start();
    let mut client = server.client();
    let sockets = SocketOptions { receive_buffer_bytes: Some(65_536), ..SocketOptions::default() };
    client.ask(Open { connections: 2, sockets, ..Open::default() }).unwrap();
    let mut up = client.flow(0, Carries::Up).unwrap();
    let mut down = client.flow(1, Carries::Down).unwrap();
    client.are_served(2);
    client.begin();
    let sending = std::thread::spawn(move || {
        let piece = vec![7; 1 << 20];
        (0..BYTES >> 20).for_each(|_| up.write_all(&piece).unwrap());
    });
    let mut received = 0_u64;
    let mut room = vec![0; 1 << 20];
    while received < BYTES {
        received += down.read(&mut room).unwrap() as u64;
    }
    sending.join().unwrap();
    until("all has come, and that flow has ended", || {
        let seen = client.snapshot(1);
        seen.end.received_bytes == Some(BYTES) && seen.connections == 1
    });
    let seen = client.snapshot(2);
    let tcp = seen.end.tcp.clone().expect("the kernel says something of connections");
    assert_eq!((tcp.flows, seen.connections), (2, 1));
    assert!(tcp.busy_ns > 0 && tcp.bytes_received >= BYTES, "{tcp:?}");
    assert!(seen.at_ns > 0 && seen.end.process_cpu.is_some() && !seen.end.processors.is_empty());
    let facts = seen.end.facts.expect("what does not change is told");
    assert_eq!(facts.interface.as_deref(), Some("lo"));
    assert_eq!(facts.receive_buffer_bytes, Some(131_072), "the kernel doubles what it is told");
    drop(down);
    let seen = client.end();
    assert_eq!(seen.end.received_bytes, Some(BYTES));
    assert!(seen.end.sent_bytes >= Some(received), "{:?}", seen.end.sent_bytes);
}

#[test]
fn redo_is_written_durably_and_goes_around_in_files_without_names() {
    let place = scratch();
    let server = Serving::with(|options| {
        options.write = Some(WriteTo { directory: place.path().to_owned(), max_bytes: 64 << 10 });
    });
    let mut client = server.client();
    let refused = client.ask(Open { is_durable: true, ..exchanges(1) }).unwrap_err();
    assert!(refused.contains("do not fit into files of 64") && refused.contains("--write-max"), "{refused}");
    let open = Open { is_durable: true, max_request_bytes: 8_192, max_answer_bytes: 32, ..exchanges(1) };
    let opened = client.ask(open).unwrap();
    assert_eq!(opened.limits.write_bytes, Some(64 << 10));
    let mut stream = client.flow(0, Carries::Exchanges).unwrap();
    client.begin();
    for number in 0..20 {
        client.is_here();
        let answer = exchange(&mut stream, RequestHead { is_durable: number % 2 == 0, ..asking(8_192, 32, number) });
        assert_eq!(answer.status, Status::Done);
        assert_eq!(answer.durable_ns > 0, number % 2 == 0);
        assert!(answer.server_ns >= answer.durable_ns);
    }
    drop(stream);
    let seen = client.end();
    assert_eq!((seen.writes, seen.written_bytes), (10, 81_920), "of each durable request all bytes");
    assert!(seen.write_ns > 0);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "a file was left behind");
}

#[test]
fn a_server_that_writes_nothing_says_so() {
    let server = Serving::start();
    let refused = server.client().ask(Open { is_durable: true, ..exchanges(1) }).unwrap_err();
    assert!(refused.contains("writes nothing") && refused.contains("--write DIR"), "{refused}");
}

#[test]
fn datagrams_are_answered_to_sockets_that_introduced_themselves() {
    let server = Serving::start();
    let mut client = server.client();
    let open = Open { has_datagrams: true, max_answer_bytes: 20_000, ..exchanges(1) };
    let door = client.ask(open).unwrap().datagrams.unwrap();
    client.begin();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect((server.address.ip(), door.port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut room = vec![0; 65_536];
    let first = Introduction { nonce: door.nonce, number: 0 };
    socket.send(&first.bytes()).unwrap();
    let came = socket.recv(&mut room).unwrap();
    assert_eq!(Introduction::read(&room[..came]), Some(first));
    for sequence in 0..50 {
        let request = asking(200, 8_192 + sequence as u32, sequence);
        let mut bytes = request.bytes().to_vec();
        bytes.resize(200, 0);
        socket.send(&bytes).unwrap();
        let came = socket.recv(&mut room).unwrap();
        let answer = Answer::read(room.first_chunk::<ANSWER_HEAD_BYTES>().unwrap(), 65_507).unwrap();
        assert_eq!((came, answer.sequence), (8_192 + sequence as usize, sequence));
    }
    // Of what is not as it should be, nothing comes back: too short, too long an answer, cut, of a number that is none.
    let lies = [vec![0; 3], asking(32, 20_001, 1).bytes().to_vec(), asking(33, 64, 1).bytes().to_vec(), vec![255; 32]];
    lies.iter().for_each(|lie| assert_eq!(socket.send(lie).unwrap(), lie.len()));
    until("all has come", || client.snapshot(1).strange_datagrams == 4);
    let seen = client.end();
    assert_eq!((seen.datagrams, seen.requests, seen.strange_datagrams), (50, 50, 4));
    // The port is closed with the test.
    let _ = socket.send(&first.bytes());
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(socket.recv(&mut room).is_err());
}

#[test]
fn one_test_is_served_at_a_time_and_the_next_when_it_has_ended() {
    let server = Serving::start();
    let (mut first, mut second) = (server.client(), server.client());
    first.ask(exchanges(1)).unwrap();
    let refused = second.ask(exchanges(1)).unwrap_err();
    assert!(refused.contains("a test of 127.0.0.1 goes on, since ") && refused.contains("wait"), "{refused}");
    first.end();
    assert_eq!(second.ask(exchanges(1)).unwrap().test, 2);
    second.end();
    // Several on one connection.
    assert_eq!(first.ask(exchanges(1)).unwrap().test, 3);
    first.end();
}

#[test]
fn limits_are_kept() {
    let server = Serving::with(|options| {
        options.max_connections = 2;
        options.max_bytes_per_s = Some(2_000_000);
        options.max_duration = Duration::from_secs(1);
    });
    let mut client = server.client();
    for (open, expected) in [
        (exchanges(3), "it asks for 3 connections, and this server takes 1 to 2"),
        (exchanges(0), "it asks for 0 connections"),
        (Open { max_answer_bytes: u32::MAX, ..exchanges(1) }, "messages of 4294967295 bytes are longer"),
        (Open { duration_ms: Some(1_001), ..exchanges(1) }, "it is to last longer than 1 s"),
    ] {
        let refused = client.ask(open).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
    let opened = client.ask(Open { duration_ms: Some(1_000), ..exchanges(2) }).unwrap();
    assert_eq!((opened.limits.bytes_per_s, opened.limits.duration_ms), (Some(2_000_000), 1_000));
    let begun = Instant::now();
    let mut down = client.flow(0, Carries::Down).unwrap();
    client.begin();
    let draining = std::thread::spawn(move || {
        let mut room = vec![0; 1 << 16];
        while down.read(&mut room).is_ok_and(|came| came > 0) {}
    });
    let (why, seen) = client.ended();
    let seconds = begun.elapsed().as_secs_f64();
    assert!(why.unwrap().contains("longer than 1 s, the server's --max-duration"));
    let sent = seen.end.sent_bytes.unwrap();
    // Some pieces may be on their way when time is up.
    assert!(sent as f64 <= 2_000_000.0 * seconds + 200_000.0, "{sent} bytes in {seconds} s");
    assert!(sent > 0);
    draining.join().unwrap();
    // The client is still there and may ask again.
    client.ask(exchanges(1)).unwrap();
    client.end();
}

#[test]
fn a_server_ends_after_one_test_or_when_idle_and_its_client_is_told_when_it_is_ended() {
    let server = Serving::with(|options| options.once = true);
    let mut client = server.client();
    client.ask(exchanges(1)).unwrap();
    client.end();
    server.ends();
    let server = Serving::with(|options| options.idle = Some(Duration::from_millis(50)));
    server.ends();
    let server = Serving::start();
    let mut client = server.client();
    client.ask(exchanges(1)).unwrap();
    let mut stream = client.flow(0, Carries::Exchanges).unwrap();
    client.begin();
    send(&mut stream, asking(64, 64, 1));
    receive(&mut stream);
    let waiting = std::thread::spawn(move || client.ended().0);
    drop(server);
    assert_eq!(waiting.join().unwrap().as_deref(), Some("the server was ended"));
}
