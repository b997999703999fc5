//! Results of fio: its JSON, its normal output and its terse rows.

use super::read;
use crate::Draft;
use model::record::Workload;
use model::record::{Outcome, Step};

/// What a job must have done in one direction: requests and KiB per second, mean and 99th percentile of `clat` in ns.
type Expected = (&'static str, f64, f64, f64, f64);

/// A file, its version and steps, and what some of the steps must be called and have measured.
type ExpectedFile = (&'static str, &'static str, usize, &'static [(usize, &'static str, &'static [Expected])]);

/// A document, its version and steps, what the first step must be called and have measured, and within which share.
type ExpectedDocument = (&'static str, &'static str, usize, &'static str, &'static [Expected], f64);

/// The only figure by that name.
fn figure_value(step: &Step, name: &str) -> f64 {
    let found: Vec<f64> =
        step.reported.iter().filter(|figure| figure.name == name).map(|figure| figure.value).collect();
    assert_eq!(found.len(), 1, "{name} of {}: {:?}", step.label, step.reported);
    found[0]
}

/// Asserts that counts, window and histogram give the figures within a share: text and whole requests are rounded.
fn assert_measured(step: &Step, expected: &[Expected], share: f64) {
    let near = |what: &str, value: f64, expected: f64, share: f64| {
        assert!((value - expected).abs() <= expected * share, "{what} of {}: {value}, not {expected}", step.label);
    };
    assert_eq!(step.operations.len(), expected.len(), "{}", step.label);
    for (way, iops, kib_per_s, mean_ns, p99_ns) in expected {
        let operation =
            step.operations.iter().find(|operation| operation.kind == *way).expect("the direction is there");
        let seconds = step.window.duration_ns as f64 / 1e9;
        let (count, bytes) = match *way {
            "read" => (step.counters.physical_reads, step.counters.physical_read_bytes),
            _ => (step.counters.physical_writes, step.counters.physical_write_bytes),
        };
        assert_eq!(count, Some(operation.count));
        near("requests per second", operation.count as f64 / seconds, *iops, share);
        near("KiB/s", bytes.unwrap() as f64 / 1_024.0 / seconds, *kib_per_s, share);
        near("mean", operation.service.mean_ns().unwrap(), *mean_ns, share.min(1e-4));
        let p99 = operation.service.quantile_ns(0.99).unwrap() as f64;
        near("p99", p99, *p99_ns, 1e-3);
        assert_eq!(operation.service, operation.response);
    }
    assert_eq!(step.counters.operations, Some(step.operations.iter().map(|operation| operation.count).sum()));
}

/// The runs of a file, of which there must be one.
fn one(kind: &str, file: &str) -> Option<Draft> {
    let mut drafts = read(kind, file)?;
    assert_eq!(drafts.len(), 1, "{file}");
    let draft = drafts.pop()?;
    assert_eq!((draft.workload, draft.program), (Workload::Io, "fio"));
    let labels: std::collections::BTreeSet<&str> = draft.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels.len(), draft.steps.len(), "labels are unique");
    Some(draft)
}

#[test]
fn every_document_gives_its_first_job_as_listed() {
    #[rustfmt::skip]
    let files: [ExpectedDocument; 12] = [
        ("arau_312_randrw32k", "3.12", 1, "vol0",
            &[("read", 225.893944, 7228.0, 20349678.747112, 624951296.0), ("write", 224.677039, 7189.0, 50706022.898989, 666894336.0)], 1e-3),
        ("arau_312_two_concatenated_docs", "3.12", 1, "vol0", &[("write", 457.18591, 1828.0, 34979929.88508, 708837376.0)], 1e-3),
        ("benson_333_leading_note_line", "3.33", 1, "sequential_read",
            &[("read", 7662.030309, 30648.0, 7881155.058386, 35913728.0), ("write", 39338.066766, 157352.0, 886230.578053, 6848512.0)], 1e-3),
        ("oci_319_group_sum_mixed_bs", "3.19", 1, "data-8k",
            &[("read", 52445.780002, 443524.0, 2019076.192838, 5931008.0), ("write", 22712.252294, 260808.0, 2373485.113369, 7110656.0)], 1e-3),
        ("oci_319_oracle_6jobs_data_redo_fra", "3.19", 6, "data-8k",
            &[("read", 5237.574935, 41900.0, 2016076.404575, 31326208.0), ("write", 2245.296383, 17962.0, 2397775.607107, 31588352.0)], 1e-3),
        ("oci_319_randrw4k_multipath", "3.19", 1, "randrw-4k",
            &[("read", 127296.897526, 509187.0, 675867.916233, 1269760.0), ("write", 54536.962192, 218147.0, 730367.961491, 1335296.0)], 1e-3),
        ("oci_335_oracle_6jobs_iscsi_qd128", "3.35", 6, "data-8k",
            &[("read", 12167.581387, 97340.0, 867307.745614, 1941504.0), ("write", 5212.464646, 41699.0, 1006712.521009, 3325952.0)], 1e-3),
        ("pbench_319_8jobs_nvme_rw", "3.19", 8, "job-/dev/nvme8n1",
            &[("read", 96.77941, 387.0, 325444045.939162, 985661440.0), ("write", 96.729827, 386.0, 325691042.172826, 985661440.0)], 3e-3),
        ("pkb_214_5jobs_clat_usec", "2.1.4", 5, "sequential_write", &[("write", 133.0, 68118.0, 477734840.0, 823296000.0)], 8e-3),
        ("pkb_217_rand16k_hist", "2.17", 2, "rand_16k_read_100%-io-depth-1-num-jobs-2",
            &[("read", 8086.673998, 129386.0, 238357.679, 1352000.0)], 1e-3),
        ("vc_313_leading_error_text", "3.13", 1, "fiotest", &[("read", 49501.318267, 197509.0, 5922036.884193, 10420224.0)], 1e-3),
        ("vc_326_randwrite_4k_d1", "3.26", 1, "fio_randwrite_1GB_4k_d1_th1_direct", &[("write", 2167.231601, 8668.0, 418473.267365, 264192.0)], 1e-3),
    ];
    for (file, version, jobs, name, expected, share) in files {
        let Some(draft) = one("fio-json", &format!("fio_json/{file}.json")) else { return };
        assert_eq!((draft.version.as_str(), draft.steps.len()), (version, jobs), "{file}");
        let step = &draft.steps[0];
        assert_eq!(step.label, name);
        assert_measured(step, expected, share);
        for (way, iops, bw, mean_ns, p99_ns) in expected {
            let (latency, unit_ns) = if version.starts_with('2') { ("clat", 1e3) } else { ("clat_ns", 1.0) };
            let read =
                ["iops".to_owned(), "bw".to_owned(), format!("{latency} mean"), format!("{latency} percentile 99")]
                    .map(|figure| figure_value(step, &format!("{way} {figure}")));
            assert_eq!(read, [*iops, *bw, *mean_ns / unit_ns, *p99_ns / unit_ns], "{file}");
        }
    }
}

#[test]
fn documents_tell_load_time_and_errors() {
    let Some(failed) = one("fio-json", "fio_json/vc_313_leading_error_text.json") else { return };
    let Outcome::Failed { error } = &failed.steps[0].outcome else { panic!("{:?}", failed.steps[0].outcome) };
    assert!(error.contains("42") && error.contains("Illegal byte sequence"), "{error}");
    assert_eq!(failed.steps[0].load.sessions, Some(512));

    let clones = one("fio-json", "fio_json/oci_335_oracle_6jobs_iscsi_qd128.json").unwrap();
    let sessions: Vec<Option<u32>> = clones.steps.iter().map(|step| step.load.sessions).collect();
    assert_eq!(sessions, [16, 16, 16, 16, 1, 8].map(Some));
    assert_eq!(clones.steps[1].label, "data-8k #2");
    assert_eq!(clones.steps[4].waits.len(), 1, "redo was synced");

    let summed = one("fio-json", "fio_json/oci_319_group_sum_mixed_bs.json").unwrap();
    assert_eq!(summed.steps[0].load.sessions, None, "options are of one job, figures of several kinds");
    let one_kind = one("fio-json", "fio_json/pkb_217_rand16k_hist.json").unwrap();
    assert_eq!(one_kind.steps[0].load.sessions, Some(2));
    assert_eq!(one_kind.parameters["BLOCK_SIZE"], "16K");

    let interrupted = one("fio-json", "fio_json/benson_333_leading_note_line.json").unwrap();
    assert_eq!(interrupted.steps[0].outcome, Outcome::Interrupted);
}

#[test]
fn normal_output_gives_what_is_listed() {
    #[rustfmt::skip]
    let files: [ExpectedFile; 5] = [
        ("ceph_216_four_groups_16jobs_randread4k.out", "2.16", 4, &[
            (0, "ceph-fuse-replicated", &[("read", 271.0, 1084.9, 455539490.0, 603e6)]),
            (1, "ceph-fuse-erasure_1", &[("read", 155.5, 623.99, 789630340.0, 1221e6)]),
        ]),
        ("ceph_216_four_groups_rw1M.out", "2.16", 4, &[
            (0, "ceph-fuse-replicated", &[("read", 11.69, 11975.0, 5302.05e6, 7308e6), ("write", 10.61, 10869.0, 5238048.96e3, 7177e6)]),
        ]),
        ("ceph_2210_rw_4k.out", "2.2.10", 1, &[
            (0, "ceph-erasure-2-1", &[("read", 136.08, 544.35, 114.15e6, 358400e3), ("write", 136.47, 545.88, 120.50e6, 371e6)]),
        ]),
        ("rafmoshe_341_phase2.log", "3.41", 1, &[
            (0, "test-example-phase2", &[("read", 1399.99, 11200.0, 1130.98e3, 10159e3), ("write", 1399.99, 11200.0, 626.71e3, 10552e3)]),
        ]),
        ("rafmoshe_341_randrw_rate_capped.log", "3.41", 1, &[
            (0, "test-example-phase1", &[("read", 699.99, 2800.0, 2451.73e3, 20317e3), ("write", 299.99, 1200.0, 2263.75e3, 19268e3)]),
        ]),
    ];
    for (file, version, steps, expected) in files {
        let Some(draft) = one("fio-text", &format!("fio_text/{file}")) else { return };
        assert_eq!((draft.version.as_str(), draft.steps.len()), (version, steps), "{file}");
        for (at, name, expected) in expected {
            assert_eq!(draft.steps[*at].label, *name);
            assert_measured(&draft.steps[*at], expected, 5e-3);
        }
    }
    let draft = one("fio-text", "fio_text/ceph_216_four_groups_16jobs_randread4k.out").unwrap();
    let [first, second] = [0, 1].map(|at| &draft.steps[at]);
    assert_eq!(
        (figure_value(first, "read iops"), figure_value(first, "read bw"), figure_value(first, "read clat mean")),
        (271.0, 1084.9, 455539.49)
    );
    assert_eq!((figure_value(second, "read iops"), figure_value(second, "read bw")), (155.0, 638967.0));
    assert_eq!(figure_value(second, "read clat percentile 99"), 1221.0);
    assert_eq!(second.load.sessions, Some(4 * 32));
    assert_eq!(draft.ended.unwrap().0.to_string(), "2018-03-01T14:14:54Z");
    let capped = one("fio-text", "fio_text/rafmoshe_341_randrw_rate_capped.log").unwrap();
    assert_eq!(figure_value(&capped.steps[0], "write iops"), 299.0);
}

#[test]
fn each_invocation_in_a_file_of_normal_output_is_a_run() {
    let Some(drafts) = read("fio-text", "fio_text/mdcallag_336_ser7_ext4_nj2.txt") else { return };
    let text =
        std::fs::read_to_string(super::folder().unwrap().join("fio_text/mdcallag_336_ser7_ext4_nj2.txt")).unwrap();
    let started = text.lines().filter(|line| line.starts_with("Starting ")).count();
    let jobs = text.lines().filter(|line| line.contains(": (groupid=")).count();
    assert_eq!((drafts.len(), drafts.iter().map(|draft| draft.steps.len()).sum::<usize>()), (started, jobs));
    assert_eq!((drafts[0].steps[0].label.as_str(), drafts[1].steps[1].label.as_str()), ("seqwrite", "sync_latency #2"));
    let mib = 1_024.0;
    assert_measured(&drafts[0].steps[0], &[("write", 113.66, 113.66 * mib, 8788.60e3, 30802e3)], 5e-3);
    assert_measured(&drafts[1].steps[0], &[("write", 22_139.0, 345.93 * mib, 44.87e3, 433e3)], 5e-3);
    assert_eq!(figure_value(&drafts[1].steps[0], "write iops"), 22_100.0);
    let synced = drafts.iter().flat_map(|draft| &draft.steps).filter(|step| !step.waits.is_empty()).count();
    let counted = |line: &&str| line.contains("issued rwts: total=") && !line.contains(",0 short=");
    assert_eq!(synced, text.lines().filter(counted).count());
    let with_syncs = |step: &&Step| step.reported.iter().any(|figure| figure.name == "sync lat mean");
    let reported_syncs = drafts.iter().flat_map(|draft| &draft.steps).filter(with_syncs).count();
    assert_eq!(reported_syncs, text.lines().filter(|line| line.contains("fsync/fdatasync/sync_file_range:")).count());
}

#[test]
fn the_blog_has_five_invocations() {
    let Some(folder) = super::folder() else { return };
    let Some(seeds) = folder.parent().map(|shared| shared.join("seeds")) else { return };
    let Some(seed) = std::fs::read_dir(seeds).ok().and_then(|files| {
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("003_")))
    }) else {
        return;
    };
    let source = crate::Source::open(&seed).unwrap();
    let (importer, drafts, notes) = crate::read(&source).unwrap();
    assert_eq!((importer.kind, notes.places()), ("fio-text", Vec::new()));
    let programs: Vec<&str> = drafts.iter().map(|draft| draft.program).collect();
    assert_eq!(programs[..5], ["fio"; 5]);
    let others = ["stress-ng", "stress-ng", "iperf3", "oratcptest", "oratcptest", "oratcptest"];
    assert_eq!(programs[5..], others, "what else stands there");
    let drafts = &drafts[..5];
    let requests: Vec<Option<u64>> = drafts.iter().map(|draft| draft.steps[0].counters.physical_reads).collect();
    assert_eq!(requests, [1_736_660, 1_243_592, 1_736_983, 6_051_085, 4_514_208].map(Some));
    let sessions: Vec<Option<u32>> = drafts.iter().map(|draft| draft.steps[0].load.sessions).collect();
    assert_eq!(sessions, [1_024, 1, 1_024, 1_024, 4].map(Some));
    assert_eq!(drafts[3].target.address, "/dev/asmdiskreco01");
    assert_eq!(drafts[0].target.facts.files.direct_io, Some(true));
}

#[test]
fn terse_rows_are_taken_once_and_completed_by_normal_output() {
    for (file, expected) in [
        (
            "fio_terse/hikalium_328_terse_v3_plus_normal_nvme.txt",
            [("read", 88_704.0, 86.0, 80_563.178093), ("write", 72_822.0, 71.0, 97_940.481140)],
        ),
        (
            "fio_terse/hikalium_328_terse_v3_plus_normal_usb.txt",
            [("read", 52_883.0, 51.0, 135_224.217241), ("write", 13_167.0, 12.0, 542_905.780966)],
        ),
    ] {
        let Some(draft) = one("fio-terse", file) else { return };
        assert_eq!((draft.version.as_str(), draft.steps.len()), ("3.28", 8));
        for (step, (way, bw, iops, mean_us)) in draft.steps.iter().zip(expected) {
            let read = ["bw", "iops", "clat mean"].map(|figure| figure_value(step, &format!("{way} {figure}")));
            assert_eq!(read, [bw, iops, mean_us], "{file}");
            let operation = &step.operations[0];
            assert_eq!((step.operations.len(), operation.kind.as_str()), (1, way));
            assert!((operation.service.mean_ns().unwrap() / 1e3 - mean_us).abs() < 0.001);
            assert!(operation.count as f64 / (step.window.duration_ns as f64 / 1e9) - iops < 1.0);
        }
        assert_eq!(draft.steps[0].label, "Seq1M-Read-Q8");
        assert_eq!(draft.steps[0].load.sessions, Some(8));
        assert!(draft.ended.is_some());
    }
    let nvme = one("fio-terse", "fio_terse/hikalium_328_terse_v3_plus_normal_nvme.txt").unwrap();
    assert_eq!(nvme.steps[0].counters.physical_reads, Some(1_024), "counted, not computed");
}

#[test]
fn terse_rows_alone_give_what_they_have() {
    let Some(draft) = one("fio-terse", "fio_terse/jtulak_212_terse_v3_only.out") else { return };
    assert_eq!((draft.version.as_str(), draft.steps.len()), ("2.1.2", 12));
    for (at, expected) in [
        (0, [("read", 651.0, 5_208.0, 4_610.434417, 74_240.0), ("write", 162.0, 1_300.0, 5_995.006728, 74_240.0)]),
        (1, [("read", 687.0, 5_499.0, 4_342.305592, 73_216.0), ("write", 172.0, 1_377.0, 5_744.443162, 74_240.0)]),
    ] {
        let step = &draft.steps[at];
        let in_ns = expected.map(|(way, iops, bw, mean, p99)| (way, iops, bw, mean * 1e3, p99 * 1e3));
        assert_measured(step, &in_ns, 3e-3);
        for (way, iops, bw, mean_us, p99_us) in expected {
            let read = ["iops", "bw", "clat mean", "clat percentile 99"]
                .map(|figure| figure_value(step, &format!("{way} {figure}")));
            assert_eq!(read, [iops, bw, mean_us, p99_us]);
        }
    }
    assert_eq!(draft.steps[0].load.sessions, None, "rows tell no options");
    assert!(draft.notes.iter().any(|note| note.contains("no count of requests")), "{:?}", draft.notes);
}
