//! What runs are called in all tables.

use std::collections::BTreeMap;

use model::record::Run;
use report::export::Known;

/// Stands before what tells two runs of one name apart; no id has it.
const ANOTHER: char = '~';

/// Names that are taken. Two hosts may give one id in the same second, so a run is the same if it began at the same instant on the
/// same host as well.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Vec<Identity>>);

/// When a run began, in microseconds since 1970, and on which host.
type Identity = (Option<i64>, Option<String>);

impl Names {
    /// Those of runs that files have.
    pub(super) fn of(known: Vec<Known>) -> Self {
        let mut names = Self::default();
        for Known { key, started_us, host } in known {
            let base = key.split(ANOTHER).next().unwrap_or_default().to_owned();
            names.0.entry(base).or_default().push((started_us, host));
        }
        names
    }

    /// A name for a run; none if it has one.
    pub(super) fn take(&mut self, run: &Run) -> Option<String> {
        let base = match &run.part {
            Some(part) => format!("{}#{}", run.id, part.number),
            None => run.id.clone(),
        };
        let identity = (Some(run.started_at.0.as_microsecond()), run.environment.hostname.clone());
        let taken = self.0.entry(base.clone()).or_default();
        if taken.contains(&identity) {
            return None;
        }
        taken.push(identity);
        Some(if taken.len() == 1 { base } else { format!("{base}{ANOTHER}{}", taken.len()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{FleetPart, sample};

    #[test]
    fn a_run_has_one_name_and_a_name_one_run() {
        let mut names = Names::default();
        let run = sample::sweep(10);
        assert_eq!((names.take(&run), names.take(&run)), (Some(run.id.clone()), None));

        let mut elsewhere = run.clone();
        elsewhere.environment.hostname = Some("other".to_owned());
        assert_eq!(names.take(&elsewhere), Some(format!("{}~2", run.id)));

        let mut part = run.clone();
        part.part = Some(FleetPart {
            number: 3,
            parts: 16,
            source: "--part".to_owned(),
            configuration: "c".to_owned(),
            start_at_ns: None,
            start_error_ns: None,
            clock: None,
        });
        assert_eq!(names.take(&part), Some(format!("{}#3", run.id)));

        let known = |key: &str, run: &Run| Known {
            key: key.to_owned(),
            started_us: Some(run.started_at.0.as_microsecond()),
            host: run.environment.hostname.clone(),
        };
        let mut again = Names::of(vec![known(&run.id, &run), known(&format!("{}~2", run.id), &elsewhere)]);
        assert_eq!((again.take(&run), again.take(&elsewhere)), (None, None));
        elsewhere.environment.hostname = None;
        assert_eq!(again.take(&elsewhere), Some(format!("{}~3", run.id)));
    }
}
