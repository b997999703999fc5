//! Raw files and block devices as one volume.

mod error;
pub mod signature;
mod volume;

pub use error::BlockError;
pub use volume::{Segment, Segments, Volume, VolumeLayout};
