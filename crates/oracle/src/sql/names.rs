//! Names of tables, indexes and columns, and the choices that change statements.

use ::sql::COLUMNS;
use ::sql::data::index_name;
pub use targets::database::{Commits, Layout, Method, Reads};

/// The first filling column, `c2`; the last is `c20`.
pub(super) const FIRST_COLUMN: u32 = 2;
/// Bytes of a filling column, as SLOB's own have, in blocks of 8 KiB and larger ones. A row is more than the hundredth of a block
/// that `PCTFREE 99` leaves for a second one, also in 32 KiB.
const COLUMN_BYTES: u32 = 128;
/// In smaller blocks a row of that width would not fit, and would be continued in a second block.
const BLOCK_BYTES_OF_A_COLUMN: u32 = 64;
/// Longest text that `VARCHAR2` holds in a table and that an OUT bind gives room for, whatever the server's settings, in bytes.
pub(super) const MAX_TEXT_BYTES: u32 = 4_000;

/// Names and statements of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    owner: String,
    method: Method,
    block_bytes: u32,
}

impl Sql {
    /// For data of our own layout in the schema of a user, by the name that the data dictionary has (see [`dictionary_name`]), in
    /// a tablespace with blocks of this size. Commits wait, and ranges are read by one statement.
    pub fn new(user: &str, block_bytes: u32) -> Self {
        Self { owner: user.to_owned(), method: Method::default(), block_bytes }
    }

    /// The same on tables of another layout.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Self {
        Self { method: Method { layout, ..self.method }, ..self }
    }

    /// The same with other commits.
    #[must_use]
    pub fn with_commits(self, commits: Commits) -> Self {
        Self { method: Method { commits, ..self.method }, ..self }
    }

    /// The same with ranges read in another way.
    #[must_use]
    pub fn with_reads(self, reads: Reads) -> Self {
        Self { method: Method { reads, ..self.method }, ..self }
    }

    /// The same by another method.
    #[must_use]
    pub fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The user whose schema holds our own tables, by the name that the data dictionary has.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whose tables are used.
    pub fn layout(&self) -> Layout {
        self.method.layout
    }

    /// How updates are committed.
    pub fn commits(&self) -> Commits {
        self.method.commits
    }

    /// How ranges are read.
    pub fn reads(&self) -> Reads {
        self.method.reads
    }

    /// Bytes of each filling column, all of them ASCII.
    pub fn column_bytes(&self) -> u32 {
        match self.method.layout {
            Layout::Plimsoll => column_bytes(self.block_bytes),
            Layout::Slob => COLUMN_BYTES,
        }
    }

    /// One of our own objects, by its bare name, qualified.
    pub fn qualified(&self, name: &str) -> String {
        format!("{}.{name}", quoted(&self.owner))
    }

    /// The table of SLOB's schema number `schema`, from 0, qualified.
    pub fn table(&self, schema: u32) -> String {
        match self.method.layout {
            Layout::Plimsoll => self.qualified(&format!("slob_{}", schema + 1)),
            Layout::Slob => format!("{}.cf1", quoted(&slob_owner(schema))),
        }
    }

    /// Its scan table.
    pub fn scan_table(&self, schema: u32) -> String {
        match self.method.layout {
            Layout::Plimsoll => self.qualified(&format!("scan_{}", schema + 1)),
            Layout::Slob => format!("{}.cf2", quoted(&slob_owner(schema))),
        }
    }

    /// The bare name of the index on its keys.
    pub fn index(&self, schema: u32) -> String {
        match self.method.layout {
            Layout::Plimsoll => index_name(schema),
            Layout::Slob => "i_cf1".to_owned(),
        }
    }

    /// The value of `custid` that a row with this key has.
    pub fn custid(&self, key: u64) -> u64 {
        match self.method.layout {
            Layout::Plimsoll => key,
            Layout::Slob => key + 1,
        }
    }
}

/// `name` as an identifier. An identifier cannot have a quotation mark or a zero in it; in their place stands a question mark, so
/// that such a name is of nothing that is there.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace(['"', '\0'], "?"))
}

/// The name that the data dictionary has of what a user calls `name`: in capitals, unless it stands in quotation marks.
pub fn dictionary_name(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(exact) => exact.to_owned(),
        None => name.to_uppercase(),
    }
}

/// Adds random bytes as what a `VARCHAR2` of any character set holds unchanged: printable ASCII. Of each byte six and a half bits are
/// left, so storage that compresses gains a fifth at most.
pub fn printable(random: &[u8], into: &mut String) {
    const FIRST: u16 = b' ' as u16;
    const COUNT: u16 = b'~' as u16 - FIRST + 1;
    into.extend(random.iter().map(|byte| char::from((FIRST + u16::from(*byte) * COUNT / 256) as u8)));
}

/// Bytes of a filling column in blocks of this size.
pub fn column_bytes(block_bytes: u32) -> u32 {
    (block_bytes / BLOCK_BYTES_OF_A_COLUMN).clamp(1, COLUMN_BYTES)
}

/// SLOB's user with the tables of schema number `schema`, from 0.
pub fn slob_owner(schema: u32) -> String {
    format!("USER{}", schema + 1)
}

/// Names of the filling columns.
pub(super) fn columns() -> impl Iterator<Item = String> {
    (FIRST_COLUMN..FIRST_COLUMN + COLUMNS).map(|column| format!("c{column}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_only_names() {
        assert_eq!(quoted("A\"; DROP TABLE x; --\0"), "\"A?; DROP TABLE x; --?\"");
        assert_eq!(Sql::new("X\"Y", 8192).table(0), "\"X?Y\".slob_1");
    }

    #[test]
    fn a_user_is_called_as_in_the_data_dictionary() {
        assert_eq!(dictionary_name("plimsoll"), "PLIMSOLL");
        assert_eq!(dictionary_name("\"Mixed\""), "Mixed");
        assert_eq!(dictionary_name("\""), "\"");
    }

    #[test]
    fn tables_of_slob_belong_to_its_users_and_begin_with_key_1() {
        let own = Sql::new("PLIMSOLL", 8192);
        assert_eq!(
            (own.table(7), own.scan_table(0), own.custid(0)),
            ("\"PLIMSOLL\".slob_8".to_owned(), "\"PLIMSOLL\".scan_1".to_owned(), 0)
        );
        let slob = own.with_layout(Layout::Slob);
        assert_eq!(
            (slob.table(7), slob.scan_table(0), slob.custid(0)),
            ("\"USER8\".cf1".to_owned(), "\"USER1\".cf2".to_owned(), 1)
        );
    }

    #[test]
    fn a_row_fits_into_its_block_and_takes_more_of_it_than_is_free_for_a_second() {
        for block_bytes in [2048, 4096, 8192, 16_384, 32_768_u32] {
            // Header of the row, its key with length, then columns with a byte of length each; the block's own header and the
            // list of transactions take a little more than a hundred bytes.
            let row = 5 + 9 + COLUMNS * (column_bytes(block_bytes) + 1);
            assert!(row > block_bytes / 100 + 100 && row + 250 < block_bytes, "{row} of {block_bytes}");
        }
        assert_eq!(column_bytes(8192), 128);
    }

    #[test]
    fn filling_is_printable_whatever_was_drawn() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        printable(&all, &mut text);
        assert_eq!(text.len(), 256);
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let distinct: std::collections::BTreeSet<u8> = text.bytes().collect();
        assert_eq!(distinct.len(), 95);
    }
}
