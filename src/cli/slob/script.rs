//! `EXTERNAL_SCRIPT`: a program that is called before, after and at the end of a run.

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::database_load::Moment;
use crate::cli::exit::Failure;
use model::config::Origin;

/// What the script learns of a moment.
const fn word(moment: Moment) -> &'static str {
    match moment {
        Moment::Pre => "pre",
        Moment::Post => "post",
        Moment::End => "end",
    }
}

/// A program that can be called.
#[derive(Debug)]
pub(super) struct Script {
    path: PathBuf,
}

impl Script {
    /// Looks whether it can be called, before anything else starts.
    pub(super) fn check(path: &Path, origin: &Origin) -> Result<Self, Failure> {
        let refuse = |why: &str, hint: &str| {
            let failure = Failure::new(format_args!("`EXTERNAL_SCRIPT={}` ({origin}) {why}", path.display()));
            Err(failure.with_hint(hint.to_owned()))
        };
        let path_to_run = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&path_to_run) {
            Err(error) => refuse(&format!("cannot be called: {error}"), "check the path; it is not searched in PATH"),
            Ok(found) if !found.is_file() => refuse("is not a file", "name a program or a script"),
            Ok(found) if found.permissions().mode() & 0o111 == 0 => {
                refuse("is not executable", &format!("`chmod +x {}`", path.display()))
            }
            Ok(_) => Ok(Self { path: path_to_run }),
        }
    }

    /// Calls it and waits for its end. What it prints goes to standard error: standard output is for data. If it fails, the
    /// answer says how.
    pub(super) fn call(&self, moment: Moment) -> Result<(), String> {
        let word = word(moment);
        let output = std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        let status = Command::new(&self.path).arg(word).stdin(Stdio::null()).stdout(output).status();
        let problem = |how: String| format!("EXTERNAL_SCRIPT `{}` {word} {how}", self.path.display());
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(problem(format!("failed: {status}"))),
            Err(error) => Err(problem(format!("cannot be called: {error}"))),
        }
    }
}
