use crate::osstat::tests::{MPSTAT, figure_value, wall};
use crate::specimens::only;

#[test]
fn mpstat_gives_shares_of_all_processors_across_midnight() {
    let draft = only("mpstat", MPSTAT);
    let step = &draft.steps[0];
    assert_eq!((draft.began, step.window.duration_ns), (wall("2026-02-01T23:59:58Z"), 4_000_000_000));
    assert_eq!(["%usr", "%sys", "%idle", "intr/s"].map(|name| figure_value(step, name)), [20.0, 9.0, 57.5, 200.0]);
    // 2 processors for 4 s; 20 + 1 + 1.5 % in user code, 9 + 0.5 + 0.5 % in the kernel.
    let cpu = step.host_cpu.unwrap();
    assert_eq!((cpu.user_ns, cpu.system_ns, cpu.iowait_ns), (1_800_000_000, 800_000_000, Some(800_000_000)));
    assert_eq!(
        (step.intervals.len(), step.intervals[0].reported["%guest"], step.intervals[1].reported["intr/s"]),
        (2, 3.0, 300.0)
    );
}

#[test]
fn mpstat_of_other_clocks_and_languages_is_read() {
    let day =
        MPSTAT.replace("11:59:58 PM", "23:59:58").replace("12:00:00 AM", "00:00:00").replace("12:00:02 AM", "00:00:02");
    let draft = only("mpstat", &day.replace("Average:", "Moyenne :").replace('.', ",").replace("5,14", "5.14"));
    assert_eq!((draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "%usr")), (4_000_000_000, 20.0));
    assert_eq!(draft.began, None, "without halves of the day the month may stand second");
    for (before, after) in [(" PM  CPU", " PM IST  CPU"), (" AM ", " AM IST ")] {
        let indian = MPSTAT.replace(before, after);
        assert_eq!(only("mpstat", &indian).steps[0].window.duration_ns, 4_000_000_000);
    }
    let finnish = day.replace("23:59:58", "23.59.58").replace("00:00:0", "00.00.0");
    assert_eq!(only("mpstat", &finnish).steps[0].window.duration_ns, 4_000_000_000);
    let average: String = MPSTAT
        .lines()
        .filter(|line| line.starts_with("Average") || line.starts_with("Linux"))
        .map(|line| format!("{line}\n"))
        .collect();
    let draft = only("mpstat", &average);
    assert_eq!((draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "%usr")), (0, 20.0));
    let boot = "Linux 5.14.0 (db9) \t02/13/2026 \t_x86_64_\t(2 CPU)\n\n10:00:00     CPU    %usr   %nice    %sys %iowait   %idle\n10:00:00     all    1.00    0.00    1.00    0.00   98.00\n";
    let draft = only("mpstat", boot);
    assert!(draft.notes[0].contains("since the machine started") && draft.steps[0].host_cpu.is_none());
}
