//! How a command ends: its exit code, and the words when it could not be done.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::plan::PlanError;
use model::config::ConfigError;
use model::record::store::StoreError;
use push::PushError;
use report::orion::OrionFilesError;
use serve::Problem;
use targets::{TargetError, io_hint};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// All that was asked was done.
    Done,
    /// It was done, but a limit was not met, or data are not what was written.
    NotMet,
    /// It could not be done.
    CouldNot,
    /// It was done, and does not say whether a limit was met.
    NoVerdict,
    /// A signal of this number ended it; what was measured is kept.
    Signal(i32),
}

impl Exit {
    /// The exit code.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotMet => 1,
            Self::CouldNot | Self::NoVerdict => 2,
            Self::Signal(number) => exit_code_of_signal(number),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// 128 and the signal's number, as shells count.
pub(super) fn exit_code_of_signal(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

/// Why a command ended early.
#[derive(Debug)]
pub(super) enum Failure {
    /// To be reported to the user.
    Reported(Reported),
    /// The reader of our output has gone, so nothing can be reported.
    PipeClosed,
}

/// A message for the user.
#[derive(Debug)]
pub(super) struct Reported {
    /// What, where and why.
    pub(super) message: String,
    /// What to do next.
    pub(super) hint: Option<String>,
    /// What the exit code shall say.
    pub(super) exit: Exit,
}

impl Failure {
    /// Something that could not be done.
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self::Reported(Reported { message: message.to_string(), hint: None, exit: Exit::CouldNot })
    }

    /// A file or directory with which something could not be done, such as `write`.
    pub(super) fn of_file(doing: &str, path: &Path, error: &io::Error) -> Self {
        let is_limit = error.kind() == io::ErrorKind::FileTooLarge;
        let hint = if is_limit { io_hint(error) } else { files::hint(error).map(str::to_owned) };
        Self::new(format_args!("cannot {doing} `{}`: {error}", path.display())).with_hint(hint)
    }

    /// The same with what to do about it.
    pub(super) fn with_hint(self, hint: impl Into<Option<String>>) -> Self {
        match self {
            Self::Reported(reported) => Self::Reported(Reported { hint: hint.into(), ..reported }),
            Self::PipeClosed => self,
        }
    }

    /// The same with what it is about before it.
    pub(super) fn named(self, what: &str) -> Self {
        match self {
            Self::Reported(reported) => {
                Self::Reported(Reported { message: format!("{what}: {}", reported.message), ..reported })
            }
            Self::PipeClosed => self,
        }
    }

    /// The same with another exit code.
    pub(super) fn with_exit(self, exit: Exit) -> Self {
        match self {
            Self::Reported(reported) => Self::Reported(Reported { exit, ..reported }),
            Self::PipeClosed => self,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(&error).with_hint(error.hint())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(&error).with_hint(error.hint())
    }
}

impl From<OrionFilesError> for Failure {
    fn from(error: OrionFilesError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(&error).with_hint(error.hint())
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::new(&problem).with_hint(problem.hint())
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        let exit = if error.is_data_fault() { Exit::NotMet } else { Exit::CouldNot };
        Self::new(&error).with_hint(error.hint()).with_exit(exit)
    }
}

/// Errors of standard output, the only stream whose errors are looked at.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::PipeClosed
        } else {
            Self::new(format_args!("cannot write to standard output: {error}"))
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}
