//! Which rights the user has, found out by trying.

use std::collections::{BTreeMap, BTreeSet};

use super::DoctorSession;
use super::questions::{USABLE_OBJECTS, try_view};
use crate::driver::Row;
use crate::sql::{self, Grant, Need, PUBLIC_PACKAGES, grants};
use measure::doctor::Check;
use targets::TargetError;

/// What has a right to be tried for it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trial {
    /// This view, or table of Statspack's, is read.
    View(String),
    /// This object of `SYS`, or Statspack's package, is among those that can be used.
    Object(String),
    /// This system privilege is among those of the session.
    Privilege(String),
    /// There is room in the tablespace.
    Quota,
}

impl Trial {
    /// Of the statement that gives the right.
    fn of(statement: &str) -> Option<Self> {
        if statement.starts_with("ALTER USER ") {
            return Some(Self::Quota);
        }
        let what = statement.strip_prefix("GRANT ")?.rsplit_once(" TO ")?.0;
        if let Some((_, name)) = what.split_once(" ON PERFSTAT.") {
            let is_table = name.starts_with("STATS$");
            return Some(if is_table {
                Self::View(format!("perfstat.{}", name.to_lowercase()))
            } else {
                Self::Object(name.to_owned())
            });
        }
        Some(match what.split_once(" ON SYS.") {
            Some((_, name)) if name.starts_with("V_$") || name.starts_with("GV_$") => {
                Self::View(name.replacen("V_$", "V$", 1).to_lowercase())
            }
            Some((_, name)) => Self::Object(name.to_owned()),
            None => Self::Privilege(what.to_owned()),
        })
    }
}

/// What decides whether a right is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    /// Whether data are there, so that none need be made.
    pub(super) has_data: bool,
    /// Whether the session is in a pluggable database.
    pub(super) is_pluggable: bool,
    /// Whether there are several instances, where that is known.
    pub(super) is_cluster: Option<bool>,
}

/// Tries every right, and says what is missing.
///
/// # Errors
/// When the database is gone.
pub(super) fn rights(
    asked: &mut DoctorSession,
    user: &str,
    tablespace: Option<&str>,
    circumstances: Circumstances,
) -> Result<Vec<Check>, TargetError> {
    let one = |row: &Row| row.get::<String>(0);
    let privileges: Option<BTreeSet<String>> =
        asked.rows("list the privileges", sql::PRIVILEGES, one)?.map(|all| all.into_iter().collect());
    let objects: Option<BTreeSet<String>> =
        asked.rows("list usable objects", USABLE_OBJECTS, one)?.map(|all| all.into_iter().collect());
    let quota = match tablespace {
        Some(name) => asked.quota(name)?,
        None => None,
    };
    let unlimited = privileges.as_ref().map(|all| all.contains("UNLIMITED TABLESPACE"));
    let mut missing: BTreeMap<Need, Vec<Grant>> = BTreeMap::new();
    let mut count: BTreeMap<Need, usize> = BTreeMap::new();
    let mut unknown: BTreeMap<Need, usize> = BTreeMap::new();
    for grant in grants(user, tablespace.unwrap_or("TABLESPACE")) {
        let Some(trial) = Trial::of(&grant.statement) else { continue };
        let (name, granted) = match &trial {
            Trial::View(view) => (view.clone(), asked.may_read(&try_view(view))?),
            Trial::Object(name) => (name.clone(), objects.as_ref().map(|all| all.contains(name))),
            Trial::Privilege(name) => (name.clone(), privileges.as_ref().map(|all| all.contains(name))),
            Trial::Quota => ("quota".to_owned(), if unlimited == Some(true) { unlimited } else { quota }),
        };
        let word = granted.map_or("not known", |granted| if granted { "yes" } else { "no" });
        asked.note(&format!("right.{name}"), word);
        *count.entry(grant.need).or_default() += 1;
        match granted {
            Some(true) => {}
            Some(false) => missing.entry(grant.need).or_default().push(grant),
            None => *unknown.entry(grant.need).or_default() += 1,
        }
    }
    let mut checks = Vec::new();
    for (need, count) in count {
        let missing = missing.get(&need).map_or(&[][..], Vec::as_slice);
        let unknown = unknown.get(&need).copied().unwrap_or(0);
        checks.extend(judge(need, Tried { count, unknown, missing }, circumstances));
    }
    let denied: Vec<&str> = PUBLIC_PACKAGES
        .iter()
        .filter(|(package, _)| objects.as_ref().is_some_and(|all| !all.contains(package.trim_start_matches("SYS."))))
        .map(|(package, _)| *package)
        .collect();
    if !denied.is_empty() {
        let (names, user) = (denied.join(", "), sql::quoted(user));
        checks.push(Check::problem(
            "right to packages",
            format!("{names} may not be used: PUBLIC, which has the right by default, was denied it"),
            format!("GRANT EXECUTE ON {} TO {user}", denied.join(&format!(" TO {user}; GRANT EXECUTE ON "))),
        ));
    }
    Ok(checks)
}

/// What came of trying the rights for one need.
#[derive(Debug, Clone, Copy)]
struct Tried<'a> {
    /// How many there are.
    count: usize,
    /// Of how many it is not known whether they are there.
    unknown: usize,
    /// Those that are not there.
    missing: &'a [Grant],
}

/// What is said of the rights for one need.
fn judge(need: Need, tried: Tried<'_>, circumstances: Circumstances) -> Option<Check> {
    let Tried { count, unknown, missing } = tried;
    let Circumstances { has_data, is_pluggable, is_cluster } = circumstances;
    let (topic, is_needed, what_for) = match need {
        Need::Load => ("right to connect", true, ""),
        Need::Setup => ("rights for set-up", !has_data, ""),
        Need::Orders => ("rights for order entry", false, "needed only to make data of order entry"),
        Need::Figures => ("rights to views", true, ""),
        Need::Container => ("rights to views of the container", is_pluggable, ""),
        Need::Cluster => ("rights to views of the cluster", is_cluster == Some(true), ""),
        Need::ClusterContainer => {
            ("rights to views of the container on all instances", is_pluggable && is_cluster == Some(true), "")
        }
        Need::Awr => ("rights for AWR", false, "needed only for AWR reports, for which a licence is needed as well"),
        Need::Statspack => ("rights for Statspack", false, "needed only for Statspack reports"),
    };
    let is_needless = match need {
        Need::Container => !is_pluggable,
        Need::Cluster => is_cluster == Some(false),
        Need::ClusterContainer => !is_pluggable || is_cluster == Some(false),
        Need::Load | Need::Setup | Need::Orders | Need::Figures | Need::Awr | Need::Statspack => false,
    };
    if is_needless {
        return None;
    }
    if missing.is_empty() && unknown > 0 {
        let finding = format!("{unknown} of {count} not known, since the server did not say");
        let advice = "the file has the server's answer";
        return Some(if is_needed { Check::advice(topic, finding, advice) } else { Check::good(topic, finding) });
    }
    if missing.is_empty() {
        return Some(Check::good(
            topic,
            if count == 1 { "there".to_owned() } else { format!("all {count} are there") },
        ));
    }
    let lost: Vec<String> = missing.iter().map(|grant| format!("{} ({})", bare(&grant.statement), grant.why)).collect();
    let finding = format!("{} of {count} missing: {}", missing.len(), lost.join("; "));
    if !is_needed {
        let what_for = match need {
            Need::Setup => "only needed to create data, which is there",
            Need::Cluster | Need::ClusterContainer => "needed only in a cluster; whether this is one is not known",
            _ => what_for,
        };
        let lost = if count == 1 { "missing".to_owned() } else { format!("{} of {count} missing", missing.len()) };
        return Some(Check::good(topic, format!("{lost}; {what_for}")));
    }
    let statements: Vec<&str> = missing.iter().map(|grant| grant.statement.as_str()).collect();
    let advice = format!("as a DBA, one by one: {}", statements.join("; "));
    Some(match need {
        Need::Load | Need::Setup => Check::problem(topic, finding, advice),
        _ => Check::advice(topic, finding, advice),
    })
}

/// What a statement grants.
fn bare(statement: &str) -> &str {
    let what =
        statement.strip_prefix("GRANT ").and_then(|rest| rest.rsplit_once(" TO ")).map_or(statement, |(what, _)| what);
    match what.rsplit_once('.') {
        _ if statement.starts_with("ALTER USER ") => "quota",
        Some((_, name)) => name,
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::doctor::Status;

    #[test]
    fn every_grant_can_be_tried() {
        for grant in grants("U", "T") {
            let trial = Trial::of(&grant.statement).unwrap_or_else(|| panic!("{}", grant.statement));
            match trial {
                Trial::View(view) => {
                    assert!(["v$", "gv$", "perfstat.stats$"].iter().any(|begin| view.starts_with(begin)), "{view}");
                }
                Trial::Object(name) => assert!(USABLE_OBJECTS.contains(&format!("'{name}'")), "{name}"),
                Trial::Privilege(_) | Trial::Quota => {}
            }
        }
        for (package, _) in PUBLIC_PACKAGES {
            assert!(USABLE_OBJECTS.contains(&format!("'{}'", package.trim_start_matches("SYS."))), "{package}");
        }
        assert_eq!(Trial::of("GRANT SELECT ON SYS.GV_$CON_X TO \"U\""), Some(Trial::View("gv$con_x".to_owned())));
    }

    #[test]
    fn only_a_right_that_is_needed_is_missed() {
        let alone = Circumstances { has_data: true, is_pluggable: false, is_cluster: Some(false) };
        let all = grants("U", "T");
        let of = |need| all.iter().filter(|grant| grant.need == need).cloned().collect::<Vec<_>>();
        let status = |need, circumstances| {
            judge(need, Tried { count: 9, unknown: 0, missing: &of(need) }, circumstances).map(|check| check.status)
        };
        assert_eq!(status(Need::Figures, alone), Some(Status::Advice));
        assert_eq!(status(Need::Setup, alone), Some(Status::Good));
        assert_eq!(status(Need::Setup, Circumstances { has_data: false, ..alone }), Some(Status::Problem));
        assert_eq!(status(Need::Container, alone), None);
        assert_eq!(status(Need::Container, Circumstances { is_pluggable: true, ..alone }), Some(Status::Advice));
        assert_eq!(status(Need::Cluster, alone), None);
        assert_eq!(status(Need::Cluster, Circumstances { is_cluster: None, ..alone }), Some(Status::Good));
        assert_eq!(status(Need::Awr, alone), Some(Status::Good));
        let check =
            judge(Need::Figures, Tried { count: 17, unknown: 0, missing: &of(Need::Figures)[..1] }, alone).unwrap();
        assert!(check.finding.contains("1 of 17 missing: V_$SYSSTAT (logical"), "{check:?}");
        // What nobody could find out is not called there.
        for (need, expected) in [(Need::Load, Status::Advice), (Need::Awr, Status::Good)] {
            let check = judge(need, Tried { count: 1, unknown: 1, missing: &[] }, alone).unwrap();
            assert!(check.status == expected && check.finding.contains("not known"), "{check:?}");
        }
        assert_eq!(check.advice.as_deref(), Some("as a DBA, one by one: GRANT SELECT ON SYS.V_$SYSSTAT TO \"U\""));
    }
}
