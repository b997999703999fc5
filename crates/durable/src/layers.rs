//! Which layer loses: answers of several cuts, on the device, on files above it, on a server above them.
//!
//! A layer is tested together with all below it. So the first that loses is to blame only where the one right below it kept everything in
//! more cuts than chance explains. That one lies on the other is the user's word: it is not seen here.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::opening::FileCommits;
use crate::verdict::highest_chance;
use targets::database::Sheet;

/// A layer is named where it would be by chance in fewer cases.
const MAX_CHANCE: f64 = 0.05;

/// What the target of an answer was, from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block device.
    Device,
    /// Files on a file system.
    Files,
    /// A database server.
    Server,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// `kept`.
    Kept,
    /// `lost`.
    Lost,
    /// `no verdict`.
    NoVerdict,
}

/// One answer of `plimsoll durable verify --json`, as far as it is needed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Answer {
    verdict: Said,
    kind: Kind,
    target: String,
    words: String,
    run: u64,
    /// The machine of the load.
    machine: String,
    /// What a commit is in blocks; none on a server.
    files: Option<FileCommits>,
    /// Why there is no verdict.
    reasons: Vec<Reason>,
    /// Writes that were there in part, after what seems to have been a cut; none where that cannot be said.
    torn_writes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Reason {
    id: String,
}

impl Answer {
    /// Whether it has no verdict because what is there cannot be seen, which may be a loss.
    fn may_have_lost(&self) -> bool {
        self.reasons.iter().any(|reason| ["gone", "unreadable"].contains(&reason.id.as_str()))
    }
}

/// Answers that cannot be taken together.
#[derive(Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum LayersError {
    /// Two of one cut.
    #[error("answers {first} and {second} are of the same load: a cut counts once")]
    #[diagnostic(help("name one answer for each cut"))]
    Twice {
        /// Its place among the answers, from 1.
        first: usize,
        /// That of the other.
        second: usize,
    },
    /// Two that are not the same test.
    #[error("answers {first} and {second} differ in {what}, so they cannot be compared")]
    #[diagnostic(help("repeat the cuts of each layer on one machine, with the same `--means` and `--block`"))]
    Different {
        /// Its place among the answers, from 1.
        first: usize,
        /// That of the other.
        second: usize,
        /// In what.
        what: &'static str,
    },
}

/// The cuts of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    kind: Kind,
    target: String,
    words: String,
    kept: u32,
    lost: u32,
    no_verdict: u32,
    /// Of these, those of which not everything can be seen.
    unseen: u32,
    /// Cuts that left writes in part, and cuts of which that is known.
    torn: u32,
    torn_known: u32,
}

impl Layer {
    fn words(&self) -> String {
        let cuts = |number: u32| if number == 1 { "1 cut".to_owned() } else { format!("{number} cuts") };
        let mut words = match (self.kept, self.lost) {
            (0, 0) => "no verdict of any cut".to_owned(),
            (kept, 0) => {
                let chance = (highest_chance(kept) * 1000.0).ceil() / 10.0;
                format!("kept all in {}, so a cut loses something in fewer than {chance} % of cases", cuts(kept))
            }
            (kept, lost) => format!("lost commits in {lost} of {}", cuts(kept + lost)),
        };
        if self.no_verdict > 0 && self.kept + self.lost > 0 {
            words.push_str(&format!("; {} more without a verdict", self.no_verdict));
            if self.unseen > 0 {
                words.push_str(&format!(", {} of them gone or unreadable", self.unseen));
            }
        }
        if self.torn_known > 0 {
            words.push_str(&format!("; writes in part after {} of {}", self.torn, cuts(self.torn_known)));
        }
        format!("{}, {}: {words}", crate::brief(&self.target), crate::brief(&self.words))
    }
}

/// What several answers show together.
#[derive(Debug, Clone, PartialEq)]
pub struct Layers {
    /// From below.
    layers: Vec<Layer>,
}

/// Where commits are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// Nowhere: each layer kept all in its cuts.
    Nowhere,
    /// At this layer, of those from below, and not below it.
    At {
        /// Its number, from 0.
        layer: usize,
        /// How probable this would be if it lost no more than those below.
        chance: f64,
    },
    /// At the lowest that was tested, or below it.
    AtOrBelow,
    /// At this layer or below it: there are too few cuts to tell.
    TooFew {
        /// Its number, from 0.
        layer: usize,
        /// How probable this would be if it lost no more than those below.
        chance: f64,
    },
    /// Nothing is shown: a layer has no verdict, and none lost.
    Unknown,
}

impl Layers {
    /// Takes answers together, the lowest layers first; of one kind in the order in which they are given.
    ///
    /// # Errors
    /// When two are of the same load.
    pub fn of(answers: &[Answer]) -> Result<Self, LayersError> {
        let mut layers: Vec<Layer> = Vec::new();
        for (at, answer) in answers.iter().enumerate() {
            if let Some(first) = answers[..at].iter().position(|other| other.run == answer.run) {
                return Err(LayersError::Twice { first: first + 1, second: at + 1 });
            }
            let others = answers[..at].iter().enumerate();
            let other_files =
                |other: &Answer| answer.files.is_some() && other.files.is_some() && answer.files != other.files;
            let mut different = others.filter_map(|(first, other)| match () {
                () if other.machine != answer.machine => Some((first, "the machine")),
                () if other_files(other) => Some((first, "`--means` or `--block`")),
                () => None,
            });
            if let Some((first, what)) = different.next() {
                return Err(LayersError::Different { first: first + 1, second: at + 1, what });
            }
            // A directory of one name may have been made on another stack meanwhile.
            let is_it = |layer: &Layer| {
                (layer.kind, &layer.target, &layer.words) == (answer.kind, &answer.target, &answer.words)
            };
            let known = layers.iter().position(is_it);
            let at = known.unwrap_or_else(|| {
                let (target, words) = (answer.target.clone(), answer.words.clone());
                let (kept, lost, no_verdict, unseen, torn, torn_known) = Default::default();
                layers.push(Layer {
                    kind: answer.kind,
                    target,
                    words,
                    kept,
                    lost,
                    no_verdict,
                    unseen,
                    torn,
                    torn_known,
                });
                layers.len() - 1
            });
            let layer = &mut layers[at];
            match answer.verdict {
                Said::Kept => layer.kept += 1,
                Said::Lost => layer.lost += 1,
                Said::NoVerdict => layer.no_verdict += 1,
            }
            layer.unseen += u32::from(answer.may_have_lost());
            layer.torn_known += u32::from(answer.torn_writes.is_some());
            layer.torn += u32::from(answer.torn_writes.is_some_and(|writes| writes > 0));
        }
        layers.sort_by_key(|layer| layer.kind);
        Ok(Self { layers })
    }

    /// Where commits are lost.
    pub fn place(&self) -> Place {
        let Some(layer) = self.layers.iter().position(|layer| layer.lost > 0) else {
            let all_kept = self.layers.iter().all(|layer| layer.kept > 0);
            return if all_kept { Place::Nowhere } else { Place::Unknown };
        };
        let Some(below) = layer.checked_sub(1).map(|below| &self.layers[below]) else { return Place::AtOrBelow };
        let Layer { kept, lost, .. } = self.layers[layer];
        let chance = all_in_one_part(lost, kept + lost, below.kept);
        if chance < MAX_CHANCE && below.unseen == 0 {
            Place::At { layer, chance }
        } else {
            Place::TooFew { layer, chance }
        }
    }

    /// As rows and as a document.
    pub fn sheet(&self) -> Sheet {
        let place = self.place();
        let mut sheet = Sheet::of(self.document(place));
        let name = |layer: usize| crate::brief(&self.layers[layer].target);
        let (label, words) = match place {
            Place::Nowhere => ("kept", "no layer lost anything in its cuts".to_owned()),
            Place::Unknown => {
                ("no verdict", "no layer lost anything, and not each has a cut with a verdict".to_owned())
            }
            Place::AtOrBelow => ("lost", format!("{} loses, or what is below it: nothing below it was cut", name(0))),
            Place::At { layer, chance } => (
                "lost",
                format!(
                    "{} is the first layer that loses; {} below it kept all. By chance that is so in {} % of cases",
                    name(layer),
                    name(layer - 1),
                    percent(chance)
                ),
            ),
            Place::TooFew { layer, chance } => (
                "lost",
                format!(
                    "{} or a layer below it: chance explains that only it loses in {} % of cases. Cut each more often",
                    name(layer),
                    percent(chance)
                ),
            ),
        };
        sheet.add(label, words);
        self.layers.iter().for_each(|layer| sheet.add("layer", layer.words()));
        sheet
    }

    fn document(&self, place: Place) -> Value {
        let (verdict, layer, chance) = match place {
            Place::Nowhere => ("kept", None, None),
            Place::Unknown => ("no_verdict", None, None),
            Place::AtOrBelow => ("lost_at_or_below", Some(0), None),
            Place::At { layer, chance } => ("lost_at", Some(layer), Some(chance)),
            Place::TooFew { layer, chance } => ("lost_at_or_below", Some(layer), Some(chance)),
        };
        let layers: Vec<Value> = self
            .layers
            .iter()
            .map(|layer| {
                json!({
                    "target": layer.target,
                    "words": layer.words,
                    "kept": layer.kept,
                    "lost": layer.lost,
                    "no_verdict": layer.no_verdict,
                    "gone_or_unreadable": layer.unseen,
                    "cuts_with_writes_in_part": layer.torn,
                    "cuts_of_which_that_is_known": layer.torn_known,
                    "loss_per_cut_below": (layer.kept > 0 && layer.lost == 0).then(|| highest_chance(layer.kept)),
                })
            })
            .collect();
        json!({
            "verdict": verdict,
            "first_that_loses": layer.map(|layer| &self.layers[layer].target),
            "by_chance": chance,
            "layers": layers,
        })
    }
}

/// How probable it is that all of `lost` losses are among `cuts` cuts and none among `others`, if each cut is as likely to lose: Fisher's
/// exact test of one side.
fn all_in_one_part(lost: u32, cuts: u32, others: u32) -> f64 {
    let (cuts, others) = (f64::from(cuts), f64::from(others));
    (0..lost).map(f64::from).map(|one| (cuts - one) / (cuts + others - one)).product()
}

fn percent(chance: f64) -> f64 {
    (chance * 1000.0).ceil() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(of: &[(Kind, &str, Said, u32)]) -> Vec<Answer> {
        let mut run = 0;
        let mut all = Vec::new();
        for &(kind, target, verdict, times) in of {
            for _ in 0..times {
                run += 1;
                let (target, words) = (target.to_owned(), "on a disk".to_owned());
                let files = (kind != Kind::Server).then(FileCommits::default);
                let (torn_writes, machine, reasons) = (Some(run % 2), "a".to_owned(), Vec::new());
                all.push(Answer { verdict, kind, target, words, run, machine, files, reasons, torn_writes });
            }
        }
        all
    }

    fn place(of: &[(Kind, &str, Said, u32)]) -> Place {
        Layers::of(&answers(of)).unwrap().place()
    }

    #[test]
    fn a_layer_is_named_only_where_those_below_it_kept_all_and_not_by_chance() {
        use Kind::{Device, Files, Server};
        use Said::{Kept, Lost, NoVerdict};
        assert_eq!(place(&[(Device, "raw:/dev/sdb", Kept, 1), (Files, "dir:/a", Kept, 1)]), Place::Nowhere);
        assert_eq!(place(&[(Device, "raw:/dev/sdb", Lost, 1), (Files, "dir:/a", Lost, 9)]), Place::AtOrBelow);
        assert_eq!(place(&[(Files, "dir:/a", Lost, 9)]), Place::AtOrBelow);
        assert_eq!(place(&[(Device, "raw:/dev/sdb", NoVerdict, 3), (Files, "dir:/a", Kept, 1)]), Place::Unknown);
        // One cut of each says nothing, whichever loses; four of each do: 1 of 70.
        let one = place(&[(Files, "dir:/a", Lost, 1), (Device, "raw:/dev/sdb", Kept, 1)]);
        assert_eq!(one, Place::TooFew { layer: 1, chance: 0.5 });
        let Place::At { layer: 1, chance } = place(&[(Files, "dir:/a", Lost, 4), (Device, "raw:/dev/sdb", Kept, 4)])
        else {
            panic!("four cuts of each")
        };
        assert!((chance - 1.0 / 70.0).abs() < 1e-12, "{chance}");
        // What a server above loses says nothing of the files, and what a device below them keeps nothing of a server.
        let above = [(Server, "pg:/a", Lost, 5), (Files, "dir:/a", Lost, 1), (Device, "raw:/dev/sdb", Kept, 3)];
        assert_eq!(place(&above), Place::TooFew { layer: 1, chance: 0.25 });
        let between = [(Server, "pg:/a", Lost, 4), (Files, "dir:/a", NoVerdict, 9), (Device, "raw:/dev/sdb", Kept, 9)];
        assert_eq!(place(&between), Place::TooFew { layer: 2, chance: 1.0 });
        // Where a part of the cuts cannot be seen, the layer below is not cleared.
        let mut unseen = answers(&[(Device, "raw:/dev/sdb", Kept, 4), (Files, "dir:/a", Lost, 4)]);
        let mut gone = Answer { verdict: NoVerdict, run: 99, ..unseen[0].clone() };
        gone.reasons.push(Reason { id: "gone".to_owned() });
        unseen.push(gone);
        assert!(matches!(Layers::of(&unseen).unwrap().place(), Place::TooFew { layer: 1, .. }));
        // Cuts without a verdict below clear nothing.
        let none = place(&[(Files, "dir:/a", Lost, 9), (Device, "raw:/dev/sdb", NoVerdict, 9)]);
        assert_eq!(none, Place::TooFew { layer: 1, chance: 1.0 });
        // Two directories are layers in the order in which they are given.
        let two = Layers::of(&answers(&[(Files, "dir:/plain", Kept, 5), (Files, "dir:/lvm", Lost, 5)])).unwrap();
        assert!(matches!(two.place(), Place::At { layer: 1, .. }));
        assert_eq!(two.sheet().document["first_that_loses"], "dir:/lvm");
    }

    #[test]
    fn each_layer_has_a_row_and_a_cut_counts_once() {
        use Kind::{Device, Files};
        let mut all = answers(&[(Files, "dir:/a", Said::Lost, 1), (Device, "raw:/dev/sdb", Said::Kept, 3)]);
        let sheet = Layers::of(&all).unwrap().sheet();
        let rows: Vec<&str> = sheet.rows.iter().map(|(_, text)| text.as_str()).collect();
        assert!(rows[0].starts_with("dir:/a or a layer below it: chance") && rows[0].contains("25 %"), "{rows:?}");
        assert_eq!(
            rows[1],
            "raw:/dev/sdb, on a disk: kept all in 3 cuts, so a cut loses something in fewer than 63.2 % of cases; \
             writes in part after 1 of 3 cuts"
        );
        assert_eq!(rows[2], "dir:/a, on a disk: lost commits in 1 of 1 cut; writes in part after 1 of 1 cut");
        all.push(all[1].clone());
        assert_eq!(Layers::of(&all).unwrap_err(), LayersError::Twice { first: 2, second: 5 });
        all[4].run = 99;
        all[4].files = Some(FileCommits { block_bytes: 16_384, ..FileCommits::default() });
        assert!(matches!(Layers::of(&all), Err(LayersError::Different { first: 1, second: 5, .. })));
        all[4] = Answer { machine: "b".to_owned(), run: 99, ..all[1].clone() };
        assert!(matches!(Layers::of(&all), Err(LayersError::Different { what: "the machine", .. })));
        // One name on another stack is another layer.
        all[4] = Answer { words: "on LVM".to_owned(), run: 99, ..all[0].clone() };
        assert_eq!(Layers::of(&all).unwrap().layers.len(), 3);
    }
}
