//! `plimsoll io run` on block devices that may hold something: loop devices over files of ours, never a real disk.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::place::{Answer, Place};
use crate::skip::skip;

/// A loop device and a file system on it, taken down again however the test ends.
struct Disk {
    device: String,
    mount_point: Option<std::path::PathBuf>,
}

impl Disk {
    fn over(file: &Path) -> Option<Self> {
        File::create(file).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        made.status
            .success()
            .then(|| Self { device: String::from_utf8(made.stdout).unwrap().trim().to_owned(), mount_point: None })
    }

    fn name(&self) -> &str {
        self.device.rsplit('/').next().unwrap()
    }

    fn make_file_system(&self) -> bool {
        Command::new("mkfs.ext4").args(["-q", &self.device]).status().is_ok_and(|status| status.success())
    }

    fn mount(&mut self, at: &Path) -> bool {
        std::fs::create_dir(at).unwrap();
        let mounted = Command::new("mount").arg(&self.device).arg(at).status().is_ok_and(|status| status.success());
        self.mount_point = mounted.then(|| at.to_owned());
        mounted
    }

    fn unmount(&mut self) {
        if let Some(at) = self.mount_point.take() {
            let _ = Command::new("umount").arg(at).status();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

#[test]
fn a_device_is_written_to_only_if_nobody_uses_it_and_all_has_been_said() {
    let place = Place::on_disk();
    let Some(mut disk) = Disk::over(&place.path("image")) else {
        return skip("no loop device can be made here");
    };
    let (device, name) = (disk.device.clone(), disk.name().to_owned());
    let write = |more: &[&str]| {
        let words = ["io", "run", "--path", &device, "--pattern=randwrite", "--duration=1s", "--warmup=0s", "--quiet"];
        place.run(&[&words[..], more].concat())
    };
    let assert_refused = |answer: Answer, reported: &str| {
        assert_eq!(answer.code, Some(2), "{answer}");
        assert!(answer.stderr.contains(reported), "{answer}");
    };
    if !disk.make_file_system() {
        return skip("no file system can be made here");
    }
    let before = std::fs::read(place.path("image")).unwrap();
    assert_refused(write(&[]), "destroys all data on this device");
    assert_refused(write(&[]), &format!("type its name: `--destroy {name}`"));
    assert_refused(write(&["--destroy", "loop"]), "destroys all data on this device");
    assert_refused(write(&["--destroy", &name]), "holds data: ext4");
    assert_refused(write(&["--destroy", &name]), "`--destroy-signature`");
    let file = place.run(&["io", "run", "--path", "image", "--pattern=randwrite", "--destroy", "image"]);
    assert_refused(file, &format!("is part of `{name}`"));
    assert!(std::fs::read(place.path("image")).unwrap() == before, "what was refused has written");
    if disk.mount(&place.path("mounted")) {
        let all = ["--destroy", name.as_str(), "--destroy-signature"];
        assert_refused(write(&all), &format!("cannot be written to: `{name}` is mounted at `"));
        let more = [&all[..], &["--prefill", "--verify"]].concat();
        assert_refused(write(&more), "is mounted at `");
        disk.unmount();
    } else {
        skip("mounted devices: nothing can be mounted here");
    }
    let larger = place.run(&["io", "run", "--path", &device, "--pattern=randread", "--size=1G"]);
    assert_refused(larger, "1 GiB are to be used, but there are only 64 MiB");
    let done = write(&["--destroy", &name, "--destroy-signature", "--json", "--verify"]);
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(done.run()["target"]["facts"]["other"]["device_class"], "block device");
}

#[test]
fn requests_that_a_device_splits_are_not_taken_for_others() {
    let place = Place::on_disk();
    let Some(disk) = Disk::over(&place.path("image")) else {
        return skip("no loop device can be made here");
    };
    let most = format!("/sys/block/{}/queue/max_sectors_kb", disk.name());
    if std::fs::write(most, "128").is_err() {
        return skip("a loop device takes requests of any size here");
    }
    let answer = place.run(&[
        "io",
        "run",
        "--path",
        &disk.device,
        "--pattern=randread",
        "--block-size=1M",
        "--depth=4",
        "--duration=2s",
        "--warmup=0s",
        "--quiet",
        "--json",
    ]);
    assert_eq!(answer.code, Some(0), "{answer}");
    let findings = answer.json()["findings"].to_string();
    assert!(!findings.contains("storage.bytes_disagree"), "{findings}");
}

#[test]
fn many_threads_are_announced_and_their_figures_are_whole() {
    let place = Place::on_disk();
    let jobs = ["io", "run", "--path", "many.dat", "--size=64M", "--pattern=randread", "--depth=512", "--jobs=512"];
    let answer = place.run(&[&jobs[..], &["--duration=2s", "--warmup=0s", "--json"]].concat());
    assert_eq!(answer.code, Some(0), "{answer}");
    let step = &answer.run()["steps"][0];
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let window_ns = number(&step["window"]["duration_ns"]);
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(answer.stderr.contains("512 threads share"), 512 > 32 * cpus, "{answer}");
    // Unknown where the machine gave so little time that it was not read at the window's edges.
    let system_ns = step["process_cpu"]["system_ns"].as_u64();
    assert!(system_ns.is_none_or(|ns| ns <= window_ns * cpus * 11 / 10), "{}", step["process_cpu"]);
    let findings = answer.json()["findings"].to_string();
    assert!(!findings.contains("storage.bytes_disagree") && !findings.contains("page cache"), "{findings}");
}

#[test]
fn the_first_request_that_failed_is_named_with_its_place() {
    let place = Place::on_disk();
    let Some(disk) = Disk::over(&place.path("image")) else {
        return skip("no loop device can be made here");
    };
    // The device stays as long as it was, and reads of what is gone fail.
    File::options().write(true).open(place.path("image")).unwrap().set_len(32 << 20).unwrap();
    let words =
        ["io", "run", "--path", &disk.device, "--pattern=randread", "--depth=4", "--duration=1s", "--warmup=0s"];
    let answer = place.run(&[&words[..], &["--json"]].concat());
    assert_eq!(answer.code, Some(1), "{answer}");
    let notes = answer.run()["notes"].to_string();
    let named = "the first request that failed: cannot read 8192 bytes at offset ";
    assert!(notes.contains(named) && notes.contains(&disk.device) && notes.contains("Input/output error"), "{notes}");
    let findings = answer.json()["findings"].to_string();
    assert!(!findings.contains("storage.bytes_disagree"), "{findings}");
}
