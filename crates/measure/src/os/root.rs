//! Where the kernel's files are read from.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory that stands for `/` when `/proc`, `/sys` and `/etc` are read, so that a test can offer a tree of its
/// own. What a path leads to that cannot be read is `None`: a container may hide any of these files.
#[derive(Debug, Clone)]
pub struct Root {
    prefix: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// Takes `prefix` for `/`.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Where `absolute` really lies.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.prefix.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The whole file; bytes that are not UTF-8 are replaced, since a mount point may hold any.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        fs::read(self.path(absolute)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file without white space (or the NUL that device trees end with) around it; `None` if nothing is left.
    pub fn value(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let text = self.text(absolute)?;
        let value = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The file as a whole number.
    pub fn number<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Option<T> {
        self.value(absolute)?.parse().ok()
    }

    /// Whether the path leads to something.
    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        self.path(absolute).exists()
    }

    /// Names in a directory, sorted so that results do not depend on the order of the directory; empty if unreadable.
    pub fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(absolute)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The path without symbolic links, as seen from inside; `None` if it does not exist or a link leads outside.
    pub fn canonical(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        let real = self.path(absolute).canonicalize().ok()?;
        let prefix = self.prefix.canonicalize().ok()?;
        Some(Path::new("/").join(real.strip_prefix(prefix).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn reads_below_its_prefix_and_follows_links_inside_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        fs::create_dir_all(root.path("/sys/devices/disk")).unwrap();
        fs::write(root.path("/sys/devices/disk/size"), " 42\n").unwrap();
        fs::create_dir_all(root.path("/sys/block")).unwrap();
        symlink("../devices/disk", root.path("/sys/block/disk")).unwrap();

        assert_eq!(root.number("/sys/block/disk/size"), Some(42u64));
        assert_eq!(root.canonical("/sys/block/disk"), Some(PathBuf::from("/sys/devices/disk")));
        assert_eq!(root.names("/sys"), ["block", "devices"]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        fs::write(root.path("/blank"), " \n").unwrap();
        fs::write(root.path("/word"), "many\n").unwrap();

        assert_eq!(root.text("/missing"), None);
        assert_eq!(root.value("/blank"), None);
        assert_eq!(root.number::<u64>("/word"), None);
        assert_eq!(root.canonical("/missing"), None);
        assert!(root.names("/missing").is_empty());
    }
}
