//! Where load lands: reached, so that a plan can be made, then opened, then closed.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::load::LoadArgs;
use super::server::{ServerGround, ServerSite};
use crate::cli::exit::Failure;
use crate::cli::live::RunProgress;
use crate::cli::timed::TimedBy;
use crate::config::TargetAddress;
use crate::measure::{Clock, environment};
use crate::plan::slob::{Facts, Request, RunPlan};
use crate::record::Environment;
use crate::targets::embedded::{Descriptor, Engine, EngineOptions};
use crate::targets::simulated::{Simulated, SimulatedOptions};
use crate::targets::{TargetError, TargetFor};
use crate::units::Bytes;
use crate::workload::SlobOperation;

/// A target that can be planned on.
pub(super) enum Site<'a> {
    /// Data of the embedded engine.
    Embedded { path: &'a Path, data: Descriptor },
    /// Nothing real.
    Simulated { pairs: &'a [(String, String)] },
    /// A database server.
    Server(Box<ServerSite<'a>>),
}

impl<'a> Site<'a> {
    /// Looks at what is there.
    pub(super) fn reach(arguments: &'a LoadArgs, stop: &AtomicBool) -> Result<Self, Failure> {
        arguments.check()?;
        let LoadArgs { server, sending, .. } = arguments;
        let address = arguments.target.address();
        if let Some(site) = ServerSite::reach(address, server, sending, arguments.is_open_loop(), stop)? {
            return Ok(Self::Server(Box::new(site)));
        }
        match address {
            TargetAddress::Directory(path) => Ok(Self::Embedded { path, data: Descriptor::load(path)? }),
            TargetAddress::Simulated(pairs) => Ok(Self::Simulated { pairs }),
            TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_) => unreachable!("a server was reached above"),
        }
    }

    /// What a plan needs to know.
    pub(super) fn facts(&self, request: &Request) -> Result<Facts, Failure> {
        match self {
            Self::Embedded { data, .. } => Ok(Facts::of(data, available_memory())),
            Self::Simulated { .. } => Ok(Facts::as_asked(request)?),
            Self::Server(site) => Ok(site.facts()?),
        }
    }

    /// Refuses a plan that there is no room for, and says what of it there may be too little for.
    pub(super) fn check(&self, plan: &RunPlan) -> Result<Vec<String>, Failure> {
        match self {
            Self::Embedded { .. } | Self::Simulated { .. } => Ok(Vec::new()),
            Self::Server(site) => site.check(plan),
        }
    }

    /// Who times operations there.
    pub(super) fn timed_by(&self) -> TimedBy {
        match self {
            Self::Embedded { .. } => TimedBy::Engine,
            Self::Simulated { .. } => TimedBy::Simulated,
            Self::Server(site) => site.timed_by(),
        }
    }

    /// Leaves it as it was found.
    pub(super) fn leave(self) -> Result<(), TargetError> {
        match self {
            Self::Embedded { .. } | Self::Simulated { .. } => Ok(()),
            Self::Server(site) => site.leave(),
        }
    }

    /// Opens the target, and the clock on which load will run.
    pub(super) fn open(
        self,
        arguments: &LoadArgs,
        plan: &RunPlan,
        progress: &RunProgress,
        stop: &AtomicBool,
    ) -> Result<(Ground<'a>, Clock), Failure> {
        match self {
            Self::Server(site) => {
                let set_up = site.facts()?.schemas;
                let schemas = plan.steps.iter().filter_map(|step| step.load.schemas).max().unwrap_or(set_up);
                let ground = site.open(plan.max_sessions(), schemas, stop).inspect_err(|_| progress.end())?;
                Ok((Ground::Server(Box::new(ground)), Clock::start()))
            }
            Self::Simulated { pairs } => {
                let options = SimulatedOptions::from_pairs(pairs)?;
                let clock = options.clock();
                Ok((Ground::Simulated(Simulated::open(options, clock)), clock))
            }
            Self::Embedded { path, .. } => {
                let options = EngineOptions {
                    cache: plan.cache,
                    writers: None,
                    max_sessions: plan.max_sessions(),
                    io_engine: arguments.io.engine(),
                };
                let clock = Clock::start();
                let opened = Engine::open(path, &options, clock, &|redo_bytes| progress.recovering(redo_bytes));
                let engine = opened.inspect_err(|_| progress.end())?;
                Ok((Ground::Embedded { engine: Box::new(engine), path }, clock))
            }
        }
    }
}

/// The open target.
pub(super) enum Ground<'a> {
    /// The embedded engine on its directory.
    Embedded { engine: Box<Engine>, path: &'a Path },
    /// Nothing real.
    Simulated(Simulated),
    /// A database server.
    Server(Box<ServerGround<'a>>),
}

impl Ground<'_> {
    /// What load is put on.
    pub(super) fn target(&self) -> &dyn TargetFor<SlobOperation> {
        match self {
            Self::Embedded { engine, .. } => engine.as_ref(),
            Self::Simulated(simulated) => simulated,
            Self::Server(ground) => ground.target(),
        }
    }

    /// Files and directories whose devices are watched.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Embedded { path, .. } => vec![(*path).to_owned()],
            Self::Simulated(_) => Vec::new(),
            Self::Server(ground) => ground.paths(),
        }
    }

    /// What the user should know now that the load has ended.
    pub(super) fn notes_of_the_load(&self) -> Vec<String> {
        match self {
            Self::Embedded { .. } | Self::Simulated(_) => Vec::new(),
            Self::Server(ground) => ground.notes_of_the_load(),
        }
    }

    /// Closes the target, so that nothing has to be recovered.
    pub(super) fn close(self) -> Result<(), TargetError> {
        match self {
            Self::Embedded { engine, .. } => engine.close(),
            Self::Simulated(_) => Ok(()),
            Self::Server(ground) => ground.close(),
        }
    }
}

/// Memory that can be taken without driving somebody out of it.
pub(super) fn available_memory() -> Option<Bytes> {
    let Environment { memory_available_bytes, memory_limit_bytes, .. } = environment::capture(None);
    memory_available_bytes.into_iter().chain(memory_limit_bytes).min().map(Bytes)
}
