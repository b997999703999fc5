//! How a finding that lives beside its rule is told.

/// One thing that the analysis has to say, with its words and its advice.
pub trait Told {
    /// The finding as one or two sentences.
    fn sentence(&self) -> String;

    /// What the user can do about it.
    fn advice(&self) -> Option<String>;

    /// Labels of the steps that it is about; `None` if it is about the whole run.
    fn steps(&self) -> Option<&[String]> {
        None
    }
}
