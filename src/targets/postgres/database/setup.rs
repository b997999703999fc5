//! What `slob setup` would make on a server, and making it.

use std::sync::atomic::AtomicBool;

use serde_json::{Map, json};

use super::{Reached, private_cache};
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::database::{Cache, DatabaseOptions, Phase, Progress, SetupPlan, SetupReport, SetupRequest, Sheet};
use crate::targets::postgres::PostgresError;
use crate::targets::postgres::data;
use crate::targets::postgres::data::setup;
use crate::units::Bytes;

/// Tables that are to be made on a server that answers.
pub(super) struct TablesPlan<'a> {
    plan: setup::TablesPlan<'a>,
    cache: Option<Cache>,
    notes: Vec<String>,
}

impl<'a> TablesPlan<'a> {
    pub(super) fn new(
        reached: &'a Reached,
        options: &'a DatabaseOptions,
        request: &SetupRequest,
    ) -> Result<Self, TargetError> {
        let access = reached.access(&options.schema);
        let there = data::find(&access)?.map(|found| found.data.seed);
        let plan = setup::plan(&access, &request.beside(there))?;
        let mut notes = plan.notes.clone();
        if plan.makes_data() {
            notes.extend(too_little_room(reached, &plan));
        }
        Ok(Self { cache: reached.cache(options.host_memory)?, plan, notes })
    }
}

fn too_little_room(reached: &Reached, plan: &setup::TablesPlan<'_>) -> Option<String> {
    let (directory, room) = reached.room()?;
    let needed = plan.missing_bytes() + plan.index_bytes + plan.redo_bytes;
    (needed > room.0).then(|| {
        format!(
            "{room} are left in `{}`, and this loads {}, builds {} of indexes and writes up to {} of write-ahead log: lower SCALE, or \
             use another file system",
            directory.display(),
            Bytes(plan.missing_bytes()),
            Bytes(plan.index_bytes),
            Bytes(plan.redo_bytes)
        )
    })
}

impl SetupPlan for TablesPlan<'_> {
    fn sheet(&self) -> Sheet {
        let (plan, request) = (&self.plan, &self.plan.request);
        let mut sheet = Sheet::default();
        sheet.add("server", format!("{}, PostgreSQL {}", plan.access.node_name(), plan.server_version));
        sheet.add("database", format!("{}, schema {}", plan.database, plan.access.namespace));
        sheet.add("there now", plan.existing.words(plan.makes_data()));
        sheet.add("data", request.words());
        sheet.add("seed", request.seed.to_string());
        if plan.makes_data() {
            let streams =
                if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
            sheet.add("loaded by", format!("{streams} of binary COPY, {} to go", Bytes(plan.missing_bytes())));
            let (data, index, redo) = (Bytes(plan.data_bytes), Bytes(plan.index_bytes), Bytes(plan.redo_bytes));
            let tables = plan.tables;
            sheet.add(
                "space",
                format!("{data} in {tables} tables, {index} of indexes, up to {redo} of write-ahead log"),
            );
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
        let (schema, node) = (access.namespace, access.node_name());
        let loaded = setup::run(self.plan, &|phase, now| progress(Some(phase), now), stop)?;
        let own = [
            ("server", json!(node)),
            ("db_schema", json!(schema)),
            ("bytes_found", json!(loaded.bytes_found)),
            ("phases_ns", json!(loaded.phases.iter().copied().collect::<std::collections::BTreeMap<_, _>>())),
        ];
        Ok(SetupReport {
            place: format!("the schema `{schema}` on `{node}`"),
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

/// A private cluster that is not there yet, in words.
pub(super) struct NewCluster<'a> {
    pub(super) address: &'a TargetAddress,
    pub(super) options: &'a DatabaseOptions,
    pub(super) request: SetupRequest,
}

impl SetupPlan for NewCluster<'_> {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        let address = self.address.to_string();
        sheet.add("directory", address.split_once(':').map_or(address.as_str(), |(_, path)| path));
        sheet.add("there now", "nothing; a private cluster would be made");
        sheet.add("cache", format!("{} of shared buffers", self.options.db_cache));
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
        private_cache(self.options.host_memory)
    }

    /// # Errors
    /// Always: it was planned for its words alone.
    fn run(
        self: Box<Self>,
        _progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        _stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let what = format!("`{}` was only looked at", self.address);
        Err(PostgresError::Unfit { what, hint: Some("leave out `--dry-run`".to_owned()) }.into())
    }

    fn after_interrupt(&self) -> &'static str {
        "nothing was made"
    }
}
