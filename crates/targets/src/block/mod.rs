//! Raw files and block devices as one volume.

mod below;
mod checking;
mod error;
mod generations;
mod lane;
pub mod layout;
mod member;
mod memory;
mod place;
mod prepare;
mod raw;
mod read_back;
pub mod safety;
pub mod signature;
pub mod stamp;
mod usage;
mod virtual_place;
mod volume;

pub use below::devices_shared;
pub use error::BlockError;
pub use generations::{Floor, Generations, Verdict, base_at};
pub use member::Member;
pub use place::MemberLocation;
pub use prepare::{Preparation, PrepareOptions};
pub use raw::{Block, BlockOptions, Checking, Persistence};
pub use usage::Usage;
pub use virtual_place::VirtualPlace;
pub use volume::{Segment, Segments, Volume, VolumeLayout};
