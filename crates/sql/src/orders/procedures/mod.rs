//! Procedures that do transactions: made beside the data that they work on, marked as ours, and removed with these.

use std::sync::atomic::AtomicBool;

use super::OrdersDialect;
use super::descriptor::OrdersData;
use super::load::procedure::{MARK, Procedure};
use crate::data::access::Access;
use crate::data::catalog;
use crate::data::streams::Halt;
use targets::TargetError;

/// Something that has the name of one of our procedures.
#[derive(Debug, Clone, PartialEq, Eq)]
struct There {
    /// Its bare name.
    name: String,
    /// How it is named where it is dropped.
    reference: String,
    /// What is said of it.
    mark: Option<String>,
}

impl There {
    /// Whether it is ours.
    fn is_ours(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.starts_with(MARK))
    }
}

/// What there is by the names of our procedures.
fn all<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<There>, TargetError> {
    let rows = D::ask(session, "look for procedures", &D::procedures_there(namespace), Halt::NEVER)?;
    let there = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        let (name, reference) = (row.next()??, row.next()??);
        Some(There { name, reference, mark: row.next().flatten() })
    };
    Ok(rows.into_iter().filter_map(there).collect())
}

fn ours<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<There>, TargetError> {
    Ok(all::<D>(session, namespace)?.into_iter().filter(There::is_ours).collect())
}

/// Bare names of those of our procedures that are there.
///
/// # Errors
/// When the server cannot be asked.
pub fn names_of_ours<D: OrdersDialect>(
    session: &mut D::Session<'_>,
    namespace: &str,
) -> Result<Vec<String>, TargetError> {
    Ok(ours::<D>(session, namespace)?.into_iter().map(|there| there.name).collect())
}

/// Statements that drop those of our procedures that are there.
///
/// # Errors
/// When the server cannot be asked.
pub fn drops<D: OrdersDialect>(session: &mut D::Session<'_>, namespace: &str) -> Result<Vec<String>, TargetError> {
    Ok(ours::<D>(session, namespace)?.iter().map(|there| drop_of(&there.reference)).collect())
}

fn drop_of(reference: &str) -> String {
    format!("DROP PROCEDURE {reference}")
}

/// Makes the procedures that are missing or of another version, beside data that are whole. Says which.
///
/// # Errors
/// When something of the same name is not ours, or the right to make procedures is missing.
pub fn install<D: OrdersDialect>(access: Access<'_, D>, stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
    let mut session = D::open(access)?;
    if missing(access, &mut session)?.is_empty() {
        refuse_broken(access, &mut session)?;
        return Ok(Vec::new());
    }
    catalog::lock(access, &mut session)?;
    // Somebody else may have made them just now, or have begun to remove the data.
    catalog::whole(access, catalog::find::<D, OrdersData>(&access)?)?;
    let mut made = Vec::new();
    for (procedure, old) in missing(access, &mut session)? {
        let doing = format!("make the procedure `{}`", procedure.name);
        for statement in old.iter().map(|old| drop_of(&old.reference)).chain([procedure.text]) {
            D::execute(&mut session, &doing, &statement, Halt::on(stop))?;
        }
        made.push(procedure.name);
    }
    refuse_broken(access, &mut session)?;
    Ok(made)
}

/// Refuses procedures that are there and that the server cannot execute.
fn refuse_broken<D: OrdersDialect>(access: Access<'_, D>, session: &mut D::Session<'_>) -> Result<(), TargetError> {
    let Some(question) = D::broken_procedures() else { return Ok(()) };
    let rows = D::ask(session, "look at the procedures", &question, Halt::NEVER)?;
    let Some(row) = rows.into_iter().next() else { return Ok(()) };
    let mut words = row.into_iter().map(Option::unwrap_or_default);
    let (name, why) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let what = format!("the procedure `{name}` cannot be executed on `{}`: {}", access.node_name(), why.trim());
    Err(access.unfit(what, "send each statement by itself: `--send statement`"))
}

/// The procedures that are not there as they should be, each with what is there of another version.
fn missing<D: OrdersDialect>(
    access: Access<'_, D>,
    session: &mut D::Session<'_>,
) -> Result<Vec<(Procedure, Option<There>)>, TargetError> {
    let mut there = all::<D>(session, access.namespace)?;
    if let Some(foreign) = there.iter().find(|there| !there.is_ours()) {
        let what = format!("{} holds `{}`, which Plimsoll did not make", access.place(), foreign.name);
        let hint = "rename it, or send each statement by itself: `--send statement`";
        return Err(access.unfit(what, hint));
    }
    let mut missing = Vec::new();
    for procedure in Procedure::all::<D>(access.namespace) {
        let place = there.iter().position(|there| there.name == procedure.name);
        let old = place.map(|place| there.swap_remove(place));
        if old.as_ref().is_none_or(|old| old.mark.as_ref() != Some(&procedure.mark)) {
            missing.push((procedure, old));
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests;
