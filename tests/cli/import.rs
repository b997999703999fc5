//! `plimsoll import`: what other programs measured becomes runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::manners::signal;
use crate::place::{Answer, Place};
use crate::servers::wait_until;
use crate::skip::skip;

/// A small result of fio, as the importer's own tests have it.
fn fio() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/import/src/fio/specimens/json_3.json");
    std::fs::read_to_string(path).expect("the specimen is there")
}

fn with_fio() -> Place {
    let place = Place::new();
    place.write("fio.json", &fio());
    place
}

fn imported(place: &Place, arguments: &[&str]) -> Answer {
    place.done(&[&["import"], arguments].concat())
}

#[test]
fn a_result_becomes_a_run_that_every_command_knows() {
    let place = with_fio();
    let reported = imported(&place, &["fio.json"]);
    let ids = place.runs();
    assert_eq!(ids.len(), 1);
    assert!(
        reported.stdout.starts_with(&ids[0])
            && reported.stdout.contains("fio 3.")
            && reported.stdout.contains("fio.json"),
        "{reported}"
    );
    assert!(reported.stderr.contains("1 run imported from 1 file"), "{reported}");
    let report = place.done(&["report", &ids[0]]);
    assert!(
        report.stdout.contains("Imported fio.json (fio-json)") && report.stdout.contains("As fio reports"),
        "{report}"
    );
    assert!(report.stdout.contains("<="), "a percentile of another program is an upper edge: {report}");
    place.done(&["report", &ids[0], "--full"]);
    place.done(&["report", &ids[0], "--csv", "figures", "-o", "page.html"]);
    place.done(&["runs", "show", &ids[0]]);
    assert!(place.done(&["table", &ids[0], "--style", "io"]).stdout.contains("IOPS"));
    imported(&place, &["fio.json", "--again"]);
    let both = place.runs();
    // One of its jobs failed, so nobody knows beside what load the others ran.
    let compared = place.run(&["compare", &both[0], &both[1]]);
    assert!(compared.code == Some(2) && compared.stdout.contains("have no load in common"), "{compared}");
    assert!(compared.stdout.contains("failed with 2 steps recorded"), "{compared}");
}

#[test]
fn gzip_and_text_before_and_after_make_no_difference() {
    let place = Place::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(fio().as_bytes()).unwrap();
    std::fs::write(place.path("result"), packed.finish().unwrap()).unwrap();
    place.write("other", &format!("$ fio --output-format=json job\nnote: something\n{}\n$ exit\n", fio()));
    let list = imported(&place, &["result", "other", "--json"]).json();
    let kinds: Vec<&str> =
        list.as_array().unwrap().iter().map(|run| run["files"][0]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["fio-json", "fio-json"]);
    let steps = |at: usize| list[at]["steps"].as_u64().unwrap();
    assert!(steps(0) > 0 && steps(0) == steps(1));
}

#[test]
fn the_same_result_is_taken_once_unless_asked() {
    let place = with_fio();
    imported(&place, &["fio.json"]);
    place.write("copy.txt", &fio());
    let again = imported(&place, &["fio.json", "copy.txt"]);
    assert!(again.stderr.contains("was imported before, as") && again.stderr.contains("`--again`"), "{again}");
    assert_eq!(place.runs().len(), 1);
    imported(&place, &["copy.txt", "--again"]);
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn one_result_seen_twice_in_one_import_is_one_run() {
    let place = with_fio();
    place.write("copy.txt", &fio());
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    place.write("elsewhere/copy.json", &fio());
    std::os::unix::fs::symlink("fio.json", place.path("link")).unwrap();
    let answer = imported(&place, &["fio.json", "copy.txt", "link", "elsewhere", "--again"]);
    assert_eq!(place.runs().len(), 1, "{answer}");
    // In one folder the first by its name is taken.
    for left_out in ["fio.json", "link", "elsewhere/copy.json"] {
        assert!(answer.stderr.contains(&format!("{left_out} is left out: it holds the same as copy.txt")), "{answer}");
    }
    assert!(answer.stderr.contains("1 run imported from 4 files; 3 files left out as copies"), "{answer}");
}

#[test]
fn ctrl_c_keeps_the_runs_so_far_and_the_same_command_takes_the_rest() {
    const FILES: usize = 2_000;
    let place = Place::new();
    std::fs::create_dir(place.path("results")).unwrap();
    let name = |number: usize| format!("results/{number:04}");
    for number in 0..FILES {
        place.write(&name(number), &format!("note: {number}\n{}", fio()));
    }
    let mut command = place.plimsoll(&["import", "results"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a run is begun", || std::fs::read_dir(place.path("plimsoll-runs")).is_ok_and(|runs| runs.count() > 0));
    signal(&child, "-INT");
    let answer = Answer::from(child.wait_with_output().unwrap());
    let kept = place.runs();
    assert_eq!(answer.code, Some(130), "{answer}");
    assert!(answer.stderr.contains("of 2,000 files were not looked at"), "{answer}");
    assert!(!kept.is_empty() && kept.len() < FILES, "{answer}");
    assert_eq!(answer.stdout.lines().count(), kept.len(), "every run that was kept is reported");

    // They are taken by their names, and a hundred more are enough.
    let left = FILES.min(kept.len() + 100);
    (left..FILES).for_each(|number| std::fs::remove_file(place.path(&name(number))).unwrap());
    let rest = imported(&place, &["results", "--json"]).json();
    assert_eq!(kept.len() + rest.as_array().unwrap().len(), left);
    assert_eq!(place.runs().len(), left);
}

#[test]
fn in_folders_what_is_no_result_is_passed_over() {
    let place = with_fio();
    std::fs::create_dir_all(place.path("results/deep")).unwrap();
    std::fs::rename(place.path("fio.json"), place.path("results/deep/x")).unwrap();
    place.write("results/README.md", "# Results of fio, Swingbench and AWR\n");
    place.write("results/core", "\u{7f}ELF\0\0");
    let reported = imported(&place, &["results"]);
    assert!(reported.stderr.contains("2 files passed over: ") && reported.stderr.contains("README.md"), "{reported}");
    assert_eq!(place.runs().len(), 1);
}

#[test]
fn a_file_that_is_named_must_be_a_result() {
    let place = with_fio();
    place.write("notes.txt", "Please restart the database before the test.\n");
    let reported = place.run(&["import", "notes.txt", "fio.json", "missing.txt"]);
    assert_eq!(reported.code, Some(2), "{reported}");
    assert!(reported.stderr.contains("error: notes.txt: unrecognized file format"), "{reported}");
    assert!(
        reported.stderr.contains("error: cannot read missing.txt") && reported.stderr.contains("hint: "),
        "{reported}"
    );
    assert_eq!(place.runs().len(), 1, "what could be imported is kept: {reported}");
}

#[test]
fn a_folder_without_results_is_an_error() {
    let place = Place::new();
    place.write("notes.txt", "nothing\n");
    let reported = place.run(&["import", "."]);
    assert_eq!(reported.code, Some(2), "{reported}");
    assert!(
        reported.stderr.contains("there is no result that is known here") && reported.stderr.contains("--list"),
        "{reported}"
    );
}

#[test]
fn a_damaged_result_leaves_nothing_behind() {
    let place = Place::new();
    let whole = fio();
    place.write("cut.json", &whole[..whole.len() * 2 / 3]);
    let reported = place.run(&["import", "cut.json"]);
    assert_eq!(reported.code, Some(2), "{reported}");
    assert!(reported.stderr.contains("error: cut.json") && reported.stdout.is_empty(), "{reported}");
    assert!(place.runs().is_empty());
}

#[test]
fn what_is_too_large_or_a_bomb_is_refused_in_little_memory() {
    let place = Place::new();
    // Without holes being filled, 2 GiB of one line.
    std::fs::File::create(place.path("line")).unwrap().set_len(2 << 30).unwrap();
    let mut packed = flate2::write::GzEncoder::new(
        std::fs::File::create(place.path("bomb.gz")).unwrap(),
        flate2::Compression::fast(),
    );
    let piece = vec![b'a'; 1 << 20];
    (0..300).for_each(|_| packed.write_all(&piece).unwrap());
    packed.finish().unwrap();
    for name in ["line", "bomb.gz"] {
        let reported = place.run(&["import", name]);
        assert_eq!(reported.code, Some(2), "{reported}");
        assert!(reported.stderr.contains(&format!("{name} holds more than 256 MiB")), "{reported}");
    }
}

#[test]
fn looking_first_keeps_nothing() {
    let place = with_fio();
    let reported = imported(&place, &["fio.json", "--dry-run"]);
    assert!(reported.stderr.contains("1 run would be imported"), "{reported}");
    assert!(!place.path("plimsoll-runs").exists());
    let list = imported(&place, &["fio.json", "--dry-run", "--json"]).json();
    assert_eq!((list[0]["workload"].as_str(), list[0].get("id")), (Some("io"), None));
}

#[test]
fn names_and_tags_tell_what_was_measured() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("cache-off/awr_p30x2_d8s_s64_t1_wu64")).unwrap();
    place.write("cache-off/awr_p30x2_d8s_s64_t1_wu64/fio.json", &fio());
    imported(&place, &["cache-off", "--tag", "vm=d16s", "--tag", "site=north"]);
    let run = place.done(&["runs", "show", &place.runs()[0], "--json"]).json();
    let tags = serde_json::json!({"cache": "off", "disk": "p30", "qty": "2", "vm": "d16s", "site": "north"});
    assert_eq!((&run["tags"], &run["name"]), (&tags, &serde_json::json!("p30x2_d8s_s64_t1_wu64")));
}

#[test]
fn the_kinds_are_listed() {
    let place = Place::new();
    let reported = imported(&place, &["--list"]);
    for kind in
        ["awr-text", "awr-html", "statspack", "fio-json", "swingbench-xml", "iostat", "iperf3-text", "stress-ng-text"]
    {
        assert!(reported.stdout.lines().any(|line| line.split_whitespace().next() == Some(kind)), "{kind}: {reported}");
    }
    let list = imported(&place, &["--list", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), reported.stdout.lines().count());
}

/// Other people's results beside the project, if they are there.
pub fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    if folder.join("INDEX.tsv").is_file() {
        return Some(folder);
    }
    skip(format_args!("there is no corpus in {}", folder.display()));
    None
}

/// Cache, name, blocks per second, and shares by the bucket's upper edge.
type ByHand = (&'static str, &'static str, f64, &'static [(&'static str, f64)]);

/// What the author of the first seed took from his reports by hand: of both nodes, blocks read and written per second (the sum of
/// his columns; his own sums are up to 2.5 off it), and waits for single-block reads in percent by the bucket's upper edge.
const BY_HAND: [ByHand; 6] = [
    (
        "off",
        "p30x2_d8s_s40_t1_wu4",
        8_041.47,
        &[("<4ms", 73.1), ("<8ms", 20.9), ("<16ms", 2.8), ("<32ms", 2.4), ("<64ms", 0.8)],
    ),
    (
        "on",
        "p30x2_d8s_s40_t1_wu4",
        9_215.41,
        &[
            ("<256us", 0.3),
            ("<512us", 13.2),
            ("<1ms", 3.7),
            ("<2ms", 0.6),
            ("<4ms", 64.5),
            ("<8ms", 12.9),
            ("<16ms", 1.9),
            ("<32ms", 2.1),
            ("<64ms", 0.9),
        ],
    ),
    (
        "",
        "p60x2_e32s_s128_t1_wu4",
        25_105.86,
        &[("<4ms", 90.1), ("<8ms", 4.9), ("<16ms", 2.5), ("<32ms", 2.2), ("<64ms", 0.3)],
    ),
    (
        "",
        "p60x2_e32s_s128_t1_wu6",
        26_381.01,
        &[("<4ms", 82.4), ("<8ms", 6.4), ("<16ms", 4.3), ("<32ms", 5.7), ("<64ms", 1.3)],
    ),
    (
        "",
        "p80x2_e32s_s128_t1_wu12",
        32_850.54,
        &[("<4ms", 60.5), ("<8ms", 23.4), ("<16ms", 4.5), ("<32ms", 9.4), ("<64ms", 2.2)],
    ),
    (
        "",
        "p80x2_e32s_s128_t1_wu16",
        33_300.21,
        &[("<4ms", 60.2), ("<8ms", 21.9), ("<16ms", 4.3), ("<32ms", 10.9), ("<64ms", 2.6)],
    ),
];

#[test]
fn the_matrix_of_reports_is_the_one_that_their_author_made_by_hand() {
    let Some(corpus) = corpus() else { return };
    let place = Place::new();
    let reported = imported(&place, &[corpus.join("flashgrid").to_str().unwrap(), "--json"]).json();
    let runs = reported.as_array().unwrap();
    assert_eq!(runs.len(), 10, "one for each directory of SLOB");
    for (cache, name, iops, buckets) in BY_HAND {
        let is_it = |run: &&serde_json::Value| {
            let path = run["files"][0]["path"].as_str().unwrap();
            run["name"] == *name && (cache.is_empty() || path.contains(&format!("/cache-{cache}/")))
        };
        let id = runs.iter().find(is_it).unwrap()["id"].as_str().unwrap();
        let row = &place.done(&["table", id, "--style", "matrix", "--format", "json"]).json()[0];
        let result = row["IOPS_RESULT"].as_f64().unwrap();
        assert!((result - iops).abs() <= 0.1, "{name} {cache}: {result} for {iops}");
        for (bucket, share) in buckets {
            let seen = row[bucket].as_f64().unwrap();
            assert!((seen - share).abs() < 0.051, "{name} {cache} {bucket}: {seen} for {share}");
        }
    }
}
