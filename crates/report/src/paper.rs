//! What tables and remarks are written on: a terminal, or a page for a browser. Who writes them need not know which.

use std::io::{self, Write};

use super::grid::Grid;
use super::words::{plain, wrap};

/// Takes the parts of a report in the order in which they are to be read.
pub(super) trait Paper {
    /// Begins a part with a title of its own.
    fn title(&mut self, title: &str) -> io::Result<()>;

    /// A table without rows says nothing, and is not to be given.
    fn grid(&mut self, grid: &Grid) -> io::Result<()>;

    /// Another table of the same part.
    fn next_grid(&mut self, caption: &str, grid: &Grid) -> io::Result<()>;

    /// Words that stand by themselves.
    fn aside(&mut self, text: &str) -> io::Result<()>;

    /// Words on what stands above.
    fn remark(&mut self, text: &str) -> io::Result<()>;

    /// A titled table without columns that no row knows; nothing where it has no rows.
    fn table(&mut self, title: &str, grid: &Grid) -> io::Result<()> {
        let grid = &grid.with_known_columns();
        if grid.is_empty() {
            return Ok(());
        }
        self.title(title)?;
        self.grid(grid)
    }
}

/// A terminal, or a file that is read like one.
pub(super) struct Terminal<'a> {
    /// Where the text goes.
    pub(super) out: &'a mut dyn Write,
    /// Columns.
    pub(super) width: usize,
}

impl Paper for Terminal<'_> {
    fn title(&mut self, title: &str) -> io::Result<()> {
        let title = plain(title);
        writeln!(self.out, "\n{title}\n{}", "-".repeat(title.chars().count()))
    }

    fn grid(&mut self, grid: &Grid) -> io::Result<()> {
        grid.write(self.out, self.width)
    }

    fn next_grid(&mut self, caption: &str, grid: &Grid) -> io::Result<()> {
        writeln!(self.out, "\n{}", plain(caption))?;
        self.grid(grid)
    }

    fn aside(&mut self, text: &str) -> io::Result<()> {
        self.gap()?;
        self.remark(text)
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(text, "")
    }
}

impl Terminal<'_> {
    /// Text after `label`, wrapped, with later lines indented to where the first began.
    pub(super) fn paragraph(&mut self, text: &str, label: &str) -> io::Result<()> {
        self.lines(&wrap(&plain(text), self.width - label.chars().count()), label)
    }

    /// Lines after `label`, the later ones indented to where the first began.
    pub(super) fn lines(&mut self, lines: &[String], label: &str) -> io::Result<()> {
        let indent = label.chars().count();
        for (index, line) in lines.iter().map(|line| plain(line)).enumerate() {
            if index == 0 {
                writeln!(self.out, "{label}{line}")?;
            } else {
                writeln!(self.out, "{:indent$}{line}", "")?;
            }
        }
        Ok(())
    }

    /// An empty line.
    pub(super) fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }
}
