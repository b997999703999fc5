//! Values that are bound to statements.

/// A value as drivers take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Signed(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A number that is unknown.
    NoNumber,
    Out(DbType),
}

/// What a block puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DbType {
    Number,
    /// At most 4,000 bytes.
    Text,
    /// At most 4,000 bytes.
    Bytes,
}

/// Stands where a block puts out a number.
pub(crate) const DB_TYPE_NUMBER: DbType = DbType::Number;
/// Stands where a block puts out text.
pub(crate) const DB_TYPE_VARCHAR: DbType = DbType::Text;
/// Stands where a block puts out bytes.
pub(crate) const DB_TYPE_RAW: DbType = DbType::Bytes;

/// What can be bound.
pub(crate) trait ToDbValue {
    /// As drivers take it.
    fn value(&self) -> Value<'_>;
}

impl ToDbValue for u64 {
    fn value(&self) -> Value<'_> {
        Value::Number(*self)
    }
}

impl ToDbValue for u32 {
    fn value(&self) -> Value<'_> {
        Value::Number((*self).into())
    }
}

impl ToDbValue for i64 {
    fn value(&self) -> Value<'_> {
        Value::Signed(*self)
    }
}

impl ToDbValue for &str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToDbValue for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToDbValue for &[u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToDbValue for Value<'_> {
    fn value(&self) -> Value<'_> {
        *self
    }
}

impl ToDbValue for DbType {
    fn value(&self) -> Value<'_> {
        Value::Out(*self)
    }
}

/// Room for the values of one operation: all columns, two keys, and the count that comes back.
pub(super) const ROOM: usize = 24;

/// Has `work` do something with the values, which need no room on the heap unless they are many.
pub(super) fn with_values<T>(bound: &[&dyn ToDbValue], work: impl FnOnce(&[Value<'_>]) -> T) -> T {
    let mut room = [Value::Number(0); ROOM];
    match room.get_mut(..bound.len()) {
        Some(values) => {
            for (value, bound) in values.iter_mut().zip(bound) {
                *value = bound.value();
            }
            work(values)
        }
        None => work(&bound.iter().map(|bound| bound.value()).collect::<Vec<_>>()),
    }
}
