//! Whether something was printed. Reports wrap their lines to the width of a terminal, so any white space counts as one space.

/// Characters that a `*` may stand for: enough for a number or a path, too few to join two findings.
const LONGEST_GAP: usize = 120;

/// The text with each run of white space as one space.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `pattern` occurs in `text`. A `*` with the spaces around it stands for up to [`LONGEST_GAP`] characters; all else for itself.
pub fn occurs(pattern: &str, text: &str) -> bool {
    let pattern = flat(pattern);
    let pieces: Vec<&str> = pattern.split('*').map(str::trim).collect();
    let text = flat(text);
    text.match_indices(pieces[0]).any(|(at, found)| follows(&pieces[1..], &text[at + found.len()..]))
}

/// Whether the pieces come one after the other from the start of `rest`, each at most a gap behind the one before.
fn follows(pieces: &[&str], rest: &str) -> bool {
    let Some((piece, later)) = pieces.split_first() else { return true };
    let within = rest.char_indices().nth(LONGEST_GAP + piece.chars().count()).map_or(rest, |(end, _)| &rest[..end]);
    within.match_indices(piece).any(|(at, found)| follows(later, &rest[at + found.len()..]))
}

#[test]
fn a_pattern_is_found_whatever_the_lines_are_broken_at() {
    let printed = "error: cannot read\n    8192 bytes at offset 4194304 of `/dev/vdb`:\nInput/output error\n";
    assert!(occurs("cannot read 8192 bytes", printed));
    assert!(occurs("cannot read * bytes at offset * of `/dev/vdb`", printed));
    assert!(occurs("error: * Input/output error", printed));
    assert!(occurs("error: * cannot read", printed));
    assert!(!occurs("cannot write", printed));
    assert!(!occurs("Input/output error * cannot read", printed));
    assert!(!occurs("cannot read * bytes at offset * of `/dev/vdc`", printed));
}

#[test]
fn a_star_reaches_no_further_than_a_finding() {
    let far = format!("first {} last", "x".repeat(LONGEST_GAP + 10));
    assert!(!occurs("first*last", &far));
    assert!(occurs("first*last", &far.replace("xxxxxxxxxxxxxxxxxxxx", "")));
}
