//! What a file asks for, as data.

use std::collections::BTreeMap;

use crate::units::Nanos;

/// Most times that a step is measured.
pub const MAX_REPEATS: u32 = 99;

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// What stands above the page, if it says.
    pub title: Option<String>,
    /// How long one sitting may take; no step is begun that would end later.
    pub budget: Option<Nanos>,
    /// Shell script before the first step.
    pub before: Option<String>,
    /// Shell script after the last one.
    pub after: Option<String>,
    /// Its steps in the order in which they stand, at least one.
    pub entries: Vec<Entry>,
}

/// One `[[step]]`: a load, and the values that it is measured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Line on which it begins, from 1.
    pub line: usize,
    /// What it is called: its name, or the words of its command.
    pub name: String,
    /// The words of its command, without the program's; names in braces still stand in them.
    pub words: Vec<String>,
    /// Values that belong together, by their names; one empty case where there is none.
    pub cases: Vec<BTreeMap<String, String>>,
    /// Values that each case is multiplied by: those of the file, then the step's own.
    pub axes: Vec<(String, Vec<String>)>,
    /// What surrounds each of its steps.
    pub around: Around,
}

/// What surrounds a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// How many times it is measured, from 1.
    pub repeats: u32,
    /// How long nothing is done before it, unless nothing was done before that.
    pub pause: Nanos,
    /// Whether the kernel is made to forget what it has cached.
    pub drop_caches: bool,
    /// Shell script before it.
    pub before: Option<String>,
    /// Shell script after it.
    pub after: Option<String>,
    /// Tags of its runs besides the values.
    pub tags: BTreeMap<String, String>,
}

/// Whether a value of this name is no tag of the runs: its name begins with `_`.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('_')
}
