//! Replies with damage, as the fuzz target `nfs` reads them: a short walk of every day.

use super::fuzz_entry;

/// Numbers that mean something in replies: results, statuses, operations, lengths, bit maps.
const WORDS: [u32; 24] = [
    0,
    1,
    2,
    3,
    4,
    5,
    9,
    10,
    16,
    18,
    22,
    24,
    25,
    38,
    43,
    44,
    53,
    64,
    70,
    0x8000_0010,
    0x8000_0064,
    10008,
    10052,
    u32::MAX,
];
const ROUNDS: u64 = 20_000;

/// A generator of numbers that is the same every time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 7
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A choice and a reply that is as it should be.
fn valid() -> Vec<(u8, Vec<u8>)> {
    let head = [7, 1, 0, 0, 0, 0];
    let sequence = [53, 0, 0, 0, 0, 0, 1, 0, 63, 63, 0, 22, 0];
    let in_session = |rest: &[u32]| [&[0, 0, 3][..], &sequence, rest].concat();
    let record = |reply: Vec<u32>| {
        let reply = [&head[..], &reply].concat();
        words(&[&[(1 << 31) | (reply.len() as u32 * 4)][..], &reply].concat())
    };
    let attributes = [9, 0, 2, 1 << 1 | 1 << 4 | 1 << 8 | 1 << 20, 0, 36, 1, 0, 8192, 0, 5, 0, 6, 0, 77];
    let opened = [18, 0, 1, 4, 4, 4, 1, 0, 1, 0, 2, 0, 0, 0, 10, 0, 4, 8];
    vec![
        (0, record(vec![0, 0, 8, 1, 8, 9, 9])),
        (8, record(in_session(&[25, 0, 1, 8, 9, 9]))),
        (1, words(&[0, 0, 0, 100, 0, 0, 4711])),
        (9, words(&in_session(&[38, 0, 100, 0, 0, 4711]))),
        (9, words(&in_session(&[5, 0, 0, 4711]))),
        (10, words(&in_session(&attributes))),
        (10, words(&in_session(&[&opened[..], &attributes].concat()))),
        (12, words(&[0, 0, 1, 43, 0, 7, 7, 7, 7, 1, 0, 0, 9000, 9000, 900, 8, 64, 0])),
        (12, words(&[0, 0, 1, 42, 0, 0, 11, 1, 0, 0])),
    ]
}

#[test]
fn replies_with_any_damage_are_read_or_refused() {
    let (valid, mut numbers) = (valid(), Numbers(11));
    let (mut good, mut refused) = (0_u64, 0_u64);
    for (choice, reply) in &valid {
        assert!(fuzz_entry::read(&[&[*choice][..], reply].concat()), "{choice}: {reply:?}");
    }
    let mut count = |bytes: &[u8]| if fuzz_entry::read(bytes) { good += 1 } else { refused += 1 };
    for _ in 0..ROUNDS {
        // Damage to what is valid: some bytes or words, perhaps the end.
        for _ in 0..3 {
            let (choice, mut reply) = valid[numbers.below(valid.len())].clone();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(reply.len());
                match numbers.below(3) {
                    0 => reply[at] = numbers.next() as u8,
                    1 => reply.truncate(at.max(1)),
                    _ => {
                        let word = WORDS[numbers.below(WORDS.len())].to_be_bytes();
                        let at = at / 4 * 4;
                        let end = (at + 4).min(reply.len());
                        reply[at..end].copy_from_slice(&word[..end - at]);
                    }
                }
            }
            reply.insert(0, choice | (numbers.below(16) as u8) << 4);
            count(&reply);
        }
        // Words that mean something, in any order, and any bytes.
        let length = numbers.below(40);
        let mut bytes = vec![numbers.next() as u8];
        bytes.extend((0..length).flat_map(|_| WORDS[numbers.below(WORDS.len())].to_be_bytes()));
        count(&bytes);
        let bytes: Vec<u8> = (0..numbers.below(120)).map(|_| numbers.next() as u8).collect();
        count(&bytes);
    }
    assert!(good > ROUNDS / 10 && refused > ROUNDS, "{good} were read and {refused} refused");
}
