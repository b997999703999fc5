//! The list of runs: for a person, and for a program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::filter::{self, Filter};
use super::problem::Problem;
use super::query::{Query, segment};
use super::state::{State, instant};
use analysis::ListedVerdict;
use model::record::store::{Allowance, Headline, Indexed, Stamps, StoreError, Summary};
use model::record::{Outcome, Timestamp, store};
use model::units::group_thousands;
use report::html::{Head, Kept, page};

const STYLE: &str = include_str!("list.css");
const PAGE: &str = "page";
const KEYS: &[&str] = &[filter::TAG, filter::TEXT, PAGE];
/// Runs on one page.
pub(super) const RUNS_A_PAGE: usize = 200;
/// Values of one tag that are offered as filters; the others are in the rows.
const MAX_VALUES: usize = 24;
/// Runs that cannot be read that are reported in full.
const MAX_PROBLEMS: usize = 50;

/// Which part of which list is asked for.
#[derive(Debug)]
pub(super) struct ListQuery {
    filter: Filter,
    /// From 1; none where no page was named.
    page: Option<usize>,
}

impl ListQuery {
    pub(super) fn from_query(text: &str) -> Result<Self, Problem> {
        let query = Query::parse(text, KEYS)?;
        let page = match query.one(PAGE)? {
            None => None,
            Some(text) => {
                let number = text.parse().ok().filter(|number| *number > 0);
                let wrong = || Problem::query(PAGE, text, format_args!("pages are counted from 1"));
                Some(number.ok_or_else(wrong)?)
            }
        };
        Ok(Self { filter: Filter::from_query(&query)?, page })
    }
}

/// The runs that a filter lets through.
struct Chosen<'a> {
    runs: Vec<(&'a Indexed, &'a Summary)>,
    unread: Vec<&'a Indexed>,
}

impl<'a> Chosen<'a> {
    fn from(runs: &'a [Arc<Indexed>], filter: &Filter) -> Self {
        let mut chosen = Self { runs: Vec::new(), unread: Vec::new() };
        for run in runs.iter().filter(|run| filter.lets_through(run)) {
            match &run.read {
                Ok(summary) => chosen.runs.push((run, summary)),
                Err(_) => chosen.unread.push(run),
            }
        }
        chosen
    }

    fn pages(&self) -> usize {
        self.runs.len().div_ceil(RUNS_A_PAGE).max(1)
    }

    fn on_page(&self, number: usize) -> Result<&[(&'a Indexed, &'a Summary)], Problem> {
        let pages = self.pages();
        if number > pages {
            let reason = if pages == 1 { "there is 1 page".to_owned() } else { format!("there are {pages} pages") };
            return Err(Problem::query(PAGE, &number.to_string(), format_args!("{reason}")));
        }
        let from = (number - 1) * RUNS_A_PAGE;
        Ok(&self.runs[from..self.runs.len().min(from + RUNS_A_PAGE)])
    }
}

/// The list as a page.
pub(super) fn for_person(
    runs: &[Arc<Indexed>],
    asked: &ListQuery,
    store: &Path,
    now: Timestamp,
    answers: &AnswersUntil<'_>,
) -> Result<String, Problem> {
    let filter = &asked.filter;
    let chosen = Chosen::from(runs, filter);
    let number = asked.page.unwrap_or(1);
    let shown = chosen.on_page(number)?;
    let all = runs.iter().filter(|run| run.read.is_ok()).count();
    let body = html! {
        style { (PreEscaped(STYLE)) }
        h1 { "Runs" }
        p { (reported_count(chosen.runs.len(), all, filter)) " in " code { (store.display()) } }
        (search(filter))
        (active(filter))
        (offered(&chosen, filter))
        @if chosen.runs.is_empty() {
            p { (nothing(all)) }
        } @else {
            form action="/compare" method="get" {
                div.list-bar {
                    button type="submit" { "Compare" }
                    label {
                        "Differences that matter, in percent "
                        input type="number" name="threshold" value="5" min="0" max="1000" step="any";
                    }
                    span { "Tick the runs to compare; the oldest of them is what the others are measured by." }
                }
                (table(shown, filter, now, answers))
            }
            (pages(filter, number, chosen.pages()))
        }
        (unread(&chosen.unread))
    };
    Ok(page(&Head { title: "Runs", kept: &Kept::Served { follow: None } }, &body))
}

fn reported_count(matching: usize, all: usize, filter: &Filter) -> String {
    let runs = if all == 1 { "run" } else { "runs" };
    let counted = |count: usize| group_thousands(count as f64);
    if filter.is_empty() {
        format!("{} {runs}", counted(all))
    } else {
        format!("{} of {} {runs}", counted(matching), counted(all))
    }
}

fn nothing(all: usize) -> &'static str {
    if all == 0 {
        "There are no runs yet. The first one that is kept here will be listed."
    } else {
        "No run is like that."
    }
}

fn search(filter: &Filter) -> Markup {
    html! {
        form.list-bar action="/" method="get" role="search" {
            label { "Text in id, name, target or tags " input type="search" name=(filter::TEXT) value=(filter.text); }
            @for (key, value) in &filter.tags { input type="hidden" name=(filter::TAG) value={ (key) "=" (value) }; }
            button type="submit" { "Filter" }
        }
    }
}

fn active(filter: &Filter) -> Markup {
    html! {
        @if !filter.is_empty() {
            nav aria-label="Filters in force" {
                ul.list-links {
                    @for (key, value) in &filter.tags {
                        li {
                            a href=(filter.without(key, value).link("/", 1)) aria-label={ "Remove the filter " (key) "=" (value) } {
                                (key) "=" (value) " ×"
                            }
                        }
                    }
                    @if !filter.text.is_empty() {
                        li {
                            a href=(filter.without_text().link("/", 1)) aria-label={ "Remove the filter " (filter.text) } {
                                "“" (filter.text) "” ×"
                            }
                        }
                    }
                    li { a href="/" { "Remove all filters" } }
                }
            }
        }
    }
}

/// Values of tags among the runs chosen, the most frequent first. One that all of them have distinguishes nothing.
fn offered(chosen: &Chosen<'_>, filter: &Filter) -> Markup {
    let total = chosen.runs.len();
    let counts = filter::counts(chosen.runs.iter().map(|(_, summary)| *summary));
    // Numbers of runs and the like tell every run from every other, which the list does anyway.
    let telling = |values: &BTreeMap<&str, usize>| {
        values.values().any(|count| *count < total)
            && (values.len() <= MAX_VALUES || values.values().any(|count| *count > 1))
    };
    let keys: Vec<_> = counts.into_iter().filter(|(_, values)| telling(values)).collect();
    html! {
        @if !keys.is_empty() {
            nav aria-label="Filter by tag" {
                dl.list-tags {
                    @for (key, values) in &keys {
                        dt { (key) }
                        dd { (offered_values(key, values, filter)) }
                    }
                }
            }
        }
    }
}

fn offered_values(key: &str, values: &BTreeMap<&str, usize>, filter: &Filter) -> Markup {
    let mut ranked: Vec<(&str, usize)> = values.iter().map(|(value, count)| (*value, *count)).collect();
    ranked.sort_by_key(|(value, count)| (Reverse(*count), *value));
    let left_out = ranked.len().saturating_sub(MAX_VALUES);
    html! {
        ul.list-links {
            @for (value, count) in ranked.iter().take(MAX_VALUES) {
                li { a href=(filter.with(key, value).link("/", 1)) { (value) } " (" (group_thousands(*count as f64)) ")" }
            }
            @if left_out > 0 { li.list-more { "and " (left_out) " more" } }
        }
    }
}

fn table(shown: &[(&Indexed, &Summary)], filter: &Filter, now: Timestamp, answers: &AnswersUntil<'_>) -> Markup {
    html! {
        div.list-scroll role="region" aria-label="Runs" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Compare" }
                        th scope="col" { "Id" }
                        th scope="col" { "Name" }
                        th scope="col" { "Tags" }
                        th scope="col" { "Made" }
                        th scope="col" { "Outcome" }
                        th.number scope="col" { "Steps" }
                        th scope="col" { "Largest load, or the requested load" }
                        th.number scope="col" { "Operations/s" }
                        th.number scope="col" { "Reads/s" }
                        th.number scope="col" { "p99" }
                        th scope="col" { "Verdict" }
                        th scope="col" { "Target" }
                    }
                }
                tbody { @for (run, summary) in shown { (row(run, summary, filter, now, answers.of(summary).map(|verdict| verdict.words).as_deref())) } }
            }
        }
    }
}

fn row(run: &Indexed, summary: &Summary, filter: &Filter, now: Timestamp, verdict: Option<&str>) -> Markup {
    let state = State::of(&summary.outcome, run.written_at, now);
    html! {
        tr {
            td {
                label.tick { input type="checkbox" name="run" value=(run.key) aria-label={ "Compare " (run.key) }; }
            }
            th.plain scope="row" { a href={ "/runs/" (segment(&run.key)) } { (run.key) } }
            td { (summary.name) }
            td {
                ul.list-links {
                    @for (key, value) in &summary.tags {
                        li { a href=(filter.with(key, value).link("/", 1)) { (key) "=" (value) } }
                    }
                }
            }
            td.plain { time datetime=(summary.started_at.0) { (instant(summary.started_at)) } }
            td { (state.word()) @if let Some(more) = state.more() { span.list-more { ": " (more) } } }
            td.number { (summary.steps) }
            td { (summary.largest_load.as_deref().unwrap_or_default()) }
            @if let Some(reported) = &summary.headline {
                td.number { (Headline::rate_words(reported.operations_per_s)) }
                td.number { (Headline::rate_words(reported.reads_per_s)) }
                td.number { (reported.p99_words()) }
                td.plain { (verdict.unwrap_or_default()) }
            } @else {
                td {} td {} td {} td { (verdict.unwrap_or_default()) }
            }
            td { (summary.target) }
        }
    }
}

fn pages(filter: &Filter, number: usize, pages: usize) -> Markup {
    let near = (number.saturating_sub(3).max(1))..=(number + 3).min(pages);
    let shown = [1].into_iter().chain(near).chain([pages]).collect::<std::collections::BTreeSet<_>>();
    html! {
        @if pages > 1 {
            nav aria-label="Pages" {
                ul.list-links {
                    @if number > 1 { li { a href=(filter.link("/", number - 1)) rel="prev" { "Newer" } } }
                    @for page in shown {
                        li {
                            @if page == number { span aria-current="page" { (page) } }
                            @else { a href=(filter.link("/", page)) aria-label={ "Page " (page) } { (page) } }
                        }
                    }
                    @if number < pages { li { a href=(filter.link("/", number + 1)) rel="next" { "Older" } } }
                }
            }
        }
    }
}

fn unread(unread: &[&Indexed]) -> Markup {
    html! {
        @if !unread.is_empty() {
            h2 { "Not readable (" (unread.len()) ")" }
            ul.list-unread {
                @for run in unread.iter().take(MAX_PROBLEMS) {
                    li {
                        code { (run.key) }
                        @if let Err(error) = &run.read {
                            ": " (error)
                            @if let Some(hint) = error.hint() { ". What to do: " (hint) }
                            "."
                        }
                    }
                }
                @if unread.len() > MAX_PROBLEMS {
                    li { "and " (unread.len() - MAX_PROBLEMS) " more; the free text finds them by their names" }
                }
            }
        }
    }
}

/// The list for programs: all runs that the filter lets through, or those on the page asked for.
#[derive(Serialize)]
struct Document<'a> {
    total: usize,
    runs: Vec<DocumentRun<'a>>,
    problems: Vec<DocumentProblem<'a>>,
}

#[derive(Serialize)]
struct DocumentRun<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
    state: &'static str,
    page: String,
}

#[derive(Serialize)]
struct DocumentProblem<'a> {
    path: &'a Path,
    error: String,
    hint: Option<String>,
}

/// The list as JSON.
pub(super) fn for_program(
    runs: &[Arc<Indexed>],
    asked: &ListQuery,
    now: Timestamp,
    answers: &AnswersUntil<'_>,
) -> Result<Vec<u8>, Problem> {
    let chosen = Chosen::from(runs, &asked.filter);
    let shown = match asked.page {
        Some(number) => chosen.on_page(number)?,
        None => &chosen.runs[..],
    };
    let document = Document {
        total: chosen.runs.len(),
        runs: shown
            .iter()
            .map(|(run, summary)| DocumentRun {
                summary,
                answer: answers.of(summary).map(|verdict| verdict.answer),
                state: State::of(&summary.outcome, run.written_at, now).word(),
                page: format!("/runs/{}", segment(&run.key)),
            })
            .collect(),
        problems: chosen
            .unread
            .iter()
            .filter_map(|run| {
                let error = run.read.as_ref().err()?;
                Some(DocumentProblem { path: &run.path, error: error.to_string(), hint: error.hint() })
            })
            .collect(),
    };
    serde_json::to_vec(&document).map_err(|error| Problem::Unmade { reason: error.to_string() })
}

// Verdicts of runs, kept for the list: each takes a whole run to find.

/// Answers that were found, each for the files as they were then.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<PathBuf, (Stamps, Option<ListedVerdict>)>>);

/// Answers, and until when one may be looked for.
pub(crate) struct AnswersUntil<'a> {
    answers: &'a Answers,
    until: Instant,
}

impl Answers {
    /// The same for a request that must be answered by then.
    pub(super) fn until(&self, until: Instant) -> AnswersUntil<'_> {
        AnswersUntil { answers: self, until }
    }
}

impl AnswersUntil<'_> {
    /// The verdict of a check or of a run with limits; absent of other runs, while it goes on, and where it cannot be read.
    pub(super) fn of(&self, run: &Summary) -> Option<ListedVerdict> {
        if !run.is_judged || run.outcome == Outcome::Unfinished {
            return None;
        }
        let stamps = Stamps::of(&run.path)?;
        let known = || self.answers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known().get(&run.path).filter(|(of, _)| *of == stamps) {
            return answer.clone();
        }
        let answer = match store::load_within(&run.path, &mut Allowance::of_page(self.until)) {
            Ok(run) => ListedVerdict::of(&run),
            // Another request begins earlier with it.
            Err(StoreError::TooSlow { .. }) => return None,
            Err(_) => None,
        };
        known().insert(run.path.clone(), (stamps, answer.clone()));
        answer
    }
}
