//! Any bytes as what the other end of a network test may send: nothing panics, nothing is believed that is over a limit, and messages
//! that were read can be written and read again. The first byte chooses what is read, and how messages are cut in pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll::targets::network::wire::{
    Answer, Challenge, Frames, FromClient, FromServer, HelloRead, Introduction, MAX_FRAME_BYTES, RequestHead,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn messages<M: Serialize + DeserializeOwned>(bytes: &[u8], piece: usize) {
    let mut frames: Frames<M> = Frames::default();
    for piece in bytes.chunks(piece) {
        frames.take_in(piece);
        loop {
            match frames.next_message() {
                Ok(Some(message)) => {
                    let text = serde_json::to_string(&message).expect("a message can be written");
                    assert!(text.len() <= 8 * MAX_FRAME_BYTES, "a message became much longer");
                    let again: M = serde_json::from_str(&text).expect("what was written can be read");
                    assert_eq!(serde_json::to_string(&again).expect("a message can be written"), text);
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = (error.to_string(), error.hint());
                    return;
                }
            }
        }
    }
}

fn head<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut head = [0; N];
    let length = bytes.len().min(N);
    head[..length].copy_from_slice(&bytes[..length]);
    head
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let piece = usize::from(choice >> 3) + 1;
    match choice & 7 {
        0 => drop(Challenge::read(head(bytes))),
        1 => drop(HelloRead::read(head(bytes))),
        2 => {
            if let Ok(request) = RequestHead::read(&head(bytes), 1 << 20, 8 << 10) {
                assert!((32..=1 << 20).contains(&request.request_bytes) && (32..=8 << 10).contains(&request.answer_bytes));
                assert_eq!(request.bytes(), head(bytes));
            }
        }
        3 => {
            if let Ok(answer) = Answer::read(&head(bytes), 8 << 10) {
                assert!((32..=8 << 10).contains(&answer.answer_bytes) && answer.durable_ns <= answer.server_ns);
                assert_eq!(answer.bytes(), head(bytes));
            }
        }
        4 => {
            if let Some(introduction) = Introduction::read(bytes) {
                assert_eq!(introduction.bytes().as_slice(), bytes);
            }
        }
        5 | 6 => messages::<FromClient>(bytes, piece),
        _ => messages::<FromServer>(bytes, piece),
    }
});
