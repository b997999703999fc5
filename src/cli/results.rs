//! Files that a command writes: whole or not at all, and never over what somebody else made.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use super::exit::Failure;
use super::say;
use model::plain::{self, Links};

/// One of several files of comma-separated values: its name, and what writes it of a `T`.
pub(super) type Table<T> = (&'static str, fn(&mut dyn Write, &T) -> io::Result<()>);

/// Writes `tables` into `directory`, which is made if it is missing. Every one of them begins with `beginning`: a file of the same
/// name that does not was made by somebody else, and then nothing is written.
///
/// # Errors
/// If a file of somebody else is in the way, or the directory or a file cannot be made or written.
pub(super) fn write_tables<T>(directory: &Path, tables: &[Table<T>], beginning: &str, of: &T) -> Result<(), Failure> {
    let tables: Vec<_> = tables.iter().map(|(name, write)| (*name, |out: &mut dyn Write| write(out, of))).collect();
    write_all(directory, &tables, beginning, "name another directory: `--csv DIR`")?;
    say::line(format_args!("wrote {} files into `{}`", tables.len(), directory.display()));
    Ok(())
}

/// Whether a name means one file of comma-separated values, and not a directory of several.
pub(super) fn is_one_table(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) && !path.is_dir()
}

/// Writes one file of comma-separated values, which begins with `beginning` as [`write_tables`] has it.
///
/// # Errors
/// If a file of somebody else is in the way, or it cannot be written.
pub(super) fn write_table(
    path: &Path,
    beginning: &str,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    write_file(path, beginning, "name another file: `--csv FILE.csv`", write)
}

/// Writes one file, which begins with `beginning` as [`write_all`] has it, and says so; `hint` says what to do about a file of
/// somebody else.
///
/// # Errors
/// If a file of somebody else is in the way, or it cannot be written.
pub(super) fn write_file(
    path: &Path,
    beginning: &str,
    hint: &str,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let (directory, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    write_all(directory, &[(name, write)], beginning, hint)?;
    say::line(format_args!("wrote `{}`", path.display()));
    Ok(())
}

/// Writes files, each by its name, into `directory`, which is made if it is missing. Every one of them begins with `beginning`:
/// a file of the same name that does not was made by somebody else, and then nothing is written; `hint` says what to do then.
///
/// # Errors
/// If a file of somebody else is in the way, or the directory or a file cannot be made or written.
pub(super) fn write_all<N: AsRef<Path>, W: Fn(&mut dyn Write) -> io::Result<()>>(
    directory: &Path,
    files: &[(N, W)],
    beginning: &str,
    hint: &str,
) -> Result<(), Failure> {
    let cannot = |doing: &str, path: &Path, error: io::Error| Failure::of_file(doing, path, &error);
    files::make_directories(directory).map_err(|error| cannot("make directory", directory, error))?;
    for (name, _) in files {
        let path = directory.join(name);
        if is_foreign(&path, beginning) {
            let failure =
                Failure::new(format_args!("`{}` is not overwritten: this program did not make it", path.display()));
            return Err(failure.with_hint(hint.to_owned()));
        }
    }
    for (name, write) in files {
        let path = directory.join(name);
        files::write_result(&path, write).map_err(|error| cannot("write", &path, error))?;
    }
    Ok(())
}

/// Whether something is there that does not begin so. What cannot be read is taken for somebody else's.
fn is_foreign(path: &Path, beginning: &str) -> bool {
    let mut found = vec![0; beginning.len()];
    match plain::open(path, Links::Followed).and_then(|mut file| file.read_exact(&mut found)) {
        Ok(()) => found != beginning.as_bytes(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TABLES: [Table<u32>; 2] =
        [("a.csv", |out, of| writeln!(out, "kind,{of}")), ("b.csv", |out, of| writeln!(out, "kind,b{of}"))];

    #[test]
    fn a_pipe_with_the_name_of_a_table_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("a.csv");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let failure = write_tables(directory.path(), &TABLES, "kind,", &1).unwrap_err();
        assert!(format!("{failure:?}").contains("did not make it"), "{failure:?}");
    }

    #[test]
    fn tables_are_written_again_but_never_over_files_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("new/tables");
        let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
        write_tables(&place, &TABLES, "kind,", &1).unwrap();
        write_tables(&place, &TABLES, "kind,", &2).unwrap();
        assert_eq!((read("a.csv").as_str(), read("b.csv").as_str()), ("kind,2\n", "kind,b2\n"));

        fs::write(place.join("b.csv"), "mine\n").unwrap();
        let Failure::Reported(reported) = write_tables(&place, &TABLES, "kind,", &3).unwrap_err() else {
            panic!("not reported")
        };
        assert!(reported.message.contains("b.csv` is not overwritten"), "{}", reported.message);
        assert_eq!((read("a.csv").as_str(), read("b.csv").as_str()), ("kind,2\n", "mine\n"), "nothing was written");
    }
}
