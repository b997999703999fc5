//! What surrounds a step: pauses, scripts, and what the kernel has cached.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::Interrupt;
use crate::cli::exit::Failure;
use model::units::Nanos;

/// Writing to it makes the kernel forget what it has cached of files.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Page cache, and directory entries and inodes.
const EVERYTHING: &str = "3\n";
/// How often it is looked whether a script or a pause is over, or an end was asked for.
const LOOK_AROUND: Duration = Duration::from_millis(50);

/// Whether the kernel can be made to forget. Changes nothing.
pub(super) fn check_drop_caches() -> Result<(), Failure> {
    files::kernel::judge(Path::new(DROP_CACHES)).map_err(|error| no_drop(&error))
}

/// Writes what is only in memory to storage, and makes the kernel forget what it has cached.
pub(super) fn drop_caches() -> Result<(), Failure> {
    rustix::fs::sync();
    files::kernel::set(Path::new(DROP_CACHES), EVERYTHING).map_err(|error| no_drop(&error))
}

fn no_drop(error: &std::io::Error) -> Failure {
    let failure = Failure::new(format_args!("`drop_caches` cannot be done here: `{DROP_CACHES}`: {error}"));
    let hint = "run it as root, or leave that to a script: `before = \"sudo sysctl vm.drop_caches=3\"`";
    failure.with_hint(hint.to_owned())
}

/// Waits, unless an end is asked for. `show` hears again and again how much is left.
pub(super) fn pause(time: Nanos, interrupt: &Interrupt, show: &mut dyn FnMut(Nanos)) {
    let begun = Instant::now();
    while begun.elapsed() < time.as_duration() && !interrupt.stop().is_asked() {
        let left = time.as_duration().saturating_sub(begun.elapsed());
        show(Nanos::from(left));
        std::thread::sleep(left.min(LOOK_AROUND));
    }
}

/// Runs a shell script to its end, or ends it when an end is asked for. What it prints goes to standard error, since standard output is
/// the report's.
pub(super) fn script(script: &str, variables: &[(&str, &OsStr)], interrupt: &Interrupt) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::new(format_args!("script `{script}`: {error}"));
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).stdin(Stdio::null()).stdout(std::io::stderr()).envs(variables.iter().copied());
    let mut shell = shell.spawn().map_err(cannot)?;
    loop {
        if let Some(status) = shell.try_wait().map_err(cannot)? {
            return if status.success() {
                Ok(())
            } else {
                Err(Failure::new(format_args!("script `{script}` ended with {status}")))
            };
        }
        if interrupt.stop().is_asked() {
            // It may have ended by the same Ctrl-C meanwhile.
            let _ = shell.kill();
            let _ = shell.wait();
            return Ok(());
        }
        std::thread::sleep(LOOK_AROUND);
    }
}
