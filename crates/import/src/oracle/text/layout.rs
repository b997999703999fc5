//! Where columns lie, what they are called, and what stands in them.

use std::ops::Range;

use super::forms;
use crate::columns;

/// More columns than any table has; a rule with more of them is none.
const MAX_COLUMNS: usize = 128;
/// Where a rule begins further to the right than that, names of rows stand before it, as in forms.
const FORM_INDENT: usize = 4;
/// A rule that ends a section begins at least here, and is at least as long as [`END_LENGTH`].
const END_INDENT: usize = 8;
const END_LENGTH: usize = 40;

/// A line whose characters are found by their position.
pub(super) struct Placed<'a> {
    text: &'a str,
    /// Where each character begins; nothing for ASCII, where each has one byte.
    begins: Option<Vec<usize>>,
}

impl<'a> Placed<'a> {
    /// The characters of a line.
    pub(super) fn new(text: &'a str) -> Self {
        let begins = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { text, begins }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.begins.as_ref().map_or(self.text.len(), Vec::len)
    }

    /// The text between two positions, blanks included; less where the line is shorter.
    pub(super) fn between(&self, range: Range<usize>) -> &'a str {
        let byte = |at: usize| match &self.begins {
            None => at.min(self.text.len()),
            Some(begins) => begins.get(at).copied().unwrap_or(self.text.len()),
        };
        self.text.get(byte(range.start)..byte(range.end.max(range.start))).unwrap_or_default()
    }

    /// Whether nothing stands at a position.
    fn is_blank(&self, at: usize) -> bool {
        let byte = self.begins.as_ref().map_or(Some(at), |begins| begins.get(at).copied());
        byte.and_then(|byte| self.text.as_bytes().get(byte)).is_none_or(|byte| *byte == b' ')
    }

    /// Words, and where they stand.
    fn words(&self) -> Vec<(Range<usize>, &'a str)> {
        let mut words = Vec::new();
        let mut from = 0;
        let end = self.len();
        while from < end {
            if self.is_blank(from) {
                from += 1;
                continue;
            }
            let mut to = from + 1;
            while to < end && !self.is_blank(to) {
                to += 1;
            }
            words.push((from..to, self.between(from..to)));
            from = to;
        }
        words
    }
}

/// A line of dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// Where its runs lie.
    pub(super) runs: Vec<Range<usize>>,
    /// Whether the first of them is made of `~`.
    pub(super) first_is_tilde: bool,
    /// Whether all of it is.
    pub(super) all_tilde: bool,
}

impl Rule {
    /// If a line is one.
    pub(super) fn of(line: &str) -> Option<Self> {
        // Most lines are not: one look at their beginning says so.
        let first = line.trim_start().bytes().next()?;
        if first != b'-' && first != b'~' {
            return None;
        }
        let runs = columns::of_rule(line)?;
        if runs.len() > MAX_COLUMNS {
            return None;
        }
        Some(Self { runs, first_is_tilde: first == b'~', all_tilde: first == b'~' && !line.contains('-') })
    }

    /// Whether it may end a section: one long run, far from the margin.
    pub(super) fn ends_a_section(&self) -> bool {
        matches!(self.runs.as_slice(), [run] if run.start >= END_INDENT && run.len() >= END_LENGTH)
    }

    /// Whether its runs span columns that `below` has.
    pub(super) fn spans(&self, below: &Self) -> bool {
        below.runs.len() > self.runs.len()
            && self.runs.iter().all(|run| {
                below.runs.iter().any(|column| column.start == run.start)
                    && below.runs.iter().any(|column| column.end == run.end)
            })
    }
}

/// The underline of a title: a run of `~` at the beginning of a line, with text or dashes after it, or nothing.
pub(super) fn underline(line: &str) -> Option<Range<usize>> {
    let from = line.len() - line.trim_start().len();
    let run = line.get(from..)?.bytes().take_while(|byte| *byte == b'~').count();
    let rest = line.get(from + run..)?;
    // Sums at the end of a table of a cluster have a rule of several runs of `~` above them.
    (run >= 4 && !rest.contains('~') && (rest.is_empty() || rest.starts_with(' '))).then_some(from..from + run)
}

/// Columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Columns {
    /// Where they lie.
    pub(super) places: Vec<Range<usize>>,
    /// What they are called.
    pub(super) names: Vec<String>,
    /// Whether the first one holds names of rows before the rule begins.
    pub(super) form: bool,
    /// What stood over that first column; it is the title of a form that has no other.
    pub(super) form_title: String,
}

/// What stands over groups of columns.
pub(super) struct Groups {
    /// Where they lie.
    pub(super) places: Vec<Range<usize>>,
    /// What they are called.
    pub(super) names: Vec<String>,
}

impl Groups {
    /// Those of a rule that spans columns, by the headings above it.
    pub(super) fn new(rule: &Rule, headings: &[String]) -> Self {
        let names = names(&rule.runs, headings);
        Self { places: rule.runs.clone(), names }
    }
}

impl Columns {
    /// Those of a rule, by the headings above it.
    pub(super) fn new(rule: &Rule, headings: &[String], mut groups: Vec<Groups>) -> Self {
        let mut places = rule.runs.clone();
        let first = places.first().map_or(0, |place| place.start);
        let mut form = false;
        if rule.first_is_tilde && places.len() > 1 {
            // The underline of a title, and names of rows below it.
            let end = places.get(1).map_or(0, |place| place.start.saturating_sub(1));
            if let Some(place) = places.first_mut() {
                *place = 0..end;
            }
            form = true;
        } else if first >= FORM_INDENT {
            places.insert(0, 0..first - 1);
            form = true;
        }
        let mut own = Vec::with_capacity(headings.len());
        for heading in headings {
            let (rest, group) = spanning_headings(heading);
            own.push(rest);
            groups.extend(group);
        }
        let mut names = names(&places, &own);
        let form_title = match names.first_mut() {
            Some(name) if form => std::mem::take(name),
            _ => String::new(),
        };
        for (name, place) in names.iter_mut().zip(&places) {
            let group = groups.iter().rev().filter_map(|group| group.over(place)).filter(|group| !group.is_empty());
            for group in group {
                *name = format!("{group}: {name}");
            }
        }
        Self { places, names, form, form_title }
    }

    /// What stands in each of them, without blanks around it.
    ///
    /// What is too wide for its column stays in one piece: a number that ends where its column ends belongs there, wherever it
    /// begins; anything else belongs to the column in which it begins.
    pub(super) fn cells(&self, line: &Placed<'_>) -> Vec<String> {
        let mut cells = Vec::with_capacity(self.places.len());
        let end_of_line = line.len();
        let mut from = self.places.first().map_or(0, |place| place.start);
        for (index, place) in self.places.iter().enumerate() {
            let next = self.places.get(index + 1).cloned().unwrap_or(end_of_line.max(place.end)..usize::MAX);
            let (to, next_from) = border(line, from, place, &next);
            let mut cell = plain(line.between(from.min(to)..to).trim());
            if cell.len() == place.len() && is_time_cut_in_its_unit(&cell) {
                cell.push('s');
            }
            cells.push(cell);
            from = next_from;
        }
        cells
    }

    /// Where the last of them ends.
    pub(super) fn end(&self) -> usize {
        self.places.last().map_or(0, |place| place.end)
    }
}

/// `1388.60m` is `1388.60ms` in a column of eight characters: reports have no minutes and no millionths.
fn is_time_cut_in_its_unit(cell: &str) -> bool {
    let number = cell.strip_suffix(['m', 'u', 'n']).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',')
}

/// A cell with single blanks, as HTML shows it.
fn plain(text: &str) -> String {
    if text.contains("  ") { forms::joined(text) } else { text.to_owned() }
}

/// Where a column that begins at `from` ends on a line, and where the next one begins.
fn border(line: &Placed<'_>, from: usize, place: &Range<usize>, next: &Range<usize>) -> (usize, usize) {
    // What stands before went on through all of this column.
    if from >= place.end {
        return (from, from.max(next.start));
    }
    let gap = place.end..next.start.min(line.len());
    let Some(within) = gap.clone().find(|at| !line.is_blank(*at)) else {
        return (place.end, next.start);
    };
    let mut begin = within;
    while begin > from && !line.is_blank(begin - 1) {
        begin -= 1;
    }
    let mut end = within + 1;
    while end < line.len() && !line.is_blank(end) {
        end += 1;
    }
    if begin >= place.end && end > next.start {
        return (place.end, begin);
    }
    if begin > place.end {
        // It stands between two columns and touches neither.
        return (place.end, next.start);
    }
    let is_number = line.between(begin..end).starts_with(|c: char| c.is_ascii_digit() || "-.#".contains(c));
    if end == next.end && begin > place.start && begin > from && is_number {
        return (begin, begin);
    }
    (end, end.max(next.start))
}

impl Groups {
    /// What stands over a column.
    fn over(&self, column: &Range<usize>) -> Option<&str> {
        let within = |place: &Range<usize>| place.start <= column.start && column.end <= place.end;
        let at = self.places.iter().position(within)?;
        self.names.get(at).map(String::as_str)
    }
}

/// Each word of the headings goes to the column of which it covers most.
fn names(places: &[Range<usize>], headings: &[String]) -> Vec<String> {
    let mut names = vec![String::new(); places.len()];
    for heading in headings {
        let heading = Placed::new(heading);
        let mut first = 0;
        for (word, text) in heading.words() {
            while places.get(first).is_some_and(|place| place.end <= word.start) {
                first += 1;
            }
            let shared = |place: &Range<usize>| place.end.min(word.end).saturating_sub(place.start.max(word.start));
            let near =
                (first..places.len()).take_while(|at| places.get(*at).is_some_and(|place| place.start < word.end));
            let most = near.max_by_key(|at| places.get(*at).map_or(0, shared));
            if let Some(name) = most.and_then(|index| names.get_mut(index)) {
                if !name.is_empty() {
                    name.push(' ');
                }
                name.push_str(text);
            }
        }
    }
    names
}

/// A heading such as `Total ------- % of Waits -------`: the dashes show which columns it spans. What remains of it, and the
/// groups.
fn spanning_headings(heading: &str) -> (String, Option<Groups>) {
    if !heading.contains("---") {
        return (heading.to_owned(), None);
    }
    let placed = Placed::new(heading);
    let is_dashes = |text: &str| text.len() >= 3 && text.bytes().all(|byte| byte == b'-');
    let mut groups = Groups { places: Vec::new(), names: Vec::new() };
    // What stands since the last dashes, and where these began.
    let mut since: Option<(usize, Vec<&str>)> = None;
    for (place, text) in placed.words() {
        match &mut since {
            Some((from, words)) if is_dashes(text) && !words.is_empty() => {
                groups.names.push(words.join(" "));
                groups.places.push(*from..place.end);
                since = None;
            }
            _ if is_dashes(text) => since = Some((place.start, Vec::new())),
            Some((_, words)) => words.push(text),
            None => {}
        }
    }
    if groups.places.is_empty() {
        return (heading.to_owned(), None);
    }
    let mut rest = String::with_capacity(heading.len());
    let mut at = 0;
    for place in &groups.places {
        rest.push_str(placed.between(at..place.start));
        rest.extend(std::iter::repeat_n(' ', place.len()));
        at = place.end;
    }
    rest.push_str(placed.between(at..placed.len()));
    (rest, Some(groups))
}
