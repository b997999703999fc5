//! What surrounds the program, as far as logging in to a server depends on it.

use std::path::{Path, PathBuf};

/// What surrounds the program.
pub struct Environment<'a> {
    /// The value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The name of the user who runs us.
    pub os_user: &'a dyn Fn() -> Option<String>,
}

impl Environment<'_> {
    /// That of this process.
    pub fn of_process() -> Self {
        Environment { variable: &|name| std::env::var(name).ok(), os_user: &|| whoami::username().ok() }
    }

    /// The value of a variable; an empty one counts as none, as for the servers' own clients.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// A file in the user's home directory.
    pub fn at_home(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new(&self.text("HOME")?).join(name))
    }
}
