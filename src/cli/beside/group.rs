//! What the runs of one measurement have in common.

use crate::cli::exit::Failure;
use model::record::store::{self, Store};
use model::record::{BesideMark, GROUP, Run};

/// The word for the latest of them.
const LAST: &str = "last";

/// A name that no measurement in the store has: the instant in UTC.
pub(super) fn fresh(store: &Store) -> String {
    let base = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let is_taken = |name: &String| store.find_all(&format!("{GROUP}={name}")).is_ok();
    let more = (2..).map(|number: u64| format!("{base}-{number}"));
    let name = std::iter::once(base.clone()).chain(more).find(|name| !is_taken(name));
    name.unwrap_or(base)
}

/// The runs of the measurement that a word means: its name, the beginning of it, or `last`.
pub(super) fn find(store: &Store, word: &str) -> Result<(String, Vec<Run>), Failure> {
    let (summaries, _) = store.list();
    let marked = summaries.iter().filter_map(|run| Some((BesideMark::of_tags(&run.tags)?.group, &run.path)));
    let marked: Vec<_> = marked.collect();
    let mut groups: Vec<&String> = Vec::new();
    for (group, _) in &marked {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let means = |group: &&&String| match word {
        LAST => groups.last() == Some(*group),
        word => ***group == word,
    };
    let begins = |group: &&&String| !word.is_empty() && group.starts_with(word);
    let exact: Vec<&&String> = groups.iter().filter(means).collect();
    let found = if exact.is_empty() { groups.iter().filter(begins).collect() } else { exact };
    let group = match found[..] {
        [group] => (*group).clone(),
        [] => {
            let failure = Failure::new(format_args!(
                "no measurement `{word}` of loads beside each other is kept in `{}`",
                store.path().display()
            ));
            return Err(
                failure.with_hint("`plimsoll runs list` shows them: their runs have the tag `beside`".to_owned())
            );
        }
        _ => {
            let names: Vec<String> = found.iter().map(|group| format!("`{group}`")).collect();
            return Err(Failure::new(format_args!("`{word}` is the beginning of several: {}", names.join(", "))));
        }
    };
    let paths = marked.iter().filter(|(known, _)| *known == group).map(|(_, path)| path);
    let runs = paths.map(|path| store::load(path)).collect::<Result<Vec<Run>, _>>()?;
    Ok((group, runs))
}
