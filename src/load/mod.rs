//! Doing it: pacing, sessions, the start barrier, stopping.
