//! The tables of a report as parts of a page.

use std::io;

use maud::{Markup, html};

use crate::report::grid::Grid;
use crate::report::paper::Paper;

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
        self.push(html! { h3 { (title) } });
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
        self.push(html! { p.remark { (text) } });
        Ok(())
    }
}

/// The box can be scrolled, by keyboard too, where the table is wider than the page.
fn table(caption: Option<&str>, grid: &Grid) -> Markup {
    let keys = grid.keys();
    html! {
        div.sheet tabindex="0" role="region" aria-label=[caption] {
            table {
                @if let Some(caption) = caption { caption { (caption) } }
                thead {
                    tr { @for (at, name) in grid.header().iter().enumerate() { th scope="col" .key[at < keys] { (name) } } }
                }
                tbody {
                    @for row in grid.rows() {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at < keys { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
