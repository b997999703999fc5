//! Kernels as Debian's releases have them. Their packages are taken apart below `target/guests`; none is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::place::{key, of_the_guest, output, place, whole};

/// What kind of processor a guest has, by Debian's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    Amd64,
    Arm64,
}

impl Machine {
    fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// What is kept of it: guests of this machine's kind came first, and have the plain name.
    fn kept(self, name: &str) -> String {
        match self {
            Self::Amd64 => name.to_owned(),
            Self::Arm64 => format!("{name}-arm64"),
        }
    }
}

/// A kernel by what people call it, and the release of Debian that has it. Which package that is today, `apt` says.
#[derive(Debug)]
pub struct Named {
    pub version: &'static str,
    release: &'static str,
}

pub const KERNELS: &[Named] = &[
    Named { version: "5.10", release: "bullseye" },
    Named { version: "6.1", release: "bookworm" },
    Named { version: "6.12", release: "trixie" },
];

/// The release whose packages the root image and `busybox` are of.
pub const RELEASE: &str = "bookworm";

/// Parts of a kernel's modules that guests have: the rest is for hardware that no guest has.
const PARTS: &[&str] = &[
    "arch/arm64/crypto",
    "arch/x86/crypto",
    "block",
    "crypto",
    "drivers/block",
    "drivers/dax",
    "drivers/md",
    "drivers/message",
    "drivers/net/net_failover.ko",
    "drivers/net/net_failover.ko.xz",
    "drivers/net/virtio_net.ko",
    "drivers/net/virtio_net.ko.xz",
    "drivers/nvdimm",
    "drivers/nvme",
    "drivers/scsi",
    "drivers/virtio",
    "drivers/char/hw_random",
    "fs",
    "lib",
    "net/9p",
    "net/core",
    "net/dns_resolver",
    "net/ipv4",
    "net/ipv6",
    "net/sunrpc",
];

/// What the first process loads before it can reach its disks.
const FIRST_MODULES: &[&str] =
    &["virtio_pci", "virtio_blk", "virtio_rng", "crc32c_generic", "crc32c_intel", "ext4", "9p", "9pnet_virtio"];

/// How long the answer to "which package" is believed without asking again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A kernel that is here.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub version: &'static str,
    pub machine: Machine,
    /// Of Debian, such as `6.1.0-50-amd64`.
    pub package: String,
    folder: PathBuf,
}

impl Kernel {
    pub fn image(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// A file system with the modules, to be mounted at `/usr/lib/modules/VERSION`.
    pub fn modules_disk(&self) -> PathBuf {
        self.folder.join("modules.img")
    }

    fn modules(&self) -> PathBuf {
        self.folder.join("stage/lib/modules").join(&self.package)
    }

    /// The modules that have to be loaded for those named, in that order, as (name, bytes); those that are built in are left out.
    pub fn modules_for(&self, more: &[&str]) -> Result<Vec<(String, Vec<u8>)>, String> {
        let folder = self.modules();
        let list = fs::read_to_string(folder.join("modules.dep")).map_err(|error| format!("modules.dep: {error}"))?;
        let mut seen = BTreeSet::new();
        let mut loaded = Vec::new();
        for name in FIRST_MODULES.iter().chain(more) {
            for path in needed(&list, name) {
                if seen.insert(path.to_owned()) {
                    loaded.push((module_name(path), unpacked(&folder.join(path))?));
                }
            }
        }
        Ok(loaded)
    }
}

fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Paths of a module and of what it needs, what is needed first. `modules.dep` has the nearest need first.
fn needed<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let Some((path, needs)) =
        list.lines().filter_map(|line| line.split_once(':')).find(|(path, _)| module_name(path) == name)
    else {
        return Vec::new();
    };
    needs.split_whitespace().rev().chain([path]).collect()
}

/// A module as the kernel takes it; newer releases pack theirs.
fn unpacked(path: &Path) -> Result<Vec<u8>, String> {
    let tool = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).map_err(|error| format!("{}: {error}", path.display())),
    };
    let done = Command::new(tool).arg("-dcq").arg(path).output().map_err(|error| format!("{tool}: {error}"))?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("{tool} cannot unpack {}", path.display())) }
}

/// The mirror that this machine's own `apt` uses for Debian.
pub fn mirror() -> String {
    let mut ask = Command::new("apt-get");
    ask.args(["indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"]);
    let said = output(&mut ask).unwrap_or_default();
    let first = said.lines().find(|line| line.starts_with("http"));
    first.unwrap_or("http://deb.debian.org/debian").trim_end_matches('/').to_owned()
}

/// A state of `apt` of our own for one release, so that the sources of this machine stay as they are.
struct Apt {
    folder: PathBuf,
    machine: Machine,
    /// After so long a command is given up.
    patience: Duration,
}

impl Apt {
    fn of(release: &str, machine: Machine, patience: Duration) -> Result<Self, String> {
        let folder = place().join("apt").join(machine.kept(release));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for below in ["lists/partial", "cache/archives/partial", "parts"] {
            fs::create_dir_all(folder.join(below)).map_err(failed)?;
        }
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let source = format!("deb [signed-by={keys}] {} {release} main\n", mirror());
        fs::write(folder.join("sources.list"), source).map_err(failed)?;
        fs::write(folder.join("status"), "").map_err(failed)?;
        Ok(Self { folder, machine, patience })
    }

    fn command(&self, tool: &str) -> Command {
        let mut command = Command::new("timeout");
        command.arg(self.patience.as_secs().to_string()).arg(tool);
        let folder = self.folder.display();
        // `apt` would give up root for downloads and then not reach a folder of ours.
        let user = String::from_utf8_lossy(
            &Command::new("id").arg("-un").output().map(|done| done.stdout).unwrap_or_default(),
        )
        .trim()
        .to_owned();
        for option in [
            format!("Dir::Etc::sourcelist={folder}/sources.list"),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State={folder}"),
            format!("Dir::State::status={folder}/status"),
            format!("Dir::Cache={folder}/cache"),
            format!("APT::Sandbox::User={user}"),
            "Acquire::Retries=2".to_owned(),
            "Acquire::http::Timeout=30".to_owned(),
            "Acquire::Languages=none".to_owned(),
            format!("APT::Architecture={}", self.machine.debian()),
            // Those that this machine's own apt knows as well are not looked for.
            format!("APT::Architectures={}", self.machine.debian()),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }

    fn update(&self) -> Result<(), String> {
        output(self.command("apt-get").args(["update", "-qq"])).map(drop)
    }

    /// The package of the newest kernel.
    fn newest_kernel(&self) -> Result<String, String> {
        let said =
            output(self.command("apt-cache").args(["depends", &format!("linux-image-{}", self.machine.debian())]))?;
        let mut named = said.lines().filter_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
        named.next_back().map(str::to_owned).ok_or_else(|| format!("apt names no kernel: {said}"))
    }

    /// Downloads a package and unpacks it into a folder.
    fn unpack(&self, package: &str, into: &Path) -> Result<(), String> {
        let folder = self.folder.join("debs");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        output(self.command("apt-get").args(["download", "-qq", package]).current_dir(&folder))?;
        let mut entries = fs::read_dir(&folder).map_err(|error| error.to_string())?;
        let file = entries.next().and_then(Result::ok).ok_or_else(|| format!("apt brought no {package}"))?.path();
        fs::create_dir_all(into).map_err(|error| format!("{}: {error}", into.display()))?;
        output(Command::new("dpkg-deb").arg("-x").arg(&file).arg(into))?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    }
}

/// A kernel, brought here unless it is. What `apt` cannot be asked about today is taken from the cache.
pub fn bring(named: &'static Named, machine: Machine, patience: Duration) -> Result<Kernel, String> {
    let kept = place().join("kernels").join(machine.kept(named.release));
    let asked = kept.join("asked");
    let known = fs::read_to_string(&asked).ok();
    let age = fs::metadata(&asked)
        .and_then(|data| data.modified())
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    let package = match (known, age) {
        (Some(known), Some(age)) if age < FRESH => known,
        (known, _) => {
            let apt = Apt::of(named.release, machine, patience)?;
            match (apt.update().and_then(|()| apt.newest_kernel()), known) {
                (Ok(package), _) => package,
                (Err(error), Some(known)) => {
                    println!(
                        "apt cannot be asked for a newer kernel of {}, so {known} is used: {error}",
                        named.release
                    );
                    known
                }
                (Err(error), None) => return Err(error),
            }
        }
    };
    let folder = kept.join(format!("{package}-{}", key(PARTS)));
    let kernel = Kernel { version: named.version, machine, folder, package };
    if !kernel.folder.exists() {
        // Older ones are not used again.
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
        let apt = Apt::of(named.release, machine, patience)?;
        whole(&kernel.folder, |part| make(&apt, &kernel.package, part))?;
    }
    fs::write(&asked, &kernel.package).map_err(|error| format!("{}: {error}", asked.display()))?;
    Ok(kernel)
}

fn make(apt: &Apt, package: &str, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let all = folder.join("all");
    apt.unpack(&format!("linux-image-{package}"), &all)?;
    fs::copy(all.join(format!("boot/vmlinuz-{package}")), folder.join("vmlinuz")).map_err(failed)?;
    let merged = all.join("usr/lib/modules").join(package);
    let from = if merged.exists() { merged } else { all.join("lib/modules").join(package) };
    let stage = folder.join("stage");
    let to = stage.join("lib/modules").join(package);
    for part in PARTS {
        let part = Path::new("kernel").join(part);
        if let (true, Some(above)) = (from.join(&part).exists(), part.parent()) {
            fs::create_dir_all(to.join(above)).map_err(failed)?;
            fs::rename(from.join(&part), to.join(&part)).map_err(failed)?;
        }
    }
    for entry in fs::read_dir(&from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_file() {
            fs::rename(entry.path(), to.join(entry.file_name())).map_err(failed)?;
        }
    }
    output(Command::new("depmod").arg("-b").arg(&stage).arg(package))?;
    let disk = folder.join("modules.img");
    output(Command::new("truncate").args(["-s", "512M"]).arg(&disk))?;
    output(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", "-d"]).arg(&to).arg(&disk))?;
    fs::remove_dir_all(&all).map_err(failed)
}

/// The shell of the first process: `busybox`, with everything in it.
pub fn bring_busybox(machine: Machine, patience: Duration) -> Result<(), String> {
    let folder = place().join(machine.kept("busybox"));
    if !folder.exists() {
        let apt = Apt::of(RELEASE, machine, patience)?;
        apt.update()?;
        whole(&folder, |part| apt.unpack("busybox-static", part))?;
    }
    Ok(())
}

fn busybox(machine: Machine) -> PathBuf {
    let folder = place().join(machine.kept("busybox"));
    let merged = folder.join("usr/bin/busybox");
    if merged.exists() { merged } else { folder.join("bin/busybox") }
}

/// What the first process and the agent are, as files of an initramfs.
pub fn first_files(machine: Machine) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
    Ok(vec![
        ("bin/busybox".to_owned(), read(busybox(machine))?),
        ("init".to_owned(), read(of_the_guest("init"))?),
        ("agent".to_owned(), read(of_the_guest("agent"))?),
    ])
}

#[test]
fn what_a_module_needs_comes_first() {
    let list = "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko kernel/fs/mbcache.ko\n\
                kernel/drivers/block/null_blk/null_blk.ko:\n";
    let expected =
        ["kernel/fs/mbcache.ko", "kernel/fs/jbd2/jbd2.ko", "kernel/lib/crc16.ko", "kernel/fs/ext4/ext4.ko.xz"];
    assert_eq!(needed(list, "ext4"), expected);
    assert_eq!(needed(list, "null_blk"), ["kernel/drivers/block/null_blk/null_blk.ko"]);
    assert!(needed(list, "built_in").is_empty());
    assert_eq!(module_name("kernel/drivers/md/dm-flakey.ko.xz"), "dm_flakey");
}
