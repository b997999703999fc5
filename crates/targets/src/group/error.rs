//! Why a disk group cannot be made, opened or used.

use std::io;

use model::units::Bytes;

const OWN_MEMBERS: &str = "write the group's own members, in the order in which it was made";

/// Why a disk group cannot be made, opened or used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum GroupError {
    /// A request to a member failed.
    #[error("cannot {action} member `{member}`: {source}")]
    Member {
        /// What was tried, such as `read the header of`.
        action: &'static str,
        /// The member, as the user named it.
        member: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A member too small to hold an allocation unit.
    #[error("member `{member}` has {size}, and {needed} are needed at least")]
    #[diagnostic(help("use a larger file or device, or a smaller `au`"))]
    TooSmall {
        /// The member.
        member: String,
        /// Its size.
        size: Bytes,
        /// What is needed for our own pages and one allocation unit.
        needed: Bytes,
    },
    /// A path without a header of a member.
    #[error("`{member}` is no member of a disk group")]
    #[diagnostic(help("check the path; a new disk takes the place of a lost member with `rebuild`"))]
    NoMember {
        /// The path.
        member: String,
    },
    /// A member of another group.
    #[error("`{member}` belongs to {found}, not to disk group `{wanted}`")]
    #[diagnostic(help("{OWN_MEMBERS}"))]
    Foreign {
        /// The member.
        member: String,
        /// The group that it carries, in words.
        found: String,
        /// The group that was asked for.
        wanted: String,
    },
    /// Members in another order.
    #[error("`{member}` is member {found} of the group and stands in the place of member {wanted}")]
    #[diagnostic(help("{OWN_MEMBERS}"))]
    Swapped {
        /// The member.
        member: String,
        /// Its number, from 1.
        found: u32,
        /// The number of its place, from 1.
        wanted: u32,
    },
    /// The group was made in another way.
    #[error("disk group `{group}` has {there}, but {asked} was asked for")]
    #[diagnostic(help("write the group as it was made, or make another one of other members"))]
    Different {
        /// The group.
        group: String,
        /// How it is.
        there: String,
        /// How it should be.
        asked: String,
    },
    /// Nobody can tell whether those that are there are the newest.
    #[error(
        "disk group `{group}` lacks {missing}, and without it nobody can tell whether the others have the newest data"
    )]
    #[diagnostic(help(
        "bring the member back; with `force` the group is opened without it, and what only it has is lost"
    ))]
    Missing {
        /// The group.
        group: String,
        /// Members and why they are missing.
        missing: String,
    },
    /// Two halves of a group were each used without the other.
    #[error(
        "members of disk group `{group}` were changed apart from each other: `{one}` went on without `{other}`, and `{other}` without `{one}`"
    )]
    #[diagnostic(help(
        "leave out the one whose data are to be lost and open with `force`; later bring it back with `rebuild`"
    ))]
    Diverged {
        /// The group.
        group: String,
        /// One member.
        one: String,
        /// The other.
        other: String,
    },
    /// Our own pages make no sense.
    #[error("disk group `{group}` is damaged: {what}")]
    #[diagnostic(help("find out what wrote to its members; what is lost has to be laid out again"))]
    Damaged {
        /// The group, or the member where its name is not known.
        group: String,
        /// What is wrong.
        what: String,
    },
    /// No copy of some data is left.
    #[error("disk group `{group}` has lost data: {what}")]
    #[diagnostic(help("bring the failed members back, or lay the data out again"))]
    Lost {
        /// The group.
        group: String,
        /// What happened.
        what: String,
    },
    /// A member that nothing can stand for is gone.
    #[error("disk group `{group}` lost its member `{member}`: {why}")]
    #[diagnostic(help(
        "find out what removed or cut it; without copies, or open for reads only, a group does not go on without a \
         member"
    ))]
    Gone {
        /// The group.
        group: String,
        /// The member.
        member: String,
        /// What became of it.
        why: String,
    },
    /// No room for a file.
    #[error("disk group `{group}` has {free} free, and `{file}` needs {needed}")]
    #[diagnostic(help("ask for less, remove files, or make a group of larger members"))]
    Full {
        /// The group.
        group: String,
        /// The file.
        file: String,
        /// Its size in whole allocation units.
        needed: Bytes,
        /// What a file can have.
        free: Bytes,
    },
    /// A name that a file cannot have.
    #[error("`{file}` is not a name for a file of a disk group")]
    #[diagnostic(help("use letters, digits, `_`, `-` and `.`, at most 64"))]
    FileName {
        /// The name.
        file: String,
    },
    /// A file that is there already.
    #[error("disk group `{group}` has a file `{file}` already")]
    #[diagnostic(help("name another file, or remove this one first"))]
    Exists {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// A file that is not there.
    #[error("disk group `{group}` has no file `{file}`")]
    #[diagnostic(help("check the name; a new file needs a size"))]
    NoFile {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// A file that somebody has open.
    #[error("file `{file}` of disk group `{group}` is in use")]
    #[diagnostic(help("wait until its user ends"))]
    FileInUse {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// More than the metadata can hold.
    #[error("disk group `{group}` cannot hold another file: {why}")]
    #[diagnostic(help("remove files that are not needed"))]
    Directory {
        /// The group.
        group: String,
        /// What is exhausted.
        why: String,
    },
    /// Something is to be changed in a group that was opened for reads.
    #[error("disk group `{group}` is open for reads only")]
    #[diagnostic(help("open it for writing"))]
    ReadOnly {
        /// The group.
        group: String,
    },
    /// Copying was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl GroupError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}
