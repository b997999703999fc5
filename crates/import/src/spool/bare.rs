//! Rows that no headings stand above.

use super::{DELIMITERS, Found, Kind, Layout, Page, Row, clean};

/// Reads rows of a text without headings (`set heading off`), of which it is known that these columns stand in them.
pub(crate) fn scan_bare(
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
