//! What the SLOB method asks of a target.

use super::Operation;

/// The kinds of operation that the SLOB method knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// Reads a range of keys, one block for each.
    Read,
    /// Changes and commits the rows of a range of keys.
    Update,
    /// Reads a whole scan table with large reads.
    Scan,
}

impl OperationKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Read, Self::Update, Self::Scan];

    /// The word for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Scan => "scan",
        }
    }

    /// The place of this kind in [`ALL`](Self::ALL), for arrays with one entry for each kind.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How much of a row an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoStress {
    /// Two columns, the first and the last.
    Lite,
    /// Every column.
    Heavy,
}

/// One unit that the SLOB method asks a target for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlobOperation {
    /// What is done.
    pub kind: OperationKind,
    /// The schema that it is done to, counted from 0.
    pub schema: u32,
    /// The first logical key touched; 0 for a scan.
    pub first_key: u64,
    /// Keys touched from `first_key` on, one block for each; 0 for a scan, which touches its whole table.
    pub keys: u32,
    /// What an update changes in each row; without meaning for the other kinds.
    pub redo_stress: RedoStress,
}

impl Operation for SlobOperation {
    const KINDS: &'static [&'static str] =
        &[OperationKind::Read.name(), OperationKind::Update.name(), OperationKind::Scan.name()];

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

#[cfg(test)]
mod tests {
    use super::OperationKind;

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_index() {
        for (place, kind) in OperationKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
        }
        assert_eq!(OperationKind::ALL.map(OperationKind::name), ["read", "update", "scan"]);
    }
}
