//! Tables as SQL*Plus spools them, whatever stands around them.

mod lines;
mod markup;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::ops::Range;

use super::columns::of_rule;
use super::numbers::{count, number};
use super::oracle_time;
pub(super) use lines::{clean, release_of, rows_selected};
pub(super) use markup::unmarked;
use words::by_words;

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
            number(cell).is_some() || count(cell).is_some() || (!cell.is_empty() && cell.bytes().all(|b| b == b'#'))
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
