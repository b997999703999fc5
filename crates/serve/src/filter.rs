//! Which runs a list shows.

use std::collections::BTreeMap;

use super::problem::Problem;
use super::query::{Query, link};
use model::record::store::{Indexed, Summary};

/// Keys of a query that choose runs.
pub(super) const TAG: &str = "tag";
pub(super) const TEXT: &str = "q";

/// Conditions that a run must all meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Tags that it must have, by key and value.
    pub(super) tags: Vec<(String, String)>,
    /// Text that must stand in its id, name, workload, target or a tag, whatever the case.
    pub(super) text: String,
}

impl Filter {
    pub(super) fn from_query(query: &Query) -> Result<Self, Problem> {
        let mut tags = Vec::new();
        for text in query.all(TAG) {
            let (key, value) = text
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| Problem::query(TAG, text, format_args!("a tag is KEY=VALUE")))?;
            let tag = (key.to_owned(), value.to_owned());
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Ok(Self { tags, text: query.one(TEXT)?.unwrap_or_default().trim().to_owned() })
    }

    /// Whether it lets everything through.
    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.text.is_empty()
    }

    /// Whether the list shows the run. What cannot be read has no tags, and no text but the name of its directory.
    pub(super) fn lets_through(&self, run: &Indexed) -> bool {
        let needle = self.text.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&needle);
        match &run.read {
            Ok(summary) => {
                self.has_tags(summary) && (needle.is_empty() || texts(run, summary).any(|text| holds(&text)))
            }
            Err(_) => self.tags.is_empty() && holds(&run.key),
        }
    }

    fn has_tags(&self, summary: &Summary) -> bool {
        self.tags.iter().all(|(key, value)| summary.tags.get(key) == Some(value))
    }

    /// The same with one tag more.
    pub(super) fn with(&self, key: &str, value: &str) -> Self {
        let mut more = self.clone();
        let tag = (key.to_owned(), value.to_owned());
        if !more.tags.contains(&tag) {
            more.tags.push(tag);
        }
        more
    }

    /// The same with one tag less.
    pub(super) fn without(&self, key: &str, value: &str) -> Self {
        let tags = self.tags.iter().filter(|(name, held)| (name.as_str(), held.as_str()) != (key, value));
        Self { tags: tags.cloned().collect(), text: self.text.clone() }
    }

    /// The same without its text.
    pub(super) fn without_text(&self) -> Self {
        Self { tags: self.tags.clone(), text: String::new() }
    }

    /// The address of a page of the list that shows these runs.
    pub(super) fn link(&self, path: &str, page: usize) -> String {
        let tags = self.tags.iter().map(|(key, value)| (TAG, format!("{key}={value}")));
        let text = (!self.text.is_empty()).then(|| (TEXT, self.text.clone()));
        let page = (page > 1).then(|| ("page", page.to_string()));
        link(path, tags.chain(text).chain(page))
    }
}

/// Everything that free text is looked for in.
fn texts<'a>(run: &'a Indexed, summary: &'a Summary) -> impl Iterator<Item = String> + 'a {
    let plain = [&run.key, &summary.id, &summary.name, summary.workload.name(), &summary.target];
    let tags = summary.tags.iter().map(|(key, value)| format!("{key}={value}"));
    plain.into_iter().map(str::to_owned).chain(tags)
}

/// How many of the runs have each value of each tag.
pub(super) fn counts<'a>(runs: impl Iterator<Item = &'a Summary>) -> BTreeMap<&'a str, BTreeMap<&'a str, usize>> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (key, value) in runs.flat_map(|run| &run.tags) {
        *counts.entry(key).or_default().entry(value).or_default() += 1;
    }
    counts
}
