//! The site as a whole, without a network.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::problem::Problem;
use super::site::{Answer, PageRequest, Site, in_time};
use model::record::store::{INTERVALS_FILE, MAX_PAGE_STEPS, RUN_FILE, Store};
use model::record::{Outcome, Run, Step, Timestamp, sample};

struct Kept {
    directory: tempfile::TempDir,
    store: Store,
}

impl Kept {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("runs"));
        fs::create_dir(store.path()).unwrap();
        Self { directory, store }
    }

    /// Keeps a run made at that minute, with tags such as `vm=d8s disk=p30`.
    fn run(&self, id: &str, minute: u32, tags: &str) -> PathBuf {
        self.changed(id, |run| {
            run.started_at = Timestamp(format!("2026-11-20T10:{minute:02}:00Z").parse().unwrap());
            run.tags = tags
                .split(' ')
                .filter_map(|tag| tag.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
        })
    }

    fn changed(&self, id: &str, change: impl FnOnce(&mut Run)) -> PathBuf {
        let mut run = sample::interrupted();
        change(&mut run);
        run.id = id.to_owned();
        self.store.save(&run).unwrap()
    }

    fn site(&self) -> Site {
        Site::open(self.store.clone()).unwrap()
    }
}

fn ask(site: &Site, address: &str) -> Result<Answer, Problem> {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    site.answer(&PageRequest { path: path.to_owned(), query: query.to_owned(), known: None }, in_time())
}

fn page(site: &Site, address: &str) -> String {
    match ask(site, address) {
        Ok(Answer::Page(page, _)) => String::from_utf8(page.to_vec()).unwrap(),
        other => panic!("{address}: {other:?}"),
    }
}

fn json(site: &Site, address: &str) -> serde_json::Value {
    match ask(site, address) {
        Ok(Answer::Json(text)) => serde_json::from_slice(&text).unwrap(),
        other => panic!("{address}: {other:?}"),
    }
}

/// Ids that a list reports a program, in their order.
fn ids(site: &Site, query: &str) -> Vec<String> {
    let list = json(site, &format!("/runs.json{query}"));
    list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_list_has_every_run_newest_first_with_its_facts() {
    let kept = Kept::new();
    kept.run("a", 1, "vm=d8s");
    kept.run("b", 2, "vm=d16s");
    kept.changed("c", |run| run.outcome = Outcome::Failed { error: "the disk is <full>".to_owned() });
    let site = kept.site();
    assert_eq!(ids(&site, ""), ["c", "b", "a"]);
    let list = page(&site, "/");
    let places: Vec<_> = ["/runs/c\"", "/runs/b\"", "/runs/a\""].map(|link| list.find(link).unwrap()).into();
    assert!(places.is_sorted(), "{places:?}");
    assert!(list.contains("3 runs") && list.contains("failed<span"), "{list}");
    assert!(list.contains("the disk is &lt;full&gt;"), "{list}");
    assert!(list.contains("2026-11-20 10:02:00 UTC"), "{list}");
    assert!(list.contains("aria-label=\"Compare a\""), "{list}");
}

#[test]
fn a_check_is_listed_with_its_answer_and_what_was_asked() {
    let kept = Kept::new();
    kept.changed("check", |run| {
        run.outcome = Outcome::Completed;
        run.check = Some(sample::check_of_reads("10@5ms"));
        for (place, step) in run.steps.iter_mut().enumerate() {
            step.outcome = Outcome::Completed;
            step.label = ["asked", "x2", "x4"][place.min(2)].to_owned();
            step.load.rate_operations_per_s = Some(10.0 * (place + 1) as f64);
        }
    });
    let site = kept.site();
    for _ in 0..2 {
        let run = json(&site, "/runs.json")["runs"][0].clone();
        let answer = run["answer"].as_str().unwrap().to_owned();
        assert!(["yes", "no", "not measurable"].contains(&answer.as_str()), "{run}");
        assert_eq!(run["largest_load"], "asked");
        assert!(page(&site, "/").contains(&format!("<td class=\"plain\">{answer}</td>")));
    }
}

#[test]
fn filters_by_tag_must_all_match_and_text_finds_the_rest() {
    let kept = Kept::new();
    kept.run("a", 1, "vm=d8s disk=p30x2");
    kept.run("b", 2, "vm=d8s disk=p40");
    kept.run("c", 3, "vm=d16s disk=p30x2");
    let site = kept.site();
    assert_eq!(ids(&site, "?tag=vm=d8s"), ["b", "a"]);
    assert_eq!(ids(&site, "?tag=vm%3Dd8s&tag=disk=p30x2"), ["a"]);
    assert_eq!(ids(&site, "?tag=vm=d8s&tag=vm=d16s"), Vec::<String>::new());
    assert_eq!(ids(&site, "?tag=vm=d8"), Vec::<String>::new(), "a value is matched whole");
    assert_eq!(ids(&site, "?q=P30X"), ["c", "a"]);
    assert_eq!(ids(&site, "?q=p30x&tag=vm=d8s"), ["a"]);
    let list = page(&site, "/?tag=vm=d8s");
    assert!(list.contains("2 of 3 runs"), "{list}");
    assert!(list.contains("/?tag=vm%3Dd8s&amp;tag=disk%3Dp40\">p40</a> (1)"), "{list}");
    assert!(list.contains("<a href=\"/\" aria-label=\"Remove the filter vm=d8s\">"), "{list}");
    assert!(page(&site, "/?q=nothing+like+it").contains("No run is like that."));
}

#[test]
fn a_run_that_cannot_be_read_is_listed_with_what_is_wrong_and_what_to_do() {
    let kept = Kept::new();
    let broken = kept.run("broken", 1, "");
    let newer = kept.run("newer", 2, "");
    kept.run("sound", 3, "vm=d8s");
    fs::write(broken.join(RUN_FILE), "{\"format\": 1,").unwrap();
    fs::write(newer.join(RUN_FILE), r#"{"format": 99, "id": "newer"}"#).unwrap();
    let site = kept.site();
    assert_eq!(site.runs(), 1);
    let list = page(&site, "/");
    assert!(list.contains("Not readable (2)") && list.contains("copy it again from where it came from"), "{list}");
    assert!(list.contains("has format 99, but this program reads formats up to 1"), "{list}");
    assert_eq!(json(&site, "/runs.json")["problems"].as_array().unwrap().len(), 2);
    assert_eq!(json(&site, "/runs.json?q=newer")["problems"].as_array().unwrap().len(), 1);
    assert_eq!(json(&site, "/runs.json?tag=vm=d8s")["problems"].as_array().unwrap().len(), 0);
    for key in ["broken", "newer"] {
        let problem = ask(&site, &format!("/runs/{key}")).unwrap_err();
        assert_eq!(problem.status(), 500, "{problem}");
        assert!(problem.hint().is_some() && problem.page().contains("What to do"), "{problem}");
    }
}

#[test]
fn every_run_is_on_some_page() {
    let kept = Kept::new();
    let text = fs::read_to_string(kept.run("r000", 0, "").join(RUN_FILE)).unwrap();
    let all = super::list::RUNS_A_PAGE * 2 + 1;
    for number in 1..all {
        let directory = kept.store.path().join(format!("r{number:03}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(RUN_FILE), text.replace("\"id\": \"r000\"", &format!("\"id\": \"r{number:03}\"")))
            .unwrap();
    }
    let site = kept.site();
    let mut seen: Vec<String> = (1..=3).flat_map(|number| ids(&site, &format!("?page={number}"))).collect();
    assert_eq!((seen.len(), ids(&site, "").len()), (all, all));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
    let first = page(&site, "/?q=r");
    assert!(first.contains("href=\"/?q=r&amp;page=2\" rel=\"next\"") && !first.contains("rel=\"prev\""), "{first}");
    assert!(page(&site, "/?page=3").contains("href=\"/?page=2\" rel=\"prev\""));
    for wrong in ["/?page=4", "/?page=0", "/?page=x", "/?page=1&page=2", "/?pages=1", "/?tag=vm"] {
        assert_eq!(ask(&site, wrong).unwrap_err().status(), 400, "{wrong}");
    }
}

#[test]
fn a_new_run_can_be_opened_before_anybody_has_looked_at_the_list() {
    let kept = Kept::new();
    let site = kept.site();
    assert!(page(&site, "/").contains("There are no runs yet."));
    kept.run("late", 1, "");
    assert!(page(&site, "/runs/late").contains("late"));
}

#[test]
fn no_name_leads_out_of_the_store() {
    let kept = Kept::new();
    kept.run("a", 1, "");
    let outside = Store::new(kept.directory.path()).save(&Run { id: "outside".to_owned(), ..sample::interrupted() });
    assert!(outside.unwrap().join(RUN_FILE).is_file());
    let site = kept.site();
    for path in [
        "/runs/..%2foutside",
        "/runs/..%2Foutside/run.json",
        "/runs/../outside",
        "/runs/..",
        "/runs/.",
        "/runs/",
        "/runs",
        "/runs/a/",
        "/runs/a/../a/run.json",
        "/runs/a%00",
        "/runs/%ff",
        "/runs/%2e%2e%2foutside",
        "/runs/a/run.json.tmp",
        "/runs/a%2frun.json",
        "//runs/a",
        "/favicon.ico",
        "*",
        "",
    ] {
        let problem = ask(&site, path).unwrap_err();
        assert_eq!(problem.status(), 404, "{path}: {problem}");
    }
}

#[test]
fn files_are_sent_as_they_are_but_not_what_they_link_to() {
    let kept = Kept::new();
    let run = kept.run("a", 1, "");
    let site = kept.site();
    let Ok(Answer::File(download)) = ask(&site, "/runs/a/run.json") else { panic!("no file") };
    assert_eq!(download.bytes, fs::metadata(run.join(RUN_FILE)).unwrap().len());
    assert_eq!((download.content_type, download.name.as_str()), ("application/json", "a-run.json"));
    assert!(matches!(ask(&site, "/runs/a/intervals.jsonl"), Ok(Answer::File(_))));
    let secret = kept.directory.path().join("secret");
    fs::write(&secret, "precious").unwrap();
    fs::remove_file(run.join(INTERVALS_FILE)).unwrap();
    assert_eq!(ask(&site, "/runs/a/intervals.jsonl").unwrap_err().status(), 404);
    symlink(&secret, run.join(INTERVALS_FILE)).unwrap();
    assert_eq!(ask(&site, "/runs/a/intervals.jsonl").unwrap_err().status(), 500);
}

#[test]
fn a_comparison_names_its_runs_and_says_what_is_missing() {
    let kept = Kept::new();
    kept.run("a", 1, "");
    kept.run("b", 2, "");
    let site = kept.site();
    let compared = page(&site, "/compare?run=a&run=b&baseline=b&threshold=2");
    assert!(
        compared.contains("What differs in configuration")
            && compared.contains("/runs/a")
            && compared.contains("/runs/b")
    );
    assert_eq!(ask(&site, "/compare?run=a&run=x").unwrap_err().status(), 404);
    assert_eq!(ask(&site, "/compare?run=a").unwrap_err().status(), 400);
}

#[test]
fn whatever_stands_in_a_document_is_shown_as_text() {
    const HOSTILE: &str = "\"><script>alert('x')</script><img src=x onerror=alert(1)>";
    let kept = Kept::new();
    kept.run("other", 1, "");
    kept.changed("hostile", |run| {
        run.name = HOSTILE.to_owned();
        run.target.address = HOSTILE.to_owned();
        run.tags.insert("vm".to_owned(), HOSTILE.to_owned());
        run.tags.insert(HOSTILE.to_owned(), "x".to_owned());
        run.outcome = Outcome::Failed { error: HOSTILE.to_owned() };
        run.steps[0].label = HOSTILE.to_owned();
    });
    fs::rename(kept.run("x", 2, ""), kept.store.path().join("q\"><script>alert('k')<")).unwrap();
    let site = kept.site();
    let query = format!("/?q={}", super::query::segment(HOSTILE));
    let tag = format!("/?tag=vm%3D{}", super::query::segment(HOSTILE));
    for address in ["/", &query, &tag, "/runs/q%22%3E%3Cscript%3Ealert('k')%3C"] {
        let page = page(&site, address);
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "{address}: {page}");
    }
    assert_eq!(ids(&site, &tag[1..]), ["hostile"]);
}

#[test]
fn a_page_that_the_browser_has_is_not_sent_again() {
    let kept = Kept::new();
    let run = kept.run("a", 1, "");
    let site = kept.site();
    let ask = |known: Option<&str>| {
        let known = known.map(str::to_owned);
        site.answer(&PageRequest { path: "/runs/a".to_owned(), query: String::new(), known }, in_time()).unwrap()
    };
    let Answer::Page(_, Some(etag)) = ask(None) else { panic!("no tag") };
    for known in [etag.as_str(), "*", etag.trim_start_matches("W/"), &format!("\"other\", {etag}")] {
        assert!(matches!(ask(Some(known)), Answer::Unchanged(_)), "{known}");
    }
    assert!(matches!(ask(Some("\"other\"")), Answer::Page(..)));
    fs::write(run.join(INTERVALS_FILE), "").unwrap();
    assert!(matches!(ask(Some(&etag)), Answer::Page(..)));
}

#[test]
fn a_run_made_to_hurt_is_named_and_nothing_waits_for_it() {
    let kept = Kept::new();
    kept.run("good", 1, "");
    let piped = kept.run("piped", 2, "").join(INTERVALS_FILE);
    fs::remove_file(&piped).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&piped).status().unwrap().success());
    let endless = kept.run("endless", 3, "").join(INTERVALS_FILE);
    fs::remove_file(&endless).unwrap();
    symlink("/dev/zero", &endless).unwrap();
    let many = kept.changed("many", |run| {
        let step = run.steps[0].clone();
        run.steps =
            (0..=MAX_PAGE_STEPS as u32).map(|index| Step { index, intervals: Vec::new(), ..step.clone() }).collect();
    });
    let site = kept.site();
    for (key, what) in [("piped", "it is a pipe"), ("endless", "it is a symbolic link")] {
        for address in [format!("/runs/{key}"), format!("/compare?run=good&run={key}")] {
            let problem = ask(&site, &address).unwrap_err();
            assert!(problem.status() == 500 && problem.to_string().contains(what), "{address}: {problem}");
        }
        assert_eq!(ask(&site, &format!("/runs/{key}/{INTERVALS_FILE}")).unwrap_err().status(), 500);
    }
    let problem = ask(&site, "/runs/many").unwrap_err();
    let reason = format!("`{}` is too large for a page: it has 4,001 steps", many.display());
    assert!(problem.to_string().starts_with(&reason), "{problem}");
    assert!(page(&site, "/").contains("is too large for a page"), "the list names it");
    assert!(page(&site, "/runs/good").contains("good"));
}

#[test]
fn runs_that_are_small_by_themselves_can_be_too_large_together() {
    let kept = Kept::new();
    for id in ["a", "b"] {
        kept.changed(id, |run| {
            let step = run.steps[0].clone();
            let steps = 0..(MAX_PAGE_STEPS / 2 + 1) as u32;
            run.steps = steps.map(|index| Step { index, intervals: Vec::new(), ..step.clone() }).collect();
        });
    }
    let problem = ask(&kept.site(), "/compare?run=a&run=b").unwrap_err();
    assert_eq!(problem.status(), 413, "{problem}");
    assert!(
        problem.to_string().contains("/b` is too large for a page: it has 2,001 steps, more than 1,999"),
        "{problem}"
    );
}

#[test]
fn reading_ends_with_the_time_for_a_page() {
    let kept = Kept::new();
    kept.run("a", 1, "");
    let asked = PageRequest { path: "/runs/a".to_owned(), ..PageRequest::default() };
    let problem = kept.site().answer(&asked, Instant::now() - Duration::from_secs(1)).unwrap_err();
    assert_eq!(problem.status(), 503, "{problem}");
}
