//! No importer panics, hangs or makes a run that cannot be kept and read again, whatever a file holds. `IMPORTER` names the one
//! that takes every input for its own kind; without it, inputs go to whoever recognises them.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll::import::{self, FileRead, Importer, Notes, Source};
use plimsoll::record::{ImportedFile, Run, Timestamp};

static IMPORTER: LazyLock<Option<&'static Importer>> = LazyLock::new(|| {
    let kind = std::env::var("IMPORTER").ok()?;
    Some(import::importers().iter().find(|importer| importer.kind == kind).expect("IMPORTER names no importer"))
});

fuzz_target!(|data: &[u8]| {
    let changed = Timestamp(jiff::Timestamp::UNIX_EPOCH);
    let Ok(source) = Source::new("dir_p30x2/awr_s8_t1.txt", data.to_vec(), changed) else { return };
    let Some(importer) = IMPORTER.or_else(|| import::recognise(source.head())) else { return };
    let mut notes = Notes::new(&source);
    let Ok(drafts) = importer.read(&source, &mut notes) else { return };
    assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()), "runs of nothing");
    let file = ImportedFile {
        path: source.path().to_owned(),
        kind: importer.kind.to_owned(),
        bytes: 0,
        crc64: String::new(),
        part: 0,
    };
    for run in import::runs(vec![FileRead { file, changed, drafts, not_understood: notes.into_list() }]) {
        let text = serde_json::to_string(&run).expect("a run can be written");
        let back: Run = serde_json::from_str(&text).expect("what was written can be read");
        assert_eq!(back.steps.len(), run.steps.len());
    }
});
