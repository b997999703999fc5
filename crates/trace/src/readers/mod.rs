//! Traces of other programs.
