//! Reading the catalogue's form: TOML, checked so that a wrong figure is an error with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::rule::Rule;
use super::{Flow, Machine, Rates, Source, VolumeKind, key};

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct FileError {
    /// Its name.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, with the key.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub sources: BTreeMap<String, Source>,
    pub machines: Vec<Machine>,
    pub volumes: Vec<VolumeKind>,
    pub flows: Vec<Flow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    sources: BTreeMap<String, Source>,
    #[serde(default)]
    series: Vec<Spanned<Series>>,
    #[serde(default)]
    volumes: Vec<Spanned<VolumeKind>>,
    #[serde(default)]
    flows: Vec<Spanned<Flow>>,
}

/// Machines that have a page in common.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    cloud: String,
    /// For readers of the file.
    #[serde(rename = "name")]
    _name: String,
    source: String,
    #[serde(default)]
    also: Vec<String>,
    burst_minutes: Option<f64>,
    burst_refill_hours: Option<f64>,
    machines: Vec<Spanned<Machine>>,
}

/// Reads `text`, which is the file `file`. Its entries may name sources of `known`, which were read before it.
pub(super) fn read(file: &str, text: &str, known: &BTreeMap<String, Source>) -> Result<Entries, FileError> {
    let written: Written = toml::from_str(text).map_err(|problem| FileError {
        file: file.to_owned(),
        line: line_of(text, problem.span().map_or(0, |span| span.start)),
        problem: problem.message().trim_end().replace('\n', "; "),
        hint: "docs/platforms.md shows the form, key by key".to_owned(),
    })?;
    let mut checked = Checked { file, text, known, written: &written.sources, names: BTreeSet::new() };
    let mut entries = Entries { sources: written.sources.clone(), ..Entries::default() };
    for series in &written.series {
        let span = series.span();
        let series = series.get_ref();
        checked.sources(&span, [&series.source].into_iter().chain(&series.also))?;
        for (name, value) in
            [("burst_minutes", series.burst_minutes), ("burst_refill_hours", series.burst_refill_hours)]
        {
            checked.figure(&span, name, value)?;
        }
        for machine in &series.machines {
            checked.machine(&machine.span(), machine.get_ref(), series.burst_minutes.is_some())?;
            let sources = [series.source.clone()].into_iter().chain(series.also.iter().cloned()).collect();
            entries.machines.push(Machine {
                cloud: series.cloud.clone(),
                sources,
                burst_minutes: series.burst_minutes,
                burst_refill_hours: series.burst_refill_hours,
                ..machine.get_ref().clone()
            });
        }
    }
    for kind in &written.volumes {
        checked.volume(&kind.span(), kind.get_ref())?;
        entries.volumes.push(kind.get_ref().clone());
    }
    for flow in &written.flows {
        checked.sources(&flow.span(), [&flow.get_ref().source].into_iter())?;
        checked.figure(&flow.span(), "gbit_per_s", Some(flow.get_ref().gbit_per_s))?;
        entries.flows.push(flow.get_ref().clone());
    }
    Ok(entries)
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

struct Checked<'a> {
    file: &'a str,
    text: &'a str,
    known: &'a BTreeMap<String, Source>,
    written: &'a BTreeMap<String, Source>,
    /// Of machines with an `m` before them, of volumes with a `v`.
    names: BTreeSet<String>,
}

impl Checked<'_> {
    fn fail<T>(&self, span: &Range<usize>, problem: String, hint: &str) -> Result<T, FileError> {
        let line = line_of(self.text, span.start);
        Err(FileError { file: self.file.to_owned(), line, problem, hint: hint.to_owned() })
    }

    fn sources<'s>(&self, span: &Range<usize>, names: impl Iterator<Item = &'s String>) -> Result<(), FileError> {
        for name in names {
            if !self.known.contains_key(name) && !self.written.contains_key(name) {
                let problem = format!("no source is called `{name}`");
                let hint = format!("add `[sources.{name}]` with document, address, as_of and looked_up");
                return self.fail(span, problem, &hint);
            }
        }
        Ok(())
    }

    fn figure(&self, span: &Range<usize>, name: &str, value: Option<f64>) -> Result<(), FileError> {
        match value {
            Some(value) if !(value.is_finite() && value > 0.0) => {
                let hint = "a limit is more than 0; leave out what is not known";
                self.fail(span, format!("`{name}` is {value}"), hint)
            }
            _ => Ok(()),
        }
    }

    fn rates(
        &self,
        span: &Range<usize>,
        name: &str,
        base: Option<Rates>,
        burst: Option<Rates>,
    ) -> Result<(), FileError> {
        for (name, rates) in [(name.to_owned(), base), (format!("{name}_burst"), burst)] {
            self.figure(span, &name, rates.map(|rates| rates.iops))?;
            self.figure(span, &name, rates.map(|rates| rates.mb_per_s))?;
        }
        match (base, burst) {
            (Some(base), Some(burst)) if burst.iops < base.iops || burst.mb_per_s < base.mb_per_s => {
                let hint = "a burst is at least the base; both are `[requests per second, MB/s]`";
                self.fail(span, format!("`{name}_burst` is less than `{name}`"), hint)
            }
            (None, Some(_)) => self.fail(span, format!("`{name}_burst` without `{name}`"), "say what is left after it"),
            _ => Ok(()),
        }
    }

    fn names(&mut self, span: &Range<usize>, mark: char, name: &str, aliases: &[String]) -> Result<(), FileError> {
        for name in [name].into_iter().chain(aliases.iter().map(String::as_str)) {
            let key = key(name);
            if key.is_empty() {
                return self.fail(
                    span,
                    format!("`name` is `{name}`, which has no letter"),
                    "name it as its cloud does",
                );
            }
            if !self.names.insert(format!("{mark}{key}")) {
                let hint = "keep one of them; case, `Standard_`, `_`, `-`, `.` and blanks make no other name";
                return self.fail(span, format!("`{name}` stands here a second time"), hint);
            }
        }
        Ok(())
    }

    fn machine(&mut self, span: &Range<usize>, machine: &Machine, has_minutes: bool) -> Result<(), FileError> {
        self.names(span, 'm', &machine.name, &machine.aliases)?;
        self.rates(span, "cached", machine.cached, machine.cached_burst)?;
        self.rates(span, "uncached", machine.uncached, machine.uncached_burst)?;
        self.rates(span, "ultra", machine.ultra, machine.ultra_burst)?;
        let local = machine.local;
        let figures = [
            ("processors", machine.processors.map(f64::from)),
            ("memory_gib", machine.memory_gib),
            ("data_disks", machine.data_disks.map(f64::from)),
            ("cache_gib", machine.cache_gib),
            ("network_mbit", machine.network_mbit),
            ("network_burst_mbit", machine.network_burst_mbit),
            ("block_kib", local.and_then(|local| local.block_kib)),
            ("read_iops", local.map(|local| local.read_iops)),
            ("write_iops", local.and_then(|local| local.write_iops)),
            ("read_throughput", local.and_then(|local| local.read_throughput)),
            ("write_throughput", local.and_then(|local| local.write_throughput)),
        ];
        figures.into_iter().try_for_each(|(name, value)| self.figure(span, name, value))?;
        let bursts = [machine.cached_burst, machine.uncached_burst, machine.ultra_burst];
        if bursts.iter().any(Option::is_some) && !has_minutes {
            let hint = "add `burst_minutes` to the series: how long a full credit lasts at the whole burst rate";
            return self.fail(
                span,
                format!("`{}` has a burst that does not say how long it lasts", machine.name),
                hint,
            );
        }
        Ok(())
    }

    fn volume(&mut self, span: &Range<usize>, kind: &VolumeKind) -> Result<(), FileError> {
        self.names(span, 'v', &kind.name, &kind.aliases)?;
        self.sources(span, [&kind.source].into_iter().chain(&kind.also))?;
        self.figure(span, "size_gib", kind.size_gib)?;
        self.figure(span, "counts_kib", kind.counts_kib)?;
        self.figure(span, "calls_per_connection", kind.calls_per_connection.map(f64::from))?;
        if let Some((least, largest)) = kind.sizes_gib
            && !(least > 0.0 && least <= largest && largest.is_finite())
        {
            return self.fail(span, "`sizes_gib` is no range".to_owned(), "write `[least, largest]`, in GiB");
        }
        let burst = kind.burst.as_ref();
        let rules = [
            ("iops", kind.iops.as_ref()),
            ("throughput", kind.throughput.as_ref()),
            ("burst.iops", burst.and_then(|burst| burst.iops.as_ref())),
            ("burst.throughput", burst.and_then(|burst| burst.throughput.as_ref())),
        ];
        rules.into_iter().try_for_each(|(name, rule)| self.rule(span, name, rule))?;
        if kind.iops.as_ref().is_some_and(|rule| rule.per_iops.is_some()) {
            let hint = "give one of: a figure, `per_gib`, `up_to`, or `provisioned = true`";
            return self.fail(span, "`iops` follows from itself (`per_iops`)".to_owned(), hint);
        }
        let bursts = [burst.and_then(|burst| burst.iops.as_ref()), burst.and_then(|burst| burst.throughput.as_ref())];
        if bursts.into_iter().flatten().any(|rule| rule.provisioned) {
            let hint = "a burst that is bought is `on_demand_burst`; one that is saved up is a figure, or follows from the size";
            return self.fail(span, "`burst` is provisioned".to_owned(), hint);
        }
        let on_demand = kind.on_demand_burst;
        for (name, value) in [
            ("on_demand_burst.iops", on_demand.map(|burst| burst.iops)),
            ("on_demand_burst.throughput", on_demand.map(|burst| burst.throughput)),
        ] {
            self.figure(span, name, value)?;
        }
        if let Some(limits) = kind.limits.as_ref().filter(|limits| *limits != "ultra") {
            let hint = "leave it out for `uncached`, or write `ultra`";
            return self.fail(span, format!("`limits` is `{limits}`, which no machine has"), hint);
        }
        let Some(burst) = burst else { return Ok(()) };
        for (name, value) in [
            ("burst.minutes", burst.minutes),
            ("burst.credit_ios", burst.credit_ios),
            ("burst.credit_mib_per_gib", burst.credit_mib_per_gib),
        ] {
            self.figure(span, name, value)?;
        }
        let says_how_long =
            |rule: &Option<Rule>, credit: Option<f64>| rule.is_none() || burst.minutes.is_some() || credit.is_some();
        if !says_how_long(&burst.iops, burst.credit_ios) || !says_how_long(&burst.throughput, burst.credit_mib_per_gib)
        {
            let hint = "add `minutes`, `credit_ios` or `credit_mib_per_gib` to it";
            return self.fail(span, "`burst` does not say how long it lasts".to_owned(), hint);
        }
        Ok(())
    }

    fn rule(&self, span: &Range<usize>, name: &str, rule: Option<&Rule>) -> Result<(), FileError> {
        let Some(rule) = rule else { return Ok(()) };
        rule.figures().try_for_each(|figure| self.figure(span, name, Some(figure)))?;
        match rule.contradiction() {
            Some((problem, hint)) => self.fail(span, format!("`{name}` {problem}"), hint),
            None => Ok(()),
        }
    }
}
