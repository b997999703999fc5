//! A simulation as a database: nothing is there, and nothing can be made.

use std::sync::atomic::AtomicBool;

use super::{Simulated, SimulatedOptions};
use crate::database::{
    DataFacts, Database, DropPlan, DropScope, OpenDatabase, OpenRequest, Progress, SetupPlan, SetupRequest, Sheet,
    There, Timing, Verified,
};
use crate::{TargetError, TargetFor};
use ::model::workload::SlobOperation;
use measure::Clock;
use model::units::Bytes;

/// A simulated database with what is planted in it.
pub struct SimulatedDatabase {
    options: SimulatedOptions,
    address: String,
}

impl SimulatedDatabase {
    /// # Errors
    /// When a pair is no option of a simulation.
    pub fn new(pairs: &[(String, String)], address: String) -> Result<Self, TargetError> {
        Ok(Self { options: SimulatedOptions::from_pairs(pairs)?, address })
    }

    fn holds_nothing<T>(&self) -> Result<T, TargetError> {
        Err(TargetError::NoData { address: self.address.clone() })
    }
}

impl Database for SimulatedDatabase {
    fn there(&mut self, _stop: &AtomicBool) -> Result<There, TargetError> {
        Ok(There::Data)
    }

    fn facts(&mut self, _stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError> {
        Ok(None)
    }

    fn timing(&self) -> Result<Timing, TargetError> {
        Ok(Timing::Simulated)
    }

    fn block_bytes(&mut self, _asked: Option<Bytes>, _streams: u32, _stop: &AtomicBool) -> Result<u64, TargetError> {
        self.holds_nothing()
    }

    fn plan_setup(
        &mut self,
        _request: &SetupRequest,
        _stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        self.holds_nothing()
    }

    fn verify(&mut self, _progress: &(dyn Fn(Progress) + Sync), _stop: &AtomicBool) -> Result<Verified, TargetError> {
        self.holds_nothing()
    }

    fn info(&mut self, _stop: &AtomicBool) -> Result<Sheet, TargetError> {
        self.holds_nothing()
    }

    fn plan_drop(&mut self, _scope: DropScope, _stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        self.holds_nothing()
    }

    fn open(self: Box<Self>, _request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError> {
        let clock = self.options.clock();
        Ok(Box::new(OpenSimulation { simulated: Simulated::open(self.options, clock), clock }))
    }
}

struct OpenSimulation {
    simulated: Simulated,
    clock: Clock,
}

impl OpenDatabase for OpenSimulation {
    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.simulated
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}
