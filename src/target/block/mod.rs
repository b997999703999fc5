//! Raw files and block devices as one volume.

mod error;
mod generations;
pub mod signature;
pub mod stamp;
mod volume;

pub use error::BlockError;
pub use generations::{Floor, Generations, Verdict, base_at};
pub use volume::{Segment, Segments, Volume, VolumeLayout};
