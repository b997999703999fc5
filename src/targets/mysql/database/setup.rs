//! What `slob setup` would make on a server, and making it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, json};

use super::{Reached, planned_cache};
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::database::{Cache, DatabaseOptions, Phase, Progress, SetupPlan, SetupReport, SetupRequest, Sheet};
use crate::targets::mysql::MysqlError;
use crate::targets::mysql::data::setup;
use crate::targets::mysql::data::{self};
use crate::units::Bytes;

/// Tables that are to be made on a server that answers.
pub(super) struct TablesPlan<'a> {
    plan: setup::TablesPlan<'a>,
    cache: Option<Cache>,
    notes: Vec<String>,
}

impl<'a> TablesPlan<'a> {
    pub(super) fn new(reached: &'a Reached, request: &SetupRequest) -> Result<Self, TargetError> {
        let access = reached.access();
        let there = data::find(&access)?.map(|found| found.data.seed);
        let plan = setup::plan(&access, &request.beside(there))?;
        let mut notes = plan.notes.clone();
        let needed = Bytes(plan.missing_bytes() + plan.index_bytes + plan.redo_bytes);
        if let Some((directory, room)) = reached.room().filter(|(_, room)| plan.makes_data() && *room < needed) {
            let at = directory.display();
            notes.push(format!(
                "{room} are left in `{at}`, and this takes up to {needed} with indexes and redo: lower SCALE, or use another file system"
            ));
        }
        Ok(Self { cache: reached.cache()?, plan, notes })
    }
}

impl SetupPlan for TablesPlan<'_> {
    fn sheet(&self) -> Sheet {
        let (plan, request) = (&self.plan, &self.plan.request);
        let mut sheet = Sheet::default();
        sheet.add("server", format!("{}, {}", plan.access.node_name(), plan.server_version));
        sheet.add("database", plan.access.database);
        sheet.add("there now", plan.existing.words(plan.makes_data()));
        sheet.add("data", request.words());
        sheet.add("seed", request.seed.to_string());
        if plan.makes_data() {
            let streams =
                if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
            sheet.add("loaded by", format!("{streams}, {} to go", Bytes(plan.missing_bytes())));
            let (data, index, redo) = (Bytes(plan.data_bytes), Bytes(plan.index_bytes), Bytes(plan.redo_bytes));
            sheet.add("space", format!("{data} in {} tables, {index} of indexes, up to {redo} of redo", plan.tables));
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
        let (database, node) = (access.database, access.node_name());
        let loaded = setup::run(self.plan, &|phase, now| progress(Some(phase), now), stop)?;
        let own = [
            ("server", json!(node)),
            ("database", json!(database)),
            ("bytes_found", json!(loaded.bytes_found)),
            ("phases_ns", json!(loaded.phases.iter().copied().collect::<BTreeMap<_, _>>())),
        ];
        Ok(SetupReport {
            place: format!("the database `{database}` on `{node}`"),
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
pub(super) struct NewServer<'a> {
    pub(super) address: &'a TargetAddress,
    pub(super) options: &'a DatabaseOptions,
    pub(super) request: SetupRequest,
}

impl SetupPlan for NewServer<'_> {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        let address = self.address.to_string();
        sheet.add("directory", address.split_once(':').map_or(address.as_str(), |(_, path)| path));
        sheet.add("there now", "nothing; a private server would be made");
        sheet.add("cache", format!("{} of buffer pool", self.options.db_cache));
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
        Some(planned_cache(self.options))
    }

    /// # Errors
    /// Always: it was planned for its words alone.
    fn run(
        self: Box<Self>,
        _progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        _stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let what = format!("`{}` was only looked at", self.address);
        Err(MysqlError::Unfit { what, hint: Some("leave out `--dry-run`".to_owned()) }.into())
    }

    fn after_interrupt(&self) -> &'static str {
        "nothing was made"
    }
}
