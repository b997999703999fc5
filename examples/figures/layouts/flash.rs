//! What a flash cache adds where a device allows 5,000 reads a second.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::record::Step;

use super::{cpu_us, extra_us, reads_per_s};
use crate::group::{Counted, Group};
use crate::{Bench, Failure, Goal, figure, in_turn, ratios, run_of, text};

/// What the device below the data allows, in each second.
const READS_PER_S: u32 = 5_000;
/// Until the flash cache holds what it can.
const WARMUP: &str = "45s";

/// A device whose blocks are in memory, in the place of flash. Taken off when it is dropped.
struct LoopDevice {
    device: String,
    file: PathBuf,
}

impl LoopDevice {
    fn new(file: &Path) -> Result<Self, Failure> {
        std::fs::File::create(file)?.set_len(600 << 20)?;
        let device = text(Command::new("losetup").args(["--find", "--show"]).arg(file))?.trim().to_owned();
        Ok(Self { device, file: file.to_owned() })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Bench {
    /// 1 GiB of data behind 64 MiB of buffer cache, in turns with half of it on flash and without.
    pub(crate) fn flash_reads(&self) -> Result<(), Failure> {
        let folder = self.data.with_extension("flash");
        let target = format!("dir:{}", folder.display());
        self.plimsoll_text(&["slob", "setup", "-s", "1", "SCALE=1G", "--quiet", "--target", &target])?;
        let limited = Group::new(&folder).and_then(|group| {
            let memory = Path::new("/dev/shm").join(format!("plimsoll-flash-{}", std::process::id()));
            Ok((group, LoopDevice::new(&memory).map_err(|error| error.to_string())?))
        });
        let (group, device) = match limited {
            Ok(both) => both,
            Err(why) => {
                figure(&format!("| flash cache: not measured, {why} | - | - | - | - | |"));
                return Ok(());
            }
        };
        group.limit(Counted::Requests, READS_PER_S);
        let flash = format!("{}:512M", device.device);
        let name = device.device.trim_start_matches("/dev/");
        let with = ["--flash-cache", &flash, "--flash-cache-destroy", name];
        let load = |more: &[&str]| {
            let step = self.limited_step(&group, &target, more)?;
            Ok((reads_per_s(&step)?, cpu_us(&step)?))
        };
        let rounds = (0..self.rounds).map(|round| in_turn(round, || load(&with), || load(&[])));
        let rounds: Vec<((f64, f64), (f64, f64))> = rounds.collect::<Result<_, Failure>>()?;
        let rates: Vec<(f64, f64)> = rounds.iter().map(|(with, without)| (with.0, without.0)).collect();
        let costs: Vec<(f64, f64)> = rounds.iter().map(|(with, without)| (with.1, without.1)).collect();
        let what = "blocks/s from flash or disk, the disk held to 5,000/s: half of the data on flash against none";
        ratios(what, &rates, 0, Goal::AtLeast(1.9));
        extra_us("processor time for each of these blocks, us", &costs, 1.0);
        drop(group);
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }

    /// One step of reads in the group that is held back.
    fn limited_step(&self, group: &Group, target: &str, more: &[&str]) -> Result<Step, Failure> {
        let run_time = format!("RUN_TIME={}", self.seconds);
        let mut command = group.command(&self.program);
        command.args(["slob", "run", "-s", "1", "-t", "32", "WORK_UNIT=64", "UPDATE_PCT=0", &run_time]);
        command.args(["--warmup", WARMUP, "--cache", "64M", "--json", "--quiet", "--target", target]);
        command.arg("--runs").arg(&self.runs).args(more);
        let run: plimsoll::record::Run = serde_json::from_value(run_of(&text(&mut command)?)?)?;
        run.steps.into_iter().next().ok_or_else(|| "a run without a step".into())
    }
}
