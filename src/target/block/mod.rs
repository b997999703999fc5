//! Raw files and block devices as one volume.

mod error;
mod volume;

pub use error::BlockError;
pub use volume::{Segment, Segments, Volume, VolumeLayout};
