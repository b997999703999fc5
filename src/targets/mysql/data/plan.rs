//! What a set-up is to make, and what is there already.

use super::catalog::{self, FORMAT_VERSION, Server};
use super::load;
use super::session::{Access, Session};
use crate::targets::error::TargetError;
use crate::targets::mysql::sql::{ROWS_OF_A_LEAF, column_bytes};
use crate::targets::sql::COLUMNS;
use crate::targets::sql::data::descriptor::{DataSet, Found, Stage};
use crate::targets::sql::data::pieces;

pub use crate::targets::database::{Phase, Progress, Replace, SetupRequest};
pub use crate::targets::sql::data::found::{Existing, Loaded};

/// Most leaves of a table: InnoDB numbers its pages with 32 bits.
const MAX_TABLE_BLOCKS: u64 = 1 << 31;
/// An entry of the index on the keys: its header, key and place.
const INDEX_ENTRY_BYTES: u64 = 24;
/// What the redo log needs for a row besides its columns.
const REDO_OVERHEAD_BYTES: u64 = 80;

/// What [`run`](super::setup::run) will do.
#[derive(Debug, Clone)]
pub struct TablesPlan<'a> {
    /// Where.
    pub access: Access<'a>,
    /// The server's version, in its own words.
    pub server_version: String,
    /// What is there already.
    pub existing: Existing,
    /// Number of tables.
    pub tables: u64,
    /// Bytes of the leaves of all tables.
    pub data_bytes: u64,
    /// About what the indexes take.
    pub index_bytes: u64,
    /// About what the redo log grows by; the server recycles it.
    pub redo_bytes: u64,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub request: SetupRequest,
    /// The data that will be there.
    pub(super) data: DataSet,
    /// The data that are there.
    pub(super) found: Option<Found>,
}

impl TablesPlan<'_> {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub fn makes_data(&self) -> bool {
        self.existing != Existing::SameData || self.request.replace == Replace::Replace
    }

    /// Bytes of leaves that are still to be loaded.
    pub fn missing_bytes(&self) -> u64 {
        match self.existing {
            _ if !self.makes_data() => 0,
            Existing::Unfinished { loaded_bytes } if self.request.replace == Replace::Refuse => {
                self.data_bytes.saturating_sub(loaded_bytes)
            }
            _ => self.data_bytes,
        }
    }
}

/// Decides everything, and writes nothing.
///
/// # Errors
/// [`TargetError::Shape`] when the request makes no sense; what stands against it on the server, with a cure; or why the
/// server cannot be asked.
pub fn plan<'a>(access: &Access<'a>, request: &SetupRequest) -> Result<TablesPlan<'a>, TargetError> {
    plan_in(&mut Session::open(*access)?, request)
}

pub(super) fn plan_in<'a>(session: &mut Session<'a>, request: &SetupRequest) -> Result<TablesPlan<'a>, TargetError> {
    check(request)?;
    let access = session.access();
    let server = Server::ask(session)?;
    server.check_for_setup(access, request.block_bytes)?;
    let found = catalog::read_descriptor(session)?;
    let existing = existing(session, found.as_ref(), request)?;
    let wanted = DataSet::wanted(request, FORMAT_VERSION, column_bytes(request.block_bytes));
    // When it was begun, and by which version.
    let there = found
        .as_ref()
        .filter(|_| matches!(existing, Existing::Unfinished { .. }) && request.replace == Replace::Refuse);
    let data = there.map_or(wanted, |found| found.data.clone());
    let rows = data.blocks() * ROWS_OF_A_LEAF;
    let keys = data.scale_blocks * ROWS_OF_A_LEAF * u64::from(data.schemas);
    let mut notes = Vec::new();
    if data.bytes() < server.buffer_pool_bytes.saturating_mul(4) {
        notes.push(format!(
            "the server's buffer pool of {} may hold much of {} of data",
            crate::units::Bytes(server.buffer_pool_bytes),
            crate::units::Bytes(data.bytes())
        ));
    }
    Ok(TablesPlan {
        access,
        existing,
        tables: data.tables().count() as u64,
        data_bytes: data.bytes(),
        index_bytes: keys * INDEX_ENTRY_BYTES,
        redo_bytes: rows * (u64::from(COLUMNS * data.column_bytes) + REDO_OVERHEAD_BYTES),
        notes,
        request: request.clone(),
        server_version: server.version,
        data,
        found,
    })
}

/// Finds out what is there, and refuses what the request may not touch.
fn existing(session: &mut Session<'_>, found: Option<&Found>, request: &SetupRequest) -> Result<Existing, TargetError> {
    let access = session.access();
    let there = catalog::our_objects(session)?;
    let place = format!("the database `{}` on `{}`", access.database, access.node_name());
    let Some(Found { data, stage, .. }) = found else {
        // Our own two tables may be left of a set-up that was ended at its very beginning.
        return match there.keys().find(|name| ![catalog::DATA_TABLE, catalog::LOAD_TABLE].contains(&name.as_str())) {
            None => Ok(Existing::Nothing),
            Some(clash) => Err(access.unfit(
                format!("{place} holds `{clash}`, which Plimsoll did not make"),
                "name another database: `mysql://USER@HOST/DATABASE`",
            )),
        };
    };
    if *stage == Stage::Dropping {
        return Ok(Existing::HalfRemoved);
    }
    match (data.difference(request), request.replace, stage) {
        (Some(difference), Replace::Refuse, _) => Err(access.unfit(
            format!("{place} already holds other SLOB data: {difference}"),
            "ask for the same data, name another database, or replace them: `plimsoll slob setup --replace`",
        )),
        (Some(_), Replace::Replace, _) => Ok(Existing::OtherData),
        (None, replace, Stage::Ready) => {
            let missing = catalog::expected_objects(data).into_iter().find(|name| !there.contains_key(name));
            match missing.filter(|_| replace == Replace::Refuse) {
                None => Ok(Existing::SameData),
                Some(missing) => Err(access.unfit(
                    format!("`{missing}` is missing in {place}"),
                    "make the data anew: `plimsoll slob setup --replace`",
                )),
            }
        }
        (None, _, _) => {
            let places = pieces::loaded_places(&load::marks(session)?);
            Ok(Existing::Unfinished { loaded_bytes: places * u64::from(data.block_bytes) })
        }
    }
}

/// Refuses what cannot be a data set.
fn check(request: &SetupRequest) -> Result<(), TargetError> {
    request.check()?;
    if request.scale_blocks.max(request.scan_blocks) > MAX_TABLE_BLOCKS {
        let what = "a table of InnoDB has at most 2^32 pages, two rows for each that is addressed; lower the scale";
        return Err(TargetError::Shape(what.to_owned()));
    }
    Ok(())
}
