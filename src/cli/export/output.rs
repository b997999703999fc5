//! The files of an export: written under other names, and there all at once or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::exit::Failure;
use report::export::{Exported, Form, Known, Sink, TABLES, begin, is_ours, known};

/// A file that is in its place.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    /// The table.
    pub(super) table: &'static str,
    /// Its path.
    pub(super) file: PathBuf,
    /// Rows that it has.
    pub(super) rows: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// Files that are being written. What is not kept is removed.
pub(super) struct Output {
    files: Vec<Begun>,
}

struct Begun {
    table: &'static str,
    sink: Option<Box<dyn Sink>>,
    rows: u64,
    temporary: PathBuf,
    place: PathBuf,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // Of one that is in its place nothing is there any more.
        let _ = fs::remove_file(&self.temporary);
    }
}

impl Output {
    /// Begins a file of each table in `directory`, and says which runs the files there have. They bear the first number of which
    /// there is no complete set.
    pub(super) fn open(directory: &Path, form: Form, append: bool) -> Result<(Self, Vec<Known>), Failure> {
        fs::create_dir_all(directory).map_err(|error| cannot("make directory", directory, &error))?;
        let (last, sets) = sets(directory, form)?;
        if let Some(set) = sets.first().filter(|_| !append) {
            let failure = Failure::new(format_args!("`{}` is there already", set.display()));
            return Err(failure.with_hint("`--append` adds to it; or name another directory: `-o DIR`".to_owned()));
        }
        let mut runs = Vec::new();
        for set in &sets {
            let read = known(set, form).map_err(|error| {
                cannot("read", set, &error)
                    .with_hint("remove the files of this number, or name another directory".to_owned())
            })?;
            runs.extend(read);
        }
        let number = last + 1;
        let mut files = Vec::with_capacity(TABLES.len());
        for table in &TABLES {
            let place = directory.join(format!("{}-{number:04}.{}", table.name, form.ending()));
            // Without `runs` of the same number they were left by an export that was killed between two of its files.
            if place.symlink_metadata().is_ok() && !is_ours(&place, table, form) {
                let message = format_args!("`{}` is not overwritten: this program did not make it", place.display());
                return Err(Failure::new(message).with_hint("name another directory: `-o DIR`".to_owned()));
            }
            let temporary = directory.join(format!(".{}-{number:04}.{}.tmp", table.name, std::process::id()));
            let file = File::options().write(true).create_new(true).open(&temporary);
            let file = file.map_err(|error| cannot("write", &temporary, &error))?;
            let mut begun = Begun { table: table.name, sink: None, rows: 0, temporary, place };
            let sink = begin(table, form, BufWriter::new(file));
            begun.sink = Some(sink.map_err(|error| cannot("write", &begun.place, &error))?);
            files.push(begun);
        }
        Ok((Self { files }, runs))
    }

    /// Writes a run into all tables.
    pub(super) fn write(&mut self, exported: &Exported<'_>) -> Result<(), Failure> {
        for (table, begun) in TABLES.iter().zip(&mut self.files) {
            let Begun { sink: Some(sink), rows, place, .. } = begun else { continue };
            let mut row = |cells: &[_]| {
                *rows += 1;
                sink.row(cells)
            };
            let written = table.rows(exported, &mut row).and_then(|()| sink.end_of_run());
            written.map_err(|error| cannot("write", place, &error))?;
        }
        Ok(())
    }

    /// Puts all files in their places, that of `runs` last: as long as it is missing, the others of its number do not count.
    pub(super) fn keep(mut self) -> Result<Vec<Written>, Failure> {
        for begun in &mut self.files {
            let finished =
                begun.sink.take().map_or(Ok(()), Sink::finish).and_then(|()| File::open(&begun.temporary)?.sync_all());
            finished.map_err(|error| cannot("write", &begun.place, &error))?;
        }
        let mut written = Vec::new();
        for begun in &self.files {
            let size = fs::metadata(&begun.temporary).and_then(|status| {
                fs::rename(&begun.temporary, &begun.place)?;
                Ok(status.len())
            });
            let bytes = size.map_err(|error| cannot("write", &begun.place, &error))?;
            written.push(Written { table: begun.table, file: begun.place.clone(), rows: begun.rows, bytes });
        }
        Ok(written)
    }
}

/// The largest number of a file of `runs` there, and all of these files in the order of their numbers.
fn sets(directory: &Path, form: Form) -> Result<(u32, Vec<PathBuf>), Failure> {
    let number = |name: &str| -> Option<u32> {
        name.strip_prefix("runs-")?.strip_suffix(form.ending())?.strip_suffix('.')?.parse().ok()
    };
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| cannot("list", directory, &error))?;
    let mut sets: Vec<(u32, PathBuf)> =
        entries.iter().filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path()))).collect();
    sets.sort();
    Ok((sets.last().map_or(0, |(number, _)| *number), sets.into_iter().map(|(_, path)| path).collect()))
}

fn cannot(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format_args!("cannot {doing} `{}`: {error}", path.display()))
}
