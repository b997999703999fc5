//! The tables of a report as parts of a page.

use std::io;

use maud::{Markup, html};

use crate::grid::Grid;
use crate::paper::Paper;

/// Cells longer than this may be broken, so that the columns beside them stay in sight.
const LONG_CELL: usize = 40;

/// A sentence for a page: what stands between backticks is code there.
pub(super) fn marked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Takes tables and remarks, and gives them back as markup.
#[derive(Default)]
pub(super) struct Sheets {
    parts: Vec<Markup>,
}

impl Sheets {
    /// What `fill` writes.
    pub(super) fn of(fill: impl FnOnce(&mut Self) -> io::Result<()>) -> Markup {
        let mut sheets = Self::default();
        fill(&mut sheets).expect("memory takes every part");
        html! { @for part in &sheets.parts { (part) } }
    }

    fn push(&mut self, part: Markup) {
        self.parts.push(part);
    }
}

impl Paper for Sheets {
    fn title(&mut self, title: &str) -> io::Result<()> {
        self.push(html! { h3 { (marked(title)) } });
        Ok(())
    }

    fn grid(&mut self, grid: &Grid) -> io::Result<()> {
        self.push(table(None, grid));
        Ok(())
    }

    fn next_grid(&mut self, caption: &str, grid: &Grid) -> io::Result<()> {
        self.push(table(Some(caption), grid));
        Ok(())
    }

    fn table(&mut self, title: &str, grid: &Grid) -> io::Result<()> {
        if !grid.is_empty() {
            self.push(table(Some(title), grid));
        }
        Ok(())
    }

    fn aside(&mut self, text: &str) -> io::Result<()> {
        self.remark(text)
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.push(html! { p.remark { (marked(text)) } });
        Ok(())
    }
}

/// The box can be scrolled, by keyboard too, where the table is wider than the page.
fn table(caption: Option<&str>, grid: &Grid) -> Markup {
    let keys = grid.keys();
    html! {
        div.sheet tabindex="0" role="region" aria-label=[caption] {
            table {
                @if let Some(caption) = caption { caption { (marked(caption)) } }
                thead {
                    tr { @for (at, name) in grid.header().iter().enumerate() { th scope="col" .key[at < keys] { (name) } } }
                }
                tbody {
                    @for row in grid.rows() {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @let is_long = cell.chars().count() > LONG_CELL;
                                @if at < keys { th scope="row" { (cell) } } @else { td.text[is_long] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code_and_never_markup() {
        assert_eq!(marked("p99 of `a<b>` is 1").into_string(), "p99 of <code>a&lt;b&gt;</code> is 1");
        assert_eq!(marked("none").into_string(), "none");
    }
}
