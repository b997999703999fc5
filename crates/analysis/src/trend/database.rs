//! Which windows are of one and the same database.

use std::collections::BTreeMap;

use model::record::{Run, Step, TargetKind};

/// The container that is the database itself.
const ROOT: &str = "CDB$ROOT";

/// A database, or one instance of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// What makes it one.
    pub scope: Scope,
    /// What it is called: its name, with its number where two of that name were given.
    pub name: String,
}

/// What makes windows belong together. In rising order the whole of a database comes before its instances.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Kind of target, such as `oracle`.
    pub kind: String,
    /// Its number where it is reported, else its name or address; of a pluggable database with the name of its container.
    pub identity: String,
    /// The instance, where the figures are of one alone; absent for all of them together and for what has none.
    pub instance: Option<String>,
}

/// Name of the database of `run`, and of the instance if its address has one. The reports of an Oracle database bear
/// `DATABASE/INSTANCE` as their address; clients of one name a listener, such as `//host:1521/service`.
fn parts(run: &Run) -> (&str, Option<&str>) {
    let target = &run.target;
    let is_of_listener = target.address.starts_with('/') || target.address.contains(':');
    match target.address.split_once('/') {
        Some((database, instance)) if target.kind == Some(TargetKind::Oracle) && !is_of_listener => {
            (database.trim(), Some(instance.trim()).filter(|instance| !instance.is_empty() && *instance != "*"))
        }
        _ => (target.address.trim(), None),
    }
}

/// The pluggable database that a report is on alone.
fn container(run: &Run) -> Option<&str> {
    let [name] = run.target.facts.database.containers.as_slice() else { return None };
    Some(name.as_str()).filter(|name| *name != ROOT)
}

fn with_container(database: &str, run: &Run) -> String {
    container(run).map_or_else(|| database.to_owned(), |container| format!("{database}:{container}"))
}

/// What the database of `run` is called there.
pub(super) fn name_of(run: &Run) -> String {
    with_container(parts(run).0, run)
}

impl Scope {
    /// Of a step of `run`. A report that says what each of several instances did is of the whole.
    pub(super) fn of(run: &Run, step: &Step) -> Self {
        let (database, instance) = parts(run);
        let identity = run.target.facts.database.id.map_or_else(|| database.trim().to_owned(), |id| id.to_string());
        Self {
            kind: run.target.kind_name().to_owned(),
            identity: with_container(&identity, run),
            instance: instance.filter(|_| step.instances.len() < 2).map(str::to_owned),
        }
    }

    /// Whether `other` is an instance of the database of which this is the whole.
    pub(super) fn holds(&self, other: &Self) -> bool {
        self.instance.is_none()
            && other.instance.is_some()
            && (&self.kind, &self.identity) == (&other.kind, &other.identity)
    }

    /// Whether both are of one database, whatever instance.
    pub fn is_same_database(&self, other: &Self) -> bool {
        (&self.kind, &self.identity) == (&other.kind, &other.identity)
    }
}

/// What each is called, from the names that its runs use. Two databases of one name are distinguished by what makes them two.
pub(super) fn named(names: &BTreeMap<Scope, String>) -> BTreeMap<Scope, String> {
    let name = |(scope, own): (&Scope, &String)| {
        let is_alone = names.iter().all(|(other, theirs)| other.is_same_database(scope) || theirs != own);
        let database = match own.is_empty() {
            true => format!("{} without a name", scope.kind).trim_start().to_owned(),
            false if is_alone => own.clone(),
            false => format!("{own} ({} {})", scope.kind, scope.identity),
        };
        let full = match &scope.instance {
            Some(instance) => format!("{database}/{instance}"),
            None => database,
        };
        (scope.clone(), full)
    };
    names.iter().map(name).collect()
}
