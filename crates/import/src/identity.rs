//! What a run keeps of a file that no reader of text takes.

use std::io::{self, Read};
use std::path::Path;

use model::plain::{self, Links};
use model::record::{ImportedFile, Timestamp};

/// What a run keeps of the file at `path`, and when it was changed last. The file is read once, in pieces.
///
/// # Errors
/// If it cannot be read.
pub fn identity(path: &Path, kind: &str) -> io::Result<(ImportedFile, Timestamp)> {
    let mut file = plain::open(path, Links::Followed)?;
    let changed = file.metadata()?.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    let (mut piece, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        digest.update(&piece[..read]);
    }
    let crc64 = format!("{:016x}", digest.finalize());
    let (path, kind) = (path.display().to_string(), kind.to_owned());
    Ok((ImportedFile { path, kind, bytes, crc64, part: 0, lines: None }, Timestamp(changed.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_identity_that_its_text_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evhist.csv");
        std::fs::write(&path, "EVENT,WAIT_TIME_MICRO,WAIT_COUNT\na,1,7\n").unwrap();
        let read = crate::read_file(&path).unwrap();
        let (file, changed) = identity(&path, &read.file.kind).unwrap();
        assert_eq!((file, changed), (ImportedFile { lines: None, ..read.file }, read.changed));
    }
}
