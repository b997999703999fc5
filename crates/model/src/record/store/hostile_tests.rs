//! Run folders made to hurt whoever reads them.

use super::*;
use crate::record::sample;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

struct Made {
    _scratch: tempfile::TempDir,
    store: Store,
    run: PathBuf,
}

impl Made {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::new(scratch.path().join("runs"));
        let run = store.save(&sample::interrupted()).unwrap();
        Self { _scratch: scratch, store, run }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }

    fn document(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file(RUN_FILE)).unwrap()).unwrap()
    }

    fn write(&self, document: &Value) {
        fs::write(self.file(RUN_FILE), document.to_string()).unwrap();
    }

    fn refused(&self) -> StoreError {
        load(&self.run).unwrap_err()
    }
}

fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn files_that_are_not_plain_are_refused_and_not_waited_for() {
    let made = Made::new();
    let outside = made.store.path().with_file_name("outside");
    fs::rename(made.file(INTERVALS_FILE), &outside).unwrap();
    let intervals = made.file(INTERVALS_FILE);
    for (what, make) in [
        ("a pipe", &(|| fifo(&intervals)) as &dyn Fn()),
        ("a symbolic link", &|| symlink("/dev/zero", &intervals).unwrap()),
        ("a symbolic link", &|| symlink(&outside, &intervals).unwrap()),
        ("a directory", &|| fs::create_dir(&intervals).unwrap()),
    ] {
        make();
        let error = made.refused();
        assert!(error.to_string().ends_with(&format!("{INTERVALS_FILE}`: it is {what}, not a plain file")), "{error}");
        assert!(error.hint().unwrap().contains("put a copy there"));
        let _ = fs::remove_file(&intervals).or_else(|_| fs::remove_dir(&intervals));
    }
    let document = made.file(RUN_FILE);
    fs::rename(&document, &outside).unwrap();
    symlink(&outside, &document).unwrap();
    let error = made.refused().to_string();
    assert!(error.ends_with("run.json`: it is a symbolic link, not a plain file"), "{error}");
    assert!(made.store.list().1[0].to_string().contains("symbolic link"), "a list says so too");
    assert!(tag(&made.run, &std::collections::BTreeMap::new()).is_err() && remove(&made.run).is_err());
    fs::remove_file(&document).unwrap();
    fifo(&document);
    assert!(matches!(made.refused(), StoreError::NoRunThere { .. }));
}

#[test]
fn a_folder_that_is_a_link_itself_is_read() {
    let made = Made::new();
    let link = made.store.path().with_file_name("link");
    symlink(&made.run, &link).unwrap();
    assert_eq!(load(&link).unwrap().id, load(&made.run).unwrap().id);
}

#[test]
fn nothing_that_is_larger_than_any_run_is_read() {
    let made = Made::new();
    let good = made.document();
    let what = |error: StoreError| match error {
        StoreError::TooMuch { what, .. } => what,
        other => panic!("{other}"),
    };
    let mut document = good.clone();
    document["steps"] = json!(["STEPS"]);
    let steps = [good["steps"][0].to_string().as_str()].repeat(MAX_STEPS + 1).join(",");
    fs::write(made.file(RUN_FILE), document.to_string().replace("\"STEPS\"", &steps)).unwrap();
    assert_eq!(what(made.refused()), "20,001 steps, more than 20,000");

    document = good.clone();
    document["name"] = "x".repeat(MAX_TEXT.0 as usize + 1).into();
    made.write(&document);
    assert_eq!(what(made.refused()), "a text longer than 4 MiB");

    document = good.clone();
    document["notes"] = json!(["NOTES"]);
    fs::write(made.file(RUN_FILE), document.to_string().replace("\"NOTES\"", &"0,".repeat(16_000_000))).unwrap();
    assert_eq!(what(made.refused()), "more than 16,000,000 values");

    made.write(&good);
    let file = fs::File::options().write(true).open(made.file(RUN_FILE)).unwrap();
    file.set_len(MAX_DOCUMENT.0 + 1).unwrap();
    assert_eq!(what(made.refused()), "more than 256 MiB");

    made.write(&good);
    fs::write(made.file(INTERVALS_FILE), vec![b' '; MAX_LINE.0 as usize + 1]).unwrap();
    assert_eq!(what(made.refused()), "a line (number 1) longer than 4 MiB");
}

#[test]
fn nesting_without_end_is_refused() {
    let made = Made::new();
    let deep = "[".repeat(100_000);
    let closed = "]".repeat(100_000);
    let text = made.document().to_string();
    let inside = format!("{},\"zzz\":{deep}{closed}}}", &text[..text.len() - 1]);
    for text in [deep, inside] {
        fs::write(made.file(RUN_FILE), text).unwrap();
        let error = made.refused().to_string();
        assert!(error.contains("lists within lists, more than 100 deep"), "{error}");
    }
}

/// Replaces every number in a document but its format.
fn replace_numbers(value: &mut Value, by: &Value) {
    match value {
        Value::Number(_) => *value = by.clone(),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_numbers(item, by)),
        Value::Object(fields) => {
            fields.iter_mut().filter(|(key, _)| *key != "format").for_each(|(_, item)| replace_numbers(item, by));
        }
        _ => {}
    }
}

#[test]
fn numbers_at_the_ends_of_their_ranges_end_nothing() {
    let made = Made::new();
    let good = made.document();
    for number in [json!(1e308), json!(-1), json!(u64::MAX), json!(i64::MIN), json!(5e-324), json!(0)] {
        for part in ["steps", ""] {
            let mut document = good.clone();
            replace_numbers(if part.is_empty() { &mut document } else { &mut document[part] }, &number);
            made.write(&document);
            // Read or refused, it comes back.
            let _ = load(&made.run);
            made.store.list();
        }
    }
    for number in ["NaN", "1e400", "18446744073709551616"] {
        let text = good.to_string().replace("\"seed\":", &format!("\"other\":{number},\"seed\":"));
        fs::write(made.file(RUN_FILE), text).unwrap();
        let _ = load(&made.run);
    }
}

#[test]
fn an_allowance_is_for_all_that_is_read_together() {
    let made = Made::new();
    let run = load(&made.run).unwrap();
    let steps = run.steps.len();
    let later = || Instant::now() + Duration::from_secs(600);
    let mut allowance = Allowance { steps: 2 * steps, ..Allowance::of_page(later()) };
    load_within(&made.run, &mut allowance).unwrap();
    load_within(&made.run, &mut allowance).unwrap();
    let error = load_within(&made.run, &mut allowance).unwrap_err();
    let (path, hint) = (made.run.display().to_string(), error.hint().unwrap());
    assert!(error.to_string().starts_with(&format!("`{path}` is too large for a page: it has")), "{error}");
    assert!(hint.contains("plimsoll report"), "{hint}");
    let mut late = Allowance::of_page(Instant::now());
    std::thread::sleep(Duration::from_millis(1));
    assert!(matches!(load_within(&made.run, &mut late), Err(StoreError::TooSlow { .. })));
}

#[test]
fn intervals_beyond_those_that_are_allowed_are_refused() {
    let made = Made::new();
    let lines = fs::read_to_string(made.file(INTERVALS_FILE)).unwrap().lines().count();
    let of_page = Allowance::of_page(Instant::now() + Duration::from_secs(600));
    let mut enough = Allowance { intervals: lines, ..of_page.clone() };
    assert!(load_within(&made.run, &mut enough).is_ok());
    let mut too_few = Allowance { intervals: lines - 1, ..of_page };
    assert!(matches!(load_within(&made.run, &mut too_few), Err(StoreError::TooMuch { is_page: true, .. })));
}
