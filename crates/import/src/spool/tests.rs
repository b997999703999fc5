use super::*;

fn kind(heading: &str) -> Kind {
    match heading {
        "NAME" => Kind::Text,
        "CLASS" => Kind::WaitClass,
        "AT" => Kind::Time,
        "FORMAT" => Kind::Duration,
        _ => Kind::Number,
    }
}

fn rows(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let wanted = |headings: &[String]| headings.iter().any(|heading| heading == "N");
    scan(crate::specimens::source(text).text(), wanted, kind, |found| match found {
        Found::Row(_, cells) => rows.push(cells.join("|")),
        Found::Headings(headings) => rows.push(headings.join("+")),
        Found::Blank | Found::Other(..) => {}
    });
    rows
}

#[test]
fn tables_in_fixed_columns_are_read_on_every_page() {
    let text = "SQL> select ...\n\nname                n\n------------ --------\na b                 1\n                    2\n\n\
                NAME                N\n------------ --------\nc                 ###\n\n3 rows selected.\n";
    assert_eq!(rows(text), ["NAME+N", "a b|1", "|2", "NAME+N", "c|###"]);
}

#[test]
fn tabs_and_colours_keep_columns_where_they_are() {
    assert_eq!(rows("NAME\t\t    N\n------------ ----\n\u{1b}[1ma b\u{1b}[0m\t\t    7\n"), ["NAME+N", "a b|7"]);
}

#[test]
fn rows_that_are_broken_over_lines_are_joined() {
    let text = "    ID NAME\n------ ----------\n  N\n---\n     7 a b\n  1\n\n     8 c\n  2\n\n2 rows selected.\n";
    assert_eq!(rows(text), ["ID+NAME+N", "7|a b|1", "8|c|2"]);
}

#[test]
fn lost_blanks_are_made_up_for_by_what_columns_hold() {
    let text = "AT NAME N FORMAT\n------------------ -------------------- -- -----------\n\
                01-NOV-12 05.00.15.638 PM gc cr block 2-way 1 1 microsecond\ngc cr block 2-way 2 2 microseconds\n";
    assert_eq!(
        rows(text),
        [
            "AT+NAME+N+FORMAT",
            "01-NOV-12 05.00.15.638 PM|gc cr block 2-way|1|1 microsecond",
            "|gc cr block 2-way|2|2 microseconds"
        ]
    );
    assert_eq!(
        rows("NAME N FORMAT\ngc cr block 5 1 minute 7 seconds\ngc cr block 6 2 minutes 14 seconds\n"),
        ["NAME+N+FORMAT", "gc cr block|5|1 minute 7 seconds", "gc cr block|6|2 minutes 14 seconds"]
    );
    assert_eq!(rows("NAME CLASS N\nfile read User I/O 5\n"), ["NAME+CLASS+N", "file read|User I/O|5"]);
    assert_eq!(rows("CLASS NAME N\nUser I/O file read 5\n"), ["CLASS+NAME+N", "User I/O|file read|5"]);
}

#[test]
fn sums_below_groups_do_not_end_a_table() {
    let text = "NAME             N\n------------ -----\na                1\n************ -----\nsum              1\n\n\
                b                2\n             -----\nsum              2\n";
    assert_eq!(rows(text), ["NAME+N", "a|1", "sum|1", "b|2", "sum|2"]);
}

#[test]
fn separated_values_are_read_with_their_quotes() {
    assert_eq!(rows("\"NAME\",\"N\"\n\"a, b\",1\n\nend\n\"c\",2\n"), ["NAME+N", "a, b|1"]);
    assert_eq!(rows("NAME |    N\n-----|-----\na b  |    1\n"), ["NAME+N", "a b|1"]);
    assert_eq!(rows("| NAME | N |\n|---|---|\n| a | 1 |\n"), ["NAME+N", "a|1"]);
}

#[test]
fn what_a_log_puts_before_lines_is_left_out() {
    let text = "12:00:01 [db] NAME             N\n12:00:01 [db] ------------ -----\n12:00:02 [db] a b              1\n\
                12:00:02 [db]\n12:00:03 [db] NAME             N\n12:00:03 [db] ------------ -----\n12:00:03 [db] c                2\n";
    assert_eq!(rows(text), ["NAME+N", "a b|1", "NAME+N", "c|2"]);
}

#[test]
fn text_that_had_no_room_goes_on_below_its_row() {
    let text = "NAME             N\n------------ -----\ndb file sequ     1\nential read\n\ndb file          2\nscattered\n\n\
                end              3\nof test\n";
    assert_eq!(rows(text), ["NAME+N", "db file sequential read|1", "db file scattered|2", "end|3"]);
    let at_a_blank = "NAME               N\n-------------- -----\nread by others     1\n  session\n";
    assert_eq!(rows(at_a_blank), ["NAME+N", "read by others session|1"]);
}

#[test]
fn columns_are_held_apart_by_whatever_was_set() {
    for sign in ['|', ',', ';', '~', '^', '!', ':', '#'] {
        let text = format!("NAME        {sign}       N\n------------{sign}--------\na b         {sign}       7\n");
        assert_eq!(rows(&text), ["NAME+N", "a b|7"], "{sign}");
    }
    assert_eq!(rows("| NAME | N |\n| :--- | ---: |\n| a | 1 |\n"), ["NAME+N", "a|1"]);
}

#[test]
fn pages_that_begin_with_a_form_feed_are_read() {
    let page = |row: &str| format!("\u{c}NAME             N\n------------ -----\n{row}\n");
    assert_eq!(
        rows(&(page("db file sequ     1\nential read") + &page("b                2"))),
        ["NAME+N", "db file sequential read|1", "NAME+N", "b|2"]
    );
    assert_eq!(
        rows("\u{1b}[1mNAME\u{1b}(B\u{1b}[m             N\n------------ -----\na                1\n"),
        ["NAME+N", "a|1"]
    );
}

#[test]
fn thousands_of_any_locale_are_numbers() {
    let of = |number: &str| format!("NAME                 N\n------------ ---------\na            {number:>9}\n");
    for number in ["1,234,567", "1.234.567", "1 234 567", "1\u{a0}234\u{a0}567", "1'234'567"] {
        assert_eq!(rows(&of(number)), ["NAME+N".to_owned(), format!("a|{number}")], "{number}");
    }
}

#[test]
fn a_line_of_tabs_does_not_grow_without_end() {
    let tabs = format!("{}x", "\t".repeat(1 << 20));
    assert!(clean(&tabs).len() < 2 << 20);
}

#[test]
fn rows_stand_on_the_line_of_their_last_cell() {
    let text = "SQL&gt; select n<br>\n<p>\n<table border='1'\n summary=\"x\">\n<tr>\n<th scope=\"col\">\nNAME\n</th>\n<th>N</th>\n</tr>\n\
                    <TR>\n<TD>\na &amp; b\n</TD>\n<TD align=\"right\">         7\n</TD>\n</TR>\n</table>\n<p>\n\n1 row selected.<br>\n";
    let unmarked = unmarked(text);
    let lines: Vec<(usize, &str)> = unmarked.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let expected = [(0, "SQL> select n"), (9, "| NAME | N |"), (16, "| a & b | 7 |"), (20, "1 row selected.")];
    assert_eq!(lines, expected);
    assert_eq!(unmarked.lines().count(), text.lines().count());
}

#[test]
fn what_is_no_table_is_left_alone() {
    assert!(matches!(unmarked("a < b & c"), Cow::Borrowed(_)));
    let odd = "<table><tr><th>a<b</td> x & y <";
    assert_eq!(unmarked(odd), "| a<b x & y < |");
}
