use proptest::prelude::*;

use super::*;

const OLD: &str = "   8   0 sda 100 5 2000 30 50 6 400 70 0 80 100";
const DISCARDS: &str = " 8 0 sda 110 5 2016 40 60 6 480 90 1 95 130 1 2 3 4";
const FLUSHES: &str = "259 0 nvme0n1 7 0 56 1 9 0 72 2 0 3 3 0 0 0 0 11 12";

fn counts(line: &str) -> DiskCounts {
    diskstats(line).next().unwrap().counts
}

#[test]
fn reads_the_diskstats_of_every_kernel() {
    let text = [OLD, DISCARDS, FLUSHES, "8 1 sda1 4 3 2 1", "nonsense"].join("\n");
    let rows: Vec<_> = diskstats(&text).collect();
    assert_eq!(rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["sda", "sda", "nvme0n1"]);
    assert_eq!(rows[2].number, DeviceNumber { major: 259, minor: 0 });
    assert_eq!(rows.iter().map(|row| row.counts.flushes).collect::<Vec<_>>(), [None, None, Some(11)]);
}

#[test]
fn a_device_difference_is_in_bytes_and_nanoseconds() {
    assert_eq!(
        counts(DISCARDS).since(&counts(OLD), "sda", 1_000),
        Some(DeviceStats {
            name: "sda".to_owned(),
            elapsed_ns: 1_000,
            reads: 10,
            read_bytes: 16 * 512,
            read_time_ns: 10_000_000,
            writes: 10,
            write_bytes: 80 * 512,
            write_time_ns: 20_000_000,
            flushes: None,
            busy_ns: 15_000_000,
            weighted_ns: 30_000_000,
        })
    );
}

#[test]
fn a_device_that_counts_backwards_has_no_difference() {
    assert_eq!(counts(OLD).since(&counts(DISCARDS), "sda", 1), None);
}

#[test]
fn a_32_bit_time_that_wraps_goes_on() {
    let before = counts("8 0 sda 1 0 8 4294967290 0 0 0 0 0 0 4294967000");
    let after = counts("8 0 sda 2 0 16 4 0 0 0 0 0 0 200");
    let stats = after.since(&before, "sda", 1).unwrap();
    assert_eq!(stats.read_time_ns, 10_000_000);
    assert_eq!(stats.weighted_ns, 496_000_000);
}

#[test]
fn a_time_that_only_stepped_back_is_refused() {
    assert_eq!(wrapping_ms(995, 1_000), None);
    assert_eq!(wrapping_ms(0, u64::MAX), None);
}

#[test]
fn host_processor_time_adds_nice_and_interrupts_but_not_guests() {
    let stat = "cpu  100 10 50 1000 20 3 4 5 60 0\ncpu0 1 2 3 4\nintr 5\n";
    assert_eq!(
        host_cpu(stat, 100),
        Some(CpuTime {
            user_ns: 1_100_000_000,
            system_ns: 570_000_000,
            iowait_ns: Some(200_000_000),
            steal_ns: Some(50_000_000),
            idle_ns: Some(10_000_000_000),
        })
    );
}

#[test]
fn an_old_kernel_leaves_the_later_columns_unknown() {
    let time = host_cpu("cpu  100 0 50 1000\n", 100).unwrap();
    assert_eq!((time.iowait_ns, time.steal_ns, time.idle_ns), (None, None, Some(10_000_000_000)));
    assert_eq!(host_cpu("cpu  100 0 50\n", 100), None);
    assert_eq!(host_cpu("cpu  100 0 50 1000\n", 0), None);
}

#[test]
fn io_wait_that_falls_is_unknown_and_takes_nothing_else_with_it() {
    let earlier = host_cpu("cpu 100 0 50 1000 30 0 0 0\n", 100).unwrap();
    let later = host_cpu("cpu 150 0 60 1100 29 0 0 2\n", 100).unwrap();
    let between = cpu_between(&earlier, &later).unwrap();
    assert_eq!(between.user_ns, 500_000_000);
    assert_eq!(between.iowait_ns, None);
    assert_eq!(between.steal_ns, Some(20_000_000));
    assert_eq!(cpu_between(&later, &earlier), None);
}

#[test]
fn process_io_is_what_reached_storage_not_what_was_asked_for() {
    let text = "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 0\n";
    assert_eq!(process_io(text), Some(ProcessIo { read_bytes: 4096, write_bytes: 512 }));
    assert_eq!(process_io("rchar: 9\n"), None);
    let earlier = ProcessIo { read_bytes: 1, write_bytes: 9 };
    let later = ProcessIo { read_bytes: 2, write_bytes: 3 };
    assert_eq!(io_between(&earlier, &later), None);
}

#[test]
fn kernel_kilobytes_are_1024_bytes() {
    let status = "Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t  12 kB\n";
    assert_eq!(kib_field_bytes(status, "VmHWM"), Some(12 << 10));
    assert_eq!(kib_field_bytes(status, "VmRSS"), None);
    assert_eq!(kib_field_bytes("VmHWM: 18446744073709551615 kB", "VmHWM"), None);
}

/// Text near enough to the kernel's to get past the first checks.
fn almost_a_table() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        Just("cpu".to_owned()),
        Just("read_bytes:".to_owned()),
        Just("VmHWM:".to_owned()),
        Just("kB".to_owned()),
        "\\PC{0,4}",
    ];
    let line = proptest::collection::vec(word, 0..24).prop_map(|words| words.join(" "));
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in prop_oneof![almost_a_table(), "(?s).{0,200}"], ticks in any::<u64>()) {
        let _ = host_cpu(&text, ticks);
        let _ = process_io(&text);
        let _ = kib_field_bytes(&text, "VmHWM");
        let rows: Vec<_> = diskstats(&text).collect();
        for row in &rows {
            for other in &rows {
                let _ = row.counts.since(&other.counts, row.name, 1);
            }
        }
    }

    #[test]
    fn a_wrapped_time_is_the_time_that_passed(start in 0u64..1 << 32, passed in 0u64..1 << 31) {
        prop_assert_eq!(wrapping_ms((start + passed) % (1 << 32), start), Some(passed));
    }
}

#[test]
fn a_process_is_read_whatever_its_name_is() {
    let text = "812 (a) S 1 (b) S 77 812 812 0 -1 4194624 1309 5 0 0 30 4 2 1 20 0 1 0 5521 231 9 18446744073709551615";
    let stat = ProcessStat { parent: 77, start_ticks: 5_521, user_ticks: 32, system_ticks: 5 };
    assert_eq!(process_stat(text), Some(stat));
    assert_eq!(process_stat("812 (postgres) S 77 812"), None);
    assert_eq!(process_stat(""), None);
    let own = process_stat(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
    assert_eq!(own.parent, std::os::unix::process::parent_id());
}

#[test]
fn reading_is_reported_only_where_all_of_it_is() {
    let reads = ProcessReads { called_bytes: 9_000, storage_bytes: 8_192 };
    assert_eq!(process_reads("rchar: 9000\nwchar: 1\nread_bytes: 8192\nwrite_bytes: 0\n"), Some(reads));
    assert_eq!(process_reads("read_bytes: 8192\n"), None);
}
