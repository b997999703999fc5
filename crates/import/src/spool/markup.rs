//! Spools with `set markup html on`.

use std::borrow::Cow;

/// The longest tag or entity; what is longer is none.
const LONGEST_TAG: usize = 1_024;

/// A text in which each row of an HTML table stands on the line of its last cell, its cells held apart by `|`. Other tags are left
/// out. Lines keep their numbers where no two rows stand on one. A text without such tables is left as it is.
pub(crate) fn unmarked(text: &str) -> Cow<'_, str> {
    let head = text.get(..text.len().min(1 << 16)).unwrap_or(text);
    let has = |tag: &str| head.contains(tag) || head.contains(&tag.to_ascii_uppercase());
    if !(has("<table") && has("<th") && has("</td>")) {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len());
    // The cells of the row that is being read; their lines follow when it ends.
    let mut row: Option<Row> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (taken, sign) = match first {
            '<' => tag(rest).map_or((1, Sign::Text("<")), |(taken, name)| (taken, Sign::Tag(name))),
            '&' => entity(rest).map_or((1, Sign::Text("&")), |(taken, text)| (taken, Sign::Text(text))),
            _ => {
                let next = rest.char_indices().skip(1).find(|(_, c)| matches!(c, '<' | '&'));
                let taken = next.map_or(rest.len(), |(at, _)| at);
                (taken, Sign::Text(rest.get(..taken).unwrap_or("")))
            }
        };
        let Some(after) = rest.get(taken..) else { break };
        let lines = rest.get(..taken).unwrap_or("").matches('\n').count();
        match (&mut row, sign) {
            (_, Sign::Tag("tr")) => row = Some(Row { lines, ..row.map(|row| row.end(&mut made)).unwrap_or_default() }),
            (Some(_), Sign::Tag("/tr" | "/table")) => {
                if let Some(row) = row.take() {
                    row.end(&mut made);
                }
                made.extend(std::iter::repeat_n('\n', lines));
            }
            (Some(row), Sign::Tag(name)) => {
                row.lines += lines;
                if matches!(name, "th" | "td") {
                    row.cells.push(String::new());
                }
            }
            (Some(row), Sign::Text(text)) => {
                row.lines += lines;
                if let Some(cell) = row.cells.last_mut() {
                    cell.extend(text.chars().map(|c| if c == '\n' || c == '|' { ' ' } else { c }));
                }
            }
            (None, Sign::Tag(_)) => made.extend(std::iter::repeat_n('\n', lines)),
            (None, Sign::Text(text)) => {
                if made.ends_with('|') && !text.starts_with(['\r', '\n']) {
                    made.push('\n');
                }
                made.push_str(text);
            }
        }
        rest = after;
    }
    if let Some(row) = row {
        row.end(&mut made);
    }
    Cow::Owned(made)
}

enum Sign<'a> {
    Tag(&'a str),
    Text(&'a str),
}

#[derive(Default)]
struct Row {
    cells: Vec<String>,
    /// Lines that it took so far.
    lines: usize,
}

impl Row {
    /// Writes it, and what is left of it: nothing.
    fn end(self, made: &mut String) -> Self {
        made.extend(std::iter::repeat_n('\n', self.lines));
        if !self.cells.is_empty() {
            // Rows that stand on one line are divided, whatever that does to the numbers of those below.
            if !made.is_empty() && !made.ends_with('\n') {
                made.push('\n');
            }
            for cell in &self.cells {
                made.push_str("| ");
                cell.split_whitespace().for_each(|word| {
                    made.push_str(word);
                    made.push(' ');
                });
            }
            made.push('|');
        }
        Self::default()
    }
}

/// How long the tag is that a text begins with, and its name.
fn tag(text: &str) -> Option<(usize, &str)> {
    let end = text.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')?;
    let inside = text.get(1..end)?;
    if !inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!') || inside.contains('<') {
        return None;
    }
    let name = inside.split_whitespace().next().unwrap_or("");
    let known = ["tr", "/tr", "th", "td", "/table"].into_iter().find(|known| name.eq_ignore_ascii_case(known));
    Some((end + 1, known.unwrap_or("")))
}

/// How long the entity is that a text begins with, and what it stands for.
fn entity(text: &str) -> Option<(usize, &'static str)> {
    const KNOWN: [(&str, &str); 7] = [
        ("&nbsp;", " "),
        ("&#160;", " "),
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&amp;", "&"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ];
    KNOWN.iter().find(|(name, _)| text.starts_with(name)).map(|(name, text)| (name.len(), *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_on_the_line_of_their_last_cell() {
        let text = "SQL&gt; select n<br>\n<p>\n<table border='1'\n summary=\"x\">\n<tr>\n<th scope=\"col\">\nNAME\n</th>\n<th>N</th>\n</tr>\n\
                    <TR>\n<TD>\na &amp; b\n</TD>\n<TD align=\"right\">         7\n</TD>\n</TR>\n</table>\n<p>\n\n1 row selected.<br>\n";
        let unmarked = unmarked(text);
        let lines: Vec<(usize, &str)> =
            unmarked.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
        let expected = [(0, "SQL> select n"), (9, "| NAME | N |"), (16, "| a & b | 7 |"), (20, "1 row selected.")];
        assert_eq!(lines, expected);
        assert_eq!(unmarked.lines().count(), text.lines().count());
    }

    #[test]
    fn what_is_no_table_is_left_alone() {
        assert!(matches!(unmarked("a < b & c"), Cow::Borrowed(_)));
        let odd = "<table><tr><th>a<b</td> x & y <";
        assert_eq!(unmarked(odd), "| a<b x & y < |");
    }
}
