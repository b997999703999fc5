//! Files that an address leads to and that are not what they should be: whoever reads the error learns which, and no server is blamed.

use std::fs;
use std::path::Path;

use crate::place::Answer;
use crate::responder::Generation;
use crate::whole::{PASSWORD, Site};

/// Puts something in the place of a file.
type Put<'a> = &'a dyn Fn(&Path);

/// Looks at the data with `address`, names being looked up in the place's `tns`.
fn info(site: &Site, address: &str) -> Answer {
    let mut command = site.place.plimsoll(&["slob", "info", "--target", address]);
    command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).env("TNS_ADMIN", site.place.path("tns"));
    Answer::from(command.output().unwrap())
}

/// Checks that the command was refused with these words and nobody was connected to.
fn refused(site: &Site, address: &str, says: &[&str]) {
    let answer = info(site, address);
    assert_eq!(answer.code, Some(2), "{address}\n{answer}");
    for part in says {
        assert!(answer.stderr.contains(part), "`{part}` is not in:\n{answer}");
    }
    for part in ["what answered", "listener", "panicked", "PORT="] {
        assert!(!answer.stderr.replace(address, "").contains(part), "`{part}` is in:\n{answer}");
    }
    assert!(site.responder.sessions().is_empty(), "{address}");
}

/// Puts a pipe there, which whoever reads from it waits for.
fn pipe(file: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
}

#[test]
fn a_damaged_file_of_names_is_named() {
    let site = Site::new(Generation::V19);
    let folder = site.place.path("tns");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("tnsnames.ora");
    let address = "oracle://slob@PROD?connect-timeout=2";
    let shown = file.display().to_string();
    let entry = site.responder.descriptor("orcl");
    let cut = format!("PROD={}\n", &entry[..entry.len() - 2]);
    let port = entry.replace(&site.responder.port().to_string(), "x1521");
    let puts: [(Put<'_>, &str); 4] = [
        (&|_| {}, "No such file"),
        (&|file| fs::create_dir(file).unwrap(), "not a plain file"),
        (&pipe, "not a plain file"),
        (&|file| fs::write(file, [0xff, 0xfe, 0, 7]).unwrap(), "not text"),
    ];
    for (put, says) in puts {
        put(&file);
        refused(&site, address, &["`PROD`", &shown, says, "hint: ", "TNS_ADMIN"]);
        let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
    }
    for (text, says) in [
        (cut, "descriptor"),
        ("PROD=PROD\n".to_owned(), "descriptor"),
        (format!("PROD={port}\n"), "descriptor"),
        (format!("IFILE={shown}\n"), "includes itself"),
        (format!("OTHER={entry}"), "there is no `PROD`"),
        (format!("PROD={}", &entry[..entry.len() - 2]), "all brackets"),
        (format!("{}PROD={entry}", "(".repeat(1 << 20)), "there is no `PROD`"),
    ] {
        fs::write(&file, text).unwrap();
        refused(&site, address, &["`PROD`", says, "hint: ", "oracle://USER@HOST:PORT/SERVICE"]);
    }
    // The driver overlooks an entry that no newline ends.
    fs::write(&file, format!("PROD={entry}")).unwrap();
    refused(&site, address, &["there is no `PROD`", "a newline ends its last line"]);
    fs::write(&file, format!("PROD={entry}\n")).unwrap();
    assert!(info(&site, address).stderr.contains("no SLOB data"));
}

#[test]
fn a_damaged_descriptor_is_the_address_fault() {
    let site = Site::new(Generation::V19);
    fs::create_dir(site.place.path("tns")).unwrap();
    for place in ["(garbage)", "(DESCRIPTION=)", "(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=orcl)))"] {
        refused(&site, &format!("oracle://slob@{place}"), &["descriptor cannot be understood", "hint: correct it"]);
    }
}

#[test]
fn a_damaged_wallet_is_named_before_anybody_is_connected_to() {
    let site = Site::new(Generation::V19);
    let folder = site.place.path("wallet");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("ewallet.pem");
    let (port, shown) = (site.responder.port(), file.display().to_string());
    let address =
        format!("oracle://slob@127.0.0.1:{port}/orcl?connect-timeout=2&protocol=tcps&wallet={}", folder.display());
    let puts: [(Put<'_>, &str); 7] = [
        (&|_| {}, "No such file"),
        (&|file| fs::write(file, "").unwrap(), "no certificate"),
        (&|file| fs::write(file, "-----BEGIN CERTIFICATE-----\nAAEC\n").unwrap(), "in the middle"),
        (&|file| fs::write(file, [&b"-----BEGIN CERTIFICATE-----\n"[..], &[0xff; 99]].concat()).unwrap(), "not text"),
        (&|file| fs::create_dir(file).unwrap(), "not a plain file"),
        (&pipe, "not a plain file"),
        (&|file| fs::write(file, "-----BEGIN PRIVATE KEY-----\n").unwrap(), "chmod 600"),
    ];
    for (put, says) in puts {
        put(&file);
        refused(&site, &address, &[&shown, says, "hint: ", "wallet=DIR"]);
        let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
    }
}
