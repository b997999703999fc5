//! Files that the driver reads before it connects. They are looked at first: the driver waits for a pipe without end, names no file
//! that is damaged, and its words for one are those for a server that speaks nonsense.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rustls::RootCertStore;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{Error as PemError, PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::Error;

/// How a private key begins that no password protects.
const PLAIN_KEY: &str = "-----BEGIN PRIVATE KEY-----";
/// How one begins that a password protects. The driver opens it.
const PROTECTED_KEY: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// Looks whether there is a `tnsnames.ora` in `directory` that can be read.
///
/// # Errors
/// [`Error::Names`], with what is in the way.
pub(super) fn look_at_names(directory: &str) -> Result<(), Error> {
    let file = Path::new(directory).join("tnsnames.ora");
    text_of(&file).map(drop).map_err(|why| Error::Names { file: file.display().to_string(), why })
}

/// Looks whether `ewallet.pem` in `directory` is whole, as far as that can be seen without its password.
///
/// # Errors
/// [`Error::Wallet`], with what is wrong.
pub(super) fn look_at_wallet(directory: &Path) -> Result<(), Error> {
    let file = directory.join("ewallet.pem");
    text_of(&file).and_then(|text| whole(&text)).map_err(|why| Error::Wallet { file: file.display().to_string(), why })
}

fn text_of(file: &Path) -> Result<String, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    fs::read_to_string(file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => "it is not text".to_owned(),
        _ => error.to_string(),
    })
}

/// Says what is wrong with the text of a wallet, if anything is.
fn whole(text: &str) -> Result<(), String> {
    let mut certificates = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
        match section {
            Ok((SectionKind::Certificate, bytes)) => certificates.push(CertificateDer::from(bytes)),
            Ok(_) => {}
            Err(PemError::MissingSectionEnd { .. }) => return Err("it ends in the middle of a section".to_owned()),
            Err(_) => return Err("a section in it is damaged".to_owned()),
        }
    }
    if certificates.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    if text.contains(PLAIN_KEY) {
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok();
        return match key.and_then(|key| any_supported_type(&key).ok()) {
            Some(_) => Ok(()),
            None => Err("the private key in it is damaged".to_owned()),
        };
    }
    // Beside a key they are the client's own, which the driver takes as they are.
    let are_read = text.contains(PROTECTED_KEY)
        || certificates.into_iter().all(|certificate| RootCertStore::empty().add(certificate).is_ok());
    if are_read { Ok(()) } else { Err("a certificate in it is damaged".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_wallet_is_said() {
        let section = |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        let garbage = section("CERTIFICATE", "AAECAwQFBgcICQ==");
        for (text, says) in [
            (String::new(), "no certificate"),
            ("\0".repeat(5000), "no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAEC".to_owned(), "in the middle"),
            (section("CERTIFICATE", "!!!!"), "section in it is damaged"),
            (garbage.clone(), "a certificate in it is damaged"),
            (garbage.clone() + &section("PRIVATE KEY", "AAECAwQFBgcICQ=="), "private key in it is damaged"),
        ] {
            let why = whole(&text).unwrap_err();
            assert!(why.contains(says), "{says}: {why}");
        }
        assert_eq!(whole(&(garbage + &section("ENCRYPTED PRIVATE KEY", "AAECAwQFBgcICQ=="))), Ok(()));
    }
}
