//! What stands at which address.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;

use super::answers::Answers;
use super::compare::{self, Comparison};
use super::list;
use super::metrics::Metrics;
use super::problem::Problem;
use super::query::{Query, decoded_segment};
use super::runs::Pages;
use model::record::Timestamp;
use model::record::store::{self, INTERVALS_FILE, Index, Indexed, Look, RUN_FILE, Store, StoreError};

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

    /// Answers a question. It reads files and makes pages, so it may take its time.
    pub(super) fn answer(&self, asked: &PageRequest) -> Result<Answer, Problem> {
        let no_page = || Problem::NoPage { path: asked.path.clone() };
        let path = asked.path.strip_prefix('/').ok_or_else(no_page)?;
        // Cut first and decoded then, so that an encoded slash does not make two segments of one.
        let segments: Option<Vec<String>> = path.split('/').map(decoded_segment).collect();
        let segments = segments.ok_or_else(no_page)?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [""] => self.list(&asked.query),
            ["runs.json"] => self.list_for_program(&asked.query),
            ["metrics"] => {
                Query::parse(&asked.query, &[])?;
                let (runs, _) = self.look()?;
                Ok(Answer::Metrics(self.metrics.text(&runs, now())?.into()))
            }
            ["grafana.json"] => {
                Query::parse(&asked.query, &[])?;
                Ok(Answer::Json(Bytes::from_static(GRAFANA_DASHBOARD.as_bytes())))
            }
            ["compare"] => self.compare(&asked.query),
            ["runs", key] => {
                Query::parse(&asked.query, &[])?;
                self.run(key, asked.known.as_deref())
            }
            ["runs", key, file @ (RUN_FILE | INTERVALS_FILE)] => {
                Query::parse(&asked.query, &[])?;
                self.download(key, file)
            }
            _ => Err(no_page()),
        }
    }

    fn list(&self, query: &str) -> Result<Answer, Problem> {
        let asked = list::ListQuery::from_query(query)?;
        let (runs, store) = self.look()?;
        let page = list::for_person(&runs, &asked, &store, now(), &self.answers)?;
        Ok(Answer::Page(page.into(), None))
    }

    fn list_for_program(&self, query: &str) -> Result<Answer, Problem> {
        let asked = list::ListQuery::from_query(query)?;
        let (runs, _) = self.look()?;
        Ok(Answer::Json(list::for_program(&runs, &asked, now(), &self.answers)?.into()))
    }

    fn compare(&self, query: &str) -> Result<Answer, Problem> {
        let asked = Comparison::from_query(query)?;
        // All are looked for before the first is read, since reading takes longer.
        let found: Vec<_> = asked.runs.iter().map(|key| self.find(key)).collect::<Result<_, _>>()?;
        let load = |run: &Arc<Indexed>| Ok::<_, Problem>((run.key.clone(), store::load(&run.path)?));
        let mut runs: Vec<_> = found.iter().map(load).collect::<Result<_, _>>()?;
        asked.in_order(&mut runs);
        Ok(Answer::Page(compare::comparison(&runs, asked.threshold_pct).into(), None))
    }

    fn run(&self, key: &str, known: Option<&str>) -> Result<Answer, Problem> {
        let run = self.find(key)?;
        let made = self.pages.page(key, &run.path, now())?;
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
        // The file itself and nothing that it links to: whoever copied a run here may not know where its links lead.
        let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path);
        let file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Problem::NoPage { path: format!("/runs/{key}/{name}") });
            }
            opened => opened.map_err(cannot)?,
        };
        let kind = file.metadata().map_err(cannot)?;
        if !kind.is_file() {
            return Err(Problem::NoPage { path: format!("/runs/{key}/{name}") });
        }
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
