//! Notes as a witness writes them, and as crashes, other programs and people leave them.

use std::fs;
use std::path::PathBuf;

use super::reader::read_from;
use super::*;
use crate::opening::{Closing, FileCommits, How, Machine, Opening, Way};
use targets::durable::{FileSystem, Made, Place, Shape};

pub(crate) fn opening(sessions: u32, blocks: u32) -> Opening {
    let place = FileSystem { uuid: None, kind: "xfs".to_owned(), source: "/dev/sdb".to_owned(), fsid: 5 };
    Opening {
        shape: Shape { run: 42, sessions, blocks },
        target: "dir:/u01/x".to_owned(),
        made: Made {
            place: Place::Files(place),
            at: "/u01/x".to_owned(),
            words: "xfs on /dev/sdb".to_owned(),
            is_here: true,
            started_s: None,
            loses: Vec::new(),
            whole: None,
        },
        files: Some(FileCommits::default()),
        way: Way::Answered,
        load: Machine { machine: "db1".to_owned(), boot: "one".to_owned() },
    }
}

pub(crate) fn closing(how: How, silent_ms: u64) -> Closing {
    Closing { how, why: String::new(), silent_ms, at_us: 0, notes: 0 }
}

struct Kept {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Kept {
    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

/// Notes of two sessions with three slots each: five commits of the first, one of the second.
fn written(end: Option<How>) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let mut writer = Writer::make(&path).unwrap();
    writer.open(&opening(2, 3)).unwrap();
    writer.note(&[(0, 1), (1, 1)]).unwrap();
    writer.note(&[(0, 2), (0, 3)]).unwrap();
    writer.note(&[(0, 4)]).unwrap();
    writer.note(&[(0, 5)]).unwrap();
    writer.look().unwrap();
    if let Some(how) = end {
        writer.close(&closing(how, 9)).unwrap();
        assert!(matches!(writer.note(&[(0, 6)]), Err(Refused::Order(_))), "a note after the end");
    }
    Kept { _folder: folder, path }
}

fn parsed(text: &str) -> Result<Noted, String> {
    read_from(text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn notes_are_read_as_they_were_written() {
    let kept = written(Some(How::Silent));
    let noted = read(&kept.path).unwrap();
    assert_eq!((noted.notes, noted.recent, noted.has_half_line), (6, 6, false));
    let at_us = noted.closing.as_ref().map_or(0, |closing| closing.at_us);
    assert_eq!(noted.closing, Some(Closing { notes: 6, at_us, ..closing(How::Silent, 9) }));
    assert!(at_us >= noted.last_us);
    assert_eq!(noted.opened.opening, opening(2, 3));
    let [first, second] = &noted.sessions[..] else { panic!("two sessions") };
    assert_eq!([0, 1, 2].map(|slot| first.expected(slot, 3)), [4, 5, 3]);
    assert_eq!([0, 1, 2].map(|slot| second.expected(slot, 3)), [1, 0, 0]);
    assert!(first.time_us(2) <= first.time_us(0) && first.time_us(1) == noted.last_us);
}

#[test]
fn a_file_that_is_there_is_never_written_to() {
    let kept = written(None);
    let before = kept.text();
    assert_eq!(Writer::make(&kept.path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(kept.text(), before);
    let unused = kept.path.with_file_name("unused");
    Writer::make(&unused).unwrap().discard();
    assert!(!unused.exists());
}

#[test]
fn what_does_not_follow_is_not_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let mut writer = Writer::make(&path).unwrap();
    assert!(matches!(writer.note(&[(0, 1)]), Err(Refused::Order(_))));
    let mut wrong = opening(2, 3);
    wrong.shape.sessions = u32::MAX;
    assert!(matches!(writer.open(&wrong), Err(Refused::Opening)));
    writer.open(&opening(2, 3)).unwrap();
    assert!(matches!(writer.open(&opening(2, 3)), Err(Refused::Order(_))));
    for (session, seq) in [(0, 2), (0, 0), (2, 1), (u32::MAX, u64::MAX)] {
        assert!(matches!(writer.note(&[(session, seq)]), Err(Refused::Note { .. })), "{session} {seq}");
    }
    // Those before it are.
    assert!(writer.note(&[(0, 1), (0, 3)]).is_err());
    assert_eq!((writer.notes(), read(&path).unwrap().notes), (1, 1));
}

#[test]
fn half_a_line_at_the_end_is_no_error_and_zeroes_are_none_either() {
    let text = written(None).text();
    let whole = parsed(&text).unwrap();
    assert!(!whole.has_half_line && whole.closing.is_none());
    for end in ["0 6 12", "close 00", &"\0".repeat(3 * MAX_LINE_BYTES)] {
        let noted = parsed(&format!("{text}{end}")).unwrap();
        assert_eq!((noted.notes, noted.has_half_line), (6, true));
    }
    // Cut anywhere after the opening, they are the notes until there.
    let opened = text.match_indices('\n').nth(1).unwrap().0 + 1;
    for at in opened..text.len() {
        let noted = parsed(&text[..at]).unwrap();
        assert_eq!(noted.notes as usize, text[opened..at].matches('\n').count());
    }
    for at in 0..opened {
        assert!(parsed(&text[..at]).is_err(), "{at}");
    }
}

#[test]
fn a_line_that_is_lost_changed_moved_or_added_shows() {
    let text = written(Some(How::Silent)).text();
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(joined(&lines), text);
    // All but the closing, whose loss is that of an end.
    for place in 0..lines.len() - 1 {
        let mut lost = lines.clone();
        lost.remove(place);
        assert!(parsed(&joined(&lost)).is_err(), "line {place} lost");
        let mut twice = lines.clone();
        twice.insert(place, lines[place]);
        assert!(parsed(&joined(&twice)).is_err(), "line {place} twice");
    }
    for (from, to) in [("0 2 ", "0 3 "), ("db1", "db2"), ("\"silent\"", "\"done\""), ("xfs on", "zfs on")] {
        assert!(text.contains(from));
        assert!(parsed(&text.replacen(from, to, 1)).is_err(), "{from} became {to}");
    }
    // Without an end, each line still depends on all before it.
    let unended = written(None).text();
    for (from, to) in [("db1", "db2"), ("xfs on", "zfs on")] {
        assert!(unended.contains(from));
        assert!(parsed(&unended.replacen(from, to, 1)).unwrap_err().contains("chain"), "{from} became {to}");
    }
    assert!(parsed(&format!("{text}0 6 99999999 0000000000000000\n")).unwrap_err().contains("after the end"));
    assert!(parsed(&format!("{text}0 6")).unwrap_err().contains("after the end"));
}

#[test]
fn hostile_notes_end_in_an_error_and_take_no_memory() {
    let text = written(None).text();
    let opened = text.match_indices('\n').nth(1).unwrap().0 + 1;
    let head = &text[..opened];
    let long = "9".repeat(2 * MAX_LINE_BYTES);
    for line in
        ["", " ", "0", "0 1 2", "0 1 2 3 4", "-1 1 2 3", "99 1 0 0", "0 1 x 0", &long, "0 18446744073709551616 0 0"]
    {
        assert!(parsed(&format!("{head}{line}\n")).is_err(), "{line:.20}");
    }
    assert!(read_from(&b"\xff\xfe"[..]).is_err() && parsed("").is_err() && parsed("\n").is_err());
    let shape = |text: &str| head.replace("\"sessions\":2", text);
    for sessions in ["\"sessions\":4294967295", "\"sessions\":0", "\"sessions\":-1"] {
        assert!(parsed(&shape(sessions)).is_err(), "{sessions}");
    }
    let named = head.replace("dir:/u01/x", "\\u001b[2J");
    assert!(parsed(&named).is_ok(), "a name is shown as `shown` has it, and is no error");
}

#[test]
fn the_rate_is_that_of_the_last_five_seconds() {
    let text = written(None).text();
    let opened = text.match_indices('\n').nth(1).unwrap().0;
    let json = text.lines().nth(1).unwrap().strip_prefix(OPEN).unwrap();
    let mut chain = chains(json, 2)[0];
    let mut lines = text[..=opened].to_owned();
    for seq in 1..=100_u64 {
        let at_us = seq * 100_000;
        chain = link(chain, seq, at_us);
        lines.push_str(&format!("0 {seq} {at_us} {chain:016x}\n"));
    }
    let noted = parsed(&lines).unwrap();
    assert_eq!((noted.notes, noted.recent, noted.last_us), (100, 50, 10_000_000));
}
