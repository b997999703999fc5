//! Making a cluster: initdb.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use super::binaries::Binaries;
use super::{ROLE, program_hint};
use crate::targets::TargetError;
use crate::targets::sql::private::{
    Files, Hold, Owner, PrivateError, await_end, file_error, private_directory, remove,
};

/// What initdb is reported besides role and directory. Only the socket lets anybody in, and only the server's user and root
/// reach that. Text compares by bytes, everywhere the same. Checksums find pages that storage has torn or changed; version
/// 18 has them by default too. The files are synced at the end, for the cluster stays.
const OPTIONS: [&str; 5] =
    ["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"];

/// Makes the cluster in a directory that is ours alone. One that was begun and never finished is started over.
///
/// # Errors
/// What initdb says, or [`TargetError::Interrupted`]; then nothing of it is left.
pub(super) fn initialize(
    files: &Files,
    owner: &Owner,
    binaries: &Binaries,
    hold: &Hold,
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    files.mark(binaries.version.to_string())?;
    let data = files.unfinished_data();
    remove(&data)?;
    private_directory(&data, owner)?;
    let program = binaries.program("initdb");
    let mut command = owner.command(&program);
    command
        .args(OPTIONS)
        .arg(format!("--username={ROLE}"))
        .arg("--pgdata")
        .arg(&data)
        // initdb reads nothing. Should we be killed, the directory stays locked until it has ended.
        .stdin(hold.share()?)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C reaches it through us.
        .process_group(0);
    let mut child = command.spawn().map_err(file_error("run", &program))?;
    let said = await_end(&mut child, &program, stop);
    match said {
        Ok(None) => Ok(files.finish_data()?),
        Ok(Some(reason)) => {
            remove(&data)?;
            let hint = program_hint(&reason);
            Err(PrivateError::Program { program, reason, hint }.into())
        }
        Err(error) => {
            remove(&data)?;
            Err(error)
        }
    }
}
