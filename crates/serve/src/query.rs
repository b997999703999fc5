//! What stands behind the question mark of an address, and addresses of our own.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::problem::Problem;

/// All but what RFC 3986 lets stand anywhere.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// More than any form of ours sends.
const MAX_PARTS: usize = 64;

/// The parts of a query, in order.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query in which only `known` keys may stand.
    pub(super) fn parse(text: &str, known: &'static [&'static str]) -> Result<Self, Problem> {
        let mut parts = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (decoded(key)?, decoded(value)?);
            if !known.contains(&key.as_str()) {
                let known = known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                let reason = if known.is_empty() { "takes no query".to_owned() } else { format!("knows {known}") };
                return Err(Problem::query(&key, &value, format_args!("this page {reason}")));
            }
            parts.push((key, value));
        }
        if parts.len() > MAX_PARTS {
            let (key, value) = &parts[MAX_PARTS];
            return Err(Problem::query(key, value, format_args!("a query has at most {MAX_PARTS} parts")));
        }
        Ok(Self(parts))
    }

    /// Every value of `key`.
    pub(super) fn all<'q>(&'q self, key: &str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of `key`, which may be there once; an empty one counts as none.
    pub(super) fn one(&self, key: &str) -> Result<Option<&str>, Problem> {
        let values: Vec<&str> = self.all(key).filter(|value| !value.is_empty()).collect();
        match values.as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            [_, second, ..] => Err(Problem::query(key, second, format_args!("`{key}` can be given once"))),
        }
    }
}

/// A part of a query in plain text. A form writes a space as `+`.
fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let plain = percent_decode_str(&spaced).decode_utf8();
    plain.map(Into::into).map_err(|_| Problem::query(text, "", format_args!("it is not UTF-8")))
}

/// A segment of a path in plain text, if it is text.
pub(super) fn decoded_segment(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

/// Text as a segment of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// An address on this server.
pub(super) fn link<'a>(path: &str, parts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut link = path.to_owned();
    for (number, (key, value)) in parts.into_iter().enumerate() {
        link.push(if number == 0 { '?' } else { '&' });
        link.push_str(&segment(key));
        link.push('=');
        link.push_str(&segment(&value));
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: &[&str] = &["tag", "q"];

    #[test]
    fn parts_are_decoded_and_counted() {
        let query = Query::parse("tag=disk%3Dp30x2&tag=vm=d8s&q=a+b%2Bc&&", KNOWN).unwrap();
        assert_eq!(query.all("tag").collect::<Vec<_>>(), ["disk=p30x2", "vm=d8s"]);
        assert_eq!(query.one("q").unwrap(), Some("a b+c"));
        assert!(query.one("tag").is_err());
        assert_eq!(Query::parse("q=", KNOWN).unwrap().one("q").unwrap(), None);
    }

    #[test]
    fn unknown_keys_and_broken_text_are_refused_with_what_is_known() {
        let error = Query::parse("tga=1", KNOWN).unwrap_err().to_string();
        assert!(error.contains("`tga=1`") && error.contains("`tag`, `q`"), "{error}");
        assert!(Query::parse("q=%ff", KNOWN).is_err());
        assert!(Query::parse(&"q=1&".repeat(MAX_PARTS + 1), KNOWN).is_err());
    }

    proptest! {
        #[test]
        fn what_a_link_says_is_read_back(value in ".*") {
            let link = link("/", [("tag", value.clone())]);
            prop_assert!(link.is_ascii() && !link.contains(['"', '<', '>', '\'', ' ']));
            let query = Query::parse(link.strip_prefix("/?").unwrap(), KNOWN).unwrap();
            prop_assert_eq!(query.all("tag").collect::<Vec<_>>(), [value.as_str()]);
            prop_assert_eq!(decoded_segment(&segment(&value)), Some(value));
        }
    }
}
