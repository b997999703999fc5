//! `plimsoll slob script`.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::arguments::MethodArgs;
use crate::cli::arguments::ParameterArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::say;
use crate::cli::servers::LayoutChoice;
use model::config::Key;
use model::units::Bytes;
use oracle::script::Script;
use oracle::sql::{Sql, dictionary_name};
use targets::database::Replace;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob script oracle -c slob.conf
  plimsoll slob script oracle -s 8 SCALE=1G --user bench --tablespace data
  plimsoll slob script oracle -s 8 --layout slob --commit slob
  plimsoll slob script oracle UPDATE_PCT=0 --reads key-by-key

It prints, and asks no server anything. Read the script first, then try it with SQL*Plus on a server that may break. The data that \
it makes are those that `plimsoll slob setup` would make, but for what rows are filled with and where they lie.";

/// Block where nobody says otherwise, as databases are made everywhere.
const DEFAULT_BLOCK: Bytes = Bytes::kib(8);
/// Seed where nobody says otherwise: the same command gives the same script.
const DEFAULT_SEED: u64 = 42;

/// Arguments of `plimsoll slob script`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Database that the script is for
    #[arg(value_enum, value_name = "DATABASE")]
    database: DatabaseChoice,

    #[command(flatten)]
    parameters: ParameterArgs,

    /// User whose schema holds the tables, and who runs everything
    #[arg(long, value_name = "NAME", default_value = "plimsoll", help_heading = "Data")]
    user: String,

    /// Tablespace of the tables
    #[arg(long, value_name = "NAME", default_value = "users", help_heading = "Data")]
    tablespace: String,

    /// Block size, from 2K to 32K, the same as BLOCK_SZ [default: 8K]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    block_size: Option<String>,

    /// Whose tables to use, on Oracle
    #[arg(long, value_enum, value_name = "WHOSE", default_value = "plimsoll", help_heading = "Data")]
    layout: LayoutChoice,

    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED, help_heading = "Data")]
    seed: u64,

    #[command(flatten)]
    method: MethodArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DatabaseChoice {
    /// Oracle from 12.1 on
    Oracle,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let DatabaseChoice::Oracle = arguments.database;
    let mut asked = arguments.parameters.read()?;
    if let Some(size) = &arguments.block_size {
        asked.set(Key::BlockSz, size);
    }
    let parameters = asked.parameters()?;
    let block_bytes = parameters.block_size.unwrap_or(DEFAULT_BLOCK).0;
    let request = crate::plan::DataSetRequest {
        schemas: asked.schemas.unwrap_or(1),
        block_bytes,
        seed: arguments.seed,
        is_seed_asked: true,
        replace: Replace::Refuse,
    };
    let request = crate::plan::plan_data_set(&parameters, &request)?;
    request.check()?;
    parameters.check_against(request.scale_blocks, block_bytes)?;
    let method = arguments.method.method(arguments.layout.layout());
    let sql = Sql::new(&dictionary_name(&arguments.user), request.block_bytes).by(method);
    let script = Script::new(sql, &dictionary_name(&arguments.tablespace), &request, &parameters);
    let mut out = say::output();
    out.write_all(script.text().as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}
