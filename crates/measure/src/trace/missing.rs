//! What keeps this process from tracing, found before anything is started.

use std::io;
use std::path::PathBuf;

use super::{Process, TraceRequest};
use crate::os::{Resource, Root, limit};
use model::units::Bytes;

/// Why nothing can be traced. The message says what is missing; [`Self::hint`] what to do.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum NoTrace {
    /// The program that does the work is not there.
    #[error("kernel tracing needs `bpftrace`, which is not installed")]
    #[diagnostic(help("install the package `bpftrace`"))]
    NotInstalled,
    /// The rights are not enough.
    #[error("kernel tracing is not permitted: {lacking}")]
    #[diagnostic(help("run as root; in a container, with the capabilities SYS_ADMIN, BPF and PERFMON"))]
    NotPermitted {
        /// Which right is missing.
        lacking: String,
    },
    /// The kernel has no tracing at all, or hides it.
    #[error("this kernel offers no tracing: `/sys/kernel/tracing` is not there")]
    #[diagnostic(help("in a container, let `/sys` show the kernel's files; else use a kernel with CONFIG_FTRACE"))]
    NoTracing,
    /// The kernel does not describe its own data types, so files cannot be distinguished.
    #[error("this kernel does not describe its types: `/sys/kernel/btf/vmlinux` is not there")]
    #[diagnostic(help(
        "use a kernel with CONFIG_DEBUG_INFO_BTF, as distributions have since about 2020; devices can be traced without"
    ))]
    NoTypes,
    /// Processes have other numbers here than in the kernel, so another process would be traced.
    #[error("this process runs in a container with process numbers of its own, and tracing goes by the machine's")]
    #[diagnostic(help("run it on the machine itself (`docker run --pid=host`), or trace devices only"))]
    OtherNumbers,
    /// No such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// No such block device.
    #[error("there is no block device `{name}`")]
    #[diagnostic(help("`/proc/diskstats` and `lsblk` list the names"))]
    NoDevice {
        /// Its kernel name.
        name: String,
    },
    /// Neither a process nor a device.
    #[error("there is nothing to trace: neither a process nor a block device")]
    Nothing,
    /// The kernel refused memory for the sums.
    #[error("the kernel refused memory for tracing (limit of locked memory: {limit}): {said}")]
    #[diagnostic(help("raise the limit of locked memory: `ulimit -l unlimited`"))]
    LockedMemory {
        /// The limit in force.
        limit: String,
        /// What `bpftrace` said.
        said: String,
    },
    /// It did not come to work in time.
    #[error("`bpftrace` was not ready after {seconds} seconds")]
    #[diagnostic(help("try again when the machine has less to do"))]
    TooSlow {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It refused for another reason.
    #[error("`bpftrace` cannot trace here: {said}")]
    #[diagnostic(help(
        "try `bpftrace -e 'BEGIN {{ exit(); }}'` as the same user; kernel lockdown and missing tracepoints also end \
         here"
    ))]
    Refused {
        /// What it said.
        said: String,
    },
    /// It could not be started, or not be listened to.
    #[error("cannot start `bpftrace`: {0}")]
    Start(#[from] io::Error),
}

impl NoTrace {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }

    /// What `bpftrace` said when it gave up.
    pub(super) fn from_words(said: &str) -> Self {
        let said = essence(said);
        let has = |word: &str| said.to_lowercase().contains(word);
        if has("root user") {
            return Self::NotPermitted { lacking: "this version of `bpftrace` works for root only".to_owned() };
        }
        if has("map") && (has("not permitted") || has("cannot allocate memory")) {
            let limit = match limit(Resource::LockedMemory) {
                Some(u64::MAX) => "none".to_owned(),
                Some(bytes) => Bytes(bytes).to_string(),
                None => "not known".to_owned(),
            };
            return Self::LockedMemory { limit, said };
        }
        Self::Refused { said }
    }
}

/// Errors are kept, and only the lines that report something: `bpftrace` repeats the program below each.
fn essence(said: &str) -> String {
    // It warns that it could not raise the limit of locked memory, and works nevertheless.
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("set RLIMIT_MEMLOCK"));
    let errors: Vec<&str> = lines().filter(|line| line.contains("ERROR") || line.contains("FATAL")).collect();
    let message = if errors.is_empty() { lines().next_back().map(str::to_owned) } else { Some(errors.join("; ")) };
    message.unwrap_or_else(|| "it ended without a word".to_owned())
}

/// Looks for everything that is known to be needed.
pub(super) fn look(root: &Root, request: &TraceRequest) -> Result<(), NoTrace> {
    if on_path("bpftrace").is_none() {
        return Err(NoTrace::NotInstalled);
    }
    look_at_rights(root)?;
    if !root.exists("/sys/kernel/tracing") && !has_tracefs(root) {
        return Err(NoTrace::NoTracing);
    }
    let Some(pid) = request.process else { return Ok(()) };
    if !root.exists("/sys/kernel/btf/vmlinux") {
        return Err(NoTrace::NoTypes);
    }
    if numbers_are_foreign(root) {
        return Err(NoTrace::OtherNumbers);
    }
    Process::find(pid).map(drop).ok_or(NoTrace::NoProcess { pid })
}

/// The tracing file system is mounted.
pub(super) fn has_tracefs(root: &Root) -> bool {
    ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"].iter().any(|events| root.exists(events))
}

/// The first program of this name where programs are looked for.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// See capabilities(7).
fn look_at_rights(root: &Root) -> Result<(), NoTrace> {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    let status = root.text("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    // What is not reported is left to `bpftrace` to find out.
    let Some(held) = held.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) else { return Ok(()) };
    let has = |capability: u32| held >> capability & 1 == 1;
    if has(SYS_ADMIN) || (has(BPF) && has(PERFMON)) {
        return Ok(());
    }
    let lacking = "this process has neither the capability SYS_ADMIN nor both BPF and PERFMON";
    Err(NoTrace::NotPermitted { lacking: lacking.to_owned() })
}

/// Whether this process lives in another process-number namespace than the kernel's first, which has this fixed number
/// (`PROC_PID_INIT_INO` in the kernel's sources).
fn numbers_are_foreign(root: &Root) -> bool {
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link(root.path("/proc/self/ns/pid")).is_ok_and(|namespace| namespace.as_os_str() != FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn two_of_the_newer_capabilities_do_as_well_as_the_old_one() {
        for (mask, may) in
            [("0000000000200000", true), ("000000c000000000", true), ("0000008000000000", false), ("0", false)]
        {
            let (_directory, root) = root_with(&[("proc/self/status", &format!("Name:\tx\nCapEff:\t{mask}\n"))]);
            assert_eq!(look_at_rights(&root).is_ok(), may, "{mask}");
        }
    }

    #[test]
    fn other_process_numbers_are_noticed() {
        for (link, foreign) in [("pid:[4026531836]", false), ("pid:[4026532201]", true)] {
            let (directory, root) = root_with(&[("proc/self/ns/x", "")]);
            std::os::unix::fs::symlink(link, directory.path().join("proc/self/ns/pid")).unwrap();
            assert_eq!(numbers_are_foreign(&root), foreign, "{link}");
        }
    }

    #[test]
    fn what_bpftrace_says_is_sorted() {
        let harmless = "ERROR: Unknown error -1: couldn't set RLIMIT_MEMLOCK for bpftrace. If your program is not loading, \
                        you can try \"ulimit -l 8192\" to fix the problem\n";
        let of = |said: &str| NoTrace::from_words(&format!("{harmless}{said}"));
        assert!(matches!(
            of("ERROR: bpftrace currently only supports running as the root user."),
            NoTrace::NotPermitted { .. }
        ));
        assert!(matches!(
            of("ERROR: failed to create map: '@x': Operation not permitted"),
            NoTrace::LockedMemory { .. }
        ));
        let message = of("stdin:1:1-9: ERROR: tracepoint not found: block:x\nBEGIN\n~~~~~\n").to_string();
        assert_eq!(message, "`bpftrace` cannot trace here: stdin:1:1-9: ERROR: tracepoint not found: block:x");
        assert!(of("").to_string().ends_with("it ended without a word"));
    }
}
