//! `plimsoll slob info` on a server.

use std::io::{self, Write};

use super::Reached;
use crate::cli::arguments::Format;
use crate::cli::exit::{Exit, Failure};
use crate::cli::say;
use crate::cli::slob::setup::data_words;
use crate::targets::postgres::data::Stage;
use crate::targets::postgres::data::info::{self, Info};
use crate::units::Bytes;

pub(in crate::cli::slob) fn run(reached: &Reached<'_>, format: Format) -> Result<Exit, Failure> {
    let info = info::info(&reached.access())?;
    match format {
        Format::Json => say::json(&info)?,
        Format::Text => {
            let mut out = say::output();
            write_info(&mut out, &info)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

fn write_info(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let data = &info.descriptor;
    writeln!(out, "server     {}, PostgreSQL {}", info.node, info.server_version)?;
    writeln!(out, "database   {}, schema {}, role {}", info.database, info.namespace, info.role)?;
    let state = match (info.stage, &info.in_use_by) {
        (Stage::Ready, _) => "whole".to_owned(),
        (Stage::Loading, Some(by)) => format!("being set up by {by}"),
        (Stage::Loading, None) => "its set-up was never finished; the same `slob setup` goes on".to_owned(),
        (Stage::Dropping, Some(by)) => format!("being removed by {by}"),
        (Stage::Dropping, None) => "half removed; `slob drop` removes the rest".to_owned(),
    };
    writeln!(out, "state      {state}")?;
    writeln!(out, "made       {}, format {}", data.created_at, data.format_version)?;
    writeln!(
        out,
        "data       {}, seed {}",
        data_words(data.schemas, data.scale_blocks, data.scan_blocks, data.block_bytes),
        data.seed
    )?;
    writeln!(
        out,
        "tables     {}, {} and {} of indexes",
        info.tables.len(),
        Bytes(info.bytes),
        Bytes(info.index_bytes)
    )?;
    writeln!(out, "checksums  {}", if info.data_checksums { "on" } else { "off" })?;
    for right in &info.missing {
        writeln!(out, "missing    {}: {}; {}", right.name, right.gives, right.cure)?;
    }
    Ok(())
}
