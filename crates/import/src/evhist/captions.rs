//! What stands around tables: captions above them, and the statements that they answer.

/// A line that is longer is no caption.
const LONGEST_CAPTION: usize = 60;

/// The event of `where event = 'log file sync'`; nothing where others are asked for too, or all but this one.
pub(super) fn asked_event(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once('\'')?;
    let (event, rest) = rest.split_once('\'')?;
    let before = before.get(before.to_ascii_lowercase().rfind("event")?..)?.to_ascii_lowercase();
    let excludes = before.contains(['<', '>', '!', '|', ',']) || before.contains(" not ");
    let has_others = rest.contains('\'') && rest.to_ascii_lowercase().contains("event");
    let is_one = !excludes && !has_others && !rest.trim_start().starts_with(',');
    (is_one && !event.is_empty() && event.len() <= 64 && !event.contains(['%', '&'])).then_some(event)
}

/// Whether a query begins here, of which nothing is known yet.
pub(super) fn begins_query(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("SQL>").unwrap_or(text).trim_start();
    text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("select ")) || text.eq_ignore_ascii_case("select")
}

/// Lines that SQL*Plus prints by itself begin so, and statements.
const NO_CAPTIONS: [&str; 36] = [
    "alter",
    "and",
    "break",
    "btitle",
    "col",
    "column",
    "compute",
    "conn",
    "connect",
    "connected",
    "define",
    "disconnected",
    "elapsed:",
    "enter",
    "error",
    "exec",
    "from",
    "group",
    "last",
    "no",
    "order",
    "prompt",
    "rem",
    "repheader",
    "select",
    "set",
    "show",
    "spool",
    "sql>",
    "sqlplus",
    "ttitle",
    "undefine",
    "version",
    "where",
    "with",
    "~~",
];

/// A few words without a full stop above a table say what it is; statements, prompts and what SQL*Plus prints by itself do not.
pub(super) fn is_caption(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    let first = words.next().unwrap_or_default();
    // `old   3: where event = '&event'`
    let is_substituted = matches!(first, "old" | "new") && words.next().is_some_and(|word| word.ends_with(':'));
    let is_oracle = first.starts_with("ora-") || first.starts_with("sp2-");
    text.len() <= LONGEST_CAPTION
        && !NO_CAPTIONS.contains(&first)
        && !is_substituted
        && !is_oracle
        // A connect string would be a secret.
        && !text.contains(['>', ';', '\'', '=', ',', '$', '/', '@'])
        && !text.ends_with(['.', ':', '?', '!', ')', '/'])
        && text.chars().next().is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_are_no_statements() {
        assert!(["Before the change", "New storage", "Test 1: on flash"].iter().all(|text| is_caption(text)));
        assert!(
            ["select event", "It was fast.", "SQL> @hist", "19", "order by 1"].iter().all(|text| !is_caption(text))
        );
        assert_eq!(asked_event("where event = 'log file sync' order by 1"), Some("log file sync"));
        let among_others =
            "select event#, wait_count from v$event_histogram where event = 'log file sync' order by event";
        assert_eq!(asked_event(among_others), Some("log file sync"));
        let not_one = [
            "where event like 'db file%'",
            "where event in ('log file sync', 'log file parallel write')",
            "where event = 'log file sync' or event = 'buffer busy waits'",
            "where event <> 'log file sync'",
            "where event not in ('log file sync')",
            "where event = '&event'",
        ];
        assert_eq!(not_one.map(asked_event), [None; 6]);
        assert!(begins_query("SQL> select wait_count") && begins_query("SELECT") && !begins_query("selection"));
    }

    #[test]
    fn what_sqlplus_says_by_itself_is_no_caption() {
        let said = [
            "Version 19.3.0.0.0",
            "no rows selected",
            "Elapsed: 00:00:00.01",
            "old   3: where event",
            "Enter value for event: log file sync",
            "Last Successful login time: Mon Sep 07 2020 10:00:00",
            "ORA-00942 table or view does not exist",
        ];
        assert_eq!(said.into_iter().find(|text| is_caption(text)), None);
    }
}
