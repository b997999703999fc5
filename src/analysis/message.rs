//! What every finding can be asked for.

/// A finding in words.
pub trait Message {
    /// What was seen, in one or two sentences.
    fn sentence(&self) -> String;

    /// What the user can do about it.
    fn advice(&self) -> Option<String>;

    /// The steps that a doubt is about; `None` if it is about the whole run, or if it is no doubt.
    fn steps(&self) -> Option<&[String]> {
        None
    }
}
