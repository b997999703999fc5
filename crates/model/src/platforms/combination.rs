//! A platform as it is asked about: machines, volumes, and how they are put together.

use super::volumes::{VolumeError, Volumes};
use super::{Catalogue, Machine, NameError, VolumeKind};

/// How many nodes may be asked for.
pub(super) const MAX_NODES: u32 = 1_000;

/// Whether the host's cache lies before the volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// It does not.
    #[default]
    None,
    /// It serves reads that were read before.
    Read,
}

/// How many copies of each write there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redundancy {
    /// One: the volumes are safe by themselves.
    #[default]
    External,
    /// Two.
    Normal,
    /// Three.
    High,
}

impl Redundancy {
    /// How many copies.
    pub fn copies(self) -> f64 {
        match self {
            Self::External => 1.0,
            Self::Normal => 2.0,
            Self::High => 3.0,
        }
    }

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// A platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Combination {
    /// What each node is.
    pub machine: Machine,
    /// How many nodes.
    pub nodes: u32,
    /// The volumes of all nodes together; absent where data lie on what is built into the machines.
    pub volumes: Option<Volumes>,
    /// Whether the host's cache lies before them.
    pub cache: Cache,
    /// How many copies of each write.
    pub redundancy: Redundancy,
}

/// What is asked of a platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// Reads as a share of all requests, 0 to 1.
    pub read_share: f64,
    /// Bytes of a request.
    pub block_bytes: f64,
    /// Reads that the host's cache serves, as a share of all reads, 0 to 1. 0 where there is no such cache.
    pub hit_share: f64,
}

/// Why a platform cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CombinationError {
    /// The machine is not known.
    #[error(transparent)]
    Machine(#[from] NameError),
    /// The volumes are not known.
    #[error(transparent)]
    Volumes(#[from] VolumeError),
    /// They do not go together.
    #[error("{problem}")]
    Apart {
        /// Why not.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl CombinationError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Machine(problem) => problem.hint(),
            Self::Volumes(problem) => problem.hint(),
            Self::Apart { hint, .. } => hint.clone(),
        }
    }

    fn apart(problem: String, hint: &str) -> Self {
        Self::Apart { problem, hint: hint.to_owned() }
    }
}

impl Combination {
    /// The platform of those names: a machine, and volumes as [`Volumes::parse`] reads them, or `local` for what is built in.
    ///
    /// # Errors
    /// If a name says nothing, or if they do not go together.
    pub fn parse(
        catalogue: &Catalogue,
        (machine, nodes): (&str, u32),
        volumes: &str,
        cache: Cache,
        redundancy: Redundancy,
    ) -> Result<Self, CombinationError> {
        let machine = catalogue.machine(machine)?.clone();
        let is_local = volumes.trim().eq_ignore_ascii_case("local");
        let volumes = if is_local { None } else { Some(Volumes::parse(volumes, catalogue)?) };
        Self::of(machine, nodes, volumes, cache, redundancy)
    }

    /// The platform of these parts.
    ///
    /// # Errors
    /// If they do not go together.
    pub fn of(
        machine: Machine,
        nodes: u32,
        volumes: Option<Volumes>,
        cache: Cache,
        redundancy: Redundancy,
    ) -> Result<Self, CombinationError> {
        let apart = CombinationError::apart;
        let name = &machine.name;
        if !(1..=MAX_NODES).contains(&nodes) {
            return Err(apart(format!("{nodes} nodes"), &format!("there are 1 to {MAX_NODES} nodes")));
        }
        match &volumes {
            None if machine.local.is_none() => {
                let hint = "name volumes, as in `--volume p30x16`, or a machine that has storage of its own";
                return Err(apart(format!("no storage that is built into {name} is known"), hint));
            }
            Some(volumes) if volumes.kind.cloud != machine.cloud => {
                let problem =
                    format!("{} is of {}, {name} of {}", volumes.kind.name, volumes.kind.cloud, machine.cloud);
                return Err(apart(problem, &format!("`plimsoll platforms list` shows what {} has", machine.cloud)));
            }
            Some(volumes) if !is_of(&machine, &volumes.kind) => {
                let problem = format!("{name} cannot have {}", volumes.kind.name);
                return Err(apart(problem, &format!("machines that can are {}", volumes.kind.families.join(", "))));
            }
            Some(volumes) if !volumes.kind.over_network => {
                let shared_by = machine.shared_by(&volumes.kind);
                if volumes.count < nodes && shared_by.is_some_and(|most| most < nodes) {
                    let problem = match shared_by {
                        Some(most @ 2..) => format!("{nodes} nodes share {}, which {most} can", volumes.name()),
                        _ => {
                            format!("{nodes} nodes share {}, which only one can have (no Multi-Attach)", volumes.name())
                        }
                    };
                    return Err(apart(
                        problem,
                        "give each node volumes of its own, or name volumes that several may share",
                    ));
                }
                let on_each = volumes.count.div_ceil(nodes);
                if let Some(most) = machine.data_disks.filter(|most| on_each > *most) {
                    let problem = format!("{on_each} volumes on each {name}, which takes {most}");
                    return Err(apart(problem, "the number after `x` is of all nodes together; see also `--nodes`"));
                }
            }
            _ => {}
        }
        if cache == Cache::Read {
            if machine.cached.is_none() {
                let hint = "leave out `--cache`, or name a machine that has one";
                return Err(apart(format!("no host cache of {name} is known"), hint));
            }
            if let Some(volumes) = volumes.as_ref().filter(|volumes| !volumes.kind.host_cache) {
                let problem = format!("the host's cache cannot lie before {}", volumes.kind.name);
                return Err(apart(problem, "leave out `--cache`, or name smaller volumes"));
            }
            if volumes.is_none() {
                let problem = "the host's cache does not lie before storage that is built in".to_owned();
                return Err(apart(problem, "leave out `--cache`"));
            }
        }
        Ok(Self { machine, nodes, volumes, cache, redundancy })
    }

    /// In words: `Standard_M64s x 2 with P30 x 32`.
    pub fn name(&self) -> String {
        let nodes = if self.nodes == 1 { String::new() } else { format!(" x {}", self.nodes) };
        let volumes = self.volumes.as_ref().map_or_else(|| "storage that is built in".to_owned(), Volumes::name);
        let cache = if self.cache == Cache::Read { ", read cache" } else { "" };
        let copies = match self.redundancy {
            Redundancy::External => String::new(),
            redundancy => format!(", {} redundancy", redundancy.name()),
        };
        format!("{}{nodes} with {volumes}{cache}{copies}", self.machine.name)
    }
}

/// Whether `machine` is of a family that can have volumes of that kind: `m6in` is not `m6idn`, and `c3:88` not what has 44 processors.
fn is_of(machine: &Machine, kind: &VolumeKind) -> bool {
    let is_in = |family: &String| {
        let (family, least) = family.split_once(':').unwrap_or((family, "0"));
        let rest = machine.name.strip_prefix(family);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
            && least.parse().is_ok_and(|least: u32| machine.processors.unwrap_or(0) >= least)
    };
    kind.families.is_empty() || kind.families.iter().any(is_in)
}
