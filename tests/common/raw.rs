//! Files as volumes and loads on them, for the tests of raw storage.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::LIMIT;
use plimsoll::config::io::Durable;
use plimsoll::load::{Pace, Share, StepOutcome, StepPlan, Stop, Surroundings, run_step};
use plimsoll::measure::Clock;
use plimsoll::record::{self, TargetFacts};
use plimsoll::targets::TargetError;
use plimsoll::targets::block::safety::Permission;
use plimsoll::targets::block::{Block, BlockOptions, Checking, Preparation, PrepareOptions, VolumeLayout, base_at};
use plimsoll::targets::io::{Caching, Durability, IoEngine};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};
use test_support::skip::skip;

/// Requests of a load that was not asked for another number: enough for each check, and a second's work for a slow disk.
const REQUESTS: u64 = 800;

/// Length of a request.
pub const BLOCK: u32 = 8192;

/// Both engines, or the one that is allowed here.
pub fn engines() -> Vec<IoEngine> {
    match IoEngine::best_available() {
        (IoEngine::Uring, _) => vec![IoEngine::Uring, IoEngine::Psync],
        (IoEngine::Psync, refused) => {
            skip(format_args!("io_uring, which is refused here: {refused:?}"));
            vec![IoEngine::Psync]
        }
    }
}

/// Every layout, with the number of members that it is tried with. Stripes are so narrow that each request is cut.
pub fn layouts() -> [(VolumeLayout, usize); 4] {
    [
        (VolumeLayout::Single, 1),
        (VolumeLayout::Concat, 2),
        (VolumeLayout::Stripe { unit_bytes: 4096 }, 3),
        (VolumeLayout::Mirror { unit_bytes: 64 << 10 }, 2),
    ]
}

/// A volume of `mib` MiB over new files in `folder`, to be read and written.
pub fn wanted(folder: &Path, layout: VolumeLayout, members: usize, mib: u64) -> PrepareOptions {
    PrepareOptions {
        paths: (0..members).map(|number| folder.join(format!("member-{number}"))).collect(),
        elsewhere: Vec::new(),
        layout,
        size: Some(Bytes::mib(mib)),
        reads: true,
        permission: Some(Permission::default()),
        checked: false,
        prefill: false,
        caching: Caching::Direct,
        durability: Durability::OnSync,
        io_engine: IoEngine::best_available().0,
    }
}

/// The same with every read checked.
pub fn checked(folder: &Path, layout: VolumeLayout, members: usize, mib: u64) -> PrepareOptions {
    PrepareOptions { checked: true, ..wanted(folder, layout, members, mib) }
}

/// Lays out what is missing and opens the volume.
pub fn open(wanted: &PrepareOptions) -> Block {
    open_as(wanted, wanted.io_engine, Durable::None)
}

pub fn open_as(wanted: &PrepareOptions, io_engine: IoEngine, durable: Durable) -> Block {
    let preparation = Preparation::look(wanted.clone()).unwrap();
    let (volume, members) = preparation.run(&|_| (), &AtomicBool::new(false)).unwrap();
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let options = BlockOptions {
        io_engine,
        block_bytes: BLOCK,
        largest_bytes: BLOCK,
        region_bytes: volume.capacity_bytes(),
        writes: wanted.permission.is_some(),
        durable,
        checking: if wanted.checked { Checking::On { block_bytes: BLOCK } } else { Checking::Off },
        seed: 5,
        facts: TargetFacts::default(),
        generation_base: base_at(u64::try_from(since_1970.as_millis()).unwrap()),
    };
    Block::new(volume, members, options)
}

/// Eight random requests of one lane outstanding, until about [`REQUESTS`] are done.
pub fn step(block: &Block, read_pct: u8) -> StepPlan<IoShape> {
    let class = IoClass {
        size: RequestSize::Small,
        block_bytes: BLOCK,
        from_bytes: 0,
        region_bytes: block.options().region_bytes,
        access: Access::Random(Distribution::Uniform),
        read_pct,
        streams: 1,
        slots: 8,
    };
    StepPlan {
        index: 0,
        label: "test".to_owned(),
        load: record::Intensity { sessions: Some(8), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: IoShape::of(class),
        seed: 3,
        work_loop: Some(REQUESTS / 8),
        warmup: Nanos(0),
        duration: LIMIT,
        pace: Pace::Closed,
        lanes: 1,
        share: Share::WHOLE,
    }
}

/// The same plan with so many slots, shared by so many lanes that each has a stream of its own.
pub fn wide(mut plan: StepPlan<IoShape>, slots: u32, lanes: u32) -> StepPlan<IoShape> {
    plan.shape.classes[0].slots = slots;
    plan.shape.classes[0].streams = lanes;
    plan.load.sessions = Some(slots);
    plan.work_loop = Some(REQUESTS.div_ceil(u64::from(slots)));
    plan.lanes = lanes;
    plan
}

/// The same plan, from block to block.
pub fn sequential(mut plan: StepPlan<IoShape>) -> StepPlan<IoShape> {
    plan.shape.classes[0].access = Access::Sequential;
    plan
}

pub fn run(block: &Block, plan: &StepPlan<IoShape>) -> StepOutcome {
    run_on(block, plan, &[])
}

pub fn run_on(block: &Block, plan: &StepPlan<IoShape>, devices: &[String]) -> StepOutcome {
    run_step(block, plan, Surroundings { devices, ..Surroundings::new(Clock::start(), &Stop::new()) }, &mut |_| {})
}

pub fn read_back(block: &Block) -> Result<u64, TargetError> {
    block.read_back(&|_| (), &AtomicBool::new(false))
}

/// The bytes of a file from `offset` on, as they are on storage and in the page cache.
pub fn bytes_at(path: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(path).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

pub fn put(path: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
    file.sync_all().unwrap();
}
