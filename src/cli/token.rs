//! The token of a server or a meeting point, as both ends are given it: never on the command line, where everybody on the machine can read it.

use std::path::Path;

use super::exit::Failure;
use model::config::{Secret, SecretFile, SecretFileProblem};
use targets::network::wire::{Token, WireError};

/// What a token is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenOf {
    /// `plimsoll net`.
    Net,
    /// The parts of a fleet.
    Fleet,
    /// The witness of commits, and its load.
    Witness,
    /// Marks of a failure.
    Marks,
}

impl TokenOf {
    /// The variable that holds it.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Net => "PLIMSOLL_NET_TOKEN",
            Self::Fleet => "PLIMSOLL_MEET_TOKEN",
            Self::Witness => "PLIMSOLL_WITNESS_TOKEN",
            Self::Marks => "PLIMSOLL_MARKS_TOKEN",
        }
    }

    fn what_a_file_holds(self) -> &'static str {
        match self {
            Self::Net => "it holds the token that `plimsoll net serve` shows or was given, and nothing else",
            Self::Fleet => "it holds the token that all parts are given, and nothing else",
            Self::Witness => "it holds the token that the witness shows or was given, and nothing else",
            Self::Marks => "it holds the token that marks are sent with, and nothing else",
        }
    }
}

/// The token in `file`, which only its owner may read, or else in the environment; none where neither has one.
pub(super) fn given(of: TokenOf, file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let secret = match file {
        Some(path) => SecretFile::secret_text(path).map_err(|problem| {
            let hint = match problem {
                SecretFileProblem::Open => format!("`chmod 600 {}`", path.display()),
                _ => of.what_a_file_holds().to_owned(),
            };
            Failure::new(format_args!("cannot use the token file `{}`: {problem}", path.display())).with_hint(hint)
        })?,
        None => Secret::new(std::env::var(of.variable()).unwrap_or_default()),
    };
    let text = secret.expose();
    if text.trim().is_empty() {
        // A file that was named and is empty does not ask to go without.
        return match file {
            Some(path) => Err(Failure::new(format_args!("the token file `{}` is empty", path.display()))),
            None => Ok(None),
        };
    }
    Token::new(text).map(Some).map_err(|error| of_wire(&error))
}

/// Where one that nobody gave is to be made.
pub(super) fn made() -> Result<Token, Failure> {
    Token::random().map_err(|error| of_wire(&error))
}

fn of_wire(error: &WireError) -> Failure {
    Failure::new(error).with_hint(error.hint())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_file_that_others_may_read_is_refused_with_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "a token of tests\n").unwrap();
        for of in [TokenOf::Net, TokenOf::Fleet, TokenOf::Witness, TokenOf::Marks] {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(given(of, Some(&file)).unwrap().unwrap().expose(), "a token of tests");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            let Err(Failure::Reported(reported)) = given(of, Some(&file)) else { panic!("it was used") };
            assert!(reported.message.contains("group or others may read it"), "{}", reported.message);
            assert_eq!(reported.hint, Some(format!("`chmod 600 {}`", file.display())));
        }
    }
}
