//! A process is killed while it writes, and a member is lost at a random instant: what was acknowledged is there.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;
use model::workload::Rng;
use test_support::scratch::scratch;

const KILLS: u64 = 12;
const BLOCKS: u64 = 640;
const DEPTH: u64 = 8;
/// Where the child finds its group.
const FOLDER: &str = "PLIMSOLL_TEST_GROUP";

fn paths(folder: &Path) -> Vec<PathBuf> {
    (0..4).map(|number| folder.join(format!("m{number}"))).collect()
}

fn ledger(folder: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join("ledger")).unwrap()
}

fn acknowledged(ledger: &File, number: u64) -> u64 {
    let mut word = [0; 8];
    // A word that was never written is behind the end of the file.
    ledger.read_at(&mut word, number * 8).unwrap();
    u64::from_le_bytes(word)
}

/// Writes blocks until it is killed, and puts each that was acknowledged into the ledger.
#[test]
#[ignore = "the test below runs this as a process of its own and kills it"]
fn child() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let group = open(&spec("normal,force,rebuild:0,1|2,3", &paths(&folder))).unwrap();
    let file = Arc::new(group.open_file("f").unwrap());
    let ledger = ledger(&folder);
    let mut rng = Rng::new(u64::from(std::process::id()), 0);
    let mut load = Load::new(&file, DEPTH as u32);
    let mut writing = [None; DEPTH as usize];
    loop {
        for slot in 0..DEPTH {
            if writing[slot as usize].is_none() {
                // A block has one write in flight, so that its newest is known.
                let number = rng.below(BLOCKS / DEPTH) * DEPTH + slot;
                let version = acknowledged(&ledger, number).max(read_block(&file, number).unwrap()) + 1;
                load.write(number, version, slot);
                writing[slot as usize] = Some((number, version));
            }
        }
        for done in load.wait() {
            let (number, version) = writing[done.token as usize].take().unwrap();
            assert_eq!(done.bytes().unwrap(), 8192);
            ledger.write_all_at(&version.to_le_bytes(), number * 8).unwrap();
        }
        assert!(file.is_linked().unwrap());
    }
}

fn start(folder: &Path) -> Child {
    let name = format!("{}::child", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", &name, "--nocapture"]).env(FOLDER, folder);
    let errors = OpenOptions::new().create(true).append(true).open(folder.join("errors")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
}

fn sum(ledger: &File) -> u64 {
    (0..BLOCKS).map(|number| acknowledged(ledger, number)).sum()
}

#[test]
fn no_acknowledged_write_is_lost_with_a_killed_process_and_a_member() {
    let folder = scratch();
    let folder = folder.path();
    make_members(folder, &[6, 6, 6, 6]);
    let paths = paths(folder);
    create(&spec("normal,au=1M:0,1|2,3", &paths));
    write_all(
        &open(&spec("normal:0,1|2,3", &paths)).unwrap().create_file("f", BLOCKS * BLOCK, Striping::Coarse).unwrap(),
        BLOCKS,
        0,
    );
    let ledger = ledger(folder);
    let mut rng = Rng::new(7, 7);
    let (mut unequal, mut degraded) = (0, 0);
    for kill in 0..KILLS {
        let before = sum(&ledger);
        let mut child = start(folder);
        let begun = Instant::now();
        while sum(&ledger) < before + 1 + rng.below(200) {
            let errors = || fs::read_to_string(folder.join("errors")).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "kill {kill}: {}", errors());
            assert!(begun.elapsed() < Duration::from_secs(120), "kill {kill}: nothing was acknowledged: {}", errors());
            std::thread::sleep(Duration::from_millis(2));
        }
        // A member goes while the process writes, together with it, or not at all.
        let lost = paths[rng.below(4) as usize].clone();
        let lose = |how: u64| match how {
            0 => fs::remove_file(&lost).unwrap(),
            1 => OpenOptions::new().write(true).open(&lost).unwrap().set_len(1 << 20).unwrap(),
            _ => {}
        };
        let (before_the_kill, how) = (rng.below(2) == 0, rng.below(3));
        if before_the_kill {
            lose(how);
            std::thread::sleep(Duration::from_millis(rng.below(60)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !before_the_kill {
            lose(how);
        }
        let group = open(&spec("normal,force:0,1|2,3", &paths)).unwrap();
        let file = group.open_file("f").unwrap();
        for number in 0..BLOCKS {
            let (found, wanted) = (read_block(&file, number), acknowledged(&ledger, number));
            assert!(
                found.is_some_and(|found| found >= wanted),
                "kill {kill}: block {number} has {found:?}, {wanted} was acknowledged; {:?}",
                group.notes()
            );
        }
        unequal += u64::from(group.resynced().copied_bytes > 0);
        degraded += u64::from(how < 2);
        assert_eq!(scrub(&group, "f").faulty, 0, "kill {kill}: copies differ");
        drop((file, group));
        if how < 2 {
            // A new disk in its place.
            let _ = fs::remove_file(&lost);
            let new = OpenOptions::new().write(true).create_new(true).open(&lost).unwrap();
            new.set_len(6 << 20).unwrap();
            let group = open(&spec("normal,rebuild:0,1|2,3", &paths)).unwrap();
            assert!(group.members().iter().all(|member| member.online), "{:?}", group.notes());
            assert_eq!(scrub(&group, "f").faulty, 0, "kill {kill}: copies differ after the rebuild");
        }
    }
    println!("{KILLS} kills, {degraded} with a lost member, {unequal} left copies that differed");
    assert!(degraded > 2);
}

#[test]
fn a_killed_making_of_files_leaves_the_old_state_or_the_new() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[6, 6]);
    let whole = spec("normal,au=1M:0|1", &paths);
    create(&whole);
    drop(open(&whole).unwrap().create_file("old", 1 << 20, Striping::Coarse).unwrap());
    let group = open(&whole).unwrap();
    let contents = || paths.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = contents();
    drop(group.create_file("new", 1 << 20, Striping::Fine).unwrap());
    let after = contents();
    // What the process had open is never closed: it was killed.
    std::mem::forget(group);
    let mut rng = Rng::new(3, 3);
    let mut seen = [false; 2];
    for written in [0, 100, 50, 90, 10, 50, 99, 50] {
        // Sectors that the making of the file writes, of which so many in a hundred were written on either member.
        for ((path, before), after) in paths.iter().zip(&before).zip(&after) {
            let mut torn = before.clone();
            for (sector, after) in torn.chunks_exact_mut(512).zip(after.chunks_exact(512)) {
                if sector != after && rng.below(100) < written {
                    sector.copy_from_slice(after);
                }
            }
            fs::write(path, torn).unwrap();
        }
        let group = open(&whole).unwrap();
        let names: Vec<String> = group.files().into_iter().map(|file| file.name).collect();
        assert!(names == ["old"] || names == ["old", "new"], "{names:?}");
        seen[names.len() - 1] = true;
    }
    assert_eq!(seen, [true, true]);
}
