//! What the user asked for, as plain data.
//!
//! Text goes in, typed and checked values come out; the only thing that is opened is the parameter file, or ORION's list
//! of devices, that the user names. Nothing here knows a target: what needs facts about the data set is checked by whoever has them, with
//! [`SlobParameters::check_against`].
//!
//! ```
//! use plimsoll_model::config::{Assignment, SlobParameters, slob_conf};
//!
//! let mut settings = slob_conf::parse("UPDATE_PCT=20   # a fifth\nSCALE=80M\n", "slob.conf")?;
//! if let Assignment::Set(setting) = "UPDATE_PCT=50".parse()? {
//!     settings.push(setting);
//! }
//! let parameters = SlobParameters::from_settings(&settings)?;
//! assert_eq!(parameters.update_pct, 50);
//! assert_eq!(parameters.scale.blocks(8192), 10_240);
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod address;
mod argument;
mod arrival;
mod error;
pub mod experiment;
pub mod fleet;
pub mod group;
pub mod host;
pub mod io;
mod list;
pub mod mysql;
pub mod net;
pub mod nfs;
pub mod oracle;
pub mod orion;
mod parameter;
mod pauses;
pub mod postgres;
mod secret;
mod setting;
mod slob;
pub mod slob_conf;
mod tag;
mod target;
mod vary;

pub use address::{ServerAddressProblem, ServerNode};
pub use argument::{Assignment, without_secrets};
pub use error::{ConfigError, SyntaxProblem, TargetProblem, VaryProblem};
pub use parameter::{Key, PARAMETERS, Parameter, Role, help_text, markdown_table};
pub use pauses::PausesError;
pub use secret::Secret;
pub use setting::{Origin, Setting};
pub use slob::{
    Connection, Filler, HotSpot, MAX_SESSIONS, MAX_WORK_UNIT, RedoStress, Scale, SlobParameters, StatisticsType, Think,
    nanos_text,
};
pub use tag::Tag;
pub use target::TargetAddress;
pub use vary::{Axes, MAX_STEPS, ThreadList, Vary};
