use proptest::prelude::*;

use super::{cell, counted_range, is_bucket, ranges, total, *};
use crate::oracle::table::{self, Report, ReportKind, Table};
use crate::{Notes, Source};
use model::record::Timestamp;

const MAIN: [&str; 8] = ["<8us", "<16us", "<32us", "<64us", "<128us", "<256us", "<512us", ">=512us"];
const UP_TO_32_MS: [&str; 8] = ["<512us", "<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", ">=32ms"];
const UP_TO_2_S: [&str; 8] = ["<32ms", "<64ms", "<1/8s", "<1/4s", "<1/2s", "<1s", "<2s", ">=2s"];

/// What is reported on the tables of one event, each with the heading of its number of waits, that number, its columns and its cells.
fn bucket_counts(tables: &[(&str, &str, &[&str], &[&str])], waits: u64) -> Option<Vec<(u64, Option<u64>, u64)>> {
    let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>();
    let table = |(heading, number, labels, cells): &(&str, &str, &[&str], &[&str])| Table {
        title: "Wait Event Histogram".to_owned(),
        columns: owned(&[&["Event", heading], *labels].concat()),
        rows: vec![table::Row { line: 1, cells: owned(&[&["tape read", number], *cells].concat()) }],
        ..Table::default()
    };
    let tables = tables.iter().map(table).collect();
    let report = Report { kind: ReportKind::AwrSingle, is_on_pdb: false, tables, ended: true, last_line: 1 };
    let source = Source::new("x", b"x".to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let mut notes = Notes::new(&source);
    let tables = bucket_tables(&report, &mut notes);
    assert!(notes.is_empty(), "{notes:?}");
    let read: Vec<Row> = tables.iter().map(|table| table.row(&table.table.rows[0]).unwrap()).collect();
    let rows: Vec<(&Buckets<'_>, &Row)> = tables.iter().zip(&read).collect();
    let buckets = join(&rows, waits)?;
    Some(buckets.iter().map(|bucket| (bucket.from_ns, bucket.to_ns, bucket.count)).collect())
}

/// The same of tables whose numbers of waits are missing.
fn joined(tables: &[(&[&str], &[&str])], waits: u64) -> Option<Vec<(u64, Option<u64>, u64)>> {
    let without: Vec<(&str, &str, &[&str], &[&str])> =
        tables.iter().map(|(labels, cells)| ("Total Waits", "", *labels, *cells)).collect();
    bucket_counts(&without, waits)
}

#[test]
fn edges_are_powers_of_two_of_microseconds() {
    let edges = |labels: &[&str]| -> Vec<u64> {
        ranges(labels, true).unwrap().iter().filter_map(|(_, to)| *to).map(|ns| ns / 1_000).collect()
    };
    assert_eq!(edges(&MAIN), [8, 16, 32, 64, 128, 256, 512]);
    assert_eq!(edges(&UP_TO_2_S), [1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21]);
    let cut = ["<512", "<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", ">=32m"];
    assert_eq!(edges(&cut), edges(&UP_TO_32_MS), "text reports cut their headings");
    let minutes = ["<2s", "<4s", "<8s", "<16s", "<32s", "< 1m", "< 2m", ">=2m"];
    assert_eq!(edges(&minutes), [1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 27]);
    let hour = ["<2m", "<4m", "<8m", "<1/4h", "<1/2h", "<1h", ">=1h"];
    assert_eq!(edges(&hour), [1 << 27, 1 << 28, 1 << 29, 1 << 30, 1 << 31, 1 << 32]);
}

#[test]
fn milliseconds_stay_milliseconds_where_nothing_is_shorter() {
    let old = ["<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", "<=1s", ">1s"];
    let edges: Vec<u64> = ranges(&old, false).unwrap().iter().filter_map(|(_, to)| *to).collect();
    assert_eq!(edges, [1, 2, 4, 8, 16, 32, 1024].map(|ms| ms * 1_000_000));
}

#[test]
fn headings_that_do_not_rise_are_not_understood() {
    assert_eq!(ranges(&["<8us", "<4us", ">=4us"], true), None);
    assert_eq!(ranges(&["<8us", "<apples", ">=1s"], true), None);
    assert_eq!(ranges(&["<8us"], true), None);
    assert!(!is_bucket("Event") && !is_bucket("< of waits") && is_bucket("<= 1s"));
}

#[test]
fn tables_are_joined_where_they_meet() {
    let buckets = joined(
        &[
            (&MAIN, &["", "", "", "", "10.0", "20.0", "30.0", "40.0"]),
            (&UP_TO_32_MS, &["60.0", "10.0", "15.0", "5.0", "", "", "", "10.0"]),
            (&UP_TO_2_S, &["90.0", "6.0", "", "", "", "", "4.0", ""]),
        ],
        1_000,
    );
    let us = |us: u64| us * 1_000;
    let expected = vec![
        (us(64), Some(us(128)), 100),
        (us(128), Some(us(256)), 200),
        (us(256), Some(us(512)), 300),
        (us(512), Some(us(1_024)), 100),
        (us(1_024), Some(us(2_048)), 150),
        (us(2_048), Some(us(4_096)), 50),
        (us(32_768), Some(us(65_536)), 60),
        (us(1 << 20), Some(us(1 << 21)), 40),
    ];
    assert_eq!(buckets, Some(expected));
}

#[test]
fn an_event_that_a_middle_table_leaves_out_has_nothing_there() {
    let buckets = joined(
        &[(&MAIN, &["", "", "", "", "", "", "98.0", "2.0"]), (&UP_TO_2_S, &["98.0", "2.0", "", "", "", "", "", ""])],
        100,
    );
    assert_eq!(buckets, Some(vec![(256_000, Some(512_000), 98), (32_768_000, Some(65_536_000), 2)]));
}

#[test]
fn what_lies_above_the_first_table_stays_open_where_no_other_tells() {
    let buckets = joined(&[(&MAIN, &["", "", "", "", "", "", "98.0", "2.0"])], 100);
    assert_eq!(buckets, Some(vec![(256_000, Some(512_000), 98), (512_000, None, 2)]));
}

#[test]
fn traces_and_exact_counts_are_more_than_nothing() {
    let buckets = joined(&[(&["<1ms", "<2ms", "<4ms", ">=4ms"], &["99.9", ".0", "0.0(7)", ""])], 1_000_000).unwrap();
    assert_eq!(buckets[2], (2_000_000, Some(4_000_000), 7));
    assert!((1..=500).contains(&buckets[1].2), "{buckets:?}");
    assert_eq!(buckets.iter().map(|bucket| bucket.2).sum::<u64>(), 1_000_000);
    let few = joined(&[(&["<1ms", "<2ms", ">=2ms"], &["100.0", ".0", ".0"])], 5_000).unwrap();
    assert!(few[1].2 >= 1 && few[2].2 >= 1, "{few:?}");
}

#[test]
fn percentages_far_from_a_hundred_are_refused() {
    assert_eq!(joined(&[(&["<1ms", "<2ms", ">=2ms"], &["40.0", "20.0", "1.0"])], 1_000), None);
    assert_eq!(joined(&[(&["<1ms", "<2ms", ">=2ms"], &["100.0", "0.0(2000)", ""])], 1_000), None);
    assert_eq!(cell("1,0,x"), None);
    assert_eq!(cell("300"), None);
}

#[test]
fn rounded_numbers_of_waits_know_how_rounded_they_are() {
    let of = |text: &str| total(text).map(|total| (total.waits, total.off));
    assert_eq!(
        ["2464", "4.8M", "359K", "12.3K", "7M", "1,234"].map(of),
        [
            Some((2_464, 0)),
            Some((4_800_000, 50_000)),
            Some((359_000, 50)),
            Some((12_300, 50)),
            Some((7_000_000, 50_000)),
            Some((1_234, 0)),
        ]
    );
    assert_eq!(["", "K", "many", "118.6"].map(of), [None, None, None, None]);
}

const MS: u64 = 1_024_000;

fn of_tail(waits: u64, number: &str, cells: &[&str]) -> Vec<(u64, Option<u64>, u64)> {
    let all = waits.to_string();
    let main = ["", "", "", "", "", "", cells[0], ".1"];
    let tables: [(&str, &str, &[&str], &[&str]); 2] =
        [("Total Waits", &all, &MAIN, &main), ("Waits 64ms  to 2s", number, &UP_TO_2_S, cells)];
    let reported = bucket_counts(&tables, waits).unwrap();
    assert_eq!(reported.iter().map(|bucket| bucket.2).sum::<u64>(), waits, "{reported:?}");
    reported.into_iter().filter(|bucket| bucket.0 >= 32 * MS).collect()
}

#[test]
fn a_heading_tells_of_which_durations_its_waits_are() {
    let of = |heading: &str, labels: &[&str], micro| counted_range(heading, &ranges(labels, micro).unwrap(), micro);
    let us = |from: u64, to: u64| Some((from * 1_000, Some(to * 1_000)));
    assert_eq!(of("Waits 64ms  to 2s", &UP_TO_2_S, true), us(1 << 15, 1 << 21));
    assert_eq!(of("Waits 1ms to 32m", &UP_TO_32_MS, true), us(512, 1 << 15), "cut in text");
    let shortest = ["<1us", "<2us", "<4us", "<8us", "<16us", "<32us", "<64us", ">=64us"];
    assert_eq!(of("Waits 1us - 64us", &shortest, true), us(0, 64), "its first column is not below the range");
    let minutes = ["<2s", "<4s", "<8s", "<16s", "<32s", "< 1m", "< 2m", ">=2m"];
    assert_eq!(of("Waits 4s   to 2m", &minutes, true), us(1 << 21, 1 << 27));
    assert_eq!(of("Waits 4s to 2m", &minutes, false), Some((2_048_000_000, Some(131_072_000_000))));
    let hour = ["<2m", "<4m", "<8m", "<1/4h", "<1/2h", "<1h", ">=1h"];
    assert_eq!(of("Waits 4m to 1h", &hour, true), us(1 << 27, 1 << 32));
    for other in ["Total Waits", "Waits", "Waits 64ms", "Waits 64ms to 1s", "Waits 1ms to 2s"] {
        assert_eq!(of(other, &UP_TO_2_S, true), None, "{other}");
    }
}

#[test]
fn what_a_table_counts_in_its_range_is_what_lies_there() {
    // A million waits: a tenth of a percent are a thousand of them, and 1,049 are printed as one too.
    let tail = of_tail(1_000_000, "1049", &["99.9", ".1", "", "", "", "", "", ""]);
    assert_eq!(tail, [(32 * MS, Some(64 * MS), 1_049)]);
    let tail = of_tail(1_000_000, "3049", &["99.7", ".2", "", ".1", "", "", "", ""]);
    assert_eq!(tail.iter().map(|bucket| bucket.2).sum::<u64>(), 3_049);
    assert!(tail[0].2.abs_diff(2_024) <= 1 && tail[1].2.abs_diff(1_024) <= 1, "{tail:?}");
}

#[test]
fn few_of_many_waits_are_one_bucket_as_wide_as_their_cells() {
    let cells = ["100.0", ".0", "", ".0", ".0", "", "", ""];
    assert_eq!(of_tail(4_000_000, "52", &cells), [(32 * MS, Some(512 * MS), 52)], "nothing says how they are divided");
    let each = [(32, 64), (128, 256), (256, 512)].map(|(from, to)| (from * MS, Some(to * MS), 1));
    assert_eq!(of_tail(4_000_000, "3", &cells), each);
    assert_eq!(of_tail(4_000_000, "52", &["100.0", "", "", ".0", "", "", "", ""]), [(128 * MS, Some(256 * MS), 52)]);
    // The least that is printed as a tenth of a percent stands beside cells that share the rest.
    let tail = of_tail(4_000_000, "2010", &["99.9", ".1", ".0", ".0", "", "", "", ""]);
    assert_eq!(tail, [(32 * MS, Some(64 * MS), 2_008), (64 * MS, Some(256 * MS), 2)]);
}

#[test]
fn numbers_within_a_range_may_be_rounded() {
    // 4.8K are 4,750 to 4,849.
    let tail = of_tail(4_000_000, "4.8K", &["99.9", ".1", ".0", ".0", ".0", "", "", ""]);
    assert!((4_750..=4_850).contains(&tail.iter().map(|bucket| bucket.2).sum::<u64>()), "{tail:?}");
    assert_eq!((tail.len(), tail[1].1), (2, Some(512 * MS)));
    // Rounded to 100,000 it says less than shares of two million.
    let rough = bucket_counts(
        &[
            ("Total Waits", "2M", &MAIN, &["", "", "", "", "", "", "40.0", "60.0"]),
            ("Waits 1ms to 32ms", "1.2M", &UP_TO_32_MS, &["40.0", "10.0", "50.0", "", "", "", "", ""]),
        ],
        2_030_000,
    );
    let counts: Vec<u64> = rough.unwrap().iter().map(|bucket| bucket.2).collect();
    assert_eq!(counts, [812_000, 203_000, 1_015_000]);
}

#[test]
fn a_histogram_of_other_waits_gives_its_shares() {
    // 60 of 120 waits are half of the 130 that the table of events has.
    let reported_of = |number: &str, waits| {
        let tables: [(&str, &str, &[&str], &[&str]); 2] = [
            ("Total Waits", "120", &MAIN, &["", "", "", "", "", "", "50.0", "50.0"]),
            ("Waits 1ms to 32ms", number, &UP_TO_32_MS, &["50.0", "25.0", "25.0", "", "", "", "", ""]),
        ];
        let counts = bucket_counts(&tables, waits).unwrap();
        counts.iter().map(|bucket| bucket.2).collect::<Vec<_>>()
    };
    assert_eq!((reported_of("60", 120), reported_of("60", 130)), (vec![60, 30, 30], vec![65, 33, 32]));
    assert_eq!(reported_of("7", 120), [60, 30, 30], "it cannot be what the percentages are of");
    let all = bucket_counts(
        &[
            ("Total Waits", "120", &MAIN, &["", "", "", "", "", "", "", "100.0"]),
            ("Waits 1ms to 32ms", "120", &UP_TO_32_MS, &["", "75.0", "25.0", "", "", "", "", ""]),
        ],
        130,
    );
    assert_eq!(all.unwrap().iter().map(|bucket| bucket.2).sum::<u64>(), 130);
}

/// Heading of the count, the count, labels of the columns, cells, and the buckets that it covers.
type Detail<'a> = (&'a str, &'a str, &'a [&'a str], Vec<&'a str>, (usize, usize));

proptest! {
    #[test]
    fn counts_sum_to_all_waits_and_stay_near_their_shares(counts in prop::collection::vec(0_u64..200_000, 4)) {
        let waits: u64 = counts.iter().sum();
        prop_assume!(waits > 0);
        let print = |count: &u64| match count {
            0 => String::new(),
            count => format!("{:.1}", *count as f64 / waits as f64 * 100.0),
        };
        let cells: Vec<String> = counts.iter().map(print).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let reported = joined(&[(&["<1ms", "<2ms", "<4ms", ">=4ms"], &cells)], waits).unwrap();
        prop_assert_eq!(reported.iter().map(|bucket| bucket.2).sum::<u64>(), waits);
        let mut reported = reported.iter().map(|bucket| bucket.2);
        for count in counts.iter().filter(|count| **count > 0) {
            let apart = reported.next().unwrap().abs_diff(*count) as f64;
            prop_assert!(apart <= waits as f64 * 0.001 + 2.0, "{} of {}", apart, waits);
        }
    }

    #[test]
    fn numbers_of_ranges_are_kept(
        counts in prop::collection::vec(prop_oneof![4 => Just(0_u64), 3 => 1..9_u64, 2 => 1..5_000_u64, 1 => 1..3_000_000_u64], 23),
    ) {
        let waits: u64 = counts.iter().sum();
        prop_assume!(waits > 0);
        let cell = |count: u64| match count {
            0 => String::new(),
            count => format!("{:.1}", count as f64 / waits as f64 * 100.0),
        };
        // One for each power of two of microseconds; a table has one column for all below, and one for all above.
        let columns = |from: usize, to: usize, has_below: bool| -> Vec<String> {
            let below = has_below.then(|| cell(counts[..from].iter().sum()));
            let inside = counts[from..to].iter().map(|count| cell(*count));
            below.into_iter().chain(inside).chain([cell(counts[to..].iter().sum())]).collect()
        };
        let printed = |count: u64| if count < 10_000 { count.to_string() } else { format!("{:.1}K", count as f64 / 1e3) };
        let number = |from: usize, to: usize| printed(counts[from..to].iter().sum());
        let main = columns(4, 10, true);
        let shortest = ["<1us", "<2us", "<4us", "<8us", "<16us", "<32us", "<64us", ">=64us"];
        let details = [
            ("Waits 1us - 64us", number(0, 7), shortest, columns(0, 7, false), (0, 7)),
            ("Waits 1ms to 32ms", number(10, 16), UP_TO_32_MS, columns(10, 16, true), (10, 16)),
            ("Waits 64ms to 2s", number(16, 22), UP_TO_2_S, columns(16, 22, true), (16, 22)),
        ];
        let main: Vec<&str> = main.iter().map(String::as_str).collect();
        let details: Vec<Detail<'_>> = details
            .iter()
            .filter(|(.., (from, to))| counts[*from..*to].iter().any(|count| *count > 0))
            .map(|(heading, number, labels, cells, at)| {
                (*heading, number.as_str(), labels.as_slice(), cells.iter().map(String::as_str).collect(), *at)
            })
            .collect();
        let all = printed(waits);
        let edge = |at: usize| if at == 0 { 0 } else { 500 << at };
        let mut tables: Vec<(&str, &str, &[&str], &[&str])> = vec![("Total Waits", &all, &MAIN, &main)];
        tables.extend(details.iter().map(|(heading, number, labels, cells, _)| (*heading, *number, *labels, cells.as_slice())));
        let reported = bucket_counts(&tables, waits).unwrap();
        prop_assert_eq!(reported.iter().map(|bucket| bucket.2).sum::<u64>(), waits);
        for (_, number, _, _, (from, to)) in &details {
            let inside = reported.iter().filter(|bucket| bucket.0 >= edge(*from) && bucket.1.is_some_and(|end| end <= edge(*to)));
            let sum: u64 = inside.map(|bucket| bucket.2).sum();
            let total = total(number).unwrap();
            prop_assert!(sum.abs_diff(total.waits) <= total.off, "{} for {}: {:?}", sum, number, reported);
        }
        for (from, to, count) in &reported {
            let is_in = |at: usize| edge(at) >= *from && to.is_none_or(|to| edge(at + 1) <= to);
            let cells: Vec<u64> = (0..23).filter(|at| is_in(*at)).map(|at| counts[at]).filter(|count| *count > 0).collect();
            let apart = count.abs_diff(cells.iter().sum()) as f64;
            prop_assert!(apart <= waits as f64 * 0.001 * cells.len() as f64 + 2.0, "{} of {:?}: {:?}", count, cells, reported);
        }
    }
}
