//! The columns in `docs/export.md`, made from the tables themselves.

use super::{Kind, TABLES};

const MARK: &str = "<!-- made from the program: UPDATE_DOCS=1 cargo test docs_export -->\n";

fn render() -> String {
    let mut page = String::new();
    for table in TABLES.iter().rev() {
        page.push_str(&format!("\n### `{}`\n\nA row is {}.\n\n", table.name, table.words));
        page.push_str("| column | type | unit | what it is |\n| --- | --- | --- | --- |\n");
        for column in table.columns() {
            let kind = match column.kind {
                Kind::Text => "text",
                Kind::Count => "integer",
                Kind::Number => "double",
                Kind::Flag => "boolean",
                Kind::Time => "timestamp",
            };
            page.push_str(&format!("| `{}` | {kind} | {} | {} |\n", column.name, column.unit, column.words));
        }
    }
    page
}

#[test]
fn docs_export_has_the_columns_that_are_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (by_hand, documented) = page.split_once(MARK).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{by_hand}{MARK}{}", render())).unwrap();
        return;
    }
    assert!(documented == render(), "docs/export.md is stale: UPDATE_DOCS=1 cargo test docs_export");
}
