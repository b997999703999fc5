//! Commands of the user's, which act on the machine while a load goes on.

use std::os::unix::process::CommandExt as _;
use std::process::{Child as Process, Command as Shell, Stdio};

use super::exit::Failure;
use model::shown::shown;

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
