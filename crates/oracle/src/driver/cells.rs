//! Rows that were copied out of a client's buffers.

use super::Error;

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    /// Text, and numbers in digits.
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cells(pub(super) Vec<Cell>);

/// What a cell can be read as.
pub(crate) trait OfCell: Sized {
    /// Reads it; `None` where it is something else or NULL.
    fn of(cell: &Cell) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl OfCell for $number {
            fn of(cell: &Cell) -> Option<Self> {
                if let Cell::Text(digits) = cell { digits.parse().ok() } else { None }
            }
        })*
    };
}

numbers!(u32, u64, i64, f64);

impl OfCell for String {
    fn of(cell: &Cell) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text.clone()) } else { None }
    }
}

impl<T: OfCell> OfCell for Option<T> {
    fn of(cell: &Cell) -> Option<Self> {
        if *cell == Cell::Null { Some(None) } else { T::of(cell).map(Some) }
    }
}

impl Cells {
    fn cell(&self, column: usize) -> Result<&Cell, Error> {
        self.0.get(column).ok_or_else(|| Error::Other(format!("the answer has no column {column}")))
    }

    pub(super) fn get<T: OfCell>(&self, column: usize) -> Result<T, Error> {
        let cell = self.cell(column)?;
        T::of(cell).ok_or_else(|| {
            let what = std::any::type_name::<T>();
            Error::Other(format!(
                "column {column} cannot be read as {what}: it is {}",
                match cell {
                    Cell::Null => "NULL".to_owned(),
                    Cell::Text(text) => format!("`{text}`"),
                    Cell::Bytes(bytes) => format!("{} bytes", bytes.len()),
                }
            ))
        })
    }

    pub(super) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        match self.cell(column)? {
            Cell::Null => Ok(&[]),
            Cell::Bytes(bytes) => Ok(bytes),
            Cell::Text(_) => Err(Error::Other(format!("column {column} is text, not bytes"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_what_they_are_and_null_is_never_zero() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let cells = Cells(vec![text("17"), Cell::Null, text(".5"), Cell::Bytes(vec![1, 2]), text("-1")]);
        assert_eq!((cells.get::<u64>(0), cells.get::<Option<u32>>(1)), (Ok(17), Ok(None)));
        assert_eq!((cells.get::<f64>(2), cells.get::<String>(0)), (Ok(0.5), Ok("17".to_owned())));
        assert_eq!((cells.get::<i64>(4), cells.bytes(3), cells.bytes(1)), (Ok(-1), Ok(&[1, 2][..]), Ok(&[][..])));
        for error in [cells.get::<u64>(1).err(), cells.get::<u64>(4).err(), cells.get::<u64>(2).err()] {
            assert!(matches!(error, Some(Error::Other(_))), "{error:?}");
        }
        assert!(cells.get::<String>(3).is_err() && cells.get::<Option<u64>>(9).is_err() && cells.bytes(0).is_err());
    }
}
