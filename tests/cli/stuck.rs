//! Storage that does not answer, so that a thread sleeps in the kernel where no signal reaches it: a hard mount whose server is away. Here the
//! kernel asks this test about every look at a file, and the test does not answer.

use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::manners::signal;
use crate::place::Place;
use crate::skip::skip;

const LONG: Duration = Duration::from_secs(60);

/// Those who ask can only be killed from the moment at which the question was taken: Linux 5.19.
const WAIT_KILLABLE: u64 = 1 << 5;
/// `SECCOMP_IOCTL_NOTIF_RECV` and `SECCOMP_IOCTL_NOTIF_SEND`.
const TAKE: u64 = 0xc050_2100;
const ANSWER: u64 = 0xc018_2101;

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Question {
    id: u64,
    process: u32,
    flags: u32,
    call: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Reply {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// Has the kernel ask about looks at files in this thread and in all that it starts from now on.
fn ask_about_looks() -> io::Result<OwnedFd> {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let calls = [libc::SYS_statx, libc::SYS_newfstatat, libc::SYS_fstat];
    let mut filter = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for (place, call) in calls.iter().enumerate() {
        filter.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32, (calls.len() - place) as u8, 0));
    }
    filter.push(step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0));
    filter.push(step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF, 0, 0));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE;
    // SAFETY: the program and its filter outlive the call, which copies them.
    let listener =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER as u64, flags, &raw const program) };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that no one else has.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

/// Answers every question until it is to hang, and then none. Ends with the last process that could ask.
fn answer(listener: &OwnedFd, hang: &AtomicBool, is_stuck: &AtomicBool) {
    loop {
        let mut wait = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which outlives the call.
        let found = unsafe { libc::poll(&raw mut wait, 1, 100) };
        if wait.revents & libc::POLLHUP != 0 {
            return;
        }
        if found <= 0 {
            continue;
        }
        let mut question = Question::default();
        // SAFETY: the kernel fills a structure of the size that is part of the request's number.
        if unsafe { libc::ioctl(listener.as_raw_fd(), TAKE as _, &raw mut question) } != 0 {
            continue;
        }
        if hang.load(Ordering::Acquire) {
            is_stuck.store(true, Ordering::Release);
            continue;
        }
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let reply = Reply { id: question.id, value: 0, error: 0, flags };
        // SAFETY: the kernel reads a structure of the size that is part of the request's number.
        unsafe { libc::ioctl(listener.as_raw_fd(), ANSWER as _, &raw const reply) };
    }
}

/// Killed when a test ends before it has.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, whose threads may be made to hang.
struct Program {
    child: Killed,
    lines: Receiver<String>,
    hang: Arc<AtomicBool>,
    is_stuck: Arc<AtomicBool>,
}

impl Program {
    fn start(place: &Place, words: &[&str]) -> io::Result<Self> {
        let mut command = place.plimsoll(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let (hang, is_stuck) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (made, listener) = channel();
        // A thread of its own: what is asked about once is asked about for good.
        let started = std::thread::spawn(move || {
            made.send(ask_about_looks()).expect("the test waits for it");
            command.spawn()
        });
        let listener = listener.recv().expect("the thread says how it went")?;
        let (hangs, stuck) = (Arc::clone(&hang), Arc::clone(&is_stuck));
        std::thread::spawn(move || answer(&listener, &hangs, &stuck));
        let mut child = Killed(started.join().expect("the thread does not panic")?);
        let stderr: ChildStderr = child.0.stderr.take().expect("it is piped");
        let (says, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = says.send(line);
            }
        });
        Ok(Self { child, lines, hang, is_stuck })
    }

    /// Waits for a line.
    fn hear(&self, text: &str) {
        let until = Instant::now() + LONG;
        let mut heard = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return;
            }
            heard.push(line);
        }
        panic!("`{text}` was never said, but {heard:#?}");
    }

    /// From now on all who look at a file wait for an answer that never comes.
    fn hang(&self) {
        self.hang.store(true, Ordering::Release);
        let begun = Instant::now();
        while !self.is_stuck.load(Ordering::Acquire) {
            assert!(begun.elapsed() < LONG, "nothing looks at a file");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end; gives the exit code.
    fn end(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().expect("it can be asked") {
                return status.code();
            }
            assert!(begun.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_run_that_the_kernel_does_not_answer_says_so_and_ctrl_c_ends_it() {
    let place = Place::on_disk();
    let words = ["io", "run", "--path", "new", "--size=4M", "--pattern=randread", "--duration=10", "--warmup=0s"];
    let mut program = match Program::start(&place, &words) {
        Ok(program) => program,
        Err(error) => return skip(format_args!("the kernel does not let a test answer for it: {error}")),
    };
    program.hear(" IOPS ");
    program.hang();
    program.hear("waiting for the target to answer since ");
    signal(&program.child.0, "-INT");
    program.hear("stopping; once more to abort at once");
    assert!(program.child.0.try_wait().expect("it can be asked").is_none(), "nothing hung");
    signal(&program.child.0, "-INT");
    assert_eq!(program.end(), Some(130));
}
