//! `plimsoll slob drop` on a server.

use std::io::Write;
use std::path::Path;

use super::Reached;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::cli::slob::drop::confirm;
use crate::targets::postgres::cluster;
use crate::targets::postgres::data::drop;
use crate::units::Bytes;

/// What is to be done without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::slob) enum Asking {
    /// Only tell.
    DryRun,
    /// Ask first.
    Ask,
    /// The user has said yes already.
    Yes,
}

/// Removes the tables of a data set from somebody's server.
pub(in crate::cli::slob) fn tables(
    reached: &Reached<'_>,
    asking: Asking,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let access = reached.access();
    let plan = drop::plan(&access)?;
    let what = format!(
        "{} tables and procedures, {}, in the schema `{}` on `{}`",
        plan.objects.len(),
        Bytes(plan.bytes),
        access.namespace,
        access.node_name()
    );
    let listed = plan.objects.iter().map(|object| (object.bytes, object.name.clone())).collect::<Vec<_>>();
    if !go_on(asking, &listed, &what)? {
        return Ok(Exit::Done);
    }
    let report = drop::run(plan, interrupt.flag())?;
    let schema = if report.removed_namespace { ", and the schema itself" } else { "" };
    say::line(format_args!("removed {what}{schema}"));
    Ok(Exit::Done)
}

/// Removes a private cluster with everything in it.
pub(in crate::cli::slob) fn private_cluster(
    directory: &Path,
    asking: Asking,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let Some(found) = cluster::inspect(directory)? else {
        let failure = Failure::new(format_args!("there is no private cluster in `{}`", directory.display()));
        return Err(failure.with_hint("name the directory that `plimsoll slob setup` was given".to_owned()));
    };
    let listed: Vec<(u64, String)> =
        found.files.iter().map(|file| (file.bytes.0, file.path.display().to_string())).collect();
    let bytes = Bytes(listed.iter().map(|(bytes, _)| bytes).sum());
    let what = format!("the private cluster in `{}`, {bytes}", directory.display());
    if !go_on(asking, &listed, &what)? {
        return Ok(Exit::Done);
    }
    cluster::remove(directory, &|words| say::line(words), interrupt.flag())?;
    say::line(format_args!("removed {what}"));
    Ok(Exit::Done)
}

/// Tells what would go, or asks; whether it is to be done.
fn go_on(asking: Asking, listed: &[(u64, String)], what: &str) -> Result<bool, Failure> {
    match asking {
        Asking::DryRun => {
            let mut out = say::output();
            for (bytes, name) in listed {
                writeln!(out, "{:>10}  {name}", Bytes(*bytes).to_string())?;
            }
            out.flush()?;
            say::line(format_args!("would remove {what}"));
            Ok(false)
        }
        Asking::Ask => confirm(what).map(|()| true),
        Asking::Yes => Ok(true),
    }
}
