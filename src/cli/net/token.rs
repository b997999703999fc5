//! The token of a server, as both ends are given it: never on the command line, where everybody on the machine can read it.

use std::path::Path;

use crate::cli::exit::Failure;
use crate::targets::network::wire::{Token, WireError};

/// The variable that holds a token.
const VARIABLE: &str = "PLIMSOLL_NET_TOKEN";
/// A token file is no longer than this.
const MAX_FILE_BYTES: u64 = 4 << 10;

/// The token in `file`, or else in the environment; none where neither has one.
pub(super) fn given(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let text = match file {
        Some(path) => {
            let cannot = |error: &dyn std::fmt::Display| {
                let failure = Failure::new(format_args!("cannot read the token file `{}`: {error}", path.display()));
                failure.with_hint(
                    "it holds the token that `plimsoll net serve` shows or was given, and nothing else".to_owned(),
                )
            };
            match std::fs::metadata(path) {
                Ok(found) if found.len() > MAX_FILE_BYTES => return Err(cannot(&"it is too long for one")),
                _ => std::fs::read_to_string(path).map_err(|error| cannot(&error))?,
            }
        }
        None => std::env::var(VARIABLE).unwrap_or_default(),
    };
    if text.trim().is_empty() {
        // A file that was named and is empty is no wish to go without.
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
    Failure::new(error).with_hint(error.hint().map(str::to_owned))
}
