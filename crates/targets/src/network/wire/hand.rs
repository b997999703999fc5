//! The handshake: who may use a connection, and for what.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::error::{HANDSHAKE, WireError, left};
use super::key::{Key, PROOF_BYTES, random};
use super::message::PROTOCOL;

const NAME: &[u8; 7] = b"PLIMNET";
/// The name and the protocol's number, as a digit.
const MAGIC: &[u8; 8] = b"PLIMNET1";

/// What the server says first.
pub const GREETING_BYTES: usize = MAGIC.len() + 32;
/// All that is read of a client before it has proved that it knows the token.
pub const HELLO_BYTES: usize = 64;
/// What the server answers.
pub const VERDICT_BYTES: usize = 8 + PROOF_BYTES;

/// Bytes of a hello that its proof is about.
const CLAIM_BYTES: usize = HELLO_BYTES - PROOF_BYTES;

const CONTROL: &str = "plimsoll net control";
const DATA: &str = "plimsoll net data";
const SERVER: &str = "plimsoll net server";
const SESSION: &str = "plimsoll net session";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Messages about tests.
    Control,
    /// Load.
    Data(Flow),
    /// A part of a fleet comes to its meeting point.
    Part,
}

/// One data connection of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Its number in the test, from 0.
    pub number: u32,
    /// What goes over it.
    pub carries: Carries,
}

/// What goes over a data connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Requests of the client and answers of the server, in the same order.
    Exchanges,
    /// Bytes from the client, which the server counts.
    Up,
    /// Bytes from the server, until the client closes or the test ends.
    Down,
}

impl Role {
    fn bytes(self) -> [u8; 8] {
        let (role, carries, number) = match self {
            Self::Control => (0, 0, 0),
            Self::Part => (2, 0, 0),
            Self::Data(flow) => {
                let carries = match flow.carries {
                    Carries::Exchanges => 0,
                    Carries::Up => 1,
                    Carries::Down => 2,
                };
                (1, carries, flow.number)
            }
        };
        let [a, b, c, d] = number.to_le_bytes();
        [role, carries, 0, 0, a, b, c, d]
    }

    fn read(bytes: [u8; 8]) -> Option<Self> {
        let [role, carries, 0, 0, number @ ..] = bytes else { return None };
        let number = u32::from_le_bytes(number);
        let carries = match (role, carries) {
            (0, 0) => return (number == 0).then_some(Self::Control),
            (2, 0) => return (number == 0).then_some(Self::Part),
            (1, 0) => Carries::Exchanges,
            (1, 1) => Carries::Up,
            (1, 2) => Carries::Down,
            _ => return None,
        };
        Some(Self::Data(Flow { number, carries }))
    }
}

/// What both ends of a proven control connection know, and nobody who only heard it.
#[derive(Debug, Clone)]
pub struct Session(Key);

/// The server's question to one connection.
#[derive(Debug, Clone)]
pub struct Challenge([u8; GREETING_BYTES]);

impl Challenge {
    /// A question that was never asked before.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn fresh() -> Result<Self, WireError> {
        let nonce: [u8; GREETING_BYTES - 8] = random()?;
        let mut greeting = [0; GREETING_BYTES];
        greeting[..8].copy_from_slice(MAGIC);
        greeting[8..].copy_from_slice(&nonce);
        Ok(Self(greeting))
    }

    /// As it is sent.
    pub fn bytes(&self) -> &[u8; GREETING_BYTES] {
        &self.0
    }

    /// A question as a client received it.
    ///
    /// # Errors
    /// When it is none of ours, or of another protocol.
    pub fn read(bytes: [u8; GREETING_BYTES]) -> Result<Self, WireError> {
        let (name, rest) = bytes.split_at(NAME.len());
        if name != NAME {
            return Err(WireError::Stranger);
        }
        if rest[0] != MAGIC[NAME.len()] {
            let theirs = match rest[0] {
                digit @ b'0'..=b'9' => char::from(digit).to_string(),
                _ => "unknown".to_owned(),
            };
            return Err(WireError::OtherProtocol { theirs, ours: PROTOCOL });
        }
        Ok(Self(bytes))
    }

    fn session(&self, hello: &[u8; HELLO_BYTES], token: &Key) -> Session {
        Session(token.derive(SESSION, &[&self.0, &hello[..CLAIM_BYTES]]))
    }
}

/// A hello whose form is right and whose proof has not been looked at.
#[derive(Debug, Clone)]
pub struct HelloRead {
    /// What the connection shall be for.
    pub role: Role,
    bytes: [u8; HELLO_BYTES],
}

impl HelloRead {
    /// Reads a client's answer.
    ///
    /// # Errors
    /// When it is no hello of this protocol.
    pub fn read(bytes: [u8; HELLO_BYTES]) -> Result<Self, WireError> {
        let (magic, rest) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(WireError::malformed("a hello", "it does not begin as one"));
        }
        let mut role = [0; 8];
        role.copy_from_slice(&rest[..8]);
        let role = Role::read(role).ok_or_else(|| WireError::malformed("a hello", "it asks for nothing known"))?;
        Ok(Self { role, bytes })
    }

    /// Whether whoever sent it knows `key`; `test` is that of a data connection.
    pub fn is_proved(&self, challenge: &Challenge, key: &Key, test: Option<u64>) -> bool {
        let (claim, proof) = self.bytes.split_at(CLAIM_BYTES);
        key.is_proved(label(test), &[&challenge.0, claim, &test_bytes(test)], proof)
    }

    fn made(role: Role, challenge: &Challenge, key: &Key, test: Option<u64>) -> Result<Self, WireError> {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&role.bytes());
        let nonce: [u8; CLAIM_BYTES - 16] = random()?;
        bytes[16..CLAIM_BYTES].copy_from_slice(&nonce);
        let proof = key.prove(label(test), &[&challenge.0, &bytes[..CLAIM_BYTES], &test_bytes(test)]);
        bytes[CLAIM_BYTES..].copy_from_slice(&proof);
        Ok(Self { role, bytes })
    }
}

fn label(test: Option<u64>) -> &'static str {
    if test.is_some() { DATA } else { CONTROL }
}

fn test_bytes(test: Option<u64>) -> [u8; 8] {
    test.unwrap_or(0).to_le_bytes()
}

/// How a server ends the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accepted,
    NotProved,
    NoTest,
}

impl Verdict {
    fn code(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::NotProved => 1,
            Self::NoTest => 2,
        }
    }

    /// With a proof where it was accepted; a refusal is sent to anybody.
    fn bytes(self, challenge: &Challenge, hello: &HelloRead, key: Option<&Key>) -> [u8; VERDICT_BYTES] {
        let mut bytes = [0; VERDICT_BYTES];
        bytes[0] = self.code();
        if let Some(key) = key {
            let proof = key.prove(SERVER, &[&challenge.0, &hello.bytes, &bytes[..8]]);
            bytes[8..].copy_from_slice(&proof);
        }
        bytes
    }

    fn read(bytes: &[u8; VERDICT_BYTES], challenge: &Challenge, hello: &HelloRead, key: &Key) -> Result<(), WireError> {
        let (code, proof) = bytes.split_at(8);
        match code {
            [0, 0, 0, 0, 0, 0, 0, 0] => {}
            [1, ..] => return Err(WireError::TokenRefused),
            [2, ..] => return Err(WireError::NoTest),
            _ => return Err(WireError::malformed("the server's verdict", "it has no known code")),
        }
        if key.is_proved(SERVER, &[&challenge.0, &hello.bytes, code], proof) {
            Ok(())
        } else {
            Err(WireError::Unproven)
        }
    }
}

/// The server's half: asks, and reads at most [`HELLO_BYTES`] until `deadline`. `test` gives the session and the number of the
/// test that data connections can belong to. The session is that of a new control connection.
///
/// # Errors
/// When the client does not answer in time, not in form, or without the key; it has been sent the reason, as far as it listens.
pub fn greet(
    stream: &TcpStream,
    token: &Key,
    test: impl FnOnce() -> Option<(Session, u64)>,
    deadline: Instant,
) -> Result<(Role, Option<Session>), WireError> {
    let challenge = Challenge::fresh()?;
    write_by(stream, challenge.bytes(), deadline, HANDSHAKE)?;
    let mut bytes = [0; HELLO_BYTES];
    read_by(stream, &mut bytes, deadline, HANDSHAKE)?;
    let hello = HelloRead::read(bytes)?;
    let say = |verdict: Verdict, key| write_by(stream, &verdict.bytes(&challenge, &hello, key), deadline, HANDSHAKE);
    let (key, number) = match hello.role {
        Role::Control | Role::Part => (token.clone(), None),
        Role::Data(_) => match test() {
            Some((session, number)) => (session.0, Some(number)),
            None => {
                say(Verdict::NoTest, None)?;
                return Err(WireError::NoTest);
            }
        },
    };
    if !hello.is_proved(&challenge, &key, number) {
        say(Verdict::NotProved, None)?;
        return Err(WireError::TokenRefused);
    }
    say(Verdict::Accepted, Some(&key))?;
    let session = (number.is_none()).then(|| challenge.session(&hello.bytes, token));
    Ok((hello.role, session))
}

/// The client's half of a control connection.
///
/// # Errors
/// When the server does not answer in time, is no server of ours, or one of them does not know the token.
pub fn prove_control(stream: &TcpStream, token: &Key, deadline: Instant) -> Result<Session, WireError> {
    let (challenge, hello) = prove(stream, Role::Control, token, None, deadline)?;
    Ok(challenge.session(&hello.bytes, token))
}

/// What a part says to its meeting point.
///
/// # Errors
/// As [`prove_control`].
pub fn prove_part(stream: &TcpStream, token: &Key, deadline: Instant) -> Result<(), WireError> {
    prove(stream, Role::Part, token, None, deadline).map(drop)
}

/// The client's half of a data connection of test number `test`.
///
/// # Errors
/// As [`prove_control`], and when the test has ended.
pub fn prove_data(
    stream: &TcpStream,
    session: &Session,
    test: u64,
    flow: Flow,
    deadline: Instant,
) -> Result<(), WireError> {
    prove(stream, Role::Data(flow), &session.0, Some(test), deadline).map(drop)
}

fn prove(
    stream: &TcpStream,
    role: Role,
    key: &Key,
    test: Option<u64>,
    deadline: Instant,
) -> Result<(Challenge, HelloRead), WireError> {
    let mut greeting = [0; GREETING_BYTES];
    read_by(stream, &mut greeting, deadline, HANDSHAKE)?;
    let challenge = Challenge::read(greeting)?;
    let hello = HelloRead::made(role, &challenge, key, test)?;
    write_by(stream, &hello.bytes, deadline, HANDSHAKE)?;
    let mut verdict = [0; VERDICT_BYTES];
    read_by(stream, &mut verdict, deadline, HANDSHAKE)?;
    Verdict::read(&verdict, &challenge, &hello, key)?;
    Ok((challenge, hello))
}

/// Reads all of `bytes` until `deadline`, however slowly they come.
pub(super) fn read_by(
    mut stream: &TcpStream,
    bytes: &mut [u8],
    deadline: Instant,
    during: &'static str,
) -> Result<(), WireError> {
    let mut done = 0;
    while done < bytes.len() {
        let patience = Some(left(deadline, during)?);
        stream.set_read_timeout(patience).map_err(|error| WireError::of("set a timeout", during, error))?;
        match stream.read(&mut bytes[done..]) {
            Ok(0) => return Err(WireError::Closed { during }),
            Ok(read) => done += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(WireError::of("receive", during, error)),
        }
    }
    Ok(())
}

/// Writes all of `bytes` until `deadline`, however slowly they are taken.
pub(super) fn write_by(
    mut stream: &TcpStream,
    bytes: &[u8],
    deadline: Instant,
    during: &'static str,
) -> Result<(), WireError> {
    let mut done = 0;
    while done < bytes.len() {
        let patience = Some(left(deadline, during)?);
        stream.set_write_timeout(patience).map_err(|error| WireError::of("set a timeout", during, error))?;
        match stream.write(&bytes[done..]) {
            Ok(0) => return Err(WireError::Closed { during }),
            Ok(written) => done += written,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(WireError::of("send", during, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "hand_tests.rs"]
mod tests;
