//! Messages of a server, read where they were received ("Message Formats" in PostgreSQL's manual).

use tokio_postgres::types::Type;

use super::failure::Failure;

/// Bytes of a message before its body: its kind, and the length of the rest, which counts itself.
const HEAD_BYTES: usize = 5;
/// No message of ours is answered by a longer one; a larger length is no message of a server.
const MAX_BYTES: usize = 1 << 30;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// Its first byte.
    pub(super) kind: u8,
    pub(super) body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message of `bytes`, with how many bytes it takes; `None` when more are to come.
    pub(super) fn first(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Failure> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if !(HEAD_BYTES - 1..MAX_BYTES).contains(&length) {
            return Err(Failure::Protocol("a message of impossible length"));
        }
        let body = rest.get(..length + 1 - HEAD_BYTES);
        Ok(body.map(|body| (Self { kind, body }, length + 1)))
    }
}

/// A row of an answer, its values as the server sends them in binary.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct Row<'a> {
    body: &'a [u8],
    types: &'a [Option<Type>],
}

impl<'a> Row<'a> {
    pub(super) fn new(body: &'a [u8], types: &'a [Option<Type>]) -> Self {
        // The number of columns comes first; it is that of the statement.
        Self { body: body.get(2..).unwrap_or_default(), types }
    }

    /// Its values from the first column on: `None` is null.
    pub(in crate::postgres) fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            // A negative length is null.
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = after;
                return Some(None);
            };
            let (value, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Some(value))
        })
    }

    /// Whole numbers of any width, from the first column on. What is none is taken for null.
    pub(in crate::postgres) fn whole_numbers(self) -> impl Iterator<Item = Option<i64>> {
        self.values().map(|value| match *value? {
            [a, b] => Some(i16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        })
    }

    /// The value of a column, from 0, as what its type is read as.
    ///
    /// # Errors
    /// When there is no such value, it is null, or it is of another type.
    pub(in crate::postgres) fn get<T: tokio_postgres::types::FromSqlOwned>(self, column: usize) -> Result<T, Failure> {
        let (Some(Some(raw)), Some(Some(of))) = (self.values().nth(column), self.types.get(column)) else {
            return Err(Failure::Protocol("a row without a value that was asked for"));
        };
        if !T::accepts(of) {
            return Err(Failure::Protocol("a value of another type than was asked for"));
        }
        T::from_sql(of, raw).map_err(Failure::Value)
    }
}

/// The types of a statement's parameters.
pub(super) fn parameter_types(body: &[u8]) -> Result<Vec<Type>, Failure> {
    let (oids, _) = body.get(2..).unwrap_or_default().as_chunks::<4>();
    let known = |oid: &[u8; 4]| Type::from_oid(u32::from_be_bytes(*oid));
    oids.iter()
        .map(|oid| known(oid).ok_or(Failure::Protocol("a parameter of a type that is not PostgreSQL's own")))
        .collect()
}

/// The types of the columns of a statement's rows; `None` for one that is not PostgreSQL's own.
pub(super) fn column_types(body: &[u8]) -> Result<Vec<Option<Type>>, Failure> {
    const MALFORMED: Failure = Failure::Protocol("a malformed description of rows");
    let mut rest = body.get(2..).ok_or(MALFORMED)?;
    let mut types = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).ok_or(MALFORMED)?;
        // After the name: table, column, type, size, modifier, format.
        let about: &[u8; 18] = rest[end + 1..].first_chunk().ok_or(MALFORMED)?;
        let [_, _, _, _, _, _, oid @ .., _, _, _, _, _, _, _, _] = *about;
        types.push(Type::from_oid(u32::from_be_bytes(oid)));
        rest = &rest[end + 1 + about.len()..];
    }
    Ok(types)
}

/// How many rows a statement returned or changed: the last word of what the server says it did.
pub(super) fn count_of(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body.strip_suffix(b"\0")?).ok()?;
    text.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_once_it_is_whole() {
        let bytes = b"C\0\0\0\x0dSELECT 3\0Z\0\0\0\x05I";
        for length in 0..14 {
            assert!(Message::first(&bytes[..length]).unwrap().is_none(), "{length}");
        }
        let (first, length) = Message::first(bytes).unwrap().unwrap();
        assert_eq!((first.kind, first.body, length), (b'C', &b"SELECT 3\0"[..], 14));
        assert_eq!(count_of(first.body), Some(3));
        assert_eq!(Message::first(&bytes[length..]).unwrap().unwrap().0, Message { kind: b'Z', body: b"I" });
        assert!(Message::first(b"C\0\0\0\x03").is_err());
        assert!(Message::first(b"HTTP/1.1 400").is_err());
    }

    #[test]
    fn what_a_statement_did_is_counted_by_its_last_word() {
        for (tag, count) in [("INSERT 0 7", Some(7)), ("UPDATE 12", Some(12)), ("BEGIN", None), ("COMMIT", None)] {
            assert_eq!(count_of(format!("{tag}\0").as_bytes()), count, "{tag}");
        }
    }

    #[test]
    fn values_are_taken_by_their_lengths_and_null_has_none() {
        let mut body = 5_u16.to_be_bytes().to_vec();
        for value in [Some(&b"\xff\xfe"[..]), None, Some(b"\0\0\0\x07"), Some(b"\0\0\0\0\0\0\x01\0"), Some(b"abc")] {
            body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            body.extend(value.unwrap_or_default());
        }
        let row = Row::new(&body, &[]);
        assert_eq!(row.whole_numbers().collect::<Vec<_>>(), [Some(-2), None, Some(7), Some(256), None]);
        let cut = Row::new(&body[..body.len() - 1], &[]);
        assert_eq!(cut.values().count(), 4, "a value that is not whole is none");
    }

    #[test]
    fn types_are_those_of_the_description() {
        let mut body = 2_u16.to_be_bytes().to_vec();
        for (name, oid) in [("a", 20_u32), ("much longer", 999_999)] {
            body.extend(name.as_bytes());
            body.extend([0; 7]);
            body.extend(oid.to_be_bytes());
            body.extend([0; 8]);
        }
        assert_eq!(column_types(&body).unwrap(), [Some(Type::INT8), None]);
        assert!(column_types(&body[..body.len() - 1]).is_err());
        assert_eq!(parameter_types(b"\0\x02\0\0\0\x17\0\0\0\x19").unwrap(), [Type::INT4, Type::TEXT]);
        assert!(parameter_types(b"\0\x01\0\x0f\x42\x3f").is_err());
    }
}
