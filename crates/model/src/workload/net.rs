//! What databases send over a network: bulk data, redo, blocks, rows and round trips.

use crate::workload::{Choice, Drawn, Operation, Rng, Shape, Stream};

/// The kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetKind {
    /// A chunk of a bulk flow, handed to the kernel of this host.
    Send,
    /// A chunk of a bulk flow that comes from the server, received.
    Receive,
    /// A redo write, acknowledged when it is received, or durable.
    Redo,
    /// A small message, answered by a block.
    Block,
    /// A small request, answered by rows.
    Rows,
    /// A few bytes there and back.
    Ping,
}

impl NetKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 6] = [Self::Send, Self::Receive, Self::Redo, Self::Block, Self::Rows, Self::Ping];

    /// The word for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Redo => "redo",
            Self::Block => "block",
            Self::Rows => "rows",
            Self::Ping => "ping",
        }
    }

    /// Whether it is a part of a flow in one direction, which nobody answers.
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::Send | Self::Receive)
    }
}

/// One unit that a load on a network asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetOperation {
    /// What is done.
    pub kind: NetKind,
    /// Bytes that this side sends, all headers of ours included; 0 for a chunk that is received.
    pub request_bytes: u32,
    /// Bytes that the other side sends for it, all headers of ours included; 0 for a chunk that is sent.
    pub answer_bytes: u32,
    /// Whether the other side writes what it was sent durably before it answers.
    pub is_durable: bool,
}

impl Operation for NetOperation {
    const KINDS: &'static [&'static str] = &[
        NetKind::Send.name(),
        NetKind::Receive.name(),
        NetKind::Redo.name(),
        NetKind::Block.name(),
        NetKind::Rows.name(),
        NetKind::Ping.name(),
    ];

    fn kind_index(&self) -> usize {
        self.kind as usize
    }
}

/// A size, and how many times in a hundred (or in whatever the weights add up to) it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedSize {
    /// The size.
    pub bytes: u32,
    /// Its weight; above 0.
    pub weight: u32,
}

/// Sizes, one for each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Drawn by their weights; at least one.
    Drawn(Vec<WeightedSize>),
}

impl Sizes {
    /// The largest that can come.
    pub fn largest(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }

    /// The smallest that can come.
    pub fn smallest(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// The mean of very many.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => f64::from(*bytes),
            Self::Drawn(sizes) => {
                let weights: u64 = sizes.iter().map(|size| u64::from(size.weight)).sum();
                let weighted: f64 = sizes.iter().map(|size| f64::from(size.bytes) * f64::from(size.weight)).sum();
                if weights == 0 { 0.0 } else { weighted / weights as f64 }
            }
        }
    }

    /// One of them.
    #[inline]
    fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => {
                let weights = sizes.iter().map(|size| u64::from(size.weight)).sum();
                let mut drawn = rng.below(weights);
                for size in sizes {
                    match drawn.checked_sub(u64::from(size.weight)) {
                        Some(rest) => drawn = rest,
                        None => return size.bytes,
                    }
                }
                0
            }
        }
    }
}

/// A load on a network: classes of connections that work side by side.
///
/// A session is one operation under way. Sessions are numbered class by class and, within their class, connection by connection.
/// Each draws from a stream of its own, so that the same seed gives it the same operations however connections are shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetShape {
    /// The classes, at least one of which has a connection.
    pub classes: Vec<NetClass>,
}

/// Connections that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetClass {
    /// What is done.
    pub kind: NetKind,
    /// Connections.
    pub connections: u32,
    /// Operations under way on each of them at most; 1 for bulk flows.
    pub outstanding: u32,
    /// Bytes that are sent in each operation, or received of a bulk flow from the server.
    pub sizes: Sizes,
    /// Bytes of an answer; without meaning for bulk flows.
    pub answer_bytes: u32,
    /// Whether the other side writes durably before it answers.
    pub is_durable: bool,
}

/// Where a session works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConnection {
    /// Number of its class.
    pub class: usize,
    /// Number of its connection, counted over all classes.
    pub connection: u32,
}

impl NetClass {
    /// Operations under way at most.
    pub fn sessions(&self) -> u32 {
        self.connections.saturating_mul(self.outstanding)
    }
}

impl NetShape {
    /// A load of one class.
    pub fn of(class: NetClass) -> Self {
        Self { classes: vec![class] }
    }

    /// The same so many times, each with connections of its own.
    #[must_use]
    pub fn times(&self, count: usize) -> Self {
        Self { classes: (0..count).flat_map(|_| self.classes.iter().cloned()).collect() }
    }

    /// Operations under way at most.
    pub fn sessions(&self) -> u32 {
        self.classes.iter().fold(0, |sum, class| sum.saturating_add(class.sessions()))
    }

    /// Connections of all classes.
    pub fn connections(&self) -> u32 {
        self.classes.iter().fold(0, |sum, class| sum.saturating_add(class.connections))
    }

    /// Where a session works; `None` where there is no such session.
    pub fn place_of(&self, session: u32) -> Option<SessionConnection> {
        let (mut left, mut connections) = (session, 0);
        for (number, class) in self.classes.iter().enumerate() {
            if left < class.sessions() {
                return Some(SessionConnection { class: number, connection: connections + left / class.outstanding });
            }
            left -= class.sessions();
            connections += class.connections;
        }
        None
    }

    /// Threads that carry the load, at most `most` of them where connections may share one. No connection is ever split between
    /// two threads.
    ///
    /// A bulk flow has a thread to itself, since it takes a processor, and a connection beside bulk flows too: it would wait for
    /// their chunks.
    pub fn lanes(&self, most: u32) -> u32 {
        let connections = self.connections().max(1);
        if self.classes.iter().any(|class| class.kind.is_bulk()) && connections <= MAX_FLOW_THREADS {
            return connections;
        }
        // Sessions are shared out evenly: with one for each connection any number does, with more a divisor of the connections.
        let is_alone = self.classes.iter().all(|class| class.outstanding == 1);
        let fits = |lanes: &u32| is_alone || (self.classes.len() == 1 && connections.is_multiple_of(*lanes));
        (1..=most.clamp(1, connections)).rev().find(fits).unwrap_or(1)
    }
}

/// Bulk flows that have a thread each; of more, several share one.
pub const MAX_FLOW_THREADS: u32 = 128;

/// # Panics
/// `stream` where the shape has no such session.
impl Shape for NetShape {
    type Operation = NetOperation;
    type Stream = NetStream;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> NetStream {
        let Some(SessionConnection { class, .. }) = self.place_of(stream) else {
            panic!("session {stream} of a load with {} sessions", self.sessions())
        };
        NetStream { class: self.classes[class].clone(), rng: Choice::MessageSize.rng(seed, stream) }
    }
}

/// The endless operations of one session.
#[derive(Clone, Debug)]
pub struct NetStream {
    class: NetClass,
    rng: Rng,
}

impl Stream for NetStream {
    type Operation = NetOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<NetOperation> {
        let NetClass { kind, answer_bytes, is_durable, .. } = self.class;
        let bytes = self.class.sizes.draw(&mut self.rng);
        let (request_bytes, answer_bytes) = match kind {
            NetKind::Send => (bytes, 0),
            NetKind::Receive => (0, bytes),
            NetKind::Redo | NetKind::Block | NetKind::Rows | NetKind::Ping => (bytes, answer_bytes),
        };
        Drawn { operation: NetOperation { kind, request_bytes, answer_bytes, is_durable }, think_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_number() {
        for (place, kind) in NetKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, NetOperation::KINDS[place]), (place, kind.name()));
        }
    }

    #[test]
    fn sizes_come_as_often_as_their_weights_say() {
        let weighted = |bytes, weight| WeightedSize { bytes, weight };
        let sizes = Sizes::Drawn(vec![weighted(4_096, 70), weighted(65_536, 25), weighted(1 << 20, 5)]);
        assert_eq!((sizes.smallest(), sizes.largest()), (4_096, 1 << 20));
        assert!((sizes.mean() - (0.7 * 4_096.0 + 0.25 * 65_536.0 + 0.05 * 1_048_576.0)).abs() < 1e-6);
        let mut rng = Rng::new(3, 0);
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            let drawn = sizes.draw(&mut rng);
            counts[[4_096, 65_536, 1 << 20].iter().position(|bytes| *bytes == drawn).unwrap()] += 1;
        }
        for (count, expected) in counts.into_iter().zip([70_000.0, 25_000.0, 5_000.0]) {
            // Five standard deviations of a binomial count.
            let spread = 5.0 * (expected * (1.0 - expected / 1e5_f64)).sqrt();
            assert!((f64::from(count) - expected).abs() < spread, "{counts:?}");
        }
    }

    #[test]
    fn one_size_draws_nothing() {
        let mut rng = Rng::new(1, 1);
        let untouched = rng.clone().next_u64();
        assert_eq!(Sizes::Fixed(8_192).draw(&mut rng), 8_192);
        assert_eq!(rng.next_u64(), untouched);
        assert!((Sizes::Fixed(8_192).mean() - 8_192.0).abs() < f64::EPSILON);
    }
}

#[cfg(test)]
mod shape_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::net::WeightedSize;

    fn class(kind: NetKind, connections: u32, outstanding: u32) -> NetClass {
        let sizes =
            Sizes::Drawn(vec![WeightedSize { bytes: 4_096, weight: 3 }, WeightedSize { bytes: 65_536, weight: 1 }]);
        NetClass { kind, connections, outstanding, sizes, answer_bytes: 32, is_durable: false }
    }

    #[test]
    fn the_same_seed_gives_a_session_the_same_operations_and_another_one_others() {
        let shape = NetShape::of(class(NetKind::Redo, 3, 4));
        let drawn = |shape: &NetShape, seed, session| -> Vec<u32> {
            let mut stream = shape.stream(seed, shape.stream_of(session));
            (0..50).map(|_| stream.draw().operation.request_bytes).collect()
        };
        assert_eq!(drawn(&shape, 7, 5), drawn(&shape, 7, 5));
        assert_ne!(drawn(&shape, 7, 5), drawn(&shape, 7, 6));
        assert_ne!(drawn(&shape, 7, 5), drawn(&shape, 8, 5));
        let wider = NetShape::of(class(NetKind::Redo, 6, 2));
        assert_eq!(drawn(&shape, 7, 5), drawn(&wider, 7, 5), "however connections are cut");
    }

    #[test]
    fn a_chunk_counts_on_the_side_that_sends_it() {
        let of = |kind| NetShape::of(class(kind, 1, 1)).stream(1, 0).draw().operation;
        assert_eq!((of(NetKind::Send).answer_bytes, of(NetKind::Receive).request_bytes), (0, 0));
        assert!(of(NetKind::Send).request_bytes >= 4_096 && of(NetKind::Receive).answer_bytes >= 4_096);
        assert_eq!(of(NetKind::Redo).answer_bytes, 32);
    }

    #[test]
    fn sessions_are_numbered_class_by_class_and_connection_by_connection() {
        let shape = NetShape { classes: vec![class(NetKind::Send, 2, 1), class(NetKind::Ping, 2, 3)] };
        let places: Vec<_> =
            (0..9).map(|session| shape.place_of(session).map(|it| (it.class, it.connection))).collect();
        let expected = [(0, 0), (0, 1), (1, 2), (1, 2), (1, 2), (1, 3), (1, 3), (1, 3)];
        assert_eq!(places[..8], expected.map(Some));
        assert_eq!((places[8], shape.sessions(), shape.connections()), (None, 8, 4));
    }

    #[test]
    fn a_bulk_flow_has_a_thread_to_itself_and_answers_share_few() {
        assert_eq!(NetShape::of(class(NetKind::Send, 8, 1)).lanes(2), 8);
        assert_eq!(NetShape::of(class(NetKind::Block, 64, 1)).lanes(2), 2);
        assert_eq!(NetShape::of(class(NetKind::Redo, 1, 64)).lanes(8), 1);
        let beside = NetShape { classes: vec![class(NetKind::Send, 8, 1), class(NetKind::Ping, 1, 1)] };
        assert_eq!(beside.lanes(2), 9);
    }

    proptest! {
        #[test]
        fn no_connection_is_split_between_threads(connections in 1..40_u32, outstanding in 1..10_u32, most in 1..20_u32) {
            let shape = NetShape::of(class(NetKind::Redo, connections, outstanding));
            let (lanes, sessions) = (shape.lanes(most), shape.sessions());
            prop_assert!((1..=most.min(connections)).contains(&lanes));
            for lane in 1..lanes {
                let first = u64::from(sessions) * u64::from(lane) / u64::from(lanes);
                prop_assert_eq!(first % u64::from(outstanding), 0);
            }
        }
    }
}
