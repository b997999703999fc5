//! What a target of ours says of the load that it holds, and why one cannot be used.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use model::units::Bytes;
use targets::durable::Shape;
use targets::{DatabaseError, TargetError};

/// Version of everything that is made on targets of ours.
pub(crate) const FORMAT: u32 = 1;

/// Whose the commits there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub(crate) format: u32,
    pub(crate) shape: Shape,
    /// Whether the directory was made with them; never of a device.
    pub(crate) made_directory: bool,
    /// The process of the load.
    pub(crate) process: u32,
}

impl Kept {
    pub(crate) fn new(shape: &Shape, made_directory: bool) -> Self {
        Self { format: FORMAT, shape: *shape, made_directory, process: std::process::id() }
    }
}

/// What is found where that should be.
pub(crate) enum Heading {
    Kept(Kept),
    /// Of another version, by the number of its form.
    OfVersion(u32),
    Damaged,
}

impl Heading {
    pub(crate) fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        match (serde_json::from_str::<Form>(text), serde_json::from_str(text)) {
            (Ok(Form { format }), _) if format != FORMAT => Self::OfVersion(format),
            (_, Ok(kept)) => Self::Kept(kept),
            _ => Self::Damaged,
        }
    }

    /// Who has locked what it heads.
    pub(crate) fn holder(&self) -> String {
        match self {
            Self::Kept(kept) => format!("process {}", kept.process),
            Self::OfVersion(_) | Self::Damaged => "another process".to_owned(),
        }
    }
}

/// A target of ours, as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// `dir` or `raw`.
    pub(crate) kind: &'static str,
    pub(crate) path: PathBuf,
}

impl Named {
    fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

/// Why a target of ours cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum Problem {
    #[error("`{}` holds an earlier load of commits, which may still have to be verified", at.shown())]
    #[diagnostic(help("once that is done: `plimsoll durable drop --target {}:{}`", at.kind, at.shown()))]
    Left { at: Named },
    #[error("`{}` is in use by {holder}", at.shown())]
    #[diagnostic(help("wait until it ends, or use another target: `--target {}:PATH`", at.kind))]
    InUse { at: Named, holder: String },
    #[error("`{}` holds a load of commits that is half removed", at.shown())]
    #[diagnostic(help("remove the rest: `plimsoll durable drop --target {}:{}`", at.kind, at.shown()))]
    HalfRemoved { at: Named },
    #[error("`{}` holds no load of commits", at.shown())]
    #[diagnostic(help(
        "name the target that `plimsoll durable run` was given; `plimsoll slob drop` removes data of the engine"
    ))]
    Nothing { at: Named },
    #[error("`{}` is on {on}, which keeps its data in memory: no commit outlasts a restart there", at.shown())]
    #[diagnostic(help("name one on the disk to be tested: `--target {}:PATH`", at.kind))]
    InMemory { at: Named, on: String },
    #[error("`{}` is on {on}, which does not support direct writes (O_DIRECT): {source}", at.shown())]
    #[diagnostic(help("name a directory on another file system, such as XFS or ext4, on the disk to be tested"))]
    NoDirect { at: Named, on: String, source: io::Error },
    #[error("`{}` is on {on}, whose files are on another machine: its power is not this one's", at.shown())]
    #[diagnostic(help("run it on the machine that has the disk"))]
    Remote { at: Named, on: String },
    #[error("`{}` is not a block device", at.shown())]
    #[diagnostic(help(
        "name a disk, a partition or a volume, such as `--target raw:/dev/sdb`; files are `dir:DIRECTORY`"
    ))]
    NoDevice { at: Named },
    #[error("`{}` holds a load of commits in format {format}, and this program knows {FORMAT}", at.shown())]
    #[diagnostic(help("verify it with the version of Plimsoll that made it"))]
    OtherVersion { at: Named, format: u32 },
    #[error("{needed} are needed in `{}`, and {available} are free", at.shown())]
    #[diagnostic(help("lower `--sessions` or `--blocks`, or use another target: `--target {}:PATH`", at.kind))]
    NoSpace { at: Named, needed: Bytes, available: Bytes },
}

impl DatabaseError for Problem {}

impl From<Problem> for TargetError {
    fn from(problem: Problem) -> Self {
        Self::Database(Box::new(problem))
    }
}
