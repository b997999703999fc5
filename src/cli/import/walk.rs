//! Which files are to be read, and which of them together.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use import::ImportError;
use model::plain::{self, Links};
use model::record::store::RUN_FILE;

/// A folder with more files than this is an archive of many runs, and not the directory of one.
const MAX_TOGETHER: usize = 64;

/// Files that may report on one run, and are read by one worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Each file, and whether it was named by the user: then it must be a result.
    pub(super) files: Vec<(PathBuf, bool)>,
    /// Their size as they lie on the disk, for progress.
    pub(super) bytes: u64,
}

/// The files below `paths`, in order of their names.
pub(super) fn units(paths: &[PathBuf]) -> (Vec<Unit>, Vec<ImportError>) {
    let mut folders: BTreeMap<PathBuf, BTreeMap<PathBuf, bool>> = BTreeMap::new();
    let mut problems = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(status) if status.is_dir() => walk(path, &mut folders, &mut problems),
            Ok(_) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                folders.entry(folder).or_default().insert(path.clone(), true);
            }
            Err(error) => problems.push(ImportError::Io { path: path.display().to_string(), error }),
        }
    }
    let units = folders.into_values().flat_map(|files| {
        let files: Vec<(PathBuf, bool)> = files.into_iter().collect();
        let size = if files.len() > MAX_TOGETHER { 1 } else { files.len().max(1) };
        files.chunks(size).map(unit).collect::<Vec<_>>()
    });
    (units.collect(), problems)
}

/// Keeps what one of several parts reads: every so-manieth in the order of their names, so that each has early and late ones.
pub(super) fn keep_part(units: &mut Vec<Unit>, number: u32, parts: u32) {
    let mut at = 0;
    units.retain(|_| {
        at += 1;
        (at - 1) % parts.max(1) == number
    });
}

fn unit(files: &[(PathBuf, bool)]) -> Unit {
    let bytes = files.iter().filter_map(|(path, _)| fs::metadata(path).ok()).map(|status| status.len()).sum();
    Unit { files: files.to_vec(), bytes }
}

/// The files in `top` and the folders below it. Hidden files, links to folders and kept runs are passed over.
fn walk(top: &Path, folders: &mut BTreeMap<PathBuf, BTreeMap<PathBuf, bool>>, problems: &mut Vec<ImportError>) {
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        if is_kept_run(&folder) {
            continue;
        }
        let cannot = |error| ImportError::Io { path: folder.display().to_string(), error };
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(cannot(error));
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    problems.push(cannot(error));
                    break;
                }
            };
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                Ok(kind) if kind.is_file() || (kind.is_symlink() && path.is_file()) => {
                    folders.entry(folder.clone()).or_default().entry(path).or_insert(false);
                }
                _ => {}
            }
        }
    }
}

/// Whether a folder is that of a run which is kept here. Other programs' results are called `run.json` too; documents of runs
/// begin with their format.
fn is_kept_run(folder: &Path) -> bool {
    let document = folder.join(RUN_FILE);
    let begins = || {
        let mut head = Vec::new();
        plain::open(&document, Links::Refused)?.take(64).read_to_end(&mut head).map(|_| head)
    };
    document.is_file()
        && begins().is_ok_and(|head| {
            let text = String::from_utf8_lossy(&head);
            text.trim_start().strip_prefix('{').is_some_and(|text| text.trim_start().starts_with("\"format\""))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    #[test]
    fn folders_are_read_together_unless_they_are_archives() {
        let top = tempfile::tempdir().unwrap();
        for name in ["one/b", "one/a", "one/.hidden", "two/deep/c", "run/run.json", "run/intervals.jsonl"] {
            touch(&top.path().join(name));
        }
        for number in 0..=MAX_TOGETHER {
            touch(&top.path().join(format!("many/{number}")));
        }
        fs::write(top.path().join("run/run.json"), "{\n  \"format\": 2,\n  \"id\": \"run\"").unwrap();
        fs::create_dir(top.path().join("foreign")).unwrap();
        fs::write(top.path().join("foreign/run.json"), "{ \"fio version\": \"fio-3.36\"").unwrap();
        std::os::unix::fs::symlink(top.path(), top.path().join("one/round")).unwrap();
        let (units, problems) = units(&[top.path().to_owned()]);
        assert!(problems.is_empty());
        let names = |unit: &Unit| -> Vec<String> {
            unit.files.iter().map(|(path, _)| path.strip_prefix(top.path()).unwrap().display().to_string()).collect()
        };
        let together: Vec<Vec<String>> =
            units.iter().map(names).filter(|names| !names[0].starts_with("many")).collect();
        assert_eq!(together, [vec!["foreign/run.json"], vec!["one/a", "one/b"], vec!["two/deep/c"]]);
        assert_eq!(units.len(), MAX_TOGETHER + 1 + 3);
    }

    #[test]
    fn parts_read_everything_once_between_them() {
        let top = tempfile::tempdir().unwrap();
        for number in 0..=MAX_TOGETHER + 2 {
            touch(&top.path().join(format!("many/{number:03}")));
        }
        let all = || units(&[top.path().to_owned()]).0;
        let paths = |units: Vec<Unit>| units.into_iter().flat_map(|unit| unit.files).collect::<Vec<_>>();
        let mut read = Vec::new();
        for number in 0..4 {
            let mut own = all();
            keep_part(&mut own, number, 4);
            assert!(own.len().abs_diff(all().len() / 4) <= 1);
            read.extend(paths(own));
        }
        read.sort();
        assert_eq!(read, paths(all()));
    }

    #[test]
    fn named_files_are_marked_and_missing_ones_are_problems() {
        let top = tempfile::tempdir().unwrap();
        touch(&top.path().join("a"));
        let (units, problems) = units(&[top.path().join("a"), top.path().to_owned(), top.path().join("none")]);
        assert_eq!((units.len(), units[0].files[0].1, units[0].bytes), (1, true, 1));
        assert!(problems[0].to_string().contains("none"), "{}", problems[0]);
    }
}
