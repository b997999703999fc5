//! What is known of a run before its first step, whatever its load.

use std::collections::BTreeMap;

use super::PlanError;
use super::names::plain;
use super::slob::tags_by_key;
use model::config::Tag;
use model::record::{Level, LikeLevel, Load, Parameters};

/// What a run is before its first step.
#[derive(Debug, Clone)]
pub struct RunHead {
    /// Name built from tags and load.
    pub name: String,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// Seed of the run; each step draws from one of its own.
    pub seed: u64,
    /// The load.
    pub load: Load,
    /// Parameters that all steps have in common, for display.
    pub parameters: Parameters,
}

impl RunHead {
    /// Of a run whose name is the values of its tags and these `words`. Its levels are in `levels`, as far as they are known.
    ///
    /// # Errors
    /// If a tag is given twice.
    pub fn new<'a>(
        tags: &[Tag],
        words: impl IntoIterator<Item = String>,
        seed: u64,
        load: Load,
        levels: impl IntoIterator<Item = &'a Level>,
    ) -> Result<Self, PlanError> {
        let mut parameters = in_common(levels.into_iter().map(Level::parameters));
        parameters.extend(load.parameters());
        let name: Vec<String> = tags.iter().map(|tag| plain(&tag.value)).chain(words).collect();
        Ok(Self { name: name.join("_"), tags: tags_by_key(tags)?, seed, load, parameters })
    }

    /// The same for a load that is so many times a production, where all of it is.
    pub(super) fn like(mut self, times: &[f64]) -> Self {
        if let [only] = times {
            self.parameters.extend(LikeLevel { times: *only, moment: None }.parameters());
        }
        self
    }
}

/// The entries that all maps share.
fn in_common(mut maps: impl Iterator<Item = Parameters>) -> Parameters {
    let mut common = maps.next().unwrap_or_default();
    for map in maps {
        common.retain(|name, value| map.get(name) == Some(value));
    }
    common
}
