//! Where in a region requests go.

/// The largest exponent of a Zipf distribution that is distinguished from a still larger one. Long before it, every access
/// goes to one block.
pub const MAX_ZIPF_THETA: f64 = 100.0;

/// In which order a class of requests visits its region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Each request goes to a block drawn with replacement.
    Random(Distribution),
    /// Each stream goes from block to block and wraps at the end of the region. The streams of a class start at evenly
    /// spaced places.
    Sequential,
}

/// How often each block is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every block equally often.
    #[default]
    Uniform,
    /// The k-th most popular block in proportion to k to the power of −θ. Popular blocks lie scattered over the region.
    Zipf {
        /// θ, more than 0 and at most [`MAX_ZIPF_THETA`]; the larger, the more goes to few blocks.
        theta: f64,
    },
    /// Some blocks take most of the accesses, equally often among themselves; the others share the rest equally. Hot
    /// blocks lie scattered over the region.
    Hot {
        /// Hot blocks in each hundred, more than 0; at least one block is hot.
        space_pct: f64,
        /// Accesses to hot blocks in each hundred, from 0 to 100.
        access_pct: f64,
    },
}
