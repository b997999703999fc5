//! Answers as JUnit's XML, which continuous integration reads: a test case for each limit and each demand of a check.
//!
//! The form has no schema of its own. This is what its readers agree on (Jenkins, GitLab): suites with `tests`, `failures` and `errors`,
//! cases with a `failure` for a no and an `error` for what has no verdict.

use std::io::{self, Write};

use quick_xml::events::BytesText;

use crate::html::Reported;
use crate::swingbench::{document_xml, possible};
use analysis::check::{Carries, Check, Reached};
use analysis::{Finding, LimitAnswer};
use model::shown::shown;

/// What every file begins with.
pub const BEGINNING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plimsoll\"";

/// A limit or a demand, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) answer: LimitAnswer,
    /// Why, with its figures.
    pub(crate) because: String,
}

/// How many limits and demands of these runs are judged.
pub fn judged(reported: &[Reported<'_>]) -> usize {
    reported.iter().map(|one| cases(one).len()).sum()
}

/// Writes a suite for each run.
///
/// # Errors
/// If `out` fails.
pub fn write(reported: &[Reported<'_>], out: &mut dyn Write) -> io::Result<()> {
    document_xml(out, |xml| {
        xml.create_element("testsuites").with_attribute(("name", "plimsoll")).write_inner_content(|xml| {
            for one in reported {
                let run = one.run;
                let simulated = if run.target.is_simulated() { " (simulated)" } else { "" };
                let (cases, suite) = (cases(one), format!("{}{simulated}", shown(&run.name)));
                let count = |answer| cases.iter().filter(|case| case.answer == answer).count().to_string();
                let seconds = run.steps.iter().map(|step| step.window.duration_ns).sum::<u64>();
                let element = xml.create_element("testsuite").with_attributes([
                    ("name", &*possible(&suite)),
                    ("id", &*possible(&shown(&run.id))),
                    ("tests", &*cases.len().to_string()),
                    ("failures", &*count(LimitAnswer::No)),
                    ("errors", &*count(LimitAnswer::NoVerdict)),
                    ("time", &*format!("{:.3}", seconds as f64 / 1e9)),
                ]);
                element.write_inner_content(|xml| {
                    for Case { name, answer, because } in &cases {
                        let (name, because) = (possible(name), possible(because));
                        let element = xml
                            .create_element("testcase")
                            .with_attributes([("classname", &*possible(&suite)), ("name", &*name)]);
                        let problem = match answer {
                            LimitAnswer::Yes => {
                                element.write_inner_content(|xml| {
                                    xml.create_element("system-out").write_text_content(BytesText::new(&because))?;
                                    Ok(())
                                })?;
                                continue;
                            }
                            LimitAnswer::No => "failure",
                            LimitAnswer::NoVerdict => "error",
                        };
                        element.write_inner_content(|xml| {
                            let problem = xml.create_element(problem);
                            let first = because.lines().next().unwrap_or_default();
                            problem.with_attribute(("message", first)).write_text_content(BytesText::new(&because))?;
                            Ok(())
                        })?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        Ok(())
    })
}

pub(crate) fn cases(one: &Reported<'_>) -> Vec<Case> {
    let of_limits = one.findings.iter().filter_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(&verdict.limits),
        _ => None,
    });
    let of_limits = of_limits.flatten().map(|limit| Case {
        name: shown(&limit.target.to_string()).into_owned(),
        answer: limit.answer,
        because: shown(&limit.words()).trim().to_owned(),
    });
    let check = Check::of(one.run, one.findings);
    of_limits.chain(check.iter().flat_map(of_check)).collect()
}

/// All that was asked at the same time, and each kind with a limit by itself.
fn of_check(check: &Check) -> Vec<Case> {
    let answer = match check.answer {
        Carries::Yes => LimitAnswer::Yes,
        Carries::No(_) => LimitAnswer::No,
        Carries::Unknown(_) => LimitAnswer::NoVerdict,
    };
    let lines: Vec<String> =
        check.before.iter().cloned().chain(check.lines()).map(|line| shown(line.trim()).into_owned()).collect();
    let whole = Case {
        name: format!("{} at the same time", analysis::check::words(&check.demands)),
        answer,
        because: lines.join("\n"),
    };
    let of_kind = |reached: &Reached| {
        let (_, value) = reached.within.zip(reached.value)?;
        let answer = match (answer, reached.is_late()) {
            (LimitAnswer::NoVerdict, _) => LimitAnswer::NoVerdict,
            (_, true) => LimitAnswer::No,
            (_, false) => LimitAnswer::Yes,
        };
        Some(Case { name: reached.with_limit(), answer, because: format!("it took {value}") })
    };
    std::iter::once(whole).chain(check.kinds.iter().filter_map(of_kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::requests;

    fn text(run: &model::record::Run, limits: &[&str]) -> String {
        let limits: Vec<_> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let findings = analysis::analyse_limits(run, &limits);
        let mut out = Vec::new();
        write(&[Reported { run, findings: &findings }], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_limit_is_a_case_with_its_evidence() {
        let mut run = requests::open_loop();
        run.name = "night <&\"\u{1b}[2J".to_owned();
        let found = text(&run, &["p99=5ms", "p99=1us"]);
        assert!(found.starts_with(BEGINNING), "{found}");
        assert!(found.contains(r#"tests="2" failures="1" errors="0""#), "{found}");
        assert!(found.contains("&lt;&amp;") && !found.contains('\u{1b}'), "{found}");
        let mut reader = quick_xml::Reader::from_str(&found);
        let mut names = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Start(start) => {
                    names.push(start.name().0.to_owned());
                }
                _ => {}
            }
        }
        assert_eq!(names, ["testsuites", "testsuite", "testcase", "system-out", "testcase", "failure"]);
        assert_eq!(judged(&[Reported { run: &run, findings: &[] }]), 0);
    }
}
