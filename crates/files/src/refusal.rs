//! Why something is not touched.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What a name stands for, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file with data.
    Plain,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A disk.
    BlockDevice,
    /// A terminal, `/dev/null` and their like.
    CharacterDevice,
    /// A pipe with a name.
    Pipe,
    /// A socket with a name.
    Socket,
    /// The kernel knows more kinds than this program.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::BlockDevice => "a block device",
            Self::CharacterDevice => "a character device",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Other => "neither a file nor a device",
        })
    }
}

/// Why something is not touched. It travels inside an [`io::Error`], so that callers report it as they report the system's errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A file of ours is always plain.
    #[error("it is {0}, not a plain file")]
    NotPlain(Kind),
    /// Writing to it would write to a file of another name, too.
    #[error("it has more than one name (hard links), so what is written to it changes another file, too")]
    ManyNames,
    /// Somebody else can change what it is.
    #[error("it belongs to user {owner}, and only files of user {ours} or of root are written to here")]
    Stranger {
        /// Whose it is.
        owner: u32,
        /// Who asks.
        ours: u32,
    },
    /// It lies on another file system than its directory.
    #[error("it lies on another file system than its directory")]
    OtherFileSystem,
    /// Root would work where others choose what names mean.
    #[error("other users may change its files ({0}), so root does not write there")]
    OpenToOthers(String),
    /// Nothing is made among the kernel's own files.
    #[error("nothing is made below `{0}`: a device or a directory that is not there is not made up")]
    KernelsOwn(&'static str),
    /// The same where the kernel's file systems are mounted elsewhere.
    #[error("nothing is made on a file system that the kernel makes up")]
    MadeUp,
    /// A result is written to files, pipes and character devices only.
    #[error("it is {0}, and results are written to files, pipes and character devices only")]
    NoPlaceForResults(Kind),
    /// A link that somebody else made leads where he wants.
    #[error("`{}` is a symbolic link of user {owner}, who may have it lead anywhere", link.display())]
    LinkOfOthers {
        /// The link.
        link: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// What is in the way of a new document until it is whole.
    #[error("`{name}` beside it is in the way: {why}")]
    InTheWay {
        /// Its name in the same directory.
        name: String,
        /// What is refused about it.
        why: Box<Refusal>,
    },
    /// What is to be removed as a tree is no directory.
    #[error("it is {0}, and a directory that was made here is expected")]
    NoDirectory(Kind),
}

impl Refusal {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotPlain(_) | Self::NoDirectory(_) => {
                "find out who made it, then remove it or name another directory"
            }
            Self::InTheWay { why, .. } => why.hint(),
            Self::ManyNames => "remove the other name, or copy the data set to another directory",
            Self::Stranger { .. } => {
                "run as that user, or give the files to the user who runs this (`chown`), if you trust what is in them"
            }
            Self::OtherFileSystem => {
                "name the place itself: `--data-dest`, `--redo-dest`; nothing may be mounted over single files"
            }
            Self::OpenToOthers(_) => {
                "run as the directory's owner, or make it root's and closed to others: `chown root DIR; chmod go-w DIR`"
            }
            Self::KernelsOwn(_) | Self::MadeUp => {
                "look whether the name is right: `lsblk` lists devices; for files name a directory on a disk"
            }
            Self::NoPlaceForResults(_) => "name a file: `-o FILE`",
            Self::LinkOfOthers { .. } => "name the file itself, not the link",
        }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(io::ErrorKind::InvalidInput, refusal)
    }
}

/// What to do about an error, where it was a refusal of ours.
pub fn hint(error: &io::Error) -> Option<&'static str> {
    refusal(error).map(Refusal::hint)
}

/// The refusal that an error is, if it is one.
pub fn refusal(error: &io::Error) -> Option<&Refusal> {
    error.get_ref()?.downcast_ref()
}
