//! Runs that were kept: listing, showing, removing, reporting and tabulating them.

use crate::place::Place;

#[test]
fn runs_are_listed_in_the_order_in_which_they_were_made() {
    let place = Place::with_kept_runs();
    insta::assert_snapshot!(place.done(&["runs", "list"]).reported());
    assert_eq!(place.runs().len(), 4);
    let listed = place.done(&["runs", "list", "--json"]).json();
    let updates = listed.as_array().unwrap().iter().find(|run| run["id"] == "format-1-updates").unwrap();
    assert_eq!(updates["tags"], place.done(&["runs", "show", "format-1-updates", "--json"]).json()["tags"]);
    assert!(updates["tags"].is_object() && updates["largest_load"].is_string(), "{updates}");
}

#[test]
fn an_empty_store_is_no_error() {
    let place = Place::new();
    let answer = place.done(&["runs", "list"]);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("", "note: no runs in `./plimsoll-runs`\n"));
    assert_eq!(place.done(&["runs", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn a_run_that_cannot_be_read_is_named_and_the_others_are_listed() {
    let place = Place::with_kept_runs();
    place.write("plimsoll-runs/format-1-sweep/run.json", "{");
    let answer = place.done(&["runs", "list"]);
    assert!(answer.stdout.contains("format-1-updates") && !answer.stdout.contains("format-1-sweep"), "{answer}");
    assert!(answer.stderr.starts_with("note: cannot read"), "{answer}");
}

#[test]
fn a_run_is_shown_with_what_was_asked() {
    let place = Place::with_kept_runs();
    insta::assert_snapshot!(place.done(&["runs", "show", "format-1-interrupted"]).reported());
    let document = place.done(&["runs", "show", "format-1-sweep", "--json"]).json();
    assert_eq!(document["steps"].as_array().unwrap().len(), 6);
}

#[test]
fn a_kept_run_is_tagged_and_found_by_that() {
    let place = Place::with_kept_runs();
    let before = place.done(&["runs", "show", "format-1-imported", "--json"]).json();
    place.done(&["runs", "tag", "format-1-imported", "vm=d8s x2", "disk=p30"]);
    place.done(&["runs", "tag", "disk=p30", "disk=p40"]);
    let mut after = place.done(&["runs", "show", "disk=p40", "--json"]).json();
    assert_eq!((&after["tags"]["vm"], &after["tags"]["disk"]), (&"d8s x2".into(), &"p40".into()));
    after["tags"] = before["tags"].clone();
    assert_eq!(after, before, "nothing else has changed");
    let refused = place.run(&["runs", "tag", "format-1-imported", "vm"]);
    assert_eq!(refused.code, Some(2), "{refused}");
}

#[test]
fn a_check_is_listed_with_its_answer_and_what_was_asked() {
    let place = Place::new();
    let sim = "sim:service=200us,servers=8,iops_cap=8000,clock=simulated";
    assert_eq!(place.run(&["check", "--reads", "3000@5ms", sim, "--quiet"]).code, Some(0));
    assert_eq!(place.run(&["check", "--reads", "20000@5ms", sim, "--quiet"]).code, Some(1));
    let listed = place.done(&["runs", "list", "--json"]).json();
    let of = |place: usize, key: &str| listed[place][key].as_str().unwrap_or_default().to_owned();
    assert_eq!((of(0, "answer").as_str(), of(1, "answer").as_str()), ("yes", "no"), "{listed}");
    assert!(of(0, "largest_load").starts_with("asked") && of(1, "largest_load").starts_with("asked"), "{listed}");
    let asked = listed[0]["headline"]["operations_per_s"].as_f64().unwrap();
    assert!((2_500.0..3_500.0).contains(&asked), "{listed}");
    let text = place.done(&["runs", "list"]).stdout;
    assert!(text.contains("verdict") && text.contains("  yes  ") && text.contains("  no  "), "{text}");
    let table = place.done(&["table", "last", "--format", "csv"]).stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][1], "ANSWER", "{table}");
    let is_as_asked = |row: &&Vec<&str>| row[0].contains("/asked");
    assert!(rows[1..].iter().filter(is_as_asked).all(|row| row[1] == "no"), "{table}");
    assert!(rows[1..].iter().any(|row| !is_as_asked(&row) && row[1].is_empty()), "{table}");
}

#[test]
fn only_runs_are_removed_and_only_those_that_were_named() {
    let place = Place::with_kept_runs();
    let kept = |place: &Place| place.runs().len();
    let tagged = place.done(&["runs", "tag", "format-1-sweep", "vm=d8s", "--dry-run"]);
    assert!(tagged.stderr.contains("would tag") && place.run(&["runs", "show", "vm=d8s"]).code == Some(2), "{tagged}");
    place.done(&["runs", "rm", "format-1-sweep", "--dry-run"]);
    assert_eq!(kept(&place), 4);
    let misspelt = place.run(&["runs", "rm", "format-1-sweep", "format-1-swep"]);
    assert_eq!((misspelt.code, kept(&place)), (Some(2), 4), "{misspelt}");
    place.write("plimsoll-runs/format-1-imported/thesis.tex", "years of work");
    let foreign = place.run(&["runs", "rm", "format-1-imported"]);
    assert_eq!((foreign.code, kept(&place)), (Some(2), 4), "{foreign}");
    place.done(&["runs", "rm", "format-1-sweep", "format-1-updates", "format-1-sweep"]);
    assert_eq!(kept(&place), 2);
}

#[test]
fn a_run_is_reported_in_brief_and_in_full() {
    let place = Place::with_kept_runs();
    let brief = place.done(&["report", "format-1-updates"]).stdout;
    let full = place.done(&["report", "format-1-updates", "--full"]).stdout;
    assert!(
        brief.contains("`--full`") && brief.lines().count() <= 25 && !brief.contains("log file parallel write"),
        "{brief}"
    );
    assert!(full.contains("log file parallel write"), "{full}");
    let document = place.done(&["report", "format-1-sweep", "--json"]).json();
    assert_eq!(document["run"]["id"], "format-1-sweep");
    assert_eq!(document["findings"][0]["severity"], "answer");
}

#[test]
fn a_limit_that_no_step_keeps_is_exit_code_one() {
    let place = Place::with_kept_runs();
    let exit = |limit| place.run(&["report", "format-1-sweep", "--limit", limit]).code;
    assert_eq!(exit("p99=5ms"), Some(0));
    assert_eq!(exit("p99=10us"), Some(1));
    assert_eq!(exit("no such event:p99=10us"), Some(2), "an event that did not happen can judge nothing");
}

#[test]
fn figures_are_written_for_a_spreadsheet_but_not_over_other_files() {
    let place = Place::with_kept_runs();
    for _ in 0..2 {
        place.done(&["report", "format-1-sweep", "--csv", "figures"]);
    }
    let steps = std::fs::read_to_string(place.path("figures/steps.csv")).unwrap();
    assert_eq!(steps.lines().count(), 7);
    place.write("figures/waits.csv", "my own,data\n");
    let answer = place.run(&["report", "format-1-updates", "--csv", "figures"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("`figures/waits.csv` is not overwritten"), "{answer}");
    assert_eq!(std::fs::read_to_string(place.path("figures/steps.csv")).unwrap(), steps);
}

#[test]
fn a_page_is_written_whole_and_over_nothing_but_pages_of_ours() {
    let place = Place::with_kept_runs();
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let answer = place.done(&["report", "format-1-sweep", "-o", "report.html"]);
    assert!(answer.stdout.is_empty() && answer.stderr.contains("wrote `report.html`"), "{answer}");
    let first = read("report.html");
    assert!(first.starts_with("<!DOCTYPE html>") && first.trim_end().ends_with("</html>"));
    let text = place.done(&["report", "format-1-updates", "-o", "report.html", "--text"]).stdout;
    assert!(text.contains("format-1-updates") && read("report.html") != first, "our own page is replaced");
    assert_eq!(place.done(&["report", "format-1-sweep", "-o", "-"]).stdout, first);

    place.write("mine.html", "<html>my own</html>");
    let answer = place.run(&["report", "format-1-sweep", "-o", "mine.html"]);
    assert_eq!((answer.code, read("mine.html").as_str()), (Some(2), "<html>my own</html>"), "{answer}");
    assert!(answer.stderr.contains("`mine.html` is not overwritten") && answer.stderr.contains("hint: name another"));
    for (path, why) in [("no/such/report.html", "make its directory first"), (".", "name a file")] {
        let answer = place.run(&["report", "format-1-sweep", "-o", path]);
        assert!(answer.code == Some(2) && answer.stderr.contains(why), "{answer}");
    }
    let answer = place.run(&["report", "format-1-sweep", "-o", "-", "--json"]);
    assert!(answer.code == Some(2) && answer.stdout.is_empty(), "two documents in one stream: {answer}");
    let answer = place.run(&["report", "format-1-sweep", "-o", "mine.html", "--csv", "figures"]);
    assert!(answer.code == Some(2) && !place.path("figures").exists(), "half of what was asked was done: {answer}");
    std::os::unix::fs::symlink("report.html", place.path("link.html")).unwrap();
    place.done(&["report", "format-1-updates", "-o", "link.html"]);
    assert!(place.path("link.html").is_symlink() && read("report.html") == read("link.html"));
    let answer = place.run(&["report", "format-1-sweep", "format-1-sweep"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("is named twice"), "{answer}");
    let left: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn the_ending_of_a_name_says_what_is_written_and_others_are_refused() {
    let place = Place::with_kept_runs();
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    for (name, beginning) in
        [("a.html", &b"<!DOCTYPE html>"[..]), ("a.svg", b"<!-- made by plimsoll"), ("a.PNG", b"\x89PNG")]
    {
        for run in ["format-1-sweep", "format-1-updates"] {
            let answer = place.done(&["report", run, "-o", name]);
            assert!(answer.stdout.is_empty() && answer.stderr.contains(&format!("wrote `{name}`")), "{answer}");
            assert!(read(name).starts_with(beginning), "{name}");
        }
    }
    let answer = place.run(&["compare", "format-1-sweep", "format-1-updates", "-o", "b.svg", "--text"]);
    assert!(
        answer.code == Some(1) && answer.stdout.contains("worse"),
        "a picture takes nothing from the answer: {answer}"
    );
    assert!(read("b.svg").starts_with(b"<!-- made by plimsoll"));
    place.write("mine.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    for (arguments, why) in [
        (&["report", "format-1-sweep", "-o", "a.pdf"][..], "hint: write `-o FILE.html` and print"),
        (&["report", "format-1-sweep", "-o", "a.xlsx"], "hint: figures for a spreadsheet"),
        (&["report", "format-1-sweep", "-o", "mine.svg"], "`mine.svg` is not overwritten"),
        (&["report", "format-1-sweep", "format-1-updates", "-o", "c.png"], "hint: `plimsoll compare A B -o FILE.png`"),
        (&["trend", "format-1-sweep", "-o", "c.png"], "hint: `-o FILE.html` has them all"),
    ] {
        let answer = place.run(arguments);
        assert!(answer.code == Some(2) && answer.stderr.contains(why), "{answer}");
    }
    assert!(!place.path("a.pdf").exists() && !place.path("c.png").exists());
}

#[test]
fn one_csv_file_has_a_row_for_each_step_of_all_runs() {
    let place = Place::with_kept_runs();
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    place.done(&["report", "format-1-sweep", "format-1-updates", "--csv", "steps.csv"]);
    let rows = read("steps.csv");
    assert_eq!(rows.lines().filter(|row| row.starts_with("run,step,")).count(), 1, "{rows}");
    assert_eq!(rows.lines().filter(|row| row.starts_with("format-1-sweep,")).count(), 6, "{rows}");
    assert!(rows.contains("\nformat-1-updates,"), "{rows}");
    place.write("mine.csv", "my own,data\n");
    let answer = place.run(&["report", "format-1-sweep", "--csv", "mine.csv"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("`mine.csv` is not overwritten"), "{answer}");
    assert_eq!(read("mine.csv"), "my own,data\n");
    std::fs::create_dir(place.path("folder.csv")).unwrap();
    place.done(&["report", "format-1-sweep", "--csv", "folder.csv"]);
    assert!(place.path("folder.csv/waits.csv").is_file());
}

#[test]
fn several_runs_make_one_page_one_list_and_a_folder_each() {
    let place = Place::with_kept_runs();
    let both = |more: &[&str]| {
        let names = ["report", "format-1-sweep", "format-1-updates"];
        place.done(&names.iter().chain(more).copied().collect::<Vec<_>>())
    };
    both(&["-o", "both.html", "--csv", "figures"]);
    let page = std::fs::read_to_string(place.path("both.html")).unwrap();
    assert_eq!(page.matches("<article class=\"run\"").count(), 2);
    for run in ["format-1-sweep", "format-1-updates"] {
        assert!(place.path(&format!("figures/{run}/steps.csv")).is_file(), "{run}");
    }
    let documents = both(&["--json"]).json();
    let ids: Vec<_> = documents.as_array().unwrap().iter().map(|document| document["run"]["id"].clone()).collect();
    assert_eq!(ids, ["format-1-sweep", "format-1-updates"]);
    assert!(documents[0]["opening"].as_str().unwrap().starts_with("Sustains "), "{}", documents[0]["opening"]);
    let text = both(&[]).stdout;
    assert!(ids.iter().all(|id| text.contains(id.as_str().unwrap())), "{text}");
}

#[test]
fn an_id_that_is_a_path_leads_no_figures_out_of_their_folder() {
    let place = Place::with_kept_runs();
    let document = place.path("plimsoll-runs/format-1-sweep/run.json");
    let text = std::fs::read_to_string(&document).unwrap();
    std::fs::write(&document, text.replacen("\"format-1-sweep\"", "\"../../outside\"", 1)).unwrap();
    std::fs::create_dir_all(place.path("elsewhere/sub")).unwrap();
    place.done(&["report", "plimsoll-runs/format-1-sweep", "format-1-updates", "--csv", "elsewhere/sub"]);
    assert!(place.path("elsewhere/sub/format-1-sweep/steps.csv").is_file());
    assert!(!place.path("outside").exists() && !place.path("elsewhere/outside").exists());
}

#[test]
fn a_page_of_a_run_that_cannot_be_read_is_an_error_and_no_file() {
    let place = Place::with_kept_runs();
    let document = place.path("plimsoll-runs/format-1-sweep/run.json");
    let whole = std::fs::read_to_string(&document).unwrap();
    let newer = whole.replacen("\"format\": 1", "\"format\": 99", 1);
    for (text, why) in [(&whole[..whole.len() / 2], "cut short"), ("{}", "run.json"), (newer.as_str(), "format 99")] {
        std::fs::write(&document, text).unwrap();
        let answer = place.run(&["report", "plimsoll-runs/format-1-sweep", "-o", "report.html"]);
        assert_eq!(answer.code, Some(2), "{answer}");
        assert!(answer.stderr.contains(why) && answer.stderr.contains("hint: "), "{answer}");
        assert!(!place.path("report.html").exists(), "{why}");
    }
}

#[test]
fn tables_have_the_style_and_the_format_asked_for() {
    let place = Place::with_kept_runs();
    let table = |words: &str| {
        let arguments: Vec<&str> =
            ["table", "format-1-sweep", "format-1-updates"].into_iter().chain(words.split_whitespace()).collect();
        place.done(&arguments).stdout
    };
    insta::assert_snapshot!("table_awr", table(""));
    insta::assert_snapshot!("table_matrix", table("--style matrix"));
    assert!(table("--format markdown").starts_with("| "));
    assert_eq!(table("--style matrix --format csv").lines().count(), 1 + 6 + 1);
    let rows: serde_json::Value = serde_json::from_str(&table("--format json")).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 7);
}

#[test]
fn every_command_takes_the_same_words_for_runs() {
    let place = Place::with_kept_runs();
    let rows = |words: &str| {
        let arguments: Vec<&str> = ["table", "--format", "csv"].into_iter().chain(words.split_whitespace()).collect();
        place.done(&arguments).stdout.lines().count()
    };
    let all = rows("");
    assert_eq!((rows("--runs plimsoll-runs"), rows("format-1"), rows("./plimsoll-runs")), (all, all, all));
    assert_eq!(rows("last format-1"), all, "one of them is in both words, and taken once");
    let document = place.path("plimsoll-runs/format-1-sweep/run.json");
    let text = std::fs::read_to_string(&document).unwrap();
    std::fs::write(&document, text.replace("\"vm\": \"d8s\"", "\"vm\": \"d16s\"")).unwrap();
    let listed = |word: &str| {
        let runs = place.done(&["runs", "list", word, "--json"]).json();
        let ids = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!((listed("vm=d16s"), listed("vm=d8s").len()), (vec!["format-1-sweep".to_owned()], 3));
    assert_eq!(place.done(&["report", "vm=d8s", "--json"]).json().as_array().map(Vec::len), Some(3));
    let unknown = place.run(&["runs", "list", "vm=nobody"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("there is no run `vm=nobody`"), "{unknown}");
    let many = place.run(&["runs", "rm", "format-1"]);
    assert!(many.code == Some(2) && many.stderr.contains("may be any of"), "only a tag removes several: {many}");
    place.done(&["runs", "rm", "vm=d8s"]);
    assert_eq!(place.runs(), ["format-1-sweep"]);
}

#[test]
fn the_directory_of_runs_is_taken_from_flag_or_environment() {
    let place = Place::with_kept_runs();
    std::fs::rename(place.path("plimsoll-runs"), place.path("elsewhere")).unwrap();
    assert_eq!(place.run(&["report", "format-1-sweep"]).code, Some(2));
    place.done(&["report", "format-1-sweep", "--runs", "elsewhere"]);
    let output = place.plimsoll(&["report", "format-1-sweep"]).env("PLIMSOLL_RUNS", "elsewhere").output().unwrap();
    assert!(output.status.success());
}
