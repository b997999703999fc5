//! The verdict that a run gave, given again wherever it is shown: by the limits that it was made with.

use model::record::{Run, Tool, Workload};
use model::units::Nanos;
use model::workload::orders::TransactionKind;

use crate::check::Check;
use crate::{
    Because, Claim, Finding, LatencyTarget, LimitAnswer, LimitVerdict, RunVerdict, Subject, analyse_limits, opening,
};

/// Flags of a command that name a limit, and the share of operations that may fail.
const LIMITS: [&str; 2] = ["--limit", "--target-latency"];
const ERRORS: [&str; 1] = ["--errors"];

/// The limits that `run` was made with, by its command; none of a run of another program, and of a map, whose points lie on both sides of
/// its limit.
pub fn requested_limits(run: &Run) -> Vec<LatencyTarget> {
    if run.imported.is_some() || run.tool.name != Tool::OWN || run.load.map().is_some() {
        return Vec::new();
    }
    limits_of_command(&run.command, run.workload() == Workload::Orders)
}

/// The limits that a command has; `of_users` if it runs transactions, which have names of their own.
pub fn limits_of_command(command: &[String], of_users: bool) -> Vec<LatencyTarget> {
    let percent = |words: &str| words.trim().strip_suffix('%')?.trim().parse::<f64>().ok();
    let errors = values(command, &ERRORS).find_map(percent).unwrap_or(0.0) / 100.0;
    let limits = values(command, &LIMITS).filter_map(|words| words.parse::<LatencyTarget>().ok());
    let named = |limit: LatencyTarget| if of_users { limit.of_transactions() } else { limit };
    limits.map(|limit| LatencyTarget { errors: Some(errors), ..named(limit) }).collect()
}

/// Everything worth saying about `run`, judged by the limits that it was made with.
pub fn analyse_as_requested(run: &Run) -> Vec<Finding> {
    analyse_limits(run, &requested_limits(run))
}

/// What stands behind any of `flags`: `--flag value` or `--flag=value`.
fn values<'a>(command: &'a [String], flags: &'static [&'static str]) -> impl Iterator<Item = &'a str> {
    command.iter().enumerate().filter_map(move |(place, word)| match word.split_once('=') {
        Some((flag, value)) if flags.contains(&flag) => Some(value),
        _ if flags.contains(&word.as_str()) => command.get(place + 1).map(String::as_str),
        _ => None,
    })
}

impl LatencyTarget {
    /// The same with a type of transactions by its whole name, whatever name it was given.
    #[must_use]
    pub fn of_transactions(&self) -> Self {
        let named = |words: &str| {
            let is_meant = |kind: &TransactionKind| {
                words.eq_ignore_ascii_case(kind.short()) || words.eq_ignore_ascii_case(kind.name())
            };
            TransactionKind::ALL.into_iter().find(is_meant).map(|kind| kind.name().to_owned())
        };
        let subject = match &self.subject {
            Some(Subject::Event(words) | Subject::Response(Some(words))) => {
                named(words).map(|kind| Subject::Response(Some(kind)))
            }
            Some(Subject::Service(Some(words))) => named(words).map(|kind| Subject::Service(Some(kind))),
            _ => None,
        };
        Self { subject: subject.or_else(|| self.subject.clone()), ..self.clone() }
    }
}

/// The verdict of a run as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVerdict {
    /// `yes`, `no`, `no verdict`; of a check `not measurable`.
    pub answer: &'static str,
    /// The same with what decided: `no: p99 12.9 s, limit 5.00 ms`.
    pub words: String,
    /// Label of the step that shows it; absent of a check, and where no step does.
    pub step: Option<String>,
}

/// Of a run that cannot be read.
impl Default for ListedVerdict {
    fn default() -> Self {
        Self { answer: "?", words: "?".to_owned(), step: None }
    }
}

impl ListedVerdict {
    /// Of a run; absent where nothing was requested of it.
    pub fn of(run: &Run) -> Option<Self> {
        let limits = requested_limits(run);
        if run.check.is_none() && limits.is_empty() {
            return None;
        }
        let findings = analyse_limits(run, &limits);
        if let Some(check) = Check::of(run, &findings) {
            let answer = check.answer.word();
            return Some(Self { answer, words: answer.to_owned(), step: None });
        }
        findings.iter().find_map(|finding| match finding {
            Finding::Verdict(verdict) => Some(Self::of_limits(verdict)),
            _ => None,
        })
    }

    fn of_limits(verdict: &RunVerdict) -> Self {
        let answer = verdict.answer.in_a_list();
        let deciding = || verdict.limits.iter().filter(|limit| limit.answer == verdict.answer);
        let carried = verdict.carries.as_ref().filter(|_| verdict.answer != LimitAnswer::NoVerdict);
        let rate = carried.and_then(|carried| {
            let rate = format!("{} {}", opening::number(carried.per_s), carried.unit.words());
            match carried.claim {
                Claim::Most { .. } => Some(format!("up to {rate}")),
                Claim::AtLeast => Some(format!("at least {rate}")),
                Claim::LessThan { .. } => Some(format!("less than {rate}")),
                _ => None,
            }
        });
        let limits = deciding().map(|limit| limit.in_a_list(rate.is_some()));
        let words: Vec<String> = rate.clone().into_iter().chain(limits).collect();
        let of_limit = || deciding().find_map(|limit| limit.step.clone());
        Self {
            answer,
            words: if words.is_empty() { answer.to_owned() } else { format!("{answer}: {}", words.join(", ")) },
            step: carried.and_then(|carried| carried.step.clone()).or_else(of_limit),
        }
    }
}

impl LimitAnswer {
    /// In a word or two, within a line.
    pub fn in_a_list(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NoVerdict => "no verdict",
        }
    }
}

impl LimitVerdict {
    /// The limit beside what was measured; beside a rate it is the limit alone, which the rate is within.
    fn in_a_list(&self, is_beside_rate: bool) -> String {
        let what = match &self.target.subject {
            None | Some(Subject::Response(None)) => self.target.quantile_name(),
            Some(_) => self.target.what().replace('`', ""),
        };
        let limit: Nanos = self.target.limit;
        match (self.because, self.value) {
            _ if is_beside_rate && self.answer == LimitAnswer::Yes => format!("{what} within {limit}"),
            (Because::Errors(share), _) => format!("{} % failed", model::units::percent(share)),
            (Because::FellBehind, _) => "rate not reached".to_owned(),
            (Because::NotEnded { operations, .. }, _) => {
                format!("{} not ended", model::units::group_thousands(operations as f64))
            }
            (Because::NotSteady, Some(value)) if value.ns <= limit => "not steady".to_owned(),
            (_, Some(value)) => format!("{what} {value}, limit {limit}"),
            (_, None) => format!("{what} not known, limit {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn made_with(command: &str) -> Run {
        let command = command.split('|').map(str::to_owned).collect();
        Run { command, ..sample::requests::sweep() }
    }

    #[test]
    fn limits_are_read_back_from_the_command() {
        let of = |command: &str| -> Vec<String> {
            requested_limits(&made_with(command)).iter().map(ToString::to_string).collect()
        };
        assert_eq!(of("plimsoll|io|run"), Vec::<String>::new());
        assert_eq!(of("plimsoll|io|run|--limit|p99=5ms"), ["p99 within 5.00 ms"]);
        let both = of("plimsoll|io|run|--limit=read service:p50=1ms|--target-latency=p99=5ms|--errors|0.5%");
        let errors = ", up to 0.5 % of errors";
        assert_eq!(
            both,
            [format!("p50 of read service time within 1.00 ms{errors}"), format!("p99 within 5.00 ms{errors}")]
        );
        assert_eq!(of("plimsoll|io|run|--limit"), Vec::<String>::new(), "no value, no limit");
        let exact = requested_limits(&made_with("plimsoll|io|run|--limit=p99=5ms"));
        assert_eq!(exact[0].errors, Some(0.0), "without `--errors` none may fail");
        let mut foreign = made_with("other|--limit=p99=5ms");
        foreign.tool.name = "fio".to_owned();
        assert!(requested_limits(&foreign).is_empty());
    }

    #[test]
    fn a_list_gives_the_verdict_with_what_decided() {
        let of = |command: &str| ListedVerdict::of(&made_with(command)).map(|listed| (listed.words, listed.step));
        assert_eq!(of("plimsoll|io|sweep"), None);
        let some = |words: &str, step: &str| Some((words.to_owned(), Some(step.to_owned())));
        let yes = of("plimsoll|io|sweep|--limit=p99=5ms");
        assert_eq!(yes, some("yes: up to 4,800 requests/s, p99 within 5.00 ms", "d4"));
        let no = of("plimsoll|io|sweep|--limit=p99=5us").unwrap();
        assert!(
            no.0.starts_with("no: less than 2,000 requests/s, p99 ") && no.0.ends_with(", limit 5.00 us"),
            "{no:?}"
        );
        let mut one = made_with("plimsoll|io|run|--limit=p99=1us");
        one.steps.truncate(1);
        let listed = ListedVerdict::of(&one).unwrap();
        assert!(listed.words.starts_with("no: p99 ") && listed.answer == "no", "{listed:?}");
        let mut check = sample::requests::open_loop();
        check.check = Some(sample::check_of_reads("10@5ms"));
        let listed = ListedVerdict::of(&check).unwrap();
        assert_eq!(listed.words, listed.answer);
    }
}
