//! Passwords and tokens, and the files that hold them.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fmt, str};

use crate::plain;
use crate::units::Bytes;
use files::Links;
use serde::{Serialize, Serializer};

/// What stands in the place of a secret wherever one would be printed or saved.
pub(super) const MASK: &str = "***";

/// A password. Printing, debugging and serializing it all give `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself: for the connection that needs it, never for a message or a file.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// The longest file of secrets that is read: some ten thousand passwords.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What is wrong with a file of secrets. It reads as the end of a sentence that names the file.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileProblem {
    /// The system does not open or read it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A pipe, a device or a directory. A pipe would have to be waited for.
    #[error("it is not a plain file")]
    NotAFile,
    /// Longer than any file of passwords.
    #[error("it is longer than {MAX_FILE_BYTES} bytes")]
    TooLong,
    /// What is in it is known to others.
    #[error("group or others may read it; `chmod 600` it")]
    Open,
    /// Not UTF-8.
    #[error("it is not text")]
    NotText,
}

impl SecretFileProblem {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

/// A file that may hold secrets, read whole. It shows nothing of what it holds.
pub struct SecretFile {
    bytes: Vec<u8>,
    mode: u32,
    is_of_root: bool,
}

impl SecretFile {
    /// Reads the file at `path`, which may hold things that are no secret as well. What a shell makes of `<(command)` is read too.
    ///
    /// # Errors
    /// When it cannot be read, is no plain file, or is longer than 1 MiB.
    pub fn read(path: &Path) -> Result<Self, SecretFileProblem> {
        if plain::is_own_stream(path) {
            let bytes = plain::read_named(path, Bytes(MAX_FILE_BYTES)).map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => SecretFileProblem::TooLong,
                _ => error.into(),
            })?;
            return Ok(Self { bytes, mode: 0o600, is_of_root: false });
        }
        let file = files::open_plain(path, Links::Followed).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => SecretFileProblem::NotAFile,
            _ => error.into(),
        })?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(SecretFileProblem::TooLong);
        }
        Ok(Self { bytes, mode: metadata.mode(), is_of_root: metadata.uid() == 0 })
    }

    /// Whether group or others may read or write it, so that no secret in it is one.
    pub fn is_open(&self) -> bool {
        self.mode & 0o077 != 0
    }

    /// What it holds, secrets as well.
    ///
    /// # Errors
    /// When group or others may read or write it.
    pub fn secrets(&self) -> Result<&[u8], SecretFileProblem> {
        if self.is_open() { Err(SecretFileProblem::Open) } else { Ok(&self.bytes) }
    }

    /// The private key that it holds. As for libpq, one of root's may be read by its group, such as that of users of a certificate.
    ///
    /// # Errors
    /// When others may read or write it.
    pub fn private_key(self) -> Result<Vec<u8>, SecretFileProblem> {
        let forbidden = if self.is_of_root { 0o027 } else { 0o077 };
        if self.mode & forbidden != 0 { Err(SecretFileProblem::Open) } else { Ok(self.bytes) }
    }

    /// What it holds as text, where what is no secret counts even if others may read it.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&str, SecretFileProblem> {
        str::from_utf8(&self.bytes).map_err(|_| SecretFileProblem::NotText)
    }

    /// The text of the file at `path`, all of which is secret.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`secrets`](Self::secrets), and when it is not UTF-8.
    pub fn secret_text(path: &Path) -> Result<Secret, SecretFileProblem> {
        let file = Self::read(path)?;
        file.secrets()?;
        Ok(Secret::new(file.text()?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn no_way_of_printing_shows_the_secret() {
        let secret = Secret::new("tiger");
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "*** *** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), r#""***""#);
        assert_eq!(secret.expose(), "tiger");
    }

    #[test]
    fn only_a_plain_file_that_nobody_else_may_read_has_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        assert!(SecretFile::secret_text(&path).unwrap_err().is_missing());
        fs::write(&path, "tiger\n").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let problem = SecretFile::secret_text(&path).unwrap_err();
            assert!(matches!(problem, SecretFileProblem::Open), "{mode:o}: {problem}");
            let key = SecretFile::read(&path).unwrap();
            let is_refused = mode != 0o640 || !key.is_of_root;
            assert_eq!(key.private_key().is_err(), is_refused, "{mode:o}");
            assert_eq!(SecretFile::read(&path).unwrap().text().unwrap(), "tiger\n", "what is no secret counts");
        }
        for mode in [0o600, 0o400, 0o700] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(SecretFile::secret_text(&path).unwrap().expose(), "tiger\n", "{mode:o}");
        }
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(SecretFile::secret_text(&path), Err(SecretFileProblem::NotText)));
        fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        assert!(SecretFile::secret_text(&path).is_ok());
        fs::write(&path, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(matches!(SecretFile::secret_text(&path), Err(SecretFileProblem::TooLong)));
        assert!(matches!(SecretFile::secret_text(folder.path()), Err(SecretFileProblem::NotAFile)));
        assert!(matches!(SecretFile::secret_text(Path::new("/dev/zero")), Err(SecretFileProblem::NotAFile)));
    }
}
