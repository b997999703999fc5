//! What checks answered, kept for the list: each takes a whole run to find.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use analysis::check::answer_in_a_list;
use model::record::Outcome;
use model::record::store::{self, Stamps, Summary};

/// Answers that were found, each for the files as they were then.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<HashMap<PathBuf, (Stamps, &'static str)>>);

impl Answers {
    /// What a check answers; absent of other runs and while it goes on.
    pub(super) fn of(&self, run: &Summary) -> Option<&'static str> {
        if !run.is_check || run.outcome == Outcome::Unfinished {
            return None;
        }
        let stamps = Stamps::of(&run.path)?;
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known().get(&run.path).filter(|(of, _)| *of == stamps) {
            return Some(answer);
        }
        let answer = answer_in_a_list(&store::load(&run.path).ok()?)?;
        known().insert(run.path.clone(), (stamps, answer));
        Some(answer)
    }
}
