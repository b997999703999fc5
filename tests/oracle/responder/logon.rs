//! Connecting: the listener's part, what both sides agree upon, and O5LOGON with the verifier of 12c.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use aes::Aes256;
use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use pbkdf2::pbkdf2_hmac;
use sha2::{Digest, Sha512};

use super::Generation;
use super::faults::{Ended, Fault, Stage};
use super::log::State;
use super::reply::Error;
use super::session::Session;
use super::wire::{ACCEPT, CONNECT, DATA, REDIRECT, REFUSE, RESEND, Reader, Short, Writer};

/// Where the connect data begins in the body of a connect packet, if the client has put it there.
const CONNECT_DATA_AT: usize = 66;
const PHASE_ONE: u8 = 118;
const PHASE_TWO: u8 = 115;
const FAST: u8 = 34;
const FUNCTION: u8 = 3;
const PARAMETERS: u8 = 8;
/// The kind of verifier that 12c and later keep, and that of 11G.
const VERIFIER_12C: u64 = 0x4815;
const VERIFIER_11G: u64 = 0x1b25;
const DERIVATIONS: u32 = 3;
const UTF8: u16 = 873;
const UTF16: u16 = 2000;
const SERVICE: &str = "SERVICE_NAME=";
const DEFAULT_INSTANCE: &str = "ONE1";
/// What the server can do: field versions and features as 19c has them.
const ABILITIES: &[u8] = &[
    6, 1, 1, 1, 0x6f, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0x7f, 0xff, 3, 13, 3, 3, 1, 1, 0xff, 1, 0xff, 0xff, 1, 11, 1, 1,
    0xff, 1, 6, 10, 0x62, 1, 0x7f, 4, 0, 15, 13, 7, 2, 1, 0, 1, 0x18, 0, 0, 0, 0, 0, 0, 0,
];
/// The seventh byte allows texts and RAWs of 32,767 bytes.
const RUNTIME_ABILITIES: &[u8] = &[2, 1, 0, 0, 0, 0, 4, 0, 0, 0, 0];

/// A user's password as the server keeps it.
pub struct Password {
    plain: Vec<u8>,
    salt: [u8; 16],
    hash: [u8; 32],
    hashings: u32,
}

impl Password {
    pub fn new(plain: &str, hashings: u32) -> Password {
        let salt = random();
        let mut key = [0; 64];
        let salted = [&salt[..], b"AUTH_PBKDF2_SPEEDY_KEY"].concat();
        pbkdf2_hmac::<Sha512>(plain.as_bytes(), &salted, hashings, &mut key);
        let mut hash = [0; 32];
        hash.copy_from_slice(&Sha512::new().chain_update(key).chain_update(salt).finalize()[..32]);
        Password { plain: plain.as_bytes().to_vec(), salt, hash, hashings }
    }
}

/// The server's half of the secret of one logon.
struct Challenge {
    key: [u8; 32],
    salt: [u8; 16],
}

impl Session<'_> {
    pub fn log_on(&mut self) -> Result<(), Ended> {
        let (service, descriptor) = self.connect_packet()?;
        self.log(|log| (log.service, log.descriptor) = (service.clone(), descriptor.clone()));
        let session = self.number();
        let given = self.shared.answers.connecting(session, &service);
        self.fault = given.or_else(|| self.shared.fault.lock().unwrap().clone());
        self.reach(Stage::Connect)?;
        let known = &self.shared.options.services;
        let instance = match known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&service)) {
            Some((_, instance)) => instance.clone(),
            None if known.is_empty() => DEFAULT_INSTANCE.to_owned(),
            None => return self.refuse(12514),
        };
        match self.fault.clone() {
            Some(Fault::Refuse(code)) => return self.refuse(code),
            Some(Fault::Redirect(address)) => {
                let (host, port) = (address.ip(), address.port());
                let data = format!("(ADDRESS=(PROTOCOL=tcp)(HOST={host})(PORT={port}))\0{descriptor}");
                self.link.send(REDIRECT, &(data.len() as u16).to_be_bytes())?;
                self.link.send(DATA, &[&[0, 0], data.as_bytes()].concat())?;
                return Err(Ended::ByFault);
            }
            Some(Fault::Bytes(bytes)) => {
                self.link.write(&bytes)?;
                self.waits_forever()?;
                return Err(Ended::ByFault);
            }
            _ => {}
        }
        self.accept()?;
        self.reach(Stage::Accepted)?;
        self.agree_and_check(&service, &instance)
    }

    /// The service and the descriptor of the first packet. The client is asked once to send it again, as 18c and later do.
    fn connect_packet(&mut self) -> Result<(String, String), Ended> {
        let mut resends = usize::from(self.shared.options.generation == Generation::V19);
        loop {
            let packet = self.link.packet()?;
            if packet.kind != CONNECT || packet.body.len() < CONNECT_DATA_AT {
                return Err(Ended::Nonsense("a first packet that does not connect"));
            }
            let length = usize::from(u16::from_be_bytes([packet.body[16], packet.body[17]]));
            let mut data = packet.body[CONNECT_DATA_AT..].to_vec();
            while data.len() < length {
                // The client splits what is long. The packets have two bytes of flags.
                let more = self.link.packet()?;
                data.extend_from_slice(more.body.get(2..).unwrap_or_default());
            }
            if resends > 0 {
                resends -= 1;
                self.link.send(RESEND, &[])?;
                continue;
            }
            let descriptor = String::from_utf8_lossy(&data).into_owned();
            let upper = descriptor.to_ascii_uppercase();
            let service = upper.find(SERVICE).map_or("", |at| {
                let value = &descriptor[at + SERVICE.len()..];
                value.split(')').next().unwrap_or_default().trim()
            });
            return Ok((service.to_owned(), descriptor));
        }
    }

    fn refuse(&mut self, code: u32) -> Result<(), Ended> {
        let text = format!("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={code})(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))");
        let mut body = vec![0x22, 0];
        body.extend_from_slice(&(text.len() as u16).to_be_bytes());
        body.extend_from_slice(text.as_bytes());
        self.link.send(REFUSE, &body)?;
        Err(Ended::ByFault)
    }

    fn accept(&mut self) -> Result<(), Ended> {
        let (version, flags): (u16, u32) = match self.shared.options.generation {
            _ if self.fault == Some(Fault::OldServer) => (314, 0),
            Generation::V19 => (318, 0),
            // Connecting in one step, and answers with a mark of their end.
            Generation::V23 => (319, 0x1000_0000 | 0x0200_0000),
        };
        let encryption = if self.fault == Some(Fault::NativeEncryption) { 0x10 } else { 0 };
        let mut body = Writer::default();
        body.raw(&version.to_be_bytes()).zeros(12).byte(encryption).zeros(9);
        body.raw(&8192_u32.to_be_bytes()).zeros(5).raw(&flags.to_be_bytes()).zeros(16);
        self.link.send(ACCEPT, &body.bytes)?;
        self.link.has_wide_lengths = true;
        self.link.marks_ends = self.shared.options.generation == Generation::V23;
        Ok(())
    }

    /// Sends what the password is proved with, or half of it and nothing more.
    fn challenge(&mut self, answer: Vec<u8>) -> Result<(), Ended> {
        if self.fault != Some(Fault::StopInTheMiddle) {
            return self.link.send_data(answer);
        }
        let packets = self.link.data(answer);
        self.link.write(&packets[..packets.len() / 2])?;
        loop {
            self.link.packet()?;
        }
    }

    /// What both sides can do, then the two phases of logging on.
    fn agree_and_check(&mut self, service: &str, instance: &str) -> Result<(), Ended> {
        let challenge = Challenge { key: random(), salt: random() };
        let first = match self.shared.options.generation {
            Generation::V23 => {
                let pairs = self.request(|reader, _| fast_logon(reader))?;
                let mut answer = self.abilities();
                answer.raw(NO_TYPES).raw(&self.phase_one(&challenge).bytes);
                self.reach(Stage::Password)?;
                self.challenge(answer.bytes)?;
                pairs
            }
            Generation::V19 => {
                self.request(|reader, _| protocol(reader))?;
                let answer = self.abilities();
                self.link.send_data(answer.bytes)?;
                self.request(|reader, _| types(reader))?;
                self.link.send_data(NO_TYPES.to_vec())?;
                let pairs = self.request(|reader, _| logon_pairs(reader, PHASE_ONE, false))?;
                self.reach(Stage::Password)?;
                let answer = self.phase_one(&challenge);
                self.challenge(answer.bytes)?;
                pairs
            }
        };
        let has_token = self.shared.options.generation == Generation::V23;
        let second = self.request(|reader, _| logon_pairs(reader, PHASE_TWO, has_token))?;
        self.log(|log| {
            let of = |pairs: &Pairs, key: &str| pairs.values.get(key).cloned().unwrap_or_default();
            log.user = first.user.clone();
            log.program = of(&first, "AUTH_PROGRAM_NM");
            log.machine = of(&first, "AUTH_MACHINE");
            log.osuser = of(&first, "AUTH_SID");
            log.terminal = of(&first, "AUTH_TERMINAL");
            log.driver = of(&second, "SESSION_CLIENT_DRIVER_NAME");
        });
        let refused = match &self.fault {
            Some(Fault::Logon { code, message }) => Some(Error::new(*code, message)),
            _ => None,
        };
        match refused.map_or_else(|| self.check(&challenge, &second), Err) {
            Ok(proof) => {
                let answer = self.welcome(service, instance, &proof);
                self.log(|log| log.state = State::LoggedOn);
                self.link.send_data(answer.bytes)
            }
            Err(error) => {
                let answer = self.error(0, 0, Some(&error));
                self.link.send_data(answer)?;
                Err(Ended::ByFault)
            }
        }
    }

    fn abilities(&self) -> Writer {
        let mut abilities = ABILITIES.to_vec();
        abilities[7] = self.field_version();
        let mut writer = Writer::default();
        writer.raw(&[1, 6, 0]).raw(b"x86_64/Linux 2.4.xx\0").raw(&UTF8.to_le_bytes()).byte(1).zeros(2);
        writer.raw(&11_u16.to_be_bytes()).zeros(9).raw(&UTF16.to_be_bytes());
        writer.bytes(&abilities).bytes(RUNTIME_ABILITIES);
        writer
    }

    /// The server's half of the secret, encrypted by the password as the server keeps it.
    fn phase_one(&self, challenge: &Challenge) -> Writer {
        let mut writer = Writer::default();
        writer.byte(PARAMETERS);
        let password = &self.shared.password;
        if self.fault == Some(Fault::OldVerifier) {
            let (key, salt): ([u8; 48], [u8; 10]) = (random(), random());
            writer.number(2).pair("AUTH_SESSKEY", &hex(&key), 1).pair("AUTH_VFR_DATA", &hex(&salt), VERIFIER_11G);
        } else {
            let key = hex(&encrypted(&password.hash, &challenge.key));
            writer.number(6).pair("AUTH_SESSKEY", &key, 1).pair("AUTH_VFR_DATA", &hex(&password.salt), VERIFIER_12C);
            writer.pair("AUTH_PBKDF2_CSK_SALT", &hex(&challenge.salt), 0);
            writer.pair("AUTH_PBKDF2_VGEN_COUNT", &password.hashings.to_string(), 0);
            writer.pair("AUTH_PBKDF2_SDER_COUNT", &DERIVATIONS.to_string(), 0);
            writer.pair("AUTH_GLOBALLY_UNIQUE_DBID\0", &"0".repeat(32), 0);
        }
        writer.raw(&self.error(0, 0, None));
        writer
    }

    /// Checks the password. Gives the server's proof that it knows it, too.
    fn check(&self, challenge: &Challenge, pairs: &Pairs) -> Result<Vec<u8>, Error> {
        let password = &self.shared.password;
        let wrong = || Error::new(1017, "invalid username/password; logon denied");
        let of = |key: &str| pairs.values.get(key).and_then(|text| unhex(text)).ok_or_else(wrong);
        let theirs = decrypted(&password.hash, &of("AUTH_SESSKEY")?).ok_or_else(wrong)?;
        let mut secret = [0; 32];
        let both = hex(&[&theirs[..], &challenge.key].concat());
        pbkdf2_hmac::<Sha512>(both.as_bytes(), &challenge.salt, DERIVATIONS, &mut secret);
        let sent = decrypted(&secret, &of("AUTH_PASSWORD")?).ok_or_else(wrong)?;
        // A block of chance is in front, and behind it as many bytes as the last one says.
        let padding = usize::from(*sent.last().ok_or_else(wrong)?);
        let plain = sent.len().checked_sub(padding).and_then(|end| sent.get(16..end));
        let is_user = pairs.user.eq_ignore_ascii_case(&self.shared.options.user);
        if !is_user || plain != Some(&password.plain) {
            return Err(wrong());
        }
        let chance: [u8; 16] = random();
        Ok(encrypted(&secret, &[&chance[..], b"SERVER_TO_CLIENT", &[16; 16]].concat()))
    }

    fn welcome(&self, service: &str, instance: &str, proof: &[u8]) -> Writer {
        let version: u32 = match self.shared.options.generation {
            Generation::V19 => 19 << 24 | 22 << 16,
            Generation::V23 => 23 << 24 | 26 << 16,
        };
        let version = self.shared.options.release.map_or(version, |release| release << 24);
        let session = self.number();
        let pairs = [
            ("AUTH_VERSION_NO", version.to_string()),
            ("AUTH_SESSION_ID", session.to_string()),
            ("AUTH_SERIAL_NUM", (session + 1000).to_string()),
            ("AUTH_SC_DBUNIQUE_NAME", "ONE".to_owned()),
            ("AUTH_SC_DB_DOMAIN", String::new()),
            ("AUTH_SC_SERVICE_NAME", service.to_owned()),
            ("AUTH_INSTANCENAME", instance.to_owned()),
            ("AUTH_MAX_OPEN_CURSORS", self.shared.options.max_cursors.to_string()),
            ("AUTH_MAX_IDEN_LENGTH", "128".to_owned()),
            ("AUTH_SVR_RESPONSE", hex(proof)),
        ];
        let mut writer = Writer::default();
        writer.byte(PARAMETERS).number(pairs.len() as u64);
        for (key, value) in pairs {
            writer.pair(key, &value, 0);
        }
        writer.raw(&self.error(0, 0, None));
        writer
    }
}

/// The answer to the list of types: nothing has to be converted.
const NO_TYPES: &[u8] = &[2, 0, 0];

/// What a client says of itself and of its password.
struct Pairs {
    user: String,
    values: HashMap<String, String>,
}

fn protocol(reader: &mut Reader<'_>) -> Result<(), Short> {
    reader.expect(1, "no protocol message")?;
    // Versions up to a zero, then the driver's name up to another.
    for _ in 0..2 {
        while reader.byte()? != 0 {}
    }
    Ok(())
}

fn types(reader: &mut Reader<'_>) -> Result<(), Short> {
    reader.expect(2, "no list of types")?;
    reader.skip(5)?;
    reader.bytes()?;
    reader.bytes()?;
    while reader.two_bytes()? != 0 {
        reader.skip(6)?;
    }
    Ok(())
}

/// All three messages of connecting in one.
fn fast_logon(reader: &mut Reader<'_>) -> Result<Pairs, Short> {
    reader.expect(FAST, "no fast logon")?;
    reader.skip(3)?;
    protocol(reader)?;
    reader.skip(6)?;
    types(reader)?;
    logon_pairs(reader, PHASE_ONE, false)
}

fn logon_pairs(reader: &mut Reader<'_>, phase: u8, has_token: bool) -> Result<Pairs, Short> {
    reader.expect(FUNCTION, "no function in a logon")?;
    reader.expect(phase, "another phase of logging on")?;
    reader.skip(1)?;
    if has_token {
        reader.number()?;
    }
    reader.skip(1)?;
    reader.number()?;
    reader.number()?;
    reader.skip(1)?;
    let count = reader.count()?;
    reader.skip(2)?;
    let user = reader.text()?;
    let mut values = HashMap::new();
    for _ in 0..count {
        let (key, value) = (reader.long_text()?, reader.long_text()?);
        reader.number()?;
        values.insert(key, value);
    }
    Ok(Pairs { user, values })
}

fn encrypted(key: &[u8; 32], plain: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; plain.len()];
    let cipher = cbc::Encryptor::<Aes256>::new(key.into(), &[0; 16].into());
    cipher.encrypt_padded_b2b::<NoPadding>(plain, &mut bytes).expect("whole blocks");
    bytes
}

fn decrypted(key: &[u8; 32], secret: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; secret.len()];
    let cipher = cbc::Decryptor::<Aes256>::new(key.into(), &[0; 16].into());
    cipher.decrypt_padded_b2b::<NoPadding>(secret, &mut bytes).ok()?;
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Bytes of hexadecimal digits in capitals or not.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.trim().as_bytes();
    let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

/// Bytes that differ from time to time, which is enough for a test.
fn random<const N: usize>() -> [u8; N] {
    let state = RandomState::new();
    std::array::from_fn(|at| state.hash_one(at) as u8)
}
