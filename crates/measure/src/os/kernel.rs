//! Calls to the C library for what the standard library does not offer.

use std::ffi::CString;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::record::CpuTime;

/// Processor time of this process, all of its threads included; kernel workers of io_uring count as threads.
pub fn process_cpu() -> Option<CpuTime> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and of the type that the call fills; nothing else refers to it.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: `rusage` holds integers only, for which the zeroes it started with are valid, and the call succeeded.
    let usage = unsafe { usage.assume_init() };
    Some(CpuTime { user_ns: nanos(&usage.ru_utime)?, system_ns: nanos(&usage.ru_stime)?, ..CpuTime::default() })
}

fn nanos(time: &libc::timeval) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let micros = u64::try_from(time.tv_usec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(micros.checked_mul(1_000)?)
}

/// How far the wall clock may be off, in nanoseconds, as whatever synchronises it reports to the kernel. `None` where nothing does: the
/// kernel's own figure then is a number that it counts up to, and no bound.
pub fn wall_clock_bound_ns() -> Option<u64> {
    let mut state = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: `state` is writable and of the type that the call fills; its modes are zero, so nothing is set.
    let is_error = match unsafe { libc::adjtimex(state.as_mut_ptr()) } {
        ..0 => return None,
        found => found == libc::TIME_ERROR,
    };
    // SAFETY: `timex` holds integers only, for which the zeroes it started with are valid, and the call succeeded.
    let state = unsafe { state.assume_init() };
    if is_error || state.status & libc::STA_UNSYNC != 0 {
        return None;
    }
    u64::try_from(state.maxerror).ok()?.checked_mul(1_000)
}

/// The unit of `/proc/stat`, in ticks per second (`USER_HZ`).
pub fn ticks_per_second() -> Option<u64> {
    // SAFETY: the call takes a plain number and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)
}

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size.
    pub size_bytes: u64,
    /// What an ordinary user could still take.
    pub available_bytes: u64,
}

/// Room in the file system that holds `path`. May block for long on a network file system whose server is gone.
pub fn space(path: &Path) -> Option<Space> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut found = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` ends with NUL and outlives the call; `found` is writable and of the type that the call fills.
    if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: `statvfs` holds integers only, for which the zeroes it started with are valid; the call succeeded.
    let found = unsafe { found.assume_init() };
    let unit = found.f_frsize;
    Some(Space { size_bytes: found.f_blocks.checked_mul(unit)?, available_bytes: found.f_bavail.checked_mul(unit)? })
}

/// A resource that the kernel limits for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Open file descriptors.
    OpenFiles,
    /// Bytes locked in memory; buffers registered with io_uring count here.
    LockedMemory,
    /// Bytes of address space (`ulimit -v`).
    AddressSpace,
}

/// The limit in force (the soft one); `u64::MAX` stands for none.
pub fn limit(resource: Resource) -> Option<u64> {
    let resource = match resource {
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::AddressSpace => libc::RLIMIT_AS,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable, of the type that the call fills, and outlives the call.
    let done = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (done == 0).then_some(limit.rlim_cur)
}

/// The user whose rights this process has.
pub fn effective_user() -> u32 {
    // SAFETY: the call takes nothing, touches no memory of ours and cannot fail.
    unsafe { libc::geteuid() }
}

/// Maps so much memory without touching it, and gives it back at once: says whether it could be had.
///
/// Asked of the kernel, since the allocator may answer with what it has set aside for other threads.
///
/// # Errors
/// What `mmap(2)` says, above all `ENOMEM` at a limit of the process.
pub fn map_for_a_moment(bytes: usize) -> io::Result<()> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice: no memory of ours changes.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping made above, whole, to which nothing refers.
    if unsafe { libc::munmap(mapped, bytes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets all threads allocate from one arena where address space is limited. To be called before the process has a second thread.
///
/// glibc reserves 64 MiB of address space for an arena of each thread (`mallopt(3)`). A thread that gets none maps memory for every
/// single allocation: what takes half a second then took minutes. Other allocators reserve nothing of the kind.
pub fn spare_address_space() {
    #[cfg(target_env = "gnu")]
    if limit(Resource::AddressSpace).is_some_and(|bytes| bytes != libc::RLIM_INFINITY) {
        // SAFETY: sets one number of the allocator; no memory that was handed out changes.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Lets timed sleeps of the calling thread end on time: the kernel may otherwise let them last 50 us longer to save power.
pub fn precise_timers() {
    let one: libc::c_ulong = 1;
    // SAFETY: plain system call without pointers. A kernel that refuses keeps its default, which is no error.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, one) };
}

/// As long as it lives, the thread that made it gets a processor soon after it wakes up, however many threads want one. It makes no
/// thread meanwhile, for that would be alike. It takes the right to raise priorities, as root has it; without, a kernel from 6.12 on
/// grants at least short turns.
#[derive(Debug)]
pub struct PromptThread {
    /// What the thread had before.
    before: Option<libc::sched_attr>,
}

impl PromptThread {
    /// The shortest turn that the kernel gives, in nanoseconds.
    const TURN_NS: u64 = 100_000;
    /// The highest priority among threads that share processors.
    const NICE: i32 = -20;

    /// Begins with the calling thread.
    pub fn begin() -> Self {
        let before = scheduling().map(|before| libc::sched_attr { sched_runtime: 0, ..before });
        if let Some(before) = before {
            let turns = libc::sched_attr { sched_runtime: Self::TURN_NS, ..before };
            if !schedule(&libc::sched_attr { sched_nice: Self::NICE, ..turns }) {
                schedule(&turns);
            }
        }
        Self { before }
    }
}

impl Drop for PromptThread {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            schedule(before);
        }
    }
}

/// How the calling thread is scheduled; none if it is under a policy that somebody chose for it.
fn scheduling() -> Option<libc::sched_attr> {
    const BYTES: u32 = size_of::<libc::sched_attr>() as u32;
    let mut found = MaybeUninit::<libc::sched_attr>::zeroed();
    // SAFETY: the call fills at most as many bytes of the structure as it is told that there are.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, found.as_mut_ptr(), BYTES, 0) };
    // SAFETY: the structure holds integers only, for which zeroes are valid.
    let found = unsafe { found.assume_init() };
    (known == 0 && found.sched_policy == libc::SCHED_OTHER as u32).then_some(found)
}

/// Has the calling thread scheduled so; false if the kernel refuses.
fn schedule(wanted: &libc::sched_attr) -> bool {
    // SAFETY: the call reads the structure, which says how long it is.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(wanted), 0) == 0 }
}

/// The kernel's number of the calling thread.
pub fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Processor time that the calling thread has used; 0 where the kernel does not report, which Linux always does.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the live variable above.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time for which the calling thread was ready to run and got no processor, throttling by a quota included; absent where the kernel does not
/// report that. Allocates nothing.
pub fn thread_run_delay_ns() -> Option<u64> {
    let mut text = [0; 64];
    let length = std::fs::File::open("/proc/thread-self/schedstat").ok()?.read(&mut text).ok()?;
    Some(super::proc::schedstat(std::str::from_utf8(&text[..length]).ok()?)?.waiting_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_prompt_only_as_long_as_it_asks_for_that() {
        let Some(before) = scheduling() else { return };
        let prompt = PromptThread::begin();
        let meanwhile = scheduling().unwrap();
        assert!(meanwhile.sched_nice <= before.sched_nice);
        drop(prompt);
        let after = scheduling().unwrap();
        assert_eq!((after.sched_nice, after.sched_runtime), (before.sched_nice, before.sched_runtime));
    }

    #[test]
    fn processor_time_grows_with_work() {
        let before = process_cpu().unwrap();
        let mut sum = 0u64;
        let after = loop {
            sum = std::hint::black_box((0..100_000u64).fold(sum, u64::wrapping_add));
            let now = process_cpu().unwrap();
            if now.user_ns + now.system_ns > before.user_ns + before.system_ns {
                break now;
            }
        };
        assert!(after.user_ns >= before.user_ns && after.system_ns >= before.system_ns);
    }

    #[test]
    fn every_linux_tells_ticks_space_and_limits() {
        assert!(ticks_per_second().unwrap() >= 1);
        let space = space(Path::new("/")).unwrap();
        assert!(space.available_bytes <= space.size_bytes);
        assert!(limit(Resource::OpenFiles).unwrap() > 0);
        assert!(limit(Resource::LockedMemory).is_some());
    }

    #[test]
    fn what_was_mapped_for_a_moment_is_given_back_and_too_much_is_refused() {
        // 160 TiB in all, more than a process may map.
        for _ in 0..160 << 10 {
            map_for_a_moment(1 << 30).unwrap();
        }
        assert_eq!(map_for_a_moment(1 << 50).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn no_space_is_known_where_nothing_is() {
        assert_eq!(space(Path::new("/no/such/place")), None);
        assert_eq!(space(Path::new("with\0nul")), None);
    }
}
