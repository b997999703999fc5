//! How large the tables are: read before and after a run, it says whether the run changed what it measured.

use super::descriptor::{TableId, TableKind, index_name};
use super::proof::ALLOWED_PART;
use model::units::percent;

/// Sizes of the tables of all schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// By schema.
    pub tables: Vec<TableShape>,
}

/// Size of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableShape {
    /// Blocks of the table.
    pub pages: u64,
    /// Blocks of its index.
    pub index_pages: u64,
}

impl Shape {
    /// What changed since `before`, in a sentence, if that is more than a run should change: a table or an index that grew
    /// by more than 1 %, or shrank.
    pub fn changed_since(&self, before: &Self) -> Option<String> {
        let mut changed = 0_u32;
        let mut worst: Option<(f64, String)> = None;
        for (schema, (now, then)) in (0..).zip(self.tables.iter().zip(&before.tables)) {
            let pairs = [
                (TableId { kind: TableKind::Rows, schema }.name(), then.pages, now.pages),
                (index_name(schema), then.index_pages, now.index_pages),
            ];
            for (name, then, now) in pairs {
                // One block more is no change of shape, however small the table.
                let grown = now > then + (then / ALLOWED_PART).max(1);
                if grown || now < then {
                    changed += 1;
                    let by = now.abs_diff(then) as f64 / then.max(1) as f64;
                    if worst.as_ref().is_none_or(|(most, _)| by > *most) {
                        let how = if grown { "grew" } else { "shrank" };
                        worst = Some((by, format!("`{name}` {how} by {}% ({then} blocks to {now})", percent(by))));
                    }
                }
            }
        }
        let (_, worst) = worst?;
        let others = match changed - 1 {
            0 => String::new(),
            1 => "; another table or index changed too".to_owned(),
            others => format!("; {others} more tables or indexes changed too"),
        };
        Some(format!("{worst}{others}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sizes: &[(u64, u64)]) -> Shape {
        Shape { tables: sizes.iter().map(|&(pages, index_pages)| TableShape { pages, index_pages }).collect() }
    }

    #[test]
    fn growth_of_more_than_a_hundredth_is_a_change() {
        let before = shape(&[(1000, 10), (1000, 10)]);
        assert_eq!(shape(&[(1010, 11), (1000, 10)]).changed_since(&before), None);
        let reported = shape(&[(1011, 10), (1000, 10)]).changed_since(&before).unwrap();
        assert_eq!(reported, "`slob_1` grew by 1.1% (1000 blocks to 1011)");
    }

    #[test]
    fn the_worst_change_is_reported_and_the_others_counted() {
        let before = shape(&[(1000, 10), (1000, 10)]);
        let reported = shape(&[(1100, 10), (900, 40)]).changed_since(&before).unwrap();
        assert_eq!(reported, "`slob_2_key` grew by 300.0% (10 blocks to 40); 2 more tables or indexes changed too");
        let reported = shape(&[(1000, 10), (900, 10)]).changed_since(&before).unwrap();
        assert_eq!(reported, "`slob_2` shrank by 10.0% (1000 blocks to 900)");
    }
}
