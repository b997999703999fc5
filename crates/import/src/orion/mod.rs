//! ORION, Oracle's program that loads storage: its summary, what it prints, its matrices and its histograms, of 10.2 to 19c, and
//! the files of the same layout that Plimsoll writes.
//!
//! A point is a number of small requests outstanding and a number of large ones; it becomes a step. Latencies are reported in
//! microseconds whatever the release printed them in: 10.2 and 11.1 have milliseconds and print no unit, later ones say `usecs`.

mod assemble;
pub(super) mod matrix;
pub(super) mod text;

use super::numbers::{number, whole_number};
use super::{ImportError, Source};
use model::record::{Metric, ReportedBucket, ReportedFigure};

/// The beginnings of the lines that report the best points. Their first letters are missing in copies.
const FIGURES: [(&str, Figure); 3] = [
    ("aximum Large MBPS=", Figure::Megabytes),
    ("aximum Small IOPS=", Figure::Requests),
    ("inimum Small Latency=", Figure::Latency),
];
/// Results that one file may hold.
const MAX_RUNS: usize = 1_000;
const HISTOGRAM: &str = "Latency Histogram @";

/// What a figure reports on a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Megabytes per second of large requests.
    Megabytes,
    /// Small requests per second.
    Requests,
    /// Mean latency of small requests.
    Latency,
}

impl Figure {
    /// `figure` of a point with the metric that it is. Beside requests of the other size a rate is that of some requests alone.
    fn known(self, figure: ReportedFigure, point: Point) -> ReportedFigure {
        match self {
            Self::Megabytes if point.small == 0 => figure.is(Metric::Megabytes, 1.0),
            Self::Requests if point.large == 0 => figure.is(Metric::Operations, 1.0),
            Self::Latency if figure.unit == "us" => figure.is(Metric::RequestTime, 1e-3),
            _ => figure,
        }
    }
}

/// A number of small requests outstanding and a number of large requests, or of streams of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Point {
    small: u32,
    large: u32,
}

impl Point {
    /// The point in `… @ Small=10 and Large=0`.
    fn of(text: &str) -> Option<Self> {
        let after = |name: &str| {
            let (_, rest) = text.split_once(name)?;
            let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        Some(Self { small: after("mall=")?, large: after("arge=")? })
    }
}

fn has_figure(head: &str) -> bool {
    let is_figure = |line: &str| {
        let line = line.replace('*', "");
        line.contains("@ Small=") && FIGURES.iter().any(|(marker, _)| line.contains(marker))
    };
    head.lines().any(is_figure)
}

fn is_console(head: &str) -> bool {
    head.contains("acle IO Numbers") && !head.contains("RION VERSION")
}

/// The file that ORION leaves, or the lines of it that people copy.
pub(super) fn recognises_summary(head: &str) -> bool {
    has_figure(head) && !is_console(head)
}

/// What ORION prints.
pub(super) fn recognises_console(head: &str) -> bool {
    has_figure(head) && is_console(head)
}

/// Histograms of every point.
pub(super) fn recognises_histograms(head: &str) -> bool {
    head.lines().any(|line| line.contains(HISTOGRAM) && Point::of(line).is_some()) && !has_figure(head)
}

/// One of the three matrices.
pub(super) fn recognises_matrix(head: &str) -> bool {
    head.lines().any(matrix::is_heading) && !has_figure(head)
}

/// Percentages have two decimals.
const PERCENT_OFF: f64 = 0.02;

/// A histogram in the making: small or large requests of a point.
#[derive(Debug, Clone, Default)]
struct Rows {
    /// Buckets of reads.
    reads: Vec<ReportedBucket>,
    /// Buckets of writes, of as many rows as have them.
    writes: Vec<ReportedBucket>,
    /// The lines of the rows and their percentages.
    rows: Vec<(u64, [Option<f64>; 2])>,
}

impl Rows {
    /// Takes `64 - 128  us:  1112243 ( 91.12%)  0 (  0.00%)`; whether it is such a row.
    fn take(&mut self, line: u64, text: &str) -> bool {
        self.row(line, text).is_some()
    }

    fn row(&mut self, line: u64, text: &str) -> Option<()> {
        let (range, counts) = text.split_once("us:")?;
        // A log may have put something before it, such as a date.
        let (from, to) = range.rsplit_once('-')?;
        let from_us = whole_number(from.split_whitespace().next_back()?)?;
        let to_us = whole_number(to)?;
        let bucket = |count| ReportedBucket {
            from_ns: from_us.saturating_mul(1_000),
            to_ns: Some(to_us.saturating_mul(1_000)),
            count,
        };
        let mut columns = counts.split(')').map(|column| {
            let (count, percent) = column.split_once('(').unwrap_or((column, ""));
            (whole_number(count), number(percent.trim().trim_end_matches('%')))
        });
        let (read, read_percent) = columns.next()?;
        let (written, write_percent) = columns.next().unwrap_or_default();
        self.reads.push(bucket(read?));
        self.writes.extend(written.map(bucket));
        self.rows.push((line, [read_percent, write_percent]));
        Some(())
    }

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether the percentages, which add up from row to row, are what the counts make, to the last one of 100.
    fn check(&self, source: &Source) -> Result<(), ImportError> {
        let total =
            |buckets: &[ReportedBucket]| buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        for (column, buckets) in [&self.reads, &self.writes].into_iter().enumerate() {
            let all = total(buckets);
            let mut so_far = 0_u64;
            for (bucket, (line, percents)) in buckets.iter().zip(&self.rows) {
                so_far = so_far.saturating_add(bucket.count);
                let Some(percent) = percents.get(column).copied().flatten() else { continue };
                let made = if all == 0 { 0.0 } else { so_far as f64 * 100.0 / all as f64 };
                if (made - percent).abs() > PERCENT_OFF {
                    let what = format!(
                        "{percent:.2} % stands here, but the counts make {made:.2} %: rows of the histogram are missing or \
                         wrong"
                    );
                    return Err(ImportError::damaged(source, *line, what));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::record::{Timestamp, Workload};
    use proptest::prelude::*;

    use super::super as import;
    use super::*;
    use crate::{Draft, Notes};

    fn source(name: &str, text: &str) -> Source {
        Source::new(name, text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
    }

    fn read(kind: &str, name: &str, text: &str) -> Result<Vec<Draft>, ImportError> {
        let source = source(name, text);
        let (importer, drafts, notes) = import::read(&source)?;
        assert_eq!((importer.kind, notes.into_list()), (kind, vec![]));
        Ok(drafts)
    }

    fn value_and_unit(draft: &Draft, step: usize, name: &str) -> Option<(f64, String)> {
        let figure = draft.steps[step].reported.iter().find(|figure| figure.name == name)?;
        Some((figure.value, figure.unit.clone()))
    }

    fn us(value: f64) -> Option<(f64, String)> {
        Some((value, "us".to_owned()))
    }

    const SUMMARY: &str = "\
ORION VERSION 12.1.0.2.0\n\nCommandline:\n-run advanced -type seq -num_streamIO 6 -matrix point\n\nThis maps to this test:\n\
Test: vol\nSmall IO size: 16 KB\nLarge IO size: 512 KB\nIO Types: Small Random IOs, Large Sequential Streams\n\
Number of Concurrent IOs Per Stream: 6\nSimulated Array Type: RAID 0\nStripe Depth: 512 KB\nWrite: 20%\n\
Cache Size: Not Entered\nDuration for each Data Point: 30 seconds\nSmall Columns:,      4\nLarge Columns:,      2\n\
Total Data Points: 1\n\nName: /dev/vdq  Size: 1073741824\nName: /dev/vdr  Size: 1073741824\n2 FILEs found.\n\n\
Maximum Large MBPS=210.50 @ Small=4 and Large=2\n\nMaximum Small IOPS=900 @ Small=4 and Large=2\n\
Small Read Latency: avg=4000 us, min=100 us, max=60000 us, std dev=44 us @ Small=4 and Large=2\n\
Small Write Latency: avg=5000 us, min=200 us, max=60000 us, std dev=44 us @ Small=4 and Large=2\n\n\
Minimum Small Latency=4200.5 usecs @ Small=4 and Large=2\n\
Small Read / Write Latency Histogram @ Small=4 and Large=2\n\
\x20       Latency:                # of IOs (read)     # of IOs (write)\n\
\x20       0 - 1024       us:          3 (  0.01%)              0 (  0.00%)\n\
\x20    1024 - 8192       us:      21597 (100.00%)           5000 ( 92.59%)\n\
\x20    8192 - 268435456  us:          0 (100.00%)            400 (100.00%)\n";

    #[test]
    fn a_summary_tells_its_load_and_its_point() {
        let drafts = read("orion-summary", "vol_20200304_0506_summary.txt", SUMMARY).unwrap();
        let [draft] = drafts.as_slice() else { panic!("{} drafts", drafts.len()) };
        assert_eq!(
            (draft.workload, draft.version.as_str(), draft.title.as_str()),
            (Workload::Orion, "12.1.0.2.0", "vol")
        );
        assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()), Some("2020-03-04T05:06:00Z".to_owned()));
        let parameter = |key: &str| draft.parameters.get(key).map_or("", String::as_str);
        assert_eq!(
            ["TYPE", "SMALL_SIZE", "WRITE_PCT", "RUN", "STRIPE"].map(parameter),
            ["seq", "16K", "20", "advanced", "512K"]
        );
        assert_eq!((draft.target.data_bytes, draft.target.block_bytes), (Some(2 << 30), Some(16 << 10)));
        let [step] = draft.steps.as_slice() else { panic!("{} steps", draft.steps.len()) };
        assert_eq!((step.label.as_str(), step.load.sessions), ("small4_large2", Some(4 + 2 * 6)));
        assert_eq!(step.window.duration_ns, 30_000_000_000);
        assert_eq!(value_and_unit(draft, 0, "Maximum Large MBPS"), Some((210.5, "MB/s".to_owned())));
        assert_eq!(value_and_unit(draft, 0, "Minimum Small Latency"), us(4_200.5));
        let kinds: Vec<(&str, u64)> = step.operations.iter().map(|one| (one.kind.as_str(), one.count)).collect();
        assert_eq!(kinds, [("read", 21_600), ("write", 5_400)]);
        let reads = &step.operations[0].service;
        assert_eq!((reads.mean_ns(), reads.max_ns(), reads.below_ns(1_024_000)), (Some(4e6), Some(60_000_000), (3, 3)));
        assert_eq!(step.counters.operations, None, "how many large ones there were, the file does not report");
    }

    #[test]
    fn what_a_log_puts_before_lines_does_not_matter() {
        let logged: String = SUMMARY.lines().map(|line| format!("2020-03-04 05:06:07 host[12]: {line}\n")).collect();
        let logged = &read("orion-summary", "x.txt", &logged).unwrap()[0];
        let plain = &read("orion-summary", "x.txt", SUMMARY).unwrap()[0];
        assert_eq!(logged.steps, plain.steps);
        assert_eq!(logged.target, plain.target);
    }

    #[test]
    fn figures_within_one_line_in_bold_and_without_first_letters_are_found() {
        let text = "x@h:~$ docker run orion -run simple -testname t\nORION: ORacle IO Numbers -- Version 12.2.0.1.0\nt_20180102_0304\n\
                Using a large value for -cache_size may take longer.Maximum Large ***MBPS=8.5*** @ Small=0 and Large=2Maximum \
                Small ***IOPS=99*** @ Small=5 and Large=0\nmall Read Latency: avg=392.5 us, min=1.5 us, max=38.25 us, std \
                dev=4.0 us @ Small=5 and Large=0inimum Small Latency=92.5 usecs @ Small=1 and Large=0\n";
        let drafts = read("orion-console", "out.txt", text).unwrap();
        let draft = &drafts[0];
        let labels: Vec<(&str, Option<u32>)> =
            draft.steps.iter().map(|step| (step.label.as_str(), step.load.sessions)).collect();
        assert_eq!(labels, [("small0_large2", Some(2)), ("small5_large0", Some(5)), ("small1_large0", Some(1))]);
        assert_eq!(value_and_unit(draft, 1, "read latency avg"), us(392.5));
        assert_eq!(value_and_unit(draft, 2, "Minimum Small Latency"), us(92.5));
        assert_eq!((draft.title.as_str(), draft.version.as_str()), ("t_20180102_0304", "12.2.0.1.0"));
        assert_eq!(draft.command, ["orion", "-run", "simple", "-testname", "t"]);
    }

    #[test]
    fn a_latency_without_a_unit_is_in_milliseconds_up_to_11_1() {
        let of = |banner: &str| {
            let text = format!("{banner}\nMinimum Small Latency=0.25 @ Small=1 and Large=0\n");
            value_and_unit(&read("orion-summary", "x.txt", &text).unwrap()[0], 0, "Minimum Small Latency")
        };
        assert_eq!(of("ORION VERSION 10.2.0.1.0"), us(250.0));
        assert_eq!(of("RION VERSION 11.1.0.7.0"), us(250.0));
        assert_eq!(of("ORION VERSION 11.2.0.4.0"), us(0.25));
        assert_eq!(of(""), us(250.0));
        let note = |banner: &str| {
            let text = format!("{banner}\nMinimum Small Latency=0.25 @ Small=1 and Large=0\n");
            read("orion-summary", "x.txt", &text).unwrap()[0].notes.join("\n")
        };
        assert!(note("RION VERSION 11.1.0.7.0").contains("ORION up to 11.1 prints milliseconds"));
        let later = note("ORION VERSION 12.2.0.1.0");
        assert!(later.contains("taken for microseconds") && !later.contains("milliseconds"), "{later}");
        assert!(note("").contains("neither a unit nor a version there"));
    }

    #[test]
    fn reads_alone_are_counted_by_their_rate_where_the_time_is_reported() {
        let text = "ORION VERSION 11.1.0.7.0\nSmall IO size: 8 KB\nIO Types: Small Random IOs, Large Random IOs\nWrite: 0%\nDuration for \
                each Data Point: 60 seconds\nMaximum Small IOPS=150 @ Small=5 and Large=0\nMaximum Large MBPS=9 @ Small=0 and \
                Large=2\n";
        let drafts = read("orion-summary", "x.txt", text).unwrap();
        let [small, large] = drafts[0].steps.as_slice() else { panic!() };
        assert_eq!((small.operations[0].count, small.counters.physical_read_bytes), (9_000, Some(9_000 * 8_192)));
        assert!(!small.operations[0].service.is_distribution());
        assert_eq!((large.operations.len(), large.load.sessions), (0, Some(2)));
    }

    #[test]
    fn a_command_line_tells_whether_large_requests_are_streams() {
        let of = |options: &str| {
            let text = format!(
                "$ ./orion -run advanced{options}\nORION: ORacle IO Numbers -- Version 11.2.0.4.0\nMaximum Large MBPS=9 @ Small=1 and Large=2\n"
            );
            read("orion-console", "x.txt", &text).unwrap()[0].steps[0].load.sessions
        };
        assert_eq!([" -type seq -num_streamIO 8", " -type seq", " -type rand", ""].map(of), [17, 9, 3, 3].map(Some));
    }

    #[test]
    fn several_summaries_in_one_file_are_as_many_runs() {
        let one = "ORION VERSION 11.1.0.7.0\nTest: a\nMaximum Small IOPS=150 @ Small=5 and Large=0\n";
        let drafts =
            read("orion-summary", "x.txt", &format!("{one}\n{one}Maximum Small IOPS=3 @ Small=1 and Large=0\n"))
                .unwrap();
        let rates: Vec<_> =
            drafts.iter().map(|draft| value_and_unit(draft, 0, "Maximum Small IOPS").unwrap().0).collect();
        assert_eq!(rates, [150.0, 150.0, 3.0]);
    }

    #[test]
    fn histograms_that_are_cut_or_contradict_their_percentages_are_refused() {
        let cut: String = SUMMARY.lines().take(SUMMARY.lines().count() - 1).map(|line| format!("{line}\n")).collect();
        let error = read("orion-summary", "x.txt", &cut).unwrap_err().to_string();
        assert!(error.starts_with("x.txt, line ") && error.contains("rows of the histogram are missing"), "{error}");
        assert!(read("orion-summary", "x.txt", &SUMMARY.replace("21597", "215")).is_err());
        let half = SUMMARY.split("Latency=4200").next().unwrap();
        assert!(read("orion-summary", "x.txt", &format!("{half}Latency=42")).is_err(), "the last line is cut");
    }

    #[test]
    fn histograms_alone_are_read() {
        let rows = SUMMARY.split("Small Read / Write").nth(1).unwrap();
        let text = format!("Small Read / Write{rows}\nLarge Read / Write{}", rows.replace("Large=2", "Large=3"));
        let drafts = read("orion-histogram", "vol_20200304_0506_hist.txt", &text).unwrap();
        let kinds: Vec<Vec<&str>> =
            drafts[0].steps.iter().map(|step| step.operations.iter().map(|one| one.kind.as_str()).collect()).collect();
        assert_eq!(kinds, [["read", "write"], ["large read", "large write"]]);
        assert!(drafts[0].began.is_some());
    }

    const MATRIX: &str = "Large/Small,      1,      2\n          0,  2302,   4398\n          1\n          2,,  77\n";

    #[test]
    fn a_matrix_is_what_its_name_or_its_head_says() {
        let iops = &read("orion-csv", "/x/t_20200304_0506_iops.csv", MATRIX).unwrap()[0];
        assert_eq!(value_and_unit(iops, 1, "Small IOPS"), Some((4_398.0, "/s".to_owned())));
        assert_eq!((iops.steps[2].label.as_str(), iops.steps[2].load.sessions), ("small2_large2", None));
        assert_eq!(iops.steps[1].load.sessions, Some(2));
        let error = read("orion-csv", "numbers.csv", MATRIX).unwrap_err().to_string();
        assert!(error.contains("`_iops.csv` or `_lat.csv`"), "{error}");
        let head = "Contains the average latency sustained by small I/Os in microseconds.\n\n";
        assert_eq!(
            value_and_unit(
                &read("orion-csv", "numbers.csv", &format!("{head}{MATRIX}")).unwrap()[0],
                0,
                "Small Latency"
            ),
            us(2_302.0)
        );
        let large = "Large/Small,   0,   1\n   1, 271.58\n   2, 374.26,  12.5\n";
        assert_eq!(
            value_and_unit(&read("orion-csv", "x.csv", large).unwrap()[0], 0, "Large MBPS"),
            Some((271.58, "MB/s".to_owned()))
        );
    }

    #[test]
    fn the_unit_of_a_matrix_of_latencies_is_reported_by_what_is_possible() {
        let of = |value: &str| {
            let text = format!("Large/Small,      1\n          0,  {value}\n");
            value_and_unit(&read("orion-csv", "t_lat.csv", &text).unwrap()[0], 0, "Small Latency")
        };
        assert_eq!(of("0.43"), us(430.0));
        assert_eq!(of("431.50"), us(431.5));
        assert_eq!(of("12.00"), Some((12.0, String::new())));
    }

    #[test]
    fn no_two_kinds_claim_one_text_and_articles_are_none() {
        for text in [
            SUMMARY,
            MATRIX,
            "ORION: ORacle IO Numbers -- Version 12.2\nMinimum Small Latency=1 usecs @ Small=1 and Large=0",
        ] {
            let claims = import::importers().iter().filter(|importer| (importer.recognises)(text)).count();
            assert_eq!(claims, 1, "{text}");
        }
        assert!(import::recognise("ORION prints Maximum Small IOPS=n and Minimum Small Latency=n").is_none());
    }

    proptest! {
        #[test]
        fn nothing_that_is_cut_or_changed_makes_it_fall(
            from in 0usize..1_500, length in 0usize..200, byte in 1u8..127, run in 0usize..300, line in 0usize..40,
        ) {
            for text in [SUMMARY, MATRIX] {
                let mut lines: Vec<&str> = text.lines().collect();
                let line = line % lines.len();
                lines.insert(line, lines[line]);
                let mut text = lines.join("\n");
                let from = from % text.len();
                let to = (from + length).min(text.len());
                text.replace_range(from..to, &char::from(byte).to_string().repeat(run));
                if text.trim().is_empty() {
                    continue;
                }
                let source = source("x_iops.csv", &text);
                let _ = import::recognise(source.head());
                let _ = text::read(&source, &mut Notes::new(&source));
                let _ = matrix::read(&source, &mut Notes::new(&source));
            }
        }
    }
}
