//! How alike two words are.

/// Letters to insert, delete or replace to make one word of the other (Levenshtein). For short words: the cost is the
/// product of both lengths, so a word far longer than any name is not measured.
pub fn edit_distance(known: &str, other: &str) -> usize {
    if other.len() > 2 * known.len() {
        return other.len();
    }
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, b) in other.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, a) in known.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[known.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_letters() {
        for (a, b, distance) in [("SCALE", "SCALE", 0), ("SCALE", "SCALES", 1), ("SCALE", "SALE", 1), ("SCALE", "", 5)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
        }
    }
}
