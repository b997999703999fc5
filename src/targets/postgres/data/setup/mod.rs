//! Making a data set: decide first, then load.
//!
//! [`plan`] looks and decides without writing anything, so it also serves a dry run. [`run()`] loads. Each of its
//! steps can be repeated, and what was done stays: whoever is interrupted goes on where it was with the same command.

mod copy;
mod rows;
mod run;

use std::collections::BTreeSet;

use super::catalog::{self, Found, Ground, Stage};
use super::descriptor::{DataSet, FORMAT_VERSION};
use super::session::{Access, Session};
use crate::targets::database::{Replace, SetupRequest};
use crate::targets::error::TargetError;
use crate::targets::sql::data::pieces;
use crate::units::Bytes;

pub use crate::targets::sql::data::found::{Existing, Loaded};

pub use run::run;

/// Most rows of a table: PostgreSQL numbers its blocks with 32 bits, and the last number is none.
const MAX_TABLE_BLOCKS: u64 = u32::MAX as u64 - 1;

/// What [`run()`] will do.
#[derive(Debug, Clone)]
pub struct TablesPlan<'a> {
    /// Where.
    pub access: Access<'a>,
    /// The server's version, in its own words.
    pub server_version: String,
    /// The database.
    pub database: String,
    /// What is there already.
    pub existing: Existing,
    /// Number of tables.
    pub tables: u64,
    /// Bytes of the blocks of all tables.
    pub data_bytes: u64,
    /// About what the indexes take.
    pub index_bytes: u64,
    /// About what the write-ahead log grows by; the server recycles it.
    pub redo_bytes: u64,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub request: SetupRequest,
}

impl TablesPlan<'_> {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub fn makes_data(&self) -> bool {
        makes_data(self.existing, self.request.replace)
    }

    /// Bytes of blocks that are still to be loaded.
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
    check(request)?;
    let session = Session::open(*access)?;
    let ground = Ground::look(&session)?;
    let existing = look(&session, &ground, request)?;
    let data = data_set(request, *access);
    Ok(TablesPlan {
        access: *access,
        existing,
        tables: data.tables().count() as u64,
        data_bytes: data.bytes(),
        index_bytes: data.estimated_index_bytes(),
        redo_bytes: data.estimated_redo_bytes(),
        notes: Vec::new(),
        request: request.clone(),
        server_version: ground.server.version,
        database: ground.server.database,
    })
}

fn makes_data(existing: Existing, replace: Replace) -> bool {
    existing != Existing::SameData || replace == Replace::Replace
}

/// Finds out what is there, and refuses what the request may not touch.
fn look(session: &Session<'_>, ground: &Ground, request: &SetupRequest) -> Result<Existing, TargetError> {
    let access = session.access();
    catalog::check_block_bytes(access, &ground.server, request.block_bytes)?;
    ground.check_for_setup(access)?;
    let Some(Found { data, stage, .. }) = &ground.found else { return Ok(Existing::Nothing) };
    if *stage == Stage::Dropping {
        return Ok(Existing::HalfRemoved);
    }
    match (data.difference(request), request.replace, stage) {
        (Some(difference), Replace::Refuse, _) => {
            let what = format!(
                "the schema `{}` on `{}` already holds other SLOB data: {difference}",
                access.namespace,
                access.node_name()
            );
            let hint = "ask for the same data, name another schema with `--db-schema NAME`, or replace them: `plimsoll slob \
                        setup --replace`";
            Err(access.unfit(what, Some(hint.to_owned())))
        }
        (Some(_), Replace::Replace, _) => Ok(Existing::OtherData),
        (None, _, Stage::Ready) => {
            if request.replace == Replace::Refuse {
                check_complete(session, data)?;
            }
            Ok(Existing::SameData)
        }
        (None, _, _) => {
            let places = pieces::loaded_places(&copy::marks(session)?);
            Ok(Existing::Unfinished { loaded_bytes: places * u64::from(data.block_bytes) })
        }
    }
}

/// Data of which a table or an index is missing are not there already.
fn check_complete(session: &Session<'_>, data: &DataSet) -> Result<(), TargetError> {
    let there: BTreeSet<String> = catalog::our_objects(session)?.into_iter().map(|(name, _)| name).collect();
    match catalog::expected_objects(data).into_iter().find(|name| !there.contains(name)) {
        None => Ok(()),
        Some(missing) => {
            let access = session.access();
            let what = format!("`{missing}` is missing in the schema `{}`", access.namespace);
            Err(access.unfit(what, Some("make the data anew: `plimsoll slob setup --replace`".to_owned())))
        }
    }
}

/// Refuses what cannot be a data set.
fn check(request: &SetupRequest) -> Result<(), TargetError> {
    request.check()?;
    if request.scale_blocks.max(request.scan_blocks) > MAX_TABLE_BLOCKS {
        let most = Bytes(MAX_TABLE_BLOCKS * u64::from(request.block_bytes));
        return Err(TargetError::Shape(format!(
            "a table of PostgreSQL has at most {MAX_TABLE_BLOCKS} blocks, {most}; lower the scale"
        )));
    }
    Ok(())
}

/// What will be described.
fn data_set(request: &SetupRequest, access: Access<'_>) -> DataSet {
    DataSet::wanted(request, FORMAT_VERSION, access.sql(request.block_bytes).column_bytes())
}

#[cfg(test)]
mod tests;
