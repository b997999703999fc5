//! Tables as SQL*Plus spools them, whatever stands around them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::columns::of_rule;
use super::console::plain;
use super::numbers::{count, ungrouped, whole_number};
use super::oracle::classes::WAIT_CLASSES;
use super::oracle_time;

/// No table that is read here is wider.
const MAX_COLUMNS: usize = 256;

/// No name in a cell is longer.
const LONGEST_TEXT: usize = 1_024;
/// What `set colsep` and `set markup csv delimiter` are set to; `#` last, as it ends names of columns too.
const DELIMITERS: [char; 8] = ['|', ',', ';', '~', '^', '!', ':', '#'];
/// What a log puts before its lines, in characters.
const LONGEST_MARK: usize = 64;

/// What a column holds, as far as that is needed to find its words where blanks were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number, one word.
    Number,
    /// A time, several words.
    Time,
    /// Words that may hold blanks.
    Text,
    /// One of Oracle's classes of wait events, such as `User I/O`.
    WaitClass,
    /// A duration for people, such as `512 microseconds`.
    Duration,
}

/// What is found in a file, in its order.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// Headings: rows of a table follow. They are in capitals.
    Headings(&'a [String]),
    /// A row: a cell for each heading, blanks around it taken off.
    Row(u64, Vec<String>),
    /// A line of nothing.
    Blank,
    /// Any other line.
    Other(u64, &'a str),
}

enum Layout {
    /// Where each column lies, line for line: SQL*Plus breaks rows that are too long.
    Fixed(Vec<Vec<Range<usize>>>),
    Delimited(char),
    /// Blanks that held columns apart were lost, or there never was a line of dashes.
    Words,
}

struct Page {
    layout: Layout,
    headings: Vec<String>,
    kinds: Vec<Kind>,
    /// Lines of a row that was broken, as far as they were seen.
    parts: Vec<String>,
}

/// Reads the tables of a text whose headings are `wanted`. `kind` says what is under a heading.
pub(super) fn scan(
    text: &str,
    wanted: impl Fn(&[String]) -> bool,
    kind: impl Fn(&str) -> Kind,
    mut found: impl FnMut(Found<'_>),
) {
    let mark = mark_of(text, &wanted);
    let mut lines = text.lines().zip(1_u64..).map(|(line, number)| (number, without(mark, clean(line)))).peekable();
    let mut page: Option<Page> = None;
    let open = |layout: Layout, headings: Vec<String>| {
        let kinds = headings.iter().map(|heading| kind(heading)).collect();
        Page { layout, headings, kinds, parts: Vec::new() }
    };
    // A row whose text may go on below it.
    let mut pending: Option<(u64, Vec<String>)> = None;
    while let Some((number, line)) = lines.next() {
        if let (Some((_, cells)), Some(page)) = (&mut pending, &page)
            && page.goes_on(cells, &line)
        {
            continue;
        }
        if let Some((number, cells)) = pending.take() {
            found(Found::Row(number, cells));
        }
        if line.trim().is_empty() {
            if page.as_ref().is_none_or(|page| page.parts.is_empty()) {
                found(Found::Blank);
            }
            continue;
        }
        // The last row above a sum has dashes below it too, as headings have.
        let row = match &mut page {
            Some(page) if !page.is_broken() => page.row(&line),
            _ => Row::None,
        };
        let is_row = matches!(row, Row::Whole(_));
        if let Some(rule) = lines.peek().filter(|_| !is_row).and_then(|(_, next)| rule_of(next)) {
            // A table that is broken over several lines has as many headings, each with its dashes.
            let mut heads = vec![(line.clone(), rule)];
            lines.next();
            while heads.len() < MAX_COLUMNS
                && let Some((_, head)) = lines.peek()
                && rule_of(head).is_none()
            {
                let head = head.clone();
                let mut ahead = lines.clone();
                ahead.next();
                let Some(rule) = ahead.peek().and_then(|(_, next)| rule_of(next)) else { break };
                heads.push((head, rule));
                lines.next();
                lines.next();
            }
            let (layout, headings) = layout_of(&heads);
            if wanted(&headings) {
                found(Found::Headings(&headings));
                page = Some(open(layout, headings));
            } else {
                page = None;
                found(Found::Other(number, &line));
            }
            continue;
        }
        if !is_row && let Some((layout, headings)) = bare_headings(&line, &wanted) {
            found(Found::Headings(&headings));
            page = Some(open(layout, headings));
            continue;
        }
        let row = match &mut page {
            Some(page) if page.is_broken() => page.row(&line),
            _ => row,
        };
        match row {
            Row::Whole(cells) => pending = Some((number, cells)),
            Row::Part | Row::Rule => {}
            Row::None => {
                page = None;
                found(Found::Other(number, &line));
            }
        }
    }
    if let Some((number, cells)) = pending {
        found(Found::Row(number, cells));
    }
}

/// Reads rows of a text without headings (`set heading off`), of which it is known that these columns stand in them.
pub(super) fn scan_bare(
    text: &str,
    headings: &[String],
    kind: impl Fn(&str) -> Kind,
    mut found: impl FnMut(Found<'_>),
) {
    let kinds: Vec<Kind> = headings.iter().map(|heading| kind(heading)).collect();
    let page = |layout: Layout| Page { layout, headings: headings.to_vec(), kinds: kinds.clone(), parts: Vec::new() };
    let mut pages: Vec<(Option<char>, Page)> =
        DELIMITERS.iter().map(|delimiter| (Some(*delimiter), page(Layout::Delimited(*delimiter)))).collect();
    pages.push((None, page(Layout::Words)));
    for (line, number) in text.lines().zip(1_u64..) {
        let line = clean(line);
        let mut rows = pages.iter_mut().filter(|(delimiter, _)| delimiter.is_none_or(|sign| line.contains(sign)));
        let row = rows.find_map(|(_, page)| match page.row(&line) {
            Row::Whole(cells) => Some(cells),
            _ => None,
        });
        match row {
            _ if line.trim().is_empty() => found(Found::Blank),
            Some(cells) => found(Found::Row(number, cells)),
            None => found(Found::Other(number, &line)),
        }
    }
}

enum Row {
    Whole(Vec<String>),
    Part,
    Rule,
    None,
}

impl Page {
    fn is_broken(&self) -> bool {
        matches!(&self.layout, Layout::Fixed(parts) if parts.len() > 1)
    }

    fn row(&mut self, line: &str) -> Row {
        match &self.layout {
            Layout::Fixed(parts) if parts.len() > 1 => {
                self.parts.push(line.to_owned());
                if self.parts.len() < parts.len() {
                    return if is_row_count(line) { Row::None } else { Row::Part };
                }
                let lines = std::mem::take(&mut self.parts);
                let cells: Option<Vec<Vec<String>>> =
                    lines.iter().zip(parts).map(|(line, columns)| cells_at(line, columns)).collect();
                self.checked(cells.map(|cells| cells.concat()))
            }
            Layout::Fixed(parts) => {
                if is_ornament(line) {
                    return Row::Rule;
                }
                // Words are looked for only where columns hold none: cells that are no numbers are not those of another column.
                match parts.first().and_then(|columns| cells_at(line, columns)) {
                    Some(cells) => self.checked(Some(cells)),
                    None => self.checked(by_words(line, &self.kinds)),
                }
            }
            Layout::Delimited(delimiter) => {
                if line.chars().all(|c| c == *delimiter || "-_+=: ".contains(c)) {
                    return Row::Rule;
                }
                let fields = fields(line, *delimiter);
                self.checked((fields.len() == self.headings.len()).then_some(fields))
            }
            Layout::Words => {
                if is_ornament(line) {
                    return Row::Rule;
                }
                self.checked(by_words(line, &self.kinds))
            }
        }
    }

    /// Whether a line holds nothing but text that had no room in the row above it; it is added there.
    fn goes_on(&self, cells: &mut [String], line: &str) -> bool {
        let Layout::Fixed(parts) = &self.layout else { return false };
        let ([columns], Some(more)) = (parts.as_slice(), parts.first().and_then(|columns| cells_at(line, columns)))
        else {
            return false;
        };
        let had_no_room = |((cell, more), (kind, column)): ((&String, &String), (&Kind, &Range<usize>))| {
            let first_word = more.split(' ').next().map_or(0, |word| word.chars().count());
            more.is_empty()
                || (matches!(kind, Kind::Text | Kind::WaitClass)
                    && cell.len() < LONGEST_TEXT
                    && cell.chars().count() + 1 + first_word > column.len())
        };
        let is_more = more.iter().any(|more| !more.is_empty())
            && cells.iter().zip(&more).zip(self.kinds.iter().zip(columns)).all(had_no_room);
        if is_more {
            for ((cell, more), column) in
                cells.iter_mut().zip(&more).zip(columns).filter(|((_, more), _)| !more.is_empty())
            {
                // Where the column was full, a word was cut, unless the blank behind it is the first of this line.
                if cell.chars().count() < column.len() || line.chars().nth(column.start) == Some(' ') {
                    cell.push(' ');
                }
                cell.push_str(more);
            }
        }
        is_more
    }

    /// A line is a row if its numbers are numbers, and there is one at least; where no column is of numbers, a time. `####` is a
    /// number that had no room.
    fn checked(&self, cells: Option<Vec<String>>) -> Row {
        let Some(cells) = cells else { return Row::None };
        let numbers = || cells.iter().zip(&self.kinds).filter(|(_, kind)| **kind == Kind::Number).map(|(cell, _)| cell);
        let is_number = |cell: &String| {
            ungrouped(cell).is_some() || count(cell).is_some() || (!cell.is_empty() && cell.bytes().all(|b| b == b'#'))
        };
        let mut times = cells.iter().zip(&self.kinds).filter(|(_, kind)| **kind == Kind::Time).map(|(cell, _)| cell);
        let mut has_time = || times.any(|cell| oracle_time::began(cell).is_some());
        let fits = numbers().all(|cell| cell.is_empty() || is_number(cell))
            && (numbers().any(is_number) || (numbers().next().is_none() && has_time()));
        if fits { Row::Whole(cells) } else { Row::None }
    }
}

/// Dashes below headings and above sums, and the asterisks of `compute`.
fn is_ornament(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '-' | '_' | '=' | '*' | ' '))
}

fn is_row_count(line: &str) -> bool {
    rows_selected(line).is_some()
}

/// How many characters a log has put before every line, by the first dashes below wanted headings.
fn mark_of(text: &str, wanted: &impl Fn(&[String]) -> bool) -> usize {
    let mut above = "";
    for line in text.lines() {
        let before = line.trim_end().trim_end_matches(['-', '_', '=', ' ']);
        let (Some(rule), true) = (line.get(before.len()..), line.trim_end().ends_with(['-', '_', '='])) else {
            above = line;
            continue;
        };
        let mark = before.chars().count() + rule.chars().take_while(|c| *c == ' ').count();
        if before.contains(char::is_alphanumeric)
            && mark <= LONGEST_MARK
            && let Some(columns) = rule_of(rule.trim())
            && wanted(&layout_of(&[(without(mark, clean(above)), columns)]).1)
        {
            return mark;
        }
        above = line;
    }
    0
}

/// A line without its first characters.
fn without(mark: usize, line: Cow<'_, str>) -> Cow<'_, str> {
    match mark {
        0 => line,
        mark => Cow::Owned(line.chars().skip(mark).collect()),
    }
}

/// Where columns lie by a line of dashes; SQLcl draws it with other signs.
fn rule_of(line: &str) -> Option<Vec<Range<usize>>> {
    let signs = |byte: u8| matches!(byte, b'-' | b'_' | b'=' | b' ');
    if !line.trim_start().starts_with(['-', '_', '=']) || !line.bytes().all(signs) {
        return None;
    }
    of_rule(&line.replace(['_', '='], "-")).filter(|columns| columns.len() <= MAX_COLUMNS)
}

/// The headings above their dashes; if they do not stand above them, blanks were lost and only their words are left.
fn layout_of(heads: &[(Cow<'_, str>, Vec<Range<usize>>)]) -> (Layout, Vec<String>) {
    let capitals = |text: &str| text.to_uppercase();
    let above: Option<Vec<Vec<String>>> = heads
        .iter()
        .map(|(line, columns)| cells_at(line, columns).filter(|cells| cells.iter().all(|cell| !cell.is_empty())))
        .collect();
    match above {
        Some(headings) => {
            let columns = heads.iter().map(|(_, columns)| columns.clone()).collect();
            (Layout::Fixed(columns), headings.concat().iter().map(|heading| capitals(heading)).collect())
        }
        None => {
            let words = heads.iter().flat_map(|(line, _)| line.split_whitespace());
            (Layout::Words, words.take(MAX_COLUMNS).map(capitals).collect())
        }
    }
}

/// Headings that no dashes follow, at least not of the usual form: `set markup csv`, `set colsep`, `set underline off`.
fn bare_headings(line: &str, wanted: &impl Fn(&[String]) -> bool) -> Option<(Layout, Vec<String>)> {
    // A statement names columns too.
    let is_statement = |word: &str| ["select", "from", "where", "by"].iter().any(|sql| word.eq_ignore_ascii_case(sql));
    if line.len() > 16 << 10 || line.split_whitespace().any(is_statement) {
        return None;
    }
    let capitals = |fields: Vec<String>| fields.iter().map(|field| field.to_uppercase()).collect::<Vec<_>>();
    for delimiter in DELIMITERS {
        if line.contains(delimiter) {
            let headings = capitals(fields(line, delimiter));
            if headings.len() <= MAX_COLUMNS && wanted(&headings) {
                return Some((Layout::Delimited(delimiter), headings));
            }
        }
    }
    let words = capitals(line.split_whitespace().map(str::to_owned).collect());
    (words.len() <= MAX_COLUMNS && wanted(&words)).then_some((Layout::Words, words))
}

/// The cells of a line, if no word lies outside of the columns or in two of them.
fn cells_at(line: &str, columns: &[Range<usize>]) -> Option<Vec<String>> {
    let mut cells = vec![String::new(); columns.len()];
    let mut current = 0;
    for (at, c) in line.chars().enumerate() {
        while columns.get(current).is_some_and(|column| at >= column.end) {
            current += 1;
        }
        let inside = columns.get(current).filter(|column| column.contains(&at));
        match inside.and_then(|_| cells.get_mut(current)) {
            Some(cell) => cell.push(c),
            None if c == ' ' => {}
            None => return None,
        }
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// The fields of a line, quotes and blanks around them taken off; a delimiter at both ends frames the line.
fn fields(line: &str, delimiter: char) -> Vec<String> {
    let line = line.trim();
    let framed = delimiter == '|' && line.starts_with('|') && line.ends_with('|');
    let line = if framed { line.trim_matches('|') } else { line };
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c == delimiter && !quoted => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

/// `set linesize` takes no more.
const WIDEST: usize = 32_767;

/// A line without carriage returns and form feeds, and with blanks for tabs: SQL*Plus writes tabs for blanks where it
/// can, and `set newpage 0` begins each page with a form feed.
pub(crate) fn clean(line: &str) -> Cow<'_, str> {
    let line = plain(line).trim_start_matches('\u{c}');
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len() + 16);
    let mut column = 0_usize;
    for c in line.chars() {
        // Far to the right there are no columns, and a file of tabs would become eight times as large.
        let width = if c == '\t' && column < WIDEST { 8 - column % 8 } else { 1 };
        match c {
            '\t' => text.extend(std::iter::repeat_n(' ', width)),
            c => text.push(c),
        }
        column += width;
    }
    Cow::Owned(text)
}

/// How many rows SQL*Plus says there were: `19 rows selected.`
pub(crate) fn rows_selected(line: &str) -> Option<u64> {
    let (count, rest) = line.trim().split_once(' ')?;
    (rest.starts_with("rows selected") || rest.starts_with("row selected")).then(|| whole_number(count)).flatten()
}

/// The release in `Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production`.
pub(crate) fn release_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Oracle Database")?;
    let (_, release) = rest.split_once(" Release ")?;
    let word = release.split_whitespace().next()?;
    (word.len() < 32 && word.starts_with(|c: char| c.is_ascii_digit())).then_some(word)
}

/// The cells of a line whose blanks were lost: numbers are one word, and what cannot be a number or a time between them is
/// text. A number or time before the text may be missing, where `break on` prints it once.
fn by_words(line: &str, kinds: &[Kind]) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().take(4 * MAX_COLUMNS).collect();
    let mut rest = words.as_slice();
    let is_text = |kind: &Kind| matches!(kind, Kind::Text | Kind::WaitClass);
    let first = kinds.iter().position(is_text).unwrap_or(kinds.len());
    let after = kinds.iter().rposition(is_text).map_or(kinds.len(), |last| last + 1);
    let (before_text, texts, after_text) = (kinds.get(..first)?, kinds.get(first..after)?, kinds.get(after..)?);
    let take_first = |rest: &mut &[&str], count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        *rest = left;
        Some(taken.join(" "))
    };
    let mut cells = Vec::with_capacity(kinds.len());
    for kind in before_text {
        let count = match kind {
            Kind::Number => usize::from(rest.first().is_some_and(|word| ungrouped(word).is_some())),
            Kind::Time => oracle_time::words_of(rest),
            _ => return None,
        };
        cells.push(take_first(&mut rest, count)?);
    }
    let mut last = Vec::new();
    for kind in after_text.iter().rev() {
        let count = match kind {
            Kind::Number if rest.last().is_some_and(|word| ungrouped(word).is_some()) => 1,
            // `1 minute 7 seconds`
            Kind::Duration if rest.iter().rev().nth(2).is_some_and(|word| word.starts_with("minute")) => 4,
            Kind::Duration => 2,
            Kind::Time => {
                let fits = |count: &usize| {
                    rest.len().checked_sub(*count).and_then(|at| rest.get(at..)).map(oracle_time::words_of)
                        == Some(*count)
                };
                (1..=4).rev().find(fits)?
            }
            _ => return None,
        };
        let (left, taken) = rest.split_at_checked(rest.len().checked_sub(count)?)?;
        rest = left;
        last.push(taken.join(" "));
    }
    let text = rest.join(" ");
    match texts {
        [] if rest.is_empty() => {}
        [_] => cells.push(text),
        [Kind::WaitClass, Kind::Text] => {
            let class = WAIT_CLASSES.iter().find(|class| text.strip_prefix(**class).is_some_and(begins_blank))?;
            cells.push((*class).to_owned());
            cells.push(text.strip_prefix(class)?.trim().to_owned());
        }
        [Kind::Text, Kind::WaitClass] => {
            let class =
                WAIT_CLASSES.iter().find(|class| text.strip_suffix(**class).is_some_and(|t| t.ends_with(' ')))?;
            cells.push(text.strip_suffix(class)?.trim().to_owned());
            cells.push((*class).to_owned());
        }
        _ => return None,
    }
    cells.extend(last.into_iter().rev());
    Some(cells)
}

fn begins_blank(text: &str) -> bool {
    text.is_empty() || text.starts_with(' ')
}

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
    let mut row: Option<MarkupRow> = None;
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
            (_, Sign::Tag("tr")) => {
                row = Some(MarkupRow { lines, ..row.map(|row| row.end(&mut made)).unwrap_or_default() })
            }
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
struct MarkupRow {
    cells: Vec<String>,
    /// Lines that it took so far.
    lines: usize,
}

impl MarkupRow {
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
