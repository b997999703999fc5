//! All that is known, built in and from the user's own files.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use super::entry::{Flow, Machine, Source, VolumeKind};
use super::file::{Entries, FileError, read};
use super::names::{NameError, Named, find, key};

/// Machines, volumes and flows, with where their figures are from.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    sources: BTreeMap<String, Source>,
    machines: Vec<Machine>,
    volumes: Vec<VolumeKind>,
    flows: Vec<Flow>,
}

const PUBLISHED: [(&str, &str); 4] = [
    ("published/azure.toml", include_str!("published/azure.toml")),
    ("published/aws.toml", include_str!("published/aws.toml")),
    ("published/gcp.toml", include_str!("published/gcp.toml")),
    ("published/oci.toml", include_str!("published/oci.toml")),
];

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut catalogue = Catalogue::default();
    for (file, text) in PUBLISHED {
        catalogue.add(file, text).expect("a test reads what is built in");
    }
    catalogue
});

static IN_REPORTS: OnceLock<Catalogue> = OnceLock::new();

impl Catalogue {
    /// What the program brings.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// What reports of runs look names up in: what the program brings, or what [`Self::use_in_reports`] put in its place.
    pub fn in_reports() -> &'static Self {
        IN_REPORTS.get().unwrap_or(&BUILT_IN)
    }

    /// Has reports of this process look names up here. The first to be put there stays.
    pub fn use_in_reports(self) {
        let _ = IN_REPORTS.set(self);
    }

    /// Adds what `text` has, which is the file `file`. An entry of a name that is known stands in the place of that, and an alias that is
    /// known is of the later entry.
    ///
    /// # Errors
    /// If the file is not of that form, with the line. Then nothing was added.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let Entries { sources, machines, volumes, flows } = read(file, text, &self.sources)?;
        self.sources.extend(sources);
        for machine in machines {
            put(&mut self.machines, machine, |it| (it.name.as_str(), &mut it.aliases));
        }
        for volume in volumes {
            put(&mut self.volumes, volume, |it| (it.name.as_str(), &mut it.aliases));
        }
        self.flows.extend(flows);
        Ok(())
    }

    /// The machine of that name, as loosely as people write it.
    ///
    /// # Errors
    /// If none is called so, or several are.
    pub fn machine(&self, name: &str) -> Result<&Machine, NameError> {
        find(Named::Machine, name, self.machines.iter().map(|it| (it, it.name.as_str(), it.aliases.as_slice())))
    }

    /// The kind of volume of that name.
    ///
    /// # Errors
    /// If none is called so, or several are.
    pub fn volume(&self, name: &str) -> Result<&VolumeKind, NameError> {
        find(Named::Volume, name, self.volumes.iter().map(|it| (it, it.name.as_str(), it.aliases.as_slice())))
    }

    /// All machines, cloud by cloud.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// All kinds of volumes, cloud by cloud.
    pub fn volumes(&self) -> &[VolumeKind] {
        &self.volumes
    }

    /// Limits of single connections.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Where figures are from that name `source`.
    pub fn source(&self, source: &str) -> Option<&Source> {
        self.sources.get(source)
    }
}

/// The name of an entry, and its aliases.
type Names<T> = for<'a> fn(&'a mut T) -> (&'a str, &'a mut Vec<String>);

/// The later entry has all of its names: it takes the place of those that are called so, and others lose an alias that is one of them. Each
/// name is of one entry then, and none that was added later is out of reach.
fn put<T>(entries: &mut Vec<T>, mut entry: T, names: Names<T>) {
    let (name, aliases) = names(&mut entry);
    let keys: Vec<String> = [name].into_iter().chain(aliases.iter().map(String::as_str)).map(key).collect();
    let is_taken = |name: &str| keys.contains(&key(name));
    let place = entries.iter_mut().position(|other| is_taken(names(other).0));
    entries.retain_mut(|other| !is_taken(names(other).0));
    entries.iter_mut().for_each(|other| names(other).1.retain(|alias| !is_taken(alias)));
    // Nothing before the first that was taken away is gone, so its place is still the same.
    entries.insert(place.unwrap_or(entries.len()), entry);
}
