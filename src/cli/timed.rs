//! What a planned run times, by the names under which its figures are kept.

use crate::plan::io::IoPlan;
use crate::plan::slob::RunPlan;
use load::StepPlan;
use measure::WaitEvent;
use model::record::ReplayLoad;
use model::workload::io::{IoBlend, IoClass, IoKind, IoOperation};
use model::workload::net::NetShape;
use model::workload::{Operation, OperationKind, SlobBlend};
use targets::database::Timing;

/// Kinds of operations, and wait events, that a run can have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Timed {
    /// Kinds of operations.
    pub(super) kinds: Vec<&'static str>,
    /// Wait events.
    pub(super) events: Vec<&'static str>,
}

impl Timed {
    /// Of requests to raw storage.
    pub(super) fn of_io(plan: &IoPlan) -> Self {
        let mut timed = Self::default();
        for class in plan.classes() {
            let IoClass { read_pct, block_bytes, .. } = class;
            if read_pct > 0 {
                timed.add(IoOperation::KINDS[IoKind::Read as usize], &[WaitEvent::of_read(block_bytes)]);
            }
            if read_pct < 100 {
                timed.add(IoOperation::KINDS[IoKind::Write as usize], &[WaitEvent::DirectPathWrite]);
            }
        }
        timed
    }

    /// Of kinds of request, each at its rate.
    pub(super) fn of_io_blends(shapes: &[IoBlend]) -> Self {
        let mut timed = Self::default();
        for part in shapes.iter().flat_map(|shape| &shape.parts) {
            let event =
                if part.kind.is_write() { WaitEvent::DirectPathWrite } else { WaitEvent::of_read(part.block_bytes) };
            timed.add(IoOperation::KINDS[part.kind as usize], &[event]);
        }
        timed
    }

    /// Of the requests of a trace.
    pub(super) fn of_replay(load: &ReplayLoad) -> Self {
        let mut timed = Self::default();
        for kind in &load.kinds {
            let known = IoOperation::KINDS.iter().find(|known| **known == kind.kind);
            let events: &[WaitEvent] = match kind.kind.as_str() {
                // Reads of a block and longer ones have names of their own.
                "read" => &[WaitEvent::DbFileSequentialRead, WaitEvent::DirectPathRead],
                "write" => &[WaitEvent::DirectPathWrite],
                _ => &[],
            };
            known.into_iter().for_each(|known| timed.add(known, events));
        }
        timed
    }

    /// Of loads on a network.
    pub(super) fn of_net(steps: &[StepPlan<NetShape>]) -> Self {
        let mut timed = Self::default();
        for class in steps.iter().flat_map(|step| &step.shape.classes) {
            let events: &[WaitEvent] = match (class.kind.is_bulk(), class.is_durable) {
                (true, _) => &[],
                (false, false) => &[WaitEvent::NetworkRoundTrip, WaitEvent::RemoteService],
                (false, true) => &[WaitEvent::NetworkRoundTrip, WaitEvent::RemoteService, WaitEvent::RfsWrite],
            };
            timed.add(class.kind.name(), events);
        }
        timed
    }

    /// Of the SLOB method.
    pub(super) fn of_slob(plan: &RunPlan, by: Timing, has_flash: bool) -> Self {
        let mut timed = Self::default();
        for shape in plan.steps.iter().map(|step| &step.shape) {
            for kind in OperationKind::ALL {
                let is_done = match kind {
                    OperationKind::Read => u16::from(shape.update_pct) + u16::from(shape.scan_pct) < 100,
                    OperationKind::Update => shape.update_pct > 0,
                    OperationKind::Scan => shape.scan_pct > 0,
                };
                if is_done {
                    timed.add(kind.name(), events(kind, by));
                    if has_flash && kind != OperationKind::Scan {
                        timed.add(kind.name(), OF_FLASH);
                    }
                }
            }
        }
        timed
    }

    /// Of kinds of work on a database, each at its rate.
    pub(super) fn of_blend(shape: &SlobBlend, by: Timing, has_flash: bool) -> Self {
        let mut timed = Self::default();
        for part in &shape.parts {
            timed.add(part.kind.name(), events(part.kind, by));
            if has_flash && part.kind != OperationKind::Scan {
                timed.add(part.kind.name(), OF_FLASH);
            }
        }
        timed
    }

    fn add(&mut self, kind: &'static str, events: &[WaitEvent]) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        for event in events.iter().map(|event| event.name()) {
            if !self.events.contains(&event) {
                self.events.push(event);
            }
        }
    }
}

/// What comes besides where the engine has a flash cache.
const OF_FLASH: &[WaitEvent] = &[WaitEvent::DbFlashCacheSingleBlockPhysicalRead, WaitEvent::DbFlashCacheWrite];

/// What sessions and writers can wait for on account of one kind of operation.
fn events(kind: OperationKind, by: Timing) -> &'static [WaitEvent] {
    const OF_READS: &[WaitEvent] =
        &[WaitEvent::DbFileSequentialRead, WaitEvent::ReadByOtherSession, WaitEvent::FreeBufferWaits];
    const OF_UPDATES: &[WaitEvent] = &[
        WaitEvent::DbFileSequentialRead,
        WaitEvent::LogFileSync,
        WaitEvent::LogFileParallelWrite,
        WaitEvent::DbFileParallelWrite,
        WaitEvent::ReadByOtherSession,
        WaitEvent::FreeBufferWaits,
        WaitEvent::BufferBusyWaits,
        WaitEvent::LogBufferSpace,
        WaitEvent::LogFileSwitchCheckpoint,
    ];
    match (by, kind) {
        (Timing::Engine, OperationKind::Read) => OF_READS,
        (Timing::Engine, OperationKind::Update) => OF_UPDATES,
        (Timing::Engine, OperationKind::Scan) => &[WaitEvent::DirectPathRead],
        (Timing::Simulated, _) => &[WaitEvent::DbFileSequentialRead],
        (Timing::ServerInBatches, OperationKind::Update) => &[WaitEvent::Commit],
        (Timing::ServerInBatches | Timing::Client, _) => &[],
    }
}
