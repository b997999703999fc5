use crate::osstat::tests::{VMSTAT, figure_value, wall};
use crate::specimens::{drafts, only, source};
use crate::{Began, read};
use model::record::Timestamp;

#[test]
fn vmstat_gives_averages_of_the_lines_after_the_first() {
    let draft = only("vmstat", VMSTAT);
    let step = &draft.steps[0];
    assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:56Z".parse().unwrap()))));
    assert_eq!((step.window.duration_ns, step.intervals.len()), (4_000_000_000, 2));
    assert_eq!(
        ["r", "us", "id", "bi", "free", "gu"].map(|name| figure_value(step, name)),
        [3.0, 25.0, 50.0, 200.0, 600.0, 0.0]
    );
    assert_eq!((step.intervals[1].reported["wa"], step.host_cpu), (10.0, None));
    let unit = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().unit.clone();
    assert_eq!(["bi", "us", "free"].map(unit), ["KiB/s", "%", ""]);
}

#[test]
fn vmstat_without_times_or_with_times_before_its_lines_is_read() {
    let bare: String = VMSTAT
        .lines()
        .map(|line| {
            format!(
                "{}\n",
                line.split(" 2026-").next().unwrap().replace(" -----timestamp-----", "").trim_end_matches("UTC")
            )
        })
        .collect();
    let draft = only("vmstat", &bare);
    assert_eq!((draft.began, draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "us")), (None, 0, 25.0));
    let mut second = 0;
    let timed: String = bare
        .lines()
        .map(|line| {
            second += 2;
            format!("11:00:{second:02} {line}\n")
        })
        .collect();
    let late = timed.replace("11:00:10", "11:00:14");
    // 20 % for 2 s, 30 % for 6 s.
    let step = only("vmstat", &late).steps.remove(0);
    assert_eq!((figure_value(&step, "us"), step.window.duration_ns), (27.5, 8_000_000_000));
    let cut = bare.trim_end();
    let (_, whole, _) = read(&source(&cut[..cut.len() - 6])).unwrap();
    assert_eq!(whole[0].steps[0].intervals.len(), 1);
    let (_, _, notes) = read(&source(&bare.replace(" 2  1      0    500", " 2  1      0      x"))).unwrap();
    assert_eq!(notes.into_list()[0].line, Some(4));
    let german = bare.replace("memory", "Speicher").replace("system", "System");
    assert_eq!(only("vmstat", &german).steps[0].intervals.len(), 2);
    let other = bare.replace("buff  cache", "inact active");
    assert_eq!(drafts("vmstat", &format!("{bare}{other}")).len(), 2, "other columns are another invocation");
}

/// Of `pages` with so many rows each below a header; the first row says 90 % of the time was user time, the others 10 %.
fn paged(pages: &[usize]) -> String {
    let header = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";
    let row =
        |user: u32| format!(" 1  0      0    500     10    700    0    0     5     4  100  200 {user}  0 10  0  0\n");
    let body: Vec<String> = pages.iter().map(|rows| format!("{header}{}", row(10).repeat(*rows))).collect();
    body.concat().replacen(&row(10), &row(90), 1)
}

#[test]
fn headers_repeat_in_one_invocation_after_the_same_number_of_rows() {
    let lengths = |text: &str| -> Vec<usize> {
        drafts("vmstat", text).iter().map(|draft| draft.steps[0].intervals.len()).collect()
    };
    assert_eq!(lengths(&paged(&[21, 21, 8])), [49]);
    // `vmstat 1 3` again and again, and two that were written to one file.
    assert_eq!(lengths(&[paged(&[3]), paged(&[3]), paged(&[3])].concat()), [2, 2, 2]);
    let both = [paged(&[21, 21, 8]), paged(&[21, 4])].concat();
    assert_eq!(lengths(&both), [49, 24]);
    assert!(
        drafts("vmstat", &both).iter().all(|draft| figure_value(&draft.steps[0], "us") == 10.0),
        "no row is since boot"
    );
    let prompted = format!("$ vmstat 2\n{}^C\n$ vmstat 5\n{}", paged(&[21]), paged(&[21, 21]));
    let paces: Vec<u64> =
        drafts("vmstat", &prompted).iter().map(|draft| draft.steps[0].window.duration_ns / 1_000_000_000).collect();
    assert_eq!(paces, [40, 205]);
}

#[test]
fn each_snapshot_of_a_watcher_is_a_run_with_its_time() {
    let text = format!(
        "zzz ***Mon Jan 5 22:00:00 CET 2026\n{}zzz <01/05/2026 22:00:30> Count:2\n{}",
        paged(&[3]),
        paged(&[3])
    );
    let found = drafts("vmstat", &text);
    let began: Vec<Option<Began>> = found.iter().map(|draft| draft.began).collect();
    assert_eq!(began, [wall("2026-01-05T22:00:00Z"), wall("2026-01-05T22:00:30Z")]);
    assert!(found.iter().all(|draft| draft.steps[0].intervals.len() == 2));
}

#[test]
fn columns_in_other_languages_are_known_by_their_places() {
    let german = VMSTAT.replace("free   buff  cache", "frei   buff  Cache").replace("timestamp", "Zeitstempel");
    let chinese = VMSTAT
        .replace("swpd   free   buff  cache", "交换 空闲 缓冲 缓存")
        .replace("-----io----", "---输入---")
        .replace("-----cpu-----", "----处理器---");
    for text in [german, chinese] {
        let draft = only("vmstat", &text);
        let step = &draft.steps[0];
        assert_eq!(
            ["r", "swpd", "free", "bi", "us", "gu"].map(|name| figure_value(step, name)),
            [3.0, 0.0, 600.0, 200.0, 25.0, 0.0]
        );
        assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:56Z".parse().unwrap()))));
        assert_eq!(
            (step.reported.len(), figure_value(step, "cache")),
            (18, -1.0),
            "what -a makes of it is not reported"
        );
    }
}

#[test]
fn where_the_command_leaves_out_the_line_since_boot_the_first_is_a_sample() {
    let asked = |command: &str| only("vmstat", &format!("$ {command}\n{VMSTAT}"));
    for command in ["vmstat -ty 2", "vmstat -w --no-first -t 2 3"] {
        let draft = asked(command);
        assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:54Z".parse().unwrap()))), "{command}");
        assert_eq!((draft.steps[0].intervals.len(), draft.steps[0].window.duration_ns), (3, 6_000_000_000));
        assert!(!draft.notes.iter().any(|note| note.contains("since the machine started")), "{:?}", draft.notes);
    }
    assert_eq!(asked("vmstat -t 2").steps[0].intervals.len(), 2);
}
