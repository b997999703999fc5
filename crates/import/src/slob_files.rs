//! The small files that SLOB leaves beside its reports: `slob.conf` and `tm.out`. They report on a run and are none.

use super::draft::{reported_figure, step};
use super::numbers::number;
use super::slob_console::PARAMETERS;
use super::{Draft, ImportError, Notes, Source};
use model::record::Workload;

/// Kind of a `slob.conf`.
pub(super) const CONF: &str = "slob-conf";
/// Kind of a `tm.out`.
pub(super) const TM: &str = "slob-tm";

/// Parameters that every `slob.conf` has.
const SURE: [&str; 3] = ["UPDATE_PCT", "RUN_TIME", "WORK_UNIT"];
/// A `KEY=value` line of a shell file, without quotes and comment.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().strip_prefix("export ").unwrap_or(line.trim()).split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_key.then_some((key, value))
}

pub(super) fn is_conf(head: &str) -> bool {
    SURE.iter().all(|wanted| head.lines().filter_map(assignment).any(|(key, _)| key == *wanted))
}

pub(super) fn read_conf(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut draft = Draft::new(Workload::Slob, "SLOB", "slob.conf");
    for (number, line) in source.lines() {
        let Some((key, value)) = assignment(line) else {
            notes.unknown(number, line);
            continue;
        };
        // A value with `$` in it was computed by a shell, and what came out is not known.
        // Others may be secrets, or are the user's own shell.
        if PARAMETERS.contains(&key) && !value.is_empty() && !value.contains(['$', '`']) {
            draft.parameters.insert(key.to_owned(), value.to_owned());
        }
    }
    draft.steps.push(step(0, "settings", 0));
    Ok(vec![draft])
}

/// `Tm 605`, and nothing else.
fn tm(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let seconds = (words.next() == Some("Tm")).then(|| number(words.next()?)).flatten()?;
    (words.next().is_none() && seconds >= 0.0).then_some(seconds)
}

pub(super) fn is_tm(head: &str) -> bool {
    head.len() < 100 && tm(head).is_some()
}

pub(super) fn read_tm(source: &Source, _: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let seconds = tm(source.text()).ok_or_else(|| ImportError::damaged(source, 1, "it has no seconds"))?;
    let mut draft = Draft::new(Workload::Slob, "SLOB", "tm.out");
    let mut settings = step(0, "settings", 0);
    settings.reported.push(reported_figure("client", "Tm (SLOB, from the first to the last session)", "s", seconds));
    draft.steps.push(settings);
    Ok(vec![draft])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specimens::source;

    #[test]
    fn settings_are_kept_and_secrets_are_not() {
        let text = "# SLOB\nUPDATE_PCT=\"20\" # a fifth\nexport RUN_TIME=300\nWORK_UNIT=64\nSCALE=$1\nSYSDBA_PASSWD=\"change_on_install\"\n";
        assert!(is_conf(text) && !is_conf("UPDATE_PCT: 20\nRUN_TIME: 3\nWORK_UNIT: 3\n"));
        let drafts = read_conf(&source(text), &mut Notes::default()).unwrap();
        let kept: Vec<String> = drafts[0].parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(kept.join(" "), "RUN_TIME=300 UPDATE_PCT=20 WORK_UNIT=64");
    }

    #[test]
    fn the_time_of_a_run_is_read() {
        assert!(is_tm("Tm 605\n") && !is_tm("Tm today\n") && !is_tm("Tm 6 7"));
        assert_eq!(read_tm(&source("Tm 605\n"), &mut Notes::default()).unwrap()[0].steps[0].reported[0].value, 605.0);
    }
}
