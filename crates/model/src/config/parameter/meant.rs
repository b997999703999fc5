//! What a name that no parameter has was meant to be.

use super::{Key, PARAMETERS};
use crate::units::edit_distance;

/// Names that SLOB had before 2.5, and what took their place.
const RETIRED: [(&str, Key); 4] = [
    ("SHARED_DATA_MODULUS", Key::HotSchemaFrequency),
    ("DO_UPDATE_HOTSPOT", Key::DoHotspot),
    ("HOTSPOT_PCT", Key::HotspotMb),
    ("THINK_TM_MODULUS", Key::ThinkTmFrequency),
];

/// What somebody who wrote an unknown name most likely meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Meant {
    /// The same name in other letters.
    OtherCase(Key),
    /// A name of an older SLOB.
    Retired(Key),
    /// A name that differs by a few letters.
    Misspelt(Key),
}

/// The parameter that `name` most likely means; `None` if it is far from all of them.
pub(in super::super) fn meant_by(name: &str) -> Option<Meant> {
    if let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name)) {
        return Some(Meant::OtherCase(parameter.key));
    }
    if let Some((_, key)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
        return Some(Meant::Retired(*key));
    }
    let name = name.to_ascii_uppercase();
    let (distance, key) = PARAMETERS
        .iter()
        .map(|parameter| (edit_distance(parameter.name, &name), parameter.key))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + key.name().len() / 5).then_some(Meant::Misspelt(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_was_meant() {
        for (name, meant) in [
            ("update_pct", Some(Meant::OtherCase(Key::UpdatePct))),
            ("UPDATE_PTC", Some(Meant::Misspelt(Key::UpdatePct))),
            ("WORKUNIT", Some(Meant::Misspelt(Key::WorkUnit))),
            ("threads_per_shema", Some(Meant::Misspelt(Key::ThreadsPerSchema))),
            ("THINK_TM_MODULUS", Some(Meant::Retired(Key::ThinkTmFrequency))),
            ("PATH", None),
            ("", None),
        ] {
            assert_eq!(meant_by(name), meant, "{name}");
        }
    }
}
