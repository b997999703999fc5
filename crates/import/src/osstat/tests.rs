use model::record::Workload;
use proptest::prelude::*;

use crate::specimens::{damaged, drafts, only, source, survives};
use crate::{Began, Draft, importers, read, recognise};
use model::record::{Metric, Step, Timestamp};

/// A figure of a step; absent ones are -1.
pub(super) fn figure_value(step: &Step, name: &str) -> f64 {
    let found = step.reported.iter().find(|figure| figure.name == name).map_or(-1.0, |figure| figure.value);
    (found * 1e6).round() / 1e6
}

pub(super) fn wall(text: &str) -> Option<Began> {
    Some(Began::Wall(Timestamp(text.parse().unwrap())))
}

const NEW_IOSTAT: &str = "\
Linux 6.8.0-9-generic (db7) \t01/05/2026 \t_x86_64_\t(4 CPU)

01/05/2026 10:00:00 PM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           9.00    9.00    9.00    9.00    9.00   55.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     f/s f_await  aqu-sz  %util
sdx             99.00     99.00     9.00   9.00    9.00     9.00   99.00     99.00     9.00   9.00    9.00     9.00    9.00    9.00    9.00   9.00
sdy              9.00      9.00     0.00   0.00    9.00     9.00    9.00      9.00     0.00   0.00    9.00     9.00    0.00    0.00    0.00   0.00


01/05/2026 10:00:05 PM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          10.00    2.00    8.00   20.00    0.00   60.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     f/s f_await  aqu-sz  %util
sdx            100.00    800.00     0.00   0.00    1.00     8.00   20.00    160.00     0.00   0.00    4.00     8.00    2.00    3.00    0.20  10.00
sdy              0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.00   0.00


01/05/2026 10:00:10 PM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          20.00    0.00   10.00   10.00    0.00   60.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     f/s f_await  aqu-sz  %util
sdx            300.00   2400.00     0.00   0.00    5.00     8.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    1.40  30.00
sdy              0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.00   0.00

";

#[test]
fn iostat_gives_rates_counts_and_processor_time_without_the_sample_since_boot() {
    let draft = only("iostat", NEW_IOSTAT);
    assert_eq!((draft.began, draft.workload, draft.program), (wall("2026-01-05T22:00:00Z"), Workload::Host, "iostat"));
    assert_eq!(draft.ended.unwrap().0.to_string(), "2026-01-05T22:00:10Z");
    assert_eq!((draft.environment.hostname.as_deref(), draft.environment.cpus), (Some("db7"), Some(4)));
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.intervals.len(), step.load.sessions), (10_000_000_000, 2, None));
    assert_eq!(
        (figure_value(step, "sdx r/s"), figure_value(step, "sdx %util"), figure_value(step, "%user")),
        (200.0, 20.0, 15.0)
    );
    // (100 x 1 ms + 300 x 5 ms) / 400, and writes only in the first of both.
    assert_eq!(
        (figure_value(step, "sdx r_await"), figure_value(step, "sdx w_await"), figure_value(step, "sdx f_await")),
        (4.0, 4.0, 3.0)
    );
    // Nothing was read: there is no latency, and the rate is zero.
    assert_eq!((figure_value(step, "sdy r_await"), figure_value(step, "sdy r/s")), (-1.0, 0.0));
    let sdx = &step.devices[0];
    assert_eq!((sdx.name.as_str(), sdx.reads, sdx.writes, sdx.flushes), ("sdx", 2_000, 100, Some(10)));
    assert_eq!((sdx.read_bytes, sdx.write_bytes), (16_000 * 1_024, 800 * 1_024));
    assert_eq!((sdx.read_time_ns, sdx.write_time_ns), (8_000_000_000, 400_000_000));
    assert_eq!((sdx.busy_ns, sdx.weighted_ns, sdx.elapsed_ns), (2_000_000_000, 8_000_000_000, 10_000_000_000));
    let cpu = step.host_cpu.unwrap();
    assert_eq!((cpu.user_ns, cpu.system_ns, cpu.iowait_ns), (6_400_000_000, 3_600_000_000, Some(6_000_000_000)));
    let second = &step.intervals[1];
    assert_eq!(
        (second.offset_ns, second.duration_ns, second.reported["sdx r/s"]),
        (5_000_000_000, 5_000_000_000, 300.0)
    );
    assert_eq!(
        (second.devices.len(), second.devices[0].reads),
        (1, 1_500),
        "a device that never did anything is left out"
    );
    assert!(!second.reported.contains_key("sdx w_await"), "nothing was written in it");
}

#[test]
fn iostat_in_other_locales_has_commas_and_other_dates() {
    let text =
        NEW_IOSTAT
            .lines()
            .map(|line| {
                if line.contains("Device") || line.contains("Linux") { line.to_owned() } else { line.replace('.', ",") }
            })
            .collect::<Vec<_>>()
            .join("\r\n")
            .replace("01/05/2026 10:", "05.01.2026 22:")
            .replace(" PM", "");
    let draft = only("iostat", &text);
    assert_eq!(draft.began, wall("2026-01-05T22:00:00Z"));
    assert_eq!(figure_value(&draft.steps[0], "sdx r/s"), 200.0);
    let chinese = NEW_IOSTAT.replace("01/05/2026 10:00:", "2026年01月05日 22时00分").replace(" PM", "秒");
    assert_eq!(only("iostat", &chinese).began, wall("2026-01-05T22:00:00Z"));
    let iso = NEW_IOSTAT.replace("01/05/2026 10:", "2026-01-05T22:").replace(" PM", "+0100");
    assert_eq!(only("iostat", &iso).began, Some(Began::Utc(Timestamp("2026-01-05T21:00:00Z".parse().unwrap()))));
}

#[test]
fn a_date_that_can_be_read_in_two_ways_is_left_out() {
    let text = NEW_IOSTAT.replace("01/05/2026", "01/05/26").replace("10:00:", "22:00:").replace(" PM", "");
    let draft = only("iostat", &text);
    assert_eq!((draft.began, draft.steps[0].window.duration_ns), (None, 10_000_000_000));
    assert!(draft.notes.iter().any(|note| note.contains("month or the day first")));
    let british = text.replace("01/05/26", "21/05/26");
    assert_eq!(only("iostat", &british).began, wall("2026-05-21T22:00:00Z"));
}

/// `text` with a time before every line, `pace_s` after each blank line before a processor header.
fn prefixed(text: &str, prefix: impl Fn(u32) -> String, pace_s: u32) -> String {
    let mut second = 0;
    let mut samples = 0;
    let line = |line: &str| {
        if line.starts_with("avg-cpu") {
            second += if samples > 0 { pace_s } else { 0 };
            samples += 1;
        }
        format!("{}{line}\n", prefix(second))
    };
    text.lines().map(line).collect()
}

#[test]
fn times_before_every_line_tell_how_long_samples_are() {
    let bare: String =
        NEW_IOSTAT.lines().filter(|line| !line.starts_with("01/05")).map(|line| format!("{line}\n")).collect();
    let read = |text: &str| {
        let draft = only("iostat", text);
        (
            draft.began,
            draft.steps[0].window.duration_ns,
            draft.steps[0].devices.first().map_or(0, |device| device.reads),
        )
    };
    let forms: [fn(u32) -> String; 4] = [
        |second| format!("2026-01-05 22:00:{second:02}.250\t"),
        |second| format!("[2026-01-05 22:00:{second:02}] "),
        |second| format!("2026-01-05T22:00:{second:02} "),
        |second| format!("{}.5 ", 1_767_650_400 + second),
    ];
    for form in forms {
        let (began, duration_ns, reads) = read(&prefixed(&bare, form, 3));
        assert!(began.is_some(), "{}", form(0));
        assert_eq!((duration_ns, reads), (6_000_000_000, 1_200), "{}", form(0));
    }
    let time_alone = read(&prefixed(&bare, |second| format!("22:00:{second:02} "), 3));
    assert_eq!((time_alone.1, time_alone.2), (6_000_000_000, 1_200));
    let no_year = read(&prefixed(&bare, |second| format!("Jan  5 22:00:{second:02} "), 3));
    assert_eq!(no_year, (None, 6_000_000_000, 1_200));
    // A pipe kept all of it back and gave it out at once.
    assert_eq!(read(&prefixed(&bare, |_| "2026-01-05 22:00:10 ".to_owned(), 3)).1, 0);
    let in_heaps = |second: u32| format!("2026-01-05 22:00:{:02}.{:03} ", if second > 3 { 40 } else { 0 }, second);
    assert_eq!(read(&prefixed(&bare, in_heaps, 3)).1, 0);
    let unknown = only("iostat", &bare);
    assert!(unknown.steps[0].devices.is_empty() && unknown.steps[0].host_cpu.is_none());
    assert_eq!(figure_value(&unknown.steps[0], "sdx r/s"), 200.0);
    let asked = only("iostat", &format!("[me@db7 ~]$ iostat -xk 4 3\n{bare}"));
    assert_eq!(
        (asked.steps[0].window.duration_ns, asked.command.join(" ").as_str()),
        (8_000_000_000, "iostat -xk 4 3")
    );
}

#[test]
fn old_iostat_with_one_await_gives_no_counts() {
    let sample = |reads: u32| {
        format!(
            "Time: 08:32:{:02} PM\nDevice:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n\
             vg_long-name_of-a-volume\n                  0.00     0.00  {reads}.00  30.00   80.00   24.00     8.00     0.10    {}.00   0.50   2.00\n\n",
            reads,
            reads / 10
        )
    };
    let draft =
        only("iostat", &format!("Linux 2.6.18-8.el5 (old) \t06/30/2010\n\n{}{}{}", sample(10), sample(10), sample(30)));
    let step = &draft.steps[0];
    assert!(step.devices.is_empty());
    let name = "vg_long-name_of-a-volume";
    // 40 requests/s took 1 ms each and 60 took 3.
    assert_eq!((figure_value(step, &format!("{name} await")), figure_value(step, &format!("{name} r/s"))), (2.2, 20.0));
    assert_eq!(step.intervals.len(), 2);
}

#[test]
fn plain_short_and_human_forms_are_read() {
    let plain = "Device:            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsdx               1.00         1.00         1.00          9          9\n\n\
                 Device:            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsdx              10.00        40.00         0.00        400          0\n\n\
                 Device:            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsdx              30.00        80.00        20.00        800        200\n\n";
    let draft = only("iostat", plain);
    assert_eq!(draft.steps[0].intervals.len(), 2, "the same table again is the next sample");
    assert_eq!(
        (figure_value(&draft.steps[0], "sdx tps"), figure_value(&draft.steps[0], "sdx kB_read")),
        (20.0, 1_200.0)
    );
    let human = "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\nsdx              10.00      2.5M     0.00    1.00     5.0k    0.10   2.0%\n";
    let step = &only("iostat", human).steps[0].clone();
    assert_eq!(
        (figure_value(step, "sdx kB/s"), figure_value(step, "sdx areq-sz"), figure_value(step, "sdx %util")),
        (2_560.0, 5.0, 2.0)
    );
    let pretty = "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n    2.00      8.0k     0.00   0.0%    0.50     4.0k sdx\n\n     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n    3.00     12.0k     0.00   0.0%    0.70     4.0k sdx\n\n";
    let step = &only("iostat", pretty).steps[0].clone();
    assert_eq!(
        (step.intervals.len(), figure_value(step, "sdx rkB/s"), figure_value(step, "sdx w_await")),
        (1, 8.0, 0.7)
    );
    assert!(step.devices.is_empty());
}

#[test]
fn the_sum_of_a_group_is_reported_and_is_no_device() {
    let grouped = NEW_IOSTAT.replace("\nsdy ", "\n pair ");
    let step = &only("iostat", &grouped).steps[0].clone();
    assert_eq!(step.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["sdx"]);
    assert_eq!(figure_value(step, "pair r/s"), 0.0);
}

#[test]
fn a_sample_that_was_cut_off_is_left_out() {
    let whole = NEW_IOSTAT.trim_end();
    for cut in [
        whole.rfind("sdy").unwrap(),
        whole.len() - 4,
        whole.len() - 1,
        whole.rfind("Device").unwrap(),
        whole.rfind("  60.00").unwrap(),
    ] {
        let (_, drafts, _) = read(&source(&whole[..cut])).unwrap();
        let step = &drafts[0].steps[0];
        assert_eq!((step.intervals.len(), figure_value(step, "sdx r/s")), (1, 100.0), "{:?}", &whole[cut - 20..cut]);
        assert!(drafts[0].notes.iter().any(|note| note.contains("cut off")));
    }
    assert_eq!(only("iostat", whole).steps[0].intervals.len(), 2, "only the blank lines at its end are missing");
}

#[test]
fn the_only_sample_is_reported_to_be_since_boot() {
    let first = &NEW_IOSTAT[..NEW_IOSTAT.find("\n\n01/05/2026 10:00:05").unwrap()];
    let draft = only("iostat", first);
    assert!(draft.notes[0].contains("since the machine started"));
    assert_eq!((draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "sdx r/s")), (0, 99.0));
    assert!(draft.steps[0].host_cpu.is_none());
}

#[test]
fn two_invocations_are_two_runs_and_a_strange_row_is_noted() {
    assert_eq!(drafts("iostat", &format!("{NEW_IOSTAT}{NEW_IOSTAT}")).len(), 2);
    let strange = NEW_IOSTAT.replacen("sdy              0.00", "sdy", 1);
    let (_, _, notes) = read(&source(&strange)).unwrap();
    let notes = notes.into_list();
    assert_eq!((notes.len(), notes[0].line), (1, Some(18)));
    assert!(notes[0].what.contains("16 figures were expected"), "{}", notes[0].what);
}

const JSON: &str = r#"{"sysstat": {"hosts": [{"nodename": "db8", "sysname": "Linux", "release": "5.1", "machine": "x86_64", "number-of-cpus": 2, "date": "13/04/2026",
 "statistics": [
  {"timestamp": "13/04/2026 10:00:00", "avg-cpu": {"user": 9.0, "nice": 0.0, "system": 9.0, "iowait": 0.0, "steal": 0.0, "idle": 82.0},
   "disk": [{"disk_device": "nvme9n1", "r/s": 9.0, "w/s": 9.0, "rkB/s": 9.0, "wkB/s": 9.0, "rrqm": 0.0, "r_await": 9.0, "w_await": 9.0, "aqu-sz": 9.0, "util": 9.0}]},
  {"timestamp": "13/04/2026 10:00:02", "avg-cpu": {"user": 50.0, "nice": 0.0, "system": 25.0, "iowait": 0.0, "steal": 0.0, "idle": 25.0},
   "disk": [{"disk_device": "nvme9n1", "r/s": 10.0, "w/s": 5.0, "rkB/s": 40.0, "wkB/s": 20.0, "rrqm": 0.0, "r_await": 1.5, "w_await": 2.0, "aqu-sz": 0.5, "util": 40.0}]},
  {"timestamp": "13/04/2026 10:00:04", "avg-cpu": {"user": 50.0, "nice": 0.0, "system": 25.0, "iowait": 0.0, "steal": 0.0, "idle": 25.0},
   "disk": [{"disk_device": "nvme9n1", "r/s": 30.0, "w/s": 5.0, "rkB/s": 40.0, "wkB/s": 20.0, "rrqm": 0.0, "r_await": 1.5, "w_await": 2.0, "aqu-sz": 0.5, "util": 40.0}]}
 ]}]}}
"#;

#[test]
fn iostat_json_is_read_as_its_text_is() {
    let draft = only("iostat-json", JSON);
    let step = &draft.steps[0];
    assert_eq!((draft.began, step.window.duration_ns), (wall("2026-04-13T10:00:00Z"), 4_000_000_000));
    assert_eq!(
        (figure_value(step, "nvme9n1 r/s"), figure_value(step, "nvme9n1 %util"), figure_value(step, "%user")),
        (20.0, 40.0, 50.0)
    );
    assert_eq!((step.devices[0].reads, step.devices[0].busy_ns), (80, 1_600_000_000));
    assert_eq!(step.host_cpu.unwrap().user_ns, 4_000_000_000);
    assert_eq!(drafts("iostat-json", &format!("$ iostat -o JSON\n{JSON}{JSON}")).len(), 2);
}

#[test]
fn iostat_json_that_ends_early_keeps_its_whole_samples() {
    let cut = &JSON[..JSON.find("\"r/s\": 30.0").unwrap()];
    let draft = only("iostat-json", cut);
    assert_eq!((draft.steps[0].intervals.len(), figure_value(&draft.steps[0], "nvme9n1 r/s")), (1, 10.0));
    assert!(draft.notes.iter().any(|note| note.contains("ends in the middle")));
    let nothing = &JSON[..JSON.find("\"disk\"").unwrap()];
    assert!(read(&source(nothing)).is_err());
    assert!(read(&source(&JSON.replace("\"w/s\"", "w/s"))).unwrap_err().to_string().contains("line 4"));
}

#[test]
fn each_snapshot_of_a_watcher_is_a_run_with_its_time() {
    let one = NEW_IOSTAT.replace("01/05/2026 10:00:00 PM\n", "").replace("01/05/2026 10:00:05 PM\n", "");
    let one = one.replace("01/05/2026 10:00:10 PM\n", "");
    let text = format!(
        "Linux OSWbb v8.3.2 db7\nSNAP_INTERVAL 30\nzzz ***Mon Jan 5 22:00:00 CET 2026\n{one}zzz ***Mon Jan  5 10:00:30 PM CET 2026\n{one}"
    );
    let found = drafts("iostat", &text);
    let began: Vec<Option<Began>> = found.iter().map(|draft| draft.began).collect();
    assert_eq!(began, [wall("2026-01-05T22:00:00Z"), wall("2026-01-05T22:00:30Z")]);
    assert!(found.iter().all(|draft| draft.steps[0].intervals.len() == 2 && draft.steps[0].window.duration_ns == 0));
}

#[test]
fn where_the_command_leaves_out_the_report_since_boot_the_first_is_a_sample() {
    let asked = |command: &str| only("iostat", &format!("$ {command}\n{NEW_IOSTAT}"));
    for command in ["iostat -xty 5", "iostat -y -x -t 5 3"] {
        let draft = asked(command);
        let step = &draft.steps[0];
        assert_eq!((step.intervals.len(), step.window.duration_ns), (3, 15_000_000_000), "{command}");
        assert_eq!(draft.began, wall("2026-01-05T21:59:55Z"), "its first sample took five seconds");
        assert_eq!((figure_value(step, "sdx r/s"), step.devices[0].reads), (166.333333, 2_495));
        assert!(!draft.notes.iter().any(|note| note.contains("since the machine started")), "{:?}", draft.notes);
    }
    let once = &NEW_IOSTAT[..NEW_IOSTAT.find("\n\n01/05/2026 10:00:05").unwrap()];
    let step = only("iostat", &format!("$ iostat -xty 5 1\n{once}\n")).steps.remove(0);
    assert_eq!((step.window.duration_ns, step.intervals.len()), (5_000_000_000, 1));
    // No such option, or no interval, without which it does nothing.
    for command in ["iostat -xt 5 -p sdy", "iostat --pretty -xt 5", "iostat -xty"] {
        assert_eq!(asked(command).steps[0].intervals.len(), 2, "{command}");
    }
}

#[test]
fn partitions_are_not_counted_beside_their_disks() {
    let draft = only("iostat", &NEW_IOSTAT.replace("sdy ", "sdx1"));
    let names = |draft: &Draft| -> Vec<String> {
        let step = &draft.steps[0];
        let of_samples = step.intervals.iter().flat_map(|interval| &interval.devices);
        step.devices.iter().chain(of_samples).map(|device| device.name.clone()).collect()
    };
    assert_eq!(names(&draft), ["sdx"; 3]);
    assert_eq!(figure_value(&draft.steps[0], "sdx1 r/s"), 0.0);
    assert!(draft.notes.iter().any(|note| note.contains("their disks have them")), "{:?}", draft.notes);
    let namespace = NEW_IOSTAT.replace("sdx    ", "nvme0n1").replace("sdy      ", "nvme0n1p1");
    assert_eq!(names(&only("iostat", &namespace)), ["nvme0n1"; 3]);
    for other in ["sdxa", "sdy1", "dm-1"] {
        assert_eq!(only("iostat", &NEW_IOSTAT.replace("sdy ", other)).steps[0].devices.len(), 2, "{other}");
    }
}

pub(super) const VMSTAT: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- -------cpu------- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu                 UTC
 9  9      9    900     90    900    9    9   999   999   99   99 90  9  1  0  0  0 2026-02-01 23:59:56
 2  1      0    500     10    700    0    0   100    40 1000 2000 20 10 60 10  0  0 2026-02-01 23:59:58
 4  3      0    700     10    700    0    0   300    80 3000 4000 30 20 40 10  0  0 2026-02-02 00:00:00
";

pub(super) const MPSTAT: &str = "\
Linux 5.14.0 (db9) \t02/01/2026 \t_x86_64_\t(2 CPU)

11:59:58 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
12:00:00 AM  all   10.00    2.00    8.00   20.00    1.00    1.00    0.00    3.00    0.00   55.00
12:00:00 AM    0    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00  100.00
12:00:00 AM    1   90.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00   10.00

11:59:58 PM  CPU    intr/s
12:00:00 AM  all    100.00
12:00:00 AM    0     50.00

11:59:58 PM  CPU       HI/s    TIMER/s
12:00:00 AM    0       0.00      10.00

12:00:00 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
12:00:02 AM  all   30.00    0.00   10.00    0.00    0.00    0.00    0.00    0.00    0.00   60.00
12:00:02 AM    0   30.00    0.00   10.00    0.00    0.00    0.00    0.00    0.00    0.00   60.00

12:00:00 AM  CPU    intr/s
12:00:02 AM  all    300.00

Average:     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
Average:     all   20.00    1.00    9.00   10.00    0.50    0.50    0.00    1.50    0.00   57.50
Average:       0   15.00    0.00    5.00    0.00    0.00    0.00    0.00    0.00    0.00   80.00
";

#[test]
fn texts_of_others_are_not_claimed() {
    let sar = "Linux 5.14.0 (db9) \t02/01/2026 \t_x86_64_\t(2 CPU)\n\n12:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n12:10:01 AM     all      1.00      0.00      1.00      0.00      0.00     98.00\n";
    let late = format!("{}{NEW_IOSTAT}", "a line of another program\n".repeat(40));
    let others = [
        sar,
        "Device drivers r/s are described in iostat(1).\n",
        "The columns of vmstat are r b swpd free buff cache si so bi bo in cs us sy id wa st.\n",
        "r,b,swpd,free\n1,2,3,4\n",
        "{\"sysstat\": {\"hosts\": [{\"statistics\": [{\"cpu-load\": []}]}]}}",
        "{\"fio version\": \"fio-3.1\", \"disk_util\": []}",
        &late,
    ];
    for text in others {
        let kind = recognise(text).map_or("", |importer| importer.kind);
        assert!(!["iostat", "iostat-json", "vmstat", "mpstat"].contains(&kind), "{kind}: {text}");
    }
}

#[test]
fn no_two_importers_claim_one_text() {
    for text in [NEW_IOSTAT, JSON, VMSTAT, MPSTAT] {
        assert_eq!(importers().iter().filter(|importer| (importer.recognises)(text)).count(), 1);
    }
}

#[test]
fn figures_say_which_metric_they_are_whatever_their_tool_calls_them() {
    let values = |draft: &Draft, part: Option<&str>, metric: Metric| {
        let of = draft.steps[0].reported.iter().filter_map(|figure| figure.part_of(metric));
        of.filter(|(of, _)| *of == part).map(|(_, value)| (value * 1e6).round() / 1e6).collect::<Vec<_>>()
    };
    let vmstat = only("vmstat", VMSTAT);
    assert_eq!(values(&vmstat, None, Metric::HostUser), [25.0, 0.0], "guests are user code");
    assert_eq!(values(&vmstat, None, Metric::HostIdle), [50.0]);
    assert_eq!(values(&vmstat, None, Metric::RunQueue), [3.0]);
    assert_eq!(values(&only("mpstat", MPSTAT), None, Metric::HostUser), [20.0, 1.0, 1.5, 0.0]);
    let iostat = only("iostat", NEW_IOSTAT);
    let reads = figure_value(&iostat.steps[0], "sdx r/s");
    assert_eq!(values(&iostat, Some("sdx"), Metric::DeviceReads), [reads]);
    let kib = figure_value(&iostat.steps[0], "sdx rkB/s");
    assert_eq!(values(&iostat, Some("sdx"), Metric::DeviceReadMegabytes), [(kib * 1_024.0).round() / 1e6]);
    assert!(values(&iostat, None, Metric::DeviceBusy).is_empty(), "of the devices, not of all");
}

proptest! {
    #[test]
    fn damaged_text_never_panics(file in damaged(&[NEW_IOSTAT, JSON, VMSTAT, MPSTAT])) {
        survives(file);
    }
}
