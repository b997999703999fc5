//! Which part of a fleet's experiment a run is, and what it knows of the others' clock.

use serde::{Deserialize, Serialize};

/// The part of a fleet that a run was. A part drives contiguous lanes and sessions of the whole experiment, so that all parts
/// together send what one process with all sessions would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FleetPart {
    /// Its number, from 0.
    pub number: u32,
    /// Parts of the experiment; at least 1 and more than `number`.
    pub parts: u32,
    /// Where both came from, such as `--part` or `OMPI_COMM_WORLD_RANK`.
    pub source: String,
    /// Digest of everything that decides the load: equal in all parts of one experiment. Hosts, paths and part numbers are not in it.
    pub configuration: String,
    /// What the parts agreed on as the start, by this host's clock: nanoseconds since 1970 in UTC. Absent where each began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_ns: Option<u64>,
    /// How far the load began from `start_at_ns`: positive is late. Absent where nothing was agreed on, or no load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error_ns: Option<i64>,
    /// This host's clock beside that of part 0; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// A clock beside another: what has to be added to its times to have the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockOffset {
    /// Offset in nanoseconds by the exchange of the least round trip, before the load.
    pub before_ns: i64,
    /// The same after the load; absent where the end came without an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
    /// Half of the least round trip: the true offset is no farther away than this.
    pub bound_ns: u64,
}
