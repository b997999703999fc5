//! Random attempts, from a seed, by every flag that names a place to write to.

use crate::world::{User, World, run, run_words, users};

/// Attempts of each user; together with the other user's they are a thousand.
const ATTEMPTS: u64 = 500;
const SEED: u64 = 0x706c_696d;

/// Every way by which a command is given a place to write to: `{P}` is that place, `{N}` a name that is new, `{B}` a data set, `{R}` a run.
/// Load would end at once. Some would be allowed at some places, where they only add something.
const WAYS: &[&str] = &[
    "io run --path {P} --size 1M --pattern randwrite --duration 1 --warmup 0",
    "io run --path {P} --pattern randwrite --duration 1 --warmup 0",
    "io run --path {P} --size 1M --pattern randrw --duration 1 --warmup 0 --destroy other",
    "io run --path {P} --size 1M --pattern seqwrite --duration 1 --warmup 0 --engine psync",
    "io sweep --path {P} --size 1M --pattern randwrite --depth 1 --duration 1 --warmup 0",
    "io soak --path {P} --size 1M --pattern randwrite --duration 1",
    "io calibrate --path {P} --size 1M",
    "io orion -run advanced -type rand -write 100 -matrix point -num_small 1 -num_large 0 -duration 1 --path {P}",
    "io run --group g=external,size=8M:{P} --size 4M --pattern randrw --duration 1 --warmup 0",
    "io run --group g=normal,size=64M:{P}|{P}2 --size 8M --pattern randrw --duration 1 --warmup 0",
    "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 --redo-size 8M --redo-files 3 -q --target dir:{P}",
    "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 --redo-size 8M --redo-files 3 -q --replace --target dir:{P}",
    "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 -q --target dir:{N} --data-dest {P}",
    "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 -q --target dir:{N} --redo-dest {P}",
    "slob run -s 1 -t 1 RUN_TIME=1 --warmup 0 -q --target dir:{P}",
    "slob run -s 1 -t 1 RUN_TIME=1 --warmup 0 -q --cache 64M --flash-cache {P}:8M --target dir:{B}",
    "slob verify --target dir:{P}",
    "slob drop -y --target dir:{P}",
    "slob drop -y --target pg:{P}",
    "slob drop -y --target my:{P}",
    "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 -q --target pg:{P}",
    "orders drop -y --target pg:{P}",
    "check --reads 100@5ms --for 40 sim: -o {P}",
    "report {R} -o {P}",
    "report {R} --csv {P}",
    "report {R} --csv {P}/steps.csv",
    "report {R} --hlog {P}",
    "compare {R} {R} -o {P}",
    "compare {R} {R} -o {P}.html",
    "trend {R} --csv {P}",
    "export {R} --out {P}",
    "export {R} --format parquet --out {P}",
    "merge {R} {R} -o {P}",
    "manual {P}",
    "runs tag --runs {P} last a=b",
    "runs rm --runs {P} -y last",
    "runs rm -y {P}",
    "runs tag {P} a=b",
    "import {P} --runs {N}",
    "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q --runs {P}",
    "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q -c {P}",
    "experiment run {P}",
    "experiment plan {P} --runs {P}",
];

/// Other words for the same place.
fn said_otherwise(path: &str, way: u64) -> String {
    match way {
        0 => path.replacen('/', "//", 2),
        1 => path.rsplit_once('/').map_or(path.to_owned(), |(folder, name)| format!("{folder}/./{name}")),
        2 => path.rsplit_once('/').map_or(path.to_owned(), |(folder, name)| {
            format!("{folder}/../{}/{name}", folder.rsplit('/').next().unwrap())
        }),
        _ => path.to_owned(),
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn attempts_change_nothing(user: User) {
    let world = World::new(user);
    let top = world.directory.path();
    for words in [
        "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q --runs kept",
        "slob setup -s 1 SCALE=8M SCAN_TABLE_SZ=0 --redo-size 8M --redo-files 3 -q --target dir:base",
    ] {
        let done = run_words(user, top, words);
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let kept = std::fs::read_dir(top.join("kept")).unwrap().next().unwrap().unwrap().path();
    let (before, contents) = (world.state(), world.contents());
    let mut state = SEED;
    for number in 0..ATTEMPTS {
        let way = WAYS[(next(&mut state) % WAYS.len() as u64) as usize];
        let (kind, place) = &world.places[(next(&mut state) % world.places.len() as u64) as usize];
        let said = said_otherwise(place.to_str().unwrap(), next(&mut state) % 6);
        let replaced = |word: &str| {
            let word =
                word.replace("{P}", &said).replace("{N}", &top.join("new").join(number.to_string()).to_string_lossy());
            word.replace("{B}", "base").replace("{R}", kept.to_str().unwrap())
        };
        let arguments: Vec<String> = way.split_whitespace().map(replaced).collect();
        let done = run(user, top, &arguments);
        let after = world.state();
        if after != before {
            let changed: Vec<_> = before.iter().filter(|(path, was)| after.get(*path) != Some(was)).collect();
            let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
            panic!(
                "attempt {number} on {kind} as {user:?} changed {changed:?} or made {new:?}: plimsoll {}\n{}",
                arguments.join(" "),
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
    assert_eq!(world.contents(), contents, "as {user:?}");
}

/// A thousand, where root runs the tests: half of them as an ordinary user.
#[test]
fn random_attempts_change_nothing() {
    users().into_iter().for_each(attempts_change_nothing);
}
