//! Results that people published, as the same programs print them in other locales: they are read the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::wrappings::{ENOUGH_OF_KIND, difference, record, source, tries_all};
use super::{folder, plausible::files};
use crate::calendar::tests::LANGUAGES;
use crate::osstat::written;
use crate::{Began, Source, decimals, importers, read, recognise};
use model::record::Timestamp;

/// A text with commas for decimal points, in words that are numbers and nothing else, but for lines that `keeps` says.
fn with_commas(text: &str, keeps: impl Fn(&str) -> bool) -> String {
    let of_word = |word: &str| {
        let bare = word.trim_matches(['(', ')', '%', ',', ':', ';']);
        let is_number = bare.parse::<f64>().is_ok() && bare.contains('.') && !bare.contains(['n', 'f', '_']);
        if is_number { word.replacen('.', ",", 1) } else { word.to_owned() }
    };
    let of_line = |line: &str| {
        if keeps(line) {
            return format!("{line}\n");
        }
        // Blanks stay where they are.
        let words: Vec<String> = line.split(' ').map(of_word).collect();
        words.join(" ") + "\n"
    };
    text.lines().map(of_line).collect()
}

/// The specimens that these importers read, each text with its path.
fn specimens(kinds: &[&str]) -> Vec<(PathBuf, String)> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut found = Vec::new();
    files(&folder, &mut found);
    found.sort();
    let of = |path: PathBuf| {
        let source = Source::open(&path).ok()?;
        let is_one = recognise(source.head()).is_some_and(|importer| kinds.contains(&importer.kind));
        is_one.then(|| (path, source.text().to_owned()))
    };
    let found: Vec<_> = found.into_iter().filter_map(of).collect();
    assert!(!found.is_empty());
    found
}

/// Kinds whose readers know the commas of their programs.
const OWN: [&str; 11] = [
    "awr-miner",
    "calibrate-io",
    "event-histogram",
    "iostat",
    "mpstat",
    "oratcptest",
    "pgbench",
    "pylatencymap",
    "sar",
    "stress-ng-text",
    "vmstat",
];
/// Kinds that are no locale's: commas stand between their fields, their numbers are whole, or their form has points by definition.
const OF_NO_LOCALE: [&str; 19] = [
    "biolatency",
    "biolatency-bt",
    "biolatency-json",
    "fio-hist-log",
    "fio-json",
    "hammerdb-job-report",
    "hammerdb-timing",
    "iolatency",
    "iostat-json",
    "iperf3-json",
    "nmon",
    "orion-csv",
    "pgbench-aggregate",
    "pgbench-log",
    "sar-json",
    "slob-conf",
    "slob-tm",
    "swingbench-json",
    "swingbench-xml",
];

#[test]
fn decimal_commas_change_no_value() {
    // Versions have points everywhere, and so have what these programs print without the C library.
    let keeps = |line: &str| {
        ["pgbench (", "PHYSICAL_MEMORY", "Linux ", "java ", "19c", "Release", "AWR_MINER_VER", "!VERSION", "VERSION"]
            .iter()
            .any(|word| line.trim_start().starts_with(word))
    };
    for (path, text) in specimens(&OWN) {
        let localised = with_commas(&text, keeps);
        assert_eq!(difference(&record(&localised), &record(&text)), None, "{}", path.display());
    }
}

#[test]
fn decimal_commas_of_programs_without_locales_change_no_value_or_are_named() {
    for kind in importers().iter().map(|importer| importer.kind) {
        assert!([&OWN[..], &OF_NO_LOCALE, &decimals::KINDS].iter().any(|kinds| kinds.contains(&kind)), "{kind}");
    }
    let mut of_kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (path, text) in specimens(&decimals::KINDS) {
        let kind = recognise(crate::source::head_of(&text)).map_or("", |importer| importer.kind);
        let tried = of_kinds.entry(kind).or_default();
        *tried += 1;
        if *tried > ENOUGH_OF_KIND && !tries_all() {
            continue;
        }
        let localised = record(&decimals::with_commas(&text));
        let is_named = localised.as_ref().unwrap_or_else(|error| error).contains("decimal comma");
        assert!(
            is_named || difference(&localised, &record(&text)).is_none(),
            "{}: {:?}",
            path.display(),
            difference(&localised, &record(&text))
        );
    }
}

/// How a time and a date of sysstat look in a locale.
type Locale = (&'static str, &'static str);

/// `%p` is the half of the day there, the words for both behind a bar.
const LOCALES: [Locale; 25] = [
    ("%m/%d/%Y", "%I:%M:%S %p|AM|PM"),
    ("%d.%m.%Y", "%H:%M:%S"),
    ("%d.%m.%Y", "%H.%M.%S"),
    ("%-d.%-m.%Y", "%H:%M:%S"),
    ("%d-%m-%Y", "%H:%M:%S"),
    ("%d-%m-%y", "%H:%M:%S"),
    ("%Y-%m-%d", "%H:%M:%S"),
    ("%Y-%m-%d", "%H.%M.%S"),
    ("%Y.%m.%d", "%H:%M:%S"),
    ("%Y/%m/%d", "%H:%M:%S"),
    ("%Y. %m. %d.", "%H:%M:%S"),
    ("%Y年%m月%d日", "%H時%M分%S秒"),
    ("%Y年%m月%d日", "%H时%M分%S秒"),
    ("%Y年%m月%d日", "%p %I时%M分%S秒|上午|下午"),
    ("%Y年%m月%d日", "%p%I時%M分%S秒|午前|午後"),
    ("%Y년 %m월 %d일", "%H시 %M분 %S초"),
    ("%Y년 %m월 %d일", "%p %I:%M:%S|오전|오후"),
    ("%d.%m.%Y", "%I:%M:%S %p|πμ|μμ"),
    ("%d.%m.%Y", "%I:%M:%S %p|ÖÖ|ÖS"),
    ("%Y-%m-%d", "%I:%M:%S %p|a.m.|p.m."),
    ("%Y-%m-%d", "%I:%M:%S %p IST|AM|PM"),
    ("%d %b %Y", "%H:%M:%S"),
    ("%d.%m.%y", "%H:%M:%S"),
    ("%Y-%m-%d", "%I:%M:%S %p|am|pm"),
    ("%d.%m.%Y.", "%H:%M:%S"),
];

fn in_locale((date, time): Locale, at: jiff::civil::DateTime) -> [String; 2] {
    let mut words = time.split('|');
    let (form, halves) = (words.next().unwrap(), [words.next(), words.next()]);
    let half = halves[usize::from(at.hour() >= 12)].unwrap_or_default();
    [at.strftime(date).to_string(), at.strftime(&form.replace("%p", "\u{1}")).to_string().replace('\u{1}', half)]
}

#[test]
fn dates_and_clocks_of_25_locales_change_no_length_of_a_sample() {
    let mut tried = 0;
    for (path, text) in specimens(&["iostat"]) {
        // Where the month may stand second, nobody knows the day.
        let Some(times) = text
            .lines()
            .map(written)
            .collect::<Option<Vec<_>>>()
            .filter(|times| text.len() < 64 << 10 && times.iter().flatten().count() > 1)
        else {
            continue;
        };
        let bare = record(&text);
        tried += 1;
        for locale in LOCALES {
            let of_line = |(line, time): (&str, &Option<jiff::civil::DateTime>)| match time {
                Some(at) => in_locale(locale, *at).join(" ") + "\n",
                None => format!("{line}\n"),
            };
            let localised: String = text.lines().zip(&times).map(of_line).collect();
            assert_eq!(difference(&record(&localised), &bare), None, "{} in {locale:?}", path.display());
        }
    }
    assert!(tried > 0 || folder().is_none(), "no specimen has times");
}

/// Reports whose times have names of months, and the lines of each up to the end of its snapshots. AWR Miner writes months as numbers.
const REPORTS: [(&str, usize); 3] = [
    ("awr/awr_11204_rac_inst1.txt", 400),
    ("awr/awr_11204_rac_inst1.html", 600),
    ("statspack/igt_11204_24h_interval.txt", 100),
];

/// When what a text reports began and ended.
fn times(text: &str) -> (Option<Began>, Option<Timestamp>) {
    let (_, drafts, _) = source(text).and_then(|source| read(&source)).unwrap_or_else(|error| panic!("{error}"));
    (drafts[0].began, drafts[0].ended)
}

#[test]
fn months_of_all_languages_are_those_of_a_report() {
    let Some(folder) = folder() else { return };
    for (file, lines) in REPORTS {
        let text = Source::open(&folder.join(file)).unwrap().text().to_owned();
        let head: String = text.lines().take(lines).map(|line| format!("{line}\n")).collect();
        let english = times(&head);
        let name_of = |names: &str, number: usize| names.split(' ').nth(number).unwrap().to_owned();
        let is_of_snapshot = |line: &str| line.contains("Begin Snap:") || line.contains("End Snap:");
        assert!(english.0.is_some() && english.1.is_some(), "{file}");
        for (language, names) in LANGUAGES {
            let translated = |line: String, number: usize| {
                let [from, to] = [LANGUAGES[0].1, names].map(|names| format!("-{}-", name_of(names, number)));
                line.replace(&from, &to)
            };
            let of_line = |line: &str| {
                let months = if is_of_snapshot(line) { 0..12 } else { 0..0 };
                months.fold(format!("{line}\n"), translated)
            };
            let localised: String = head.lines().map(of_line).collect();
            assert_eq!(times(&localised), english, "{file} in {language}");
        }
    }
}

#[test]
fn a_report_with_a_turkish_month_begins_when_it_says() {
    let Some(folder) = folder() else { return };
    let text = Source::open(&folder.join("../cases/awr_turkish_month.txt")).unwrap().text().to_owned();
    let (began, ended) = times(&text);
    let shown = |time: Option<Timestamp>| time.map(|time| time.0.to_string());
    assert_eq!(shown(began.map(Began::timestamp)).as_deref(), Some("2014-01-10T04:00:45Z"));
    assert!(ended.is_some());
}
