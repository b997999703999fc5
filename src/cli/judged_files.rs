//! What was judged, for programs that run tests and places that review a change: JUnit's XML, a summary in Markdown, annotations.

use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use super::{results, say};
use report::Suite;

/// Where judgements go.
#[derive(Debug, Args)]
pub(super) struct JudgedArgs {
    /// Also write JUnit XML: a test case for each limit, demand of a check, and compared figure
    ///
    /// A missed limit or a worse figure is a failure, and what has no verdict an error.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,

    /// Also write a summary in Markdown, in at most 20 lines for each run or pair
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    markdown: Option<PathBuf>,

    /// Write limits, demands of a check and compared figures as annotations of a GitHub workflow instead
    ///
    /// A missed limit or a worse figure is an error, and what has no verdict a warning.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "text"])]
    github: bool,
}

impl JudgedArgs {
    /// Whether annotations take the place of text.
    pub(super) fn is_github(&self) -> bool {
        self.github
    }

    /// Writes the files that flags name; the summary is `summary`'s.
    pub(super) fn write(
        &self,
        suites: &[Suite],
        summary: impl Fn(&mut dyn std::io::Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.junit {
            has_cases("--junit", suites)?;
            results::write_file(file, report::junit::BEGINNING, "name another file: `--junit FILE`", |out| {
                report::junit::write(suites, out)
            })?;
        }
        if let Some(file) = &self.markdown {
            let hint = "name another file: `--markdown FILE`";
            results::write_file(file, report::markdown::BEGINNING, hint, |out| summary(out))?;
        }
        Ok(())
    }

    /// Writes the annotations to standard output.
    pub(super) fn annotate(&self, suites: &[Suite]) -> Result<(), Failure> {
        has_cases("--github", suites)?;
        report::markdown::annotations(suites, &mut say::output())?;
        Ok(())
    }
}

/// What shows limits and has none would look like success, whatever happened.
fn has_cases(flag: &str, suites: &[Suite]) -> Result<(), Failure> {
    if suites.iter().all(|suite| suite.count() == 0) {
        let failure =
            Failure::new(format_args!("`{flag}` has nothing to write: no limit was requested, and no check made"));
        return Err(failure.with_hint("name a limit: `--limit p99=5ms`".to_owned()));
    }
    Ok(())
}
