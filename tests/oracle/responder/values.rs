//! Values of columns and binds, and Oracle's own bytes for them.

use super::wire::Writer;

/// Numbers of types on the wire.
pub const VARCHAR2: u8 = 1;
pub const NUMBER: u8 = 2;
pub const DATE: u8 = 12;
pub const RAW: u8 = 23;
pub const CHAR: u8 = 96;
pub const BINARY_DOUBLE: u8 = 101;
pub const TIMESTAMP: u8 = 180;

/// A value that is asked with or answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    /// In decimal digits, since a NUMBER has up to 40 of them.
    Number(String),
    Text(String),
    Raw(Vec<u8>),
    Double(f64),
    /// A DATE, or a TIMESTAMP without its time zone.
    Moment(Moment),
}

/// A point of time as Oracle keeps it. The fraction is lost in a DATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub nanoseconds: u32,
}

impl Value {
    /// The value as a whole number, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        if let Value::Number(digits) = self { digits.parse().ok() } else { None }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_raw(&self) -> Option<&[u8]> {
        if let Value::Raw(bytes) = self { Some(bytes) } else { None }
    }

    /// Reads what was bound as `kind`. An empty value is NULL in Oracle, whatever its type.
    pub fn decode(kind: u8, bytes: Vec<u8>) -> Result<Value, &'static str> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        match kind {
            NUMBER => number_digits(&bytes).map(Value::Number).ok_or("a NUMBER that is none"),
            VARCHAR2 | CHAR => String::from_utf8(bytes).map(Value::Text).map_err(|_| "a text that is not UTF-8"),
            RAW => Ok(Value::Raw(bytes)),
            BINARY_DOUBLE => {
                let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| "a BINARY_DOUBLE that has not eight bytes")?;
                let bits = u64::from_be_bytes(bytes);
                let sign = 1 << 63;
                Ok(Value::Double(f64::from_bits(if bits & sign == 0 { !bits } else { bits & !sign })))
            }
            DATE | TIMESTAMP => {
                let [century, year, month, day, hour, minute, second, fraction @ ..] = &bytes[..] else {
                    return Err("a DATE of less than seven bytes");
                };
                let nanoseconds = fraction.iter().take(4).fold(0, |all, byte| all << 8 | u32::from(*byte));
                let year = (u16::from(*century).wrapping_sub(100)).wrapping_mul(100) + u16::from(*year) - 100;
                let (hour, minute, second) = (hour - 1, minute - 1, second - 1);
                Ok(Value::Moment(Moment { year, month: *month, day: *day, hour, minute, second, nanoseconds }))
            }
            _ => Err("a bind of a type that the responder does not know"),
        }
    }

    /// Writes the value for a column or an OUT bind of type `kind`.
    pub fn encode(&self, kind: u8, writer: &mut Writer) {
        match (self, kind) {
            (Value::Null, _) => writer.byte(0),
            (Value::Number(digits), _) => writer.bytes(&number_bytes(digits)),
            (Value::Text(text), _) => writer.bytes(text.as_bytes()),
            (Value::Raw(bytes), _) => writer.bytes(bytes),
            (Value::Double(number), _) => {
                let bits = number.to_bits();
                let sign = 1 << 63;
                writer.bytes(&(if bits & sign == 0 { bits | sign } else { !bits }).to_be_bytes())
            }
            (Value::Moment(moment), kind) => {
                let Moment { year, month, day, hour, minute, second, nanoseconds } = *moment;
                let (century, year) = ((year / 100 + 100) as u8, (year % 100 + 100) as u8);
                let mut bytes = vec![century, year, month, day, hour + 1, minute + 1, second + 1];
                if kind != DATE && nanoseconds != 0 {
                    bytes.extend_from_slice(&nanoseconds.to_be_bytes());
                }
                writer.bytes(&bytes)
            }
        };
    }
}

macro_rules! numbers {
    ($($whole:ty),*) => {$(
        impl From<$whole> for Value {
            fn from(number: $whole) -> Value {
                Value::Number(number.to_string())
            }
        }
    )*};
}

numbers!(i32, i64, u32, u64, usize, i128);

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Raw(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Oracle's bytes of a decimal number: an exponent of 100 with the sign, then digits of base 100.
fn number_bytes(digits: &str) -> Vec<u8> {
    let (negative, digits) = digits.strip_prefix('-').map_or((false, digits), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    assert!(whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()), "not a number: {digits}");
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let mut point = whole.len() as i32;
    let mut all = format!("{whole}{fraction}");
    if whole.is_empty() {
        let zeros = all.len() - all.trim_start_matches('0').len();
        all.drain(..zeros);
        point = -(zeros as i32);
    }
    if all.is_empty() {
        return vec![0x80];
    }
    if point.rem_euclid(2) == 1 {
        all.insert(0, '0');
        point += 1;
    }
    if all.len() % 2 == 1 {
        all.push('0');
    }
    let mut pairs: Vec<u8> = all.as_bytes().chunks(2).map(|two| (two[0] - b'0') * 10 + two[1] - b'0').collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    let exponent = point / 2;
    let mut bytes = vec![if negative { 0x3f - exponent } else { 0xc0 + exponent } as u8];
    bytes.extend(pairs.iter().map(|pair| if negative { 101 - pair } else { pair + 1 }));
    if negative && pairs.len() < 20 {
        bytes.push(102);
    }
    bytes
}

/// The decimal digits of Oracle's bytes of a number.
fn number_digits(bytes: &[u8]) -> Option<String> {
    let (first, pairs) = bytes.split_first()?;
    if *first == 0x80 {
        return Some("0".to_owned());
    }
    let negative = first & 0x80 == 0;
    let exponent = if negative { 0x3f - i32::from(*first) } else { i32::from(*first) - 0xc0 };
    let mut all = String::new();
    for pair in pairs.iter().filter(|pair| !(negative && **pair == 102)) {
        let pair = if negative { 101_u8.checked_sub(*pair)? } else { pair.checked_sub(1)? };
        all.push_str(&format!("{pair:02}"));
    }
    let point = exponent * 2;
    if point <= 0 {
        all.insert_str(0, &"0".repeat(point.unsigned_abs() as usize + 1));
    }
    let point = point.max(1) as usize;
    while all.len() < point {
        all.push('0');
    }
    let (whole, fraction) = all.split_at(point);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if negative { "-" } else { "" };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}
