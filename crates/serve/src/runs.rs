//! The pages of runs: made when they are asked for, and kept for a while.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;

use super::problem::Problem;
use super::query::segment;
use super::state::is_recent;
use model::record::store::{self, Stamps};
use model::record::{Outcome, Timestamp};
use report::html::{self, Follow, Kept, Reported};

/// Pages that are kept.
const MAX_PAGES: usize = 8;
/// Bytes of all of them together; one that is larger by itself is not kept.
const MAX_BYTES: usize = 32 << 20;
/// Part of one processor that following a run may cost.
const SHARE: f64 = 0.05;
const SHORTEST_SECONDS: u32 = 2;
const LONGEST_SECONDS: u32 = 60;

/// A page as it was made once.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) page: Bytes,
    /// What a browser says to learn whether there is something new.
    pub(super) etag: String,
    key: String,
    at: Instant,
    /// Time between two looks, while the run goes on.
    follow: Option<Duration>,
}

/// Pages made lately, the latest at the back.
#[derive(Debug, Default)]
pub(super) struct Pages {
    made: Mutex<VecDeque<Arc<Made>>>,
}

impl Pages {
    /// The page of the run in `directory`, which is called `key` there.
    pub(super) fn page(&self, key: &str, directory: &Path, now: Timestamp) -> Result<Arc<Made>, Problem> {
        let gone = || Problem::NoRun { run: key.to_owned() };
        // Stamps are taken before anything is read, so that a page is never older than its tag says.
        let stamps = Stamps::of(directory).ok_or_else(gone)?;
        let may_go_on = is_recent(stamps.written_at(), now);
        let etag = etag(&stamps, may_go_on);
        if let Some(made) = self.kept(key, &etag, may_go_on) {
            return Ok(made);
        }
        let made = Arc::new(make(key, directory, etag, may_go_on)?);
        self.keep(&made);
        Ok(made)
    }

    /// A page that still holds, or that is so fresh that another look would cost more than it reports.
    fn kept(&self, key: &str, etag: &str, may_go_on: bool) -> Option<Arc<Made>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let found = made.iter().find(|made| made.key == key)?;
        // The browser's clock and ours need not agree about when a period is over.
        let is_fresh = |period: Duration| may_go_on && found.at.elapsed() < period.mul_f64(0.9);
        (found.etag == etag || found.follow.is_some_and(is_fresh)).then(|| Arc::clone(found))
    }

    fn keep(&self, page: &Arc<Made>) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|kept| kept.key != page.key);
        if page.page.len() <= MAX_BYTES {
            made.push_back(Arc::clone(page));
        }
        while made.len() > MAX_PAGES || made.iter().map(|kept| kept.page.len()).sum::<usize>() > MAX_BYTES {
            made.pop_front();
        }
    }
}

/// What the page depends on: the files, whether they can still grow, and the program that makes it.
fn etag(stamps: &Stamps, may_go_on: bool) -> String {
    let mut hasher = DefaultHasher::new();
    (stamps, may_go_on, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    // Two pages of the same state may differ in how often they look again.
    format!("W/\"{:016x}\"", hasher.finish())
}

fn make(key: &str, directory: &Path, etag: String, may_go_on: bool) -> Result<Made, Problem> {
    let began = Instant::now();
    let run = store::load(directory)?;
    let findings = analysis::analyse_asked(&run, None);
    let path = format!("/runs/{}", segment(key));
    // How long drawing takes is only known afterwards; it is about as much work as reading.
    let seconds = (may_go_on && run.outcome == Outcome::Unfinished).then(|| period_s(began.elapsed() * 2));
    let follow = seconds.map(|seconds| Follow { path: &path, seconds });
    let mut page = Vec::new();
    let reported = [Reported { run: &run, findings: &findings }];
    html::report(&mut page, &reported, &Kept::Served { follow })
        .map_err(|error| Problem::Unmade { reason: error.to_string() })?;
    // The browser asks at the pace that the page names. If drawing took longer than expected, the page stands longer here.
    let follow = seconds.map(|seconds| Duration::from_secs(seconds.max(period_s(began.elapsed())).into()));
    Ok(Made { page: page.into(), etag, key: key.to_owned(), at: Instant::now(), follow })
}

/// Seconds between two looks that cost this much each.
fn period_s(cost: Duration) -> u32 {
    let seconds = (cost.as_secs_f64() / SHARE).ceil().min(f64::from(LONGEST_SECONDS)) as u32;
    seconds.max(SHORTEST_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;
    use model::record::store::{INTERVALS_FILE, Store};

    fn now() -> Timestamp {
        Timestamp(jiff::Timestamp::now())
    }

    fn later(seconds: i64) -> Timestamp {
        Timestamp(now().0 + jiff::SignedDuration::from_secs(seconds))
    }

    #[test]
    fn a_look_costs_at_most_a_twentieth_of_a_processor_within_reason() {
        assert_eq!(period_s(Duration::from_millis(1)), 2);
        assert_eq!(period_s(Duration::from_millis(500)), 10);
        assert_eq!(period_s(Duration::from_secs(100)), 60);
    }

    #[test]
    fn a_page_is_made_again_only_when_its_files_have_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = Store::new(directory.path()).save(&sample::interrupted()).unwrap();
        let pages = Pages::default();
        let first = pages.page("a", &path, now()).unwrap();
        assert!(Arc::ptr_eq(&first, &pages.page("a", &path, now()).unwrap()));
        std::fs::write(path.join(INTERVALS_FILE), "").unwrap();
        let second = pages.page("a", &path, now()).unwrap();
        assert_ne!((&first.etag, &first.page), (&second.etag, &second.page));
    }

    #[test]
    fn a_run_is_followed_until_it_falls_silent() {
        let directory = tempfile::tempdir().unwrap();
        let mut run = sample::interrupted();
        run.outcome = Outcome::Unfinished;
        let path = Store::new(directory.path()).save(&run).unwrap();
        let pages = Pages::default();
        let text = |made: &Made| String::from_utf8(made.page.to_vec()).unwrap();
        let alive = pages.page("a b", &path, now()).unwrap();
        assert!(text(&alive).contains("data-follow=\"/runs/a%20b\" data-follow-seconds=\""));
        assert!(alive.follow >= Some(Duration::from_secs(SHORTEST_SECONDS.into())));
        // A page of the same time that stands for an hour: how long this machine took to draw does not matter then.
        let (page, etag, key) = (alive.page.clone(), alive.etag.clone(), alive.key.clone());
        let standing = Arc::new(Made { page, etag, key, at: Instant::now(), follow: Some(Duration::from_secs(3600)) });
        pages.keep(&standing);
        std::fs::write(path.join(INTERVALS_FILE), "").unwrap();
        assert!(Arc::ptr_eq(&standing, &pages.page("a b", &path, now()).unwrap()), "it is too early to look again");
        let silent = pages.page("a b", &path, later(120)).unwrap();
        assert!(!text(&silent).contains("data-follow=") && silent.etag != alive.etag);
    }

    #[test]
    fn few_pages_are_kept_and_no_more_than_so_many_bytes() {
        let pages = Pages::default();
        let made = |key: usize, bytes: usize| {
            let page = vec![0; bytes].into();
            Arc::new(Made { page, etag: String::new(), key: key.to_string(), at: Instant::now(), follow: None })
        };
        (0..20).for_each(|key| pages.keep(&made(key, 10)));
        assert_eq!(pages.made.lock().unwrap().len(), MAX_PAGES);
        pages.keep(&made(20, MAX_BYTES));
        assert_eq!(pages.made.lock().unwrap().len(), 1);
        pages.keep(&made(21, MAX_BYTES + 1));
        assert!(pages.kept("21", "", false).is_none() && pages.kept("20", "", false).is_some());
    }
}
