//! What is planted in simulated storage: it shows in the figures, and the analysis finds it. All in simulated time.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod found;
mod hangs;
mod making;
mod observer;
mod shown;
