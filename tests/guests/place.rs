//! Where images and kernels are kept, and how other programs are run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

/// Everything that guests need and leave: `target/guests`, which `make clean-guests` removes.
pub fn place() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    let target = program.ancestors().nth(3).expect("test programs lie in target/debug/deps");
    target.join("guests")
}

/// What is in the folder `tests/guests/guest`.
pub fn of_the_guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/guest").join(name)
}

/// Waits until no other process prepares or uses what is kept.
pub fn lock() -> io::Result<File> {
    fs::create_dir_all(place())?;
    let file = File::create(place().join("lock"))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

/// What the command printed. An error has the command and what it said.
pub fn output(command: &mut Command) -> Result<String, String> {
    // Tools of administrators are not on every user's path.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let done = command.env("PATH", path).output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = crate::judge::last_lines(&said, 20);
    Err(format!("{command:?} ended with {}\n{said}", done.status))
}

/// Whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A name for what is made of these texts alone.
pub fn key(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Makes `made` by `make`, which gets another path: what is at `made` is always whole.
pub fn whole(made: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let part = made.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    let _ = fs::remove_file(&part);
    make(&part)?;
    fs::rename(&part, made).map_err(|error| format!("{}: {error}", made.display()))
}
