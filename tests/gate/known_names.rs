//! Names that are known in advance, where somebody else puts something else.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use test_support::scratch::scratch;

use crate::world::{User, beginning, give, is_root, run, run_words, users};

const PRECIOUS: &[u8; 16] = b"precious bytes!!";
const SETUP: &str = "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 --redo-size 8M --redo-files 3 -q --target";
const UPDATES: &str = "slob run -s 1 -t 1 UPDATE_PCT=100 RUN_TIME=1 --warmup 0 --cache 64M -q --target";

/// A directory of a user with a file in it that must stay.
fn place(user: User) -> (tempfile::TempDir, PathBuf) {
    let place = scratch();
    give(place.path(), user);
    let victim = place.path().join("victim");
    fs::write(&victim, PRECIOUS.repeat(1 << 10)).unwrap();
    give(&victim, user);
    (place, victim)
}

fn is_untouched(victim: &Path) -> bool {
    beginning(victim) == *PRECIOUS && fs::metadata(victim).unwrap().len() == 16 << 10
}

fn copy(from: &Path, to: &Path, user: User) {
    fs::create_dir(to).unwrap();
    give(to, user);
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        give(&to.join(entry.file_name()), user);
    }
}

/// Each file of a data set in turn is a link, a second name or a pipe.
#[test]
fn no_file_of_a_data_set_leads_elsewhere() {
    for user in users() {
        let (place, victim) = place(user);
        let made = run_words(user, place.path(), &format!("{SETUP} dir:base"));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let base = place.path().join("base");
        let names: Vec<_> = fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.len() >= 9, "{names:?}");
        for name in &names {
            for kind in ["symbolic", "hard"] {
                let changed = place.path().join("changed");
                copy(&base, &changed, user);
                fs::remove_file(changed.join(name)).unwrap();
                match kind {
                    "symbolic" => symlink(&victim, changed.join(name)).unwrap(),
                    _ => fs::hard_link(&victim, changed.join(name)).unwrap(),
                }
                let words = format!("{UPDATES} dir:{}", changed.display());
                let done = run_words(user, place.path(), &words);
                let said = String::from_utf8_lossy(&done.stderr);
                assert!(is_untouched(&victim), "{name:?} as a {kind} link, {user:?}: {said}");
                assert_eq!(done.status.code(), Some(2), "{name:?} as a {kind} link, {user:?}: {said}");
                assert!(said.contains("hint:") && said.contains("changed"), "{name:?} as a {kind} link: {said}");
                fs::remove_dir_all(&changed).unwrap();
            }
        }
    }
}

#[test]
fn no_name_that_is_known_in_advance_leads_elsewhere() {
    for user in users() {
        let (place, victim) = place(user);
        for name in ["plimsoll.lock", "setup.unfinished", "database.json.new"] {
            let set = place.path().join(name.replace('.', "-"));
            fs::create_dir(&set).unwrap();
            give(&set, user);
            if name != "plimsoll.lock" {
                fs::write(set.join("plimsoll.lock"), "").unwrap();
                give(&set.join("plimsoll.lock"), user);
            }
            symlink(&victim, set.join(name)).unwrap();
            let done = run_words(user, place.path(), &format!("{SETUP} dir:{}", set.display()));
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(is_untouched(&victim), "{name} as {user:?}: {said}");
            assert!(done.status.code() == Some(2) && said.contains(name), "{name} as {user:?}: {said}");
        }
        let done = run_words(user, place.path(), "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q");
        assert!(done.status.success());
        let run_folder = fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap().path();
        symlink(&victim, run_folder.join("run.json.tmp")).unwrap();
        let done = run_words(user, place.path(), "runs tag last a=b");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(is_untouched(&victim) && said.contains("run.json.tmp"), "{said}");
        assert_eq!(done.status.code(), Some(2), "{said}");
    }
}

/// Root works nowhere where others can exchange files under its hands.
#[test]
fn root_refuses_directories_of_others() {
    if !is_root() {
        return test_support::skip::skip("what root is refused: the tests are run by an ordinary user");
    }
    let (place, _) = place(User::Self_);
    for (name, mode, owner) in [("of-others", 0o755, Some(65534)), ("open-to-others", 0o777, None)] {
        let set = place.path().join(name);
        fs::create_dir(&set).unwrap();
        fs::set_permissions(&set, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&set, owner, owner).unwrap();
        let done = run_words(User::Self_, place.path(), &format!("{SETUP} dir:{}", set.display()));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains("other users may change"), "{name}: {said}");
        assert_eq!(fs::read_dir(&set).unwrap().count(), 0, "{name}");
    }
}

/// What somebody else's link leads to is his choice.
#[test]
fn root_makes_nothing_where_links_of_others_lead() {
    if !is_root() {
        return test_support::skip::skip("what root is refused: the tests are run by an ordinary user");
    }
    let (place, _) = place(User::Self_);
    let (there, way) = (place.path().join("there"), place.path().join("way"));
    fs::create_dir(&there).unwrap();
    symlink(&there, &way).unwrap();
    give(&way, User::Somebody);
    let runs = format!("slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q --runs {}/new", way.display());
    for words in [format!("{SETUP} dir:{}/new", way.display()), format!("{SETUP} dir:{}", way.display()), runs] {
        let done = run_words(User::Self_, place.path(), &words);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains("symbolic link of user 65534"), "{words}: {said}");
        assert_eq!(fs::read_dir(&there).unwrap().count(), 0, "{words}");
    }
}

/// By every command that writes a page.
#[test]
fn results_are_written_to_devices_and_pipes_and_never_replace_them() {
    for user in users() {
        let (place, _) = place(user);
        let done = run_words(user, place.path(), "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        give(&pipe, user);
        for command in ["report last", "check --reads 100@5ms --for 40 sim:"] {
            let reader = std::thread::spawn({
                let pipe = pipe.clone();
                move || fs::read(pipe).unwrap().len()
            });
            let words = |output: &Path| {
                let words = command.split_whitespace().chain(["-o"]).map(str::to_owned);
                words.chain([output.to_string_lossy().into_owned()]).collect::<Vec<_>>()
            };
            let done = run(user, place.path(), &words(&pipe));
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            // A command that refuses leaves the reader without a writer.
            drop(fs::File::options().read(true).write(true).open(&pipe).unwrap());
            assert!(reader.join().unwrap() > 1_000, "{command} as {user:?}: {said}");
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{command} as {user:?}");
        }
    }
}
