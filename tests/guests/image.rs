//! What guests boot from: the root image of Debian's packages, and the disk with the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kernel::{RELEASE, mirror};
use crate::place::{is_installed, key, of_the_guest, output, place, whole};

/// Packages of the root image, without what they need themselves.
const PACKAGES: &[&str] = &[
    "btrfs-progs",
    "cryptsetup-bin",
    "dbus",
    "dmsetup",
    "e2fsprogs",
    "fdisk",
    "iproute2",
    "kmod",
    "kpartx",
    "lvm2",
    "mariadb-client-core",
    "mariadb-server-core",
    "mdadm",
    "multipath-tools",
    "netbase",
    "nfs-common",
    "nfs-kernel-server",
    "nvme-cli",
    "postgresql-15",
    "procps",
    "psmisc",
    "rpcbind",
    "sg3-utils",
    "strace",
    "systemd",
    "systemd-sysv",
    "thin-provisioning-tools",
    "udev",
    "util-linux",
    "xfsprogs",
];

/// Room for the packages and for what themes write beside their disks.
const SIZE: &str = "3G";

/// The root image, built unless it is here. It depends on the lists above and on `guest/customize`, not on the program or a kernel.
pub fn bring_root() -> Result<PathBuf, String> {
    let customize = of_the_guest("customize");
    let script = fs::read_to_string(&customize).map_err(|error| format!("{}: {error}", customize.display()))?;
    let packages = PACKAGES.join(",");
    let image = place().join(format!("root-{}.img", key(&[&packages, &script, RELEASE, SIZE])));
    if image.exists() {
        return Ok(image);
    }
    for entry in fs::read_dir(place()).map_err(|error| error.to_string())?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("root-") {
            let _ = fs::remove_file(entry.path());
        }
    }
    println!("The root image is built from Debian's packages: this takes minutes, once.");
    whole(&image, |part| build(&packages, &customize, part))?;
    Ok(image)
}

fn build(packages: &str, customize: &Path, image: &Path) -> Result<(), String> {
    let archive = place().join("root.tar");
    let root = place().join("root");
    let source = format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} {RELEASE} main", mirror());
    output(
        Command::new("mmdebstrap")
            .args(["--quiet", "--variant=minbase", "--architectures=amd64"])
            .arg(format!("--include={packages}"))
            .arg("--aptopt=Acquire::Languages \"none\"")
            // A machine that fails meanwhile leaves no image, so nothing has to be on its disk before.
            .arg("--dpkgopt=force-unsafe-io")
            .arg("--dpkgopt=path-exclude=/usr/share/man/*")
            .arg("--dpkgopt=path-exclude=/usr/share/doc/*")
            .arg(format!("--customize-hook='{}' \"$1\"", customize.display()))
            .args([RELEASE])
            .arg(&archive)
            .arg(&source),
    )?;
    // Owners and devices in the archive are root's; where the user is not, they are made believe.
    let script = "set -e; rm -rf \"$2\"; mkdir \"$2\"; tar -xpf \"$1\" -C \"$2\" --numeric-owner; truncate -s \"$4\" \"$3\"; \
                  mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0 -d \"$2\" \"$3\"; rm -rf \"$1\" \"$2\"";
    let is_root = rustix::process::geteuid().is_root();
    let mut make = Command::new(if is_root { "sh" } else { "fakeroot" });
    if !is_root {
        make.arg("sh");
    }
    output(make.args(["-c", script, "sh"]).arg(&archive).arg(&root).arg(image).arg(SIZE)).map(drop)
}

/// The disk with the program: an archive from the first byte on, so that nothing has to be mounted for it. With its libraries, for
/// guests that have none.
pub fn program_disk(program: &Path, disk: &Path) -> Result<(), String> {
    let stage = tempfile::tempdir().map_err(|error| error.to_string())?;
    let put = |from: &Path, name: &str| {
        let to = stage.path().join(name);
        fs::create_dir_all(to.parent().unwrap_or(&to))
            .and_then(|()| fs::copy(from, &to))
            .map_err(|error| format!("{}: {error}", from.display()))?;
        Ok::<PathBuf, String>(to)
    };
    let ours = put(program, "usr/local/bin/plimsoll")?;
    if is_installed("strip") {
        // One of another kind of machine stays as it is.
        let _ = output(Command::new("strip").arg(&ours));
    }
    // Lines are `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the loader; a static program has none, and `ldd` fails.
    let said = output(Command::new("ldd").arg(program)).unwrap_or_default();
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    for path in paths {
        put(Path::new(path), path.trim_start_matches('/'))?;
    }
    // By their names from the root on, so that a guest can take one of them.
    let tops = fs::read_dir(stage.path()).map_err(|error| error.to_string())?.flatten().map(|entry| entry.file_name());
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(disk).arg("-C").arg(stage.path()).args(["--owner=0", "--group=0"]).args(tops);
    output(&mut pack).map(drop)
}
