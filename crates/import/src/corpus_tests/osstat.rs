//! What iostat, vmstat and mpstat said on other people's machines.

use super::read;
use crate::{Began, Draft};
use model::record::Workload;
use model::record::{Step, Timestamp};

/// The machine below the first seed: a node of a cluster with eight processors, watched every three seconds.
const NODE: &str = "flashgrid/asm-p30x2/cache-on/awr_p30x2_d8s_s40_t1_wu4";

fn only(kind: &str, file: &str) -> Option<Draft> {
    let mut drafts = read(kind, file)?;
    assert_eq!((drafts.len(), drafts[0].steps.len(), drafts[0].workload), (1, 1, Workload::Host), "{file}");
    Some(drafts.remove(0))
}

/// A figure of a step, to three digits after the point; absent ones are -1.
fn figure_value(step: &Step, name: &str) -> f64 {
    let found = step.reported.iter().find(|figure| figure.name == name).map_or(-1.0, |figure| figure.value);
    (found * 1e3).round() / 1e3
}

fn wall(text: &str) -> Option<Began> {
    Some(Began::Wall(Timestamp(text.parse().unwrap())))
}

/// Intervals, and the window in whole seconds.
fn length(draft: &Draft) -> (usize, u64) {
    (draft.steps[0].intervals.len(), draft.steps[0].window.duration_ns / 1_000_000_000)
}

#[test]
fn the_three_tools_agree_on_the_node_of_the_first_seed() {
    let (Some(iostat), Some(vmstat), Some(mpstat)) = (
        only("iostat", &format!("{NODE}/iostat.out")),
        only("vmstat", &format!("{NODE}/vmstat.out")),
        only("mpstat", &format!("{NODE}/mpstat.out")),
    ) else {
        return;
    };
    for draft in [&iostat, &vmstat, &mpstat] {
        assert_eq!((draft.began, length(draft)), (wall("2020-02-10T20:32:26Z"), (214, 642)), "{}", draft.program);
    }
    let idle = [&iostat, &vmstat, &mpstat]
        .map(|draft| figure_value(&draft.steps[0], if draft.program == "vmstat" { "id" } else { "%idle" }));
    assert!(idle.iter().all(|percent| (percent - 10.79).abs() < 0.01), "{idle:?}");
    assert_eq!(iostat.environment.cpus, Some(8));
    // Both report the same processor time, though they round it on their own.
    let user_ns = [&iostat, &mpstat].map(|draft| draft.steps[0].host_cpu.unwrap().user_ns as f64);
    assert!((user_ns[0] / user_ns[1] - 1.0).abs() < 1e-3, "{user_ns:?}");
    let first = &mpstat.steps[0].intervals[0];
    assert_eq!((first.reported["%usr"], first.reported["%idle"]), (6.14, 86.15));
    assert_eq!(vmstat.steps[0].intervals[2].reported["bi"], 43_241.0);
    assert!(iostat.steps[0].devices.iter().any(|device| device.name == "sde" && device.reads > 0));
}

#[test]
fn iostat_of_several_versions_is_read() {
    let Some(long) = only("iostat", "osstat/gregs_480_iostat.log") else { return };
    assert_eq!((long.began, length(&long)), (wall("2020-08-28T21:33:57.519Z"), (600, 600)));
    assert_eq!((long.environment.hostname.as_deref(), long.environment.cpus), (Some("rising"), Some(24)));
    assert_eq!(long.steps[0].devices.iter().filter(|device| device.reads > 0).count(), 2);
    let ubuntu = only("iostat", "osstat/gregs_iostat-ubuntu-20.04.log").unwrap();
    assert_eq!((length(&ubuntu), figure_value(&ubuntu.steps[0], "nvme1n1 w/s")), ((6, 6), 0.333));
    let old = only("iostat", "osstat/gregs_iostat.log").unwrap();
    assert_eq!((length(&old), old.steps[0].intervals[0].reported["sdc r/s"]), ((12, 60), 5_999.6));
    assert!(old.steps[0].devices.is_empty(), "one await for reads and writes");
    let plain = only("iostat", "osstat/jc_centos-7.7_iostat-1.out").unwrap();
    assert_eq!(
        (length(&plain), figure_value(&plain.steps[0], "%idle"), figure_value(&plain.steps[0], "sda tps")),
        ((2, 0), 100.0, 0.0)
    );
    let pbench = only("iostat", "osstat/pbench_iostat-0.txt").unwrap();
    assert_eq!((pbench.began, length(&pbench)), (wall("2019-03-14T00:42:24Z"), (3, 15)));
    assert_eq!(pbench.steps[0].intervals[2].reported["sdc r/s"], 4.0);
    for (file, device, figure, value) in [
        ("jc_centos-7.7_iostat-mx.out", "sda", "avgrq-sz", 52.51),
        ("jc_ubuntu-18.04_iostat-mx.out", "loop0", "r_await", 16.9),
        ("jc_ubuntu-18.04_iostat-x.out", "loop0", "rkB/s", 0.79),
        ("jc_ubuntu-20.10_iostat-x.out", "dm-0", "wareq-sz", 18.04),
    ] {
        let boot = only("iostat", &format!("osstat/{file}")).unwrap();
        assert_eq!(
            (length(&boot), figure_value(&boot.steps[0], &format!("{device} {figure}"))),
            ((1, 0), value),
            "{file}"
        );
        assert!(boot.notes[0].contains("since the machine started"), "{file}");
    }
}

#[test]
fn iostat_json_is_read() {
    let Some(draft) = only("iostat-json", "osstat/oci_iostat_sysstat_json_balanced_multi.json") else { return };
    assert_eq!(
        (length(&draft), draft.environment.cpus),
        ((35, 0), Some(16)),
        "36 samples, of which the first is since boot"
    );
    let last = &draft.steps[0].intervals[34].reported;
    let sda = ["r/s", "w/s", "wMB/s", "wrqm/s", "%wrqm", "w_await", "wareq-sz", "svctm", "%util"]
        .map(|name| last[&format!("sda {name}")]);
    assert_eq!(sda, [0.0, 1.5, 0.04, 0.5, 25.0, 0.87, 28.27, 0.67, 0.1]);
    assert!(!last.contains_key("sda r_await"), "nothing was read");
}

#[test]
fn vmstat_of_several_forms_is_read() {
    let Some(prefixed) = only("vmstat", "osstat/gregs_480_vmstat.log") else { return };
    assert_eq!((prefixed.began, length(&prefixed)), (wall("2020-08-28T21:33:57.520Z"), (600, 600)));
    assert_eq!(prefixed.steps[0].intervals[0].reported["cs"], 350_816.0);
    let reported_in =
        |file: &str, name: &str| figure_value(&only("vmstat", &format!("osstat/{file}")).unwrap().steps[0], name);
    assert_eq!(reported_in("jc_centos-7.7_vmstat-a.out", "active"), 312_736.0);
    assert_eq!(reported_in("jc_centos-7.7_vmstat-w.out", "cache"), 741_208.0);
    assert_eq!(reported_in("jc_generic_vmstat-extra-wide.out", "id"), 96.0);
    let timed = only("vmstat", "osstat/jc_centos-7.7_vmstat-at-5-10.out").unwrap();
    assert_eq!((timed.began, length(&timed)), (wall("2021-09-16T20:33:13Z"), (3, 15)));
    assert_eq!(length(&only("vmstat", "osstat/jc_ubuntu-18.04_vmstat-1-long.out").unwrap()), (36, 0));
    assert_eq!(length(&only("vmstat", "osstat/mdcallag_vmstat_pointquery.txt").unwrap()), (334, 0));
    let wide = only("vmstat", "osstat/pbench_vmstat.txt").unwrap();
    assert_eq!((wide.began, length(&wide)), (wall("2015-02-19T19:24:20Z"), (45, 2_700)));
}

#[test]
fn mpstat_of_several_forms_is_read() {
    let Some(halves) = only("mpstat", "osstat/jc_centos-7.7_mpstat-A-2-5.out") else { return };
    assert_eq!((halves.began, length(&halves)), (wall("2022-03-11T15:16:15Z"), (5, 10)));
    let interrupts: Vec<f64> =
        halves.steps[0].intervals[..2].iter().map(|interval| interval.reported["intr/s"]).collect();
    assert_eq!(interrupts, [55.5, 56.5]);
    let boot = only("mpstat", "osstat/jc_centos-7.7_mpstat-A.out").unwrap();
    assert_eq!((length(&boot), figure_value(&boot.steps[0], "%idle")), ((1, 0), 99.4));
    let midnight = only("mpstat", "osstat/pbench_mpstat-0.txt").unwrap();
    assert_eq!((midnight.began, length(&midnight)), (wall("2015-05-18T23:59:16Z"), (10, 100)));
    let guests = only("mpstat", "osstat/pbench_mpstat.txt").unwrap();
    assert_eq!((length(&guests), guests.steps[0].intervals[0].reported["%guest"]), ((21, 63), 30.63));
}
