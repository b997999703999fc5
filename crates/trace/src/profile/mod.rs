//! What a trace is like.
