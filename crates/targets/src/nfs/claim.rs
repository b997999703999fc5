//! Who uses a file: a file beside it that whoever writes creates and removes again. The server's locks would want another protocol
//! (NLM) and a daemon; this is advice, and only for this program's runs.

use std::sync::Arc;

use super::error::NfsError;
use super::file::NfsFile;
use super::mount::NfsMount;
use crate::io::{Durability, VirtualFile};

/// What the claim's name ends in.
pub(super) const SUFFIX: &str = ".plimsoll-claim";
/// What is read of another claim at most, in bytes.
const MAX_HOLDER_BYTES: u64 = 200;

/// That this process uses a file, until it is dropped.
#[derive(Debug)]
pub struct NfsClaim {
    mount: Arc<NfsMount>,
    path: String,
}

impl NfsClaim {
    /// Claims the file at `path` for `holder`, one line that says who that is.
    ///
    /// # Errors
    /// [`NfsError::Claimed`] with what the other one says of itself, and the server's answer.
    pub fn take(mount: &Arc<NfsMount>, path: &str, holder: &str) -> Result<Self, NfsError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let claim = format!("{directory}/.{name}{SUFFIX}");
        let file = match NfsFile::create(mount, &claim, Durability::EachWrite) {
            Ok(file) => file,
            Err(error) if error.is_already_there() => {
                let holder = holder_of(mount, &claim).unwrap_or_else(|| "nothing of who".to_owned());
                return Err(NfsError::Claimed { name: path.to_owned(), claim, holder });
            }
            Err(error) => return Err(error),
        };
        let taken = Self { mount: Arc::clone(mount), path: claim };
        // A claim that says nothing is one all the same.
        let _ = file.write_all_at(holder.as_bytes(), 0);
        Ok(taken)
    }

    /// Path of the claim's file.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for NfsClaim {
    fn drop(&mut self) {
        // Whoever finds it later is told what to do.
        let _ = self.mount.remove(&self.path);
    }
}

/// What another claim says, as far as it is printable.
fn holder_of(mount: &Arc<NfsMount>, claim: &str) -> Option<String> {
    let file = NfsFile::open(mount, claim, Durability::OnSync).ok()?;
    let mut said = vec![0; file.length().ok()?.min(MAX_HOLDER_BYTES) as usize];
    file.read_exact_at(&mut said, 0).ok()?;
    let said: String = String::from_utf8_lossy(&said).chars().filter(|sign| !sign.is_control()).collect();
    (!said.is_empty()).then(|| format!("`{said}`"))
}
