//! Where load lands.

pub mod embedded;
pub mod io;
