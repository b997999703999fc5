//! Answers as JUnit's XML, which continuous integration reads: a test case for each limit, demand of a check and compared figure.
//!
//! The form has no schema of its own. This is what its readers agree on (Jenkins, GitLab): suites with `tests`, `failures`, `errors` and
//! `skipped`, cases with a `failure` for a no, an `error` for what has no verdict, and `skipped` for a figure of which nothing is shown.

use std::io::{self, Write};

use quick_xml::events::BytesText;

use crate::cases::{Answer, Case, Suite};
use crate::swingbench::{document_xml, possible};

/// What every file begins with.
pub const BEGINNING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plimsoll\"";

/// Writes suites.
///
/// # Errors
/// If `out` fails.
pub fn write(suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    document_xml(out, |xml| {
        xml.create_element("testsuites").with_attribute(("name", "plimsoll")).write_inner_content(|xml| {
            for suite in suites {
                let count = |answer| suite.count_of(answer).to_string();
                let mut element = xml.create_element("testsuite").with_attributes([
                    ("name", &*possible(&suite.name)),
                    ("id", &*possible(&suite.id)),
                    ("tests", &*suite.count().to_string()),
                    ("failures", &*count(Answer::Failed)),
                    ("errors", &*count(Answer::NoVerdict)),
                    ("skipped", &*count(Answer::NotShown)),
                ]);
                if let Some(seconds) = suite.seconds {
                    element = element.with_attribute(("time", &*format!("{seconds:.3}")));
                }
                element.write_inner_content(|xml| {
                    for Case { name, answer, because } in &suite.cases {
                        let (name, because) = (possible(name), possible(because));
                        let element = xml
                            .create_element("testcase")
                            .with_attributes([("classname", &*possible(&suite.name)), ("name", &*name)]);
                        let problem = match answer {
                            Answer::Passed => {
                                element.write_inner_content(|xml| {
                                    xml.create_element("system-out").write_text_content(BytesText::new(&because))?;
                                    Ok(())
                                })?;
                                continue;
                            }
                            Answer::Failed => "failure",
                            Answer::NoVerdict => "error",
                            Answer::NotShown => "skipped",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::Reported;
    use model::record::sample::requests;

    fn text(run: &model::record::Run, limits: &[&str]) -> String {
        let limits: Vec<_> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let findings = analysis::analyse_limits(run, &limits);
        let mut out = Vec::new();
        write(&[Suite::of_run(&Reported::new(run, &findings))], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_limit_is_a_case_with_its_evidence() {
        let mut run = requests::open_loop();
        run.name = "night <&\"\u{1b}[2J".to_owned();
        let found = text(&run, &["p99=5ms", "p99=1us"]);
        assert!(found.starts_with(BEGINNING), "{found}");
        assert!(found.contains(r#"tests="2" failures="1" errors="0" skipped="0""#), "{found}");
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
        assert_eq!(Suite::of_run(&Reported::new(&run, &[])).count(), 0);
    }
}
