//! The values that the corpus of other people's results says an importer must find. It lies beside the project and is no part
//! of it: where it is missing, these tests say so and prove nothing.

mod awr_html;
mod awr_text;
mod fio;
mod hammerdb;
mod locales;
mod network;
mod oracle;
mod oracle_sections;
mod osstat;
mod pgbench;
mod pgio;
mod planted;
mod plausible;
mod slob_console;
mod statspack;
mod swingbench;
mod sysbench;
mod tried;
mod wrappings;

use std::path::PathBuf;

use super::{Draft, Notes, Source};
use test_support::skip::skip;

/// The corpus, if it is there.
pub(super) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("PLIMSOLL_CORPUS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"), PathBuf::from);
    if folder.join("INDEX.tsv").is_file() {
        return Some(folder);
    }
    skip(format_args!("there is no corpus in {}", folder.display()));
    None
}

/// The runs in a file of the corpus, which must be read by the importer of `kind` with nothing left that was not understood;
/// nothing if the corpus is missing.
pub(super) fn read(kind: &str, file: &str) -> Option<Vec<Draft>> {
    let (drafts, notes) = read_with_notes(kind, file)?;
    let left = notes.places();
    assert!(left.is_empty(), "{file}: {left:?}");
    Some(drafts)
}

/// The same where something is known not to be understood.
pub(super) fn read_with_notes(kind: &str, file: &str) -> Option<(Vec<Draft>, Notes)> {
    let source = Source::open(&folder()?.join(file)).unwrap_or_else(|error| panic!("{error}"));
    let (importer, drafts, notes) = super::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(importer.kind, kind, "{file}");
    assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()), "{file} gives nothing");
    Some((drafts, notes))
}
