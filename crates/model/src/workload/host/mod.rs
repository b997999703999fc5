//! Work for processors that is shaped as a database's: what a slice of each kind consists of, from a seed.
//!
//! A slice is a fixed amount of work of about a millisecond on a processor of today, the same on every machine. So the rate of slices
//! is the speed of the processor at that work, and nothing has to be calibrated.

mod kind;

pub use kind::HostKind;

use super::{Drawn, Operation, Rng, Shape, Stream};

/// One slice of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOperation {
    /// What is done.
    pub kind: HostKind,
    /// What decides its data: which blocks, which keys.
    pub seed: u64,
    /// How much of it, in units of the kind.
    pub units: u64,
}

impl Operation for HostOperation {
    const KINDS: &'static [&'static str] = &HostKind::NAMES;

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

/// The work of all sessions of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShape {
    /// The kinds of slices, which each session does in turn; at least one.
    pub kinds: Vec<HostKind>,
    /// Memory that each session's copies, triads and chases go through.
    pub size_bytes: u64,
}

/// The slices of one session.
#[derive(Clone, Debug)]
pub struct HostStream {
    shape: HostShape,
    next: usize,
    rng: Rng,
}

impl Shape for HostShape {
    type Operation = HostOperation;
    type Stream = HostStream;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> HostStream {
        HostStream { shape: self.clone(), next: 0, rng: Rng::new(seed, u64::from(stream)) }
    }
}

impl Stream for HostStream {
    type Operation = HostOperation;

    fn draw(&mut self) -> Drawn<HostOperation> {
        let kind = self.shape.kinds[self.next];
        self.next = (self.next + 1) % self.shape.kinds.len();
        let operation = HostOperation { kind, seed: self.rng.next_u64(), units: kind.units(self.shape.size_bytes) };
        Drawn { operation, think_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, stream: u32) -> Vec<HostOperation> {
        let shape = HostShape { kinds: vec![HostKind::Checksum, HostKind::Sort], size_bytes: 1 << 20 };
        let mut stream = shape.stream(seed, stream);
        (0..20).map(|_| stream.draw().operation).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_work_and_kinds_take_turns() {
        assert_eq!(drawn(7, 3), drawn(7, 3));
        assert!(drawn(7, 3).iter().zip(drawn(7, 4)).all(|(a, b)| a.seed != b.seed && a.kind == b.kind));
        let kinds: Vec<HostKind> = drawn(1, 0).iter().map(|slice| slice.kind).collect();
        assert_eq!(kinds[..4], [HostKind::Checksum, HostKind::Sort, HostKind::Checksum, HostKind::Sort]);
    }
}
