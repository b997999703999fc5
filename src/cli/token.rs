//! The token of a server or a meeting point, as both ends are given it: never on the command line, where everybody on the machine can read it.

use std::path::Path;

use super::exit::Failure;
use targets::network::wire::{Token, WireError};

/// What a token is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenOf {
    /// `plimsoll net`.
    Net,
    /// The parts of a fleet.
    Fleet,
}

impl TokenOf {
    /// The variable that holds it.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Net => "PLIMSOLL_NET_TOKEN",
            Self::Fleet => "PLIMSOLL_MEET_TOKEN",
        }
    }

    fn what_a_file_holds(self) -> &'static str {
        match self {
            Self::Net => "it holds the token that `plimsoll net serve` shows or was given, and nothing else",
            Self::Fleet => "it holds the token that all parts are given, and nothing else",
        }
    }
}

/// A token file is no longer than this.
const MAX_FILE_BYTES: u64 = 4 << 10;

/// The token in `file`, or else in the environment; none where neither has one.
pub(super) fn given(of: TokenOf, file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let text = match file {
        Some(path) => {
            let cannot = |error: &dyn std::fmt::Display| {
                let failure = Failure::new(format_args!("cannot read the token file `{}`: {error}", path.display()));
                failure.with_hint(of.what_a_file_holds().to_owned())
            };
            match std::fs::metadata(path) {
                Ok(found) if found.len() > MAX_FILE_BYTES => return Err(cannot(&"it is too long for one")),
                _ => std::fs::read_to_string(path).map_err(|error| cannot(&error))?,
            }
        }
        None => std::env::var(of.variable()).unwrap_or_default(),
    };
    if text.trim().is_empty() {
        // A file that was named and is empty does not ask to go without.
        return match file {
            Some(path) => Err(Failure::new(format_args!("the token file `{}` is empty", path.display()))),
            None => Ok(None),
        };
    }
    Token::new(&text).map(Some).map_err(|error| of_wire(&error))
}

/// Where one that nobody gave is to be made.
pub(super) fn made() -> Result<Token, Failure> {
    Token::random().map_err(|error| of_wire(&error))
}

fn of_wire(error: &WireError) -> Failure {
    Failure::new(error).with_hint(error.hint())
}
