//! Pure functions from a [`crate::record::Run`] to findings.
