//! Commands of the user's, which act on the machine while a load goes on.

use std::os::unix::process::CommandExt as _;
use std::process::{Child as Process, Command as Shell, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::exit::Failure;
use model::shown::shown;

/// How long a command may take to end when it is told to.
const ENDS_IN: Duration = Duration::from_secs(2);
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// A command of the user's, out of reach of a Ctrl-C that ends the load, and of a reader of its output that has gone.
pub(in crate::cli) fn shell(command: &str, stdin: Stdio) -> Result<Process, Failure> {
    let mut shell = Shell::new("sh");
    shell.arg("-c").arg(format!("trap '' PIPE\n{command}")).process_group(0);
    shell.stdin(stdin).stdout(std::io::stderr());
    shell.spawn().map_err(|error| Failure::new(format_args!("`{}`: {error}", shown(command))))
}

/// Whether a command has ended just now, and well.
pub(in crate::cli) fn ended(process: &mut Option<Process>, command: Option<&str>) -> Result<bool, Failure> {
    let command = command.unwrap_or_default();
    let Some(running) = process else { return Ok(false) };
    let waited = running.try_wait().map_err(|error| Failure::new(format_args!("`{}`: {error}", shown(command))))?;
    let Some(status) = waited else { return Ok(false) };
    *process = None;
    if status.success() {
        return Ok(true);
    }
    let failure = Failure::new(format_args!("`{}` ended with {status}", shown(command)));
    Err(failure.with_hint("try it by hand first: what it does to the load is then known".to_owned()))
}

/// Ends a command with everything that it started.
pub(in crate::cli) fn end_group(process: Option<Process>) {
    let Some(mut process) = process else { return };
    let group = Pid::from_child(&process);
    for signal in [Signal::TERM, Signal::KILL] {
        // One that is gone takes no signal.
        let _ = kill_process_group(group, signal);
        let begun = Instant::now();
        while begun.elapsed() < ENDS_IN {
            if !matches!(process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_AROUND);
        }
    }
}
