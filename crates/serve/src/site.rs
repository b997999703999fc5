//! What stands at which address.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;

use super::compare::{self, Comparison};
use super::list::{self, Answers};
use super::problem::Problem;
use super::query::{Query, decoded_segment, segment};
use super::state::{State, is_recent};
use model::plain::{self, Links};
use model::record::store::{
    self, Allowance, INTERVALS_FILE, Index, Indexed, IntervalLines, Look, RUN_FILE, Stamp, Stamps, Store, StoreError,
};
use model::record::{Interval, Outcome, Timestamp};
use report::html::{Follow, Kept, Reported};
use report::openmetrics::SoFar;
use report::{html, openmetrics};

/// A dashboard of what `/metrics` has, for Grafana's import.
const GRAFANA_DASHBOARD: &str = include_str!("../../../examples/grafana/plimsoll.json");

/// What a browser asks for.
#[derive(Debug, Default)]
pub(super) struct PageRequest {
    /// Path, as it was sent.
    pub(super) path: String,
    /// Query, as it was sent, without the question mark.
    pub(super) query: String,
    /// The tags of pages that the browser has already, as it sent them.
    pub(super) known: Option<String>,
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// A page, and the tag by which a browser may ask for it again.
    Page(Bytes, Option<String>),
    /// The browser has the page with this tag, and nothing is new.
    Unchanged(String),
    /// A document for programs.
    Json(Bytes),
    /// Metrics of runs in progress.
    Metrics(Bytes),
    /// A file as it is.
    File(Download),
}

/// A file to be sent.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) file: File,
    /// Its length when it was opened. It may grow while it is sent.
    pub(super) bytes: u64,
    pub(super) content_type: &'static str,
    /// What a browser shall call it.
    pub(super) name: String,
}

/// All that is served.
#[derive(Debug)]
pub(super) struct Site {
    index: Mutex<Index>,
    pages: Pages,
    answers: Answers,
    metrics: Metrics,
}

impl Site {
    /// The pages of `store`, which is looked at once now.
    pub(super) fn open(store: Store) -> Result<Self, StoreError> {
        let mut index = Index::new(store);
        index.refresh()?;
        Ok(Self {
            index: Mutex::new(index),
            pages: Pages::default(),
            answers: Answers::default(),
            metrics: Metrics::default(),
        })
    }

    /// Runs found by the last look that can be read.
    pub(super) fn runs(&self) -> usize {
        self.index().runs().iter().filter(|run| run.read.is_ok()).count()
    }

    /// Answers a question, reading files no longer than `until`.
    pub(super) fn answer(&self, asked: &PageRequest, until: Instant) -> Result<Answer, Problem> {
        let no_page = || Problem::NoPage { path: asked.path.clone() };
        let path = asked.path.strip_prefix('/').ok_or_else(no_page)?;
        // Cut first and decoded then, so that an encoded slash does not make two segments of one.
        let segments: Option<Vec<String>> = path.split('/').map(decoded_segment).collect();
        let segments = segments.ok_or_else(no_page)?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [""] => self.list(&asked.query, until),
            ["runs.json"] => self.list_for_program(&asked.query, until),
            ["metrics"] => {
                Query::parse(&asked.query, &[])?;
                let (runs, _) = self.look()?;
                Ok(Answer::Metrics(self.metrics.text(&runs, now(), until)?.into()))
            }
            ["grafana.json"] => {
                Query::parse(&asked.query, &[])?;
                Ok(Answer::Json(Bytes::from_static(GRAFANA_DASHBOARD.as_bytes())))
            }
            ["compare"] => self.compare(&asked.query, until),
            ["runs", key] => {
                Query::parse(&asked.query, &[])?;
                self.run(key, asked.known.as_deref(), until)
            }
            ["runs", key, file @ (RUN_FILE | INTERVALS_FILE)] => {
                Query::parse(&asked.query, &[])?;
                self.download(key, file)
            }
            _ => Err(no_page()),
        }
    }

    fn list(&self, query: &str, until: Instant) -> Result<Answer, Problem> {
        let asked = list::ListQuery::from_query(query)?;
        let (runs, store) = self.look()?;
        let page = list::for_person(&runs, &asked, &store, now(), &self.answers.until(until))?;
        Ok(Answer::Page(page.into(), None))
    }

    fn list_for_program(&self, query: &str, until: Instant) -> Result<Answer, Problem> {
        let asked = list::ListQuery::from_query(query)?;
        let (runs, _) = self.look()?;
        Ok(Answer::Json(list::for_program(&runs, &asked, now(), &self.answers.until(until))?.into()))
    }

    fn compare(&self, query: &str, until: Instant) -> Result<Answer, Problem> {
        let asked = Comparison::from_query(query)?;
        // All are looked for before the first is read, since reading takes longer.
        let found: Vec<_> = asked.runs.iter().map(|key| self.find(key)).collect::<Result<_, _>>()?;
        let mut allowance = Allowance::of_page(until);
        let load =
            |run: &Arc<Indexed>| Ok::<_, Problem>((run.key.clone(), store::load_within(&run.path, &mut allowance)?));
        let mut runs: Vec<_> = found.iter().map(load).collect::<Result<_, _>>()?;
        asked.in_order(&mut runs);
        Ok(Answer::Page(compare::comparison(&runs, asked.threshold_pct).into(), None))
    }

    fn run(&self, key: &str, known: Option<&str>, until: Instant) -> Result<Answer, Problem> {
        let run = self.find(key)?;
        let made = self.pages.page(key, &run.path, now(), until)?;
        let etag = made.etag.clone();
        if known.is_some_and(|known| names(known, &etag)) {
            return Ok(Answer::Unchanged(etag));
        }
        Ok(Answer::Page(made.page.clone(), Some(etag)))
    }

    fn download(&self, key: &str, name: &str) -> Result<Answer, Problem> {
        let run = self.find(key)?;
        let path = run.path.join(name);
        let cannot = |source| Problem::Store(StoreError::Io { path: path.clone(), doing: "open", source });
        let no_page = || Problem::NoPage { path: format!("/runs/{key}/{name}") };
        // Whoever copied a run here may not know where its links lead.
        let file = plain::open(&path, Links::Refused).map_err(|error| match error.kind() {
            ErrorKind::NotFound => no_page(),
            _ => cannot(error),
        })?;
        let kind = file.metadata().map_err(cannot)?;
        let content_type = if name == RUN_FILE { "application/json" } else { "application/jsonl" };
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name = format!("{}-{name}", key.chars().map(plain).collect::<String>());
        Ok(Answer::File(Download { file, bytes: kind.len(), content_type, name }))
    }

    /// The run in the directory called `key`. Only names that a look has found lead anywhere, so none leads out of the
    /// store.
    fn find(&self, key: &str) -> Result<Arc<Indexed>, Problem> {
        if let Some(run) = self.index().get(key)
            && run.path.join(RUN_FILE).is_file()
        {
            return Ok(run);
        }
        let mut index = self.index();
        index.refresh()?;
        index.get(key).ok_or_else(|| Problem::NoRun { run: key.to_owned() })
    }

    fn look(&self) -> Result<(Look, PathBuf), Problem> {
        let mut index = self.index();
        index.refresh()?;
        Ok((index.runs(), index.store().path().to_owned()))
    }

    /// A look that ended in a panic leaves what was known before.
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a list of tags names this one; whether they are weak makes no difference.
fn names(known: &str, etag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.split(',').any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now())
}

/// Runs in progress, each with what was read of it.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<HashMap<PathBuf, Followed>>);

/// A run that is read as it grows.
#[derive(Debug)]
struct Followed {
    /// The file that was opened: another one of the same name is another run's.
    inode: u64,
    lines: IntervalLines,
    so_far: SoFar,
}

impl Metrics {
    /// The text of all runs that go on. What has ended, or was read wrong, is forgotten.
    pub(super) fn text(&self, runs: &Look, now: Timestamp, until: Instant) -> Result<String, Problem> {
        let going_on: Vec<_> = runs
            .iter()
            .filter_map(|run| Some((run, run.read.as_ref().ok()?)))
            .filter(|(run, summary)| State::of(&summary.outcome, run.written_at, now) == State::InProgress)
            .collect();
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|path, _| going_on.iter().any(|(run, _)| run.path == *path));
        for (run, _) in &going_on {
            let before = followed.remove(&run.path);
            if let Some(now) = read_on(&run.path, before, until)? {
                followed.insert(run.path.clone(), now);
            }
        }
        // A run that has only just begun has no intervals, and nothing to report but its name.
        let nothing = SoFar::default();
        let so_far = |path: &Path| followed.get(path).map_or(&nothing, |followed| &followed.so_far);
        let runs: Vec<_> =
            going_on.iter().map(|(run, summary)| (run.key.as_str(), *summary, so_far(&run.path))).collect();
        Ok(openmetrics::text(&runs))
    }
}

/// Reads what has been added to a run since it was last read.
fn read_on(directory: &Path, before: Option<Followed>, until: Instant) -> Result<Option<Followed>, Problem> {
    let Some(stamp) = Stamp::of(&directory.join(INTERVALS_FILE)) else { return Ok(None) };
    let mut followed = match before.filter(|followed| followed.inode == stamp.inode) {
        Some(followed) => followed,
        None => {
            let Some(lines) = IntervalLines::open(directory)? else { return Ok(None) };
            Followed { inode: stamp.inode, lines, so_far: SoFar::default() }
        }
    };
    let allowance = Allowance::of_page(until);
    while let Some(interval) = followed.lines.read::<Interval>()? {
        followed.so_far.add(&interval);
        allowance.on_time(directory)?;
    }
    // Half a line was taken, whose other half would be no interval: the next time begins anew.
    if followed.lines.is_cut_short() {
        followed.inode = 0
    }
    Ok(Some(followed))
}

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
struct Made {
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
struct Pages {
    made: Mutex<VecDeque<Arc<Made>>>,
}

impl Pages {
    /// The page of the run in `directory`, which is called `key` there.
    pub(super) fn page(
        &self,
        key: &str,
        directory: &Path,
        now: Timestamp,
        until: Instant,
    ) -> Result<Arc<Made>, Problem> {
        let gone = || Problem::NoRun { run: key.to_owned() };
        // Stamps are taken before anything is read, so that a page is never older than its tag says.
        let stamps = Stamps::of(directory).ok_or_else(gone)?;
        let may_go_on = is_recent(stamps.written_at(), now);
        let etag = etag(&stamps, may_go_on);
        if let Some(made) = self.kept(key, &etag, may_go_on) {
            return Ok(made);
        }
        let made = Arc::new(make(key, directory, etag, may_go_on, until)?);
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

fn make(key: &str, directory: &Path, etag: String, may_go_on: bool, until: Instant) -> Result<Made, Problem> {
    let began = Instant::now();
    let mut allowance = Allowance::of_page(until);
    let run = store::load_within(directory, &mut allowance)?;
    let findings = analysis::analyse_as_requested(&run);
    allowance.on_time(directory)?;
    let path = format!("/runs/{}", segment(key));
    // How long drawing takes is only known afterwards; it is about as much work as reading.
    let seconds = (may_go_on && run.outcome == Outcome::Unfinished).then(|| period_s(began.elapsed() * 2));
    let follow = seconds.map(|seconds| Follow { path: &path, seconds });
    let mut page = Vec::new();
    let reported = [Reported::new(&run, &findings)];
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

/// A time that no test reaches.
#[cfg(test)]
pub(super) fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use model::record::store::{Index, Store};
    use model::record::{Outcome, sample};

    struct Kept {
        _directory: tempfile::TempDir,
        index: Index,
        run: PathBuf,
        metrics: Metrics,
    }

    impl Kept {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::new(directory.path());
            let mut run = sample::updates(3);
            run.outcome = Outcome::Unfinished;
            let path = store.save(&run).unwrap();
            Self { _directory: directory, index: Index::new(store), run: path, metrics: Metrics::default() }
        }

        fn operations(&mut self) -> Option<u64> {
            self.index.refresh().unwrap();
            let text = self.metrics.text(&self.index.runs(), Timestamp(jiff::Timestamp::now()), in_time()).unwrap();
            let line = text.lines().find(|line| line.starts_with("plimsoll_operations_total"))?;
            line.rsplit(' ').next()?.parse().ok()
        }
    }

    #[test]
    fn a_run_that_goes_on_is_read_as_it_grows() {
        let mut kept = Kept::new();
        let before = kept.operations().unwrap();
        assert_eq!(kept.operations(), Some(before), "nothing was added");
        let path = kept.run.join(INTERVALS_FILE);
        let lines = fs::read_to_string(&path).unwrap();
        let last = lines.lines().last().unwrap().to_owned();
        let more = serde_json::from_str::<Interval>(&last).unwrap().counters.operations.unwrap();
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        writeln!(file, "{last}").unwrap();
        assert_eq!(kept.operations(), Some(before + more));
        // Half a line counts for nothing, and for all of itself once it is whole.
        write!(file, "{}", &last[..last.len() / 2]).unwrap();
        assert_eq!(kept.operations(), Some(before + more));
        writeln!(file, "{}", &last[last.len() / 2..]).unwrap();
        assert_eq!(kept.operations(), Some(before + 2 * more));
    }

    #[test]
    fn a_run_that_has_ended_is_gone() {
        let mut kept = Kept::new();
        assert!(kept.operations().is_some());
        let text = fs::read_to_string(kept.run.join("run.json")).unwrap().replace("\"unfinished\"", "\"completed\"");
        fs::write(kept.run.join("run.json"), text).unwrap();
        assert_eq!(kept.operations(), None);
        let text = kept.metrics.text(&kept.index.runs(), Timestamp(jiff::Timestamp::now()), in_time()).unwrap();
        assert!(text.ends_with("# EOF\n") && !text.contains("plimsoll_run_info{"), "{text}");
        assert!(kept.metrics.0.lock().unwrap().is_empty());
    }
}

#[cfg(test)]
mod runs_tests {
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
        let first = pages.page("a", &path, now(), in_time()).unwrap();
        assert!(Arc::ptr_eq(&first, &pages.page("a", &path, now(), in_time()).unwrap()));
        std::fs::write(path.join(INTERVALS_FILE), "").unwrap();
        let second = pages.page("a", &path, now(), in_time()).unwrap();
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
        let alive = pages.page("a b", &path, now(), in_time()).unwrap();
        assert!(text(&alive).contains("data-follow=\"/runs/a%20b\" data-follow-seconds=\""));
        assert!(alive.follow >= Some(Duration::from_secs(SHORTEST_SECONDS.into())));
        // A page of the same time that stands for an hour: how long this machine took to draw does not matter then.
        let (page, etag, key) = (alive.page.clone(), alive.etag.clone(), alive.key.clone());
        let standing = Arc::new(Made { page, etag, key, at: Instant::now(), follow: Some(Duration::from_secs(3600)) });
        pages.keep(&standing);
        std::fs::write(path.join(INTERVALS_FILE), "").unwrap();
        assert!(
            Arc::ptr_eq(&standing, &pages.page("a b", &path, now(), in_time()).unwrap()),
            "it is too early to look again"
        );
        let silent = pages.page("a b", &path, later(120), in_time()).unwrap();
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
