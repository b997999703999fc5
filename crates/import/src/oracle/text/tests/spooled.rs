//! What happens to a report between SQL*Plus and the file.

use proptest::prelude::*;

use super::*;

#[test]
fn a_report_is_the_same_however_it_was_spooled() {
    let expected = only(&whole());
    let junk = "SQL> @?/rdbms/admin/awrrpt\nEnter value for report_type: text\n\n";
    let spooled = format!("{junk}{}\nSQL> spool off\n", whole());
    let later = only(&spooled);
    assert_eq!(later.last_line, expected.last_line + 3);
    assert_eq!(rows(&later.tables[5]), rows(&expected.tables[5]));
    let crlf = whole().replace('\n', "   \r\n");
    assert_eq!(only(&crlf), expected);
    let pages = whole().replace("\nForeground Wait", "\n\u{c}Foreground Wait");
    assert_eq!(only(&pages), expected);
    // SQL*Plus writes tabs where eight blanks end at a tab stop.
    let with_tabs: String = whole()
        .lines()
        .map(|line| {
            let chunks: Vec<String> =
                line.as_bytes().chunks(8).map(|chunk| String::from_utf8_lossy(chunk).into_owned()).collect();
            chunks
                .into_iter()
                .map(|chunk| if chunk == "        " { "\t".to_owned() } else { chunk })
                .collect::<String>()
                + "\n"
        })
        .collect();
    assert!(with_tabs.contains('\t'));
    assert_eq!(only(&with_tabs), expected);
}

#[test]
fn a_report_is_the_same_in_a_listing_or_a_reply() {
    let expected = only(&whole());
    let with = |margin: &str| {
        whole().lines().map(|line| format!("{margin}{line}").trim_end().to_owned() + "\n").collect::<String>()
    };
    for margin in ["    ", "> ", "  > > "] {
        assert_eq!(only(&with(margin)), expected, "{margin:?}");
        assert!(recognises(&with(margin)));
    }
    let (all, notes) = read(&[with("    "), whole(), with("> ")].concat());
    assert_eq!((all.len(), notes.len()), (3, 0));
    assert!(all.iter().all(|report| rows(&report.tables[5]) == rows(&expected.tables[5])));
    // Only the first line stands further to the right.
    assert_eq!(only(&format!("   {}", whole())), expected);
}

#[test]
fn blank_lines_that_were_lost_between_the_tables_of_the_header_are_not_missed() {
    let expected = only(&whole());
    let dense: String = whole().lines().filter(|line| !line.is_empty()).map(|line| line.to_owned() + "\n").collect();
    let found = only(&dense);
    let shown = |report: &Report| {
        let rows = |table: &Table| rows(table).concat().join(" ");
        report.tables.iter().map(|table| format!("{} {:?} {}", table.title, table.columns, rows(table))).collect()
    };
    let (found, expected): (Vec<String>, Vec<String>) = (shown(&found), shown(&expected));
    assert_eq!(found, expected);
}

#[test]
fn a_report_that_was_cut_off_says_so_and_one_without_snapshots_is_damaged() {
    let text = whole();
    let cut = &text[..text.find("300     0").unwrap() + 2];
    let (reports, notes) = read(cut);
    assert!(!reports[0].ended);
    assert_eq!(rows(reports[0].table("Foreground Wait Events").unwrap()).len(), 1, "half a row is none");
    assert_eq!(notes, ["the report ends here; `End of Report` was expected, and what stands before it"]);
    let source = source(&text[..text.find("  End Snap").unwrap()]);
    let error = reports_of(&source).unwrap_err().to_string();
    assert!(error.ends_with("the report that begins at line 1 ends before it reports its snapshots"), "{error}");
}

#[test]
fn lines_that_were_broken_when_they_were_printed_are_refused() {
    let rule = "---- ".repeat(16);
    let broken = format!("{HEAD}{EVENTS}\nA B C\nD E F\n{rule}\n---- ----\n1 2 3\n4 5\n{HISTOGRAM}");
    let error = reports_of(&source(&broken)).unwrap_err().to_string();
    assert!(error.contains("broken after 79 characters"), "{error}");
}

#[test]
fn endless_rules_and_rows_end() {
    // A million columns are none, and a row has no more cells than its table has columns.
    let rule = "- ".repeat(1 << 20);
    let narrow = "- ".repeat(120);
    let text = format!("{HEAD}{EVENTS}\n{rule}\n{narrow}\n{}{HISTOGRAM}", "x\n".repeat(100_000));
    let (reports, notes) = read(&text);
    let cells: usize = reports[0].tables.iter().flat_map(|table| &table.rows).map(|row| row.cells.len()).sum();
    assert!(cells < 5 << 20, "{cells}");
    assert_eq!(notes.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_of_any_kind_gives_reports_or_an_error(
        at in 0usize..4_000, length in 0usize..400, kind in 0u8..5, byte in any::<u8>(), seed in 0usize..200,
    ) {
        let mut bytes = whole().into_bytes();
        let at = at % bytes.len();
        let end = (at + length).min(bytes.len());
        match kind {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes[at] = byte.max(1),
            3 => {
                let run = vec![byte.max(1); length * 50];
                bytes.splice(at..at, run);
            }
            _ => {
                let text = String::from_utf8(bytes).unwrap();
                let mut lines: Vec<&str> = text.lines().collect();
                let (from, to) = (seed % lines.len(), (seed * 7) % lines.len());
                lines.swap(from, to);
                lines.insert(from, lines[to]);
                bytes = lines.join("\n").into_bytes();
            }
        }
        if let Ok(source) = Source::new("report.txt", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) {
            let _ = recognises(source.head());
            let _ = reports_of(&source);
        }
    }
}
