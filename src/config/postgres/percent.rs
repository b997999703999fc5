//! Percent-encoding of addresses (RFC 3986, section 2).

use super::AddressProblem;

/// `text` with everything encoded that could mean something in an address.
pub(super) fn encoded(text: &str) -> String {
    // A character that is plain already, so nothing more stays.
    encoded_but(text, '-')
}

/// The same, but `plain` stays as it is.
pub(super) fn encoded_but(text: &str, plain: char) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || "-._~".contains(character) || character == plain {
            encoded.push(character);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// What `text` stands for. `part` is what it is, such as `user`.
pub(super) fn decoded(text: &str, part: &'static str) -> Result<String, AddressProblem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |place: usize| after.get(place).and_then(|&digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Err(AddressProblem::Percent { part }) };
        bytes.push((high * 16 + low) as u8);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| AddressProblem::NotText { part })
}
