//! Calls that block in version 4.1: who this client is to a server, the sessions that it has there, and what it has open. After a restart of
//! the server all three are made anew, under the same name.
//!
//! A call in a session is done at most once, however often it is sent: so it is sent again by another connection where one breaks.

mod calls;
mod establish;
mod files;
mod open;

pub use calls::{Client, MAX_HEAD_BYTES, MAX_SESSIONS, Session};
pub use open::Open;
