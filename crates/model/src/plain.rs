//! Plain files that somebody else may have put where they are: opened without waiting, and read up to a limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

pub use files::{Links, open_plain as open};

use crate::units::Bytes;

/// Reads the plain file at `path`, of `most` at the most.
///
/// # Errors
/// As [`open`]; of the kind [`ErrorKind::FileTooLarge`] if it is longer.
pub fn read(path: &Path, links: Links, most: Bytes) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let expected = file.metadata()?.len();
    if expected > most.0 {
        return Err(too_large(most));
    }
    limited(file, most, usize::try_from(expected).unwrap_or(0))
}

/// Reads the text at `path`, as [`read`] does.
///
/// # Errors
/// As [`read`]; of the kind [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, links: Links, most: Bytes) -> io::Result<String> {
    text(read(path, links, most)?)
}

/// Reads the text of a file that the user named, of `most` at the most. Standard input and what a shell makes of `<(command)` are
/// read too, though they are pipes.
///
/// # Errors
/// As [`read_text`].
pub fn read_named_text(path: &Path, most: Bytes) -> io::Result<String> {
    text(read_named(path, most)?)
}

/// The same, of any bytes.
///
/// # Errors
/// As [`read`].
pub fn read_named(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    if is_own_stream(path) { limited(File::open(path)?, most, 0) } else { read(path, Links::Followed, most) }
}

/// Whether a path names something that this process has open already.
pub(crate) fn is_own_stream(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn limited(file: File, most: Bytes, expected: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(expected);
    file.take(most.0.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.0 { Err(too_large(most)) } else { Ok(bytes) }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

fn too_large(most: Bytes) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("plain"), "text").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink(at("plain"), at("link")).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        let most = Bytes(4);
        assert_eq!(read_text(&at("plain"), Links::Refused, most).unwrap(), "text");
        assert_eq!(read_text(&at("link"), Links::Followed, most).unwrap(), "text");
        let refused = |path: &Path, links| {
            let error = read(path, links, most).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            error.to_string()
        };
        assert_eq!(refused(&at("link"), Links::Refused), "it is a symbolic link, not a plain file");
        for links in [Links::Followed, Links::Refused] {
            assert_eq!(refused(&at("pipe"), links), "it is a pipe, not a plain file");
            assert_eq!(refused(folder.path(), links), "it is a directory, not a plain file");
        }
        assert_eq!(refused(&at("endless"), Links::Followed), "it is a character device, not a plain file");
        assert!(read_named_text(&at("pipe"), most).is_err(), "a pipe that lies in a folder was named by nobody");
    }

    #[test]
    fn what_is_too_long_is_refused_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, Links::Refused, Bytes(5)).unwrap(), b"12345");
        let error = read(&path, Links::Refused, Bytes(4)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
        // Files of the kernel have no length before they are read.
        assert_eq!(read(Path::new("/proc/self/status"), Links::Refused, Bytes(4)).unwrap_err().kind(), error.kind());
    }
}
