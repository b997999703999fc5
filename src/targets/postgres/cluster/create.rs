//! Making a cluster: initdb.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::super::error::PostgresError;
use super::ROLE;
use super::binaries::Binaries;
use super::files::{self, Files, file_error, private_directory};
use super::lock::Hold;
use super::owner::Owner;
use super::refusals::program_hint;
use crate::targets::TargetError;

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
    files::remove(&data)?;
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
            files::remove(&data)?;
            let hint = program_hint(&reason);
            Err(PostgresError::Program { program, reason, hint }.into())
        }
        Err(error) => {
            files::remove(&data)?;
            Err(error)
        }
    }
}

/// Gives what it said if it failed.
fn await_end(child: &mut Child, program: &Path, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
    let status = loop {
        if let Some(status) = child.try_wait().map_err(file_error("wait for", program))? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            // It ends its own children, and so nothing writes to the directory afterwards.
            let _ = kill_process(Pid::from_child(child), Signal::INT);
            child.wait().map_err(file_error("wait for", program))?;
            return Err(TargetError::Interrupted);
        }
        thread::sleep(Duration::from_millis(10));
    };
    if status.success() {
        return Ok(None);
    }
    let mut text = Vec::new();
    if let Some(mut said) = child.stderr.take() {
        said.read_to_end(&mut text).map_err(file_error("read from", program))?;
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(Some(if lines.is_empty() { status.to_string() } else { lines.join(" | ") }))
}
