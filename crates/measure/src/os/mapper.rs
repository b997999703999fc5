//! What device-mapper says of its thin pools, multipath devices and RAID of LVM.

use std::fs::File;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::kernel::{self, MapperText};
use super::proc::{DeviceNumber, SECTOR_BYTES};
use super::{Root, block};
use model::record::{ArrayState, PathState, PoolMode, PoolState};

/// More targets than this are taken for a mistake.
const MAX_TARGETS: u32 = 4_096;
/// Flag of an answer that was cut off.
const CUT_OFF: u32 = 1 << 8;
/// Bytes of a target's record before its text.
const RECORD_BYTES: usize = 40;

/// What device-mapper says of a device with one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mapped {
    /// A thin pool.
    Pool(PoolState),
    /// Paths, each by its number (`8:16`) and whether it is usable.
    Paths(Vec<(String, bool)>),
    /// An array.
    Array(ArrayState),
}

/// Of the device at `directory` in `/sys`; `None` where it is another kind of device, or the program may not ask (it takes root).
pub fn state(root: &Root, directory: &Path) -> Option<Mapped> {
    if !root.exists(directory.join("dm")) {
        return None;
    }
    let number: DeviceNumber = root.value(directory.join("dev"))?.parse().ok()?;
    let control = root.path("/dev/mapper/control");
    let control = control
        .metadata()
        .is_ok_and(|found| found.file_type().is_char_device())
        .then(|| File::open(control).ok())
        .flatten()?;
    let asked = |what: MapperText| -> Option<Target> {
        let [target] = targets(&kernel::ask_mapper(&control, encoded(number), what).ok()?)?.try_into().ok()?;
        Some(target)
    };
    let target = asked(MapperText::Status)?;
    // Its status counts blocks; how large they are is in its table.
    let block_bytes = || block_bytes(&asked(MapperText::Table)?.text);
    target.state(block_bytes)
}

/// As the kernel writes a number of a device in 32 bits.
fn encoded(number: DeviceNumber) -> u64 {
    let DeviceNumber { major, minor } = number;
    u64::from((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12))
}

/// A target: what a span of a device is mapped by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    kind: String,
    text: String,
}

/// The targets of an answer; `None` where it is cut off or contradicts itself.
fn targets(answer: &[u8]) -> Option<Vec<Target>> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let (start, count, flags) = (word(16)? as usize, word(20)?, word(28)?);
    if flags & CUT_OFF != 0 || count > MAX_TARGETS {
        return None;
    }
    let records = answer.get(start..)?;
    let (mut at, mut found) = (0_usize, Vec::new());
    for _ in 0..count {
        let record = records.get(at..at.checked_add(RECORD_BYTES)?)?;
        let next = u32::from_ne_bytes(record[20..24].try_into().ok()?) as usize;
        let text = until_nul(records.get(at + RECORD_BYTES..)?);
        found.push(Target { kind: until_nul(&record[24..]), text });
        // From the first record, and always farther.
        at = Some(next).filter(|next| *next > at)?;
    }
    Some(found)
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Target {
    fn state(&self, block_bytes: impl FnOnce() -> Option<u64>) -> Option<Mapped> {
        match self.kind.as_str() {
            "thin-pool" => pool(&self.text, block_bytes()).map(Mapped::Pool),
            "multipath" => paths(&self.text).map(Mapped::Paths),
            "raid" => array(&self.text).map(Mapped::Array),
            _ => None,
        }
    }
}

/// Of the table of a pool: `253:0 253:1 128 0 1 skip_block_zeroing`, in sectors.
fn block_bytes(table: &str) -> Option<u64> {
    table.split_ascii_whitespace().nth(2)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES).filter(|bytes| *bytes > 0)
}

/// `2 57/1024 900/1000 - rw no_discard_passdown queue_if_no_space - 1024`, or `Fail`.
fn pool(status: &str, block_bytes: Option<u64>) -> Option<PoolState> {
    let words: Vec<&str> = status.split_ascii_whitespace().collect();
    if matches!(words.as_slice(), ["Fail" | "Error"]) {
        return Some(PoolState { mode: PoolMode::Failed, ..PoolState::default() });
    }
    let part = |at: usize| -> Option<(u64, u64)> {
        let (used, all) = words.get(at)?.split_once('/')?;
        let (used, all) = (used.parse().ok()?, all.parse().ok()?);
        (used <= all && all > 0).then_some((used, all))
    };
    let mode = match *words.get(4)? {
        "rw" => PoolMode::ReadWrite,
        "ro" => PoolMode::ReadOnly,
        "out_of_data_space" => PoolMode::OutOfDataSpace,
        _ => return None,
    };
    let (metadata, data) = (part(1), part(2));
    let bytes = |blocks: Option<u64>| blocks?.checked_mul(block_bytes?);
    Some(PoolState {
        mode,
        data_bytes: bytes(data.map(|(_, all)| all)),
        data_used_bytes: bytes(data.map(|(used, _)| used)),
        metadata_blocks: metadata.map(|(_, all)| all),
        metadata_used_blocks: metadata.map(|(used, _)| used),
    })
}

/// `2 0 0 0 1 1 A 0 2 2 8:0 A 0 0 1 8:16 F 1 0 1`: features, hardware handler, groups of paths, the next group, and of each group its
/// state, its selector, paths, and arguments of each path.
fn paths(status: &str) -> Option<Vec<(String, bool)>> {
    let mut words = status.split_ascii_whitespace();
    let skip_counted = |words: &mut std::str::SplitAsciiWhitespace<'_>| -> Option<()> {
        let count: usize = words.next()?.parse().ok()?;
        (0..count).try_for_each(|_| words.next().map(drop))
    };
    skip_counted(&mut words)?;
    skip_counted(&mut words)?;
    let groups: usize = words.next()?.parse().ok()?;
    words.next()?;
    let mut found = Vec::new();
    // Each turn takes words, so a count that is too large ends with them.
    for _ in 0..groups {
        words.next()?;
        skip_counted(&mut words)?;
        let paths: usize = words.next()?.parse().ok()?;
        let arguments: usize = words.next()?.parse().ok()?;
        for _ in 0..paths {
            let name = words.next()?.to_owned();
            let is_usable = match words.next()? {
                "A" => true,
                "F" => false,
                _ => return None,
            };
            words.next()?;
            (0..arguments).try_for_each(|_| words.next().map(drop))?;
            found.push((name, is_usable));
        }
    }
    Some(found)
}

/// `raid1 2 AD 4096/4096 recover 0 …`: a letter for each member, `D` for one that failed, `-` for one that is not there.
fn array(status: &str) -> Option<ArrayState> {
    let words: Vec<&str> = status.split_ascii_whitespace().collect();
    let [_, members, health, _, rest @ ..] = words.as_slice() else { return None };
    let members: u32 = members.parse().ok()?;
    if health.len() != members as usize || !health.chars().all(|state| matches!(state, 'A' | 'a' | 'D' | '-')) {
        return None;
    }
    let missing = u32::try_from(health.chars().filter(|state| matches!(state, 'D' | '-')).count()).ok();
    let action = rest.first().map(|action| (*action).to_owned());
    Some(ArrayState { action, members: Some(members), missing, ..ArrayState::default() })
}

/// States of disks (SCSI, NVMe) that serve no requests.
const GONE: [&str; 7] = ["offline", "transport-offline", "deleted", "cancel", "dead", "deleting", "deleting (no IO)"];

/// The beginning of the name by which multipath tools know their devices.
const MULTIPATH: &str = "mpath-";

/// The paths of the device at `directory`: what device-mapper says of each, and the kernel of the disk. `None` for other devices.
pub fn path_state(root: &Root, directory: &Path, said: Option<&[(String, bool)]>) -> Option<PathState> {
    let is_multipath = || root.value(directory.join("dm/uuid")).is_some_and(|uuid| uuid.starts_with(MULTIPATH));
    if said.is_none() && !is_multipath() {
        return None;
    }
    let disks = block::linked(root, directory, "slaves");
    if disks.is_empty() {
        return None;
    }
    let usable = |disk: &Path| -> Option<bool> {
        let number = root.value(disk.join("dev"));
        let said = said.and_then(|said| said.iter().find(|(name, _)| Some(name) == number.as_ref()));
        // A disk that is offline is lost, also before a request has failed on it. One that runs may be lost all the same.
        let is_gone = root.value(disk.join("device/state")).is_some_and(|state| GONE.contains(&state.as_str()));
        if is_gone { Some(false) } else { said.map(|(_, is_usable)| *is_usable) }
    };
    let states: Vec<(String, Option<bool>)> = disks.iter().map(|disk| (block::file_name(disk), usable(disk))).collect();
    let all: Option<Vec<bool>> = states.iter().map(|(_, state)| *state).collect();
    let lost = states.iter().filter(|(_, state)| *state == Some(false)).map(|(name, _)| name.clone()).collect();
    let count = |usable: Vec<bool>| u32::try_from(usable.into_iter().filter(|usable| *usable).count()).ok();
    Some(PathState { paths: u32::try_from(states.len()).ok()?, usable: all.and_then(count), lost })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pool_says_how_full_it_is_and_what_it_lets_volumes_do() {
        let found = pool(
            "2 57/1024 900/1000 - rw no_discard_passdown queue_if_no_space - 1024",
            block_bytes("253:0 253:1 128 0 1 x"),
        )
        .unwrap();
        assert_eq!((found.data_bytes, found.data_used_bytes), (Some(1_000 << 16), Some(900 << 16)));
        assert_eq!(
            (found.metadata_used_blocks, found.metadata_blocks, found.mode),
            (Some(57), Some(1_024), PoolMode::ReadWrite)
        );
        let mode = |status: &str| pool(status, None).map(|pool| pool.mode);
        assert_eq!(mode("2 57/1024 1000/1000 - out_of_data_space discard_passdown"), Some(PoolMode::OutOfDataSpace));
        assert_eq!(
            (mode("1 1/2 1/2 - ro x"), mode("Fail"), mode("")),
            (Some(PoolMode::ReadOnly), Some(PoolMode::Failed), None)
        );
        let odd = pool("1 9/2 18446744073709551616/1 - rw", Some(u64::MAX)).unwrap();
        assert_eq!(odd, PoolState::default(), "numbers that cannot be are unknown");
        assert_eq!(pool("1 1/2 9/10 - rw", Some(u64::MAX)).unwrap().data_bytes, None);
        assert_eq!([block_bytes(""), block_bytes("a b 0"), block_bytes("a b 18446744073709551615")], [None; 3]);
    }

    #[test]
    fn paths_are_read_whatever_their_selector_says() {
        let said = |status: &str| paths(status);
        let two = "2 0 0 0 2 1 A 0 1 2 8:0 A 0 0 1 E 0 1 2 8:16 F 1 0 1 ";
        assert_eq!(said(two), Some(vec![("8:0".into(), true), ("8:16".into(), false)]));
        assert_eq!(said("2 0 0 0 1 1 A 0 1 0 8:0 A 0"), Some(vec![("8:0".into(), true)]));
        for broken in
            ["", "2 0 0 0 1 1 A 0 18446744073709551615 0 8:0 A 0", "99 0", "2 0 0 0 1 1 A 0 1 0 8:0 X 0", "-1"]
        {
            assert_eq!(said(broken), None, "{broken}");
        }
    }

    #[test]
    fn an_array_of_lvm_lacks_the_members_that_failed() {
        let found = array("raid1 2 AD 8192/8192 idle 0 0 -").unwrap();
        assert_eq!((found.members, found.missing, found.action.as_deref()), (Some(2), Some(1), Some("idle")));
        assert_eq!(array("raid1 2 aA 0/8192 recover 0").unwrap().missing, Some(0));
        for broken in ["", "raid1 2 A 1/1 idle", "raid1 4294967295 AA 1/1", "raid1 2 xx 1/1 idle"] {
            assert_eq!(array(broken), None, "{broken}");
        }
    }

    /// An answer as the kernel writes it.
    fn answer(targets: &[(u64, &str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0; 312];
        bytes[16..20].copy_from_slice(&312_u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&(targets.len() as u32).to_ne_bytes());
        for (sectors, kind, status) in targets {
            let mut record = vec![0; RECORD_BYTES];
            record[8..16].copy_from_slice(&sectors.to_ne_bytes());
            record[24..24 + kind.len()].copy_from_slice(kind.as_bytes());
            record.extend(status.as_bytes());
            record.resize((record.len() + 1).next_multiple_of(8), 0);
            let next = (bytes.len() - 312 + record.len()) as u32;
            record[20..24].copy_from_slice(&next.to_ne_bytes());
            bytes.extend(record);
        }
        bytes
    }

    #[test]
    fn each_target_of_an_answer_is_read() {
        let paths = "2 0 0 0 1 1 A 0 1 0 8:0 A 0";
        let found = targets(&answer(&[(2_048, "multipath", paths), (8, "linear", "")])).unwrap();
        let kinds: Vec<&str> = found.iter().map(|target| target.kind.as_str()).collect();
        assert_eq!(kinds, ["multipath", "linear"]);
        assert!(matches!(found[0].state(|| None), Some(Mapped::Paths(_))) && found[1].state(|| None).is_none());
        let mut cut = answer(&[(8, "linear", "")]);
        cut[28..32].copy_from_slice(&CUT_OFF.to_ne_bytes());
        assert_eq!(targets(&cut), None);
        let mut ring = answer(&[(8, "linear", ""), (8, "linear", "")]);
        ring[312 + 20..312 + 24].fill(0);
        assert_eq!(targets(&ring), None);
        assert_eq!(encoded(DeviceNumber { major: 253, minor: 0x1_0203 }), 0x1020_fd03);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(
            head in proptest::collection::vec(any::<u8>(), 0..400),
            kind in prop_oneof![Just("thin-pool"), Just("multipath"), Just("raid")],
            status in "[0-9A-Fa-z/ :-]{0,60}|([0-9]{1,20}[ /]){0,9}",
            sectors in any::<u64>(),
        ) {
            let _ = targets(&head);
            for target in targets(&answer(&[(sectors, kind, &status)])).unwrap() {
                let _ = target.state(|| block_bytes(&status));
            }
        }
    }
}
