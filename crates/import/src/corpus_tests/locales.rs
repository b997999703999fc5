//! Results that people published, as the same programs print them in other locales: they are read the same.

use std::path::PathBuf;

use super::wrappings::{difference, record};
use super::{folder, plausible::files};
use crate::calendar::tests::LANGUAGES;
use crate::osstat::written;
use crate::{Source, recognise};

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
    assert!(found.len() >= kinds.len(), "{kinds:?}: {}", found.len());
    found
}

#[test]
fn decimal_commas_change_no_figure() {
    // Versions have points everywhere, and so have what these programs print without the C library.
    let keeps = |line: &str| {
        ["pgbench (", "PHYSICAL_MEMORY", "Linux ", "java ", "19c", "Release", "AWR_MINER_VER", "!VERSION", "VERSION"]
            .iter()
            .any(|word| line.trim_start().starts_with(word))
    };
    for (path, text) in
        specimens(&["iostat", "mpstat", "vmstat", "pgbench", "oratcptest", "awr-miner", "stress-ng-text"])
    {
        let localised = with_commas(&text, keeps);
        assert_eq!(difference(&record(&localised), &record(&text)), None, "{}", path.display());
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
    ("%Y-%m-%d", "%H:%M:%S"),
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

#[test]
fn months_of_all_languages_are_those_of_a_report() {
    let Some(folder) = folder() else { return };
    let text = Source::open(&folder.join("awr/awr_11204_rac_inst1.txt")).unwrap().text().to_owned();
    let head: String = text.lines().take(400).map(|line| format!("{line}\n")).collect();
    let began = |text: &str| {
        let source = crate::specimens::source(text);
        let drafts = crate::oracle::read_text(&source, &mut crate::Notes::new(&source))
            .unwrap_or_else(|error| panic!("{error}"));
        (drafts[0].began, drafts[0].ended)
    };
    let english = began(&head);
    let (at, _) = english;
    let month = at.unwrap().timestamp().0.to_zoned(jiff::tz::TimeZone::UTC).month();
    let name_in = |names: &str| names.split(' ').nth(usize::try_from(month).unwrap() - 1).unwrap().to_owned();
    for (language, names) in LANGUAGES {
        let localised: String = head
            .lines()
            .map(|line| match line.contains(" Snap:") {
                true => {
                    line.replace(&format!("-{}-", name_in(LANGUAGES[0].1)), &format!("-{}-", name_in(names))) + "\n"
                }
                false => format!("{line}\n"),
            })
            .collect();
        assert_eq!(began(&localised), english, "{language}");
    }
}
