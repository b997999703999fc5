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

use kernel::{KERNELS, Kernel};
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

/// The first kernel that is or can be brought here, and the theme for a guest that has nothing but that.
fn bring_smoke() -> Result<Kernel, String> {
    let _lock = place::lock().map_err(|error| error.to_string())?;
    kernel::bring_busybox(PATIENCE)?;
    let default = KERNELS.iter().find(|kernel| kernel.version == "6.1").expect("it is in the list");
    kernel::bring(default, PATIENCE)
}

#[test]
fn a_small_guest_shows_that_the_program_works_on_another_kernel() {
    if let Some(missing) = missing_tool() {
        return skip(missing);
    }
    let kernel = match bring_smoke() {
        Ok(kernel) => kernel,
        Err(error) => return skip(format_args!("no kernel for a guest: {error}")),
    };
    let folder = scratch();
    let disk = folder.path().join("program");
    image::program_disk(&program(), &disk).expect("the program can be packed");
    let accelerator = Accelerator::find(&kernel, &folder.path().join("probe")).expect("QEMU starts");
    for theme in theme::all().into_iter().filter(|theme| theme.smoke) {
        let role = Role::Small { program: disk.clone(), modules: theme.modules.clone() };
        // A guest that does not come up, as on a machine without a processor to spare, says nothing of the program.
        let mut guest = match Guest::boot(&kernel, accelerator, &role, &folder.path().join("guest")) {
            Ok(guest) => guest,
            Err(why) => return skip(format_args!("no guest comes up: {}", why.lines().next().unwrap_or_default())),
        };
        let results = guest.run(&theme).unwrap_or_else(|why| panic!("{}: {why}", theme.name));
        let problems = judge::problems(&theme, &results);
        assert!(problems.is_empty(), "{} on kernel {}:\n{problems}", theme.name, kernel.package);
    }
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
