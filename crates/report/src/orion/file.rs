//! New files, each written whole.

use model::record::Workload;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Why ORION's files could not be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OrionFilesError {
    /// A run of another workload.
    #[error("run `{id}` is of workload `{workload}`; ORION's files can only be made of ORION's walk")]
    #[diagnostic(help("other reports show every run"))]
    NotOrion { id: String, workload: Workload },
    /// A file is in the way.
    #[error("`{}` is there already", path.display())]
    #[diagnostic(help(
        "ORION names its files by the minute: move that one away, give another `-testname`, or start a minute later"
    ))]
    Exists { path: PathBuf },
    /// The file system refuses.
    #[error("cannot write `{}`: {reason}", path.display())]
    #[diagnostic(help("look at the directory's permissions and free space; the run itself is kept"))]
    Write { path: PathBuf, reason: io::Error },
}

/// Writes a file that is not there yet: under a name of its own first, so that nobody ever sees a part of it.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), OrionFilesError> {
    let failed = |reason: io::Error| match reason.kind() {
        ErrorKind::AlreadyExists => OrionFilesError::Exists { path: path.to_owned() },
        _ => OrionFilesError::Write { path: path.to_owned(), reason },
    };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let named = write_durably(&temporary, text).and_then(|()| give_name(&temporary, path));
    if let Err(reason) = named {
        let _ = fs::remove_file(&temporary);
        return Err(failed(reason));
    }
    Ok(())
}

fn write_durably(temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A rename would replace what another program has put there meanwhile; a link does not. Some file systems have no links.
fn give_name(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Ok(()) => fs::remove_file(temporary),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) if path.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(temporary, path),
    }
}
