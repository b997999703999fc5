//! What every workload is made of: shapes, the streams that they open, and the operations drawn from those.

/// One unit that a workload asks a target for.
pub trait Operation: Copy + Send {
    /// The words for its kinds in tables and documents, by [`kind_index`](Self::kind_index).
    const KINDS: &'static [&'static str];

    /// The place of its kind in [`KINDS`](Self::KINDS).
    fn kind_index(&self) -> usize;
}

/// The facts that decide a workload's operations.
pub trait Shape: Sync {
    /// What is asked of the target.
    type Operation: Operation;
    /// Where operations are drawn from.
    type Stream: Stream<Operation = Self::Operation>;

    /// The stream that a session draws from. Sessions of one stream are numbered one after the other, and one thread
    /// drives them all.
    fn stream_of(&self, session: u32) -> u32;

    /// Opens a stream. The same seed and number give the same operations.
    fn stream(&self, seed: u64, stream: u32) -> Self::Stream;
}

/// The endless operations of one stream.
pub trait Stream {
    /// What is asked of the target.
    type Operation;

    /// The next operation.
    fn draw(&mut self) -> Drawn<Self::Operation>;
}

/// One operation to do, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn<O> {
    /// What to do.
    pub operation: O,
    /// Pause after the operation; 0 is none.
    pub think_ns: u64,
}
