//! Reads `slob.conf` as text.
//!
//! SLOB has its shell execute the file. Here it is only read: quotes, escapes, `export` and comments mean what they mean
//! to a shell, and whatever only a shell could work out is an error, so nothing in the file can run.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use crate::plain;
use crate::units::{Bytes, shell_word};

use super::{ConfigError, Origin, Setting, SyntaxProblem};

/// Parameter files are a page of text; what is far larger is something else.
const LARGEST_FILE: Bytes = Bytes::mib(1);

const BLANK: [char; 2] = [' ', '\t'];

/// Reads and parses a parameter file. Bytes that are not UTF-8 are tolerated in comments.
///
/// # Errors
///
/// [`ConfigError::Unreadable`] and [`ConfigError::TooLarge`] with the path; else as [`parse`].
pub fn read(path: &Path) -> Result<Vec<Setting>, ConfigError> {
    let unreadable = |reason| ConfigError::Unreadable { path: path.to_owned(), reason };
    let bytes = plain::read_named(path, LARGEST_FILE).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ConfigError::TooLarge { path: path.to_owned(), limit: LARGEST_FILE },
        _ => unreadable(error),
    })?;
    parse(&String::from_utf8_lossy(&bytes), &path.display().to_string())
}

/// Parses the text of a parameter file into settings, in the order of the file; `file` is its name for messages.
///
/// # Errors
///
/// [`ConfigError::Syntax`] for a line that is neither KEY=VALUE, `export` of names, a comment nor blank, and for a value
/// that needs a shell; [`ConfigError::UnknownParameter`]. Both name file and line.
pub fn parse(text: &str, file: &str) -> Result<Vec<Setting>, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut settings = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let origin = || Origin::File { file: file.to_owned(), line: index + 1 };
        let line = line.strip_suffix('\r').unwrap_or(line);
        match parse_line(line) {
            Ok(Some((name, value))) => settings.push(Setting::new(name, value, origin())?),
            Ok(None) => {}
            Err(problem) => return Err(ConfigError::Syntax { origin: origin(), problem }),
        }
    }
    Ok(settings)
}

/// Writes parameters as the text of a parameter file that [`parse`] reads back to the same values.
pub fn render(parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

/// Whether a value is one line of printable text.
pub(super) fn is_plain_text(value: &str) -> bool {
    // U+FFFD is what bytes that are not UTF-8 have become.
    value.chars().all(|c| c == '\t' || (!c.is_control() && c != '\u{fffd}'))
}

/// A value as a shell takes it; nothing where it is empty.
fn quoted(value: &str) -> String {
    if value.is_empty() { String::new() } else { shell_word(value) }
}

fn parse_line(line: &str) -> Result<Option<(&str, String)>, SyntaxProblem> {
    let line = line.trim_start_matches(BLANK);
    if is_nothing_or_comment(line) {
        return Ok(None);
    }
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with(BLANK));
    let assignment = exported.unwrap_or(line).trim_start_matches(BLANK);
    let (name, rest) = split_name(assignment);
    let after_blanks = rest.trim_start_matches(BLANK);
    if name.is_empty() {
        Err(SyntaxProblem::NotASetting { word: first_word(line) })
    } else if let Some(text) = rest.strip_prefix('=') {
        let is_spaced = text.starts_with(BLANK) && !is_nothing_or_comment(after_statement(text));
        if is_spaced {
            return Err(SyntaxProblem::SpaceAroundEquals { name: name.to_owned() });
        }
        parse_value(text, name).map(|value| Some((name, value)))
    } else if after_blanks.starts_with('=') {
        Err(SyntaxProblem::SpaceAroundEquals { name: name.to_owned() })
    } else if exported.is_some_and(is_list_of_names) {
        Ok(None)
    } else {
        Err(SyntaxProblem::NotASetting { word: first_word(line) })
    }
}

/// The value at the start of `text`: one shell word, made of bare, quoted and escaped parts.
fn parse_value(text: &str, name: &str) -> Result<String, SyntaxProblem> {
    let name = || name.to_owned();
    let mut value = String::new();
    let mut rest = text.chars().peekable();
    if text.starts_with('~') {
        return Err(SyntaxProblem::Substitution { name: name(), sign: "~".to_owned() });
    }
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | ';' => {
                let tail: String = std::iter::once(c).chain(rest).collect();
                if is_nothing_or_comment(after_statement(&tail)) {
                    break;
                }
                return Err(SyntaxProblem::TextAfterValue { name: name() });
            }
            '\'' => single_quoted(&mut rest, &mut value).ok_or_else(|| SyntaxProblem::OpenQuote { name: name() })?,
            '"' => double_quoted(&mut rest, &mut value, &name)?,
            '\\' => value.push(rest.next().ok_or_else(|| SyntaxProblem::Continued { name: name() })?),
            '$' | '`' => match substitution(c, &mut rest, "'\"") {
                Some(sign) => return Err(SyntaxProblem::Substitution { name: name(), sign }),
                None => value.push(c),
            },
            '|' | '&' | '<' | '>' | '(' | ')' => {
                return Err(SyntaxProblem::ShellOperator { name: name(), operator: c });
            }
            _ => value.push(c),
        }
    }
    if is_plain_text(&value) { Ok(value) } else { Err(SyntaxProblem::Unprintable { name: name() }) }
}

fn single_quoted(rest: &mut Peekable<Chars<'_>>, value: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '\'' => return Some(()),
            c => value.push(c),
        }
    }
}

fn double_quoted(
    rest: &mut Peekable<Chars<'_>>,
    value: &mut String,
    name: &impl Fn() -> String,
) -> Result<(), SyntaxProblem> {
    loop {
        match rest.next().ok_or_else(|| SyntaxProblem::OpenQuote { name: name() })? {
            '"' => return Ok(()),
            '\\' => value.push(rest.next_if(|c| matches!(c, '$' | '`' | '"' | '\\')).unwrap_or('\\')),
            c @ ('$' | '`') => match substitution(c, rest, "") {
                Some(sign) => return Err(SyntaxProblem::Substitution { name: name(), sign }),
                None => value.push(c),
            },
            c => value.push(c),
        }
    }
}

/// The sign of a substitution that begins with `c`, for the message; `None` if a shell, too, takes the `$` as it is.
/// `quotes` are those that give `$` a meaning here.
fn substitution(c: char, rest: &mut Peekable<Chars<'_>>, quotes: &str) -> Option<String> {
    if c == '`' {
        return Some(c.to_string());
    }
    let next = *rest.peek()?;
    match next {
        '(' | '{' | '[' => Some(format!("${next}")),
        '_' | 'A'..='Z' | 'a'..='z' => {
            let mut sign = String::from("$");
            while let Some(letter) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                sign.push(letter);
            }
            Some(sign)
        }
        '0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-' => Some(format!("${next}")),
        _ if quotes.contains(next) => Some(format!("${next}")),
        _ => None,
    }
}

fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { ("", text) } else { text.split_at(end) }
}

fn is_list_of_names(text: &str) -> bool {
    let (names, comment) = text.split_once('#').map_or((text, ""), |(names, comment)| (names, comment));
    // `A#B` is no comment to a shell.
    let comment_is_apart = comment.is_empty() || names.ends_with([' ', '\t', ';']);
    let names = names.trim_end_matches(BLANK).trim_end_matches(';');
    comment_is_apart && names.split(BLANK).all(|name| name.is_empty() || split_name(name) == (name, ""))
}

/// What follows blanks and at most one semicolon.
fn after_statement(text: &str) -> &str {
    let text = text.trim_start_matches(BLANK);
    text.strip_prefix(';').unwrap_or(text).trim_start_matches(BLANK)
}

fn is_nothing_or_comment(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}

/// The first word, cut short: the rest of a line that cannot be read may hold a password.
fn first_word(line: &str) -> String {
    let word = line.split([' ', '\t', '=']).next().unwrap_or_default();
    word.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests;
