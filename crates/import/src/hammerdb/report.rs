//! The report of HammerDB's extended time profile, which it writes into a file of its own.

use super::profile::{self, Extended};
use crate::console::plain;
use crate::draft;
use crate::numbers::duration_ns;
use crate::unix_date;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::ReportedFigure;
use model::record::Workload;

const TITLE: &str = "Hammerdb Time Profile Report";

/// Whether its first line is the title of such a report.
pub(crate) fn recognises(head: &str) -> bool {
    head.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.contains(TITLE))
}

/// One report: what the summary over all virtual users says.
#[derive(Debug, Default)]
struct Report {
    database: String,
    at: Option<Began>,
    users: Option<u32>,
    elapsed_ns: Option<f64>,
    procedures: Vec<Extended>,
    in_summary: bool,
    /// The virtual user that is reported on, before the summary.
    user: Option<u32>,
    of_users: Vec<ReportedFigure>,
}

/// The reports in it: the summary as operations, and what each virtual user did by the names of the report.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut reports: Vec<Report> = Vec::new();
    for (line, text) in source.lines() {
        let text = plain(text);
        let text = text.trim();
        if let Some((database, time)) = text.split_once(TITLE) {
            let at = unix_date::parse(time.trim().trim_start_matches('@'));
            reports.push(Report { database: database.trim().to_owned(), at, ..Report::default() });
            continue;
        }
        let Some(report) = reports.last_mut() else { continue };
        if let Some(rest) = text.strip_prefix(">>>>>") {
            report.heading(rest.trim());
        } else if !text.is_empty() && !text.starts_with('+') {
            let understood = report.procedures.last_mut().is_some_and(|procedure| procedure.line(text));
            if report.in_summary && !understood {
                notes.not_understood(line, "figures of a procedure were expected");
            }
        }
    }
    if reports.is_empty() {
        return Err(ImportError::no_result(source, "it holds no time profile"));
    }
    reports.into_iter().map(|report| report.draft(source)).collect()
}

impl Report {
    fn heading(&mut self, text: &str) {
        if let Some(procedure) = text.strip_prefix("PROC:") {
            self.procedures.push(Extended::of(procedure));
            return;
        }
        self.end_user();
        self.in_summary = text.starts_with("SUMMARY OF");
        if let Some(rest) = text.strip_prefix("VIRTUAL USER ") {
            self.user = rest.split_whitespace().next().and_then(|user| user.parse().ok());
            let elapsed_ms = text.rsplit(':').next().and_then(duration_ns).map(|ns| ns / 1e6);
            let elapsed = self.user.zip(elapsed_ms);
            self.of_users.extend(
                elapsed.map(|(user, ms)| draft::reported_figure("client", format!("vu{user} elapsed"), "ms", ms)),
            );
        }
        if self.in_summary {
            self.users = text.split_whitespace().nth(2).and_then(|users| users.parse().ok());
            self.elapsed_ns = text.rsplit(':').next().and_then(duration_ns);
        }
    }

    /// Keeps the figures of the virtual user that was reported on.
    fn end_user(&mut self) {
        let procedures = std::mem::take(&mut self.procedures);
        let Some(user) = self.user.take() else { return };
        self.of_users.extend(procedures.iter().flat_map(|procedure| procedure.of_user(user)));
    }

    fn draft(self, source: &Source) -> Result<Draft, ImportError> {
        if !self.in_summary {
            return Err(ImportError::damaged(source, None, "the time profile ends before its summary"));
        }
        let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{} time profile", self.database));
        draft.target.kind = super::target_kind(&self.database);
        draft.ended = self.at.map(Began::timestamp);
        draft.notes.push("Calls of the ramp-up are among those of the time profile.".to_owned());
        let elapsed_ns = self.elapsed_ns.and_then(draft::whole).unwrap_or(0);
        let before = jiff::SignedDuration::from_nanos(i64::try_from(elapsed_ns).unwrap_or(0));
        draft.began = self.at.and_then(|at| {
            let began = model::record::Timestamp(at.timestamp().0.checked_sub(before).ok()?);
            Some(if matches!(at, Began::Utc(_)) { Began::Utc(began) } else { Began::Wall(began) })
        });
        let label = self.users.map_or_else(|| "all".to_owned(), |users| format!("vu{users}"));
        let mut step = draft::step(0, label, elapsed_ns);
        step.load.sessions = self.users;
        for procedure in &self.procedures {
            let Some(response) = procedure.histogram() else { continue };
            step.reported.extend(procedure.figures());
            step.operations.push(profile::operation(&procedure.procedure, response));
        }
        step.reported.extend(self.of_users);
        if step.operations.is_empty() {
            return Err(ImportError::damaged(source, None, "the summary of the time profile has no procedures"));
        }
        draft.steps.push(step);
        Ok(draft)
    }
}
