//! What is planted: bounds on processors and memory, busy programs, a slow way, a disk of its own. Each goes when it is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use test_support::loop_device::LoopDevice;

/// A control group that bounds the processors or the memory of the processes in it.
pub struct Bound(PathBuf);

impl Bound {
    /// At most so many processors; or why there is no such group.
    pub fn processors(count: f64) -> Result<Self, String> {
        let [first, second] = quota(count);
        Self::with("cpu", first, second)
    }

    /// The same from now on, of a group that bounds processors.
    pub fn limit_processors(&self, count: f64) {
        let (file, text) = quota(count).into_iter().find(|(file, _)| self.0.join(file).exists()).unwrap();
        fs::write(self.0.join(file), text).unwrap();
    }

    /// Ten times the weight of others on processors that are short.
    pub fn preferred() -> Result<Self, String> {
        Self::with("cpu", ("cpu.shares", "10240".to_owned()), ("cpu.weight", "1000".to_owned()))
    }

    /// At most so many bytes of memory, the page cache among them.
    pub fn memory(bytes: u64) -> Result<Self, String> {
        let bytes = bytes.to_string();
        Self::with("memory", ("memory.limit_in_bytes", bytes.clone()), ("memory.max", bytes))
    }

    fn with(controller: &str, first: (&str, String), second: (&str, String)) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mount = PathBuf::from("/sys/fs/cgroup").join(controller);
        let is_first = mount.join("cgroup.procs").exists();
        let mount = if is_first { mount } else { PathBuf::from("/sys/fs/cgroup") };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = mount.join(format!("plimsoll-causes-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("no group can be made in `{}`: {error}", mount.display()))?;
        let group = Self(path);
        let (file, text) = if is_first { first } else { second };
        fs::write(group.0.join(file), text).map_err(|error| format!("`{file}`: {error}"))?;
        Ok(group)
    }

    /// Moves processes into it; their later children are in it as well.
    pub fn holding(self, pids: &[u32]) -> Result<Self, String> {
        for (number, pid) in pids.iter().enumerate() {
            match fs::write(self.0.join("cgroup.procs"), pid.to_string()) {
                Err(error) if number == 0 => return Err(format!("process {pid}: {error}")),
                // A child may have ended meanwhile.
                _ => {}
            }
        }
        Ok(self)
    }

    /// The same command inside the group.
    pub fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        inside.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        inside
    }
}

/// The file of a quota and what stands in it, in both versions of control groups.
fn quota(processors: f64) -> [(&'static str, String); 2] {
    const PERIOD_US: f64 = 100_000.0;
    let quota_us = (processors * PERIOD_US) as u64;
    [("cpu.cfs_quota_us", quota_us.to_string()), ("cpu.max", format!("{quota_us} 100000"))]
}

impl Drop for Bound {
    fn drop(&mut self) {
        let parent = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().split_whitespace() {
            let _ = fs::write(&parent, pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Forgets pages that other groups are charged for, so that a bound on memory bounds all of them.
pub fn drop_page_cache() {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
}

/// Programs that do nothing but compute.
pub struct Hogs(Vec<Child>);

impl Hogs {
    pub fn start(count: usize) -> Self {
        let start = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..count).map(|_| start()).collect())
    }

    pub fn pids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// This machine, as seen from the other end of the shaped way.
pub const NEAR: &str = "10.78.0.1";
const FAR: &str = "10.78.0.2";

/// A network namespace behind a token bucket in both directions.
pub struct Shaper(String);

impl Shaper {
    /// Or why there is none.
    pub fn start(rate: &str) -> Result<Self, String> {
        let shaper = Self(format!("plcauses{}", std::process::id()));
        let name = shaper.0.as_str();
        let bucket = ["root", "tbf", "rate", rate, "burst", "32k", "latency", "50ms"];
        run("ip", &["netns", "add", name])?;
        run("ip", &["link", "add", "plc0", "type", "veth", "peer", "name", "plc1", "netns", name])?;
        run("ip", &["addr", "add", &format!("{NEAR}/24"), "dev", "plc0"])?;
        run("ip", &["link", "set", "plc0", "up"])?;
        run("ip", &["-n", name, "addr", "add", &format!("{FAR}/24"), "dev", "plc1"])?;
        run("ip", &["-n", name, "link", "set", "plc1", "up"])?;
        run("tc", &[&["qdisc", "add", "dev", "plc0"], &bucket[..]].concat())?;
        run("ip", &[&["netns", "exec", name, "tc", "qdisc", "add", "dev", "plc1"], &bucket[..]].concat())?;
        Ok(shaper)
    }

    /// The same command at the far end.
    pub fn inside(&self, command: Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.0]).arg(command.get_program()).args(command.get_args());
        inside.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
        inside
    }

    /// Loses every packet that arrives at the far end as long as `what` takes; or why not.
    pub fn losing(&self, what: impl FnOnce()) -> Result<(), String> {
        let nft = |words: &str| run("ip", &["netns", "exec", &self.0, "nft", words]);
        nft("add table inet lost")?;
        nft("add chain inet lost arriving { type filter hook input priority 0; policy drop; }")?;
        what();
        nft("delete table inet lost")
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let _ = run("ip", &["link", "del", "plc0"]);
        let _ = run("ip", &["netns", "del", &self.0]);
    }
}

/// A small disk with a file system of its own, so that one part of a database can be slow by itself.
pub struct Disk {
    mounted: PathBuf,
    device: LoopDevice,
}

impl Disk {
    /// Mounted as `name` below `directory`, where a server may write to it; or why there is none.
    pub fn mount(directory: &Path, name: &str, megabytes: u64) -> Result<Self, String> {
        let (file, mounted) = (directory.join(format!("{name}.img")), directory.join(name));
        let made = fs::File::create(&file).and_then(|made| made.set_len(megabytes << 20));
        made.map_err(|error| format!("`{}`: {error}", file.display()))?;
        let device = LoopDevice::over(&file).ok_or("no loop device")?;
        fs::create_dir(&mounted).map_err(|error| format!("`{}`: {error}", mounted.display()))?;
        run("mkfs.ext4", &["-q", &device.path().display().to_string()])?;
        run("mount", &[&device.path().display().to_string(), &mounted.display().to_string()])?;
        let disk = Self { mounted, device };
        crate::servers::open_to_all(&disk.mounted);
        Ok(disk)
    }

    pub fn path(&self) -> &Path {
        &self.mounted
    }

    /// Its number, `major:minor`.
    pub fn number(&self) -> String {
        let file = format!("/sys/class/block/{}/dev", self.device.name());
        fs::read_to_string(file).unwrap().trim().to_owned()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &["--lazy", &self.mounted.display().to_string()]);
    }
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let said = Command::new(program).args(words).output().map_err(|error| format!("no `{program}`: {error}"))?;
    let why = || format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&said.stderr).trim());
    if said.status.success() { Ok(()) } else { Err(why()) }
}
