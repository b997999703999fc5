//! The network between two hosts: a server that answers, a client that puts load on it, and what both ends say to each other.

mod client;
pub mod server;
pub mod wire;

pub use client::{ClientOptions, NetError, NetTarget, NetTargets, TestEnds, TestOptions};
