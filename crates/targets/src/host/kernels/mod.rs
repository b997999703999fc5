//! What each kind of slice does. Every kernel returns an answer that follows from its seed alone, so that it can be checked and is not
//! optimized away.

mod blocks;
mod join;
mod memory;
mod wake;

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use blocks::Blocks;
use join::Join;
use memory::{Chase, Streams};
pub(super) use wake::Partner;

use crate::embedded::CachedBlocks;
use model::workload::{HostKind, HostOperation, Rng};

/// What one thread works on. A part is made when a kind first needs it.
pub(super) struct Work {
    size_bytes: u64,
    cached: Option<Arc<CachedBlocks>>,
    blocks: Option<Blocks>,
    sort: Sort,
    join: Join,
    streams: Option<Streams>,
    chase: Option<Chase>,
    partner: Option<Partner>,
}

/// How a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this answer, which is right as far as the kernel itself can tell.
    Right(u64),
    /// With a wrong one.
    Wrong,
}

impl Work {
    /// Of a thread that goes through `size_bytes` of memory and reads blocks of `cached`.
    pub(super) fn new(size_bytes: u64, cached: Option<Arc<CachedBlocks>>) -> Self {
        Self {
            size_bytes,
            cached,
            blocks: None,
            sort: Sort::default(),
            join: Join::default(),
            streams: None,
            chase: None,
            partner: None,
        }
    }

    /// Makes what slices of `kind` need. Memory is touched here, by the thread that calls.
    ///
    /// # Errors
    /// When there is not so much memory, or no thread to wake.
    pub(super) fn make_ready(
        &mut self,
        kind: HostKind,
        partner: impl FnOnce() -> io::Result<Partner>,
    ) -> io::Result<()> {
        match kind {
            HostKind::Checksum | HostKind::Compare if self.blocks.is_none() => self.blocks = Some(Blocks::new()),
            HostKind::MemoryCopy | HostKind::MemoryTriad if self.streams.is_none() => {
                self.streams = Some(Streams::new(self.size_bytes)?);
            }
            HostKind::MemoryLatency if self.chase.is_none() => self.chase = Some(Chase::new(self.size_bytes)?),
            HostKind::Wake if self.partner.is_none() => self.partner = Some(partner()?),
            _ => {}
        }
        Ok(())
    }

    /// Does a slice whose kind was made ready. Sleeps are the lane's own affair.
    pub(super) fn run(&mut self, slice: &HostOperation) -> Ended {
        let HostOperation { kind, seed, units } = *slice;
        let mut rng = Rng::new(seed, 0);
        let answer = match kind {
            HostKind::LogicalRead => {
                let found = self.cached.as_ref().map(|cached| cached.read(&mut rng, units));
                found.filter(|found| *found == units)
            }
            HostKind::Checksum => self.blocks.as_ref().and_then(|blocks| blocks.check(seed, units)),
            HostKind::Compare => self.blocks.as_ref().and_then(|blocks| blocks.compare(seed, units)),
            HostKind::Sort => self.sort.run(&mut rng, units),
            HostKind::HashJoin => self.join.run(&mut rng, units),
            HostKind::MemoryCopy => self.streams.as_mut().map(|streams| streams.copy(units)),
            HostKind::MemoryTriad => self.streams.as_mut().map(|streams| streams.triad(units)),
            HostKind::MemoryLatency => self.chase.as_mut().map(|chase| chase.run(units)),
            HostKind::Wake => self.partner.as_ref().and_then(|partner| partner.round_trip().then_some(1)),
            HostKind::Timer => Some(0),
        };
        black_box(answer).map_or(Ended::Wrong, Ended::Right)
    }

    /// Processor time of the thread that is woken.
    pub(super) fn partner_cpu_ns(&self) -> u64 {
        self.partner.as_ref().map_or(0, Partner::cpu_ns)
    }
}

/// Sorting as a database does it for `ORDER BY` or a merge join: keys, each with the row that it belongs to, kept from slice to slice so that none allocates.
#[derive(Debug, Default)]
struct Sort(Vec<(u64, u32)>);

impl Sort {
    /// Draws `keys` keys and sorts them. The row of the middle one; `None` if they were not in order.
    fn run(&mut self, rng: &mut Rng, keys: u64) -> Option<u64> {
        self.0.clear();
        self.0.extend((0..keys as u32).map(|row| (rng.next_u64(), row)));
        self.0.sort_unstable();
        let sorted = self.0.is_sorted();
        let middle = self.0.get(self.0.len() / 2)?;
        sorted.then_some(u64::from(middle.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Bytes;

    fn answers(seed: u64) -> Vec<Ended> {
        let cached = Arc::new(CachedBlocks::new(Bytes::mib(1)).unwrap());
        let mut work = Work::new(1 << 20, Some(cached));
        let mut answers = Vec::new();
        for kind in HostKind::ALL {
            work.make_ready(kind, || Partner::start(None)).unwrap();
            for round in 0..2 {
                let units = kind.units(1 << 20).min(20_000);
                answers.push(work.run(&HostOperation { kind, seed: seed + round, units }));
            }
        }
        answers
    }

    #[test]
    fn the_same_seed_does_the_same_work_and_every_answer_is_right() {
        let first = answers(5);
        assert!(first.iter().all(|ended| matches!(ended, Ended::Right(_))), "{first:?}");
        assert_eq!(first, answers(5));
        assert_ne!(first, answers(6));
    }

    #[test]
    fn what_was_not_made_ready_is_no_work_done() {
        let slice = HostOperation { kind: HostKind::Checksum, seed: 1, units: 4 };
        assert_eq!(Work::new(1 << 20, None).run(&slice), Ended::Wrong);
    }

    #[test]
    fn the_middle_row_is_that_of_the_middle_key() {
        let mut rng = Rng::new(9, 0);
        let mut keys: Vec<(u64, u64)> = (0..1_001).map(|row| (rng.next_u64(), row)).collect();
        keys.sort();
        let mut sort = Sort::default();
        assert_eq!(sort.run(&mut Rng::new(9, 0), 1_001), Some(keys[500].1));
        assert_eq!(sort.0.len(), 1_001);
        assert_eq!(sort.run(&mut Rng::new(9, 0), 0), None);
    }
}
