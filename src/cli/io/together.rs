//! `--together`: which volumes are compared, and what lies below several of them.

use super::arguments::Storage;
use super::measure::Job;
use super::volume::Prospect;
use crate::cli::exit::Failure;
use analysis::MIN_SECONDS;
use model::config::io::Volumes;
use model::config::io::letter;
use model::record::facts::{DEVICES_SHARED, VOLUME_PATH};
use targets::block::devices_shared;

/// What is known of the volumes before they are loaded.
#[derive(Default)]
pub(super) struct Compared {
    /// For the record: which letter is which path, and which devices several have in common.
    pub(super) facts: Vec<(String, String)>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// Looks what the volumes are; nothing if all paths are one. Two paths on one device are refused.
pub(super) fn look(job: &Job<'_>, prospect: &Prospect) -> Result<Compared, Failure> {
    let Volumes::Each { rounds } = job.asked.volumes else { return Ok(Compared::default()) };
    let mut compared = Compared::default();
    let seconds = job.time.duration.0.as_seconds() * f64::from(rounds);
    if seconds < MIN_SECONDS as f64 {
        compared.notes.push(format!(
            "{rounds} x {} leave too little to judge by: at least {MIN_SECONDS} undisturbed seconds of each load are \
             needed; use a longer `--duration`",
            job.time.duration.0
        ));
    }
    let names = match job.storage {
        Storage::Paths(paths) | Storage::Nfs { paths, .. } | Storage::Group { paths, .. } => {
            paths.iter().map(|path| path.display().to_string()).collect()
        }
        Storage::Simulated(_) => vec!["sim:".to_owned(); prospect.facts(&job.asked)?.volumes.len()],
    };
    let fact = |(volume, name): (usize, String)| (format!("{VOLUME_PATH}{}", letter(volume)), name);
    compared.facts = names.into_iter().enumerate().map(fact).collect();
    let shared = devices_shared(job.storage.local()).map_err(targets::TargetError::from)?;
    if !shared.is_empty() {
        compared.notes.push(format!(
            "several of these volumes lie on `{}`: a limit that they share may be that of this device rather than of the \
             machine",
            shared.join("`, `")
        ));
        compared.facts.push((DEVICES_SHARED.to_owned(), shared.join(" ")));
    }
    Ok(compared)
}
