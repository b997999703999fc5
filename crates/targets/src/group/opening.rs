//! Finding out what members of a group know, and whether they may be trusted.

use std::sync::Arc;

use super::GroupError;
use super::document::{Document, MemberState, Shape};
use super::member::{self, FIRST_UNIT, FORMAT};
use crate::io::StorageFile;
use model::config::group::GroupSpec;
use model::units::Bytes;

/// What stands in the place of a member.
pub struct MemberOffer {
    /// As the user named it.
    pub name: String,
    /// The open file or device, or why there is none.
    pub file: Result<Arc<StorageFile>, String>,
}

/// What was found on one member.
enum Found {
    /// It belongs to the group and remembers this.
    Sound { generation: u64, document: Document },
    /// It is not there or not fit: why, and whether it may lack anything.
    Absent { why: String, whole: bool },
    /// It is a new disk in the place of a lost one.
    Blank,
}

/// What the members together say of a group.
pub struct Agreed {
    /// Number of the group.
    pub id: u64,
    /// The newest that any member remembers.
    pub document: Document,
    /// Its number.
    pub generation: u64,
    /// Generation of each member that is there.
    pub generations: Vec<Option<u64>>,
    /// Members that are not to be used as they are: what is to be put down of each, and why.
    pub losses: Vec<(usize, String, bool)>,
    /// Members without a header that take the place of lost ones.
    pub blank: Vec<usize>,
}

impl Agreed {
    /// Whether a member is there and was found fit.
    pub fn is_usable(&self, number: usize) -> bool {
        !self.losses.iter().any(|(lost, ..)| *lost == number)
    }

    /// Whether a member is there and lacks something: it is brought up to date before it is read.
    pub fn comes_back(&self, number: usize) -> bool {
        self.blank.contains(&number) || self.generations[number].is_some()
    }
}

/// Reads all members and decides. Nothing is written.
///
/// # Errors
/// See [`GroupError`].
pub fn agree(spec: &GroupSpec, offers: &[MemberOffer]) -> Result<Agreed, GroupError> {
    let id = find_id(spec, offers)?;
    let found = offers
        .iter()
        .enumerate()
        .map(|(number, offer)| look_at(spec, id, number, offer))
        .collect::<Result<Vec<_>, _>>()?;
    let newest = found.iter().filter_map(|found| match found {
        Found::Sound { generation, document } => Some((*generation, document)),
        _ => None,
    });
    let damaged = || GroupError::Damaged { group: spec.name.clone(), what: "no member remembers it".to_owned() };
    let (generation, document) = newest.max_by_key(|(generation, _)| *generation).ok_or_else(damaged)?;
    let document = document.clone();
    check_shape(spec, &document)?;
    let mut agreed =
        Agreed { id, generation, generations: Vec::new(), losses: Vec::new(), blank: Vec::new(), document };
    for (number, found) in found.into_iter().enumerate() {
        let state = agreed.document.members[number];
        agreed.generations.push(match &found {
            Found::Sound { generation, .. } => Some(*generation),
            _ => None,
        });
        match found {
            Found::Sound { generation: own, .. } => judge(spec, offers, &mut agreed, number, state, own)?,
            Found::Absent { why, whole } if !state.dropped || (whole && !state.whole) => {
                agreed.losses.push((number, why, whole));
            }
            Found::Absent { .. } => {}
            Found::Blank => {
                check_room(&offers[number], &agreed.document.shape, number)?;
                agreed.blank.push(number);
                if !state.dropped || !state.whole {
                    agreed.losses.push((number, "it was replaced".to_owned(), true));
                }
            }
        }
    }
    check_losses(spec, offers, &agreed)?;
    Ok(agreed)
}

/// A member that is there: whether it went on without the others, or is older than it can be.
fn judge(
    spec: &GroupSpec,
    offers: &[MemberOffer],
    agreed: &mut Agreed,
    number: usize,
    state: MemberState,
    own: u64,
) -> Result<(), GroupError> {
    if state.dropped {
        if own >= state.since {
            let newest = agreed.generations.iter().position(|generation| *generation == Some(agreed.generation));
            let other =
                newest.filter(|newest| *newest != number).or_else(|| (0..offers.len()).find(|other| *other != number));
            return Err(GroupError::Diverged {
                group: spec.name.clone(),
                one: offers[number].name.clone(),
                other: other.map_or_else(String::new, |other| offers[other].name.clone()),
            });
        }
    } else if own + 1 < agreed.generation {
        // Each writing reaches all members before the next begins: this is an old copy of the member.
        let why = format!("it is stale: it has generation {own} of {}", agreed.generation);
        agreed.losses.push((number, why, true));
    }
    Ok(())
}

/// The number of the group: that of most members that have one of this name.
fn find_id(spec: &GroupSpec, offers: &[MemberOffer]) -> Result<u64, GroupError> {
    let mut ids = Vec::new();
    for offer in offers {
        if let Ok(file) = &offer.file
            && let Ok(Some((id, header))) = member::read_header(file)
            && header.name == spec.name
        {
            ids.push(id);
        }
    }
    let count = |id: &u64| ids.iter().filter(|other| *other == id).count();
    if let Some(id) = ids.iter().copied().max_by_key(count) {
        return Ok(id);
    }
    // Whatever is wrong with the first is the matter.
    for (number, offer) in offers.iter().enumerate() {
        look_at(spec, 0, number, offer)?;
    }
    let why = |offer: &MemberOffer| Some(format!("`{}` ({})", offer.name, offer.file.as_ref().err()?));
    let missing = offers.iter().filter_map(why).collect::<Vec<_>>().join(", ");
    Err(GroupError::Missing { group: spec.name.clone(), missing })
}

fn look_at(spec: &GroupSpec, id: u64, number: usize, offer: &MemberOffer) -> Result<Found, GroupError> {
    let absent = |why: String, whole| Ok(Found::Absent { why, whole });
    let file = match &offer.file {
        Ok(file) => file,
        Err(why) => return absent(why.clone(), false),
    };
    let member = || offer.name.clone();
    let (found, header) = match member::read_header(file) {
        Ok(Some(found)) => found,
        Ok(None) if spec.rebuild => return Ok(Found::Blank),
        Ok(None) => return Err(GroupError::NoMember { member: member() }),
        Err(error) => return absent(format!("its header cannot be read: {error}"), false),
    };
    if header.format != FORMAT {
        let what = format!("`{}` has format {}, and this program reads {FORMAT}", offer.name, header.format);
        return Err(GroupError::Damaged { group: header.name, what });
    }
    if header.name != spec.name || found != id {
        let found = if header.name == spec.name {
            "another one of this name".to_owned()
        } else {
            format!("disk group `{}`", header.name)
        };
        return Err(GroupError::Foreign { member: member(), found, wanted: spec.name.clone() });
    }
    if usize::from(header.member) != number {
        let (found, wanted) = (u32::from(header.member) + 1, number as u32 + 1);
        return Err(GroupError::Swapped { member: member(), found, wanted });
    }
    let needed = needed_bytes(header.units, spec, file, id);
    match (file.length(), member::read_document(file, id)) {
        (Ok(length), _) if needed.is_some_and(|needed| length < needed) => {
            absent(format!("it was truncated: it has {}", Bytes(length)), true)
        }
        (Ok(_), Ok(Some((generation, document)))) => Ok(Found::Sound { generation, document }),
        (Ok(_), Ok(None)) if spec.rebuild => Ok(Found::Blank),
        (Ok(_), Ok(None)) => absent("what it remembers of the group is damaged".to_owned(), true),
        (Err(error), _) | (_, Err(error)) => absent(format!("it cannot be read: {error}"), false),
    }
}

/// Length that a member must have, in bytes; none where it does not remember the allocation unit.
fn needed_bytes(units: u32, spec: &GroupSpec, file: &StorageFile, id: u64) -> Option<u64> {
    let of_group = member::read_document(file, id).ok().flatten().map(|(_, document)| document.shape.unit_bytes);
    let unit = of_group.or_else(|| spec.unit.map(|unit| unit.0))?;
    Some(FIRST_UNIT + u64::from(units) * unit)
}

/// Whether a new disk has room for what the lost one had.
fn check_room(offer: &MemberOffer, shape: &Shape, number: usize) -> Result<(), GroupError> {
    let needed = FIRST_UNIT + u64::from(shape.units[number]) * shape.unit_bytes;
    let size = offer.file.as_ref().map_or(Ok(0), |file| file.length());
    let size = size.map_err(|source| {
        let member = offer.name.clone();
        GroupError::Member { action: "find the size of", member, source }
    })?;
    if size < needed {
        let (size, needed) = (Bytes(size), Bytes(needed));
        return Err(GroupError::TooSmall { member: offer.name.clone(), size, needed });
    }
    Ok(())
}

/// Whether the group was made as it was asked for.
fn check_shape(spec: &GroupSpec, document: &Document) -> Result<(), GroupError> {
    let shape = &document.shape;
    let differs = |there: String, asked: String| Err(GroupError::Different { group: spec.name.clone(), there, asked });
    if shape.copies != spec.redundancy.copies() {
        return differs(copies_in_words(shape.copies), copies_in_words(spec.redundancy.copies()));
    }
    let groups: Vec<u16> = spec.members().map(|(group, _)| group as u16).collect();
    // With external redundancy each member is a failure group of its own.
    if shape.copies > 1 && shape.groups != groups {
        let words = |groups: &[u16]| {
            let last = groups.iter().copied().max().unwrap_or(0);
            let sizes = (0..=last).map(|group| groups.iter().filter(|of| **of == group).count().to_string());
            format!("failure groups of {} members", sizes.collect::<Vec<_>>().join(" + "))
        };
        return differs(words(&shape.groups), words(&groups));
    }
    if shape.groups.len() != groups.len() {
        return differs(format!("{} members", shape.groups.len()), format!("{}", groups.len()));
    }
    if let Some(unit) = spec.unit.filter(|unit| unit.0 != shape.unit_bytes) {
        return differs(format!("an allocation unit of {}", Bytes(shape.unit_bytes)), unit.to_string());
    }
    Ok(())
}

fn copies_in_words(copies: u32) -> String {
    if copies == 1 { "one copy of its data".to_owned() } else { format!("{copies} copies of its data") }
}

/// Whether the members that are there have all data, and are sure to have the newest.
///
/// Members are dropped as long as some failure group has each byte: in fewer groups than there are copies. So the newest data
/// are in at least `groups - (copies - 1)` of them, and if no more than `groups - copies` are missing, one that has them is
/// there. Two failure groups are never enough: either may have gone on without the other.
fn check_losses(spec: &GroupSpec, offers: &[MemberOffer], agreed: &Agreed) -> Result<(), GroupError> {
    let shape = &agreed.document.shape;
    let copies = shape.copies as usize;
    let dropped = |number: &usize| agreed.document.members[*number].dropped;
    let lost = |number: &usize| agreed.losses.iter().any(|(lost, ..)| lost == number);
    let unusable = (0..offers.len()).filter(|number| dropped(number) || lost(number));
    let named = || {
        let each = agreed.losses.iter().map(|(number, why, _)| format!("`{}` ({why})", offers[*number].name));
        each.collect::<Vec<_>>().join(", ")
    };
    if shape.groups_of(unusable) >= copies {
        let before = (0..offers.len()).filter(|number| dropped(number) && !lost(number));
        let before = before.map(|number| format!("`{}` (dropped before)", offers[number].name));
        let what = before.chain((!agreed.losses.is_empty()).then(named)).collect::<Vec<_>>().join(", ");
        return Err(GroupError::Lost {
            group: spec.name.clone(),
            what: format!("without {what} no copy of some data is left"),
        });
    }
    let missing = shape.groups_of(agreed.losses.iter().map(|(number, ..)| *number).filter(|number| !dropped(number)));
    if missing > shape.failure_groups() - copies && !spec.force {
        return Err(GroupError::Missing { group: spec.name.clone(), missing: named() });
    }
    Ok(())
}
