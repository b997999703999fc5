//! Lines as terminals and loggers leave them.

/// A line as a terminal shows it in the end: what stands before a lone carriage return was written over by what follows. Blanks at
/// its end are taken off.
pub(super) fn plain(line: &str) -> &str {
    let line = line.trim_end();
    line.rsplit('\r').next().unwrap_or(line)
}

/// A text without colours and other escapes.
pub(super) fn without_escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\u{1b}' {
            shown.push(char);
            continue;
        }
        // What is cut off in the middle of a line ends there.
        let line_end = match rest.next() {
            // A control sequence ends with a letter or one of a few signs.
            Some('[') => rest.find(|char| ('@'..='~').contains(char) || *char == '\n'),
            // A command to the system of the terminal ends with a bell, or an escape and a backslash.
            Some(']') => {
                let end = rest.find(|char| matches!(char, '\u{7}' | '\u{1b}' | '\n'));
                if end == Some('\u{1b}') {
                    rest.next();
                }
                end
            }
            // Which letters are shown: `tput sgr0` says so too.
            Some('(' | ')' | '*' | '+' | '#' | '%') => rest.next(),
            other => other,
        };
        shown.extend(line_end.filter(|char| *char == '\n'));
    }
    shown
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
    let before = line.get(..line.len() - unprefixed(line).len()).unwrap_or_default();
    let is_syslog = prefix(line, Wrote::Syslog).is_some();
    let is_of_time = |word: &&str| {
        let is_name = word.trim_start_matches('[').starts_with(|char: char| char.is_ascii_alphabetic());
        !is_name || (is_syslog && line.starts_with(*word))
    };
    before.split_whitespace().filter(|word| !is_of_time(word)).collect::<Vec<_>>().join(" ")
}

fn without_one_prefix(line: &str) -> Option<&str> {
    let kinds = [Wrote::Syslog, Wrote::Date, Wrote::BracketedTime, Wrote::Host, Wrote::Compose];
    kinds.into_iter().find_map(|kind| prefix(line, kind)).map(|(_, rest)| rest)
}

/// What a logger put before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrote {
    /// `Apr 23 16:21:53 host name[123]: `, also behind a priority such as `<134>`.
    Syslog,
    /// `2026-04-23 16:21:53 `, also with `T`, fractions and a zone.
    Date,
    /// `[2026-04-23 16:21:53] ` or `[16:21:53] `.
    BracketedTime,
    /// `Apr 23 16:21:53 `, as `ts` has it.
    NamedMonth,
    /// `16:21:53.123 `.
    TimeOfDay,
    /// `1598650437.516946 ` or `1598650437 `.
    Epoch,
    /// `stdout F ` behind a time, as containers have it, or the level of a message.
    Stream,
    /// `host name[123]: ` behind a time.
    Process,
    /// `[host] `.
    Host,
    /// `name-1  | `.
    Compose,
    /// `host: `, as parallel shells have it.
    Name,
}

impl Wrote {
    /// All of them, those that say most first.
    pub(super) const ALL: [Self; 11] = [
        Self::Syslog,
        Self::Date,
        Self::BracketedTime,
        Self::NamedMonth,
        Self::TimeOfDay,
        Self::Epoch,
        Self::Stream,
        Self::Process,
        Self::Host,
        Self::Compose,
        Self::Name,
    ];

    /// Whether it says when the line was written.
    pub(super) fn is_time(self) -> bool {
        use Wrote::{BracketedTime, Date, Epoch, NamedMonth, Syslog, TimeOfDay};
        matches!(self, Syslog | Date | BracketedTime | NamedMonth | TimeOfDay | Epoch)
    }

    /// Whether it is one only behind a time.
    pub(super) fn follows_time(self) -> bool {
        matches!(self, Self::Stream | Self::Process)
    }
}

/// Who wrote a line and what, where this kind of prefix stands before it. One blank behind it is of the prefix, and all others are of
/// the line.
pub(super) fn prefix(line: &str, kind: Wrote) -> Option<(&str, &str)> {
    let unblanked = |rest: &'_ str| rest.len() - rest.strip_prefix([' ', '\t']).unwrap_or(rest).len();
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    let (writer, rest) = match kind {
        Wrote::Syslog => {
            let after_priority = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(_, rest)| rest);
            let (_, rest) = named_month(after_priority.unwrap_or(line))?;
            process(rest.strip_prefix(' ')?, false)?
        }
        Wrote::Date => ("", begins_with_date(line).filter(|rest| ends(rest))?),
        Wrote::BracketedTime => {
            let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
            (begins_with_date(inside).is_some() || is_time(inside)).then_some(("", rest))?
        }
        Wrote::NamedMonth => named_month(line).filter(|(_, rest)| ends(rest))?,
        Wrote::TimeOfDay => {
            let (time, rest) = line.split_at(line.find([' ', '\t']).unwrap_or(line.len()));
            is_time(time).then_some(("", rest))?
        }
        Wrote::Epoch => {
            let (time, rest) = line.split_at(line.find([' ', '\t']).unwrap_or(line.len()));
            let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
            let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            (seconds.len() == 10 && is_digits(seconds) && is_digits(fraction)).then_some(("", rest))?
        }
        Wrote::Stream => {
            const NAMES: [&str; 8] =
                ["stdout F", "stderr F", "stdout P", "stderr P", "- INFO -", "INFO:", "INFO", "[INFO]"];
            ("", NAMES.iter().find_map(|name| line.strip_prefix(name)).filter(|rest| ends(rest))?)
        }
        Wrote::Process => process(line, true)?,
        Wrote::Host => {
            let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
            is_host(inside, rest).then_some((inside, rest))?
        }
        Wrote::Compose => {
            let (name, rest) = line.split_once('|').filter(|(name, rest)| name.ends_with([' ', '\t']) && ends(rest))?;
            let is_name = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
            let name = name.trim_end();
            let named = name.contains(|char: char| char.is_ascii_alphabetic());
            (name.len() <= 60 && named && name.chars().all(is_name)).then_some((name, rest))?
        }
        Wrote::Name => {
            let (name, rest) = line.split_once(':')?;
            let is_sign = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
            // It puts its own name before its lines.
            let is_host = name.starts_with(|char: char| char.is_ascii_alphanumeric()) && name != "stress-ng";
            (is_host && name.len() <= 64 && name.chars().all(is_sign) && ends(rest)).then_some((name, rest))?
        }
    };
    Some((writer, rest.get(unblanked(rest)..)?))
}

/// The command after the prompt of a shell: `[root@db ~]# ls`, `me@db:~$ ls`, `bash-5.1$ ls`, `$ ls`; empty where none follows.
pub(super) fn after_prompt(line: &str) -> Option<&str> {
    let at = line.find(['$', '#', '%'])?;
    let (before, rest) = (line.get(..at)?, line.get(at + 1..)?);
    let is_prompt = match before.trim_end() {
        "" => line.starts_with('$'),
        before if before.len() > 80 => false,
        before if before.starts_with('[') => before.ends_with(']') && before.contains('@'),
        before => {
            before.contains('@') && before.split(' ').count() <= 2
                || before.starts_with("bash-")
                || before.starts_with("sh-")
        }
    };
    (is_prompt && (rest.is_empty() || rest.starts_with(' '))).then_some(rest)
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
        && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Nothing, and what follows `Apr 23 16:21:53`.
fn named_month(line: &str) -> Option<(&str, &str)> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = MONTHS.iter().find_map(|month| line.strip_prefix(month))?.strip_prefix(' ')?;
    let (day, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    (day.parse::<u8>().is_ok() && is_time(time)).then_some(("", rest))
}

/// `host name[123]:` and what follows it. Behind a time that may be any text, only with the number of a process.
fn process(text: &str, is_numbered: bool) -> Option<(&str, &str)> {
    let (host, rest) = text.split_once(' ')?;
    let name = rest.get(..rest.find(' ').unwrap_or(rest.len()))?;
    let fits =
        !host.is_empty() && !host.ends_with(':') && name.ends_with(':') && (!is_numbered || name.ends_with("]:"));
    fits.then(|| text.split_at(host.len() + 1 + name.len()))
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
    Some(rest.trim_start_matches(|char: char| char.is_ascii_digit() || ".,Z+-:".contains(char)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_rewritten_lines_are_taken_off() {
        assert_eq!(plain(&without_escapes("\u{1b}[33;1mSpeed \u{1b}[m 7  \r")), "Speed  7");
        assert_eq!(plain("10 %\r100 %"), "100 %");
        assert_eq!(without_escapes("\u{1b}]0;title\u{7}x\u{1b}[K"), "x");
        assert_eq!(without_escapes("\u{1b}]0;title\u{1b}\\x\u{1b}(B\u{1b}[m"), "x");
        assert_eq!(without_escapes("a\u{1b}[31\nb\u{1b}\nc"), "a\nb\nc");
        assert_eq!(without_escapes("\u{1b}"), "");
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
