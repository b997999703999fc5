//! What the user asks of raw storage.
//!
//! Each option is a type that reads and prints its own text; [`IoOptions`] holds them together and finds what contradicts
//! each other. What needs the device, such as its sector size, is checked by whoever opens it.
//!
//! ```
//! use plimsoll_model::config::io::{DepthList, Pattern};
//! use plimsoll_model::workload::io::Distribution;
//!
//! let depths: DepthList = "1,2,4,…,256".parse()?;
//! assert_eq!(depths.0.len(), 9);
//! assert_eq!("hot:10%:90%".parse::<Distribution>()?, Distribution::Hot { space_pct: 10.0, access_pct: 90.0 });
//! assert!("randrw".parse::<Pattern>()?.is_mixed());
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod block_size;
mod connections;
mod depths;
mod distribution;
mod durable;
mod level;
mod options;
mod pattern;
mod problem;
mod rates;

pub use block_size::BlockSize;
pub use connections::{ConnectionList, Connections};
pub use depths::{DepthList, MAX_DEPTH};
pub use durable::Durable;
pub use level::{Chosen, IoLevel, VOLUMES_JOIN, letter, rate_text};
pub use options::{IoOptions, PageCache, Redundancy, Verify, Volumes};
pub use pattern::Pattern;
pub use problem::IoProblem;
pub use rates::{MAX_RATE, MIN_RATE, RateRange, read_rate};

crate::text::as_text!(
    BlockSize,
    ConnectionList,
    DepthList,
    Durable,
    Pattern,
    RateRange,
    crate::workload::io::Distribution
);

/// Asserts what a text is refused with.
#[cfg(test)]
fn assert_refused<T: std::str::FromStr<Err = super::ConfigError> + std::fmt::Debug>(
    text: &str,
    message: &str,
    hint: &str,
) {
    let error = text.parse::<T>().unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)), "{text}");
}
