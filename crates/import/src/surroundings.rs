//! What stands around a result is taken off before any reader sees it: what terminals, loggers, mail and pages put before lines.
//!
//! Lines keep their numbers: what is taken off as a whole becomes a blank line. Each layer is taken off where it is on nearly all
//! lines, since a table may begin its rows with a date too; and nothing is taken off that leaves a text which no reader knows where
//! one knew it before.

use std::borrow::Cow;

use super::console::{self, Wrote};

/// Layers that are taken off at most; nobody wraps so often.
const MAX_LAYERS: usize = 8;
/// Of so many percent of the lines that hold anything a layer must be.
const NEARLY_ALL: usize = 90;
/// Lines of a mail or a page that are no quotation may be more.
const MOST: usize = 50;
/// Paragraphs and lines that may stand before what a reader knows.
const PARAGRAPHS: usize = 8;
const LINES_BEFORE: usize = 60;
/// How a page of the web indents, where it does not with blanks.
const NO_BREAK: char = '\u{a0}';
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A text without what stands around it.
#[derive(Debug)]
pub(super) struct Bare {
    /// The text.
    pub text: String,
    /// The same lines before times were taken off: the only clock that some programs have is that of the log.
    pub timed: Option<String>,
}

/// Takes off what stands around a text. `is_known` says whether a reader knows a text. The beginning decides how much that is, so that
/// a long text is copied no more often than needed.
pub(super) fn taken_off(text: String, is_known: impl Fn(&str) -> bool) -> Bare {
    let text = without_signs(text);
    // What stands in a document of a markup language is its text, whatever it looks like.
    if is_markup(&text) && is_known(&text) {
        return Bare { text, timed: None };
    }
    let mut layers = vec![Cow::Borrowed(super::source::head_of(&text))];
    let mut after_time = false;
    while layers.len() <= MAX_LAYERS {
        let now = layers.last().map_or("", |layer| layer);
        let Some((next, wrote)) = one_layer(now, after_time, &is_known) else { break };
        after_time = wrote.is_some_and(Wrote::is_time);
        layers.push(Cow::Owned(next));
    }
    // The barest that a reader knows. What none knows in any state may begin with prose.
    let is_readable = |text: &str| is_known(text) || from_paragraph(text, &is_known).is_some();
    let depth = layers.iter().rposition(|layer| is_readable(layer)).unwrap_or(0);
    let (mut now, mut timed, mut after_time) = (Cow::Borrowed(text.as_str()), None, false);
    for _ in 0..depth {
        let Some((next, wrote)) = one_layer(&now, after_time, &is_known) else { break };
        after_time = wrote.is_some_and(Wrote::is_time);
        let before = std::mem::replace(&mut now, Cow::Owned(next));
        if after_time && timed.is_none() {
            timed = Some(before.into_owned());
        }
    }
    if !is_known(&now) {
        match from_paragraph(&now, &is_known) {
            Some(rest) => now = Cow::Owned(rest),
            None if is_known(&text) => return Bare { text, timed: None },
            None => {}
        }
    }
    match now {
        Cow::Owned(bare) => Bare { text: bare, timed },
        Cow::Borrowed(_) => Bare { text, timed },
    }
}

/// Whether a text is that of a markup language from its first sign on. `<134>` is a priority of syslog.
fn is_markup(text: &str) -> bool {
    let mut signs = text.chars();
    signs.next() == Some('<')
        && signs.next().is_some_and(|sign| sign.is_ascii_alphabetic() || matches!(sign, '!' | '?'))
}

/// Escapes, line ends of other systems, marks of byte order and blanks that do not break.
fn without_signs(mut text: String) -> String {
    if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
        text = rest.to_owned();
    }
    if text.contains('\u{1b}') {
        text = console::without_escapes(&text);
    }
    if text.contains("\r\n") {
        text = text.replace("\r\n", "\n");
        // Of a text that was copied twice.
        while text.contains("\r\n") {
            text = text.replace("\r\n", "\n");
        }
    }
    if is_markup(&text) {
        return text;
    }
    if text.contains(BYTE_ORDER_MARK) {
        text = text.replace(BYTE_ORDER_MARK, "");
    }
    if text.contains(NO_BREAK) {
        text = by_lines(&text, |line| {
            let rest = line.trim_start_matches([NO_BREAK, ' ', '\t']);
            let before = line.get(..line.len() - rest.len()).unwrap_or_default();
            Cow::Owned(before.replace(NO_BREAK, " ") + rest)
        });
    }
    text
}

/// A text of the lines that `of` makes of each.
fn by_lines<'a>(text: &'a str, mut of: impl FnMut(&'a str) -> Cow<'a, str>) -> String {
    let mut made = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        made.push_str(&of(line));
        made.push_str(end);
    }
    made
}

/// The text without one layer, and who wrote that layer where it was a program.
fn one_layer(text: &str, after_time: bool, is_known: &impl Fn(&str) -> bool) -> Option<(String, Option<Wrote>)> {
    if let Some((next, wrote)) = prefixes(text, after_time) {
        return Some((next, Some(wrote)));
    }
    let layers = [quotation, fences, records, indentation, prompts];
    layers.iter().find_map(|layer| layer(text, is_known)).map(|next| (next, None))
}

/// Lines that hold anything.
fn filled(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// Whether `fits` holds for so many percent of these lines.
fn holds<'a>(lines: impl Iterator<Item = &'a str>, percent: usize, fits: impl Fn(&str) -> bool) -> bool {
    let (all, fitting) = lines.fold((0, 0), |(all, fitting), line| (all + 1, fitting + usize::from(fits(line))));
    fitting > 0 && fitting * 100 >= all * percent
}

/// What journals and compose say of themselves.
fn is_of_logger(line: &str) -> bool {
    line.starts_with("-- ") || line.starts_with("Attaching to ")
}

/// What loggers put before each line: what the first line has is on nearly all others, of the same writer.
fn prefixes(text: &str, after_time: bool) -> Option<(String, Wrote)> {
    let lines = || filled(text).filter(|line| !is_of_logger(line));
    let first = lines().next()?;
    for wrote in Wrote::ALL.into_iter().filter(|wrote| after_time || !wrote.follows_time()) {
        let Some((writer, rest)) = console::prefix(first, wrote) else { continue };
        // A log of transactions begins each row with whole seconds too, and has no headings.
        if wrote == Wrote::Epoch && !first.contains('.') && !rest.contains(|char: char| char.is_alphabetic()) {
            continue;
        }
        if !holds(lines(), NEARLY_ALL, |line| behind(line, wrote, writer).is_some()) {
            continue;
        }
        let bare = by_lines(text, |line| match behind(line, wrote, writer) {
            Some(rest) => Cow::Borrowed(rest),
            None if is_of_logger(line) => Cow::Borrowed(""),
            None => Cow::Borrowed(line),
        });
        return Some((bare, wrote));
    }
    None
}

/// What stands behind the prefix of this writer.
fn behind<'a>(line: &'a str, wrote: Wrote, writer: &str) -> Option<&'a str> {
    console::prefix(line, wrote).filter(|(other, _)| *other == writer).map(|(_, rest)| rest)
}

/// `> ` as mail and pages quote. `>>>>>` is HammerDB's. What is not quoted is prose, unless a reader knows it.
fn quotation(text: &str, is_known: &impl Fn(&str) -> bool) -> Option<String> {
    fn unquoted(line: &str) -> Option<&str> {
        let rest = line.strip_prefix('>')?;
        rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))
    }
    if !holds(filled(text), MOST, |line| unquoted(line).is_some()) {
        return None;
    }
    let quoted = by_lines(text, |line| Cow::Borrowed(unquoted(line).unwrap_or_default()));
    let others = by_lines(text, |line| Cow::Borrowed(if unquoted(line).is_some() { "" } else { line }));
    let is_whole = is_known(&quoted) && !is_known(&others);
    Some(if is_whole { quoted } else { by_lines(text, |line| Cow::Borrowed(unquoted(line).unwrap_or(line))) })
}

/// The fence of a block of code, and how far it is indented.
fn fence(line: &str) -> Option<usize> {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    let name = inner.strip_prefix("```").or_else(|| inner.strip_prefix("~~~"))?.trim_end();
    let is_name =
        name.len() <= 32 && name.trim_start().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then_some(indent)
}

/// Blocks of code between fences; what stands outside of them is prose, unless a reader knows it.
fn fences(text: &str, is_known: &impl Fn(&str) -> bool) -> Option<String> {
    if !text.lines().any(|line| fence(line).is_some()) {
        return None;
    }
    let part = |wanted: Option<bool>| {
        let mut inside: Option<usize> = None;
        by_lines(text, |line| match (fence(line), inside) {
            (Some(indent), None) => {
                inside = Some(indent);
                Cow::Borrowed("")
            }
            (Some(_), Some(_)) => {
                inside = None;
                Cow::Borrowed("")
            }
            (None, inside) if wanted.is_some_and(|wanted| wanted != inside.is_some()) => Cow::Borrowed(""),
            (None, inside) => {
                let blanks = line.len() - line.trim_start_matches(' ').len();
                Cow::Borrowed(line.get(inside.unwrap_or(0).min(blanks)..).unwrap_or(line))
            }
        })
    };
    let inside = part(Some(true));
    let is_whole = is_known(&inside) && !is_known(&part(Some(false)));
    Some(if is_whole { inside } else { part(None) })
}

/// Lines of Docker's own log, each a document with what the program wrote.
fn records(text: &str, _: &impl Fn(&str) -> bool) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        log: Cow<'a, str>,
    }
    let of = |line: &str| {
        serde_json::from_str::<Record<'_>>(line).ok().map(|record| record.log.trim_end_matches('\n').to_owned())
    };
    if !filled(text).all(|line| line.starts_with("{\"log\":")) {
        return None;
    }
    Some(by_lines(text, |line| of(line).map_or(Cow::Borrowed(line), |written| Cow::Owned(written.replace('\n', " ")))))
}

/// Blanks before every line.
fn indentation(text: &str, _: &impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = filled(text);
    let first = lines.next()?;
    let mut common = first.get(..first.len() - first.trim_start_matches([' ', '\t']).len())?;
    lines.next()?;
    for line in filled(text) {
        let same = common.bytes().zip(line.bytes()).take_while(|(one, other)| one == other).count();
        common = common.get(..same)?;
    }
    (!common.is_empty())
        .then(|| by_lines(text, |line| Cow::Borrowed(line.strip_prefix(common).unwrap_or(line.trim_start()))))
}

/// Prompts without a command, as they stand behind what was copied from a terminal. Those with a command stay: readers take the
/// command from there.
fn prompts(text: &str, _: &impl Fn(&str) -> bool) -> Option<String> {
    let is_bare = |line: &str| console::after_prompt(line).is_some_and(|command| command.trim().is_empty());
    text.lines().any(is_bare).then(|| by_lines(text, |line| Cow::Borrowed(if is_bare(line) { "" } else { line })))
}

/// The text without the prose or the command before it, where a reader knows it then.
fn from_paragraph(text: &str, is_known: &impl Fn(&str) -> bool) -> Option<String> {
    let (mut at, mut was_blank, mut tried) = (0, false, 0);
    for line in text.split_inclusive('\n').take(LINES_BEFORE) {
        let is_blank = line.trim().is_empty();
        if at > 0 && !is_blank && was_blank {
            let rest = text.get(at..)?;
            if is_known(rest) {
                let lines = text.get(..at)?.matches('\n').count();
                return Some("\n".repeat(lines) + rest);
            }
            tried += 1;
            if tried == PARAGRAPHS {
                return None;
            }
        }
        was_blank = is_blank || console::after_prompt(line.trim_end()).is_some();
        at += line.len();
    }
    None
}
