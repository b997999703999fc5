//! The pages of a report for a directory of runs, on a small web server: a list, the page of each run, comparisons.
//!
//! Nothing can be changed through it: it only ever reads. It costs little, since the machine may be measuring at this very
//! moment: what was read is kept, few pages are made at once, and a page that follows a run asks less often the more it costs
//! to make.
//!
//! [`marks`] is another server, which takes the instants of a failure from who has its token.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod compare;
mod filter;
mod list;
pub mod marks;
mod problem;
mod query;
mod server;
mod site;
mod state;

pub use problem::Problem;
pub use server::{Ender, Listen, ListenError, Server};

#[cfg(test)]
mod tests;
