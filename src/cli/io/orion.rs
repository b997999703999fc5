//! `plimsoll io orion`.

use crate::cli::arguments::{KeepingArgs, Seconds, SeedArg};
use crate::cli::dry_run::DryRun;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{HandlingArgs, PathArgs, Storage};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::exit::{Exit, Failure};
use crate::cli::help::hanging;
use crate::cli::live::{Steps, Verbosity};
use crate::cli::recording::{NextStep, Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::say;
use crate::plan::orion::{Lun, OrionPlan, OrionRequest, plan};
use analysis::{Figures, rate};
use model::config::io::{
    BlockSize, Connections, DepthList, Durable, IoOptions, PageCache, Pattern, Redundancy, Verify, Volumes,
};
use model::config::orion::{
    ArrayLayout, OrionCommand, OrionOptions, OrionVerbosity, help_text, lun_file, parse, read_luns,
};
use model::record::{Metric, Step};
use model::units::{Bytes, group_thousands};
use report::orion as files;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io orion -run simple -testname san -num_disks 4
  plimsoll io orion -run advanced -testname san -type seq \\
    -matrix detailed -cache_size 0
  plimsoll io orion --destroy sdb --destroy sdc -run advanced \\
    -testname san -write 20 -simulate raid0 -stripe 1024
  plimsoll io orion --path /u01/test.dat --size 16G -run oltp -testname vm1
  plimsoll io orion --group 'data=normal:/dev/sdb|/dev/sdc' \\
    -run oltp -testname asm
  plimsoll io orion --path sim:service=5ms,servers=4,clock=simulated \\
    -run normal -testname try

TESTNAME.lun lists the devices, one a line. `plimsoll io orion -help` lists ORION's options; Plimsoll's own stand before \
the first of them.";

/// Arguments of `plimsoll io orion`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Storage in place of what TESTNAME.lun lists.
    #[command(flatten)]
    paths: PathArgs,

    /// Space to use, and size of missing files to create [default: all of it]
    #[arg(long, value_name = "SIZE", help_heading = "Storage")]
    size: Option<Bytes>,

    #[command(flatten)]
    handling: HandlingArgs,

    /// Load before each measured window, recorded and marked
    #[arg(long, value_name = "TIME", default_value = "2", help_heading = "Load")]
    warmup: Seconds,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    keeping: KeepingArgs,

    /// ORION's own options, as ORION takes them (`-help` lists them)
    #[arg(value_name = "ORION'S OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = match parse(&arguments.words)? {
        OrionCommand::Help => {
            let mut out = say::output();
            writeln!(out, "{}", hanging(&help_text()))?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        OrionCommand::Run(options) => options,
    };
    let (storage, list_notes) = storage(arguments, &options)?;
    let directory = directory_of(&options.testname)?;
    let notes: Vec<String> = options.notes.iter().cloned().chain(list_notes).collect();
    notes.iter().for_each(say::note);
    let asked = asked(&options, &storage, arguments.size)?;
    let prospect = Prospect::look(&storage, &arguments.handling, &asked)?;
    let luns = prospect.members().into_iter().map(|(path, bytes)| Lun { path, bytes }).collect();
    let request = OrionRequest {
        options,
        luns,
        warmup: arguments.warmup.0,
        seed: arguments.seed.or_fresh(),
        tags: arguments.keeping.tags.clone(),
    };
    let plan = plan(&request, &prospect.facts(&asked)?)?;
    let walk =
        Walk { keeping: &arguments.keeping, plan, request, asked, prospect, directory: directory.clone(), notes };
    runner::run_with(walk, None, |recorded, outline, interrupt| {
        // Whatever ended the walk, the points that ran are in the files.
        let written = files::write(recorded.run(), &directory);
        let exit = recorded.report(outline, interrupt)?;
        if let [summary, others @ ..] = written?.as_slice() {
            say::line(format_args!("In ORION's layout: `{}` and {} files beside it", summary.display(), others.len()));
        }
        Ok(exit)
    })
}

/// ORION's points, planned and checked.
struct Walk<'a> {
    keeping: &'a KeepingArgs,
    plan: OrionPlan,
    request: OrionRequest,
    asked: IoOptions,
    prospect: Prospect,
    /// Where ORION's files go.
    directory: PathBuf,
    notes: Vec<String>,
}

impl<'a> Work<'a> for Walk<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { plan, keeping, prospect, .. } = self;
        let steps = Steps::Known(plan.walk.points.len(), plan.time_of_points());
        let is_simulated = prospect.clock().is_simulated();
        Outline { time: None, is_simulated, ..Outline::new(&plan.head, keeping, steps) }
    }

    fn described(self) -> Result<DryRun, Failure> {
        Ok(described(&self.plan, &self.request, &self.prospect))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { keeping, plan, request, asked, prospect, directory, notes } = self;
        let verbosity = keeping.progress.verbosity();
        if verbosity == Verbosity::Normal {
            start_lines(&plan, &request.options).iter().for_each(say::line);
        }
        let (clock, largest_bytes) = (prospect.clock(), plan.largest_bytes_of_all());
        let intended = Intended { region_bytes: plan.region_bytes, largest_bytes, seed: plan.head.seed };
        let mut opened = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        let paths: Vec<PathBuf> =
            request.luns.iter().map(|lun| lun.path.clone()).filter(|path| path.exists()).collect();
        let mut landing = opened.landing(clock, request.options.size_small, plan.region_bytes, &paths);
        landing.target.facts.files.luns = request.luns.iter().map(Lun::facts).collect();
        landing.said = notes;
        let mut recording = beginning.record(landing)?;
        if let Err(error) = files::check_free(recording.run(), &directory) {
            recording.forget();
            return Err(error.into());
        }
        walk(&mut recording, &plan, &mut opened, request.options.verbosity);
        drop(opened);
        Ok(recording.end(plan.walk.points.len()))
    }
}

/// The devices: those that stand on the command line, else those of the list.
fn storage(arguments: &Arguments, options: &OrionOptions) -> Result<(Storage, Vec<String>), Failure> {
    if let Some(storage) = arguments.paths.storage()? {
        return Ok((storage, Vec::new()));
    }
    let list = read_luns(&options.testname)?;
    Ok((Storage::Paths(list.luns), list.notes))
}

/// Where ORION's files go: where its list lies.
fn directory_of(testname: &str) -> Result<PathBuf, Failure> {
    let list = lun_file(testname);
    let parent = list.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if parent.is_dir() {
        return Ok(parent.to_owned());
    }
    let failure = Failure::new(format_args!("there is no directory `{}` for the files of this test", parent.display()));
    Err(failure.with_hint("`-testname` may begin with a directory, which must be there".to_owned()))
}

/// ORION's volume in the words of a load on raw storage.
fn asked(options: &OrionOptions, storage: &Storage, size: Option<Bytes>) -> Result<IoOptions, Failure> {
    let block = |bytes: Bytes| {
        BlockSize::new(bytes).ok_or_else(|| Failure::new(format_args!("requests of {bytes} cannot be sent")))
    };
    block(options.size_large)?;
    let paths = storage.paths().to_vec();
    let (pattern, read_pct) = match options.write_pct {
        0 => (Pattern::RandRead, None),
        100 => (Pattern::RandWrite, None),
        writes => (Pattern::RandRw, Some(100 - writes)),
    };
    let stripe = match options.layout {
        ArrayLayout::Raid0 { stripe } if paths.len() > 1 => Some(stripe),
        ArrayLayout::Raid0 { .. } | ArrayLayout::Concat => None,
    };
    Ok(IoOptions {
        paths,
        pattern,
        block: block(options.size_small)?,
        read_pct,
        distribution: None,
        depths: DepthList(vec![1]),
        jobs: 1,
        rates: None,
        arrival: None,
        volumes: Volumes::One,
        connections: Connections::Addressed,
        size,
        durable: Durable::None,
        page_cache: PageCache::Bypassed,
        stripe,
        redundancy: Redundancy::None,
        verify: Verify::Nothing,
    })
}

/// What ORION's users look for before they get themselves a coffee.
fn start_lines(plan: &OrionPlan, options: &OrionOptions) -> Vec<String> {
    let estimate = plan.walk.estimate(options);
    let (points, minutes) = (plan.walk.data_points, estimate.orion_minutes);
    let many = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (points, minutes) = (many(u64::from(points), "data point"), many(minutes, "minute"));
    let mut lines = vec![format!("{points} of {}: about {minutes}", options.duration)];
    if estimate.warming_bytes > Bytes(0) {
        lines.push(format!(
            "and as long as {} of requests take that are not measured (`-cache_size`)",
            estimate.warming_bytes
        ));
    }
    lines
}

/// Every point in turn, each after its warming.
fn walk(recording: &mut Recording, plan: &OrionPlan, opened: &mut OpenStorage, verbosity: OrionVerbosity) {
    for (index, point) in (0..).zip(&plan.walk.points) {
        opened.expect_largest(plan.largest_bytes(point));
        let warmed = plan.warming(index, point).map(|warming| recording.unmeasured(opened.target(), &warming));
        if warmed == Some(NextStep::Stop) {
            return;
        }
        let next_step = recording.step(opened.target(), &plan.step(index, point));
        if let (OrionVerbosity::EachPoint, Some(step)) = (verbosity, recording.steps().last()) {
            recording.progress().line(&point_line(step));
        }
        if next_step == NextStep::Stop {
            return;
        }
    }
}

/// A point's result, for `-verbose`.
fn point_line(step: &Step) -> String {
    let of = |size: &str, what: &str| {
        let kinds =
            step.operations.iter().filter(|operations| operations.kind.starts_with("large") == (size == "large"));
        let per_s = rate(Some(kinds.map(|operations| operations.count).sum()), step.window.duration_ns);
        per_s.filter(|per_s| *per_s > 0.0).map(|per_s| format!("{} {what}/s", group_thousands(per_s)))
    };
    let figures = Figures(step);
    let megabytes =
        figures.value(Metric::ReadMegabytes).unwrap_or(0.0) + figures.value(Metric::WriteMegabytes).unwrap_or(0.0);
    let parts = [of("small", "small requests"), of("large", "large requests")];
    let rates: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}: {}, {} MB/s in all", step.label, rates.join(", "), group_thousands(megabytes))
}

fn described(plan: &OrionPlan, request: &OrionRequest, prospect: &Prospect) -> DryRun {
    let luns = request.luns.iter().map(|lun| format!("{} {}", lun.path.display(), lun.bytes));
    let described = prospect
        .describe_fills(DryRun::named(&plan.head.name).facts("path", luns))
        .fact("seed", plan.head.seed)
        .settings(&plan.head.tags, &plan.head.parameters)
        .gap();
    let mut described = start_lines(plan, &request.options).iter().fold(described, DryRun::line);
    for (index, point) in (0..).zip(&plan.walk.points) {
        let step = plan.step(index, point);
        if let Some(warming) = plan.warming(index, point) {
            let how = match warming.work_loop {
                None => warming.duration.to_string(),
                Some(each) => format!("{each} requests of each of {} places", warming.load.slots()),
            };
            described = described.line(format_args!("         warming, not measured: {how}"));
        }
        described = described.step(&step.label, "", step.warmup, step.duration);
    }
    described
}
