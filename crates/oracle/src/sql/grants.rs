//! What a user needs, and nothing else: no role, above all not that of a DBA, and no right to make procedures but for order entry. Views are granted
//! directly, since a role does not count everywhere.

use super::names::quoted;

/// What a right is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Without it nothing can be done.
    Load,
    /// Only for data that set-up makes.
    Setup,
    /// Only for order entry that set-up makes.
    Orders,
    /// Without it figures of the server are unknown; the load itself does not need it.
    Figures,
    /// Figures of a pluggable database by itself.
    Container,
    /// Figures of every instance of a cluster, over one address.
    Cluster,
    /// The same of a pluggable database.
    ClusterContainer,
    /// Only with an AWR report, which needs a licence.
    Awr,
    /// Only with a Statspack report.
    Statspack,
}

/// A right, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What it is for.
    pub need: Need,
    /// The statement, without an end.
    pub statement: String,
    /// What would be missing without it.
    pub why: &'static str,
}

/// Views by the names under which they are granted, and what is read from each. Those of clusters and containers have the same
/// names with `GV_$` and `V_$CON_`.
const VIEWS: &[(&str, &str)] = &[
    ("SYSSTAT", "logical and physical reads, writes, redo, commits and executions"),
    ("SYSTEM_EVENT", "waits and their time, of sessions and of the server's own processes"),
    ("EVENT_HISTOGRAM_MICRO", "histograms of waits"),
    ("SYS_TIME_MODEL", "DB time, and processor time of sessions and of the server's own processes"),
    ("OSSTAT", "how busy the processors of the machine are"),
    ("IOSTAT_FUNCTION", "who reads and writes"),
    ("SESSION_EVENT", "whether our sessions read single blocks"),
    ("SESSION", "which instance our sessions are on, who else works, and who holds a lock"),
    ("INSTANCE", "when the instance was started: since then it counts"),
    ("PARAMETER", "parameters that matter to results"),
    ("SGAINFO", "size of the buffer cache"),
    ("DATABASE", "whether the database is a standby, and how it is open"),
    ("MYSTAT", "whether rows are continued in a second block"),
    ("STATNAME", "names of statistics"),
    ("SQL", "which of our statements were executed"),
    ("SQL_PLAN", "how they were executed"),
    ("LOCKED_OBJECT", "who else makes or removes the data"),
];
const CONTAINER_VIEWS: &[&str] = &["SYSSTAT", "SYSTEM_EVENT", "EVENT_HISTOGRAM_MICRO", "SYS_TIME_MODEL"];
const CLUSTER_VIEWS: &[&str] = &[
    "SYSSTAT",
    "SYSTEM_EVENT",
    "EVENT_HISTOGRAM_MICRO",
    "SYS_TIME_MODEL",
    "OSSTAT",
    "IOSTAT_FUNCTION",
    "SESSION",
    "SESSION_EVENT",
    "INSTANCE",
];
/// Tables and views of `PERFSTAT` that a Statspack report is made of.
const STATSPACK_TABLES: &[(&str, &str)] = &[
    ("STATS$SNAPSHOT", "when the snapshots of Statspack were taken"),
    ("STATS$DATABASE_INSTANCE", "what they are of"),
    ("STATS$SYSSTAT", "statistics that Statspack has kept"),
    ("STATS$SYSTEM_EVENT", "waits that it has kept"),
    ("STATS$EVENT_HISTOGRAM", "histograms of waits that it has kept"),
    ("STATS$SYS_TIME_MODEL", "DB time and processor time that it has kept"),
    ("STATS$TIME_MODEL_STATNAME", "names of these"),
    ("STATS$OSSTAT", "processor time of the machine that it has kept"),
    ("STATS$OSSTATNAME", "names of these"),
];

/// What is read from views of a cluster, where that is something else.
const CLUSTER_WHYS: &[(&str, &str)] =
    &[("INSTANCE", "which instances there are"), ("SESSION", "what our sessions on each instance do")];

/// All rights for `user`, as the data dictionary has the name, whose tables go to `tablespace`; those for each [`Need`] together.
/// Packages that everybody may execute unless an administrator has taken that away are not among them: see [`PUBLIC_PACKAGES`].
pub fn grants(user: &str, tablespace: &str) -> Vec<Grant> {
    let (user, tablespace) = (quoted(user), quoted(tablespace));
    let grant = |need, what: &str, why| Grant { need, statement: format!("GRANT {what} TO {user}"), why };
    let view = |prefix: &str, name: &str| format!("SELECT ON SYS.{prefix}{name}");
    let why_of = |name: &str| VIEWS.iter().find(|(view, _)| *view == name).map_or("", |(_, why)| why);
    let why_of_all = |name: &str| match CLUSTER_WHYS.iter().find(|(view, _)| *view == name) {
        Some((_, why)) => why,
        None => why_of(name),
    };
    let mut all = vec![
        grant(Need::Load, "CREATE SESSION", "connecting"),
        grant(Need::Setup, "CREATE TABLE", "making tables and their indexes in the user's own schema"),
        Grant {
            need: Need::Setup,
            statement: format!("ALTER USER {user} DEFAULT TABLESPACE {tablespace} QUOTA UNLIMITED ON {tablespace}"),
            why: "the space for them; a quota of SCALE for each schema and an eighth more is enough",
        },
        grant(Need::Orders, "CREATE SEQUENCE", "numbering new rows of order entry"),
        grant(Need::Orders, "CREATE PROCEDURE", "only for `orders run --send procedure`, which makes what it calls"),
    ];
    all.extend(VIEWS.iter().map(|(name, why)| grant(Need::Figures, &view("V_$", name), why)));
    all.extend(CONTAINER_VIEWS.iter().map(|name| grant(Need::Container, &view("V_$CON_", name), why_of(name))));
    all.extend(CLUSTER_VIEWS.iter().map(|name| grant(Need::Cluster, &view("GV_$", name), why_of_all(name))));
    let of_container = |name: &&str| grant(Need::ClusterContainer, &view("GV_$CON_", name), why_of_all(name));
    all.extend(CONTAINER_VIEWS.iter().map(of_container));
    all.extend([
        grant(
            Need::Awr,
            "EXECUTE ON SYS.DBMS_WORKLOAD_REPOSITORY",
            "snapshots at both edges of the window, and the report",
        ),
        grant(Need::Statspack, "EXECUTE ON PERFSTAT.STATSPACK", "snapshots of Statspack at both edges of the window"),
        grant(Need::Statspack, "SELECT ON SYS.V_$EVENT_NAME", "classes of the waits that Statspack has kept"),
    ]);
    all.extend(
        STATSPACK_TABLES.iter().map(|(name, why)| grant(Need::Statspack, &format!("SELECT ON PERFSTAT.{name}"), why)),
    );
    all
}

/// Packages that statements of ours call, and what for. Everybody may, unless `PUBLIC` was denied it.
pub const PUBLIC_PACKAGES: &[(&str, &str)] = &[
    ("SYS.UTL_RAW", "packing operations and times of a batch"),
    ("SYS.DBMS_STATS", "statistics of tables that set-up makes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_becomes_a_dba() {
        let all = grants("PLIMSOLL", "DATA");
        for Grant { need, statement, why } in &all {
            assert!(statement.contains("\"PLIMSOLL\"") && !why.is_empty(), "{statement}");
            for word in ["DBA ", "ANY", "RESOURCE", "SELECT_CATALOG_ROLE", "UNLIMITED TABLESPACE"] {
                assert!(!statement.contains(word), "{statement}");
            }
            assert!(!statement.contains("PROCEDURE") || *need == Need::Orders, "{statement}");
        }
        let statements: std::collections::BTreeSet<&str> = all.iter().map(|grant| grant.statement.as_str()).collect();
        assert_eq!(statements.len(), all.len(), "each once");
        assert!(statements.contains("GRANT SELECT ON SYS.V_$EVENT_HISTOGRAM_MICRO TO \"PLIMSOLL\""));
        assert!(statements.contains("GRANT SELECT ON SYS.V_$CON_SYSSTAT TO \"PLIMSOLL\""));
    }

    #[test]
    fn what_needs_a_licence_or_spoils_a_server_is_asked_for_apart() {
        for Grant { need, statement, .. } in grants("U", "T") {
            assert_eq!(need == Need::Awr, statement.contains("WORKLOAD"), "{statement}");
            assert!(!statement.contains("ALTER SYSTEM"), "{statement}");
        }
    }

    #[test]
    fn views_of_clusters_and_containers_are_among_those_of_one_instance() {
        for name in CONTAINER_VIEWS.iter().chain(CLUSTER_VIEWS) {
            assert!(VIEWS.iter().any(|(view, _)| view == name), "{name}");
        }
    }

    /// Whoever adds a question adds the right to ask it.
    #[test]
    fn every_view_that_is_asked_can_be_granted() {
        use super::super::{catalog, proof, slob};
        for question in [catalog::LOCK_HOLDER, proof::CONTINUED_ROWS, proof::EXECUTED_PLANS, slob::SLOB_BLOCK_BYTES] {
            for (at, _) in question.match_indices("v$") {
                let name = &question[at + 2..];
                let name = name[..name.find(' ').unwrap()].to_uppercase();
                assert!(VIEWS.iter().any(|(view, _)| *view == name), "{name}");
            }
        }
    }
}
