//! Why a cluster cannot be had, in words that several places need.

use std::path::Path;

use super::super::error::PostgresError;

/// What to do about what a server or initdb said when it failed.
pub(super) fn program_hint(said: &str) -> Option<String> {
    let reported = match said {
        _ if said.contains("No space left on device") => "free some space, or use a directory on another file system",
        _ if said.contains("shared memory") || said.contains("Cannot allocate memory") => {
            "lower `--db-cache`: the machine has no room for shared buffers of this size"
        }
        _ if said.contains("Permission denied") => {
            "let the server's user read and write there, or use another directory"
        }
        _ => return None,
    };
    Some(reported.to_owned())
}

/// Nothing is there.
pub(super) fn no_cluster(directory: &Path) -> PostgresError {
    let shown = directory.display();
    PostgresError::Unfit {
        what: format!("there is no private cluster in `{shown}`"),
        hint: Some(format!("make one, with data: `plimsoll slob setup -s 1 SCALE=1G --target pg:{shown}`")),
    }
}

/// A set-up was begun and never finished.
pub(super) fn unfinished(directory: &Path) -> PostgresError {
    PostgresError::Unfit {
        what: format!("the private cluster in `{}` was never finished", directory.display()),
        hint: Some("run `plimsoll slob setup` again; it starts over".to_owned()),
    }
}

/// Another command works on it.
pub(super) fn in_use(directory: &Path, holder: &str) -> PostgresError {
    PostgresError::Unfit {
        what: format!("the private cluster in `{}` is in use by {holder}", directory.display()),
        hint: Some("wait until it ends, or use another directory: `--target pg:DIR`".to_owned()),
    }
}
