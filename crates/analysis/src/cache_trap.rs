//! Data sets so small that a cache can answer for the storage behind it.

use super::message::list;
use super::{Figures, Finding, Message, worst};
use crate::Rule;
use crate::Severity;
use model::record::{Metric, Run, Step};
use model::units::Bytes;

/// Reads of each block in one window from which on a storage cache, if there is one, has the block.
const READS_OF_EACH_BLOCK: f64 = 10.0;

/// Why reads may measure a cache.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheTrap {
    /// What it is that makes the data set too small.
    pub trap: Trap,
    /// Data that operations can touch.
    #[serde(rename = "data_bytes")]
    pub data: Bytes,
}

/// What makes a data set too small for what it claims to measure.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trap {
    /// Files are read through the page cache, and the memory holds them all.
    FitsMemory {
        /// Memory that this process may fill.
        #[serde(rename = "memory_bytes")]
        memory: Bytes,
    },
    /// Each block was read many times within a window.
    ReadOften {
        /// Labels of the steps.
        steps: Vec<String>,
        /// Reads of each block in the window, at most.
        times: f64,
    },
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let Some(data) = run.target.data_bytes.filter(|bytes| *bytes > 0).map(Bytes) else { return Vec::new() };
    let traps = [fits_memory(run, data), read_often(run, data)];
    traps.into_iter().flatten().map(|trap| Finding::CacheTrap(CacheTrap { trap, data })).collect()
}

fn fits_memory(run: &Run, data: Bytes) -> Option<Trap> {
    if !super::proof::is_through_page_cache(run) {
        return None;
    }
    let limits = [run.environment.memory_bytes, run.environment.memory_limit_bytes];
    let memory = limits.into_iter().flatten().min().map(Bytes)?;
    (data < memory).then_some(Trap::FitsMemory { memory })
}

fn read_often(run: &Run, data: Bytes) -> Option<Trap> {
    let times = |step: &Step| {
        let figures = Figures(step);
        Some(figures.value(Metric::ReadMegabytes)? * 1e6 * figures.seconds() / data.0 as f64)
    };
    let (steps, times) = worst(run, |step| times(step).filter(|times| *times > READS_OF_EACH_BLOCK))?;
    Some(Trap::ReadOften { steps, times })
}

impl Message for CacheTrap {
    fn rule(&self) -> Rule {
        Rule::CacheTooSmall
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let data = self.data;
        match &self.trap {
            Trap::FitsMemory { memory } => format!(
                "The data set ({data}) fits into the machine's memory ({memory}) and is read through the page cache: reads may \
                 measure memory."
            ),
            Trap::ReadOften { steps, times } => format!(
                "Each block of the data set ({data}) was read {times:.0} times on average in {}: if the storage has a cache, it holds \
                 them.",
                list(steps)
            ),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match &self.trap {
            Trap::FitsMemory { memory } => {
                format!("Allow direct I/O, or use a data set of {} or more.", Bytes(2 * memory.0))
            }
            Trap::ReadOften { .. } => "Use a larger data set, as large as production's active data.".to_owned(),
        };
        Some(advice)
    }

    fn steps(&self) -> Option<&[String]> {
        match &self.trap {
            Trap::ReadOften { steps, .. } => Some(steps),
            Trap::FitsMemory { .. } => None,
        }
    }
}

impl CacheTrap {
    /// Whether it is certain enough to doubt the figures. Many reads of a block mislead only where there is a cache.
    pub(super) fn is_doubt(&self) -> bool {
        !matches!(self.trap, Trap::ReadOften { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn traps(run: &Run) -> Vec<Trap> {
        let trap = |finding| match finding {
            Finding::CacheTrap(found) => found.trap,
            other => panic!("{other:?}"),
        };
        find(run).into_iter().map(trap).collect()
    }

    #[test]
    fn a_data_set_below_memory_is_a_trap_only_through_the_page_cache() {
        let mut run = sample::sweep(60);
        assert_eq!(traps(&run), []);
        run.target.facts.files.direct_io = Some(false);
        assert_eq!(traps(&run), [Trap::FitsMemory { memory: Bytes::gib(32) }]);
        run.environment.memory_limit_bytes = Some(2 << 30);
        assert_eq!(traps(&run), [], "4 GiB of data do not fit into 2 GiB");
        run.environment.memory_limit_bytes = None;
        run.environment.memory_bytes = None;
        assert_eq!(traps(&run), [], "unknown is not small");
    }

    #[test]
    fn blocks_that_are_read_many_times_are_a_trap() {
        let mut run = sample::sweep(60);
        run.target.data_bytes = Some(1 << 30);
        let [Trap::ReadOften { steps, times }] = &traps(&run)[..] else { panic!() };
        assert_eq!(steps, &["s8_t1", "s16_t1", "s32_t1"]);
        assert!((times - 640.0 * 63.0 * 8_192.0 * 60.0 / (1u64 << 30) as f64).abs() < 0.1, "{times}");
    }

    #[test]
    fn a_data_set_of_unknown_size_is_not_judged() {
        let mut run = sample::sweep(60);
        run.target.data_bytes = None;
        assert_eq!(traps(&run), []);
    }

    #[test]
    fn every_trap_has_a_sentence_and_one_piece_of_advice() {
        for trap in
            [Trap::FitsMemory { memory: Bytes::gib(32) }, Trap::ReadOften { steps: vec!["s8".to_owned()], times: 12.4 }]
        {
            let finding = CacheTrap { trap, data: Bytes::gib(4) };
            assert!(finding.sentence().ends_with('.') && finding.advice().unwrap().ends_with('.'), "{finding:?}");
        }
    }
}
