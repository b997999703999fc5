//! Forms: names and values that stand beside each other.

/// A name and its value, as `Buffer Nowait %:  100.00` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// The name, without its colon.
    pub(super) name: String,
    /// The value; empty where nothing stands.
    pub(super) value: String,
}

/// The pairs on a line; none if it is not made of pairs, or if none of them has a value.
///
/// A colon with a blank after it, or at the end, ends a name (a time has none). The value is one word that begins as a number
/// does, with its unit in brackets after it; what follows belongs to the next name.
pub(super) fn pairs(line: &str) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = split_at_colon(rest) {
        let name = match pairs.last_mut() {
            None => before.trim(),
            Some(last) => {
                let (value, name) = value_and_rest(before);
                value.clone_into(&mut last.value);
                name
            }
        };
        if name.is_empty() {
            return Vec::new();
        }
        pairs.push(Pair { name: joined(name), value: String::new() });
        rest = after;
    }
    if let Some(last) = pairs.last_mut() {
        value_and_rest(rest).0.clone_into(&mut last.value);
    }
    if pairs.iter().all(|pair| pair.value.is_empty()) {
        pairs.clear();
    }
    pairs
}

/// What stands before and after the next colon that ends a name.
fn split_at_colon(text: &str) -> Option<(&str, &str)> {
    let at = text
        .bytes()
        .enumerate()
        .position(|(at, byte)| byte == b':' && text.as_bytes().get(at + 1).is_none_or(|next| *next == b' '))?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// A value at the beginning of a text, and what follows it.
fn value_and_rest(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_value = text.starts_with(|c: char| c.is_ascii_digit() || "-.#".contains(c)) || text.starts_with("N/A");
    if !is_value {
        return ("", text);
    }
    let mut end = text.find(' ').unwrap_or(text.len());
    let after = text.get(end..).unwrap_or_default();
    if after.starts_with(" (") {
        end += after.find(')').map_or(0, |close| close + 1);
    }
    (text.get(..end).unwrap_or_default(), text.get(end..).unwrap_or_default().trim())
}

/// A name with single blanks: `Buffer  Hit   %` has more.
pub(super) fn joined(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<(String, String)> {
        pairs(line).into_iter().map(|pair| (pair.name, pair.value)).collect()
    }

    #[test]
    fn several_pairs_on_a_line_are_distinguished() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read("  Buffer  Hit   %:   98.1    In-memory Sort %:  100.00"),
            [pair("Buffer Hit %", "98.1"), pair("In-memory Sort %", "100.00")]
        );
        assert_eq!(
            read("   Elapsed:   1,439.98 (mins) Av Act Sess:       0.0"),
            [pair("Elapsed", "1,439.98 (mins)"), pair("Av Act Sess", "0.0")]
        );
        assert_eq!(
            read("Parse CPU to Parse Elapsd %:         % Non-Parse CPU:   99.9"),
            [pair("Parse CPU to Parse Elapsd %", ""), pair("% Non-Parse CPU", "99.9")]
        );
    }

    #[test]
    fn what_has_no_value_is_no_pair() {
        assert_eq!(read("Begin snapshot at 10:15:00 o'clock"), []);
        assert_eq!(read("Note: nothing here"), []);
        assert_eq!(read(": 5"), []);
    }
}
