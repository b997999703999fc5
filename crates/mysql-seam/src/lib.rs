//! MySQL's protocol as `mysql_async` uses it, but for three things in which that library believes whatever a server says. It uses this
//! crate in the place of `mysql_common`, all else of which passes through.
//!
//! - A password is encrypted under a public key that the server itself has just sent: [`crypto`].
//! - Room is made for as many columns as the server announces: [`io`].
//! - An answer may be of any length: [`proto::codec`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

pub use protocol::*;

/// Encryption of passwords, under keys that are trusted.
pub mod crypto {
    use std::cell::RefCell;
    use std::panic::resume_unwind;
    use std::sync::Arc;

    pub use protocol::crypto::{der, rsa};

    /// Under which public key a password may go over a connection that is not encrypted.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub enum ServerKey {
        /// Under none: whoever is on the way could have sent his own.
        #[default]
        Untrusted,
        /// Under the one that the server sends.
        AsSent,
        /// Under this one, in PEM.
        Known(Arc<[u8]>),
    }

    impl ServerKey {
        /// The key in `pem`; none where it holds no public key of RSA that is long enough for a password.
        pub fn known(pem: &[u8]) -> Option<Self> {
            /// The longest password of MySQL's, with the byte that ends it and what is filled up.
            const LEAST_BITS: u64 = 1024;
            // The reader of keys has no other way to say that it found none.
            let key = super::quietly(|| rsa::PublicKey::from_pem(pem)).ok()?;
            (key.modulus().bits() >= LEAST_BITS).then(|| Self::Known(Arc::from(pem)))
        }
    }

    /// A connection that is not encrypted has asked for the password under a key that is not trusted. It is what
    /// [`trusting`] unwinds with: the library has no way to refuse.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Untrusted;

    /// The password does not fit into what one encryption under the server's key takes. It is unwound with as [`Untrusted`] is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct TooLong;

    /// Bytes of a block that OAEP with SHA-1 takes for itself (RFC 8017, 7.1.1).
    const PADDING_BYTES: usize = 42;

    thread_local! {
        static TRUSTED: RefCell<ServerKey> = const { RefCell::new(ServerKey::Untrusted) };
    }

    /// Does a piece of work of a connection that trusts `key`.
    ///
    /// # Panics
    /// Unwinds with [`Untrusted`], without a word on the screen, where the password would have to go under another key.
    pub fn trusting<T>(key: &ServerKey, work: impl FnOnce() -> T) -> T {
        struct Before(ServerKey);
        impl Drop for Before {
            fn drop(&mut self) {
                TRUSTED.set(std::mem::take(&mut self.0));
            }
        }
        let _before = Before(TRUSTED.replace(key.clone()));
        work()
    }

    /// The password `pass` under a public key; `key` is the one that the server sent.
    ///
    /// # Panics
    /// Unwinds with [`Untrusted`] outside of [`trusting`] and where that trusts no key, with [`TooLong`] where the password is longer
    /// than the key allows, and panics where a key is none.
    pub fn encrypt(pass: &[u8], key: &[u8]) -> Vec<u8> {
        let known = TRUSTED.with_borrow(Clone::clone);
        let key = match &known {
            ServerKey::Untrusted => resume_unwind(Box::new(Untrusted)),
            ServerKey::AsSent => key,
            ServerKey::Known(known) => known,
        };
        if pass.len() + PADDING_BYTES > rsa::PublicKey::from_pem(key).num_octets() {
            resume_unwind(Box::new(TooLong));
        }
        protocol::crypto::encrypt(pass, key)
    }
}

/// Reading what came.
pub mod io {
    use std::io::{self, ErrorKind};

    pub use protocol::io::*;

    /// As many columns as a table of MySQL has at most.
    const MAX_COLUMNS: u64 = 4096;

    /// What the library reads answers with.
    pub trait ReadMysqlExt: protocol::io::ReadMysqlExt {
        /// How many columns an answer has: the only number that the library reads so.
        ///
        /// # Errors
        /// When there is no number, or more than 4,096 are announced.
        fn read_lenenc_int(&mut self) -> io::Result<u64> {
            let columns = protocol::io::ReadMysqlExt::read_lenenc_int(self)?;
            if columns > MAX_COLUMNS {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    format!("an answer of {columns} columns was announced"),
                ));
            }
            Ok(columns)
        }
    }

    impl<T: protocol::io::ReadMysqlExt> ReadMysqlExt for T {}
}

/// Packets.
pub mod proto {
    pub use protocol::proto::*;

    /// Packets as they are sent and come.
    pub mod codec {
        use std::io::ErrorKind;
        use std::ops::{Deref, DerefMut};

        use bytes::{Buf, BytesMut};
        use protocol::proto::codec::PacketCodec as Unlimited;
        use protocol::proto::codec::error::PacketCodecError;

        pub use protocol::proto::codec::*;

        /// Longest answer to a statement: what is asked of a server is a thousandth of that.
        const MAX_ANSWER_BYTES: usize = 64 << 20;

        /// Encodes and decodes packets, and counts what comes until something is sent.
        #[derive(Debug, Default)]
        pub struct PacketCodec {
            unlimited: Unlimited,
            came_bytes: usize,
        }

        impl PacketCodec {
            /// Takes a packet out of `src`; says whether it was whole.
            ///
            /// # Errors
            /// As the codec that does it, and when more than 64 MiB came in answer to what was sent last.
            pub fn decode<T>(&mut self, src: &mut BytesMut, dst: &mut T) -> Result<bool, PacketCodecError>
            where
                T: bytes::BufMut + AsRef<[u8]>,
            {
                let before = src.len();
                let decoded = self.unlimited.decode(src, dst)?;
                self.came_bytes += before - src.len();
                if self.came_bytes > MAX_ANSWER_BYTES {
                    return Err(PacketCodecError::PacketTooLarge);
                }
                // The library looks at the first byte of each.
                if decoded && dst.as_ref().is_empty() {
                    return Err(std::io::Error::new(ErrorKind::InvalidData, "a packet without content came").into());
                }
                Ok(decoded)
            }

            /// Lays `src` out as packets in `dst`.
            ///
            /// # Errors
            /// As the codec that does it.
            pub fn encode<T: Buf>(&mut self, src: &mut T, dst: &mut BytesMut) -> Result<(), PacketCodecError> {
                self.came_bytes = 0;
                self.unlimited.encode(src, dst)
            }
        }

        impl Deref for PacketCodec {
            type Target = Unlimited;

            fn deref(&self) -> &Unlimited {
                &self.unlimited
            }
        }

        impl DerefMut for PacketCodec {
            fn deref_mut(&mut self) -> &mut Unlimited {
                &mut self.unlimited
            }
        }
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does a piece of work of the library, or says how it gave up, without a word on the screen.
///
/// # Errors
/// With what it unwound with.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if !IS_QUIET.get() {
                usual(panicked);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    // What was in the middle of something is dropped by whoever hears of it.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    done
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use bytes::BytesMut;

    use super::crypto::{ServerKey, TooLong, Untrusted, encrypt, trusting};
    use super::io::ReadMysqlExt as _;
    use super::proto::codec::PacketCodec;

    /// A public key of 1,024 bits whose private one is lost.
    const KEY: &[u8] = include_bytes!("key.pem");

    #[test]
    fn a_password_goes_under_no_key_that_is_not_trusted() {
        let under = |key: &ServerKey, sent: &'static [u8]| {
            let key = key.clone();
            catch_unwind(move || trusting(&key, || encrypt(b"tiger\0", sent)))
        };
        for sent in [KEY, b"no key"] {
            let refused = under(&ServerKey::Untrusted, sent).unwrap_err();
            assert!(refused.is::<Untrusted>());
        }
        assert_eq!(under(&ServerKey::AsSent, KEY).unwrap().len(), 128);
        let known = ServerKey::Known(Arc::from(KEY));
        assert_eq!(under(&known, b"a key of somebody else").unwrap().len(), 128);
        assert_eq!(ServerKey::known(KEY), Some(known));
        assert!(catch_unwind(|| encrypt(b"tiger\0", KEY)).unwrap_err().is::<Untrusted>(), "trust ends with its work");
    }

    #[test]
    fn a_password_that_is_too_long_for_its_key_is_said_to_be() {
        let under = |bytes: usize| catch_unwind(|| trusting(&ServerKey::AsSent, || encrypt(&vec![b'x'; bytes], KEY)));
        assert_eq!(under(86).unwrap().len(), 128);
        assert!(under(87).unwrap_err().is::<TooLong>());
    }

    #[test]
    fn no_room_is_made_for_more_columns_than_a_table_has() {
        let columns = |mut bytes: &[u8]| bytes.read_lenenc_int();
        assert_eq!(columns(&[0xfc, 0x00, 0x10]).unwrap(), 4096);
        assert!(columns(&[0xfc, 0x01, 0x10]).is_err());
        assert!(columns(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }

    #[test]
    fn an_answer_ends_and_a_question_begins_another() {
        let mut codec = PacketCodec::default();
        codec.max_allowed_packet = 1 << 24;
        let mut packet = vec![0, 0, 0x80, 0];
        packet.resize(4 + (8 << 20), b'x');
        let decode = |codec: &mut PacketCodec| {
            codec.sync_seq_id();
            codec.reset_seq_id();
            codec.decode(&mut BytesMut::from(&packet[..]), &mut Vec::new())
        };
        for question in 0..2 {
            for number in 0..7 {
                assert!(decode(&mut codec).unwrap(), "{question}: {number}");
            }
            if question == 0 {
                codec.encode(&mut &b"next"[..], &mut BytesMut::new()).unwrap();
            }
        }
        assert!(decode(&mut codec).is_err());
        assert!(PacketCodec::default().decode(&mut BytesMut::from(&[0; 4][..]), &mut Vec::new()).is_err());
    }
}
