//! What `slob setup` would make on a server, and making it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, json};

use super::dialect::Dialect;
use super::reached::{Reached, planned_cache, unfit};
use crate::targets::TargetError;
use crate::targets::database::{Cache, DatabaseOptions, Phase, Progress, SetupPlan, SetupReport, SetupRequest, Sheet};
use crate::targets::sql::data::{catalog, setup};
use crate::targets::sql::private::Programs as _;
use crate::units::Bytes;

/// Tables that are to be made on a server that answers.
pub(super) struct TablesPlan<'a, D> {
    plan: setup::TablesPlan<'a, D>,
    cache: Option<Cache>,
    notes: Vec<String>,
}

impl<'a, D: Dialect> TablesPlan<'a, D> {
    pub(super) fn new(
        reached: &'a Reached<D>,
        options: &DatabaseOptions,
        request: &SetupRequest,
    ) -> Result<Self, TargetError> {
        let access = reached.access();
        let there = catalog::find(&access)?.map(|found| found.data.seed);
        let plan = setup::plan(&access, &request.beside(there))?;
        let needed = plan.missing_bytes() + plan.index_bytes + plan.redo_bytes;
        let short = reached.room().filter(|(_, room)| plan.makes_data() && needed > room.0);
        let notes = short.map(|(directory, room)| {
            format!(
                "{room} are left in `{}`, and this loads {}, builds {} of indexes and writes up to {} of {}: lower SCALE, or use \
                 another file system",
                directory.display(),
                Bytes(plan.missing_bytes()),
                Bytes(plan.index_bytes),
                Bytes(plan.redo_bytes),
                D::LOG.0
            )
        });
        Ok(Self { cache: reached.cache(options.host_memory)?, plan, notes: notes.into_iter().collect() })
    }
}

impl<D: Dialect> SetupPlan for TablesPlan<'_, D> {
    fn sheet(&self) -> Sheet {
        let (plan, request) = (&self.plan, &self.plan.request);
        let mut sheet = Sheet::default();
        sheet.add("server", format!("{}, {}", plan.access.node_name(), plan.version));
        sheet.add("database", plan.database.clone());
        sheet.add("there now", plan.existing.words(plan.makes_data()));
        sheet.add("data", request.words());
        sheet.add("seed", request.seed.to_string());
        if plan.makes_data() {
            let streams =
                if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
            sheet.add("loaded by", format!("{streams}, {} to go", Bytes(plan.missing_bytes())));
            let (data, index, redo) = (Bytes(plan.data.bytes()), Bytes(plan.index_bytes), Bytes(plan.redo_bytes));
            let (tables, log) = (plan.data.tables().count(), D::LOG.0);
            sheet.add("space", format!("{data} in {tables} tables, {index} of indexes, up to {redo} of {log}"));
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

    fn run(
        self: Box<Self>,
        progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let (access, seed) = (self.plan.access, self.plan.request.seed);
        let block_bytes = u64::from(self.plan.request.block_bytes.max(1));
        let loaded = setup::run(self.plan, &|phase, now| progress(Some(phase), now), stop)?;
        let own = [
            ("server", json!(access.node_name())),
            (D::HOLDER_FIELD, json!(access.namespace)),
            ("bytes_found", json!(loaded.bytes_found)),
            ("phases_ns", json!(loaded.phases.iter().copied().collect::<BTreeMap<_, _>>())),
        ];
        Ok(SetupReport {
            place: access.place(),
            bytes_written: loaded.bytes_written,
            rows: Some(loaded.bytes_written / block_bytes),
            elapsed_ns: loaded.elapsed_ns,
            phases: loaded.phases,
            seed,
            created: loaded.created,
            notes: loaded.notes,
            document: Map::from_iter(own.map(|(name, value)| (name.to_owned(), value))),
        })
    }

    fn after_interrupt(&self) -> &'static str {
        "the same command goes on from here"
    }
}

/// A private server that is not there yet, in words.
pub(super) struct NewServer<'a, D> {
    directory: &'a Path,
    options: &'a DatabaseOptions,
    request: SetupRequest,
    dialect: std::marker::PhantomData<D>,
}

impl<'a, D> NewServer<'a, D> {
    pub(super) fn new(directory: &'a Path, options: &'a DatabaseOptions, request: &SetupRequest) -> Self {
        Self { directory, options, request: request.clone(), dialect: std::marker::PhantomData }
    }
}

impl<D: Dialect> SetupPlan for NewServer<'_, D> {
    fn sheet(&self) -> Sheet {
        let kind = D::Programs::KIND;
        let mut sheet = Sheet::default();
        sheet.add("directory", self.directory.display().to_string());
        sheet.add("there now", format!("nothing; a private {} would be made", kind.noun));
        sheet.add("cache", format!("{} of {}", self.options.db_cache, kind.buffers));
        if let Some(limit) = self.options.host_memory {
            sheet.add("memory", format!("{limit} for the server, page cache included"));
        }
        sheet.add("data", self.request.words());
        sheet
    }

    fn makes_data(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
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
        Err(unfit::<D>(what, "leave out `--dry-run`".to_owned()))
    }

    fn after_interrupt(&self) -> &'static str {
        "nothing was made"
    }
}
