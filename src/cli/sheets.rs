//! What a database says about itself, for a reader; and leaving it as it was found.

use std::io::{self, Write};

use super::arguments::Format;
use super::exit::{Exit, Failure};
use super::say;
use targets::TargetError;
use targets::database::{Database, Sheet};

/// Does something with a database and leaves it however that ends. The first failure is the one to report.
pub(super) fn with<T>(
    database: Box<dyn Database>,
    work: impl FnOnce(&mut dyn Database) -> Result<T, Failure>,
) -> Result<T, Failure> {
    then_leave(database, |database| work(database), Database::close)
}

/// Does something with what has to be left by `leave`, however that ends. The first failure is the one to report.
pub(super) fn then_leave<D: ?Sized, T>(
    mut database: Box<D>,
    work: impl FnOnce(&mut D) -> Result<T, Failure>,
    leave: impl FnOnce(Box<D>) -> Result<(), TargetError>,
) -> Result<T, Failure> {
    let outcome = work(&mut *database);
    let left = leave(database);
    let done = outcome?;
    left?;
    Ok(done)
}

/// Shows what a database says of itself.
pub(super) fn show(sheet: &Sheet, format: Format) -> Result<Exit, Failure> {
    match format {
        Format::Json => say::json(&sheet.document)?,
        Format::Text => {
            let mut out = say::output();
            write(&mut out, sheet)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// Writes each row on a line.
pub(super) fn write(out: &mut impl Write, sheet: &Sheet) -> io::Result<()> {
    sheet.rows.iter().try_for_each(|(label, text)| writeln!(out, "{label:<10} {text}"))
}
