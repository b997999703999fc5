//! Reading the catalogue's form: TOML, checked so that a wrong figure is an error with its line.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Spanned, Table, Value};

use super::rule::Rule;
use super::standing::oldest;
use super::{Flow, Machine, Rates, Source, Standing, State, VolumeKind, key};

/// Where the form is written down.
const FORM: &str = "docs/recipes/azure-rac.md shows the form, key by key";

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
    pub gaps: Vec<String>,
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
    volume_rows: Vec<VolumeRows>,
    #[serde(default)]
    flows: Vec<Spanned<Flow>>,
    /// What was looked for and not found, in words that stand after "not known are".
    #[serde(default)]
    not_found: Vec<String>,
}

/// Machines that have a page in common: one by one, or a line for each below the names of its columns.
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
    state: Option<State>,
    burst_minutes: Option<f64>,
    burst_refill_hours: Option<f64>,
    one_volume_iops: Option<f64>,
    #[serde(default)]
    no_multi_attach: bool,
    #[serde(default)]
    memory_is_chosen: bool,
    #[serde(default)]
    machines: Vec<Spanned<Machine>>,
    #[serde(default)]
    columns: String,
    rows: Option<Spanned<String>>,
}

/// Volumes that have much in common, a line for each below the names of its columns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumeRows {
    same: Table,
    columns: String,
    rows: Spanned<String>,
}

/// Reads `text`, which is the file `file`. Its entries may name sources of `known`, which were read before it.
pub(super) fn read(file: &str, text: &str, known: &BTreeMap<String, Source>) -> Result<Entries, FileError> {
    let written: Written = toml::from_str(text).map_err(|problem| FileError {
        file: file.to_owned(),
        line: line_of(text, problem.span().map_or(0, |span| span.start)),
        problem: problem.message().trim_end().replace('\n', "; "),
        hint: FORM.to_owned(),
    })?;
    let mut checked = Checked { file, text, known, written: &written.sources, names: BTreeSet::new() };
    let mut entries =
        Entries { sources: written.sources.clone(), gaps: written.not_found.clone(), ..Entries::default() };
    for series in &written.series {
        let line = line_of(text, series.span().start);
        let series = series.get_ref();
        let sources: Vec<String> = [&series.source].into_iter().chain(&series.also).cloned().collect();
        checked.sources(line, &sources)?;
        for (name, value) in [
            ("burst_minutes", series.burst_minutes),
            ("burst_refill_hours", series.burst_refill_hours),
            ("one_volume_iops", series.one_volume_iops),
        ] {
            checked.figure(line, name, value)?;
        }
        let one_by_one = series.machines.iter().map(|it| (line_of(text, it.span().start), it.get_ref().clone()));
        let in_rows = match &series.rows {
            Some(rows) => checked.rows(&Table::new(), &series.columns, rows)?,
            None => Vec::new(),
        };
        for (line, machine) in one_by_one.chain(in_rows) {
            checked.machine(line, &machine, series.burst_minutes.is_some())?;
            let standing = checked.standing(&sources, machine.state.or(series.state), machine.retires.as_ref());
            entries.machines.push(Machine {
                cloud: series.cloud.clone(),
                sources: sources.clone(),
                standing,
                burst_minutes: series.burst_minutes,
                burst_refill_hours: series.burst_refill_hours,
                one_volume_iops: series.one_volume_iops,
                no_multi_attach: series.no_multi_attach,
                memory_is_chosen: series.memory_is_chosen,
                ..machine
            });
        }
    }
    let mut kinds: Vec<(usize, VolumeKind)> =
        written.volumes.iter().map(|kind| (line_of(text, kind.span().start), kind.get_ref().clone())).collect();
    for VolumeRows { same, columns, rows } in &written.volume_rows {
        kinds.extend(checked.rows(same, columns, rows)?);
    }
    // In the order of the file, whichever way each is written.
    kinds.sort_by_key(|(line, _)| *line);
    for (line, kind) in kinds {
        checked.volume(line, &kind)?;
        let sources: Vec<String> = [&kind.source].into_iter().chain(&kind.also).cloned().collect();
        let standing = checked.standing(&sources, kind.state, kind.retires.as_ref());
        entries.volumes.push(VolumeKind { standing, ..kind });
    }
    for flow in &written.flows {
        let (line, flow) = (line_of(text, flow.span().start), flow.get_ref());
        checked.sources(line, std::slice::from_ref(&flow.source))?;
        checked.figure(line, "gbit_per_s", Some(flow.gbit_per_s))?;
        entries.flows.push(flow.clone());
    }
    Ok(entries)
}

/// An entry of the cells of one line: what all have in common, and each cell that is not `?` in the place that its column names.
fn of_cells<T: DeserializeOwned>(same: &Table, columns: &str, row: &str) -> Result<T, String> {
    let (columns, cells) = (columns.split_whitespace(), row.split_whitespace());
    let (wanted, found) = (columns.clone().count(), cells.clone().count());
    if wanted != found {
        return Err(format!("{found} cells below {wanted} columns"));
    }
    let mut entry = same.clone();
    for (column, cell) in columns.zip(cells).filter(|(_, cell)| *cell != "?") {
        let (path, name) = column.rsplit_once('.').map_or((None, column), |(path, name)| (Some(path), name));
        let mut place = &mut entry;
        for part in path.into_iter().flat_map(|path| path.split('.')) {
            let inner = place.entry(part).or_insert_with(|| Value::Table(Table::new()));
            place = inner.as_table_mut().ok_or_else(|| format!("`{column}` is not inside a table"))?;
        }
        place.insert(name.to_owned(), value(cell));
    }
    T::deserialize(Value::Table(entry)).map_err(|problem| problem.message().trim_end().replace('\n', "; "))
}

/// What a cell means: a number, `16000/128` for a pair of them, `true`, names before or between commas, or a word, in which `~` is a blank.
fn value(cell: &str) -> Value {
    let number = |text: &str| {
        let whole = text.parse().map(Value::Integer).ok();
        whole.or_else(|| text.parse().map(Value::Float).ok())
    };
    let word = |text: &str| Value::String(text.replace('~', " "));
    if let Some(number) = number(cell) {
        return number;
    }
    if let Ok(is_so) = cell.parse() {
        return Value::Boolean(is_so);
    }
    if let Some((first, second)) = cell.split_once('/').and_then(|(a, b)| number(a).zip(number(b))) {
        return Value::Array(vec![first, second]);
    }
    match cell.contains(',') {
        true => Value::Array(cell.split(',').filter(|name| !name.is_empty()).map(word).collect()),
        false => word(cell),
    }
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
    fn fail<T>(&self, line: usize, problem: String, hint: &str) -> Result<T, FileError> {
        Err(FileError { file: self.file.to_owned(), line, problem, hint: hint.to_owned() })
    }

    /// The entries of lines, each with the number of its line.
    fn rows<T: DeserializeOwned>(
        &self,
        same: &Table,
        columns: &str,
        rows: &Spanned<String>,
    ) -> Result<Vec<(usize, T)>, FileError> {
        // A newline right after the opening quotes is not part of the text.
        let start = rows.span().start;
        let opening = self.text.get(start..).is_some_and(|text| text.starts_with("\"\"\"\n"));
        let first = line_of(self.text, start) + usize::from(opening);
        let rows = rows.get_ref().lines().enumerate().filter(|(_, row)| !row.trim().is_empty());
        rows.map(|(index, row)| match of_cells(same, columns, row) {
            Ok(entry) => Ok((first + index, entry)),
            Err(problem) => self.fail(first + index, problem, FORM),
        })
        .collect()
    }

    /// What is to be known of an entry beside its figures.
    fn standing(&self, sources: &[String], state: Option<State>, retires: Option<&String>) -> Standing {
        let mut sources = sources.iter().filter_map(|name| self.written.get(name).or_else(|| self.known.get(name)));
        let first = sources.next();
        let also: Vec<&Source> = sources.collect();
        Standing {
            state,
            retires: retires.cloned(),
            as_of: first.map(|source| source.as_of.clone()).unwrap_or_default(),
            also_as_of: oldest(also.iter().map(|source| source.as_of.as_str())),
            secondary: first.into_iter().chain(also).any(|source| source.secondary),
        }
    }

    fn sources(&self, line: usize, names: &[String]) -> Result<(), FileError> {
        for name in names {
            if !self.known.contains_key(name) && !self.written.contains_key(name) {
                let problem = format!("no source is called `{name}`");
                let hint = format!("add `[sources.{name}]` with document, address, as_of and looked_up");
                return self.fail(line, problem, &hint);
            }
        }
        Ok(())
    }

    fn figure(&self, line: usize, name: &str, value: Option<f64>) -> Result<(), FileError> {
        match value {
            Some(value) if !(value.is_finite() && value > 0.0) => {
                let hint = "a limit is more than 0; leave out what is not known";
                self.fail(line, format!("`{name}` is {value}"), hint)
            }
            _ => Ok(()),
        }
    }

    fn rates(&self, line: usize, name: &str, base: Option<Rates>, burst: Option<Rates>) -> Result<(), FileError> {
        for (name, rates) in [(name.to_owned(), base), (format!("{name}_burst"), burst)] {
            self.figure(line, &name, rates.map(|rates| rates.iops))?;
            self.figure(line, &name, rates.map(|rates| rates.mb_per_s))?;
        }
        match (base, burst) {
            (Some(base), Some(burst)) if burst.iops < base.iops || burst.mb_per_s < base.mb_per_s => {
                let hint = "a burst is at least the base; both are `[requests per second, MB/s]`";
                self.fail(line, format!("`{name}_burst` is less than `{name}`"), hint)
            }
            (None, Some(_)) => self.fail(line, format!("`{name}_burst` without `{name}`"), "say what is left after it"),
            _ => Ok(()),
        }
    }

    fn names(&mut self, line: usize, mark: char, name: &str, aliases: &[String]) -> Result<(), FileError> {
        for name in [name].into_iter().chain(aliases.iter().map(String::as_str)) {
            let key = key(name);
            if key.is_empty() {
                return self.fail(
                    line,
                    format!("`name` is `{name}`, which has no letter"),
                    "name it as its cloud does",
                );
            }
            if !self.names.insert(format!("{mark}{key}")) {
                let hint = "keep one of them; case, `Standard_`, `_`, `-`, `.` and blanks make no other name";
                return self.fail(line, format!("`{name}` stands here a second time"), hint);
            }
        }
        Ok(())
    }

    fn machine(&mut self, line: usize, machine: &Machine, has_minutes: bool) -> Result<(), FileError> {
        self.names(line, 'm', &machine.name, &machine.aliases)?;
        self.rates(line, "cached", machine.cached, machine.cached_burst)?;
        self.rates(line, "uncached", machine.uncached, machine.uncached_burst)?;
        self.rates(line, "ultra", machine.ultra, machine.ultra_burst)?;
        machine.kinds.iter().try_for_each(|(name, rates)| self.rates(line, name, Some(*rates), None))?;
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
        figures.into_iter().try_for_each(|(name, value)| self.figure(line, name, value))?;
        let bursts = [machine.cached_burst, machine.uncached_burst, machine.ultra_burst];
        if bursts.iter().any(Option::is_some) && !has_minutes {
            let hint = "add `burst_minutes` to the series: how long a full credit lasts at the whole burst rate";
            return self.fail(
                line,
                format!("`{}` has a burst that does not say how long it lasts", machine.name),
                hint,
            );
        }
        Ok(())
    }

    fn volume(&mut self, line: usize, kind: &VolumeKind) -> Result<(), FileError> {
        self.names(line, 'v', &kind.name, &kind.aliases)?;
        let sources: Vec<String> = [&kind.source].into_iter().chain(&kind.also).cloned().collect();
        self.sources(line, &sources)?;
        self.figure(line, "size_gib", kind.size_gib)?;
        self.figure(line, "counts_kib", kind.counts_kib)?;
        self.figure(line, "costs_kib", kind.costs_kib)?;
        self.figure(line, "small.kib", kind.small.as_ref().map(|small| small.kib))?;
        self.figure(line, "max_nodes", kind.max_nodes.map(f64::from))?;
        self.figure(line, "calls_per_connection", kind.calls_per_connection.map(f64::from))?;
        if let Some((least, largest)) = kind.sizes_gib
            && !(least > 0.0 && least <= largest && largest.is_finite())
        {
            return self.fail(line, "`sizes_gib` is not a range".to_owned(), "write `[least, largest]`, in GiB");
        }
        let burst = kind.burst.as_ref();
        let rules = [
            ("iops", kind.iops.as_ref()),
            ("throughput", kind.throughput.as_ref()),
            ("small.throughput", kind.small.as_ref().map(|small| &small.throughput)),
            ("burst.iops", burst.and_then(|burst| burst.iops.as_ref())),
            ("burst.throughput", burst.and_then(|burst| burst.throughput.as_ref())),
        ];
        rules.into_iter().try_for_each(|(name, rule)| self.rule(line, name, rule))?;
        if kind.iops.as_ref().is_some_and(|rule| rule.per_iops.is_some()) {
            let hint = "give one of: a figure, `per_gib`, `up_to`, or `provisioned = true`";
            return self.fail(line, "`iops` follows from itself (`per_iops`)".to_owned(), hint);
        }
        let bursts = [burst.and_then(|burst| burst.iops.as_ref()), burst.and_then(|burst| burst.throughput.as_ref())];
        if bursts.into_iter().flatten().any(|rule| rule.provisioned) {
            let hint = "a burst that is bought is `on_demand_burst`; one that is saved up is a figure, or follows from the size";
            return self.fail(line, "`burst` is provisioned".to_owned(), hint);
        }
        let on_demand = kind.on_demand_burst;
        for (name, value) in [
            ("on_demand_burst.iops", on_demand.map(|burst| burst.iops)),
            ("on_demand_burst.throughput", on_demand.map(|burst| burst.throughput)),
        ] {
            self.figure(line, name, value)?;
        }
        let Some(burst) = burst else { return Ok(()) };
        for (name, value) in [
            ("burst.minutes", burst.minutes),
            ("burst.credit_ios", burst.credit_ios),
            ("burst.credit_mib_per_gib", burst.credit_mib_per_gib),
        ] {
            self.figure(line, name, value)?;
        }
        let says_how_long =
            |rule: &Option<Rule>, credit: Option<f64>| rule.is_none() || burst.minutes.is_some() || credit.is_some();
        if !says_how_long(&burst.iops, burst.credit_ios) || !says_how_long(&burst.throughput, burst.credit_mib_per_gib)
        {
            let hint = "add `minutes`, `credit_ios` or `credit_mib_per_gib` to it";
            return self.fail(line, "`burst` does not say how long it lasts".to_owned(), hint);
        }
        Ok(())
    }

    fn rule(&self, line: usize, name: &str, rule: Option<&Rule>) -> Result<(), FileError> {
        let Some(rule) = rule else { return Ok(()) };
        rule.figures().try_for_each(|figure| self.figure(line, name, Some(figure)))?;
        match rule.contradiction() {
            Some((problem, hint)) => self.fail(line, format!("`{name}` {problem}"), hint),
            None => Ok(()),
        }
    }
}
