//! Every verdict, and each thing that keeps *kept* from being said.

use super::*;
use crate::notes::SessionNotes;
use crate::notes::tests::{closing, opening};
use crate::opening::{Closing, FileCommits, Means, Opened};
use targets::durable::{Owner, Torn};

const NO_FLUSH: FileCommits = FileCommits { means: Means::None, block_bytes: 8192 };

/// The last note was after a second, and the load under way until it fell silent.
fn closing_at(how: How, silent_ms: u64) -> Closing {
    Closing { at_us: 1_000_000 + silent_ms * 1_000, ..closing(how, silent_ms) }
}

/// Everything that a verdict depends on, as it is after a cut that lost nothing.
#[derive(Clone)]
struct Case {
    noted: Noted,
    presence: Presence,
    findings: Findings,
    here: Machine,
}

fn there(has_ended: bool, started_s: Option<u64>) -> Presence {
    Presence::There { has_ended, started_s, missing: Vec::new(), loses: Vec::new() }
}

fn gone(started_s: Option<u64>) -> Presence {
    Presence::Gone { what: "everything in `/u01/x`".to_owned(), started_s }
}

fn kept() -> Case {
    let opened = Opened { opening: opening(4, 64), at_wall_ns: 1_700_000_000_000_000_000 };
    let noted = Noted {
        opened,
        sessions: vec![SessionNotes::sample(1000, 64); 4],
        notes: 4000,
        last_us: 1_000_000,
        recent: 4000,
        closing: Some(closing_at(How::Silent, 10_050)),
        has_half_line: false,
    };
    Case {
        noted,
        presence: there(false, None),
        findings: Findings { compared: 256, kept: 256, under_way_whole: 3, beyond: 1, ..Findings::default() },
        here: Machine { machine: "db1".to_owned(), boot: "two".to_owned() },
    }
}

/// The same on a server that others run.
fn kept_on_a_server() -> Case {
    let mut case = kept();
    let opening = &mut case.noted.opened.opening;
    (opening.files, opening.made.is_here, opening.made.started_s) = (None, false, Some(1_000));
    opening.load.machine = "elsewhere".to_owned();
    case.noted.closing = Some(closing_at(How::TargetGone, 15_000));
    case.presence = there(false, Some(5_000));
    case
}

impl Case {
    fn judged(&self) -> Judged<'_> {
        let Self { noted, presence, findings, here } = self;
        Judged { noted, presence, findings, here }
    }

    fn verdict(&self) -> Verdict {
        self.judged().verdict()
    }

    /// The names of the reasons for no verdict.
    fn why(&self) -> Vec<&'static str> {
        match self.verdict() {
            Verdict::None(reasons) => reasons.iter().map(Reason::id).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn text(&self) -> String {
        let rows = self.judged().sheet().rows;
        rows.iter().map(|(label, text)| format!("{label}: {text}\n")).collect()
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }
}

fn ended(how: How, silent_ms: u64) -> impl FnOnce(&mut Case) {
    move |case| case.noted.closing = Some(closing_at(how, silent_ms))
}

#[test]
fn kept_is_said_after_a_cut_under_load_that_lost_nothing() {
    let case = kept();
    assert_eq!(case.verdict(), Verdict::Kept);
    let text = case.text();
    assert!(
        text.starts_with("kept: every acknowledged commit that must be there is there: 256 of 4,000 noted"),
        "{text}"
    );
    for said in
        ["one cut without a loss", "fewer than 95 %", "compare that with the time of your cut", "looks the same"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    // A connection that was closed, or a witness that was ended, after long silence: the power was gone before.
    for how in [How::Closed, How::Stopped] {
        assert_eq!(kept().with(ended(how, 3_000)).verdict(), Verdict::Kept);
    }
    assert_eq!(kept_on_a_server().verdict(), Verdict::Kept);
    let document = case.judged().sheet().document;
    assert_eq!((&document["verdict"], document["reasons"].as_array().unwrap().len()), (&json!("kept"), 0));
}

#[test]
fn where_nothing_was_cut_nothing_is_proven() {
    let case = kept();
    assert_eq!(case.with(ended(How::Done, 0)).why(), ["ended_in_order"]);
    for how in [How::Failed, How::TargetGone] {
        assert_eq!(case.with(ended(how, 0)).why(), ["ended_by_error"]);
    }
    assert_eq!(case.with(ended(How::Closed, 2_999)).why(), ["connection_closed"]);
    assert_eq!(case.with(ended(How::Stopped, 100)).why(), ["witness_stopped"]);
    assert_eq!(case.with(|case| case.here.boot = "one".to_owned()).why(), ["same_boot"]);
    assert_eq!(case.with(|case| case.here.boot.clear()).why(), ["unknown_boot"]);
    assert_eq!(case.with(|case| case.here.machine = "db2".to_owned()).why(), ["other_machine"]);
    assert_eq!(case.with(|case| case.presence = there(true, None)).why(), ["ended_on_target"]);
    let normal = case.with(ended(How::Done, 0)).with(|case| {
        case.here.boot = "one".to_owned();
        case.presence = there(true, None);
    });
    assert_eq!(normal.why(), ["ended_in_order", "same_boot", "ended_on_target"]);
    assert!(normal.text().contains("no verdict: none is missing of 256 commits"), "{}", normal.text());
}

#[test]
fn a_server_must_have_been_started_again() {
    let case = kept_on_a_server();
    for same in [7, 998, 1_000, 1_002] {
        assert_eq!(case.with(|case| case.presence = there(false, Some(same))).why(), ["server_not_restarted"]);
    }
    assert_eq!(case.with(|case| case.presence = there(false, None)).why(), ["server_start_unknown"]);
    // A load that fell silent says nothing of the server, nor does one that may be a copy say that anything was lost.
    for how in [How::Silent, How::Closed, How::Stopped] {
        assert_eq!(case.with(ended(how, 10_000)).why(), ["load_gone"]);
    }
    let lost = case.with(|case| (case.findings.missing, case.findings.kept) = (1, 255));
    assert_eq!(lost.verdict(), Verdict::Lost);
    let running = lost.with(|case| case.presence = there(false, Some(1_000)));
    assert_eq!(running.why(), ["may_be_a_copy", "server_not_restarted"]);
    let unnamed = lost.with(|case| case.noted.opened.opening.made.place = Place::Server(String::new()));
    assert_eq!(unnamed.why(), ["may_be_a_copy"]);
    assert_eq!(case.with(ended(How::Done, 0)).why(), ["ended_in_order"]);
    assert_eq!(case.with(ended(How::Failed, 0)).why(), ["ended_by_error"], "it answered, if only to refuse");
    // Of one on the machine of the load, that machine's power is what counts: its process was killed, or it crashed.
    let mut here = case.with(|case| case.noted.opened.opening.made.is_here = true);
    here.here = Machine { machine: "elsewhere".to_owned(), boot: "one".to_owned() };
    assert_eq!(here.why(), ["ended_by_error", "same_boot"]);
    assert_eq!(case.with(|case| case.noted.opened.opening.made.started_s = None).why(), ["server_start_unknown"]);
    assert_eq!(case.with(ended(How::TargetGone, 200)).why(), ["connection_closed"], "as a server that is stopped does");
    let settings = vec!["fsync=off".to_owned()];
    let loses = case.with(|case| case.noted.opened.opening.made.loses = settings);
    assert_eq!(loses.why(), ["settings"]);
    assert_eq!(loses.with(|case| case.findings.missing = 9).why(), ["settings"], "it promised nothing");
    let changed = lost.with(|case| {
        let loses = vec!["innodb_flush_log_at_trx_commit=2".to_owned()];
        case.presence = Presence::There { has_ended: false, started_s: Some(5_000), missing: Vec::new(), loses };
    });
    assert_eq!(changed.why(), ["settings"], "it was changed while the load went on");
}

#[test]
fn notes_that_may_have_lost_something_prove_nothing() {
    let case = kept();
    assert_eq!(case.with(|case| case.noted.closing = None).why(), ["witness_died"]);
    let beyond = case.with(|case| (case.findings.beyond, case.findings.sessions_beyond) = (17, 2));
    assert_eq!(beyond.why(), ["notes_behind"]);
    assert!(beyond.text().contains("2 sessions have more commits on the target"), "{}", beyond.text());
    // One way, what the pipe lost is expected: no more than a session commits in a second.
    let one_way = beyond.with(|case| case.noted.opened.opening.way = Way::OneWay);
    assert_eq!(one_way.verdict(), Verdict::Kept);
    assert_eq!(one_way.with(|case| case.findings.beyond = 201).verdict(), Verdict::Kept);
    assert_eq!(one_way.with(|case| case.findings.beyond = 202).why(), ["notes_behind"], "the pipe stood still before");
    let idle =
        case.with(|case| case.noted.closing = Some(Closing { at_us: 600_000_000, ..closing(How::Silent, 10_000) }));
    assert_eq!(idle.why(), ["idle_before_the_end"], "nothing was acknowledged for ten minutes");
    let none = case.with(|case| (case.noted.notes, case.noted.recent, case.findings) = (0, 0, Findings::default()));
    assert_eq!(none.why(), ["not_all_read", "no_notes"]);
    assert_eq!(case.with(|case| case.findings.compared = 255).why(), ["not_all_read"]);
}

#[test]
fn too_few_commits_say_nothing_but_a_loss() {
    let few = kept().with(|case| case.noted.recent = 49);
    assert_eq!(few.why(), ["too_few_commits"]);
    assert_eq!(few.with(|case| case.findings.missing = 1).verdict(), Verdict::Lost);
}

#[test]
fn each_fault_is_a_loss_whatever_else_is_known() {
    let fates = [
        Fate::Missing { stale: None },
        Fate::Missing { stale: Some(3) },
        Fate::Torn(Torn { oldest: Some(5), newest: Some(69), strange: 2 }),
        Fate::Foreign(Owner { run: 42, session: 2, slot: 7, seq: 71 }),
        Fate::Unreadable("reading `/u01/x/f` at offset 8192: Input/output error (os error 5)".to_owned()),
    ];
    let words = [
        "nothing is there",
        "the older commit 3",
        "oldest part 5, newest part 69, 2 strange",
        "session 3, slot 7",
        "offset 8192",
    ];
    for (fate, words) in fates.into_iter().zip(words) {
        let case = kept().with(|case| {
            let found = &mut case.findings;
            (found.kept, found.sessions_with_faults) = (255, 1);
            (found.oldest_us, found.newest_us) = (Some(4_800_000), Some(0));
            *(match fate {
                Fate::Missing { .. } => &mut found.missing,
                Fate::Torn(_) => &mut found.torn,
                Fate::Foreign(_) => &mut found.foreign,
                Fate::Unreadable(_) => &mut found.unreadable,
            }) = 1;
            found.listed.push(Fault { session: 1, slot: 4, seq: 69, fate });
        });
        if case.findings.unreadable > 0 {
            assert_eq!(case.why(), ["unreadable"], "its path may not be up yet");
            continue;
        }
        assert_eq!(case.verdict(), Verdict::Lost);
        let copy = case.with(|case| case.here.machine = "db2".to_owned());
        assert_eq!(copy.why(), ["other_machine"], "a snapshot of before");
        let text = case.text();
        assert!(text.starts_with("lost: 1 of the 256 commits that must be there"), "{text}");
        assert!(text.contains(words) && text.contains("acknowledged 0 ns to 4.80 s before the last one"), "{text}");
        assert!(!text.contains("without a loss"), "{text}");
        // Neither a boot nor notes nor an end in order take that back.
        let doubtful = case.with(ended(How::Done, 0)).with(|case| {
            case.here.boot = "one".to_owned();
            case.findings.sessions_beyond = 1;
        });
        assert_eq!(doubtful.verdict(), Verdict::Lost);
        assert_eq!(case.with(|case| case.noted.closing = None).verdict(), Verdict::Lost);
    }
}

#[test]
fn the_order_of_what_is_missing_is_explained() {
    let lost = kept().with(|case| (case.findings.missing, case.findings.kept) = (9, 247));
    assert!(lost.text().contains("order: kept: only the last commits of a session are missing, as of a cache"));
    let broken = lost.with(|case| case.findings.out_of_order = 2);
    assert!(broken.text().contains("order: broken") && broken.text().contains("flushes were ignored"));
    // Without a flush neither the loss nor the order breaks a promise.
    let none = broken.with(|case| case.noted.opened.opening.files = Some(NO_FLUSH));
    assert_eq!(none.why(), ["nothing_promised"]);
    assert!(none.text().contains("order: broken") && none.text().contains("Without a flush that is allowed"));
    assert!(!none.text().contains("flushes were ignored"));
    let torn = kept().with(|case| case.findings.torn = 1);
    assert!(!torn.text().contains("order:"), "only what is missing has an order");
    assert_eq!(kept().with(|case| case.noted.opened.opening.files = Some(NO_FLUSH)).why(), ["nothing_promised"]);
}

#[test]
fn writes_that_were_under_way_say_whether_the_stack_tears() {
    let torn = kept().with(|case| case.findings.under_way_torn = 2).text();
    assert!(torn.contains("torn: 2 writes of 8 KiB are there in part: leave full-page writes"), "{torn}");
    let none = kept().text();
    assert!(
        none.contains("none of at most 4 writes of 8 KiB is there in part, and nothing below states that"),
        "{none}"
    );
    let unread = kept().with(|case| case.findings.under_way_unreadable = 1).text();
    assert!(unread.contains("1 writes of 8 KiB are there in part, 1 of them unreadable: leave"), "{unread}");
    let stated = |case: &mut Case| case.noted.opened.opening.made.whole = Some("`nvme0n1` states that".to_owned());
    assert!(kept().with(stated).text().contains("in part, and `nvme0n1` states that"));
    // Where nothing was cut, or on a server, nothing is said.
    let few = kept().with(|case| case.noted.recent = 3);
    for case in [kept().with(ended(How::Done, 0)), kept_on_a_server(), few] {
        assert!(!case.text().contains("torn:"), "{}", case.text());
    }
}

#[test]
fn what_is_gone_or_elsewhere_is_not_lost() {
    let nothing = Findings::default();
    let case = kept().with(|case| (case.presence, case.findings) = (gone(None), nothing.clone()));
    assert_eq!(case.why(), ["gone"], "a hand or an older copy looks the same");
    assert!(case.text().contains("Unless a hand removed it"), "{}", case.text());
    assert_eq!(case.with(|case| case.noted.notes = 0).why(), ["no_notes"]);
    let elsewhere = Presence::Elsewhere { made: "xfs on /dev/sdb".to_owned(), now: "ext4 on /dev/sda1".to_owned() };
    let case = case.with(|case| case.presence = elsewhere);
    assert_eq!(case.why(), ["elsewhere"]);
    assert!(case.text().contains("Is it not mounted"), "{}", case.text());
    assert_eq!(case.with(|case| case.presence = Presence::OtherRun { run: 3 }).why(), ["other_run"]);
    let damaged = kept().with(|case| {
        let missing = vec!["`plimsoll-durable.json` is gone".to_owned()];
        case.presence = Presence::There { has_ended: false, started_s: None, missing, loses: Vec::new() };
    });
    assert_eq!(damaged.verdict(), Verdict::Lost);
    assert!(damaged.text().contains("damaged: `plimsoll-durable.json` is gone"));
}

#[test]
fn cuts_without_a_loss_show_what_the_rule_of_three_says() {
    assert!((highest_chance(1) - 0.95).abs() < 1e-12);
    assert!(highest_chance(58) > 0.05 && highest_chance(59) < 0.05);
    assert!(highest_chance(298) > 0.01 && highest_chance(299) < 0.01);
    for cuts in [20, 100, 1000] {
        assert!((highest_chance(cuts) * f64::from(cuts) - 3.0).abs() < 0.25, "three of {cuts}");
    }
}

#[test]
fn nothing_of_others_acts_on_a_terminal() {
    let case = kept().with(|case| case.noted.opened.opening.target = "\u{1b}[2J".to_owned());
    assert!(case.text().contains("[U+001B]"), "{}", case.text());
    let elsewhere = Presence::Elsewhere { made: "a\nkept       all".to_owned(), now: "b".to_owned() };
    let text = case.with(|case| case.presence = elsewhere).text();
    assert!(text.contains("a[U+000A]kept"), "{text}");
}
