//! What an experiment found, reported from its folder: as text, as a document, as the page.

use std::io::Write;
use std::path::Path;

use super::asked::{self, Asked, FileArgs};
use super::folder::{self, PAGE};
use super::turns::Came;
use crate::cli::arguments::Format;
use crate::cli::exit::{Exit, Failure};
use crate::cli::judged_files::JudgedArgs;
use crate::cli::page_file::{self, PageArgs};
use crate::cli::say;
use crate::plan::experiment::Turn;
use analysis::{ExperimentFound, LimitAnswer};
use model::record::store::Store;
use report::html::{self, Kept};
use report::{self, NotMeasured, Suite};

/// Why a turn has no run where nothing else is known.
const NOT_YET: &str = "not yet";
/// Why those have none that were left out.
const LEFT_OUT: &str = "left out: this or one before it would have ended after the budget";

/// `plimsoll experiment report`.
pub(super) fn report(
    file: &FileArgs,
    store: &Store,
    (page, judged): (&PageArgs, &JudgedArgs),
    format: Format,
) -> Result<Exit, Failure> {
    page.check(format)?;
    if page.is_picture() {
        return Err(no_picture());
    }
    let asked = asked::read(&file.file)?;
    let path = asked.folder(store.path());
    folder::check(&asked, &path, false)?;
    let (found, missing) = look(&asked, &path, &[], NOT_YET)?;
    if found.cases.is_empty() {
        let failure = Failure::new(format_args!("`{}` has no whole run of this experiment", path.display()));
        return Err(failure.with_hint(format!("measure it: `plimsoll experiment run {}`", asked.file.display())));
    }
    let suites = [Suite::of_experiment(&found, &missing)];
    judged.write(&suites, |out| report::markdown::write_suites(&suites, out))?;
    if judged.is_github() {
        page.write(|| page_of(&found, &missing), || Err(no_picture()))?;
        judged.annotate(&suites)?;
    } else {
        show(&found, &missing, page, format)?;
    }
    Ok(Exit::Done)
}

/// Writes the page into the folder, and the report. Returns the worst answer to any limit.
pub(super) fn write(
    asked: &Asked,
    path: &Path,
    came: &Came,
    page: &PageArgs,
    format: Format,
) -> Result<LimitAnswer, Failure> {
    let failed: Vec<NotMeasured> = came
        .failed
        .iter()
        .map(|(turn, why)| NotMeasured {
            step: asked.plan.steps[turn.step].name(),
            round: turn.round,
            why: why.clone(),
        })
        .collect();
    let others = if came.is_out_of_time { LEFT_OUT } else { NOT_YET };
    let (found, missing) = look(asked, path, &failed, others)?;
    if found.cases.is_empty() {
        return Ok(LimitAnswer::Yes);
    }
    let file = path.join(PAGE);
    page_file::replace(&file, &page_of(&found, &missing)?)?;
    let shown = show(&found, &missing, page, format);
    say::line(format_args!("\nKept in `{}`. Page: `{}`", path.display(), file.display()));
    match shown {
        // Nobody reads it, but it is kept.
        Ok(()) | Err(Failure::PipeClosed) => Ok(found.verdict()),
        Err(failure) => Err(failure),
    }
}

/// What is found, and what is missing: for `others` where no turn failed.
fn look(
    asked: &Asked,
    path: &Path,
    failed: &[NotMeasured],
    others: &str,
) -> Result<(ExperimentFound, Vec<NotMeasured>), Failure> {
    let runs = folder::runs(asked, path)?;
    let limits = asked.limits();
    let is_done = |turn: &Turn| runs.iter().any(|(done, _)| done == turn);
    let missing = asked.plan.turns.iter().filter(|turn| !is_done(turn)).map(|turn| {
        let (step, round) = (asked.plan.steps[turn.step].name(), turn.round);
        let known = failed.iter().find(|failed| failed.step == step && failed.round == round);
        let why = known.map_or_else(|| others.to_owned(), |failed| failed.why.clone());
        NotMeasured { step, round, why }
    });
    let missing = missing.collect();
    let title = asked.plan.title.clone().unwrap_or_else(|| asked.name.clone());
    let runs = runs.into_iter().map(|(turn, run)| (run, limits[turn.step].clone())).collect();
    Ok((ExperimentFound::of(title, asked.plan.turns.len(), runs), missing))
}

fn show(found: &ExperimentFound, missing: &[NotMeasured], page: &PageArgs, format: Format) -> Result<(), Failure> {
    page.write(|| page_of(found, missing), || Err(no_picture()))?;
    match format {
        Format::Json => say::json(&super::document(found, missing)),
        Format::Text if !page.has_text() => Ok(()),
        Format::Text => {
            let mut out = say::output();
            report::experiment(&mut out, found, missing, say::width())?;
            out.flush()?;
            Ok(())
        }
    }
}

fn page_of(found: &ExperimentFound, missing: &[NotMeasured]) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    html::experiment(&mut page, found, missing, &Kept::File)?;
    Ok(page)
}

pub(super) fn no_picture() -> Failure {
    let failure = Failure::new("what an experiment found is written as a page, not as one picture");
    failure.with_hint("name it `-o FILE.html`; `plimsoll report RUN -o FILE.png` draws one of its runs".to_owned())
}
