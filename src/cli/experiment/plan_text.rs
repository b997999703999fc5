//! What `plimsoll experiment plan` says.

use std::io::{self, Write};
use std::path::Path;

use super::asked::{Asked, shown};
use crate::cli::children::Planned;
use crate::plan::experiment::Step;
use model::units::Nanos;

/// Writes every step with how long it takes, and what that comes to.
pub(super) fn write(out: &mut impl Write, asked: &Asked, folder: &Path, planned: &[Option<Planned>]) -> io::Result<()> {
    let plan = &asked.plan;
    writeln!(out, "experiment {}", plan.title.as_ref().unwrap_or(&asked.name))?;
    writeln!(out, "folder     {}", folder.display())?;
    let [steps, runs] = [(plan.steps.len(), "step"), (plan.turns.len(), "run")]
        .map(|(count, one)| format!("{count} {one}{}", if count == 1 { "" } else { "s" }));
    writeln!(out, "in all     {steps}, {runs}")?;
    if let Some(budget) = plan.budget {
        writeln!(out, "budget     {budget}")?;
    }
    plan.before.iter().try_for_each(|script| writeln!(out, "before     {}", script.trim()))?;
    plan.after.iter().try_for_each(|script| writeln!(out, "after      {}", script.trim()))?;
    writeln!(out)?;
    for (step, planned) in plan.steps.iter().zip(planned) {
        let times = if step.repeats == 1 { String::new() } else { format!(", {} times", step.repeats) };
        writeln!(out, "step {:<5} {}: {}{times}", step.number, step.name(), time_words(*planned))?;
        writeln!(out, "           plimsoll {}", shown(step))?;
        around(out, step)?;
    }
    writeln!(out)?;
    writeln!(out, "{}", sum(asked, planned))
}

fn around(out: &mut impl Write, step: &Step) -> io::Result<()> {
    let mut before: Vec<String> = Vec::new();
    if step.pause > Nanos(0) {
        before.push(format!("a pause of {}", step.pause));
    }
    before.extend(step.before.iter().map(|script| format!("`{}`", script.trim())));
    if step.drop_caches {
        before.push("the kernel's caches dropped".to_owned());
    }
    if !before.is_empty() {
        writeln!(out, "           before it: {}", before.join(", then "))?;
    }
    step.after.iter().try_for_each(|script| writeln!(out, "           after it: `{}`", script.trim()))
}

fn time_words(planned: Option<Planned>) -> String {
    match planned {
        Some(Planned { time: Some(time), is_simulated: true }) => format!("{time} of simulated time"),
        Some(Planned { time: Some(time), is_simulated: false }) => time.to_string(),
        Some(Planned { time: None, .. }) => "as long as it takes".to_owned(),
        None => "not known before its script has run".to_owned(),
    }
}

/// How long everything takes, in a sentence.
fn sum(asked: &Asked, planned: &[Option<Planned>]) -> String {
    let turns = || asked.plan.turns.iter();
    let total = |of: &dyn Fn(usize) -> u64| Nanos(turns().map(|turn| of(turn.step)).fold(0, u64::saturating_add));
    let load = |wanted: bool| {
        total(&|step| match planned[step] {
            Some(Planned { time: Some(time), is_simulated }) if is_simulated == wanted => time.0,
            _ => 0,
        })
    };
    let (real, simulated) = (load(false), load(true));
    // Before the first one nothing is waited for.
    let first = turns().next().map_or(0, |turn| asked.plan.steps[turn.step].pause.0);
    let pauses = Nanos(total(&|step| asked.plan.steps[step].pause.0).0.saturating_sub(first));
    let unknown = turns().filter(|turn| planned[turn.step].is_none_or(|planned| planned.time.is_none())).count();
    let mut parts = Vec::new();
    if real > Nanos(0) || simulated == Nanos(0) {
        parts.push(format!("{real} of load"));
    }
    if pauses > Nanos(0) {
        parts.push(format!("{pauses} of pauses"));
    }
    if simulated > Nanos(0) {
        parts.push(format!("{simulated} of simulated time, which passes in a moment"));
    }
    match unknown {
        0 => {}
        1 => parts.push("1 run whose time is not known".to_owned()),
        count => parts.push(format!("{count} runs whose time is not known")),
    }
    let all = Nanos(real.0.saturating_add(pauses.0));
    let all = if pauses > Nanos(0) && real > Nanos(0) { format!("{all}: ") } else { String::new() };
    format!("takes      {all}{}, and what it takes to make each load ready", parts.join(", "))
}
