//! Specimens for the tests of all importers: read as files are, and as they arrive when something went wrong on the way.

use proptest::prelude::*;

use super::{Draft, Importer, Notes, Source, read, recognise};
use model::record::Timestamp;

/// A file with this text.
pub(super) fn source(text: &str) -> Source {
    Source::new("file", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

/// The runs in `text`, which must be of `kind` and be understood.
pub(super) fn drafts(kind: &str, text: &str) -> Vec<Draft> {
    let (importer, drafts, notes) = read(&source(text)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((importer.kind, notes.into_list()), (kind, vec![]));
    drafts
}

/// The only run in it.
pub(super) fn only(kind: &str, text: &str) -> Draft {
    let mut found = drafts(kind, text);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// A specimen that was damaged.
#[derive(Debug)]
pub(super) struct Damaged {
    /// Who reads it when it is whole.
    importer: &'static Importer,
    bytes: Vec<u8>,
}

/// One change to a text, at places that are reported as shares of its length.
#[derive(Debug, Clone)]
enum Change {
    Cut(f64),
    Byte(f64, u8),
    DeleteLine(f64),
    RepeatLine(f64, usize),
    /// The line at the first place stands at the second one too.
    CopyLine(f64, f64),
    Insert(f64, &'static str, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = 0.0..1.0_f64;
    let words = prop::sample::select(vec![
        "9",
        "-",
        "99999999999999999999999999",
        "\u{fffd}",
        " ",
        "\n",
        "|",
        ":",
        ",",
        "(",
        "ms",
        "é",
        "\t",
        "\u{1b}[",
        "[ -: ",
        "nan",
    ]);
    let change = prop_oneof![
        at.clone().prop_map(Change::Cut),
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        at.clone().prop_map(Change::DeleteLine),
        (at.clone(), 1..5_usize).prop_map(|(at, times)| Change::RepeatLine(at, times)),
        (at.clone(), at.clone()).prop_map(|(at, to)| Change::CopyLine(at, to)),
        (at, words, 1..1_000_usize).prop_map(|(at, word, times)| Change::Insert(at, word, times)),
    ];
    prop::collection::vec(change, 1..6)
}

fn change(bytes: &mut Vec<u8>, change: &Change) {
    let place = |at: f64| (at * bytes.len() as f64) as usize;
    match change {
        Change::Cut(at) => bytes.truncate(place(*at)),
        Change::Byte(at, byte) => {
            let at = place(*at);
            if let Some(old) = bytes.get_mut(at) {
                *old = *byte;
            }
        }
        Change::Insert(at, word, times) => {
            let at = place(*at);
            bytes.splice(at..at, word.repeat(*times).into_bytes());
        }
        Change::DeleteLine(at) | Change::RepeatLine(at, _) | Change::CopyLine(at, _) => {
            let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let line_at = |at: &f64| (at * lines.len() as f64) as usize;
            let line = line_at(at);
            match change {
                Change::RepeatLine(_, times) => {
                    let again = vec![lines[line]; *times];
                    lines.splice(line..line, again);
                }
                Change::CopyLine(_, to) => lines.insert(line_at(to), lines[line]),
                _ => _ = lines.remove(line),
            }
            *bytes = lines.join(&b'\n');
        }
    }
}

/// One of these texts, cut, with bytes changed, lines doubled, moved or lost, and long runs put in.
pub(super) fn damaged(texts: &[&'static str]) -> impl Strategy<Value = Damaged> + use<> {
    let importer_of = |text: &str| recognise(source(text).head()).unwrap_or_else(|| panic!("of no kind: {text}"));
    let texts: Vec<(&'static str, &'static Importer)> = texts.iter().map(|text| (*text, importer_of(text))).collect();
    (prop::sample::select(texts), changes()).prop_map(|((text, importer), changes)| {
        let mut bytes = text.as_bytes().to_vec();
        changes.iter().for_each(|one| change(&mut bytes, one));
        Damaged { importer, bytes }
    })
}

/// Reading gives runs of finite figures or an error, whatever stands there: by whoever knows the damaged text, and by whoever knew
/// the whole one.
pub(super) fn survives(Damaged { importer, bytes }: Damaged) {
    let Ok(source) = Source::new("file", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return };
    let by_both = [recognise(source.head()), Some(importer)];
    for drafts in
        by_both.into_iter().flatten().filter_map(|importer| importer.read(&source, &mut Notes::new(&source)).ok())
    {
        for step in drafts.iter().flat_map(|draft| &draft.steps) {
            assert!(step.reported.iter().all(|figure| figure.value.is_finite()), "{:?}", step.reported);
            serde_json::to_string(step).unwrap();
        }
    }
}
