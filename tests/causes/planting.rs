//! What is planted: a quota, busy programs, a slow way. Each goes when it is dropped.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A control group whose processes get so many processors.
pub struct Processors(PathBuf);

impl Processors {
    /// Or why there is none.
    pub fn limited(pids: Vec<u32>, processors: f64) -> Result<Self, String> {
        const PERIOD_US: f64 = 100_000.0;
        let mount = PathBuf::from("/sys/fs/cgroup/cpu");
        let (mount, is_first) = if mount.join("cpu.cfs_quota_us").exists() || mount.join("cgroup.procs").exists() {
            (mount, true)
        } else {
            (PathBuf::from("/sys/fs/cgroup"), false)
        };
        let path = mount.join(format!("plimsoll-causes-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("no group can be made in `{}`: {error}", mount.display()))?;
        let group = Self(path);
        let quota_us = (processors * PERIOD_US) as u64;
        let (file, text) = if is_first {
            ("cpu.cfs_quota_us", quota_us.to_string())
        } else {
            ("cpu.max", format!("{quota_us} 100000"))
        };
        fs::write(group.0.join(file), text).map_err(|error| format!("`{file}`: {error}"))?;
        for (number, pid) in pids.into_iter().enumerate() {
            match fs::write(group.0.join("cgroup.procs"), pid.to_string()) {
                Err(error) if number == 0 => return Err(format!("process {pid}: {error}")),
                // A child may have ended meanwhile.
                _ => {}
            }
        }
        Ok(group)
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        let parent = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().split_whitespace() {
            let _ = fs::write(&parent, pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Programs that do nothing but compute.
pub struct Hogs(Vec<Child>);

impl Hogs {
    pub fn start(count: usize) -> Self {
        let start = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..count).map(|_| start()).collect())
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
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let _ = run("ip", &["link", "del", "plc0"]);
        let _ = run("ip", &["netns", "del", &self.0]);
    }
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let said = Command::new(program).args(words).output().map_err(|error| format!("no `{program}`: {error}"))?;
    let why = || format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&said.stderr).trim());
    if said.status.success() { Ok(()) } else { Err(why()) }
}
