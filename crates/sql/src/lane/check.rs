//! Answers that cannot be right.

use model::workload::{OperationKind, SlobOperation};

/// Checks that an operation touched what it was to touch. Every key is there once, and a scan table is not empty: else the
/// data are not what was loaded, and what is measured on them means nothing.
///
/// # Errors
/// What is wrong with its table.
pub(super) fn check_rows(operation: &SlobOperation, rows: u64) -> Result<(), String> {
    let SlobOperation { kind, first_key, keys, .. } = *operation;
    match kind {
        OperationKind::Scan if rows == 0 => Err("it is empty".to_owned()),
        OperationKind::Read | OperationKind::Update if rows != u64::from(keys) => {
            let did = if kind == OperationKind::Read { "a read found" } else { "an update changed" };
            let last_key = first_key + u64::from(keys).saturating_sub(1);
            Err(format!("{did} {rows} rows of the {keys} with keys {first_key} to {last_key}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::RedoStress;

    #[test]
    fn rows_that_are_missing_or_too_many_are_damage_and_an_empty_scan_table_is() {
        let checked = |kind, keys, rows| {
            let operation = SlobOperation { kind, schema: 2, first_key: 100, keys, redo_stress: RedoStress::Lite };
            check_rows(&operation, rows)
        };
        assert!(checked(OperationKind::Read, 8, 8).is_ok() && checked(OperationKind::Update, 8, 8).is_ok());
        assert!(checked(OperationKind::Scan, 0, 1).is_ok() && checked(OperationKind::Scan, 0, 0).is_err());
        assert!(checked(OperationKind::Update, 8, 9).is_err());
        assert_eq!(
            checked(OperationKind::Read, 8, 7).unwrap_err(),
            "a read found 7 rows of the 8 with keys 100 to 107"
        );
    }
}
