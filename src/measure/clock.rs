//! The one clock of a process.

use std::time::Instant;

/// Monotonic time in nanoseconds since the clock was made. Copies tell the same time. One reading costs about 25 ns.
///
/// The kernel's clock is read rather than the processor's counter: a calibration that drifts is a wrong number, and at
/// two readings for each physical read the difference is 0.2 % of a core at 60,000 reads/s.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}
