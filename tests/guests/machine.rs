//! A guest: one QEMU, its disks, and the folder through which it is spoken to. It ends with this process, whatever ends that.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::initramfs;
use crate::judge::last_lines;
use crate::kernel::{Kernel, Machine, first_files};
use crate::place::{of_the_guest, output, place};
use crate::theme::{DISKS, PowerCut, Theme};

/// Lines of the console that are shown of a guest that hangs or dies.
const CONSOLE_LINES: usize = 40;

/// A disk that themes write to.
const DISK_SIZE: &str = "1G";

/// Boots take 10 to 30 s without KVM; one that has not come up after this long hangs.
const BOOT: Duration = Duration::from_secs(300);

/// On KVM a guest that does nothing comes and goes within a second or two.
const PROBE: Duration = Duration::from_secs(20);

/// Services that only make a boot longer.
const UNNEEDED: &[&str] = &[
    "lvm2-monitor",
    "systemd-binfmt",
    "systemd-journal-flush",
    "systemd-update-utmp",
    "systemd-sysctl",
    "nvmf-autoconnect",
];

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    Kvm,
    /// QEMU's own translation.
    Tcg,
}

impl Accelerator {
    /// KVM where a guest comes up on it; what was found is said. A device that can be opened proves nothing: where processors
    /// cannot nest, guests on it hang.
    pub fn find(kernel: &Kernel, folder: &Path) -> Result<Self, String> {
        match std::env::var("PLIMSOLL_GUEST_ACCELERATOR").as_deref() {
            Ok("kvm") => return Ok(Self::Kvm),
            Ok("tcg") => return Ok(Self::Tcg),
            Ok(other) => return Err(format!("PLIMSOLL_GUEST_ACCELERATOR is kvm or tcg, not {other}")),
            Err(_) => {}
        }
        if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
            println!("Guests run on TCG, slowly: /dev/kvm cannot be opened ({error}).");
            return Ok(Self::Tcg);
        }
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if !processors.split_whitespace().any(|flag| flag == "vmx" || flag == "svm") {
            println!("Guests run on TCG, slowly: the processors here cannot run guests.");
            return Ok(Self::Tcg);
        }
        // What was found holds until the machine starts again.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let known = place().join("accelerator");
        let found = fs::read_to_string(&known).unwrap_or_default();
        let is_up = match found.split_once(' ') {
            Some((kind, at)) if at == boot => kind == "kvm",
            _ => {
                let guest = Guest::start(kernel, Self::Kvm, &Role::Probe, folder)?;
                guest.ends_within(PROBE) && guest.console().contains("the guest is up")
            }
        };
        let _ = fs::write(&known, format!("{} {boot}", if is_up { "kvm" } else { "tcg" }));
        if !is_up {
            println!("Guests run on TCG, slowly: none comes up on KVM here.");
        }
        Ok(if is_up { Self::Kvm } else { Self::Tcg })
    }
}

/// What a guest is for.
pub enum Role {
    /// To say that it came up.
    Probe,
    /// A kernel, the program's disk, and nothing else; with these modules.
    Small { program: PathBuf, modules: Vec<String> },
    /// The root image and all disks.
    Whole {
        program: PathBuf,
        root: PathBuf,
        /// What serves the disk `vdb`, where that is no file.
        vdb: Option<PathBuf>,
        /// Whether it goes on with what a guest in the same folder had written.
        goes_on: bool,
        /// Whether it reaches the host.
        has_network: bool,
    },
}

pub struct Guest {
    process: Child,
    folder: PathBuf,
}

impl Guest {
    /// Starts one whose files are in `folder`.
    pub fn start(kernel: &Kernel, accelerator: Accelerator, role: &Role, folder: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let goes_on = matches!(role, Role::Whole { goes_on: true, .. });
        if goes_on {
            let _ = fs::remove_file(folder.join("share/ready"));
        } else {
            let _ = fs::remove_dir_all(folder);
        }
        fs::create_dir_all(folder.join("share")).map_err(failed)?;
        fs::copy(of_the_guest("library.sh"), folder.join("share/library.sh")).map_err(failed)?;
        let (name, more) = match role {
            Role::Probe => ("probe", &[][..]),
            Role::Small { modules, .. } => ("small", &modules[..]),
            Role::Whole { .. } => ("whole", &[][..]),
        };
        let mut files = first_files(kernel.machine)?;
        // Each is a name, and parameters.
        let more: Vec<(&str, &str)> =
            more.iter().map(|module| module.split_once(' ').unwrap_or((module.as_str(), ""))).collect();
        let names: Vec<&str> = more.iter().map(|(name, _)| *name).collect();
        for (at, (name, bytes)) in kernel.modules_for(&names)?.into_iter().enumerate() {
            if let Some((_, parameters)) = more.iter().find(|(other, _)| *other == name) {
                files.push((format!("modules/{at:03}-{name}.with"), parameters.as_bytes().to_vec()));
            }
            files.push((format!("modules/{at:03}-{name}.ko"), bytes));
        }
        initramfs::write(&folder.join("initramfs"), &files).map_err(failed)?;

        // The kernel ends it when this process is gone; without that a killed test would leave a guest behind.
        let mut qemu = Command::new("setpriv");
        let kind = if accelerator == Accelerator::Kvm { "kvm" } else { "tcg" };
        // Signing pointers as real processors do it takes most of the time where QEMU has to.
        let (program, board, processor, console) = match kernel.machine {
            Machine::Amd64 => ("qemu-system-x86_64", "q35", "max,la57=off", "ttyS0"),
            Machine::Arm64 => ("qemu-system-aarch64", "virt", "max,pauth-impdef=on", "ttyAMA0"),
        };
        qemu.args(["--pdeathsig", "KILL", program]);
        qemu.arg("-machine").arg(format!("{board},accel={kind}")).args(["-cpu", processor, "-smp", "2"]);
        qemu.args(["-m", if matches!(role, Role::Whole { .. }) { "2048" } else { "1024" }]);
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-device", "virtio-rng-pci"]);
        qemu.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(folder.join("initramfs"));
        // With any other clock source each time stamp leaves the guest, and a busy host passes for a broken timer.
        let is_tsc = accelerator == Accelerator::Tcg && kernel.machine == Machine::Amd64;
        let clock = if is_tsc { "tsc=reliable clocksource=tsc" } else { "" };
        let mut words =
            format!("console={console} loglevel=5 panic=-1 mitigations=off no_timer_check {clock} role={name}");
        if matches!(role, Role::Whole { .. }) {
            words.push_str(" systemd.unit=basic.target");
            UNNEEDED.iter().for_each(|unit| words.push_str(&format!(" systemd.mask={unit}.service")));
        }
        qemu.arg("-append").arg(words);
        qemu.arg("-serial").arg(format!("file:{}", folder.join("console").display()));
        qemu.arg("-fsdev").arg(format!("local,id=share,security_model=none,path={}", folder.join("share").display()));
        qemu.args(["-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]);
        if matches!(role, Role::Whole { has_network: true, .. }) {
            // QEMU's own network, in which the host is 10.0.2.2.
            qemu.args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]);
        }
        match role {
            Role::Probe => {}
            Role::Small { program, .. } => read_only(&mut qemu, "program", program),
            Role::Whole { program, root, vdb, .. } => {
                let overlay = folder.join("root.qcow2");
                if !goes_on {
                    let create = ["create", "-q", "-f", "qcow2", "-F", "raw", "-b"];
                    output(Command::new("qemu-img").args(create).arg(root).arg(&overlay))?;
                }
                disk(&mut qemu, "root", &overlay, "qcow2", "virtio-blk-pci");
                for (at, name) in DISKS.iter().enumerate() {
                    if let (Some(socket), "vdb") = (vdb, *name) {
                        let drive =
                            format!("file.driver=nbd,file.server.type=unix,file.server.path={}", socket.display());
                        qemu.arg("-drive").arg(format!("{drive},if=none,id=vdb,format=raw,cache=none"));
                        qemu.args(["-device", "virtio-blk-pci,drive=vdb,serial=vdb"]);
                        continue;
                    }
                    let file = folder.join(format!("disk-{name}"));
                    output(Command::new("truncate").args(["-s", DISK_SIZE]).arg(&file))?;
                    let device = if name.starts_with("nvme") {
                        // Behind a port of its own, so that it can be taken out.
                        qemu.arg("-device").arg(format!("pcie-root-port,id=port{at},chassis={at}"));
                        format!("nvme,bus=port{at}")
                    } else {
                        "virtio-blk-pci".to_owned()
                    };
                    disk(&mut qemu, name, &file, "raw", &device);
                }
                read_only(&mut qemu, "program", program);
                read_only(&mut qemu, "modules", &kernel.modules_disk());
            }
        }
        let log = File::create(folder.join("qemu.log")).map_err(failed)?;
        let again = log.try_clone().map_err(failed)?;
        qemu.stdin(Stdio::null()).stdout(log).stderr(again);
        let process = qemu.spawn().map_err(|error| format!("QEMU cannot be started: {error}"))?;
        Ok(Self { process, folder: folder.to_path_buf() })
    }

    /// Starts one and waits until it takes themes. One that does not come up on a busy host is started once more, which is said.
    pub fn boot(kernel: &Kernel, accelerator: Accelerator, role: &Role, folder: &Path) -> Result<Self, String> {
        Self::boot_once(kernel, accelerator, role, folder).or_else(|why| {
            println!("A guest is started once more: {}", why.lines().next().unwrap_or_default());
            Self::boot_once(kernel, accelerator, role, folder)
        })
    }

    fn boot_once(kernel: &Kernel, accelerator: Accelerator, role: &Role, folder: &Path) -> Result<Self, String> {
        let mut guest = Self::start(kernel, accelerator, role, folder)?;
        let ready = guest.folder.join("share/ready");
        guest.wait_for(&ready, BOOT).map_err(|why| format!("kernel {} does not come up: {why}", kernel.package))?;
        Ok(guest)
    }

    /// Runs a theme there; its results are in the folder that is returned. The guest is ended if it does not come to an end.
    pub fn run(&mut self, theme: &Theme) -> Result<PathBuf, String> {
        let folder = self.folder.join("share").join(&theme.name);
        self.go(theme, folder, |folder| theme.write(folder))
    }

    /// Runs the part of a theme before its power cut, and leaves the guest under load.
    pub fn run_until(&mut self, theme: &Theme, cut: &PowerCut, witness: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join("share").join(format!("{}-before", theme.name));
        self.go(theme, folder, |folder| theme.write_until(cut, witness, folder))
    }

    fn go(
        &mut self,
        theme: &Theme,
        folder: PathBuf,
        write: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<PathBuf, String> {
        write(&folder).and_then(|()| fs::write(folder.join("go"), "")).map_err(|error| error.to_string())?;
        self.wait_for(&folder.join("ended"), Duration::from_secs(theme.seconds))?;
        Ok(folder)
    }

    /// Whether nothing of the last theme is left in it.
    pub fn is_clean(theme_folder: &Path) -> bool {
        theme_folder.join("clean").exists()
    }

    fn wait_for(&mut self, file: &Path, limit: Duration) -> Result<(), String> {
        let began = Instant::now();
        while !file.exists() {
            let ended = self.process.try_wait().map_err(|error| error.to_string())?;
            let why = match ended {
                Some(status) => format!("the guest ended by itself ({status})"),
                None if began.elapsed() > limit => format!("the guest was ended after {} s", limit.as_secs()),
                None => {
                    thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            self.kill();
            let qemu = fs::read_to_string(self.folder.join("qemu.log")).unwrap_or_default();
            return Err(format!(
                "{why}; its console's last lines:\n{}{}",
                last_lines(&self.console(), CONSOLE_LINES),
                last_lines(&qemu, 10)
            ));
        }
        Ok(())
    }

    pub fn console(&self) -> String {
        let bytes = fs::read(self.folder.join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < limit {
            // Not waited for here: it is also waited for when it is dropped.
            let state = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
            if state.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z')) {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Cuts its power when `is_time`, which it cannot change meanwhile; after some time it is cut all the same.
    pub fn kill_when(&mut self, is_time: impl Fn() -> bool) {
        let signal = |process: &Child, signal| {
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(process), signal);
        };
        for _ in 0..500 {
            signal(&self.process, rustix::process::Signal::STOP);
            // What it had said before is still on the way.
            thread::sleep(Duration::from_millis(5));
            if is_time() {
                break;
            }
            signal(&self.process, rustix::process::Signal::CONT);
            thread::sleep(Duration::from_millis(20));
        }
        self.kill();
    }

    /// As when its power is cut.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
    }
}

fn disk(qemu: &mut Command, name: &str, file: &Path, format: &str, device: &str) {
    // Nothing in a guest outlives it, so the host need not write it down.
    let drive = format!("file={},if=none,id={name},format={format},cache=unsafe,discard=unmap", file.display());
    qemu.arg("-drive").arg(drive).arg("-device").arg(format!("{device},drive={name},serial={name}"));
}

fn read_only(qemu: &mut Command, name: &str, file: &Path) {
    let drive = format!("file={},if=none,id={name},format=raw,read-only=on", file.display());
    qemu.arg("-drive").arg(drive).arg("-device").arg(format!("virtio-blk-pci,drive={name},serial={name}"));
}
