//! Writing a data set.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::loader::{Loading, Part};
use super::{EnginePlan, EngineRequest, REDO_FILE_UNIT_BYTES, Written, find_existing, makes_data};
use crate::crew::{Crew, Progress};
use crate::embedded::changes::ChangeMap;
use crate::embedded::control::{Checkpoint, Control};
use crate::embedded::destination::{Files, Placed};
use crate::embedded::directory::Directory;
use crate::embedded::engine::choose_io;
use crate::embedded::ledger::Ledger;
use crate::error::{FileContext, TargetError};
use model::units::Bytes;

/// What stands in a descriptor before the unit is known.
const MIN_UNIT_BYTES: u32 = 512;

/// Does what was planned. `progress` is called at most ten times a second; setting `stop` ends the work soon.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. Then everything that was made is removed again; data
/// that were to be replaced are gone.
pub fn run(plan: EnginePlan, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Written, TargetError> {
    let began = Instant::now();
    let mut report = Written { bytes_written: 0, elapsed_ns: 0, created: false, notes: plan.notes.clone() };
    if plan.has_work() {
        let missing = missing_directories(&plan.directory);
        let made = claim_and_make(&plan, &mut report, progress, stop);
        if made.is_err() {
            for directory in missing {
                // One that is not empty is somebody else's by now, and stays.
                let _ = files::remove_directory(&directory);
            }
        }
        made?;
    }
    report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(report)
}

/// The directories on the way to `path` that are not there yet, the deepest first.
fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let on_the_way = path.ancestors().take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
    on_the_way.map(Path::to_owned).collect()
}

fn claim_and_make(
    plan: &EnginePlan,
    report: &mut Written,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    let directory = Directory::claim(&plan.directory)?;
    // The plan was made without the lock: what is there may be different by now, and be somebody's.
    if !makes_data(find_existing(&plan.directory, &plan.request)?, plan.request.data.replace) {
        return Ok(());
    }
    match make(&directory, plan, &mut report.notes, progress, stop) {
        Ok(bytes_written) => {
            report.bytes_written = bytes_written;
            report.created = true;
            Ok(())
        }
        Err(error) => {
            // That removing failed too matters less than why it was begun; the mark stays behind and says the rest.
            let _ = directory.vacate();
            Err(error)
        }
    }
}

fn make(
    directory: &Directory,
    plan: &EnginePlan,
    notes: &mut Vec<String>,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<u64, TargetError> {
    let (path, request) = (directory.path(), &plan.request);
    directory.clear()?;
    let database = random_identity()?;
    let layout = request.layout(database);
    let now = jiff::Timestamp::now();
    // To the second: fractions would only make the descriptor harder to read.
    let now = now.round(jiff::Unit::Second).unwrap_or(now).to_string();
    directory.begin_setup(Some(&request.descriptor(database, now.clone(), MIN_UNIT_BYTES)))?;

    let redo = (request.redo_files, request.redo_file_bytes);
    let placed = Files::of(path, &request.destinations, database, &layout, redo, &request.permission)?;
    let create = |files: &[Placed]| files.iter().map(Placed::create).collect::<Result<Vec<_>, _>>();
    let (data, redo) = (create(&placed.data)?, create(&placed.redo)?);
    placed.sync_names()?;
    notes.extend(choose_io(Some(plan.io_engine), &data).1);
    let (unit_bytes, redo_unit_bytes) = (data[0].direct_unit_bytes(), redo[0].direct_unit_bytes());
    check_unit(request, data[0].path(), unit_bytes)?;
    check_unit(request, redo[0].path(), redo_unit_bytes)?;

    let total_bytes = plan.data_bytes + request.redo_file_bytes * u64::from(request.redo_files);
    // A queue has files of one kind, and data and redo may lie apart.
    for (files, part, before) in [(&data, Part::Data, 0), (&redo, Part::Redo, plan.data_bytes)] {
        let progress = |now: Progress| progress(Progress { done_bytes: before + now.done_bytes, total_bytes });
        let threads = request.data.streams;
        let crew = Crew { files, io_engine: plan.io_engine, threads, stop, progress: &progress, total_bytes };
        crew.run(&Loading::new(&layout, request, files, part))?;
    }
    for file in data.iter().chain(&redo) {
        if stop.load(Ordering::Relaxed) {
            return Err(TargetError::Interrupted);
        }
        file.sync().of_file("sync", file.path())?;
    }

    let changes = ChangeMap::unchanged(layout.row_blocks());
    changes.save(path, 0)?;
    changes.save(path, 1)?;
    Control::create(path, &Checkpoint::of_new_data(database))?;
    let descriptor = request.descriptor(database, now, unit_bytes.max(redo_unit_bytes));
    Ledger::create(&descriptor.ledger(path))?;
    if stop.load(Ordering::Relaxed) {
        return Err(TargetError::Interrupted);
    }
    descriptor.save(path)?;
    directory.end_setup()?;
    Ok(total_bytes)
}

/// Refuses blocks and log files that the storage could not write past the page cache.
fn check_unit(request: &EngineRequest, path: &Path, unit_bytes: u32) -> Result<(), TargetError> {
    let unit = Bytes(unit_bytes.into());
    if request.data.block_bytes < unit_bytes {
        let (path, block) = (path.display(), Bytes(request.data.block_bytes.into()));
        return Err(TargetError::Shape(format!(
            "the storage of `{path}` is written in units of {unit}, so blocks of {block} are too small"
        )));
    }
    let fits =
        u64::from(unit_bytes) <= REDO_FILE_UNIT_BYTES || request.redo_file_bytes.is_multiple_of(u64::from(unit_bytes));
    if !fits {
        let path = path.display();
        return Err(TargetError::Shape(format!(
            "the storage of `{path}` is written in units of {unit}; make redo log files a multiple of that"
        )));
    }
    Ok(())
}

/// A number by which the blocks of one data set are distinguished from those of another; never 0.
fn random_identity() -> Result<u32, TargetError> {
    let path = Path::new("/dev/urandom");
    let mut random = File::open(path).of_file("open", path)?;
    let mut bytes = [0; 4];
    loop {
        random.read_exact(&mut bytes).of_file("read", path)?;
        let identity = u32::from_le_bytes(bytes);
        if identity != 0 {
            return Ok(identity);
        }
    }
}
