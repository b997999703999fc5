//! What stress-ng counted of each of its stressors.

pub(super) mod text;
pub(super) mod yaml;

#[cfg(test)]
mod tests;

use super::draft::{reported_figure, step, whole};
use model::record::{CpuTime, Ending, Step};

/// Figures of one stressor. Bogus operations of different stressors have nothing in common.
#[derive(Debug, Clone, Default)]
struct Stressor {
    name: String,
    instances: Option<u32>,
    bogo_ops: Option<f64>,
    real_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
    per_s_real: Option<f64>,
    per_s_cpu: Option<f64>,
    cpu_percent: Option<f64>,
    max_resident_kib: Option<f64>,
    /// By the words of stress-ng.
    more: Vec<(String, f64)>,
}

impl Stressor {
    fn step(self, index: usize, label: String) -> Step {
        let ns = |seconds: Option<f64>| seconds.and_then(|seconds| whole(seconds * 1e9));
        let mut made = step(index, label, ns(self.real_s).unwrap_or(0));
        made.load.sessions = self.instances;
        made.window.ending = Ending::Unknown;
        let times = ns(self.user_s).zip(ns(self.system_s));
        made.process_cpu = times.map(|(user_ns, system_ns)| CpuTime { user_ns, system_ns, ..CpuTime::default() });
        let figures = [
            ("bogo ops", "", self.bogo_ops),
            ("bogo ops/s (real time)", "1/s", self.per_s_real),
            ("bogo ops/s (usr+sys time)", "1/s", self.per_s_cpu),
            ("real time", "s", self.real_s),
            ("usr time", "s", self.user_s),
            ("sys time", "s", self.system_s),
            ("CPU used per instance", "%", self.cpu_percent),
            ("RSS Max", "KiB", self.max_resident_kib),
        ];
        made.reported = figures
            .into_iter()
            .filter_map(|(name, unit, value)| Some(reported_figure("client", name, unit, value?)))
            .collect();
        made.reported.extend(self.more.into_iter().map(|(name, value)| reported_figure("client", name, "", value)));
        made
    }
}

/// A step for each stressor, with a label of its own.
fn steps(stressors: Vec<Stressor>) -> Vec<Step> {
    let mut seen = std::collections::HashMap::<String, u32>::new();
    let label = |stressor: &Stressor, seen: &mut std::collections::HashMap<String, u32>| {
        let times = seen.entry(stressor.name.clone()).and_modify(|times| *times += 1).or_insert(1);
        if *times == 1 { stressor.name.clone() } else { format!("{} {times}", stressor.name) }
    };
    stressors
        .into_iter()
        .enumerate()
        .map(|(index, stressor)| {
            let label = label(&stressor, &mut seen);
            stressor.step(index, label)
        })
        .collect()
}

/// What the reader must know.
const NOTE: &str = "Bogus operations compare the same stressor of the same version only.";
