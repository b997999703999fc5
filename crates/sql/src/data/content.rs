//! Kinds of data that may be in a namespace, and what marks each as ours.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data that one command makes and removes, by their descriptor. Several kinds may be side by side in one namespace.
pub trait Content: Clone + Debug + Serialize + DeserializeOwned + 'static {
    /// What they are called, without an article.
    const NOUN: &'static str;
    /// The command that works on them.
    const COMMAND: &'static str;
    /// The table of the descriptor. While it is there, with a row, the rest is ours.
    const DATA_TABLE: &'static str;
    /// The table of what has been loaded, which is gone when all is.
    const LOAD_TABLE: &'static str;
    /// Its columns with their types, in words that every dialect knows; the first [`LOAD_KEY`](Self::LOAD_KEY) are its key.
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)];
    /// How many of them are the key.
    const LOAD_KEY: usize;
    /// Their tables, as a sentence lists them.
    const TABLES: &'static str;
    /// What is dropped with them, without an article.
    const DROPPED: &'static str;
    /// Version of everything that set-up makes.
    const FORMAT_VERSION: u32;

    /// All names that a set-up may use, as a regular expression of any server's.
    fn names() -> String;

    /// Bare names of what is dropped with it, besides its marks.
    fn objects(&self) -> Vec<String>;

    /// Whether a descriptor says what there can be.
    fn is_sensible(&self) -> bool;
}
