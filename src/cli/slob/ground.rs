//! Where load lands: reached, so that a plan can be made, then opened, then closed.

use std::path::{Path, PathBuf};

use super::load::LoadArgs;
use crate::cli::arguments::no_server_yet;
use crate::cli::exit::Failure;
use crate::cli::live::RunProgress;
use crate::config::TargetAddress;
use crate::measure::{Clock, environment};
use crate::plan::slob::{Facts, Request, RunPlan};
use crate::record::Environment;
use crate::target::embedded::{Descriptor, Engine, EngineOptions};
use crate::target::simulated::{Simulated, SimulatedOptions};
use crate::target::{TargetError, TargetFor};
use crate::units::Bytes;
use crate::workload::SlobOperation;

/// A target that can be planned on.
pub(super) enum Site<'a> {
    /// Data of the embedded engine.
    Embedded { path: &'a Path, data: Descriptor },
    /// Nothing real.
    Simulated { pairs: &'a [(String, String)] },
}

impl<'a> Site<'a> {
    /// Looks at what is there.
    pub(super) fn reach(arguments: &'a LoadArgs) -> Result<Self, Failure> {
        match arguments.target.address() {
            TargetAddress::Directory(path) => Ok(Self::Embedded { path, data: Descriptor::load(path)? }),
            TargetAddress::Simulated(pairs) => Ok(Self::Simulated { pairs }),
            address => Err(no_server_yet(address)),
        }
    }

    /// What a plan needs to know.
    pub(super) fn facts(&self, request: &Request) -> Result<Facts, Failure> {
        match self {
            Self::Embedded { data, .. } => Ok(Facts::of(data, available_memory())),
            Self::Simulated { .. } => Ok(Facts::as_asked(request)?),
        }
    }

    /// Opens the target, and the clock on which load will run.
    pub(super) fn open(
        self,
        arguments: &LoadArgs,
        plan: &RunPlan,
        progress: &RunProgress,
    ) -> Result<(Ground<'a>, Clock), Failure> {
        match self {
            Self::Simulated { pairs } => {
                let options = SimulatedOptions::from_pairs(pairs)?;
                let clock = options.clock();
                Ok((Ground::Simulated(Simulated::open(options, clock)), clock))
            }
            Self::Embedded { path, .. } => {
                let options = EngineOptions {
                    cache: plan.cache,
                    writers: None,
                    most_sessions: plan.most_sessions(),
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
}

impl Ground<'_> {
    /// What load is put on.
    pub(super) fn target(&self) -> &dyn TargetFor<SlobOperation> {
        match self {
            Self::Embedded { engine, .. } => engine.as_ref(),
            Self::Simulated(simulated) => simulated,
        }
    }

    /// Files and directories whose devices are watched.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Embedded { path, .. } => vec![(*path).to_owned()],
            Self::Simulated(_) => Vec::new(),
        }
    }

    /// Closes the target, so that nothing has to be recovered.
    pub(super) fn close(self) -> Result<(), TargetError> {
        match self {
            Self::Embedded { engine, .. } => engine.close(),
            Self::Simulated(_) => Ok(()),
        }
    }
}

/// Memory that can be taken without driving somebody out of it.
fn available_memory() -> Option<Bytes> {
    let Environment { memory_available_bytes, memory_limit_bytes, .. } = environment::capture(None);
    memory_available_bytes.into_iter().chain(memory_limit_bytes).min().map(Bytes)
}
