//! The one door to the file system: whatever the program makes, opens for writing, replaces, renames or removes goes through here, and
//! `clippy.toml` forbids the ways round it.
//!
//! Plimsoll runs as root in directories that others may write to. So what is opened by its path alone is never trusted: a name is looked up
//! in a directory that is held open, without following a link, and what is found there is judged before a byte is written.
//!
//! | what | by |
//! | --- | --- |
//! | a file that is not there yet | [`make_new`] |
//! | a file that we keep: data, redo, locks, markers | [`open_own`], [`open_or_make_own`] |
//! | a file or device that the caller has judged | [`open_judged`] |
//! | a document that is always whole | [`replace_own`] |
//! | what a user asked to have written somewhere | [`write_result`] |
//! | a lock that ends with its value | [`LockedFile`] |
//! | directories | [`make_directory`], [`make_directories`], [`judge_directory`] |
//! | names | [`rename`], [`rename_new`], [`remove`], [`remove_directory`], [`remove_tree`] |
//! | settings of the kernel | [`kernel`] |

pub mod kernel;
mod locked;
mod names;
mod own;
mod place;
mod refusal;
mod result;

pub use locked::LockedFile;
pub use names::{
    make_directories, make_directory, remove, remove_directory, remove_flat, remove_tree, rename, rename_new,
    sync_directory,
};
pub use own::{
    How, Links, claim_device, give, make_new, open_judged, open_or_make_own, open_own, open_plain, open_to_read,
    replace_own,
};
pub use place::{judge_directory, judge_new};
pub use refusal::{Kind, Refusal, hint, refusal};
pub use result::{judge_result, write_result};
