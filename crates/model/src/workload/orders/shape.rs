//! What each user does, one transaction after the other.

use super::{Mix, OrderTransaction, TransactionKind};
use crate::workload::mix::Split;
use crate::workload::rng::{Choice, Rng};
use crate::workload::shape::{Drawn, Shape, Stream};

/// How long somebody pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pauses {
    /// Not at all.
    #[default]
    None,
    /// Always as long.
    Fixed {
        /// How long, in nanoseconds.
        ns: u64,
    },
    /// Each length between two bounds equally likely.
    Uniform {
        /// The shortest, in nanoseconds.
        min_ns: u64,
        /// The longest, not below the shortest.
        max_ns: u64,
    },
    /// Exponentially distributed, as between the calls of independent people.
    Exponential {
        /// The mean, in nanoseconds.
        mean_ns: u64,
    },
}

impl Pauses {
    /// The next pause, in nanoseconds.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::None => 0,
            Self::Fixed { ns } => ns,
            Self::Uniform { min_ns, max_ns } => min_ns + rng.below(max_ns.saturating_sub(min_ns).saturating_add(1)),
            // A draw is below 1, so its distance from 1 is never 0.
            Self::Exponential { mean_ns } => (-(1.0 - rng.unit_f64()).ln() * mean_ns as f64) as u64,
        }
    }

    /// The pause at this place of its distribution, above 0 and below 1, in nanoseconds: as far as a server can draw it too.
    pub fn at(self, unit: f64) -> u64 {
        let PauseBounds { least_ns, most_ns, mean_ns } = self.bounds();
        (least_ns as f64 + (most_ns - least_ns) as f64 * unit - mean_ns as f64 * unit.ln()) as u64
    }

    /// The figures of which [`at`](Self::at) is made: two bounds, and a mean of what exceeds them.
    pub fn bounds(self) -> PauseBounds {
        let (least_ns, most_ns, mean_ns) = match self {
            Self::None => (0, 0, 0),
            Self::Fixed { ns } => (ns, ns, 0),
            Self::Uniform { min_ns, max_ns } => (min_ns, max_ns, 0),
            Self::Exponential { mean_ns } => (0, 0, mean_ns),
        };
        PauseBounds { least_ns, most_ns, mean_ns }
    }

    /// Whether there is ever a pause.
    pub fn is_none(self) -> bool {
        matches!(
            self,
            Self::None | Self::Fixed { ns: 0 } | Self::Uniform { max_ns: 0, .. } | Self::Exponential { mean_ns: 0 }
        )
    }
}

/// What a pause is drawn by, in nanoseconds: equally likely between two bounds, and exponential beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseBounds {
    /// The shortest where nothing is exponential.
    pub least_ns: u64,
    /// The longest where nothing is exponential.
    pub most_ns: u64,
    /// Mean of the exponential part.
    pub mean_ns: u64,
}

/// What users of order entry do: the facts that decide their transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrdersShape {
    /// How often each kind is drawn.
    pub mix: Mix,
    /// Pauses between two transactions of a user.
    pub between: Pauses,
}

/// The endless transactions of one user.
#[derive(Clone, Debug)]
pub struct OrdersSession {
    kinds: Split,
    seeds: Rng,
    between: Pauses,
    pauses: Rng,
}

impl Shape for OrdersShape {
    type Operation = OrderTransaction;
    type Stream = OrdersSession;

    /// Each user has a stream of its own.
    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> OrdersSession {
        OrdersSession {
            kinds: Split::new(self.mix.weights(), Choice::Transaction.rng(seed, stream)),
            seeds: Choice::TransactionSeed.rng(seed, stream),
            between: self.between,
            pauses: Choice::Think.rng(seed, stream),
        }
    }
}

impl Stream for OrdersSession {
    type Operation = OrderTransaction;

    fn draw(&mut self) -> Drawn<OrderTransaction> {
        let kind = TransactionKind::ALL[self.kinds.draw()];
        let operation = OrderTransaction { kind, seed: self.seeds.next_u64() };
        Drawn { operation, think_ns: self.between.draw(&mut self.pauses) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Preset;
    use super::*;
    use crate::workload::MinimalStandard;

    #[test]
    fn kinds_are_drawn_by_their_weights_and_the_same_for_the_same_seed() {
        let shape = OrdersShape { mix: Preset::V26.mix(), between: Pauses::None };
        let mut counts = [0_u32; TransactionKind::ALL.len()];
        let (mut stream, mut again) = (shape.stream(7, 3), shape.stream(7, 3));
        for _ in 0..179_000 {
            let drawn = stream.draw();
            assert_eq!(drawn, again.draw());
            counts[drawn.operation.kind.index()] += 1;
        }
        for kind in TransactionKind::ALL {
            let wanted = f64::from(shape.mix.weight(kind)) * 1_000.0;
            let drawn = f64::from(counts[kind.index()]);
            assert!((drawn - wanted).abs() < 5.0 * wanted.sqrt(), "{kind:?}: {drawn} of {wanted}");
        }
    }

    #[test]
    fn a_kind_of_weight_zero_is_never_drawn() {
        let shape = OrdersShape { mix: "WA=1,NCR=2".parse().unwrap(), between: Pauses::None };
        let mut stream = shape.stream(1, 0);
        for _ in 0..10_000 {
            let kind = stream.draw().operation.kind;
            assert!(matches!(kind, TransactionKind::CustomerRegistration | TransactionKind::WarehouseActivityQuery));
        }
    }

    #[test]
    fn pauses_have_the_mean_that_was_asked_for() {
        let mut rng = Rng::new(1, 2);
        let mut lengths = MinimalStandard::drawn(&mut rng);
        let mut at = |pauses: Pauses| (0..100_000).map(|_| pauses.at(lengths.unit_f64()) as f64).sum::<f64>() / 1e5;
        assert_eq!((at(Pauses::None), at(Pauses::Fixed { ns: 500 })), (0.0, 500.0));
        assert!((at(Pauses::Uniform { min_ns: 1_000, max_ns: 3_000 }) / 2_000.0 - 1.0).abs() < 0.01);
        assert!((at(Pauses::Exponential { mean_ns: 1_000_000 }) / 1e6 - 1.0).abs() < 0.02);
        let mut mean = |pauses: Pauses| (0..100_000).map(|_| pauses.draw(&mut rng) as f64).sum::<f64>() / 1e5;
        assert_eq!(mean(Pauses::Fixed { ns: 500 }), 500.0);
        assert!((mean(Pauses::Uniform { min_ns: 1_000, max_ns: 3_000 }) / 2_000.0 - 1.0).abs() < 0.01);
        assert!((mean(Pauses::Exponential { mean_ns: 1_000_000 }) / 1e6 - 1.0).abs() < 0.02);
    }
}
