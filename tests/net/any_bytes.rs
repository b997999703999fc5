//! Any bytes as what the other end may send; `fuzz/` does the same for longer.

use plimsoll::targets::network::wire::{
    Answer, Challenge, Frames, FromClient, FromServer, HelloRead, Introduction, RequestHead,
};
use proptest::prelude::*;

/// Bytes that begin as something of ours does, more often than chance would have it.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let begin = prop_oneof![
        Just(Vec::new()),
        Just(b"PLIMNET1".to_vec()),
        Just(b"PLIMUDP1".to_vec()),
        Just(b"\x07\x00\x00\x00\"begin\"".to_vec()),
        Just(b"\x12\x00\x00\x00{\"snapshot\":12345}".to_vec()),
        Just(b"\x20\x00\x00\x00\x20\x00\x00\x00".to_vec()),
    ];
    (begin, prop::collection::vec(any::<u8>(), 0..96)).prop_map(|(begin, rest)| [begin, rest].concat())
}

fn head<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut head = [0; N];
    let length = bytes.len().min(N);
    head[..length].copy_from_slice(&bytes[..length]);
    head
}

fn messages<M: serde::de::DeserializeOwned>(bytes: &[u8], piece: usize) -> usize {
    let mut frames: Frames<M> = Frames::default();
    let mut count = 0;
    for piece in bytes.chunks(piece) {
        frames.take_in(piece);
        while let Ok(Some(_)) = frames.next_message() {
            count += 1;
        }
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_bytes_panic_or_are_believed_beyond_a_limit(bytes in nearly(), piece in 1..40_usize) {
        let _ = (Challenge::read(head(&bytes)).is_ok(), HelloRead::read(head(&bytes)).is_ok());
        if let Ok(request) = RequestHead::read(&head(&bytes), 1 << 20, 8 << 10) {
            prop_assert!((32..=1 << 20).contains(&request.request_bytes));
            prop_assert!((32..=8 << 10).contains(&request.answer_bytes));
            prop_assert_eq!(request.bytes(), head(&bytes));
        }
        if let Ok(answer) = Answer::read(&head(&bytes), 8 << 10) {
            prop_assert!((32..=8 << 10).contains(&answer.answer_bytes) && answer.durable_ns <= answer.server_ns);
        }
        if let Some(introduction) = Introduction::read(&bytes) {
            prop_assert_eq!(introduction.bytes().to_vec(), bytes.clone());
        }
        // However messages are cut in pieces, they are the same.
        prop_assert_eq!(messages::<FromClient>(&bytes, piece), messages::<FromClient>(&bytes, bytes.len().max(1)));
        let _ = messages::<FromServer>(&bytes, piece);
    }
}
