//! Encrypted connections, and the wallets that they need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::place::Place;
use crate::responder::{GENERATIONS, Generation, tcps::Tcps};
use crate::skip::skip;
use crate::whole::Site;

/// What is needed to make certificates.
const OPENSSL: &str = "[req]\ndistinguished_name = name\nx509_extensions = leaf\nprompt = no\n[name]\nCN = db1\n\
                       [leaf]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = IP:127.0.0.1\n";
/// The password of a wallet, which must be printed nowhere either.
const WALLET_PASSWORD: &str = "a key for the tiger";

/// A certificate of its own authority with its key, in a directory.
struct Certificate(PathBuf);

impl Certificate {
    /// `None`, and said, where there is no `openssl`.
    fn new(place: &Place, name: &str) -> Option<Self> {
        let folder = place.path(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("openssl.cnf"), OPENSSL).unwrap();
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config openssl.cnf -days 2 -keyout key.pem -out \
                     certificate.pem";
        let made = Command::new("openssl").args(words.split_whitespace()).current_dir(&folder).output();
        match made {
            Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
            Err(error) => {
                skip(format!("no certificates can be made without openssl: {error}"));
                return None;
            }
        }
        Some(Self(folder))
    }

    /// The directory of a wallet with these files in it.
    fn wallet(&self, name: &str, files: &[&str]) -> String {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).unwrap();
        let parts: Vec<String> = files.iter().map(|file| fs::read_to_string(self.0.join(file)).unwrap()).collect();
        let file = folder.join("ewallet.pem");
        fs::write(&file, parts.concat()).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        folder.display().to_string()
    }

    /// The key as a wallet of SQL*Net keeps it: encrypted with the wallet's password.
    fn encrypt_key(&self) {
        let password = format!("pass:{WALLET_PASSWORD}");
        let words = ["pkcs8", "-topk8", "-in", "key.pem", "-out", "encrypted.pem", "-passout", &password];
        let made = Command::new("openssl").args(words).current_dir(&self.0).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn before(&self, site: &Site) -> Tcps {
        Tcps::start(site.responder.address(), &self.0.join("certificate.pem"), &self.0.join("key.pem"))
    }
}

/// The address of a listener, with what follows the `?`.
fn address(port: u16, more: &str) -> String {
    format!("oracle://slob@127.0.0.1:{port}/orcl?connect-timeout=20&{more}")
}

#[test]
fn a_wallet_that_trusts_the_server_is_all_that_tcps_needs() {
    for generation in GENERATIONS {
        let site = Site::new(generation);
        let Some(certificate) = Certificate::new(&site.place, "db1") else { return };
        let tcps = certificate.before(&site);
        let wallet = certificate.wallet("wallet", &["certificate.pem"]);
        let address = address(tcps.port(), &format!("protocol=tcps&wallet={wallet}"));
        let done = |words: &[&str]| {
            let answer = site.run_at(&address, words);
            assert_eq!(answer.code, Some(0), "{words:?}\n{answer}");
            answer
        };
        done(&["slob", "setup", "-s", "2", "SCALE=300", "--quiet"]);
        for send in ["statement", "batch"] {
            let load = ["slob", "run", "--send", send, "-t", "3", "UPDATE_PCT=20", "WORK_LOOP=10"];
            let words = [&load[..], &["--warmup", "1s", "--json"]].concat();
            assert_eq!(done(&words).json()["run"]["outcome"], "completed");
        }
        assert!(done(&["slob", "verify"]).stdout.contains("sound"));
        let sessions = site.responder.sessions();
        let is_encrypted = |descriptor: &str| descriptor.to_ascii_uppercase().contains("PROTOCOL=TCPS");
        assert!(sessions.len() > 6 && sessions.iter().all(|session| is_encrypted(&session.descriptor)));
    }
}

#[test]
fn who_cannot_be_trusted_or_does_not_encrypt_is_refused_with_the_reason() {
    let site = Site::new(Generation::V19);
    let Some(certificate) = Certificate::new(&site.place, "db1") else { return };
    let Some(other) = Certificate::new(&site.place, "other") else { return };
    certificate.encrypt_key();
    let tcps = certificate.before(&site);
    let good = certificate.wallet("wallet", &["certificate.pem"]);
    let wrong = other.wallet("wallet", &["certificate.pem"]);
    let locked = certificate.wallet("locked", &["certificate.pem", "encrypted.pem"]);
    let nothing = site.place.path("nowhere").display().to_string();
    let (encrypted, plain) = (tcps.port(), site.responder.port());
    let with = |wallet: &str| format!("protocol=tcps&wallet={wallet}");
    for (address, says, hint) in [
        (address(encrypted, &with(&wrong)), "invalid peer certificate", "wallet=DIR"),
        (address(encrypted, "protocol=tcps"), "UnknownIssuer", "wallet=DIR"),
        (address(encrypted, &with(&good)).replace("127.0.0.1", "localhost"), "not valid for name", "certificate names"),
        (address(encrypted, &with(&locked)), "is missing or wrong", "PLIMSOLL_ORACLE_WALLET_PASSWORD"),
        (address(encrypted, &with(&nothing)), "No such file", "ewallet.pem"),
        // The listener waits for the rest of what looks like a long packet.
        (address(plain, &with(&good)), "does not answer", "TCPS has a port of its own"),
        (address(encrypted, "protocol=tcp"), "127.0.0.1", "protocol=tcps"),
    ] {
        let answer = site.run_at(&address, &["slob", "info"]);
        assert_eq!(answer.code, Some(2), "{address}\n{answer}");
        assert!(answer.stderr.contains(says) && answer.stderr.contains(hint), "{address}\n{answer}");
        assert!(!answer.stderr.contains("panicked"), "{address}\n{answer}");
    }
    assert!(site.responder.sessions().iter().all(|session| session.user.is_empty()), "nobody has logged on");
}

/// The driver takes the certificates beside a key for those of the client alone: then it trusts the public authorities and no others.
#[test]
fn a_wallet_with_a_key_is_opened_by_its_password_and_trusts_public_authorities_alone() {
    let site = Site::new(Generation::V23);
    let Some(certificate) = Certificate::new(&site.place, "db1") else { return };
    certificate.encrypt_key();
    let tcps = certificate.before(&site);
    let locked = certificate.wallet("locked", &["certificate.pem", "encrypted.pem"]);
    let address = address(tcps.port(), &format!("protocol=tcps&wallet={locked}"));
    for (password, says) in [(WALLET_PASSWORD, "UnknownIssuer"), ("something else", "is missing or wrong")] {
        let mut command = site.place.plimsoll(&["slob", "info", "--target", &address]);
        command.env("PLIMSOLL_ORACLE_PASSWORD", "x").env("PLIMSOLL_ORACLE_WALLET_PASSWORD", password);
        let answer = crate::place::Answer::from(command.output().unwrap());
        assert!(answer.code == Some(2) && answer.stderr.contains(says), "{answer}");
        assert!(!answer.to_string().contains(password), "{answer}");
    }
}
