//! Lines as terminals and loggers leave them.

use std::borrow::Cow;

/// A line without what a terminal would not show (colours and other escapes, carriage returns) and without blanks at its end.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    // What stands before a lone carriage return was written over by what follows.
    let line = line.trim_end();
    let line = line.rsplit('\r').next().unwrap_or(line);
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        if char != '\u{1b}' {
            shown.push(char);
            continue;
        }
        match rest.next() {
            // A control sequence ends with a letter or one of a few signs.
            Some('[') => _ = rest.find(|char| ('@'..='~').contains(char)),
            // A command to the system of the terminal ends with a bell, or an escape and a backslash.
            Some(']') => {
                let end = rest.find(|char| matches!(char, '\u{7}' | '\u{1b}'));
                if end == Some('\u{1b}') {
                    rest.next();
                }
            }
            // Which letters are shown: `tput sgr0` says so too.
            Some('(' | ')' | '*' | '+' | '#' | '%') => _ = rest.next(),
            _ => {}
        }
    }
    shown.truncate(shown.trim_end().len());
    Cow::Owned(shown)
}

/// The rest of a line after what loggers put before it: a date with its time or a time, in brackets or bare, `[host]`, `name |`, and
/// what syslog writes.
pub(super) fn unprefixed(line: &str) -> &str {
    let mut line = line.trim_start();
    // Nobody stacks more of them.
    for _ in 0..4 {
        let Some(rest) = without_one_prefix(line) else { break };
        line = rest.trim_start();
    }
    line
}

/// Who wrote a line, by what [`unprefixed`] takes off: its words but for times and dates. Lines of several machines may stand in
/// one log, each between those of the others.
pub(super) fn writer(line: &str) -> String {
    let prefix = line.get(..line.len() - unprefixed(line).len()).unwrap_or_default();
    let is_syslog = after_syslog(line).is_some();
    let is_of_time = |word: &&str| {
        let is_name = word.trim_start_matches('[').starts_with(|char: char| char.is_ascii_alphabetic());
        !is_name || (is_syslog && line.starts_with(*word))
    };
    prefix.split_whitespace().filter(|word| !is_of_time(word)).collect::<Vec<_>>().join(" ")
}

fn without_one_prefix(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('[') {
        let (inside, rest) = rest.split_once(']')?;
        return (begins_with_date(inside).is_some() || is_time(inside) || is_host(inside, rest)).then_some(rest);
    }
    if let Some(rest) = after_syslog(line) {
        return Some(rest);
    }
    if let Some(after) = begins_with_date(line) {
        return Some(after);
    }
    let (name, rest) = line.split_once(" | ").or_else(|| line.split_once("\t| "))?;
    let is_name = |char: char| char.is_ascii_alphanumeric() || "_-./ ".contains(char);
    let named = name.contains(|char: char| char.is_ascii_alphabetic());
    (name.len() <= 60 && named && name.trim_end().split(' ').count() == 1 && name.chars().all(is_name)).then_some(rest)
}

/// `16:21:53` or `16:21:53.123`; `12` and ` 2s ` are other things.
fn is_time(text: &str) -> bool {
    text.split(':').count() == 3 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.')
}

/// The name of a host or a process before a line of another program: `[db-1] `, and not the prompt `[root@db]# `.
fn is_host(inside: &str, rest: &str) -> bool {
    let is_sign = |char: char| char.is_ascii_alphanumeric() || "_-.@/:".contains(char);
    inside.len() <= 64
        && inside.starts_with(|char: char| char.is_ascii_alphabetic())
        && inside.chars().all(is_sign)
        && rest.starts_with([' ', '\t'])
}

/// What follows `Apr 23 16:21:53 host name[123]:`.
fn after_syslog(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut rest = MONTHS.iter().find_map(|month| line.strip_prefix(month))?.strip_prefix(' ')?;
    let mut next = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (day, time, _host, name) = (next()?, next()?, next()?, next()?);
    let is_one = day.parse::<u8>().is_ok() && is_time(time) && name.ends_with(':');
    is_one.then_some(rest)
}

/// What follows `2026-04-23 16:21:53`, also with `T`, fractions and a zone.
fn begins_with_date(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-dd?dd:dd:dd";
    let fits = |(byte, sign): (&u8, &u8)| match sign {
        b'd' => byte.is_ascii_digit(),
        b'?' => matches!(byte, b' ' | b'T'),
        sign => byte == sign,
    };
    if bytes.len() < shape.len() || !bytes.iter().zip(shape).all(fits) {
        return None;
    }
    let rest = text.get(shape.len()..)?;
    let rest = rest.trim_start_matches(|char: char| char.is_ascii_digit() || ".,Z+:".contains(char));
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_rewritten_lines_are_taken_off() {
        assert_eq!(plain("\u{1b}[33;1mSpeed \u{1b}[m 7  \r"), "Speed  7");
        assert_eq!(plain("10 %\r100 %"), "100 %");
        assert_eq!(plain("\u{1b}]0;title\u{7}x\u{1b}[K"), "x");
        assert_eq!(plain("\u{1b}]0;title\u{1b}\\x\u{1b}(B\u{1b}[m"), "x");
        assert_eq!(plain("a\u{1b}[31"), "a");
        assert_eq!(plain("\u{1b}"), "");
    }

    #[test]
    fn what_loggers_put_before_a_line_is_taken_off() {
        let read = [
            "[2026-01-02 03:04:05] tps = 1",
            "2026-01-02T03:04:05.123Z tps = 1",
            "bench-1  | 2026-01-02 03:04:05,12 tps = 1",
            "[db-1.example] tps = 1",
            "[16:21:53.5] [db-1] tps = 1",
            "Apr  3 16:21:53 db-1 pgbench[17]: tps = 1",
            "  tps = 1",
        ]
        .map(unprefixed);
        assert_eq!(read, ["tps = 1"; 7]);
        let kept = ["[root@db]# tps = 1", "[ 2s ] tps = 1", "[12] tps = 1", "Apr 3 tps = 1", "May be: 1 2 3"];
        assert_eq!(kept.map(unprefixed), kept);
        let written =
            ["[16:21:53] [db-1] x", "Apr  3 16:21:53 db-1 sysbench[17]: x", "2026-01-02 03:04:05 x", "a |  x", "x"];
        assert_eq!(written.map(writer), ["[db-1]", "db-1 sysbench[17]:", "", "a", ""]);
        assert_eq!(
            ["03:04:05 [1/4] 7", "[ 2s ] thds: 1", "|a | 1| 2|"].map(unprefixed)[..2],
            ["03:04:05 [1/4] 7", "[ 2s ] thds: 1"]
        );
        assert_eq!(["|neword | 12|", "20.000 |  1"].map(unprefixed), ["|neword | 12|", "20.000 |  1"]);
    }
}
