//! Things that must not change, and the program that is let loose on them.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use test_support::loop_device::LoopDevice;
use test_support::skip::skip;

/// An ordinary user, by number: nobody needs to have made it.
pub const SOMEBODY: u32 = 65534;
/// After this time an attempt is taken to hang.
const PATIENCE: Duration = Duration::from_secs(60);
const VICTIM_BYTES: usize = 64 << 10;

/// Who runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests: root or not.
    Self_,
    /// Somebody without rights, where root runs the tests.
    Somebody,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The users that this process can run the program as.
pub fn users() -> Vec<User> {
    if !is_root() {
        skip("what root is refused: the tests are run by an ordinary user");
        return vec![User::Self_];
    }
    let mut program = plimsoll(User::Somebody, Path::new("/"));
    match program.arg("--version").output() {
        Ok(done) if done.status.success() => vec![User::Self_, User::Somebody],
        _ => {
            skip("what an ordinary user is refused: he cannot reach the program");
            vec![User::Self_]
        }
    }
}

/// The program in a directory.
pub fn plimsoll(user: User, directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(directory).env("PLIMSOLL_RUNS", directory.join("runs")).env("TZ", "UTC").stdin(Stdio::null());
    if user == User::Somebody {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    command
}

/// Runs the program to its end.
pub fn run(user: User, directory: &Path, arguments: &[String]) -> Output {
    let words = arguments.join(" ");
    let child =
        plimsoll(user, directory).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let waiting = thread::spawn(move || child.wait_with_output().unwrap());
    let begun = Instant::now();
    while !waiting.is_finished() {
        if begun.elapsed() > PATIENCE {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("hangs: plimsoll {words}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = waiting.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "plimsoll {words}: {said}");
    output
}

/// The same of words with a space between each.
pub fn run_words(user: User, directory: &Path, words: &str) -> Output {
    run(user, directory, &words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

/// Gives a path to a user.
pub fn give(path: &Path, user: User) {
    if user == User::Somebody {
        std::os::unix::fs::lchown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
}

/// Things of all kinds, each with a name.
pub struct World {
    pub directory: TempDir,
    /// Their names, and paths that lead to something else.
    pub places: Vec<(&'static str, PathBuf)>,
    _held: Vec<File>,
    _listener: UnixListener,
    locked: Option<Child>,
    loops: Vec<LoopDevice>,
    mounted: Option<PathBuf>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(child) = &mut self.locked {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(place) = &self.mounted {
            let _ = Command::new("umount").arg(place).status();
        }
    }
}

/// The bytes that each kind of data begins with, or has elsewhere.
fn signed() -> Vec<(&'static str, usize, Vec<u8>)> {
    let ext4 = {
        let mut block = vec![0; 1024];
        block[4..8].copy_from_slice(&16u32.to_le_bytes());
        block[24] = 2;
        block[56..58].copy_from_slice(&[0x53, 0xef]);
        block[76] = 1;
        block
    };
    vec![
        ("text", 0, b"what somebody wrote\n".to_vec()),
        ("page", 0, b"<!DOCTYPE html><html><body>somebody's</body></html>".to_vec()),
        ("table", 0, b"name,value\nsomebody,1\n".to_vec()),
        ("document", 0, b"{\"somebody\": 1}\n".to_vec()),
        ("ext4", 1024, ext4),
        ("lvm", 512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001".to_vec()),
        ("swap", 4086, b"SWAPSPACE2".to_vec()),
        ("luks", 0, b"LUKS\xba\xbe\0\x02".to_vec()),
        ("sqlite", 0, b"SQLite format 3\0".to_vec()),
        ("qcow2", 0, b"QFI\xfb\0\0\0\x03".to_vec()),
        ("gzip", 0, b"\x1f\x8b\x08\0".to_vec()),
        ("tar", 257, b"ustar\x0000".to_vec()),
        ("zip", 0, b"PK\x03\x04".to_vec()),
        ("oracle", 0, b"\0\xa2\0\0\0\0\xc0\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0}|{z".to_vec()),
    ]
}

impl World {
    /// Makes them, partly the user's and partly not.
    pub fn new(user: User) -> Self {
        let directory = test_support::scratch::scratch();
        let top = directory.path().to_owned();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
        give(&top, user);
        let mut places = Vec::new();
        let mut held = Vec::new();
        for (name, offset, beginning) in signed() {
            let path = top.join(name);
            let mut bytes: Vec<u8> = (0..VICTIM_BYTES).map(|at| (at * 31 % 251) as u8).collect();
            if offset > 0 {
                bytes[..offset].fill(0);
            }
            bytes[offset..offset + beginning.len()].copy_from_slice(&beginning);
            fs::write(&path, bytes).unwrap();
            give(&path, user);
            places.push((name, path));
        }
        let copy = |name: &'static str| {
            let path = top.join(name);
            fs::copy(top.join("text"), &path).unwrap();
            path
        };
        let add = |name: &'static str, path: PathBuf, places: &mut Vec<_>| {
            give(&path, user);
            places.push((name, path));
        };
        let read_only = copy("read-only");
        fs::set_permissions(&read_only, fs::Permissions::from_mode(0o400)).unwrap();
        add("read-only", read_only, &mut places);
        // Root's, though anybody may write to it.
        let open = copy("open-to-all");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
        places.push(("open-to-all", open));
        fs::hard_link(copy("first-name"), top.join("second-name")).unwrap();
        add("second-name", top.join("second-name"), &mut places);
        for (name, target) in
            [("link", "text"), ("chain", "link"), ("device-link", "/dev/plimsoll-no-such-disk"), ("round", "round")]
        {
            symlink(target, top.join(name)).unwrap();
            add(name, top.join(name), &mut places);
        }
        for name in ["directory", "cluster", "run"] {
            fs::create_dir(top.join(name)).unwrap();
        }
        fs::copy(top.join("text"), top.join("directory/inside")).unwrap();
        fs::write(top.join("cluster/PG_VERSION"), "15\n").unwrap();
        fs::write(top.join("run/run.json"), "{\"id\": \"somebody's\"}").unwrap();
        for inside in ["directory/inside", "cluster/PG_VERSION", "run/run.json"] {
            give(&top.join(inside), user);
        }
        symlink("directory", top.join("directory-link")).unwrap();
        for name in ["directory", "cluster", "run", "directory-link"] {
            add(name, top.join(name), &mut places);
        }
        let inside_a_file = top.join("text/inside");
        places.push(("inside-a-file", inside_a_file));
        let listener = UnixListener::bind(top.join("socket")).unwrap();
        add("socket", top.join("socket"), &mut places);
        let locked = File::options().read(true).write(true).open(copy("locked")).unwrap();
        locked.lock().unwrap();
        held.push(locked);
        add("locked", top.join("locked"), &mut places);
        let by_another = copy("locked-by-record");
        let script = "import fcntl,sys,time; f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX); print(1,flush=True); time.sleep(600)";
        let child = Command::new("python3").args(["-c", script]).arg(&by_another).stdout(Stdio::piped()).spawn();
        let child = child.map(|mut child| {
            let mut line = [0; 1];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
            child
        });
        match &child {
            Ok(_) => add("locked-by-record", by_another, &mut places),
            Err(error) => skip(format_args!("a file with a record lock of another process: python3: {error}")),
        }
        for missing in
            ["/dev/plimsoll-no-such-disk", "/proc/plimsoll-no-such", "/sys/plimsoll-no-such", "/run/plimsoll-no-such"]
        {
            places.push(("missing", missing.into()));
            places.push(("missing", format!("{missing}/deeper").into()));
        }
        let mut world = Self {
            directory,
            places,
            _held: held,
            _listener: listener,
            locked: child.ok(),
            loops: Vec::new(),
            mounted: None,
        };
        if is_root() {
            world.add_disks();
        }
        world
    }

    fn add_disks(&mut self) {
        let top = self.directory.path().to_owned();
        for name in ["disk", "mounted-disk"] {
            let image = top.join(format!("{name}.img"));
            File::create(&image).unwrap().set_len(16 << 20).unwrap();
            let Some(disk) = LoopDevice::over(&image) else { return };
            let path = disk.path().to_owned();
            let made = Command::new("mkfs.ext4").arg("-q").arg(&path).status();
            self.loops.push(disk);
            if !made.is_ok_and(|made| made.success()) {
                return skip("a disk with a file system: no mkfs.ext4");
            }
            self.places.push((if name == "disk" { "disk" } else { "mounted-disk" }, path.clone()));
            if name == "mounted-disk" {
                let place = top.join("mounted");
                fs::create_dir(&place).unwrap();
                if Command::new("mount")
                    .args(["-o", "ro"])
                    .arg(&path)
                    .arg(&place)
                    .status()
                    .is_ok_and(|done| done.success())
                {
                    self.mounted = Some(place);
                }
            }
        }
        // What was written until here is no attempt's work.
        rustix::fs::sync();
    }

    /// All that must stay, each with what shows a change.
    pub fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut state = BTreeMap::new();
        let mut look = |path: PathBuf| {
            if let Ok(found) = path.symlink_metadata() {
                state.insert(path, shown(&found));
            }
        };
        for (_, path) in &self.places {
            look(path.clone());
        }
        for name in
            ["first-name", "directory/inside", "cluster/PG_VERSION", "run/run.json", "disk.img", "mounted-disk.img"]
        {
            look(self.directory.path().join(name));
        }
        for place in ["/dev", "/run", "/proc/sys", "/sys"] {
            for entry in fs::read_dir(place).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.contains("plimsoll") {
                    state.insert(entry.path(), "is there".to_owned());
                }
            }
        }
        state
    }

    /// What files hold, read whole.
    pub fn contents(&self) -> BTreeMap<PathBuf, u64> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let files = self.state().into_keys().filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()));
        let hashed = files.map(|path| {
            let mut hasher = DefaultHasher::new();
            fs::read(&path).unwrap().hash(&mut hasher);
            (path, hasher.finish())
        });
        hashed.collect()
    }
}

/// A directory gets entries where results are asked for in it; everything else of anything else stays.
fn shown(found: &Metadata) -> String {
    let identity = format!("{:?} {:o} {} {}", found.file_type(), found.mode(), found.uid(), found.ino());
    if found.is_dir() {
        return identity;
    }
    let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    // Opening a device for a look sets times of its name and changes nothing on it: its image is looked at.
    let is_device = found.rdev() != 0;
    if is_device { identity } else { format!("{identity} {} {} {times:?}", found.len(), found.nlink()) }
}

/// The first bytes of a file.
pub fn beginning(path: &Path) -> [u8; 16] {
    let mut bytes = [0; 16];
    File::open(path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}
