//! The seam to the libraries that speak to Oracle: nothing outside this folder names one.
//!
//! A [`Driver`] is one connection, made by [`connect`]. Values go to it as [`ToDbValue`], rows come back as [`Row`], and what went
//! wrong as [`Error`], whichever library does it.

#[cfg(feature = "oci")]
mod cells;
mod error;
mod files;
#[cfg(feature = "oci")]
mod oci;
mod row;
mod seam;
mod thin;
mod value;

use model::config::oracle::OracleDriver;

pub(super) use error::Error;
pub(super) use row::Row;
pub(super) use seam::{Driver, Landed, Prepared, Settings};
pub(super) use value::{DB_TYPE_NUMBER, DB_TYPE_RAW, DB_TYPE_VARCHAR, ToDbValue, Value};

/// Stack of a session's thread: room for a driver's calls, the deepest of which is the login over TLS. What an installed client needs
/// is not known. Only what is used takes memory.
pub(super) const STACK_BYTES: usize = if cfg!(feature = "oci") { 2 << 20 } else { 512 << 10 };

/// Whether this program has the driver at all.
pub(super) fn is_built_in(driver: OracleDriver) -> bool {
    driver == OracleDriver::Thin || cfg!(feature = "oci")
}

/// Connects and logs in. May wait without end for a listener that is silent, and may panic: see [`given_up`].
///
/// # Errors
/// Why there is no connection.
pub(super) fn connect(settings: &Settings) -> Result<(Box<dyn Driver>, Landed), Error> {
    match settings.driver {
        #[cfg(feature = "oci")]
        OracleDriver::Oci => oci::connect(settings),
        _ => thin::connect(settings),
    }
}

/// What it means that a driver has panicked with these words while it connected.
pub(super) fn given_up(said: &str) -> Error {
    thin::given_up(said)
}
