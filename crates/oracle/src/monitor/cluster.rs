//! A cluster over one address: its instances are read together, each as a server of its own.

use std::collections::BTreeMap;

use super::reading::InstanceReading;
use super::views::{self, Form, Part, Reach, Row, Scope, Whose};
use crate::connect::Connected;
use ::sql::ServerError;
use ::sql::{Counted, Member};

/// How an instance is watched that may be one of several.
#[derive(Debug)]
pub(super) enum Cluster {
    /// By itself, and what to know about that.
    Alone(Option<String>),
    /// With all others, by these forms of what is known of one.
    All(Vec<(Part, Form)>),
}

/// What is said to somebody who has the figures of one instance of a cluster.
const LISTENERS: &str =
    "name a listener of each instance, and use `--per-node`, to have those of the others beside them";
/// What is done meanwhile.
const DOING: &str = "find out which instances there are";

/// Finds out whether `instance` is one of a cluster whose other instances show the same over this connection. `found` is how it is
/// read by itself.
///
/// # Errors
/// Any error but that something is refused.
pub(super) fn find(
    connected: &Connected,
    (instance, scope): (&str, Scope),
    found: &[(Part, Form)],
    user: &str,
    whose: &Whose,
) -> Result<Cluster, ServerError> {
    let is_parallel = connected.first("find out which instance it is", "SELECT parallel FROM v$instance", &[], |row| {
        let parallel: Option<String> = row.get(0)?;
        Ok(parallel.as_deref() == Some("YES"))
    });
    let is_unknown = match is_parallel {
        Ok(Some(false)) => return Ok(Cluster::Alone(None)),
        Ok(_) => None,
        Err(error @ ServerError::Refused { .. }) => Some(error),
        Err(error) => return Err(error),
    };
    let try_form = |form: &Form| match form.read(connected, DOING, whose) {
        Ok(rows) => Ok(Ok(rows.len())),
        Err(error @ ServerError::Refused { .. }) => Ok(Err((form.view.clone(), error))),
        Err(error) => Err(error),
    };
    let instances = try_form(&Form::instances())?;
    match (&is_unknown, &instances) {
        (Some(error), Err(_)) => {
            let lack = format!("whether the instance {instance} is one of a cluster is not known");
            return Ok(Cluster::Alone(Some(views::missing(&lack, "v$instance", user, error))));
        }
        (Some(_), Ok(0 | 1)) => return Ok(Cluster::Alone(None)),
        _ => {}
    }
    let mut refused: Vec<(String, ServerError)> = instances.err().into_iter().collect();
    let mut all = Vec::new();
    for (part, form) in found {
        let same = part.forms(scope, Reach::One).iter().position(|one| one == form);
        let Some(form) = same.and_then(|at| part.forms(scope, Reach::All).into_iter().nth(at)) else {
            continue;
        };
        match try_form(&form)? {
            Ok(_) => all.push((*part, form)),
            Err(error) => refused.push(error),
        }
    }
    if refused.is_empty() {
        return Ok(Cluster::All(all));
    }
    let why = match refused.iter().find(|(_, error)| !views::is_not_shown(error)) {
        Some((view, error)) => format!("`{view}` shows nothing ({error})"),
        None => {
            let mut grants: Vec<String> = refused.iter().map(|(view, _)| views::grant(view, user)).collect();
            if refused.iter().any(|(view, _)| view == "gv$session_event") {
                grants.push(views::grant("gv$session", user));
            }
            grants.sort();
            grants.dedup();
            format!("`{}` would show all of them", grants.join("; "))
        }
    };
    Ok(Cluster::Alone(Some(format!(
        "these are figures of the instance {instance} alone, which is one of a cluster: {why}; or {LISTENERS}"
    ))))
}

/// What each instance counted, by the rows that `named` has of instances and those that the parts were answered with. One that shows
/// nothing of the first part is not there: it has gone meanwhile, or the pluggable database is not open on it. That nobody of ours
/// has waited there says nothing of the kind.
pub(super) fn members(
    scope: Scope,
    named: &[Row],
    answers: Vec<(Part, &Form, Vec<Row>)>,
) -> Vec<Counted<InstanceReading>> {
    let mut named: Vec<&Row> = named.iter().collect();
    named.sort_by_key(|row| row.instance);
    let mut readings: Vec<(&Row, InstanceReading)> =
        named.into_iter().map(|row| (row, InstanceReading::new(scope))).collect();
    for (at, (part, form, rows)) in answers.into_iter().enumerate() {
        let mut of_each: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        for row in rows {
            of_each.entry(row.instance).or_default().push(row);
        }
        if at == 0 && part != Part::Ours {
            readings.retain(|(row, _)| of_each.contains_key(&row.instance));
        }
        for (row, reading) in &mut readings {
            reading.take(part, form, of_each.get(&row.instance).map_or(&[], Vec::as_slice));
        }
    }
    let member = |(row, reading): (&Row, InstanceReading)| Counted {
        member: Some(Member { name: row.name.clone(), started: row.class.clone() }),
        reading,
    };
    readings.into_iter().map(member).collect()
}
