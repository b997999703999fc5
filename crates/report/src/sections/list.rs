//! The sections of a report on a run: text has them in this order, a page has those of each of its parts in this order.

use std::io;

use super::{
    cache_sizes, channels, check, connections, connects, flash, fleet, host, imported, like, network, operation_time,
    reported, requests, rounds, servers, together, transactions,
};
use crate::paper::Paper;
use crate::text::Detail;
use crate::trace;
use analysis::{Vocabulary, is_host_load, is_on_servers};
use model::record::Run;

/// Where a page has a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Question,
    Load,
    Parts,
    Time,
    Histograms,
    Percentiles,
    Waits,
    Profile,
    Tiers,
    Network,
    Channels,
    Nodes,
    Devices,
    Processors,
    Traces,
    Generator,
    Reported,
    Source,
    /// Only text has it.
    Nowhere,
}

/// What decides which sections there are.
pub(crate) struct About<'a> {
    run: &'a Run,
    words: Vocabulary,
    on_servers: bool,
    is_host: bool,
}

/// Where a page has it, which runs have it, whether text does, and what writes it.
type Section = (Part, fn(&About<'_>) -> bool, fn(&About<'_>, Detail) -> bool, Writer);
type Writer = fn(&mut dyn Paper, &Run, Detail) -> io::Result<()>;

fn all(_: &About<'_>) -> bool {
    true
}

fn host(at: &About<'_>) -> bool {
    at.is_host
}

fn foreign(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_some() && !at.is_host
}

fn users(at: &About<'_>) -> bool {
    at.words == Vocabulary::Users && !at.is_host
}

fn slob_on_servers(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_none() && at.on_servers && !at.is_host
}

fn slob_in_engine(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_none() && !at.on_servers && !at.is_host
}

fn sent(at: &About<'_>) -> bool {
    at.words == Vocabulary::Requests && !at.is_host
}

fn operated(at: &About<'_>) -> bool {
    !host(at) && !sent(at)
}

fn served(at: &About<'_>) -> bool {
    at.on_servers || users(at)
}

fn in_engine(at: &About<'_>) -> bool {
    !at.on_servers
}

fn always(_: &About<'_>, _: Detail) -> bool {
    true
}

fn never(_: &About<'_>, _: Detail) -> bool {
    false
}

fn full(_: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full
}

fn full_of_slob(at: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full && slob_on_servers(at)
}

fn full_or_served(at: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full || at.on_servers
}

const SECTIONS: [Section; 47] = [
    (Part::Question, all, always, |paper, run, _| check::write(paper, run)),
    (Part::Question, all, always, |paper, run, _| like::write(paper, run)),
    (Part::Parts, all, always, fleet::write),
    (Part::Load, host, always, |paper, run, _| host::write(paper, run)),
    (Part::Load, foreign, always, |paper, run, _| imported::throughput(paper, run)),
    (Part::Load, users, always, |paper, run, _| transactions::rates(paper, run)),
    (Part::Load, users, always, |paper, run, _| transactions::kinds(paper, run)),
    (Part::Load, users, always, |paper, run, _| connects::write(paper, run)),
    (Part::Load, slob_on_servers, always, |paper, run, _| servers::operations(paper, run)),
    (Part::Load, slob_in_engine, always, |paper, run, _| super::throughput(paper, run)),
    (Part::Load, slob_in_engine, always, |paper, run, _| super::reads_and_processors(paper, run)),
    (Part::Load, sent, always, |paper, run, _| together::write(paper, run)),
    (Part::Load, sent, always, |paper, run, _| connections::write(paper, run)),
    (Part::Load, sent, always, |paper, run, _| requests::throughput(paper, run)),
    (Part::Load, sent, always, |paper, run, _| requests::kinds(paper, run)),
    (Part::Generator, sent, always, requests::generator),
    (Part::Profile, operated, never, |paper, run, _| super::profile(paper, run)),
    (Part::Tiers, served, always, |paper, run, _| servers::blocks(paper, run)),
    (Part::Tiers, in_engine, never, |paper, run, _| super::caches(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::log(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::commit_latency(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::locks(paper, run)),
    (Part::Profile, all, full_of_slob, |paper, run, _| operation_time::of_run(paper, run)),
    (Part::Network, all, always, |paper, run, _| network::write(paper, run)),
    (Part::Channels, all, always, channels::write),
    (Part::Load, all, always, |paper, run, _| imported::instances(paper, run)),
    (Part::Time, all, always, rounds::write),
    (Part::Waits, all, full, |paper, run, _| super::waits(paper, run)),
    (Part::Waits, all, always, imported::waits_of_instances),
    (Part::Histograms, all, always, super::histograms),
    (Part::Histograms, sent, always, requests::response_histograms),
    (Part::Traces, all, always, |paper, run, _| trace::of_run(paper, run)),
    (Part::Percentiles, all, full, |paper, run, _| super::operations(paper, run)),
    (Part::Tiers, all, full, |paper, run, _| flash::write(paper, run)),
    (Part::Tiers, all, full, |paper, run, _| cache_sizes::write(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::shape(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::sessions(paper, run)),
    (Part::Processors, served, always, |paper, run, _| servers::processors(paper, run)),
    (Part::Nodes, all, always, |paper, run, _| servers::nodes(paper, run)),
    (Part::Profile, all, always, servers::own_reports),
    (Part::Nowhere, served, full, |paper, run, _| servers::own(paper, run)),
    (Part::Devices, all, full_or_served, |paper, run, _| super::devices(paper, run)),
    (Part::Devices, all, never, |paper, run, _| super::whole_machine(paper, run)),
    (Part::Reported, all, always, reported::tables),
    (Part::Reported, all, full, |paper, run, _| reported::snapshots(paper, run)),
    (Part::Source, all, always, imported::reported_figures),
    (Part::Source, all, always, imported::not_understood),
];

impl<'a> About<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, words: Vocabulary::of(run), on_servers: is_on_servers(run), is_host: is_host_load(run) }
    }

    /// Writes the sections that text has.
    pub(crate) fn text(&self, paper: &mut dyn Paper, detail: Detail) -> io::Result<()> {
        self.write(paper, detail, |(_, _, in_text, _)| in_text(self, detail))
    }

    /// Writes those of a part of a page.
    pub(crate) fn part(&self, paper: &mut dyn Paper, part: Part) -> io::Result<()> {
        self.write(paper, Detail::Full, |(of, ..)| *of == part)
    }

    fn write(&self, paper: &mut dyn Paper, detail: Detail, is_wanted: impl Fn(&Section) -> bool) -> io::Result<()> {
        let mut sections = SECTIONS.iter().filter(|section| (section.1)(self) && is_wanted(section));
        sections.try_for_each(|(.., write)| write(paper, self.run, detail))
    }
}
