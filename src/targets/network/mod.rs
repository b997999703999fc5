//! The network between two hosts: a server that answers, and what both ends say to each other.

pub mod server;
pub mod wire;
