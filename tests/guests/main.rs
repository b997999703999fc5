//! The program on kernels and stacks that people have, in guests of QEMU: what it refuses, what it names, and what it gets right.
//!
//! `make test-guests` tries every theme on every kernel. `make test` tries the one that needs no root image.

#![expect(clippy::print_stdout, reason = "a run of minutes says how far it is, and ends with a table")]

mod image;
mod initramfs;
mod judge;
mod kernel;
mod lossy_disk;
mod machine;
mod pattern;
mod place;
mod theme;
mod themes_by_kernel;
mod tried_on;
mod witness;

use std::path::Path;
use std::time::Duration;

use kernel::{KERNELS, Kernel, Machine};
use machine::{Accelerator, Guest, Role};
use test_support::scratch::scratch;
use test_support::skip::skip;

/// What a download may take in `make test`, which goes on without a guest otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program that guests get: the one that Cargo built for this test, or another that can run on Debian 12.
fn program() -> std::path::PathBuf {
    std::env::var_os("PLIMSOLL_GUEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_plimsoll").into(), Into::into)
}

/// A program that guests need and that is not installed.
fn missing_tool() -> Option<String> {
    let tools = ["qemu-system-x86_64", "apt-get", "dpkg-deb", "depmod", "mkfs.ext4", "setpriv", "tar", "xz"];
    let missing = tools.iter().find(|tool| !place::is_installed(tool))?;
    Some(format!("`{missing}`, which a guest needs, is not installed (`make guest-tools` does it)"))
}

/// The kernel for a guest that has nothing but that and the program.
fn bring_smoke(machine: Machine) -> Result<Kernel, String> {
    let _lock = place::lock().map_err(|error| error.to_string())?;
    kernel::bring_busybox(machine, PATIENCE)?;
    let default = KERNELS.iter().find(|kernel| kernel.version == "6.1").expect("it is in the list");
    kernel::bring(default, machine, PATIENCE)
}

/// Tries the themes that need no root image in a guest of such a machine. What keeps a guest from coming up is an error, since it says
/// nothing of the program.
fn smoke(machine: Machine, program: &Path) -> Result<(), String> {
    let kernel = bring_smoke(machine).map_err(|error| format!("no kernel for a guest: {error}"))?;
    let folder = scratch();
    let disk = folder.path().join("program");
    image::program_disk(program, &disk).expect("the program can be packed");
    let accelerator = match machine {
        Machine::Amd64 => Accelerator::find(&kernel, &folder.path().join("probe")).expect("QEMU starts"),
        Machine::Arm64 => Accelerator::Tcg,
    };
    for theme in theme::all().into_iter().filter(|theme| theme.smoke) {
        let role = Role::Small { program: disk.clone(), modules: theme.modules.clone() };
        // As on a machine without a processor to spare.
        let mut guest = Guest::boot(&kernel, accelerator, &role, &folder.path().join("guest"))
            .map_err(|why| format!("no guest comes up: {}", why.lines().next().unwrap_or_default()))?;
        let results = guest.run(&theme).unwrap_or_else(|why| panic!("{}: {why}", theme.name));
        let problems = judge::problems(&theme, &results);
        assert!(problems.is_empty(), "{} on kernel {}:\n{problems}", theme.name, kernel.package);
        println!("{} holds on kernel {}", theme.name, kernel.package);
    }
    Ok(())
}

#[test]
fn a_small_guest_shows_that_the_program_works_on_another_kernel() {
    if let Some(missing) = missing_tool() {
        return skip(missing);
    }
    smoke(Machine::Amd64, &program()).unwrap_or_else(skip);
}

#[test]
#[ignore = "`make test-guests` runs it: it needs a program for ARM, which `make dist MACHINES=aarch64` builds"]
fn a_small_guest_shows_that_the_program_works_on_arm() {
    let program = std::env::var_os("PLIMSOLL_GUEST_ARM_PROGRAM").filter(|path| !path.is_empty());
    let Some(program) = program else {
        return skip("there is no program for ARM: `make dist MACHINES=aarch64` builds it");
    };
    let qemu =
        (!place::is_installed("qemu-system-aarch64")).then(|| "`qemu-system-aarch64` is not installed".to_owned());
    if let Some(missing) = missing_tool().or(qemu) {
        panic!("{missing}");
    }
    smoke(Machine::Arm64, Path::new(&program)).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
#[ignore = "`make test-guests` runs it: it builds an image of gigabytes and takes many minutes"]
fn every_theme_holds_on_every_kernel() {
    if let Some(missing) = missing_tool() {
        panic!("{missing}");
    }
    let folder = scratch();
    themes_by_kernel::try_all(&program(), Path::new(folder.path())).unwrap_or_else(|why| panic!("{why}"));
}
