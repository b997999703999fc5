//! A control group of its own, whose processes the kernel throttles on one device.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a limit counts.
#[derive(Debug, Clone, Copy)]
pub enum Counted {
    Requests,
    Bytes,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    /// `blkio.throttle.*_device`.
    One,
    /// `io.max`.
    Two,
}

/// Removed when it is dropped.
pub struct Group {
    path: PathBuf,
    version: Version,
    /// Of the whole disk, as `major:minor`.
    device: String,
}

impl Group {
    /// A new group that limits nothing yet, for the device below `directory`; or why there is none.
    pub fn new(directory: &Path) -> Result<Self, String> {
        Self::on(disk_below(directory)?)
    }

    /// The same for a device by its number, `major:minor`.
    pub fn on(device: String) -> Result<Self, String> {
        let (mount, version) = controller()?;
        // Tests of one process may have one each at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = mount.join(format!("plimsoll-test-{process}-{number}-{}", device.replace(':', "-")));
        fs::create_dir(&path).map_err(|error| format!("no group can be made in `{}`: {error}", mount.display()))?;
        let group = Self { path, version, device };
        // Tells whether the kernel knows the device, while there is nothing to limit.
        group.try_to_limit(Counted::Requests, 1_000_000)?;
        group.limit(Counted::Requests, 0);
        Ok(group)
    }

    /// `program`, to be started inside the group.
    pub fn command(&self, program: &Path) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.path.join("cgroup.procs")).arg(program);
        shell
    }

    /// Moves processes into it: those that they start from now on are in it as well. A process that has ended is passed over.
    #[allow(dead_code, reason = "not every test program moves what runs already")]
    pub fn enter(&self, pids: &[u32]) {
        pids.iter().for_each(|pid| drop(fs::write(self.path.join("cgroup.procs"), pid.to_string())));
    }

    /// Limits reads and writes, each by itself; 0 for no limit.
    pub fn limit(&self, counted: Counted, per_s: u32) {
        self.try_to_limit(counted, per_s).unwrap();
    }

    fn try_to_limit(&self, counted: Counted, per_s: u32) -> Result<(), String> {
        self.limit_device(&self.device, counted, per_s)
    }

    /// Limits the requests of reads and of writes, each to its own rate.
    #[allow(dead_code, reason = "not every test program limits them apart")]
    pub fn limit_directions(&self, reads_per_s: u32, writes_per_s: u32) {
        let set =
            |file: &str, text: String| fs::write(self.path.join(file), format!("{} {text}\n", self.device)).unwrap();
        match self.version {
            Version::One => {
                set("blkio.throttle.read_iops_device", reads_per_s.to_string());
                set("blkio.throttle.write_iops_device", writes_per_s.to_string());
            }
            Version::Two => set("io.max", format!("riops={reads_per_s} wiops={writes_per_s}")),
        }
    }

    /// Limits what is counted on another device.
    pub fn limit_device(&self, device: &str, counted: Counted, per_s: u32) -> Result<(), String> {
        let unit = match counted {
            Counted::Requests => "iops",
            Counted::Bytes => "bps",
        };
        let set = |file: String, text: String| {
            let path = self.path.join(file);
            fs::write(&path, format!("{device} {text}\n"))
                .map_err(|error| format!("`{}` refuses a limit for {device}: {error}", path.display()))
        };
        match self.version {
            Version::One => ["read", "write"]
                .into_iter()
                .try_for_each(|direction| set(format!("blkio.throttle.{direction}_{unit}_device"), per_s.to_string())),
            Version::Two => {
                let value = if per_s == 0 { "max".to_owned() } else { per_s.to_string() };
                set("io.max".to_owned(), format!("r{unit}={value} w{unit}={value}"))
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that was killed leaves the group a moment later.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            let left = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
            for process in left.split_whitespace() {
                let _ = Command::new("kill").args(["-KILL", process]).status();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        eprintln!("note: `{}` could not be removed", self.path.display());
    }
}

/// Where the controller of block I/O is mounted.
fn controller() -> Result<(PathBuf, Version), String> {
    let mounts =
        fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let mounted = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut right = right.split_whitespace();
            let (found, options) = (right.next()?, right.nth(1)?);
            let has = option.is_empty() || options.split(',').any(|word| word == option);
            (found == kind && has).then(|| left.split_whitespace().nth(4).map(PathBuf::from))?
        })
    };
    if let Some(mount) = mounted("cgroup", "blkio") {
        return Ok((mount, Version::One));
    }
    let mount = mounted("cgroup2", "").ok_or("no control groups are mounted")?;
    let known = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    if !known.split_whitespace().any(|controller| controller == "io") {
        return Err(format!("no controller of block I/O is in `{}`", mount.display()));
    }
    fs::write(mount.join("cgroup.subtree_control"), "+io")
        .map_err(|error| format!("the controller of block I/O cannot be used in `{}`: {error}", mount.display()))?;
    Ok((mount, Version::Two))
}

/// The disk that holds `directory`; limits are set for whole disks.
fn disk_below(directory: &Path) -> Result<String, String> {
    let number = fs::metadata(directory).map_err(|error| error.to_string())?.dev();
    let number = format!("{}:{}", libc::major(number), libc::minor(number));
    let device = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .map_err(|_| format!("`{}` lies on no block device ({number})", directory.display()))?;
    if !device.join("partition").exists() {
        return Ok(number);
    }
    let disk = device.parent().ok_or("a partition lies on no disk")?.join("dev");
    let number = fs::read_to_string(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    Ok(number.trim().to_owned())
}
