//! What a flash cache did for a load: where its blocks came from, what that saved, and what held it back.

use super::{Finding, Message, SINGLE_BLOCK_READ, measured, wait};
use crate::Rule;
use crate::Severity;
use model::record::{Interval, Run, Step};
use model::units::{Nanos, percent};

/// One block read from the flash cache.
pub const FLASH_READ: &str = "db flash cache single block physical read";
/// A writer that leaves out fewer of the blocks than this keeps up.
const LEFT_OUT: f64 = 0.05;
/// More reads than this that flash did not answer as it should are none of slots that happened to be written anew.
const FELL_BACK: f64 = 0.02;
/// Flash that takes more than this share of a data file's time is hardly worth its map.
const NO_FASTER: f64 = 0.8;
/// The share of flash is steady when seconds lie within so much of what it comes to.
const STEADY: f64 = 0.03;
/// Rise from one quarter of the window to the next above which the flash was still being filled.
const RISING: f64 = 0.02;
/// Seconds below which nothing is said about warming up.
const FEWEST_SECONDS: usize = 8;

/// What a flash cache did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlashCache {
    /// The step, the one with the most sessions.
    pub step: String,
    /// Share of logical reads that the buffer cache, the flash cache and the data files answered, 0 to 1.
    pub from: [f64; 3],
    /// Mean of a read from flash, where there was one.
    #[serde(rename = "flash_ns")]
    pub flash: Option<Nanos>,
    /// Mean of a read from a data file, where there was one.
    #[serde(rename = "data_ns")]
    pub data: Option<Nanos>,
    /// What held it back, if anything did.
    pub limit: Option<FlashLimit>,
    /// How it warmed up, where there are seconds to tell.
    pub warming: Option<Warming>,
}

/// What holds a flash cache back.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashLimit {
    /// It was given up after failures, and this share of the blocks that it might have had was read without a look at it.
    GivenUp(f64),
    /// It failed reads, which went to the data files after all: their share.
    Fails(f64),
    /// Its writer left out so large a share of the blocks.
    WriterBehind(f64),
    /// Reads from it are hardly faster than those of data files.
    NoFaster,
}

/// How a flash cache warmed up. It begins empty.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Warming {
    /// Its share was steady from so long after the load began.
    SteadyFrom(Nanos),
    /// Its share still rose when the window ended: in the last quarter by so much more than in the one before.
    Rising(f64),
}

/// Shares of logical reads that each level answered, where the step had a flash cache.
pub fn shares_of_levels(step: &Step) -> Option<[f64; 3]> {
    let counters = &step.counters;
    let logical = counters.logical_reads.filter(|reads| *reads > 0)? as f64;
    let (buffer, flash) = (counters.cache_hits? as f64 / logical, counters.flash_cache_reads? as f64 / logical);
    Some([buffer, flash, (1.0 - buffer - flash).max(0.0)])
}

/// Of the blocks that left the buffer cache for flash, the share that its writer left out.
pub fn left_out(step: &Step) -> Option<f64> {
    share(step.counters.flash_cache_skipped?, step.counters.flash_cache_writes?)
}

fn share(of: u64, others: u64) -> Option<f64> {
    let all = of + others;
    (all > 0).then(|| of as f64 / all as f64)
}

pub(super) fn find(run: &Run) -> Option<Finding> {
    let step =
        measured(run).filter(|step| step.counters.flash_cache_reads.is_some()).max_by_key(|step| step.load.sessions)?;
    let mean = |event| wait(step, event)?.of_sessions()?.mean_ns().map(|ns| Nanos(ns as u64));
    let (flash, data) = (mean(FLASH_READ), mean(SINGLE_BLOCK_READ));
    let limit = limit(step, flash, data);
    let is_given_up = matches!(limit, Some(FlashLimit::GivenUp(_)));
    Some(Finding::FlashCache(FlashCache {
        step: step.label.clone(),
        from: shares_of_levels(step)?,
        flash,
        data,
        limit,
        // What rose and fell because flash was lost says nothing of how it filled.
        warming: warming(&step.intervals).filter(|_| !is_given_up),
    }))
}

fn limit(step: &Step, flash: Option<Nanos>, data: Option<Nanos>) -> Option<FlashLimit> {
    let counters = &step.counters;
    // A run of before this was counted knows nothing of it.
    if let Some(given_up) = counters.flash_cache_given_up.filter(|reads| *reads > 0) {
        return Some(FlashLimit::GivenUp(share(given_up, counters.flash_cache_reads?)?));
    }
    let failed = share(counters.flash_cache_fallbacks?, counters.flash_cache_reads?).filter(|share| *share > FELL_BACK);
    if let Some(share) = failed {
        return Some(FlashLimit::Fails(share));
    }
    if let Some(share) = left_out(step).filter(|share| *share > LEFT_OUT) {
        return Some(FlashLimit::WriterBehind(share));
    }
    let is_slow = flash.zip(data).is_some_and(|(flash, data)| flash.0 as f64 > NO_FASTER * data.0 as f64);
    is_slow.then_some(FlashLimit::NoFaster)
}

/// Of the reads of single blocks in a second, the share that flash answered.
fn share_of_second(second: &Interval) -> Option<f64> {
    let counters = &second.counters;
    let reads = counters.physical_reads?.saturating_sub(counters.direct_reads.unwrap_or(0));
    let flash = counters.flash_cache_reads?;
    (reads > 0).then(|| flash as f64 / reads as f64)
}

fn warming(seconds: &[Interval]) -> Option<Warming> {
    let shares: Vec<(u64, f64)> =
        seconds.iter().filter_map(|second| Some((second.offset_ns, share_of_second(second)?))).collect();
    if shares.len() < FEWEST_SECONDS {
        return None;
    }
    let mean = |part: &[(u64, f64)]| part.iter().map(|(_, share)| share).sum::<f64>() / part.len().max(1) as f64;
    let quarter = shares.len() / 4;
    let (before, last) = shares.split_at(shares.len() - quarter);
    let (last, before) = (mean(last), mean(&before[before.len() - quarter..]));
    if last - before > RISING {
        return Some(Warming::Rising(last - before));
    }
    // Means of a few seconds: one of them alone scatters.
    let apart = |window: &[(u64, f64)]| (mean(window) - last).abs() > STEADY;
    let unsteady = shares.windows(3).rposition(apart).map_or(0, |at| at + 3);
    let steady = shares.get(unsteady).or(shares.last())?;
    Some(Warming::SteadyFrom(Nanos(steady.0)))
}

impl FlashCache {
    /// Whether the figures are those of a cache that was not warm yet, or that failed.
    pub(super) fn is_doubt(&self) -> bool {
        matches!(self.warming, Some(Warming::Rising(_)))
            || matches!(self.limit, Some(FlashLimit::Fails(_) | FlashLimit::GivenUp(_)))
    }
}

impl Message for FlashCache {
    fn rule(&self) -> Rule {
        Rule::CacheFlash
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let [buffer, flash, data] = self.from.map(percent);
        let mut sentence = format!(
            "Of the block reads of {}, the buffer cache answered {buffer} %, the flash cache {flash} %, the data files {data} %",
            self.step
        );
        if let Some((flash, data)) = self.flash.zip(self.data) {
            sentence.push_str(&format!(": a read took {flash} from flash and {data} from a data file"));
        }
        sentence.push('.');
        sentence.push_str(&match self.limit {
            Some(FlashLimit::GivenUp(share)) => format!(
                " Flash was given up after failures: {} % of the block reads that it could have answered were made without it.",
                percent(share)
            ),
            Some(FlashLimit::Fails(share)) => {
                format!(" Flash failed {} % of its reads, which went to the data files.", percent(share))
            }
            Some(FlashLimit::WriterBehind(share)) => format!(
                " {} % of the blocks that left the buffer cache were not written to flash, which took them more slowly.",
                percent(share)
            ),
            Some(FlashLimit::NoFaster) => " The flash is the limit: it is hardly faster than the data files.".to_owned(),
            None => String::new(),
        });
        sentence.push_str(&match self.warming {
            Some(Warming::SteadyFrom(Nanos(0))) | None => String::new(),
            Some(Warming::SteadyFrom(from)) => format!(" Its share was steady from {from} after the load began."),
            Some(Warming::Rising(_)) => {
                " Its share was still rising when the window ended: it was not warm.".to_owned()
            }
        });
        sentence
    }

    fn advice(&self) -> Option<String> {
        let advice = match (self.limit, self.warming) {
            (Some(FlashLimit::Fails(_) | FlashLimit::GivenUp(_)), _) => {
                "Look at the kernel log (`dmesg`) and at what else writes to the flash."
            }
            (_, Some(Warming::Rising(_))) => "Repeat with a longer `--warmup`: a flash cache begins empty.",
            (Some(FlashLimit::WriterBehind(_)), _) => {
                "Put the flash cache on a device that writes faster, or leave schemas out with `--flash-cache-none`."
            }
            (Some(FlashLimit::NoFaster), _) => {
                "Put the flash cache on a faster device than the data, or do without it."
            }
            (None, _) => return None,
        };
        Some(advice.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyTarget, Severity, analyse};
    use model::record::sample;

    /// A run whose flash answered `share` of the reads of each second, by its number.
    fn found(share: impl Fn(usize) -> f64, change: impl Fn(&mut Step)) -> Finding {
        let mut run = sample::sweep(40);
        run.steps.truncate(1);
        let step = &mut run.steps[0];
        for (number, second) in step.intervals.iter_mut().enumerate() {
            let reads = second.counters.physical_reads.unwrap();
            second.counters.flash_cache_reads = Some((reads as f64 * share(number)) as u64);
        }
        let counters = &mut step.counters;
        (counters.logical_reads, counters.cache_hits) = (Some(1_000), Some(300));
        (counters.flash_cache_reads, counters.flash_cache_fallbacks) = (Some(400), Some(1));
        (counters.flash_cache_writes, counters.flash_cache_skipped) = (Some(100), Some(0));
        let mut flash = step.waits[0].clone();
        (flash.event, flash.waits) = (FLASH_READ.to_owned(), sample::latencies(10_000, 100_000));
        step.waits[0].waits = sample::latencies(10_000, 1_000_000);
        step.waits.push(flash);
        change(step);
        let found = analyse(&run, &LatencyTarget::default());
        found.into_iter().find(|finding| matches!(finding, Finding::FlashCache(_))).unwrap()
    }

    #[test]
    fn a_warm_flash_cache_is_reported_with_its_share_and_what_it_saves() {
        let finding = found(|second| if second < 5 { second as f64 / 10.0 } else { 0.57 }, |_| ());
        let sentence = finding.sentence();
        assert!(
            sentence.contains("buffer cache answered 30.0 %, the flash cache 40.0 %, the data files 30.0 %"),
            "{sentence}"
        );
        assert!(sentence.contains("us from flash and 1"), "{sentence}");
        assert!(sentence.contains("steady from"), "{sentence}");
        assert_eq!((finding.severity(), finding.advice()), (Severity::Note, None));
    }

    #[test]
    fn flash_that_still_fills_is_a_doubt() {
        let finding = found(|second| second as f64 / 60.0, |_| ());
        assert!(finding.sentence().contains("still rising") && finding.advice().unwrap().contains("--warmup"));
        assert_eq!(finding.severity(), Severity::Doubt);
    }

    #[test]
    fn what_holds_flash_back_is_named() {
        let steady = |_: usize| 0.5;
        let behind = found(steady, |step| step.counters.flash_cache_skipped = Some(100));
        assert!(behind.sentence().contains("50.0 % of the blocks") && behind.severity() == Severity::Note);
        let failing = found(steady, |step| step.counters.flash_cache_fallbacks = Some(100));
        assert!(failing.sentence().contains("failed 20.0 %") && failing.severity() == Severity::Doubt);
        let lost = found(
            |second| if second < 30 { 0.5 } else { 0.0 },
            |step| {
                step.counters.flash_cache_given_up = Some(600);
            },
        );
        assert!(lost.sentence().contains("given up after failures: 60.0 %") && lost.severity() == Severity::Doubt);
        assert!(!lost.sentence().contains("steady") && lost.advice().unwrap().contains("dmesg"), "{}", lost.sentence());
        let slow = found(steady, |step| step.waits.last_mut().unwrap().waits = sample::latencies(10_000, 990_000));
        assert!(slow.sentence().contains("hardly faster"), "{}", slow.sentence());
    }
}
