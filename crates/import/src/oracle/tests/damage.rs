//! Reports that are cut, mangled or made to cost time.

use std::time::Duration;

use proptest::prelude::*;

use super::specimens::{cluster_19, single_12};
use super::*;

#[test]
fn a_report_that_ends_early_tells_what_it_has() {
    let text = single_12();
    let cut = &text[..text.find("SQL ordered").unwrap()];
    let (draft, notes) = read_all(cut).unwrap();
    assert_eq!((draft.title.as_str(), draft.steps[0].counters.commits), ("SHOP/shop1 snapshots 41-42", None));
    assert!(notes.iter().any(|note| note.contains("the report ends here")), "{notes:?}");
    let in_a_row = &text[..text.find("redo writes").unwrap() + 40];
    let (draft, _) = read_all(in_a_row).unwrap();
    assert_eq!((draft.steps[0].counters.redo_bytes, draft.steps[0].counters.redo_writes), (Some(5_000), None));
    let error = read_all(&text[..text.find("Begin Snap").unwrap()]).unwrap_err().to_string();
    assert!(error.contains("no begin and end snapshots"), "{error}");
    let error = read_all("<h1>WORKLOAD REPOSITORY report for</h1>").unwrap_err().to_string();
    assert!(error.contains("has no table"), "{error}");
}

#[test]
fn what_was_cut_to_one_name_is_kept_row_by_row_and_counted_as_neither() {
    let twice = single_12().replace("db block changes<", "user commits<").replace(
        "log file sync</td><td class='awrc'>400</td><td class='awrc'>&#160;</td><td class='awrc'>0<",
        "db file sequential read</td><td class='awrc'>400</td><td class='awrc'>&#160;</td><td class='awrc'>0<",
    );
    let draft = read(&twice);
    let step = &draft.steps[0];
    assert_eq!((step.counters.commits, step.counters.redo_writes), (None, Some(12)));
    let rows: Vec<(u64, bool)> = step
        .waits
        .iter()
        .filter(|wait| wait.event == "db file sequential read")
        .map(|wait| (wait.sum().count, wait.waits.is_distribution()))
        .collect();
    assert_eq!(
        rows,
        [(9_000, false), (1_000, false), (400, false)],
        "no time is lost, and no histogram given to either"
    );
    assert!(draft.notes.iter().any(|note| note.contains("names of several events to one")), "{:?}", draft.notes);
    let draft = read(&single_12().replace(">latch free<", ">log file sync<"));
    let sync = wait(&draft.steps[0], "log file sync");
    assert_eq!((sync.waits.count(), sync.waits.is_distribution()), (400, false), "its histogram is one of two");
}

#[test]
fn what_is_not_understood_is_noted_with_its_line() {
    let text = single_12()
        .replace("&lt;1/8s", "&lt;8 apples")
        .replace(">400</td>", ">4x0</td>")
        .replace('\n', "\r\n")
        .replace(">80.0</td><td class='awrc'>&#160;</td></tr>", ">8?</td></tr>");
    let source = Source::new("report.html", text.clone().into_bytes(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let mut notes = Notes::new(&source);
    read_html(&source, &mut notes).unwrap();
    let notes = notes.into_list();
    let lines: Vec<&str> = text.lines().collect();
    for (what, mark) in
        [("rising durations", "apples"), ("a number was expected", "4x0"), ("not all percentages", "8?")]
    {
        let note = notes.iter().find(|note| note.what.contains(what)).unwrap_or_else(|| panic!("{what}: {notes:?}"));
        let near = lines[note.line.unwrap() as usize - 1..].iter().take(3).any(|line| line.contains(mark));
        assert!(near, "line {:?} for {mark}", note.line);
    }
}

/// A page that grows with its argument.
type Bomb = fn(usize) -> String;

/// Processor time of this thread, which other processes do not add to.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[test]
fn hostile_pages_cost_no_more_than_their_text() {
    let bombs: [(&str, Bomb); 5] = [
        ("open", |n| "<table><tr><th>Event<td colspan=999999999 rowspan=999999999>".repeat(n)),
        ("deep", |n| "<b><ul><li>".repeat(5 * n)),
        ("wide", |n| format!("<table><tr>{}</tr>", "<th>&lt;1us".repeat(5 * n))),
        ("long", |n| format!("<table><tr><th>Event</th></tr><tr><td>{}</td></tr>", "x ".repeat(20 * n))),
        ("tall", |n| format!("<table><tr>{}</tr>{}", "<th>x".repeat(128), "<tr><td>1".repeat(n / 2))),
    ];
    let cost = |bomb: Bomb, n: usize| {
        let text = single_12().replace(
            "<h3 class=\"awr\">Wait Event Histogram</h3>",
            &format!("<h3>Wait Event Histogram</h3>{}", bomb(n)),
        );
        let begun = processor_time();
        let read = read_all(&text);
        (processor_time() - begun, read)
    };
    let few = 400;
    for (name, bomb) in bombs {
        // Eight times the text takes 64 times as long where the cost grows with its square. What disturbs a processor only adds.
        let least = |n: usize| (0..2).map(|_| cost(bomb, n).0).min().unwrap_or_default();
        let (once, often) = (least(few), least(8 * few));
        assert!(
            often < once * 24 + Duration::from_millis(2),
            "{name}: {once:?} of {few}, {often:?} of eight times as many"
        );
    }
}

#[test]
fn more_cells_than_any_report_has_are_left_out_and_noted() {
    let tall = format!("<table><tr>{}</tr>{}", "<th>x".repeat(128), "<tr><td>1".repeat(20_000));
    let text = single_12()
        .replace("<h3 class=\"awr\">Wait Event Histogram</h3>", &format!("<h3>Wait Event Histogram</h3>{tall}"));
    let (_, notes) = read_all(&text).unwrap();
    assert!(notes.iter().any(|note| note.contains("longer than any report")), "{notes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_mangled_report_is_read_or_refused(
        cluster: bool,
        cuts in prop::collection::vec((0.0_f64..1.0, 0_usize..400, any::<u8>(), 0_usize..4), 1..8),
    ) {
        let mut bytes = if cluster { cluster_19() } else { single_12() }.into_bytes();
        for (place, length, byte, what) in cuts {
            let from = (place * bytes.len() as f64) as usize;
            let to = (from + length).min(bytes.len());
            match what {
                0 => drop(bytes.drain(from..to)),
                1 => bytes[from..to].iter_mut().step_by(97).for_each(|at| *at = byte.max(1)),
                2 => { let again = bytes[from..to].to_vec(); bytes.splice(from..from, again); }
                _ => { bytes.splice(from..from, std::iter::repeat_n(b'9', length * 50)); }
            }
        }
        if let Ok(source) = Source::new("x", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) {
            let mut notes = Notes::new(&source);
            if let Ok(drafts) = read_html(&source, &mut notes) {
                prop_assert!(drafts.iter().all(|draft| draft.steps.len() == 1));
            }
        }
    }
}
