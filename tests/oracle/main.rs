//! Oracle without an Oracle: the driver against a responder of our own and against bytes that real servers have sent, and the whole
//! program against a small database behind that responder.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod awr;
mod cluster;
mod doctor;
mod driver;
mod faults;
mod files;
mod first_contact;
mod fitness;
mod interrupt;
mod model;
mod orders;
mod outstanding;
#[path = "../cli/place.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod place;
mod real;
mod recordings;
mod responder;
use test_support::skip;
mod tcps;
mod whole;
