//! Names of runs and steps.

use model::config::{Key, Tag};
use model::record::facts::UNWAITED_MARK;

/// What stands for a parameter in a name. Only those that may vary within a sweep are needed.
fn abbreviation(key: Key) -> &'static str {
    match key {
        Key::UpdatePct => "up",
        Key::ScanPct => "sp",
        Key::WorkUnit => "wu",
        Key::RedoStress => "rs",
        Key::DoHotspot => "hs",
        Key::HotspotMb => "hsmb",
        Key::HotspotOffsetMb => "hsoff",
        Key::HotspotFrequency => "hsf",
        Key::HotSchemaFrequency => "hschf",
        Key::ThinkTmFrequency => "thf",
        Key::ThinkTmMin => "thmin",
        Key::ThinkTmMax => "thmax",
        other => other.name(),
    }
}

/// The numbers that a name reports on one step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    pub(super) schemas: u32,
    pub(super) threads: u32,
    pub(super) work_unit: u32,
    pub(super) rate_per_s: Option<f64>,
    /// Whether its commits are not waited for.
    pub(super) is_unwaited: bool,
}

/// What distinguishes a step, such as `s8_t4` or `s8_t4_up50`. `varied` are the parameters that differ within the run,
/// threads left out.
pub(super) fn step_label(numbers: &Numbers, varied: &[(Key, &str)]) -> String {
    let mut parts = vec![format!("s{}", numbers.schemas), format!("t{}", numbers.threads)];
    parts.extend(numbers.rate_per_s.map(|rate| format!("r{rate}")));
    parts.extend(varied.iter().map(|(key, value)| plain(&format!("{}{value}", abbreviation(*key)))));
    parts.join("_") + mark(numbers.is_unwaited)
}

/// The name of a run, such as `p30x2_d8s_s64_t1_wu64`: the values of the tags in the order given, then the load, with a
/// range where it varies (`t1-32`).
pub(super) fn run_name(tags: &[Tag], steps: &[Numbers]) -> String {
    let range = |number: fn(&Numbers) -> u32| {
        let least = steps.iter().map(number).min().unwrap_or(0);
        let most = steps.iter().map(number).max().unwrap_or(0);
        if least == most { least.to_string() } else { format!("{least}-{most}") }
    };
    let mut parts: Vec<String> = tags.iter().map(|tag| plain(&tag.value)).collect();
    parts.push(format!("s{}", range(|step| step.schemas)));
    parts.push(format!("t{}", range(|step| step.threads)));
    parts.push(format!("wu{}", range(|step| step.work_unit)));
    parts.extend(steps.first().and_then(|step| step.rate_per_s).map(|rate| format!("r{rate}")));
    parts.join("_") + mark(steps.iter().any(|step| step.is_unwaited))
}

fn mark(is_unwaited: bool) -> &'static str {
    if is_unwaited { UNWAITED_MARK } else { "" }
}

/// Text that can be typed as one word.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::PARAMETERS;

    const NUMBERS: Numbers = Numbers { schemas: 64, threads: 1, work_unit: 64, rate_per_s: None, is_unwaited: false };

    #[test]
    fn commits_that_nobody_waits_for_are_in_every_name() {
        let unwaited = Numbers { is_unwaited: true, ..NUMBERS };
        assert_eq!(run_name(&[], &[NUMBERS, unwaited.clone()]), "s64_t1_wu64_nowait");
        assert_eq!(step_label(&unwaited, &[(Key::UpdatePct, "20")]), "s64_t1_up20_nowait");
    }

    #[test]
    fn a_run_is_named_by_its_tags_and_its_load() {
        let tags = ["disk=p30x2".parse().unwrap(), "vm=d8s v3".parse().unwrap()];
        assert_eq!(run_name(&tags, &[NUMBERS]), "p30x2_d8s-v3_s64_t1_wu64");
    }

    #[test]
    fn what_varies_in_a_sweep_is_named_as_a_range() {
        let sweep = [Numbers { threads: 32, ..NUMBERS }, NUMBERS, Numbers { threads: 8, ..NUMBERS }];
        assert_eq!(run_name(&[], &sweep), "s64_t1-32_wu64");
    }

    #[test]
    fn a_step_is_labelled_by_what_varies() {
        assert_eq!(step_label(&NUMBERS, &[]), "s64_t1");
        assert_eq!(step_label(&NUMBERS, &[(Key::WorkUnit, "16"), (Key::ThinkTmMin, ".1")]), "s64_t1_wu16_thmin.1");
        let open = Numbers { rate_per_s: Some(2_500.5), ..NUMBERS };
        assert_eq!(step_label(&open, &[]), "s64_t1_r2500.5");
    }

    #[test]
    fn every_parameter_that_may_vary_has_an_abbreviation_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for parameter in PARAMETERS.iter().filter(|parameter| parameter.role == model::config::Role::Load) {
            let short = abbreviation(parameter.key);
            assert!(short != parameter.name && seen.insert(short), "{}", parameter.name);
        }
    }
}
