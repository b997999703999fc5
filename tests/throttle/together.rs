//! A limit that two volumes share is distinguished from limits of their own: two loop devices over one device in memory, each throttled by
//! itself, and the device below them both. Each test has devices of its own, and little to compute: they go on beside each other.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::group::{Counted, Group};
use crate::skip::skip;
use plimsoll::analysis::{Finding, LatencyTarget, Message, Together, TogetherVerdict, analyse};
use plimsoll::record::{Run, Step, store};

/// Requests a second of each volume, and of both.
const EACH: u32 = 1_500;
const BOTH: u32 = 2_000;
const ZRAM: &str = "/sys/class/zram-control";
const VOLUME_MIB: u32 = 16;
/// What a processor that others use too may take of a rate, as a share, and how often it is tried.
const NEAR: f64 = 0.08;
const ATTEMPTS: u32 = 3;

/// A block device in memory, removed when it is dropped.
struct Memory(String);

impl Memory {
    fn new() -> Result<Self, String> {
        let reported = |error: std::io::Error| format!("no device in memory can be made by `{ZRAM}/hot_add`: {error}");
        let memory = Self(fs::read_to_string(format!("{ZRAM}/hot_add")).map_err(reported)?.trim().to_owned());
        let size = format!("/sys/block/zram{}/disksize", memory.0);
        fs::write(&size, format!("{}M", 2 * VOLUME_MIB)).map_err(|error| format!("`{size}`: {error}"))?;
        Ok(memory)
    }

    fn path(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(error) = fs::write(format!("{ZRAM}/hot_remove"), &self.0) {
            eprintln!("note: `{}` could not be removed: {error}", self.path());
        }
    }
}

/// A loop device over a part of another device, taken down when it is dropped.
struct Part(String);

impl Part {
    /// Number `part` of parts that are all equally long.
    fn new(of: &str, part: u32) -> Result<Self, String> {
        let (offset, size) = (format!("--offset={}M", part * VOLUME_MIB), format!("--sizelimit={VOLUME_MIB}M"));
        let made = Command::new("losetup").args(["--find", "--show", "--direct-io=on", &offset, &size, of]).output();
        let made = made.map_err(|error| format!("losetup cannot be started: {error}"))?;
        let reported = String::from_utf8_lossy(&made.stderr);
        if !made.status.success() {
            return Err(format!("no loop device can be made: {}", reported.trim()));
        }
        Ok(Self(String::from_utf8_lossy(&made.stdout).trim().to_owned()))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

fn number(device: &str) -> Result<String, String> {
    let file = format!("/sys/class/block/{}/dev", device.rsplit('/').next().unwrap_or_default());
    fs::read_to_string(&file).map(|text| text.trim().to_owned()).map_err(|error| format!("`{file}`: {error}"))
}

struct Place {
    // Dropped in this order: what lies on another first.
    parts: [Part; 2],
    memory: Memory,
    group: Group,
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Result<Self, String> {
        let memory = Memory::new()?;
        let parts = [Part::new(&memory.path(), 0)?, Part::new(&memory.path(), 1)?];
        let group = Group::on(number(&memory.path())?)?;
        for Part(part) in &parts {
            group.limit_device(&number(part)?, Counted::Requests, EACH)?;
        }
        Ok(Self { parts, memory, group, directory: tempfile::tempdir().map_err(|error| error.to_string())? })
    }

    /// A run on both parts, and what the program said meanwhile.
    fn run(&self, words: &[&str]) -> (Run, String) {
        let runs = self.directory.path().join("runs");
        let _ = fs::remove_dir_all(&runs);
        let mut command = self.group.command(Path::new(env!("CARGO_BIN_EXE_plimsoll")));
        command.args(["io", "sweep", "--together", "--path", &self.parts[0].0, "--path", &self.parts[1].0]);
        command.args(words).args(["--quiet", "--runs"]).arg(&runs);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let run = fs::read_dir(&runs).unwrap().map(|run| run.unwrap().path()).max().unwrap();
        (store::load(&run).unwrap(), said)
    }

    /// What the program finds of both parts, and what it said meanwhile: that they give `together` and each `alone`. Where others leave
    /// it too little of the machine for these rates, or to tell, it tries again.
    fn compare(&self, verdict: &TogetherVerdict, together: u32, alone: u32) -> String {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (run, said) = self.run(&["--pattern=randread", "--depth=16", "--duration=4", "--warmup=1"]);
            let found = analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
                Finding::Together(found) => Some(found),
                _ => None,
            });
            let found = found.unwrap();
            let is_as_planted = found.verdict == *verdict && is_near(&found, together, alone);
            if is_as_planted {
                assert_eq!(found.devices_shared, [self.below()]);
                return said;
            }
            assert!(attempts < ATTEMPTS, "{}\n{found:#?}", found.sentence());
            eprintln!("repeated: {}", found.sentence());
        }
    }

    /// Name of the device below both parts.
    fn below(&self) -> String {
        self.memory.path().replace("/dev/", "")
    }

    fn writes_to_one_volume_wait_for_no_other(&self) {
        let [a, b] = [0, 1].map(|part: usize| self.parts[part].0.replace("/dev/", ""));
        let words =
            ["--pattern=randwrite", "--durable=fsync:1", "--depth=4", "--duration=1", "--warmup=0", "--rounds=1"];
        let (run, _) = self.run(&[&words[..], &["--destroy", &a, "--destroy", &b]].concat());
        let flushes = |step: &Step| {
            let of = |name: &String| step.devices.iter().find(|device| device.name == *name).unwrap().flushes;
            Some((of(&a)? > 0, of(&b)? > 0))
        };
        let seen: Vec<_> = run.steps.iter().map(flushes).collect();
        assert_eq!(seen, [Some((true, false)), Some((false, true)), Some((true, true))], "A, B, A+B");
    }
}

/// Whether both parts together, and each alone, give these rates.
fn is_near(found: &Together, together: u32, alone: u32) -> bool {
    let point = found.point().unwrap();
    let near = |value: f64, planted: u32| (value / f64::from(planted) - 1.0).abs() <= NEAR;
    near(point.together.per_s, together) && point.alone.iter().all(|one| near(one.per_s, alone))
}

/// Two volumes with limits of their own; or says why there are none.
fn place() -> Option<Place> {
    Place::new().map_err(|why| skip(format_args!("no limit that volumes share was tested: {why}"))).ok()
}

#[test]
fn limits_of_volumes_of_their_own_are_not_said_to_be_shared() {
    let Some(place) = place() else { return };
    let said = place.compare(&TogetherVerdict::NotShared, 2 * EACH, EACH);
    assert!(said.contains(&format!("several of these volumes lie on `{}`", place.below())), "{said}");

    place.writes_to_one_volume_wait_for_no_other();
}

#[test]
fn a_limit_of_both_volumes_is_reported_as_shared() {
    let Some(place) = place() else { return };
    place.group.limit(Counted::Requests, BOTH);
    place.compare(&TogetherVerdict::Shared, BOTH, EACH);
}
