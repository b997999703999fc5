//! Servers that ask for a password under a key of their own, announce more than there is, or never end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use targets::DatabaseError as _;

use super::connect::Connector;
use crate::ServerError;
use crate::ending::on_own_runtime;

const KEY: &[u8] = include_bytes!("../../../mysql-seam/src/key.pem");
/// How a server asks for the password itself, and answers with its key.
const WHOLE_LOGIN: [u8; 2] = [1, 4];
const ASKS_FOR_KEY: [u8; 1] = [2];
const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

/// What a server does with one client; what it was sent is reported.
struct Hostile {
    port: u16,
    sent: Receiver<Vec<u8>>,
    _thread: JoinHandle<()>,
}

fn write(stream: &mut TcpStream, number: u8, body: &[u8]) -> std::io::Result<()> {
    let length = (body.len() as u32).to_le_bytes();
    stream.write_all(&[&length[..3], &[number], body].concat())
}

fn read(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((head[3], body))
}

impl Hostile {
    /// One that asks for the whole login if it `wants_password`, and then answers each statement with `answer`.
    fn start(wants_password: bool, answer: &'static [&'static [u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (report, sent) = channel();
        let thread = std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let served = (|| -> std::io::Result<()> {
                    let capabilities = (!0x800_u32).to_le_bytes();
                    let greeting = [
                        b"\x0a8.0.36\0\x07\0\0\x0012345678\0",
                        &capabilities[..2],
                        b"\x21\x02\0",
                        &capabilities[2..],
                        &[21],
                        &[0; 10],
                        b"123456789012\0mysql_native_password\0",
                    ]
                    .concat();
                    write(&mut stream, 0, &greeting)?;
                    let (mut number, _) = read(&mut stream)?;
                    if wants_password {
                        write(&mut stream, number + 1, b"\xfecaching_sha2_password\x0012345678901234567890\0")?;
                        number = read(&mut stream)?.0;
                        write(&mut stream, number + 1, &WHOLE_LOGIN)?;
                        let (number, asked) = read(&mut stream)?;
                        report.send(asked).unwrap();
                        write(&mut stream, number + 1, &[&[1], KEY].concat())?;
                        let (number, password) = read(&mut stream)?;
                        report.send(password).unwrap();
                        write(&mut stream, number + 1, &OK)?;
                    } else {
                        write(&mut stream, number + 1, &OK)?;
                    }
                    loop {
                        let (mut number, _) = read(&mut stream)?;
                        for packet in answer {
                            number = number.wrapping_add(1);
                            write(&mut stream, number, packet)?;
                        }
                    }
                })();
                // The client leaves as soon as it has heard enough.
                drop(served);
            }
        });
        Self { port, sent, _thread: thread }
    }

    fn refusal(&self, parameters: &str) -> (String, String) {
        let error = self.connect(parameters).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    }

    fn connect(&self, parameters: &str) -> Result<(), ServerError> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("my.cnf");
        std::fs::write(&file, "[client]\npassword=tiger\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let address = format!(
            "mysql://scott@127.0.0.1:{}/d?defaults-file={}&connect-timeout=20{parameters}",
            self.port,
            file.display()
        );
        let connector = Connector::new(&address.parse().unwrap(), "test")?;
        on_own_runtime(async { connector.connect(0).await.map(drop) })
    }

    fn was_sent(&self) -> Option<Vec<u8>> {
        self.sent.recv_timeout(Duration::from_secs(20)).ok()
    }
}

#[test]
fn a_password_is_not_sent_under_a_key_that_the_server_has_just_sent() {
    for parameters in ["", "&ssl-mode=disabled"] {
        let server = Hostile::start(true, &[&OK]);
        let (said, hint) = server.refusal(parameters);
        assert!(said.contains("under a key that anybody on the way could have sent"), "{said}");
        assert!(hint.contains("ssl-mode=required") && hint.contains("server-public-key="), "{hint}");
        assert_eq!(server.was_sent().unwrap(), ASKS_FOR_KEY);
        // Served when it is done with the client before.
        read(&mut TcpStream::connect(("127.0.0.1", server.port)).unwrap()).unwrap();
        assert_eq!(server.sent.try_recv().ok(), None, "the password was sent");
    }
}

#[test]
fn a_password_goes_under_a_key_that_is_known_or_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("public_key.pem");
    std::fs::write(&file, KEY).unwrap();
    for key in ["accept".to_owned(), file.display().to_string()] {
        let server = Hostile::start(true, &[&OK]);
        // Its answers to what comes then are none.
        let _ = server.connect(&format!("&server-public-key={key}"));
        assert_eq!(server.was_sent().unwrap(), ASKS_FOR_KEY);
        assert_eq!(server.was_sent().unwrap().len(), 128, "{key}");
    }
}

#[test]
fn a_private_key_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client-key.pem");
    std::fs::write(&file, KEY).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = Hostile::start(false, &[&OK]);
    let path = file.display();
    let (said, _) = server.refusal(&format!("&ssl-mode=required&ssl-cert={path}&ssl-key={path}"));
    assert!(said.contains("client-key.pem` cannot be used: group or others may read it; `chmod 600` it"), "{said}");
}

#[test]
fn answers_that_announce_too_much_or_are_empty_are_errors() {
    const MANY: &[u8] = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f";
    const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\xff\xff\xff\xfd\0\0\0\0\0";
    let empty: &[&[u8]] = &[b"\x01", COLUMN, b""];
    for (answer, words) in [
        (&[MANY][..], "an answer of 9223372036854775807 columns was announced"),
        (empty, "a packet without content came"),
    ] {
        let (said, _) = Hostile::start(false, answer).refusal("");
        assert!(said.contains("does not speak as MySQL does") || said.contains(words), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
