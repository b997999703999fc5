//! What a database says about itself, for a reader; and leaving it as it was found.

use std::io::{self, Write};

use crate::cli::exit::Failure;
use crate::targets::database::{Database, Sheet};

/// Does something with a database and leaves it however that ends. The first failure is the one to report.
pub(in crate::cli) fn with<T>(
    mut database: Box<dyn Database>,
    work: impl FnOnce(&mut dyn Database) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let outcome = work(&mut *database);
    let left = database.close();
    let done = outcome?;
    left?;
    Ok(done)
}

/// Writes each row on a line.
pub(super) fn write(out: &mut impl Write, sheet: &Sheet) -> io::Result<()> {
    sheet.rows.iter().try_for_each(|(label, text)| writeln!(out, "{label:<10} {text}"))
}
