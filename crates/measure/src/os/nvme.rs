//! What an NVMe device states about itself: identify, its log of SMART and health, and the temperatures that the kernel shows.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::Root;
use super::block::file_name;
use super::kernel::{self, NvmeQuestion};
use super::proc::DeviceNumber;
use model::record::{NvmeState, NvmeWarning, PathState};

/// The first version of the standard in which reading the log can leave its events waiting.
const VERSION_1_3: u32 = 0x0001_0300;
const ZERO_CELSIUS_K: i32 = 273;

/// What the device at `directory` in `/sys` states; `None` for another device, and where nothing of it may be read.
pub fn state(root: &Root, directory: &Path) -> Option<NvmeState> {
    // A controller that is being reset or connected again would keep the caller waiting.
    let controller = controllers(root, directory).into_iter().find(|controller| is_live(root, controller))?;
    let mut state = asked(root, &controller, directory).unwrap_or_default();
    let degrees = |file: &str| sensor(root, &controller, file);
    // The sensor asks the device once more.
    state.temperature_c = state.temperature_c.or_else(|| degrees("temp1_input"));
    state.critical_temperature_c = state.critical_temperature_c.or_else(|| degrees("temp1_crit"));
    Some(state).filter(|state| *state != NvmeState::default())
}

/// The paths of a device that the kernel reaches by several controllers; `None` for others.
pub fn paths(root: &Root, directory: &Path) -> Option<PathState> {
    // The path of `nvme0n1` by the controller `nvme2` is `nvme0c2n1`.
    let name = file_name(directory);
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    let path = |controller: &Path| {
        let number = file_name(controller);
        let path = controller.join(format!("nvme{subsystem}c{}n{namespace}", number.strip_prefix("nvme")?));
        root.exists(&path).then_some(path)
    };
    let (mut paths, mut usable, mut lost) = (0_u32, 0_u32, Vec::new());
    for controller in controllers(root, directory) {
        let Some(path) = path(&controller) else { continue };
        paths = paths.checked_add(1)?;
        let access = root.value(path.join("ana_state"));
        match access.as_deref() {
            _ if !is_live(root, &controller) => lost.push(file_name(&controller)),
            Some("persistent-loss") => lost.push(file_name(&controller)),
            // One that stands by is not lost.
            Some("inaccessible" | "change") => {}
            _ => usable = usable.checked_add(1)?,
        }
    }
    (paths > 0).then_some(PathState { paths, usable: Some(usable), lost })
}

/// Directories of the controllers in `/sys`: of one that the device belongs to, or of all of its subsystem.
fn controllers(root: &Root, directory: &Path) -> Vec<PathBuf> {
    if !file_name(directory).starts_with("nvme") {
        return Vec::new();
    }
    let Some(above) = root.canonical(directory.join("device")) else { return Vec::new() };
    if is_controller(root, &above) {
        return vec![above];
    }
    let names = root.names(&above).into_iter().filter(|name| name.starts_with("nvme"));
    let below = names.filter_map(|name| root.canonical(above.join(name)));
    below.filter(|directory| is_controller(root, directory)).collect()
}

fn is_controller(root: &Root, directory: &Path) -> bool {
    root.exists(directory.join("state")) && root.exists(directory.join("dev"))
}

fn is_live(root: &Root, controller: &Path) -> bool {
    root.value(controller.join("state")).as_deref() == Some("live")
}

/// A temperature in degrees Celsius that the kernel shows to every user, in thousandths of one.
fn sensor(root: &Root, controller: &Path, file: &str) -> Option<i32> {
    // Kernels before 5.12 have the sensors at the PCI device.
    let places = [controller.to_owned(), controller.join("device/hwmon")];
    let sensors = places.iter().flat_map(|place| root.names(place).into_iter().map(move |name| place.join(name)));
    let mut sensors = sensors.filter(|place| file_name(place).starts_with("hwmon"));
    let thousandths = sensors.find_map(|place| root.number::<i32>(place.join(file)))?;
    // The kernel takes 273.15 from whole kelvins: the nearest degree is the device's own. 0 K is what one that does not measure states.
    Some(thousandths.checked_add(500)?.div_euclid(1_000)).filter(|degrees| *degrees > -ZERO_CELSIUS_K)
}

/// What the controller answers, which it does for root alone.
fn asked(root: &Root, controller: &Path, directory: &Path) -> Option<NvmeState> {
    if kernel::effective_user() != 0 {
        return None;
    }
    let number: DeviceNumber = root.value(controller.join("dev"))?.parse().ok()?;
    let node = root.path(Path::new("/dev").join(file_name(controller)));
    // The node may be another device's, as in a container.
    let found = node.metadata().ok()?;
    let is_ours = found.file_type().is_char_device()
        && (libc::major(found.rdev()), libc::minor(found.rdev())) == (number.major, number.minor);
    let file = is_ours.then(|| File::open(node).ok()).flatten()?;
    let block_bytes = root.number(directory.join("queue/logical_block_size"));
    let mut state = NvmeState::default();
    let mut keeps_events = false;
    // A device that does not answer is asked nothing more: each question may take a minute.
    match kernel::ask_nvme(&file, NvmeQuestion::Controller) {
        Ok(answer) => {
            keeps_events = word(&answer, 80).is_some_and(|version| version >= VERSION_1_3);
            identified(&mut state, &answer, block_bytes);
        }
        Err(error) if error.raw_os_error().is_some() => return None,
        Err(_) => {}
    }
    let namespace = root.number(directory.join("nsid"));
    if let Some(answer) = namespace.and_then(|number| kernel::ask_nvme(&file, NvmeQuestion::Namespace(number)).ok()) {
        of_namespace(&mut state, &answer, block_bytes);
    }
    if let Ok(answer) = kernel::ask_nvme(&file, NvmeQuestion::Health { keeps_events }) {
        health(&mut state, &answer);
    }
    Some(state)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Whether a page says nothing: devices and hypervisors that do not have it answer with one byte throughout.
fn is_empty(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0) || page.iter().all(|byte| *byte == u8::MAX)
}

/// What Identify Controller states.
fn identified(state: &mut NvmeState, page: &[u8], block_bytes: Option<u64>) {
    if is_empty(page) {
        return;
    }
    state.critical_temperature_c = half(page, 268).and_then(celsius);
    state.volatile_write_cache = page.get(525).map(|cache| cache & 1 == 1);
    state.atomic_write_bytes = atomic(page, 526, block_bytes);
    state.atomic_write_power_fail_bytes = atomic(page, 528, block_bytes);
}

/// What Identify Namespace states: where its own atomic writes are defined, they are at least those of the controller.
fn of_namespace(state: &mut NvmeState, page: &[u8], block_bytes: Option<u64>) {
    const DEFINES_ATOMIC_WRITES: u8 = 1 << 1;
    if is_empty(page) || page.get(24).is_none_or(|features| features & DEFINES_ATOMIC_WRITES == 0) {
        return;
    }
    // Writes that cross a boundary (NABSN, NABSPF) are not atomic, and where boundaries lie no one knows here.
    if [40, 44].iter().any(|at| half(page, *at) != Some(0)) {
        (state.atomic_write_bytes, state.atomic_write_power_fail_bytes) = (None, None);
        return;
    }
    // A namespace that states 0, which is one block, has those of the controller.
    let larger = |own: Option<u64>, controllers: Option<u64>| own.max(controllers);
    state.atomic_write_bytes = larger(atomic(page, 34, block_bytes), state.atomic_write_bytes);
    state.atomic_write_power_fail_bytes = larger(atomic(page, 36, block_bytes), state.atomic_write_power_fail_bytes);
}

/// A number of blocks that is one less than it means.
fn atomic(page: &[u8], at: usize, block_bytes: Option<u64>) -> Option<u64> {
    (u64::from(half(page, at)?) + 1).checked_mul(block_bytes?)
}

/// Kelvin; 0 where the device does not state it.
fn celsius(kelvin: u16) -> Option<i32> {
    (kelvin != 0).then(|| i32::from(kelvin) - ZERO_CELSIUS_K)
}

/// What the log of SMART and health states.
fn health(state: &mut NvmeState, page: &[u8]) {
    if is_empty(page) {
        return;
    }
    let percent = |at: usize| page.get(at).copied().filter(|percent| *percent <= 100);
    let warnings = page.first().map(|bits| warnings(*bits));
    // A device that has no spare blocks and does not warn of it does not count them.
    let counts = |spare: &u8| *spare > 0 || warnings.iter().flatten().any(|warning| *warning == NvmeWarning::SpareLow);
    state.temperature_c = half(page, 1).and_then(celsius);
    state.spare_percent = percent(3).filter(counts);
    state.spare_threshold_percent = percent(4).filter(|_| state.spare_percent.is_some());
    state.warnings = warnings;
    state.used_percent = page.get(5).copied();
    // More than 64 bits of errors are garbage.
    let errors = page.get(160..176).and_then(|bytes| bytes.try_into().ok()).map(u128::from_le_bytes);
    state.media_errors = errors.and_then(|errors| u64::try_from(errors).ok());
}

/// Bits 6 and 7 mean nothing so far.
fn warnings(bits: u8) -> Vec<NvmeWarning> {
    use NvmeWarning::{BackupFailed, MemoryRegion, ReadOnly, SpareLow, Temperature, Unreliable};
    let all = [SpareLow, Temperature, Unreliable, ReadOnly, BackupFailed, MemoryRegion];
    all.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, warning)| warning).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn log() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[..6].copy_from_slice(&[0b10_0011, 0x43, 0x01, 100, 10, 7]);
        page[160] = 3;
        page
    }

    #[test]
    fn the_log_states_health() {
        let mut state = NvmeState::default();
        health(&mut state, &log());
        let warnings = vec![NvmeWarning::SpareLow, NvmeWarning::Temperature, NvmeWarning::MemoryRegion];
        assert_eq!(state.warnings, Some(warnings));
        assert_eq!((state.temperature_c, state.used_percent, state.media_errors), (Some(50), Some(7), Some(3)));
        assert_eq!((state.spare_percent, state.spare_threshold_percent), (Some(100), Some(10)));
    }

    #[test]
    fn impossible_numbers_and_empty_pages_are_unknown() {
        let mut page = log();
        page[1..5].copy_from_slice(&[0, 0, 101, 10]);
        page[160..176].fill(0xff);
        let mut state = NvmeState::default();
        health(&mut state, &page);
        assert_eq!((state.temperature_c, state.media_errors), (None, None));
        assert_eq!((state.spare_percent, state.spare_threshold_percent), (None, None));
        (page[0], page[3]) = (0, 0);
        health(&mut state, &page);
        assert_eq!((state.spare_percent, state.warnings), (None, Some(Vec::new())), "none left, and no warning");
        for byte in [0, 0xff] {
            let mut state = NvmeState::default();
            let page = vec![byte; 4_096];
            health(&mut state, &page[..512]);
            identified(&mut state, &page, Some(512));
            of_namespace(&mut state, &page, Some(512));
            assert_eq!(state, NvmeState::default(), "{byte}");
        }
    }

    #[test]
    fn atomic_writes_are_those_of_the_namespace_where_it_states_them() {
        let mut page = vec![0; 4_096];
        (page[268], page[269], page[525], page[526], page[528]) = (0x75, 0x01, 1, 127, 7);
        let mut state = NvmeState::default();
        identified(&mut state, &page, Some(512));
        assert_eq!((state.critical_temperature_c, state.volatile_write_cache), (Some(100), Some(true)));
        let mut space = vec![0; 4_096];
        space[36] = 31;
        of_namespace(&mut state, &space, Some(512));
        assert_eq!((state.atomic_write_bytes, state.atomic_write_power_fail_bytes), (Some(64 << 10), Some(4 << 10)));
        space[24] = 2;
        of_namespace(&mut state, &space, Some(512));
        assert_eq!((state.atomic_write_bytes, state.atomic_write_power_fail_bytes), (Some(64 << 10), Some(16 << 10)));
        identified(&mut state, &page, None);
        assert_eq!(state.atomic_write_bytes, None, "blocks of an unknown size");
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in proptest::collection::vec(any::<u8>(), 0..600), block in any::<Option<u64>>()) {
            let mut state = NvmeState::default();
            identified(&mut state, &page, block);
            of_namespace(&mut state, &page, block);
            health(&mut state, &page);
            let _ = (state.health(), state.words(), state.troubles(), state.wear());
        }
    }

    /// A subsystem of two controllers, each with its sensors, and the device above both.
    fn machine(states: [&str; 2]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        let device = PathBuf::from("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
        fs::create_dir_all(at("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")).unwrap();
        symlink("..", at("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/device")).unwrap();
        for (number, state) in states.iter().enumerate() {
            let controller = at(&format!("sys/devices/pci/nvme/nvme{number}"));
            fs::create_dir_all(controller.join("device/hwmon/hwmon3")).unwrap();
            fs::write(controller.join("state"), format!("{state}\n")).unwrap();
            fs::write(controller.join("dev"), "0:0\n").unwrap();
            fs::write(controller.join("device/hwmon/hwmon3/temp1_input"), "40850\n").unwrap();
            fs::write(controller.join("device/hwmon/hwmon3/temp1_crit"), "-273150\n").unwrap();
            fs::create_dir_all(controller.join(format!("nvme0c{number}n1"))).unwrap();
            let link = at(&format!("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme{number}"));
            symlink(format!("../../../pci/nvme/nvme{number}"), link).unwrap();
        }
        (directory, device)
    }

    #[test]
    fn a_controller_that_is_away_is_a_lost_path_and_is_not_asked() {
        let (directory, device) = machine(["connecting", "live"]);
        let root = Root::at(directory.path());
        let lost = PathState { paths: 2, usable: Some(1), lost: vec!["nvme0".to_owned()] };
        assert_eq!(paths(&root, &device), Some(lost));
        // Nodes of the machine are not there, so all that is known is what the kernel shows.
        let known = NvmeState { temperature_c: Some(41), ..NvmeState::default() };
        assert_eq!(state(&root, &device), Some(known));
        let (directory, device) = machine(["live", "live"]);
        let standby = directory.path().join("sys/devices/pci/nvme/nvme1/nvme0c1n1/ana_state");
        fs::write(standby, "inaccessible\n").unwrap();
        let one = PathState { paths: 2, usable: Some(1), lost: Vec::new() };
        assert_eq!(paths(&Root::at(directory.path()), &device), Some(one));
        let (directory, device) = machine(["connecting", "deleting"]);
        assert_eq!(state(&Root::at(directory.path()), &device), None);
    }
}
