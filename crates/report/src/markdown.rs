//! What the place that reviews a change shows: a summary of a run in Markdown, and GitHub's annotations.

use std::io::{self, Write};

use crate::cases::{Answer, Suite};
use crate::first_screen::{mark, named_lines};
use crate::html::Reported;
use analysis::{FirstScreen, LimitAnswer};
use model::shown::shown;

/// What every summary begins with.
pub const BEGINNING: &str = "<!-- plimsoll -->\n";
/// Lines of a run, which a reader of many runs still reads.
const MAX_LINES: usize = 20;
/// Limits among them.
const MAX_LIMITS: usize = 7;

/// Writes the first screen of each run, in at most 20 lines.
///
/// # Errors
/// If `out` fails.
pub fn write(reported: &[Reported<'_>], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(BEGINNING.as_bytes())?;
    for (place, one) in reported.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        lines(one).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(())
}

fn lines(one: &Reported<'_>) -> Vec<String> {
    let screen = FirstScreen::of(one.run, one.findings);
    let simulated = if screen.is_simulated { " (simulated)" } else { "" };
    let mut lines = vec![
        format!("### {}", escaped(&one.run.name)),
        String::new(),
        format!("**{}**{simulated}", escaped(&screen.result)),
    ];
    if !screen.limits.is_empty() {
        lines.extend(["", "| | what | limit | measured |", "| --- | --- | --- | --- |"].map(str::to_owned));
    }
    // What was missed is not what is left out.
    let mut limits: Vec<_> = screen.limits.iter().collect();
    limits.sort_by_key(|limit| limit.answer == LimitAnswer::Yes);
    for limit in limits.into_iter().take(MAX_LIMITS) {
        let measured = limit.measured.as_deref().unwrap_or("not known");
        let because = limit.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        lines.push(format!(
            "| {} | {} | {} | {} |",
            mark(limit.answer),
            escaped(&limit.what),
            escaped(&limit.limit),
            escaped(&format!("{measured}{because}"))
        ));
    }
    if screen.limits.len() > MAX_LIMITS {
        lines.push(format!("| | {} more | | |", screen.limits.len() - MAX_LIMITS));
    }
    let mut last = "";
    let parts = named_lines(&screen).into_iter().map(|(name, text)| {
        // Each stands by itself, whichever are left out.
        last = if name.is_empty() { last } else { name };
        (last, text)
    });
    let (parts, left_out) = shortened(parts.collect(), MAX_LINES.saturating_sub(lines.len() + 1));
    if !parts.is_empty() {
        lines.push(String::new());
    }
    lines.extend(parts.iter().map(|(name, text)| format!("- {name}: {}", escaped(text))));
    lines.extend((left_out > 0).then(|| format!("- {left_out} more: `plimsoll report`")));
    lines
}

/// The first of `parts`, and what to do next: as many as there is room for, with a line for how many are left out.
fn shortened<'a>(mut parts: Vec<(&'a str, &'a str)>, room: usize) -> (Vec<(&'a str, &'a str)>, usize) {
    let all = parts.len();
    if all > room {
        let next = parts.pop_if(|(name, _)| *name == "NEXT");
        parts.truncate(room.saturating_sub(1 + usize::from(next.is_some())));
        parts.extend(next);
    }
    let left_out = all - parts.len();
    (parts, left_out)
}

/// Text as Markdown shows it, letter by letter. A name that came from elsewhere makes no link, image, or element, and names no person or
/// issue: what a forge would look for in the text that is shown is broken by a comment, which is not.
fn escaped(text: &str) -> String {
    const COMMENT: &str = "<!-- -->";
    let mut safe = String::new();
    for letter in shown(text.trim()).chars() {
        match letter {
            '@' | '#' | '!' => safe.extend(["\\", &letter.to_string(), COMMENT]),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => safe.extend(['\\', letter]),
            _ => safe.push(letter),
        }
    }
    safe.replace("://", &format!(":{COMMENT}//")).replace("www.", &format!("www{COMMENT}."))
}

/// Writes each suite: its result, and what was judged, in at most 20 lines.
///
/// # Errors
/// If `out` fails.
pub fn write_suites(suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(BEGINNING.as_bytes())?;
    for (place, suite) in suites.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        lines_of_suite(suite).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(())
}

fn lines_of_suite(suite: &Suite) -> Vec<String> {
    let mut lines =
        vec![format!("### {}", escaped(&suite.name)), String::new(), format!("**{}**", escaped(&suite.result))];
    if !suite.cases.is_empty() {
        lines.extend(["", "| | what | |", "| --- | --- | --- |"].map(str::to_owned));
    }
    let room = MAX_LINES - lines.len();
    let shown = if suite.count() > room { room - 1 } else { room };
    for case in suite.worst_first().into_iter().take(shown) {
        let mark = match case.answer {
            Answer::Failed => mark(LimitAnswer::No),
            Answer::NoVerdict | Answer::NotShown => mark(LimitAnswer::NoVerdict),
            Answer::Passed => mark(LimitAnswer::Yes),
        };
        lines.push(format!("| {mark} | {} | {} |", escaped(&case.name), escaped(&case.because)));
    }
    lines.extend((suite.count() > shown).then(|| format!("| | {} more | |", suite.count() - shown)));
    lines
}

/// Writes a line for each case, which a workflow of GitHub turns into an annotation: what failed is an error, what has no verdict a warning.
///
/// # Errors
/// If `out` fails.
pub fn annotations(suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    for suite in suites {
        // GitHub shows the first few.
        for case in suite.worst_first() {
            let (level, word) = match case.answer {
                Answer::Passed => ("notice", "Yes"),
                Answer::Failed => ("error", "No"),
                Answer::NoVerdict => ("warning", "No verdict"),
                Answer::NotShown => ("notice", "Not shown"),
            };
            let title = property(&suite.name);
            let message = data(&format!("{word}: {}: {}", case.name, case.because));
            writeln!(out, "::{level} title={title}::{message}")?;
        }
    }
    Ok(())
}

/// The three characters that end a message, or begin an escape, in GitHub's form.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same where a colon or a comma ends a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::requests;

    const NAME: &str = "100%: a,b @team <img> [x](y) | `z`\u{1b}[2J\n::error::forged http://x www.y #1";

    fn with<T>(limits: &[&str], of: impl Fn(&[Reported<'_>]) -> T) -> T {
        let mut run = requests::open_loop();
        run.name = NAME.to_owned();
        let limits: Vec<_> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let findings = analysis::analyse_limits(&run, &limits);
        of(&[Reported::new(&run, &findings)])
    }

    #[test]
    fn a_summary_is_short_and_shows_names_as_they_are() {
        let many: Vec<String> = (1..=20).map(|ms| format!("p99={ms}ms")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let found = with(&many, |reported| lines(&reported[0]));
        assert!(found.len() <= MAX_LINES, "{found:#?}");
        assert!(found[6].starts_with("| ✗ | p99 of response time | 1.00 ms |"), "{found:#?}");
        let name = "### 100%: a,b \\@<!-- -->team \\<img\\> \\[x\\](y) \\| \\`z\\`";
        assert!(found[0].starts_with(name), "{}", found[0]);
        assert!(found[0].ends_with(":<!-- -->//x www<!-- -->.y \\#<!-- -->1"), "{}", found[0]);
        assert!(found.iter().any(|line| line == "| | 13 more | | |"), "{found:#?}");
        assert!(found.last().is_some_and(|line| line.starts_with("- NEXT: ")), "{found:#?}");
        assert!(found.iter().all(|line| !line.contains(['\n', '\u{1b}'])), "{found:#?}");
        let found = with(&[], |reported| lines(&reported[0]));
        assert!(found.len() < MAX_LINES && found[2].starts_with("**"), "{found:#?}");
        assert!(!found.iter().any(|line| line.starts_with('|')), "{found:#?}");
    }

    #[test]
    fn what_to_do_next_stays() {
        let names = ["WARNING", "ALSO", "ALSO", "NEXT"];
        let of = |room| {
            let (parts, left_out) = shortened(names.map(|name| (name, "")).to_vec(), room);
            (parts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), left_out)
        };
        assert_eq!((of(9), of(4)), ((names.to_vec(), 0), (names.to_vec(), 0)));
        assert_eq!((of(3), of(2)), ((vec!["WARNING", "NEXT"], 2), (vec!["NEXT"], 3)));
        let without = shortened([("ALSO", "a"), ("ALSO", "b"), ("ALSO", "c")].to_vec(), 2);
        assert_eq!(without, (vec![("ALSO", "a")], 2));
    }

    #[test]
    fn an_annotation_is_one_line_that_no_name_ends() {
        let found = with(&["p99=5ms", "p99=1us"], |reported| {
            let mut out = Vec::new();
            let suites: Vec<Suite> = reported.iter().map(Suite::of_run).collect();
            annotations(&suites, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        });
        let found: Vec<&str> = found.lines().collect();
        let [missed, met] = found[..] else { panic!("{found:?}") };
        assert!(met.starts_with("::notice title=100%25%3A a%2Cb @team"), "{met}");
        assert!(missed.starts_with("::error title=") && missed.contains("::No: p99"), "{missed}");
        assert_eq!((missed.matches("::").count(), missed.matches("%3A%3Aerror").count()), (2, 1), "{missed}");
    }
}
