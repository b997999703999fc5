//! What is wrong with an experiment's file.

/// What is wrong with an experiment's file, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ExperimentError {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}
