//! The seam to the libraries that speak to Oracle: nothing outside this folder names one.
//!
//! A [`Driver`] is one connection, made by [`connect`]. Values go to it as [`ToDbValue`], rows come back as [`Row`], and what went
//! wrong as [`Error`], whichever library does it.

mod error;
mod row;
mod seam;
mod thin;
mod value;

pub(super) use error::Error;
pub(super) use row::Row;
pub use seam::SessionId;
pub(super) use seam::{Driver, Landed, Prepared, Settings};
pub(super) use value::{DB_TYPE_NUMBER, DB_TYPE_RAW, DB_TYPE_VARCHAR, ToDbValue};

/// Connects and logs in. May wait without end for a listener that is silent, and may panic: see [`given_up`].
///
/// # Errors
/// Why there is no connection.
pub(super) fn connect(settings: &Settings) -> Result<(Box<dyn Driver>, Landed), Error> {
    thin::connect(settings)
}

/// What it means that a driver has panicked with these words while it connected.
pub(super) fn given_up(said: &str) -> Error {
    thin::given_up(said)
}
