//! Tokens and keys, and what is proved with them.

use std::fmt;
use std::fmt::Write as _;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use super::error::WireError;
use model::config::Secret;

/// Fewest characters of a token: whoever hears a handshake can try words at leisure.
pub const MIN_TOKEN_CHARS: usize = 8;

/// Random bytes in a token that is made here.
const TOKEN_BYTES: usize = 16;

pub(super) const PROOF_BYTES: usize = 32;

/// What a client must know. It is never sent.
#[derive(Clone, Debug)]
pub struct Token(Secret);

impl Token {
    /// A token as its user wrote it; blanks and ends of lines around it do not count.
    ///
    /// # Errors
    /// When it is too short.
    pub fn new(text: &str) -> Result<Self, WireError> {
        let text = text.trim();
        let chars = text.chars().count();
        if chars < MIN_TOKEN_CHARS {
            return Err(WireError::ShortToken { chars, least: MIN_TOKEN_CHARS });
        }
        Ok(Self(Secret::new(text)))
    }

    /// A token that nobody had before.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, WireError> {
        let bytes: [u8; TOKEN_BYTES] = random()?;
        let mut text = String::with_capacity(2 * TOKEN_BYTES);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(Secret::new(text)))
    }

    /// The token itself, to be shown once to whoever started the server that made it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The key of control connections.
    pub fn key(&self) -> Key {
        Key::new(self.expose().as_bytes())
    }
}

/// What proofs are made with.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl Key {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A proof over `parts`, whose lengths are the same for each `label`.
    pub(super) fn prove(&self, label: &str, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(self.sign(label, parts).as_ref());
        proof
    }

    /// Whether `proof` is that of `parts`; takes as long whichever byte is wrong.
    pub(super) fn is_proved(&self, label: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        hmac::verify(&self.0, self.sign_input(label, parts).as_slice(), proof).is_ok()
    }

    /// A key of its own for what `parts` name.
    pub(super) fn derive(&self, label: &str, parts: &[&[u8]]) -> Self {
        Self::new(self.sign(label, parts).as_ref())
    }

    fn sign(&self, label: &str, parts: &[&[u8]]) -> hmac::Tag {
        hmac::sign(&self.0, &self.sign_input(label, parts))
    }

    fn sign_input(&self, label: &str, parts: &[&[u8]]) -> Vec<u8> {
        let mut input = label.as_bytes().to_vec();
        // Ends the label, so that none is the beginning of another.
        input.push(0);
        parts.iter().for_each(|part| input.extend_from_slice(part));
        input
    }
}

/// Random bytes of the system.
///
/// # Errors
/// When it has none to give.
pub(super) fn random<const N: usize>() -> Result<[u8; N], WireError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| WireError::NoRandomness)?;
    Ok(bytes)
}

/// What a client's socket of datagrams introduces itself with.
///
/// # Errors
/// When the system has no random bytes to give.
pub(in crate::network) fn fresh_nonce() -> Result<[u8; 16], WireError> {
    random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_enough_and_never_shown() {
        assert_eq!(Token::new("  tops3cret\n").unwrap().expose(), "tops3cret");
        let error = Token::new(" seven77 ").unwrap_err();
        assert_eq!(error.to_string(), "the token has 7 characters, and at least 8 are asked for");
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.expose().len() == 2 * TOKEN_BYTES && one.expose() != other.expose());
        assert!(!format!("{one:?} {:?}", one.key()).contains(one.expose()));
    }

    #[test]
    fn a_proof_is_of_one_key_one_label_and_all_bytes() {
        let key = Key::new(b"key");
        let proof = key.prove("a", &[b"bc", b"d"]);
        assert!(key.is_proved("a", &[b"bc", b"d"], &proof));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!key.is_proved("a", &[b"bc", b"d"], &wrong) && !key.is_proved("a", &[b"bc", b"d"], &proof[..31]));
        assert!(!key.is_proved("ab", &[b"c", b"d"], &proof) && !key.is_proved("a", &[b"bc"], &proof));
        assert!(!Key::new(b"kez").is_proved("a", &[b"bc", b"d"], &proof));
        assert!(!key.derive("s", &[b"x"]).is_proved("a", &[b"bc", b"d"], &proof));
    }
}
