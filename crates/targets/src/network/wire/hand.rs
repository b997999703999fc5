//! The handshake: who may use a connection, and for what.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::{HANDSHAKE, Key, PROOF_BYTES, PROTOCOL, WireError, left, random};

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
    /// A load of commits comes to its witness.
    Load,
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
            Self::Load => (3, 0, 0),
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
            (3, 0) => return (number == 0).then_some(Self::Load),
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
        Role::Control | Role::Part | Role::Load => (token.clone(), None),
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

/// What a load of commits says to its witness.
///
/// # Errors
/// As [`prove_control`].
pub fn prove_load(stream: &TcpStream, token: &Key, deadline: Instant) -> Result<(), WireError> {
    prove(stream, Role::Load, token, None, deadline).map(drop)
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
mod tests {
    //! Both halves of the handshake and of control connections, over sockets.

    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::network::wire::{
        ClientControl, Frames, FromClient, FromServer, MAX_FRAME_BYTES, Open, ServerControl, Token, Version,
    };

    /// Two ends of a connection: the server's and the client's.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn key(token: &str) -> Key {
        Token::new(token).unwrap().key()
    }

    type Met<T> = Result<T, WireError>;

    /// What a server with the token `ours` and a client with the token `theirs` make of each other.
    fn met(ours: &str, theirs: &str) -> (Met<(Role, Option<Session>)>, Met<Session>) {
        let (server, client) = pair();
        let ours = key(ours);
        let greeted = std::thread::spawn(move || greet(&server, &ours, || None, soon()));
        let proved = prove_control(&client, &key(theirs), soon());
        (greeted.join().unwrap(), proved)
    }

    #[test]
    fn whoever_knows_the_token_is_let_in_and_both_have_a_session() {
        let (greeted, proved) = met("a long token", "a long token");
        let (role, session) = greeted.unwrap();
        let (ours, theirs) = (session.unwrap(), proved.unwrap());
        assert_eq!(role, Role::Control);
        // Data connections are let in by the session and the number of the test alone.
        for (session, number, is_let_in) in
            [(&theirs, 7, true), (&theirs, 8, false), (&Session(key("a long token")), 7, false)]
        {
            let (server, client) = pair();
            let ours = ours.clone();
            let greeted = std::thread::spawn(move || {
                greet(&server, &key("a long token"), || Some((ours, 7)), soon()).map(|it| it.0)
            });
            let flow = Flow { number: 3, carries: Carries::Down };
            let proved = prove_data(&client, session, number, flow, soon());
            let greeted = greeted.join().unwrap();
            if is_let_in {
                assert_eq!((greeted.unwrap(), proved.unwrap()), (Role::Data(flow), ()));
            } else {
                assert!(
                    matches!(greeted, Err(WireError::TokenRefused)) && matches!(proved, Err(WireError::TokenRefused))
                );
            }
        }
    }

    #[test]
    fn another_token_is_refused_and_both_hear_of_it() {
        let (greeted, proved) = met("a long token", "a wrong token");
        assert!(matches!(greeted, Err(WireError::TokenRefused)), "{greeted:?}");
        let error = proved.unwrap_err();
        assert_eq!(error.to_string(), "the server did not accept the token");
        assert!(error.hint().unwrap().contains("PLIMSOLL_NET_TOKEN"));
    }

    #[test]
    fn data_connections_without_a_test_are_refused() {
        let (server, client) = pair();
        let greeted = std::thread::spawn(move || greet(&server, &key("a long token"), || None, soon()));
        let flow = Flow { number: 0, carries: Carries::Up };
        assert!(matches!(prove_data(&client, &Session(key("a long token")), 1, flow, soon()), Err(WireError::NoTest)));
        assert!(matches!(greeted.join().unwrap(), Err(WireError::NoTest)));
    }

    #[test]
    fn what_was_heard_once_proves_nothing_again() {
        let key = key("a long token");
        let heard = Challenge::fresh().unwrap();
        let hello = HelloRead::made(Role::Control, &heard, &key, None).unwrap();
        assert!(hello.is_proved(&heard, &key, None));
        assert!(!hello.is_proved(&Challenge::fresh().unwrap(), &key, None));
        // Nor for another purpose.
        assert!(!hello.is_proved(&heard, &key, Some(0)));
        for byte in 0..HELLO_BYTES {
            let mut bytes = hello.bytes;
            bytes[byte] ^= 1;
            let is_taken = HelloRead::read(bytes).is_ok_and(|hello| hello.is_proved(&heard, &key, None));
            assert!(!is_taken, "byte {byte} is not proved");
        }
    }

    #[test]
    fn a_server_that_does_not_know_the_token_is_found_out() {
        let (mut server, client) = pair();
        let liar = std::thread::spawn(move || {
            server.write_all(Challenge::fresh().unwrap().bytes()).unwrap();
            server.read_exact(&mut [0; HELLO_BYTES]).unwrap();
            server.write_all(&[0; VERDICT_BYTES]).unwrap();
            server
        });
        assert!(matches!(prove_control(&client, &key("a long token"), soon()), Err(WireError::Unproven)));
        drop(liar.join());
    }

    #[test]
    fn strangers_are_named_and_the_silent_are_not_waited_for() {
        for (said, expected) in [
            (&b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"[..], "does not speak as plimsoll does"),
            (b"PLIMNET2 from a later time, and forty bytes", "speaks protocol 2, this program speaks 1"),
            (b"PLIMNET1 and no more", "no answer in the handshake"),
        ] {
            let (mut server, client) = pair();
            server.write_all(said).unwrap();
            let deadline = Instant::now() + Duration::from_millis(300);
            let error = prove_control(&client, &key("a long token"), deadline).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let (server, client) = pair();
        drop(client);
        let error = greet(&server, &key("a long token"), || None, soon()).unwrap_err();
        assert!(error.is_closed(), "{error}");
    }

    #[test]
    fn the_deadline_is_for_all_bytes_and_not_for_each() {
        let (server, mut client) = pair();
        let dripping = std::thread::spawn(move || {
            while client.write_all(b"P").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let began = Instant::now();
        let greeted = greet(&server, &key("a long token"), || None, began + Duration::from_millis(300));
        assert!(matches!(greeted, Err(WireError::Silent { .. })), "{greeted:?}");
        server.shutdown(std::net::Shutdown::Both).unwrap();
        dripping.join().unwrap();
    }

    #[test]
    fn messages_arrive_whole_in_order_and_in_pieces() {
        let (server, client) = pair();
        let serving = std::thread::spawn(move || {
            let key = key("a long token");
            greet(&server, &key, || None, soon()).unwrap();
            let mut control = ServerControl::accepted(server, soon()).unwrap();
            // Nothing has come yet, which is no error.
            let first = control.receive(Instant::now() + Duration::from_millis(1)).unwrap();
            control.send(&FromServer::Preparing { done_bytes: 1, of_bytes: 2 }).unwrap();
            let mut heard: Vec<FromClient> = first.into_iter().collect();
            while heard.len() < 3 {
                heard.push(control.expect(soon()).unwrap());
            }
            (heard, control.expect(soon()).unwrap_err())
        });
        let (mut control, _) = ClientControl::prove(client, &key("a long token"), soon()).unwrap();
        assert_eq!(control.expect(soon()).unwrap(), FromServer::Preparing { done_bytes: 1, of_bytes: 2 });
        let open = FromClient::Open(Open { what: "gc \u{1b}[31m".to_owned(), connections: 4, ..Open::default() });
        let said = [open, FromClient::Snapshot(u64::MAX), FromClient::End];
        said.iter().for_each(|message| control.send(message).unwrap());
        control.close();
        let (heard, end) = serving.join().unwrap();
        assert_eq!(heard, said);
        assert!(end.is_closed(), "{end}");
    }

    #[test]
    fn a_message_that_is_none_ends_the_conversation() {
        let frame = |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
        let too_long = (u32::try_from(MAX_FRAME_BYTES).unwrap() + 1).to_le_bytes();
        for (bytes, expected) in [
            (too_long.to_vec(), "a message of 65537 bytes was announced, and at most 65536 are taken"),
            (vec![0xff; 4], "a message of 4294967295 bytes was announced"),
            (frame("\"begin\" x"), "a message is not what it should be"),
            (frame("\"destroy\""), "unknown variant"),
            (frame(r#"{"open":{"what":"","more":1}}"#), "unknown field"),
        ] {
            let (server, mut client) = pair();
            let said = frame(&serde_json::to_string(&FromClient::Version(Version::ours())).unwrap());
            client.write_all(&[said, bytes].concat()).unwrap();
            let mut control = ServerControl::accepted(server, soon()).unwrap();
            let error = control.receive(soon()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let mut frames: Frames<FromClient> = Frames::default();
        let mut heard = Vec::new();
        for byte in [frame("\"begin\""), frame("\"end\"")].concat() {
            frames.take_in(&[byte]);
            heard.extend(frames.next_message().unwrap());
        }
        assert_eq!(heard, [FromClient::Begin, FromClient::End]);
    }

    #[test]
    fn another_version_is_named_at_both_ends() {
        let (server, client) = pair();
        let serving = std::thread::spawn(move || {
            greet(&server, &key("a long token"), || None, soon()).unwrap();
            ServerControl::accepted(server, soon()).unwrap_err().to_string()
        });
        prove_control(&client, &key("a long token"), soon()).unwrap();
        let text = r#"{"version":{"protocol":1,"program":"0.0.9\n"}}"#;
        let frame = [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
        (&client).write_all(&frame).unwrap();
        assert_eq!(
            serving.join().unwrap(),
            "the other end speaks protocol 1 (plimsoll 0.0.9[U+000A]), this program speaks 1"
        );
    }
}
