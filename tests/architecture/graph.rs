//! Which files use which, through whatever re-export: the modules of the crate as a graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::uses::{Named, Part, Place, Uses, read};

/// Deeper than any chain of re-exports that somebody should have to follow.
const MAX_REEXPORTS: usize = 16;

/// The modules of a crate, by place.
pub struct Modules {
    files: BTreeMap<Place, (String, Uses)>,
    /// What modules import, by the name that they know it by.
    imports: HashMap<Place, HashMap<String, Vec<Named>>>,
}

/// One file uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: String,
    pub to: String,
}

impl Modules {
    /// Of sources by their paths below `src`, such as `analysis/mod.rs`.
    pub fn of(sources: &[(String, String)], part: Part) -> Self {
        let read_one = |(path, text): &(String, String)| {
            let place = place_of(path);
            let names: Vec<&str> = place.iter().map(String::as_str).collect();
            let uses = read(text, &names, part);
            (place, (path.clone(), uses))
        };
        let mut files: BTreeMap<Place, (String, Uses)> = sources.iter().map(read_one).collect();
        if part == Part::WithoutTests {
            // Files that only tests declare are not there without them.
            let declared: BTreeSet<Place> = files.values().flat_map(|(_, uses)| uses.modules.clone()).collect();
            files.retain(|place, _| (1..=place.len()).all(|length| declared.contains(&place[..length])));
        }
        let mut imports: HashMap<Place, HashMap<String, Vec<Named>>> = HashMap::new();
        for named in files.values().flat_map(|(_, uses)| &uses.named) {
            if let Some(alias) = &named.alias {
                let of_module = imports.entry(named.from.clone()).or_default();
                of_module.entry(alias.clone()).or_default().push(named.clone());
            }
        }
        Self { files, imports }
    }

    /// Every use of one file by another.
    pub fn edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (path, uses) in self.files.values() {
            // What is only passed on is used by those who ask for it.
            for named in uses.named.iter().filter(|named| !named.is_reexport) {
                if let Some(to) = self.file_of(named).filter(|to| *to != path) {
                    edges.insert(Edge { from: path.clone(), to: to.to_owned() });
                }
            }
        }
        edges
    }

    /// Each file with the modules of the crate's root that it names.
    pub fn rooms_named(&self) -> BTreeSet<(String, String)> {
        self.rooms(|named| named.parts.first().filter(|_| named.is_absolute).cloned())
    }

    /// Each file with those in which what it names is defined, whoever passed it on.
    pub fn rooms_behind(&self) -> BTreeSet<(String, String)> {
        self.rooms(|named| self.file_of(named).and_then(|file| file.split('/').next()).map(str::to_owned))
    }

    fn rooms(&self, room: impl Fn(&Named) -> Option<String>) -> BTreeSet<(String, String)> {
        let of_file = |(path, uses): &(String, Uses)| {
            uses.named.iter().filter_map(&room).map(|room| (path.clone(), room)).collect::<Vec<_>>()
        };
        self.files.values().flat_map(of_file).collect()
    }

    /// The file in which what is named is defined.
    fn file_of(&self, named: &Named) -> Option<&str> {
        if named.is_absolute {
            return self.resolve(&[], &named.parts, MAX_REEXPORTS);
        }
        let first = named.parts.first()?;
        let is_known = self.child(&named.from, first).is_some() || !self.imported(&named.from, first).is_empty();
        if is_known { self.resolve(&named.from, &named.parts, MAX_REEXPORTS) } else { None }
    }

    fn child(&self, place: &[String], name: &str) -> Option<Place> {
        let child: Place = place.iter().cloned().chain([name.to_owned()]).collect();
        self.files.contains_key(&child).then_some(child)
    }

    /// The file that holds the module at `place`, which may be inline.
    fn holder(&self, place: &[String]) -> Option<&(String, Uses)> {
        (0..=place.len()).rev().find_map(|length| self.files.get(&place[..length]))
    }

    fn imported(&self, place: &[String], name: &str) -> &[Named] {
        self.imports.get(place).and_then(|names| names.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Goes down from `place` by the names of `parts`, to the file where the last one is defined.
    fn resolve(&self, place: &[String], parts: &[String], depth: usize) -> Option<&str> {
        let (file, uses) = self.holder(place)?;
        let [name, rest @ ..] = parts else { return Some(file) };
        if depth == 0 {
            return Some(file);
        }
        if let Some(child) = self.child(place, name) {
            return self.resolve(&child, rest, depth);
        }
        if let Some(named) = self.imported(place, name).first() {
            let base: &[String] = if named.is_absolute { &[] } else { place };
            let goes_round =
                !named.is_absolute && named.parts.first() == Some(name) && self.child(place, name).is_none();
            if goes_round {
                return None;
            }
            let parts: Vec<String> = named.parts.iter().chain(rest).cloned().collect();
            return self.resolve(base, &parts, depth - 1);
        }
        if !uses.defined.contains(&(place.to_vec(), name.clone())) {
            let globs = self.imported(place, "*");
            for glob in globs {
                let base: &[String] = if glob.is_absolute { &[] } else { place };
                let inside: Vec<String> = base.iter().chain(&glob.parts).chain([name]).cloned().collect();
                if self.defines(&inside) {
                    return self.resolve(&[], &inside, depth - 1);
                }
            }
        }
        Some(file)
    }

    fn defines(&self, path: &[String]) -> bool {
        let Some((name, place)) = path.split_last() else { return false };
        self.files.get(place).is_some_and(|(_, uses)| uses.defined.contains(&(place.to_vec(), name.clone())))
    }
}

fn place_of(path: &str) -> Place {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { Place::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// Files that use each other in a circle: each circle's files in order.
pub fn circles(edges: &BTreeSet<Edge>) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Edge { from, to } in edges {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reach(&next, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, all) in reached.iter().filter(|(file, all)| all.contains(*file)) {
        let back = |other: &&&str| reached.get(**other).is_some_and(|theirs| theirs.contains(file));
        circles.insert(all.iter().filter(back).map(|other| (*other).to_owned()).collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

fn reach<'a>(next: &BTreeMap<&str, Vec<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&'a str> = next.get(from).cloned().unwrap_or_default();
    while let Some(file) = open.pop() {
        if seen.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    seen
}
