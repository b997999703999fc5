//! Nothing is written where nobody allowed it: strangers' links, files and typing errors do not make the program, as root or as an ordinary
//! user, change what is not its own.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod known_names;
mod machine;
mod random;
mod world;
