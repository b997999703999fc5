//! The rules for files, and for real loop devices where this user may make them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::block::Member;
use crate::block::layout::{FileState, inspect, lay_over};
use crate::block::stamp::{Cover, fill, write_stamps};
use crate::io::{IoEngine, Opening};
use test_support::skip::skip;

fn refused(paths: &[&Path], purpose: Purpose<'_>) -> (String, Option<String>) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    let error = check(&paths, purpose).map(drop).unwrap_err();
    (error.to_string(), error.hint())
}

fn passes(path: &Path, purpose: Purpose<'_>) -> Checked {
    let begun = Instant::now();
    loop {
        match check(&[path.to_owned()], purpose) {
            // A program that another test starts has everything open that was open here, until it becomes that program.
            Err(TargetError::Block(BlockError::Claimed { .. })) if begun.elapsed() < Duration::from_secs(60) => {
                thread::sleep(Duration::from_millis(10));
            }
            other => return other.unwrap().remove(0),
        }
    }
}

fn naming(name: &str) -> Permission {
    Permission { destroy: vec![name.to_owned()], destroy_signature: false }
}

fn ours(bytes: usize, id: FileId) -> Vec<u8> {
    let mut data = vec![0; bytes];
    fill(&mut data, 1, 1);
    write_stamps(&mut data, 0, 1, id, Cover::Stamp);
    data
}

#[test]
fn a_file_that_plimsoll_laid_out_may_be_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, ours(8192, FileId::new(4))).unwrap();
    let checked = passes(&path, Purpose::Write(&Permission::default()));
    assert_eq!((checked.kind(), checked.id()), (PathKind::File, Some(FileId::new(4))));
}

#[test]
fn a_new_file_may_be_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, "").unwrap();
    assert_eq!(passes(&path, Purpose::Write(&Permission::default())).id(), None);
}

#[test]
fn a_foreign_file_is_written_to_only_if_its_name_was_typed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("system01.dbf");
    let link = directory.path().join("link");
    fs::write(&path, vec![7; 8192]).unwrap();
    symlink(&path, &link).unwrap();

    let (said, hint) = refused(&[&path], Purpose::Write(&Permission::default()));
    assert!(said.ends_with("destroys a file that Plimsoll did not lay out"), "{said}");
    assert!(hint.unwrap().contains("`--destroy system01.dbf`"));
    assert!(refused(&[&path], Purpose::Write(&naming("system02.dbf"))).0.contains("destroys"));
    assert!(refused(&[&path], Purpose::Write(&naming("link"))).0.contains("destroys"));

    for typed in ["system01.dbf", path.to_str().unwrap(), link.to_str().unwrap()] {
        passes(&path, Purpose::Write(&naming(typed)));
    }
    passes(&link, Purpose::Write(&naming(path.to_str().unwrap())));
    passes(&path, Purpose::Read);
    assert_eq!(fs::read(&path).unwrap(), vec![7; 8192], "checking writes nothing");
}

#[test]
fn only_files_and_block_devices_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let (said, hint) = refused(&[directory.path()], Purpose::Read);
    assert!(said.contains("is a directory"));
    assert!(hint.unwrap().contains("plimsoll.dat"));
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(refused(&[&socket], Purpose::Read).0.contains("is a socket"));
    assert!(refused(&[Path::new("/dev/null")], Purpose::Read).0.contains("is a character device"));
    let (said, _) = refused(&[&directory.path().join("missing")], Purpose::Read);
    assert!(said.starts_with("cannot find"), "{said}");
}

#[test]
fn one_file_under_two_names_is_refused_for_reads_too() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name);
    fs::write(name("a"), ours(4096, FileId::new(1))).unwrap();
    fs::write(name("b"), ours(4096, FileId::new(2))).unwrap();
    symlink(name("a"), name("link")).unwrap();
    fs::hard_link(name("a"), name("hard")).unwrap();
    for other in ["a", "link", "hard"] {
        let (said, _) = refused(&[&name("b"), &name("a"), &name(other)], Purpose::Read);
        assert!(said.ends_with("are the same file"), "{said}");
    }
    check(&[name("a"), name("b")], Purpose::Read).unwrap();
}

#[test]
fn a_file_has_one_writer_or_many_readers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, ours(4096, FileId::new(1))).unwrap();
    let permission = Permission::default();
    let readers = (passes(&path, Purpose::Read), passes(&path, Purpose::Read));
    assert!(refused(&[&path], Purpose::Write(&permission)).0.contains("in use by another Plimsoll"));
    drop(readers);
    let _writer = passes(&path, Purpose::Write(&permission));
    assert!(refused(&[&path], Purpose::Read).0.contains("in use by another Plimsoll"));
}

#[test]
fn what_holds_somebodys_data_needs_a_second_permission_in_a_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let all = Permission { destroy_signature: true, ..naming("data") };
    for image in signature::images::all() {
        image.write(&path);
        let (said, hint) = refused(&[&path], Purpose::Write(&naming("data")));
        assert!(said.contains("holds data: ") && said.contains(&image.kind), "{}: {said}", image.kind);
        assert!(!said.contains("blkid") && hint.unwrap().contains("`--destroy-signature`"), "{said}");
        assert!(refused(&[&path], Purpose::Write(&Permission::default())).0.contains("destroys a file"));
        drop(passes(&path, Purpose::Write(&all)));
        drop(passes(&path, Purpose::Read));
    }
}

#[test]
fn our_own_file_needs_no_permission_whatever_its_data_look_like() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let mut data = ours(8192, FileId::new(4));
    data[1_080..1_082].copy_from_slice(b"\x53\xef");
    data[4_086..4_096].copy_from_slice(b"SWAPSPACE2");
    fs::write(&path, data).unwrap();
    passes(&path, Purpose::Write(&Permission::default()));
}

/// What another process does with a file, and the file.
const ROLE: &str = "PLIMSOLL_TEST_ROLE";

/// Another process that has a file open, until it is dropped.
struct Other(std::process::Child);

impl Other {
    fn with(role: &str, path: &Path) -> Self {
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "block::safety::tests::another_process_plays_its_role"])
            .env(ROLE, format!("{role}:{}", path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(io::BufReader::new(other.stdout.take().unwrap()));
        assert!(lines.map_while(Result::ok).any(|line| line.contains("it is open")), "the other process has failed");
        Self(other)
    }

    fn id(&self) -> String {
        format!("process {} (`", self.0.id())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Does nothing unless it is started by [`Other`].
#[test]
fn another_process_plays_its_role() {
    let Ok(asked) = std::env::var(ROLE) else { return };
    let (role, path) = asked.split_once(':').unwrap();
    let file = File::options().read(true).write(role != "flock").open(path).unwrap();
    match role {
        "fcntl" => rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap(),
        "fcntl-shared" => rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockShared).unwrap(),
        "description" => crate::io::lock_description(&file).unwrap(),
        "flock" => file.lock().unwrap(),
        _ => {}
    }
    println!("it is open");
    let _ = io::Read::read(&mut io::stdin(), &mut [0]);
}

#[test]
fn a_file_that_another_process_has_locked_is_never_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![7; 8192]).unwrap();
    let all = Permission { destroy_signature: true, ..naming("data") };
    for (role, how) in
        [("fcntl", "(fcntl)"), ("fcntl-shared", "(fcntl)"), ("description", "(an open-file-description lock)")]
    {
        let other = Other::with(role, &path);
        let (said, hint) = refused(&[&path], Purpose::Write(&all));
        assert!(said.contains("has locked") && said.contains(&other.id()) && said.ends_with(how), "{role}: {said}");
        assert!(!hint.unwrap().contains("--destroy"));
        passes(&path, Purpose::Read);
        drop(other);
        passes(&path, Purpose::Write(&all));
    }
    let _other = Other::with("flock", &path);
    assert!(refused(&[&path], Purpose::Write(&all)).0.contains("is in use by"));
    assert!(refused(&[&path], Purpose::Read).0.contains("is in use by"));
}

#[test]
fn a_lock_of_an_open_file_is_found_where_nobody_says_whose_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, "").unwrap();
    let other = File::options().write(true).open(&path).unwrap();
    crate::io::lock_description(&other).unwrap();
    let (said, _) = refused(&[&path], Purpose::Write(&naming("data")));
    assert!(said.contains("another program has locked"), "{said}");
}

#[test]
fn a_file_that_another_process_may_write_to_is_written_to_only_if_its_name_was_typed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, ours(8192, FileId::new(4))).unwrap();
    let other = Other::with("open", &path);
    let (said, hint) = refused(&[&path], Purpose::Write(&Permission::default()));
    assert!(said.contains("is open for writing by") && said.contains(&other.id()), "{said}");
    assert!(hint.unwrap().contains("`--destroy data`"));
    let checked = passes(&path, Purpose::Write(&naming("data")));
    assert!(checked.notes().iter().any(|note| note.contains(&other.id())), "{:?}", checked.notes());
    drop(checked);
    assert!(passes(&path, Purpose::Read).notes().is_empty());
    drop(other);
    assert!(passes(&path, Purpose::Write(&Permission::default())).notes().is_empty());
}

#[test]
fn a_device_that_another_process_has_locked_or_open_is_treated_alike() {
    let Some(device) = Loop::new(&[]) else { return };
    for role in ["fcntl", "description"] {
        let other = Other::with(role, &device.device);
        let said = device.refused_in_spite_of_all();
        assert!(said.contains("has locked") && said.contains(&other.id()), "{role}: {said}");
    }
    let other = Other::with("open", &device.device);
    let said = refused(&[&device.device], Purpose::Write(&Permission::default())).0;
    assert!(said.contains("is open for writing by") && said.contains(&other.id()), "{said}");
    let checked = passes(&device.device, Purpose::Write(&naming(device.name())));
    assert!(checked.notes().iter().any(|note| note.contains(&other.id())), "{:?}", checked.notes());
}

/// Runs a tool; false if it is missing or fails.
fn run(tool: &str, arguments: &[&str]) -> bool {
    let status = Command::new(tool).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A loop device over a new file, gone at the end of the test.
struct Loop {
    directory: tempfile::TempDir,
    device: PathBuf,
}

impl Loop {
    /// None, and said so, where this user may not make one.
    fn new(options: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let device = Self::over(&image, options)?;
        Some(Self { directory, device })
    }

    fn over(below: &Path, options: &[&str]) -> Option<PathBuf> {
        let made = Command::new("losetup").args(["-f", "--show"]).args(options).arg(below).output();
        match made {
            Ok(made) if made.status.success() => Some(PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())),
            _ => {
                skip("no loop device can be made here");
                None
            }
        }
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }

    /// What is said when everything is permitted.
    fn refused_in_spite_of_all(&self) -> String {
        let all = Permission { destroy_signature: true, ..naming(self.name()) };
        refused(&[&self.device], Purpose::Write(&all)).0
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["-d", self.path()]);
    }
}

#[test]
fn an_idle_device_is_written_to_only_if_its_name_was_typed() {
    let Some(device) = Loop::new(&[]) else { return };
    let (said, hint) = refused(&[&device.device], Purpose::Write(&Permission::default()));
    assert_eq!(said, format!("writing to `{}` destroys all data on this device", device.path()));
    assert!(hint.unwrap().contains(&format!("`--destroy {}`", device.name())));
    assert!(refused(&[&device.device], Purpose::Write(&naming("loop"))).0.contains("destroys"));

    let link = device.directory.path().join("disk");
    symlink(&device.device, &link).unwrap();
    for typed in [device.name(), device.path(), link.to_str().unwrap()] {
        let checked = passes(&link, Purpose::Write(&naming(typed)));
        assert_eq!(checked.kind(), PathKind::BlockDevice);
        assert!(device.refused_in_spite_of_all().contains("for itself alone"), "a second writer is kept away");
        passes(&device.device, Purpose::Read);
    }
    assert!(refused(&[&device.device, &link], Purpose::Read).0.ends_with("are the same device"));
}

#[test]
fn a_file_that_backs_a_device_is_not_written_to() {
    let Some(device) = Loop::new(&[]) else { return };
    let image = device.image();
    let (said, _) = refused(&[&image], Purpose::Write(&naming("image")));
    assert!(said.contains(&format!("is part of `{}`", device.name())), "{said}");
    passes(&image, Purpose::Read);
    let hard = device.directory.path().join("hard");
    fs::hard_link(&image, &hard).unwrap();
    assert!(refused(&[&hard], Purpose::Write(&naming("hard"))).0.contains("is part of"));
}

#[test]
fn a_device_with_a_file_system_needs_a_second_permission_and_a_mounted_one_is_never_written_to() {
    let Some(device) = Loop::new(&[]) else { return };
    if !run("mkfs.ext4", &["-q", "-F", device.path()]) {
        skip("no mkfs.ext4");
        return;
    }
    let (said, hint) = refused(&[&device.device], Purpose::Write(&naming(device.name())));
    assert!(said.contains("holds data: ext4"), "{said}");
    assert!(hint.unwrap().contains("--destroy-signature"));
    let all = Permission { destroy_signature: true, ..naming(device.name()) };
    drop(passes(&device.device, Purpose::Write(&all)));

    let mount_point = device.directory.path().join("mnt");
    fs::create_dir(&mount_point).unwrap();
    let at = mount_point.to_str().unwrap();
    if !run("mount", &[device.path(), at]) {
        skip("this user cannot mount");
        return;
    }
    let said = std::panic::catch_unwind(|| device.refused_in_spite_of_all());
    let read = check(std::slice::from_ref(&device.device), Purpose::Read).map(drop);
    assert!(run("umount", &[at]));
    assert_eq!(
        said.unwrap(),
        format!("`{}` cannot be written to: `{}` is mounted at `{at}`", device.path(), device.name())
    );
    read.unwrap();
}

#[test]
fn a_device_that_is_mounted_where_we_cannot_see_it_is_never_written_to() {
    let Some(device) = Loop::new(&[]) else { return };
    let mount_point = device.directory.path().join("mnt");
    fs::create_dir(&mount_point).unwrap();
    let script = format!("mount {} {} && echo mounted && read line", device.path(), mount_point.display());
    let other = run("mkfs.ext4", &["-q", "-F", device.path()]).then(|| {
        Command::new("unshare").args(["-m", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    });
    let Some(Ok(mut other)) = other else {
        skip("no file system or no second mount namespace can be made here");
        return;
    };
    let mut said = String::new();
    std::io::BufRead::read_line(&mut io::BufReader::new(other.stdout.take().unwrap()), &mut said).unwrap();
    let refusal = std::panic::catch_unwind(|| device.refused_in_spite_of_all());
    drop(other.stdin.take());
    other.wait().unwrap();
    if said.trim() == "mounted" {
        assert!(refusal.unwrap().contains("has `loop"), "O_EXCL must tell");
    } else {
        skip("this user cannot mount");
    }
}

#[test]
fn swap_space_in_use_is_never_written_to() {
    let Some(device) = Loop::new(&[]) else { return };
    if !run("mkswap", &[device.path()]) || !run("swapon", &[device.path()]) {
        skip("no swap space can be made here");
        return;
    }
    let said = std::panic::catch_unwind(|| device.refused_in_spite_of_all());
    assert!(run("swapoff", &[device.path()]));
    assert_eq!(
        said.unwrap(),
        format!("`{0}` cannot be written to: `{1}` is in use as swap space", device.path(), device.name())
    );
    assert!(refused(&[&device.device], Purpose::Write(&naming(device.name()))).0.contains("holds data: swap space"));
}

#[test]
fn a_device_below_another_and_a_read_only_one_are_never_written_to() {
    let Some(device) = Loop::new(&[]) else { return };
    let Some(above) = Loop::over(&device.device, &[]) else { return };
    let said = std::panic::catch_unwind(|| device.refused_in_spite_of_all());
    assert!(run("losetup", &["-d", above.to_str().unwrap()]));
    assert!(said.unwrap().contains("is part of `loop"));

    let Some(fixed) = Loop::new(&["-r"]) else { return };
    assert!(fixed.refused_in_spite_of_all().contains("is read-only"));
}

#[test]
fn a_device_that_passed_can_be_laid_out_and_is_known_afterwards() {
    let Some(device) = Loop::new(&[]) else { return };
    let permission = naming(device.name());
    let member = Member::open(passes(&device.device, Purpose::Write(&permission)), Opening::WRITE).unwrap();
    let bytes = member.length_bytes();
    assert_eq!((bytes, member.kind(), member.id()), (32 << 20, PathKind::BlockDevice, None));
    assert!(member.request_unit_bytes().is_power_of_two());
    let (engine, _) = IoEngine::best_available();
    let id = lay_over(member.file(), bytes, engine, &|_| {}, &AtomicBool::new(false)).unwrap();
    member.check_health().unwrap();
    drop(member);
    assert_eq!(inspect(&device.device, bytes).unwrap(), FileState::Laid { id, length_bytes: bytes });
    assert_eq!(inspect(&device.device, bytes + 1).unwrap(), FileState::TooShort { length_bytes: bytes });
    // Our own data are no trace of others; but a device always needs its name.
    assert_eq!(passes(&device.device, Purpose::Write(&permission)).id(), Some(id));
    assert!(refused(&[&device.device], Purpose::Write(&Permission::default())).0.contains("destroys all data"));
}

#[test]
fn a_device_that_was_laid_out_in_part_is_known_as_far_as_that() {
    let Some(device) = Loop::new(&[]) else { return };
    let permission = naming(device.name());
    let member = Member::open(passes(&device.device, Purpose::Write(&permission)), Opening::WRITE).unwrap();
    let (engine, _) = IoEngine::best_available();
    lay_over(member.file(), 8 << 20, engine, &|_| {}, &AtomicBool::new(false)).unwrap();
    drop(member);
    let found = [4, 8, 16].map(|mib| crate::block::layout::is_laid(&device.device, mib << 20).unwrap());
    assert_eq!(found, [true, true, false], "a load of 16 MiB would read what was never written");
}
