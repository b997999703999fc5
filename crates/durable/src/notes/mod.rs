//! Notes of a run: what a witness writes, and what `verify` reads.
//!
//! Lines of text. The first names the form, the second begins with `open` and holds [`Opened`] in JSON. Then there is a line for each
//! acknowledged commit: session, number of the commit, microseconds since the opening on the witness's monotonic clock, and a link of the
//! session's chain. The last line begins with `close` and holds [`Closing`], and a digest of all chains.
//!
//! A link depends on everything that was noted of its session before, and on the opening. So a note that is missing, changed or moved
//! shows. The chain has no key: it shows what was lost or damaged, and no intent.
//!
//! [`Opened`]: crate::opening::Opened
//! [`Closing`]: crate::opening::Closing

mod reader;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use crc_fast::CrcAlgorithm;

use model::workload::mix64;

pub use reader::{Noted, NotesError, SessionNotes, read};
pub use writer::{Refused, Writer};

/// The first line.
const HEADING: &str = "plimsoll durable notes 1";
/// Begins the second line.
const OPEN: &str = "open ";
/// Begins the last line.
const CLOSE: &str = "close ";

/// Longest line of notes or of a load, its end included.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// The beginnings of all chains.
fn chains(opening: &str, sessions: u32) -> Vec<u64> {
    let of_opening = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, opening.as_bytes());
    (0..u64::from(sessions)).map(|session| mix64(of_opening ^ mix64(session + 1))).collect()
}

/// The next link of a chain.
fn link(chain: u64, seq: u64, at_us: u64) -> u64 {
    mix64(chain ^ mix64(seq ^ mix64(at_us)))
}

/// What the last line says of all chains.
fn digest(chains: &[u64], closing: &str) -> u64 {
    let of_closing = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, closing.as_bytes());
    chains.iter().fold(of_closing, |digest, chain| mix64(digest ^ chain))
}
