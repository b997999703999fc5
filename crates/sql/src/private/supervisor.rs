//! A shell that holds a server and ends it when we end, however that happens.
//!
//! Its standard input is a pipe from us. When the pipe closes, because we let go of it or because we are no more, the shell
//! asks the server to shut down, later to drop everything, and at last kills it. Both are in a process group of their own:
//! Ctrl-C on the terminal reaches only us.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::files::{Files, file_error};
use super::memory::MemoryLimit;
use super::{FAST_PATIENCE, Hold, IMMEDIATE_PATIENCE, Owner, PrivateError, ServerKind, end, is_alive};

/// Parameters: the number of the signal that asks the server to shut down in order, that of the one that asks it to end at once,
/// seconds until the second of them and until SIGKILL, the log, a socket directory to remove afterwards or nothing, and
/// the server's command. The first line read lets the server start, so that the shell can be put into a control group
/// before; the second is `keep`, or the end. Standard error is a share in the directory's lock, which the shell keeps to itself
/// until the server has ended. A shell ignores SIGINT for what it starts in the background until that takes
/// the signal itself, so the first signal is sent each second.
const SCRIPT: &str = r#"
in_order=$1 at_once=$2 at_once_after=$3 kill_after=$4 log=$5 sockets=$6
shift 6
exec 9>&2 2>/dev/null
read -r go || exit 0
"$@" </dev/null >>"$log" 2>&1 9>&- &
server=$!
echo "$server"
exec >/dev/null
if read -r word && [ "$word" = keep ]; then exit 0; fi
(
    trap 'kill "$nap"; exit' TERM
    passed=0
    while :; do
        sleep 1 & nap=$!
        wait "$nap"
        passed=$((passed + 1))
        if [ "$passed" -ge "$kill_after" ]; then kill -KILL "$server"
        elif [ "$passed" -ge "$at_once_after" ]; then kill -"$at_once" "$server"
        else kill -"$in_order" "$server"
        fi
    done
) </dev/null >/dev/null 2>&1 &
impatience=$!
kill -"$in_order" "$server"
wait "$server"
code=$?
kill "$impatience"
wait "$impatience"
if [ -n "$sockets" ]; then
    rm -f "$sockets"/.[!.]* "$sockets"/*
    rmdir "$sockets"
fi
exit "$code"
"#;

/// A server and the shell that holds it. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    /// Taken when the server is to end.
    input: Option<ChildStdin>,
    server_pid: u32,
    /// Where its server works.
    data: PathBuf,
    kind: &'static ServerKind,
}

/// What is to be held.
pub(crate) struct Start<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) files: &'a Files,
    pub(crate) hold: &'a Hold,
    /// The server and its parameters.
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<String>,
    /// Control group to run in.
    pub(crate) memory: Option<&'a MemoryLimit>,
    /// Socket directory that is to be removed when the server has ended.
    pub(crate) passing_sockets: Option<&'a Path>,
}

impl Supervisor {
    /// Starts a server. It does not take connections yet.
    ///
    /// # Errors
    /// When the shell cannot be started or put into the control group.
    pub(crate) fn start(start: &Start) -> Result<Self, PrivateError> {
        let shell_path = Path::new("/bin/sh");
        let kind = start.files.kind();
        let [in_order, at_once] = kind.stop.map(|signal| signal.as_raw().to_string());
        let at_once_after = FAST_PATIENCE.as_secs();
        let kill_after = at_once_after + IMMEDIATE_PATIENCE.as_secs();
        let mut command: Command = start.owner.command(shell_path);
        command
            .args(["-c", SCRIPT, "plimsoll-supervisor", &in_order, &at_once])
            .args([at_once_after.to_string(), kill_after.to_string()])
            .arg(start.files.log())
            .arg(start.passing_sockets.map(PathBuf::from).unwrap_or_default())
            .arg(start.program)
            .args(&start.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(start.hold.share()?)
            .process_group(0);
        let failed = || file_error("run", shell_path);
        let mut shell = command.spawn().map_err(failed())?;
        let input = shell.stdin.take();
        let output = shell.stdout.take().expect("the shell's output is piped");
        let mut this = Self { shell, input, server_pid: 0, data: start.files.data(), kind };
        if let Some(memory) = start.memory {
            memory.admit(this.shell.id())?;
        }
        this.say("go").map_err(failed())?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(failed())?;
        this.server_pid = line.trim().parse().map_err(|_| failed()(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(this)
    }

    /// Process number of the server.
    pub(crate) fn server_pid(&self) -> u32 {
        self.server_pid
    }

    fn say(&mut self, word: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        writeln!(input, "{word}")
    }

    /// Leaves the server running on its own.
    ///
    /// # Errors
    /// When the shell is no more; then the server is ended.
    pub(crate) fn release(mut self) -> Result<(), PrivateError> {
        let shell = Path::new("/bin/sh");
        self.say("keep").map_err(file_error("tell", shell))?;
        self.shell.wait().map_err(file_error("wait for", shell))?;
        self.server_pid = 0;
        Ok(())
    }

    /// Ends the server and waits for its end. Returns whether it wrote out everything and ended by itself; a second call
    /// does nothing.
    pub(crate) fn end(&mut self) -> bool {
        drop(self.input.take());
        let reported = self.shell.wait().is_ok_and(|status| status.success());
        // Somebody may have killed the shell; its server is ended all the same.
        let server = std::mem::take(&mut self.server_pid);
        if server != 0 && is_alive(server) { end(self.kind, server, &self.data) } else { reported }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}
