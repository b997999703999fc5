//! What a set-up would make on a server, and making it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};

use super::{Dialect, Reached, planned_cache, unfit};
use crate::data::catalog::Keeps;
use crate::data::plan::{DataRequest, Plan, plan, run};
use crate::data::setup::SetUp;
use crate::private::Programs as _;
use model::units::Bytes;
use targets::TargetError;
use targets::database::{Cache, DatabaseOptions, Phase, Progress, SetupPlan, SetupReport, SetupRequest, Sheet};

/// A request in words.
pub(super) trait SetupWords<D: Dialect>: DataRequest<D> {
    /// The data.
    fn words(&self) -> String;

    /// Their seed.
    fn seed(&self) -> u64;

    /// What is loaded by how many streams.
    fn amount(plan: &Plan<'_, D, Self>) -> String;

    /// What room the data take.
    fn space(plan: &Plan<'_, D, Self>) -> String;

    /// What is to be known before, where so much room is left in that directory of a private server.
    ///
    /// # Errors
    /// When the data have no room.
    fn notes(plan: &Plan<'_, D, Self>, room: Option<(PathBuf, Bytes)>) -> Result<Vec<String>, TargetError>;

    /// What else is said of a private server that is not there yet, and what is to be known before it is made.
    fn of_new_server(&self, options: &DatabaseOptions, sheet: &mut Sheet) -> Vec<String>;

    /// Bytes of a row, in the mean, where they are rows of an application.
    fn mean_row_bytes(_data: &Self::Data) -> Option<f64> {
        None
    }

    /// What its document says of how the data were made.
    fn document_of(_outcome: Option<&Self::Outcome>) -> Option<(&'static str, Value)> {
        None
    }
}

impl<D: SetUp + Dialect> SetupWords<D> for SetupRequest {
    fn words(&self) -> String {
        SetupRequest::words(self)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn amount(plan: &Plan<'_, D, Self>) -> String {
        format!("{} to go", Bytes(plan.missing_bytes()))
    }

    fn space(plan: &Plan<'_, D, Self>) -> String {
        let estimate = plan.estimate;
        let (data, index, redo) = (Bytes(estimate.tables), Bytes(estimate.indexes), Bytes(estimate.log));
        let (tables, log) = (plan.data.tables().count(), D::LOG.0);
        format!("{data} in {tables} tables, {index} of indexes, up to {redo} of {log}")
    }

    fn notes(plan: &Plan<'_, D, Self>, room: Option<(PathBuf, Bytes)>) -> Result<Vec<String>, TargetError> {
        let (indexes, log) = (plan.estimate.indexes, plan.estimate.log);
        let needed = plan.missing_bytes() + indexes + log;
        let short = room.filter(|(_, room)| plan.makes_data() && needed > room.0);
        let notes = short.map(|(directory, room)| {
            format!(
                "{room} are left in `{}`. This loads {}, builds {} of indexes and writes up to {} of {}: lower \
                SCALE, or use another file system",
                directory.display(),
                Bytes(plan.missing_bytes()),
                Bytes(indexes),
                Bytes(log),
                D::LOG.0
            )
        });
        Ok(notes.into_iter().collect())
    }

    fn of_new_server(&self, options: &DatabaseOptions, sheet: &mut Sheet) -> Vec<String> {
        if let Some(limit) = options.host_memory {
            sheet.add("memory", format!("{limit} for the server, page cache included"));
        }
        sheet.add("data", SetupRequest::words(self));
        Vec::new()
    }
}

/// Tables that are to be made on a server that answers.
pub(super) struct TablesPlan<'a, D: Dialect, R: DataRequest<D>> {
    plan: Plan<'a, D, R>,
    cache: Option<Cache>,
    notes: Vec<String>,
}

impl<'a, D: Dialect + Keeps<R::Data>, R: SetupWords<D>> TablesPlan<'a, D, R> {
    pub(super) fn new(reached: &'a Reached<D>, options: &DatabaseOptions, request: &R) -> Result<Self, TargetError> {
        let plan = plan(&reached.access(), request)?;
        let notes = R::notes(&plan, reached.room())?;
        Ok(Self { cache: reached.cache(options.host_memory)?, plan, notes })
    }
}

impl<D: Dialect + Keeps<R::Data>, R: SetupWords<D>> SetupPlan for TablesPlan<'_, D, R> {
    fn sheet(&self) -> Sheet {
        let (plan, request) = (&self.plan, &self.plan.request);
        let mut sheet = Sheet::default();
        sheet.add("server", format!("{}, {}", plan.access.node_name(), plan.version));
        sheet.add("database", plan.database.clone());
        sheet.add("there now", plan.existing.words(plan.makes_data()));
        sheet.add("data", request.words());
        sheet.add("seed", request.seed().to_string());
        if plan.makes_data() {
            let streams = match request.streams() {
                1 => "1 stream".to_owned(),
                streams => format!("{streams} streams"),
            };
            sheet.add("loaded by", format!("{streams}, {}", R::amount(plan)));
            sheet.add("space", R::space(plan));
        }
        for (statement, why) in &plan.grants {
            // SQL*Plus takes a statement for ended only where nothing follows on the line.
            sheet.add("right", format!("{statement} /* {why} */;"));
        }
        sheet
    }

    fn makes_data(&self) -> bool {
        self.plan.makes_data()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn cache(&self) -> Option<Cache> {
        self.cache.clone()
    }

    fn mean_row_bytes(&self) -> Option<f64> {
        R::mean_row_bytes(&self.plan.data)
    }

    fn run(
        self: Box<Self>,
        progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let (access, seed) = (self.plan.access, self.plan.request.seed());
        let (loaded, outcome) = run(self.plan, &|phase, now| progress(Some(phase), now), stop)?;
        let own = [
            ("server", json!(access.node_name())),
            (D::HOLDER_FIELD, json!(access.namespace)),
            ("bytes_found", json!(loaded.bytes_found)),
            ("phases_ns", json!(loaded.phases.iter().copied().collect::<BTreeMap<_, _>>())),
        ];
        let own = own.into_iter().chain(R::document_of(outcome.as_ref()));
        let to_know = D::AFTER_LOADING.filter(|_| loaded.created).map(str::to_owned);
        Ok(SetupReport {
            place: access.place(),
            bytes_written: loaded.bytes_written,
            rows: Some(loaded.rows_written),
            elapsed_ns: loaded.elapsed_ns,
            phases: loaded.phases,
            seed,
            created: loaded.created,
            notes: loaded.notes.into_iter().chain(to_know).collect(),
            document: Map::from_iter(own.map(|(name, value)| (name.to_owned(), value))),
        })
    }

    fn after_interrupt(&self) -> &'static str {
        "the same command goes on from here"
    }
}

/// A private server that is not there yet, in words.
pub(super) struct NewServer<'a, D, R> {
    directory: &'a Path,
    options: &'a DatabaseOptions,
    request: R,
    dialect: std::marker::PhantomData<D>,
}

impl<'a, D: Dialect, R: SetupWords<D>> NewServer<'a, D, R> {
    pub(super) fn new(directory: &'a Path, options: &'a DatabaseOptions, request: &R) -> Self {
        Self { directory, options, request: request.clone(), dialect: std::marker::PhantomData }
    }
}

impl<D: Dialect, R: SetupWords<D>> SetupPlan for NewServer<'_, D, R> {
    fn sheet(&self) -> Sheet {
        let kind = D::Programs::KIND;
        let mut sheet = Sheet::default();
        sheet.add("directory", self.directory.display().to_string());
        sheet.add("there now", format!("nothing; a private {} would be made", kind.noun));
        sheet.add("cache", format!("{} of {}", self.options.db_cache, kind.buffers));
        self.request.of_new_server(self.options, &mut sheet);
        sheet
    }

    fn makes_data(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        self.request.of_new_server(self.options, &mut Sheet::default())
    }

    fn cache(&self) -> Option<Cache> {
        planned_cache::<D>(self.options)
    }

    /// # Errors
    /// Always: it was planned for its words alone.
    fn run(
        self: Box<Self>,
        _progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        _stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let what = format!("`{}` was only looked at", self.directory.display());
        Err(unfit(what, "leave out `--dry-run`".to_owned()))
    }

    fn after_interrupt(&self) -> &'static str {
        "nothing was made"
    }
}
