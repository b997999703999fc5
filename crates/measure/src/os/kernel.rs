//! Calls to the C library for what the standard library does not offer.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
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

/// What may be asked of an NVMe controller. There are no other commands here, so none can change a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvmeQuestion {
    /// Identify, of the controller.
    Controller,
    /// Identify, of the namespace with this number.
    Namespace(u32),
    /// Get Log Page, of SMART and health of the whole controller. Where it is told to, it keeps events that wait for a reader of the page.
    Health {
        /// Devices from before version 1.3 do not know this bit.
        keeps_events: bool,
    },
}

impl NvmeQuestion {
    /// Length of the answer.
    pub fn bytes(self) -> usize {
        match self {
            Self::Controller | Self::Namespace(_) => 4_096,
            Self::Health { .. } => 512,
        }
    }
}

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct NvmeCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_15: [u32; 6],
    /// 0 is the kernel's own limit. A command that takes longer than its limit has the kernel reset the controller.
    timeout_ms: u32,
    result: u32,
}

const NVME_ADMIN_COMMAND: u32 = libc::_IOWR::<NvmeCommand>(b'N' as u32, 0x41) as u32;

/// The controller's answer. May take as long as the controller does, up to the kernel's own limit (60 s).
///
/// # Errors
/// What `ioctl(2)` says, and a status other than success.
pub fn ask_nvme(controller: &File, question: NvmeQuestion) -> io::Result<Vec<u8>> {
    let mut answer = vec![0; question.bytes()];
    let (opcode, namespace, word_10) = match question {
        NvmeQuestion::Controller => (0x06, 0, 1),
        NvmeQuestion::Namespace(number) => (0x06, number, 0),
        NvmeQuestion::Health { keeps_events } => {
            let last_word = answer.len() as u32 / 4 - 1;
            (0x02, u32::MAX, 0x02 | u32::from(keeps_events) << 15 | last_word << 16)
        }
    };
    let mut command = NvmeCommand {
        opcode,
        namespace,
        address: answer.as_mut_ptr() as u64,
        data_bytes: answer.len() as u32,
        words_10_15: [word_10, 0, 0, 0, 0, 0],
        ..NvmeCommand::default()
    };
    // SAFETY: the structure is that of the kernel. It names memory of `answer`, whose length it states and the command does not exceed;
    // both outlive the call, which ends after the device has.
    let status = unsafe { libc::ioctl(controller.as_raw_fd(), NVME_ADMIN_COMMAND as _, &raw mut command) };
    match status {
        0 => Ok(answer),
        ..0 => Err(io::Error::last_os_error()),
        refused => Err(io::Error::other(format!("status {refused:#x}"))),
    }
}

/// `struct dm_ioctl` of `linux/dm-ioctl.h`, which the answer begins with.
#[repr(C)]
struct MapperHead {
    version: [u32; 3],
    data_bytes: u32,
    data_start: u32,
    targets: u32,
    open_count: i32,
    flags: u32,
    event: u32,
    padding: u32,
    device: u64,
    names: [u8; 128 + 129 + 7],
}

const MAPPER_TABLE_STATUS: u32 = libc::_IOWR::<MapperHead>(0xfd, 12) as u32;
/// The status as it is, without having a thin pool write its metadata first.
const MAPPER_NO_FLUSH: u32 = 1 << 11;
/// The table that the device was made with, in place of its status.
const MAPPER_TABLE: u32 = 1 << 4;
/// Bytes for the status of a device with one target: a multipath device of a hundred paths takes a tenth.
const MAPPER_BYTES: usize = 64 << 10;

/// What is wanted of device-mapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapperText {
    /// The status of each target.
    Status,
    /// What each target was made with. That of an encrypted device has its key: to be asked of thin pools alone.
    Table,
}

/// What device-mapper says of the targets of a device, as it writes it: a head, then a record a target. `control` is `/dev/mapper/control`;
/// `device` its number as the kernel encodes it. More than 64 KiB are cut off, which a flag of the head says.
///
/// # Errors
/// What `ioctl(2)` says, `EACCES` above all: it takes root.
pub fn ask_mapper(control: &File, device: u64, text: MapperText) -> io::Result<Vec<u8>> {
    let head = MapperHead {
        version: [4, 0, 0],
        data_bytes: MAPPER_BYTES as u32,
        data_start: size_of::<MapperHead>() as u32,
        targets: 0,
        open_count: 0,
        flags: MAPPER_NO_FLUSH | if text == MapperText::Table { MAPPER_TABLE } else { 0 },
        event: 0,
        padding: 0,
        device,
        names: [0; 264],
    };
    // Whole words, so that a head may begin there.
    let mut answer = vec![0_u64; MAPPER_BYTES / size_of::<u64>()];
    // SAFETY: the head is shorter than the answer and aligned no more strictly; the kernel reads it and writes at most as many bytes as it
    // says that there are, which is what `answer` has. No pointer is kept.
    let done = unsafe {
        answer.as_mut_ptr().cast::<MapperHead>().write(head);
        libc::ioctl(control.as_raw_fd(), MAPPER_TABLE_STATUS as _, answer.as_mut_ptr())
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer.iter().flat_map(|word| word.to_ne_bytes()).collect())
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
    fn structures_are_those_of_the_kernel() {
        assert_eq!((size_of::<NvmeCommand>(), size_of::<MapperHead>()), (72, 312));
        assert_eq!((NVME_ADMIN_COMMAND, MAPPER_TABLE_STATUS), (0xc048_4e41, 0xc138_fd0c));
    }

    #[test]
    fn a_file_that_is_none_of_theirs_answers_nothing() {
        let file = File::open("/dev/null").unwrap();
        for question in
            [NvmeQuestion::Controller, NvmeQuestion::Namespace(1), NvmeQuestion::Health { keeps_events: true }]
        {
            assert_eq!(ask_nvme(&file, question).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        }
        assert_eq!(ask_mapper(&file, 0, MapperText::Status).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn no_space_is_known_where_nothing_is() {
        assert_eq!(space(Path::new("/no/such/place")), None);
        assert_eq!(space(Path::new("with\0nul")), None);
    }
}
