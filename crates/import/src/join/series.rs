//! Runs of one tool, one after the other, as one: a file for each hour, or a watcher that starts the tool anew for each snapshot.

use super::super::osstat;
use super::super::run::Made;
use model::record::{CpuTime, DeviceStats, ReportedFigure, Step};

const SECOND_NS: i128 = 1_000_000_000;

/// One run of all of them, or all of them as they are if they do not follow one another, or not all report their times.
pub(super) fn one_of(mut runs: Vec<Made>) -> Result<Made, Vec<Made>> {
    if !follow_one_another(&mut runs) {
        return Err(runs);
    }
    let mut rest = runs.into_iter();
    let Some(mut one) = rest.next() else { return Err(Vec::new()) };
    let mut steps = std::mem::take(&mut one.draft.steps);
    let mut offsets_ns = vec![0];
    for other in rest {
        let Made { draft, files, not_understood, .. } = other;
        let after = draft
            .began
            .zip(one.draft.began)
            .map(|(of_other, of_one)| of_other.timestamp().0.duration_since(of_one.timestamp().0).as_nanos());
        offsets_ns.push(after.and_then(|after_ns| u64::try_from(after_ns).ok()).unwrap_or(0));
        steps.extend(draft.steps);
        // Parts of one file have the notes of all of it.
        not_understood.into_iter().for_each(|note| {
            if !one.not_understood.contains(&note) {
                one.not_understood.push(note);
            }
        });
        one.files.extend(files);
        one.draft.ended = draft.ended.or(one.draft.ended);
    }
    one.draft.steps.extend(joined(steps, &offsets_ns));
    Ok(one)
}

/// Sorts them by their beginnings, and says whether each began after the one before had ended, by the same clock and in as
/// good a measure of time.
fn follow_one_another(runs: &mut [Made]) -> bool {
    let began = |made: &Made| made.draft.began.map(|began| (began.timestamp().0, began));
    runs.sort_by_key(|made| began(made).map(|(at, _)| at));
    let length_ns = |made: &Made| match made.draft.steps.as_slice() {
        [step] => Some(step.window.duration_ns),
        _ => None,
    };
    runs.iter().zip(runs.iter().skip(1)).all(|(before, after)| {
        let (Some((first, of_first)), Some((next, of_next))) = (began(before), began(after)) else { return false };
        let (Some(first_ns), Some(next_ns)) = (length_ns(before), length_ns(after)) else { return false };
        let gap_ns = next.duration_since(first).as_nanos() - i128::from(first_ns);
        std::mem::discriminant(&of_first) == std::mem::discriminant(&of_next)
            && (first_ns == 0) == (next_ns == 0)
            && next > first
            // Clocks that are reported in whole seconds.
            && gap_ns >= -SECOND_NS
            && before.draft.environment.hostname == after.draft.environment.hostname
    })
}

/// Samples of all at their times, and figures over all of them. What some of them do not report is not reported.
fn joined(steps: Vec<Step>, offsets_ns: &[u64]) -> Option<Step> {
    let reported = figures(&steps);
    let devices = devices(&steps);
    let cpu = |sum: CpuTime, more: CpuTime| CpuTime {
        user_ns: sum.user_ns.saturating_add(more.user_ns),
        system_ns: sum.system_ns.saturating_add(more.system_ns),
        iowait_ns: sum.iowait_ns.zip(more.iowait_ns).map(|(sum, more)| sum.saturating_add(more)),
        steal_ns: sum.steal_ns.zip(more.steal_ns).map(|(sum, more)| sum.saturating_add(more)),
        idle_ns: sum.idle_ns.zip(more.idle_ns).map(|(sum, more)| sum.saturating_add(more)),
    };
    let cpus: Option<Vec<CpuTime>> = steps.iter().map(|step| step.host_cpu).collect();
    let host_cpu = cpus.and_then(|cpus| cpus.into_iter().reduce(cpu));
    let duration_ns = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.window.duration_ns));
    let mut intervals = Vec::new();
    let mut first = None;
    for (mut step, offset_ns) in steps.into_iter().zip(offsets_ns) {
        for mut interval in std::mem::take(&mut step.intervals) {
            interval.offset_ns = interval.offset_ns.saturating_add(*offset_ns);
            intervals.push(interval);
        }
        first.get_or_insert(step);
    }
    let mut step = first?;
    step.window.duration_ns = duration_ns;
    Some(Step { reported, devices, host_cpu, intervals, ..step })
}

/// What each step weighs: its length, or how many samples it has where lengths are not reported.
fn weight(step: &Step) -> f64 {
    match step.window.duration_ns {
        0 => step.intervals.len() as f64,
        length_ns => length_ns as f64,
    }
}

fn figure<'a>(step: &'a Step, layer: &str, name: &str) -> Option<&'a ReportedFigure> {
    step.reported.iter().find(|figure| figure.layer == layer && figure.name == name)
}

/// Figures that all steps have, as one.
fn figures(steps: &[Step]) -> Vec<ReportedFigure> {
    let Some(first) = steps.iter().max_by_key(|step| step.reported.len()) else { return Vec::new() };
    let of_all = |known: &ReportedFigure| {
        let (device, column) = match known.name.rsplit_once(' ') {
            Some((device, column)) if known.layer == "device" => (format!("{device} "), column),
            _ => (String::new(), known.name.as_str()),
        };
        let values = || steps.iter().map(|step| figure(step, &known.layer, &known.name).map(|figure| figure.value));
        let all: Option<Vec<f64>> = values().collect();
        let mean = |weighted: &mut dyn Iterator<Item = (f64, f64)>| {
            let (sum, weight) =
                weighted.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
            (weight > 0.0).then(|| sum / weight)
        };
        let over_time = |all: Option<Vec<f64>>| mean(&mut all?.into_iter().zip(steps.iter().map(weight)));
        let value = match osstat::over(column) {
            _ if known.layer != "device" => over_time(all),
            osstat::Over::Sum => all.map(|all| all.iter().sum()),
            // A time of each request weighs by their number; where there were none it is not reported.
            osstat::Over::Counts(counts) => {
                let counted = |step: &Step| {
                    let rates = counts.iter().filter_map(|count| figure(step, "device", &format!("{device}{count}")));
                    rates.map(|figure| figure.value).sum::<f64>() * weight(step)
                };
                mean(&mut steps.iter().zip(values()).filter_map(|(step, value)| Some((value?, counted(step)))))
            }
            osstat::Over::Time => over_time(all),
        };
        Some(ReportedFigure { value: value.filter(|value| value.is_finite())?, ..known.clone() })
    };
    first.reported.iter().filter_map(of_all).collect()
}

/// Counts of devices that all steps have.
fn devices(steps: &[Step]) -> Vec<DeviceStats> {
    let Some((first, others)) = steps.split_first() else { return Vec::new() };
    let of_all = |device: &DeviceStats| {
        others.iter().try_fold(device.clone(), |mut sum, step| {
            let more = step.devices.iter().find(|more| more.name == device.name)?;
            osstat::add(&mut sum, more);
            sum.elapsed_ns = sum.elapsed_ns.saturating_add(more.elapsed_ns);
            Some(sum)
        })
    };
    first.devices.iter().filter_map(of_all).collect()
}
