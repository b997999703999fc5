//! Raw files and block devices as one volume.

mod checking;
mod error;
mod generations;
mod lane;
mod memory;
mod raw;
pub mod signature;
pub mod stamp;
mod volume;

pub use error::BlockError;
pub use generations::{Floor, Generations, Verdict, base_at};
pub use raw::{Block, BlockOptions, Checking, Member, Persistence};
pub use volume::{Segment, Segments, Volume, VolumeLayout};
