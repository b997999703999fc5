//! One seed and one shape ask every target for the same operations, and each counts the same of them.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

#[cfg(feature = "oracle")]
#[path = "oracle/model/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test program uses a part of it")]
mod model;
#[cfg(feature = "oracle")]
#[path = "oracle/responder/mod.rs"]
#[allow(unused_imports, reason = "each test program uses a part of it")]
mod responder;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use plimsoll::config::TargetAddress;
use plimsoll::databases;
use plimsoll::load::{Pace, Share, StepPlan, Stop, Surroundings, run_step};
use plimsoll::measure::{Counter, LaneRecorder};
use plimsoll::record;
use plimsoll::targets::block::safety::Permission;
use plimsoll::targets::database::{
    DatabaseOptions, Filling, Method, OpenDatabase, OpenRequest, PlannedLoad, Replace, Sending, SetupRequest,
};
use plimsoll::targets::{
    Background, BatchLane, Finished, FinishedBatch, Lane, SessionRange, Target, TargetError, TargetFor,
};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::{HotSpot, OperationKind, RedoStress, SlobOperation, SlobShape};
use sql::mysql::test_server as mysql;
use sql::postgres::test_server as postgres;

const SCHEMAS: u32 = 2;
const SCALE_BLOCKS: u64 = 600;
const SESSIONS: u32 = 4;
/// Operations of each session.
const WORK_LOOP: u64 = 60;

/// Operations of each session, in their order.
type Lists = BTreeMap<u32, Vec<SlobOperation>>;

/// A target that writes down what it is asked for.
struct Recording<'t> {
    target: &'t dyn TargetFor<SlobOperation>,
    lists: Mutex<Lists>,
}

impl Recording<'_> {
    fn note(&self, session: u32, operations: &[SlobOperation]) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.entry(session).or_default().extend_from_slice(operations);
    }
}

impl Target for Recording<'_> {
    fn describe(&self) -> record::Target {
        self.target.describe()
    }

    fn notes(&self) -> Vec<String> {
        self.target.notes()
    }

    fn layer(&self) -> &'static str {
        self.target.layer()
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.target.known_counters()
    }

    fn take_background(&self) -> Background {
        self.target.take_background()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.target.check_health()
    }
}

impl TargetFor<SlobOperation> for Recording<'_> {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        let lane = self.target.open_lane(range)?;
        Ok(Box::new(RecordingLane { lane, recording: self, first_session: range.first_session }))
    }

    fn open_batch_lane(
        &self,
        range: SessionRange,
    ) -> Result<Option<Box<dyn BatchLane<SlobOperation> + '_>>, TargetError> {
        let Some(lane) = self.target.open_batch_lane(range)? else { return Ok(None) };
        Ok(Some(Box::new(RecordingLane { lane, recording: self, first_session: range.first_session })))
    }
}

struct RecordingLane<'t, L> {
    lane: L,
    recording: &'t Recording<'t>,
    first_session: u32,
}

impl Lane<SlobOperation> for RecordingLane<'_, Box<dyn Lane<SlobOperation> + '_>> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.recording.note(self.first_session + session, &[*operation]);
        self.lane.start(session, operation, sent_ns, recorder)
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        self.lane.poll(until_ns, recorder, finished)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.lane.abandon()
    }

    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<SlobOperation>) -> Result<(), TargetError> {
        self.lane.prepare(upcoming)
    }
}

impl BatchLane<SlobOperation> for RecordingLane<'_, Box<dyn BatchLane<SlobOperation> + '_>> {
    fn batch_ns(&self) -> u64 {
        self.lane.batch_ns()
    }

    fn max_operations(&self) -> usize {
        self.lane.max_operations()
    }

    fn send(&mut self, session: u32, operations: &[SlobOperation], sent_ns: u64) -> Result<(), TargetError> {
        self.recording.note(self.first_session + session, operations);
        self.lane.send(session, operations, sent_ns)
    }

    fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError> {
        self.lane.poll(until_ns, finished)
    }

    fn break_off(&mut self) {
        self.lane.break_off();
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.lane.abandon()
    }

    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<SlobOperation>) -> Result<(), TargetError> {
        self.lane.prepare(upcoming)
    }
}

/// The simulation answers within simulated time; the others are real and take what they take.
fn plan(sessions: u32) -> StepPlan<SlobShape> {
    StepPlan {
        index: 0,
        label: "same".to_owned(),
        load: record::Intensity { sessions: Some(sessions), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: SlobShape {
            schemas: SCHEMAS,
            threads_per_schema: sessions.div_ceil(SCHEMAS),
            scale_blocks: SCALE_BLOCKS,
            work_unit: 8,
            update_pct: 40,
            update_share: None,
            scan_pct: 0,
            redo_stress: RedoStress::Heavy,
            hot_spot: Some(HotSpot { offset_blocks: 50, blocks: 40, frequency: 3 }),
            hot_schema_frequency: 5,
            think: None,
        },
        seed: 7,
        work_loop: Some(WORK_LOOP),
        warmup: Nanos(0),
        duration: Nanos::seconds(300),
        pace: Pace::Closed,
        lanes: sessions.min(2),
        share: Share::WHOLE,
    }
}

/// What a target counted of each kind of operation: how many, and the blocks that they touched; and all blocks changed,
/// which the simulation does not count.
type Counted = (BTreeMap<String, (u64, u64)>, Option<u64>);

/// What the sessions of a step of `plan` requested, and the step. Its window closes with the first session that has done its loop: on a
/// busy machine a thread may not have begun by then, and then the step is repeated.
fn recorded(address: &str, opened: &dyn OpenDatabase, plan: &StepPlan<SlobShape>) -> (Lists, record::Step) {
    const ATTEMPTS: u32 = 10;
    let attempt = || {
        let recording = Recording { target: opened.target(), lists: Mutex::default() };
        let outcome = run_step(&recording, plan, Surroundings::new(opened.clock(), &Stop::new()), &mut |_| {});
        assert!(outcome.failure.is_none(), "{address}: {:?}", outcome.failure);
        (recording.lists.into_inner().unwrap(), outcome.step)
    };
    let sessions = plan.share.of(plan.load.sessions.unwrap()).len();
    let mut steps = (0..ATTEMPTS).map(|_| attempt());
    steps.find(|(lists, _)| lists.len() == sessions).expect("a session did not begin in any step")
}

/// What the sessions of a part ask of data that are made for it.
fn parts_on(address: &str, share: Share) -> Lists {
    let opened = open(address, None);
    let (lists, _) = recorded(address, &*opened, &plan(SESSIONS).of_part(share));
    opened.close().unwrap();
    lists
}

/// Data are made, unless it is a simulation, and opened.
fn open(address: &str, sending: Option<Sending>) -> Box<dyn OpenDatabase> {
    let options = DatabaseOptions {
        ledger: None,
        io_engine: None,
        cache: Bytes::mib(4),
        flash: None,
        redo_file: Bytes::mib(8),
        redo_files: 3,
        data_dest: None,
        redo_dest: None,
        permission: Permission::default(),
        scrub: false,
        schema: "plimsoll".to_owned(),
        db_cache: Bytes::mib(16),
        host_memory: None,
        page_protection: true,
        keep_running: false,
        programs: None,
        sending,
        method: Method::default(),
        is_open_loop: false,
        per_node: false,
        trace: false,
        own_report: None,
        dry_run: false,
        say: |_| {},
    };
    let address: TargetAddress = address.parse().unwrap();
    let stop = AtomicBool::new(false);
    if !matches!(address, TargetAddress::Simulated(_)) {
        let mut database = databases::slob(&address, &options).unwrap();
        let block_bytes = database.block_bytes(None, 2, &stop).unwrap() as u32;
        let request = SetupRequest {
            schemas: SCHEMAS,
            scale_blocks: SCALE_BLOCKS,
            scan_blocks: 0,
            block_bytes,
            filling: Filling::Incompressible,
            streams: 2,
            seed: 11,
            is_seed_asked: true,
            replace: Replace::Refuse,
        };
        database.plan_setup(&request, &stop).unwrap().run(&|_, _| {}, &stop).unwrap();
        database.close().unwrap();
    }
    let load = PlannedLoad { sessions: SESSIONS, schemas: Some(SCHEMAS), has_updates: true };
    databases::slob(&address, &options).unwrap().open(&OpenRequest { load, recovering: &|_| {}, stop: &stop }).unwrap()
}

fn load(address: &str, sending: Option<Sending>) -> [(Lists, Counted); 2] {
    let opened = open(address, sending);
    let run = |sessions| {
        let (lists, step) = recorded(address, &*opened, &plan(sessions));
        assert_eq!(step.counters.errors.unwrap_or(0), 0, "{address}: {:?}", opened.notes_of_the_load());
        let kinds = step.operations.iter().map(|kind| (kind.kind.clone(), (kind.count, kind.block_touches)));
        (lists, (kinds.collect(), step.counters.block_changes))
    };
    // The window closes with the first session that has done its loop: one alone does it to its end.
    let loads = [run(1), run(SESSIONS)];
    opened.close().unwrap();
    loads
}

/// Parts of one step on engines of their own, as hosts have them.
#[test]
fn parts_on_engines_of_their_own_ask_for_what_one_process_does() {
    let place = tempfile::tempdir().unwrap();
    let whole = Share::WHOLE;
    let engine = |name: &str, share| parts_on(&format!("dir:{}", place.path().join(name).display()), share);
    let one = engine("whole", whole);
    assert!(one.keys().copied().eq(0..SESSIONS));
    let mut together = Lists::new();
    for part in 0..3 {
        let own = engine(&format!("part{part}"), Share { part, parts: 3 });
        assert!(own.keys().copied().eq(Share { part, parts: 3 }.of(SESSIONS)), "part {part} has {:?}", own.keys());
        together.extend(own);
    }
    assert_eq!(together.len(), one.len());
    for (session, list) in &one {
        let both = list.len().min(together[session].len());
        assert!(both > 0 && list[..both] == together[session][..both], "session {session}");
    }
    // The first session of each to be done closes the window: one session of each part did all of its loop.
    assert!(together.values().filter(|list| list.len() as u64 >= WORK_LOOP).count() >= 3);
}

#[test]
fn all_targets_are_asked_for_the_same_operations_and_count_the_same_of_them() {
    let place = tempfile::Builder::new().prefix("plimsoll-same-").tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |scheme: &str| format!("{scheme}:{}", place.path().join(scheme).display());
    let [(single, counted), (lists, _)] = load("sim:clock=simulated", None);
    assert_eq!((single[&0].len() as u64, lists.len() as u32), (WORK_LOOP, SESSIONS));
    // The operation that completes the loop ends the window, and belongs to it.
    let fits = |counts: &Counted| counts_of(&single[&0], counts.1.is_some()) == *counts;
    assert!(fits(&counted), "{counted:?}");
    let mut all = vec![(at("dir"), None)];
    let both = [Some(Sending::Statement), Some(Sending::Batch)];
    if postgres::is_installed() {
        all.extend(both.map(|sending| (at("pg"), sending)));
    }
    if mysql::is_installed() {
        all.extend(both.map(|sending| (at("my"), sending)));
    }
    #[cfg(feature = "oracle")]
    let oracle = small_oracle(place.path());
    #[cfg(feature = "oracle")]
    all.extend(both.map(|sending| (oracle.1.clone(), sending)));
    for (address, sending) in all {
        let [(their_single, their_counts), (theirs, _)] = load(&address, sending);
        assert_eq!(their_single, single, "{address}, {sending:?}");
        assert!(their_counts.1.is_some() && fits(&their_counts), "{address}, {sending:?}: {their_counts:?}");
        for (session, list) in &lists {
            let of_both = theirs[session].len().min(list.len());
            assert!(of_both > 0 && theirs[session][..of_both] == list[..of_both], "{address}, {sending:?}: {session}");
        }
    }
}

/// A small database that speaks Oracle's protocol, and its address.
#[cfg(feature = "oracle")]
fn small_oracle(place: &std::path::Path) -> (responder::Responder, String) {
    let file = place.join("password");
    fs::write(&file, "secret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let options = responder::Options { hashings: 1, keeps_calls: false, ..responder::Options::default() };
    let responder = responder::Responder::start(options, model::Model::default());
    let address = format!("oracle://slob@127.0.0.1:{}/orcl?password-file={}", responder.port(), file.display());
    (responder, address)
}

/// What a target must count of these operations.
fn counts_of(operations: &[SlobOperation], counts_changes: bool) -> Counted {
    let (mut kinds, mut changed) = (BTreeMap::<String, (u64, u64)>::new(), 0);
    for operation in operations {
        let is_update = operation.kind == OperationKind::Update;
        let (count, blocks) = kinds.entry(if is_update { "update" } else { "read" }.to_owned()).or_default();
        *count += 1;
        *blocks += u64::from(operation.keys);
        changed += if is_update { u64::from(operation.keys) } else { 0 };
    }
    (kinds, counts_changes.then_some(changed))
}
