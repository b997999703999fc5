//! Programs of a server that run to their end, and servers that become ready.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::PrivateError;
use super::files::{Files, file_error};
use super::process::is_alive;
use targets::TargetError;

/// How often a server that starts is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a wait is reported.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Lines of a server's log that an error repeats.
const LOG_LINES: usize = 4;

/// Waits until a program ends, and gives what it said if it failed.
///
/// # Errors
/// The system's error, or [`TargetError::Interrupted`].
pub(crate) fn await_end(child: &mut Child, program: &Path, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
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

/// Waits until `is_ready` says that a server, process `pid`, takes connections; `program_hint` knows what to do about what it
/// says when it ends instead. Its log since it was started begins at `log_offset`.
///
/// # Errors
/// When it ended, with what it said, or [`TargetError::Interrupted`].
pub(crate) fn await_ready(
    files: &Files,
    log_offset: u64,
    (program, pid): (&Path, u32),
    is_ready: impl Fn() -> Result<bool, PrivateError>,
    program_hint: impl Fn(&str) -> Option<String>,
    notify: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    let mut reported_at = Instant::now();
    loop {
        // The server may have ended between two looks: what it wrote before counts then.
        let alive = is_alive(pid);
        if is_ready()? {
            return Ok(());
        }
        if !alive {
            let reason = log_or(files, log_offset, "the server ended and said nothing");
            let hint = program_hint(&reason);
            return Err(PrivateError::Program { program: program.to_owned(), reason, hint }.into());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(TargetError::Interrupted);
        }
        if reported_at.elapsed() >= TELL_EVERY {
            // Recovery after a crash may take minutes, and the log says how far it is.
            notify(&format!(
                "waiting for the server: {}",
                log_tail_or(files, log_offset, 1, "it has said nothing yet")
            ));
            reported_at = Instant::now();
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The last words of a server's log behind `offset`.
pub(crate) fn log_or(files: &Files, offset: u64, otherwise: &str) -> String {
    log_tail_or(files, offset, LOG_LINES, otherwise)
}

fn log_tail_or(files: &Files, offset: u64, lines: usize, otherwise: &str) -> String {
    let tail = files.log_tail(offset, lines);
    if tail.is_empty() { otherwise.to_owned() } else { tail }
}
