//! Words of reports as text for which HTML has others.

/// Headings: the table, its column in text, and in HTML.
const COLUMNS: [(&str, &str, &str); 11] = [
    ("Header", "DB Role", "Role"),
    ("Host CPU", "Load Begin", "Load Average Begin"),
    ("Host CPU", "Average End", "Load Average End"),
    // Statspack's.
    ("Host CPU", "User", "%User"),
    ("Host CPU", "System", "%System"),
    ("Host CPU", "Idle", "%Idle"),
    ("Host CPU", "WIO", "%WIO"),
    ("Host CPU", "WCPU", "%WCPU"),
    ("IO Profile", "Read+Write/Second", "Read+Write Per Second"),
    ("IO Profile", "Read/Second", "Read per Second"),
    ("IO Profile", "Write/Second", "Write Per Second"),
];
/// Names of rows.
const ROWS: [(&str, &str, &str); 7] = [
    ("Instance CPU", "% of total CPU for Instance", "%Total CPU"),
    ("Instance CPU", "% of busy CPU for Instance", "%Busy CPU"),
    ("Instance CPU", "%DB time waiting for CPU - Resource Mgr", "%DB time waiting for CPU (Resource Manager)"),
    ("Instance CPU", "% of Busy CPU used for Instance", "%Busy CPU"),
    ("Instance CPU", "%DB time waiting for CPU (Resource Mgr)", "%DB time waiting for CPU (Resource Manager)"),
    ("Load Profile", "RAC GC blocks received", "Global Cache blocks received"),
    ("Load Profile", "RAC GC blocks served", "Global Cache blocks served"),
];

/// What HTML calls a column.
pub(super) fn column<'a>(title: &str, name: &'a str) -> &'a str {
    of(&COLUMNS, title, name)
}

/// What HTML calls a row.
pub(super) fn row<'a>(title: &str, name: &'a str) -> &'a str {
    of(&ROWS, title, name)
}

fn of<'a>(words: &[(&str, &str, &'static str)], title: &str, name: &'a str) -> &'a str {
    words.iter().find(|word| word.0 == title && word.1 == name).map_or(name, |word| word.2)
}
