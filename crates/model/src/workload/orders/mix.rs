//! Which transactions there are, and how many of each.

use std::fmt;

use super::TransactionKind;

/// Weights that Swingbench has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Those of version 2.6.
    V26,
    /// Those of version 2.7 and later, which leave the three queries out.
    V27,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 2] = [Self::V26, Self::V27];

    /// Its word in `--mix`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V26 => "2.6",
            Self::V27 => "2.7",
        }
    }

    /// Its weights.
    pub const fn mix(self) -> Mix {
        Mix(match self {
            Self::V26 => [15, 10, 90, 40, 5, 15, 2, 1, 1],
            Self::V27 => [15, 10, 50, 40, 5, 5, 0, 0, 0],
        })
    }
}

/// The weight of each kind of transaction, by its [`index`](TransactionKind::index): how often it is drawn beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix([u32; TransactionKind::ALL.len()]);

/// Why text is no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixError(String);

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MixError {}

/// Largest weight, so that sums stay small.
const MAX_WEIGHT: u32 = 1_000_000;

impl Mix {
    /// The weight of a kind.
    pub fn weight(&self, kind: TransactionKind) -> u32 {
        self.0[kind.index()]
    }

    /// Weights by kind, in their order.
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.0.iter().copied().map(f64::from)
    }

    /// Whether any transaction of it changes data.
    pub fn changes_data(&self) -> bool {
        TransactionKind::ALL.into_iter().any(|kind| kind.changes_data() && self.weight(kind) > 0)
    }
}

impl fmt::Display for Mix {
    /// As it can be written in `--mix`: kinds of weight 0 are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = TransactionKind::ALL.into_iter().filter(|kind| self.weight(*kind) > 0);
        for (place, kind) in there.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", kind.short(), self.weight(kind))?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Mix {
    type Err = MixError;

    /// A preset's name, or `NCR=15,UCD=10,…`: what is not named is left out.
    fn from_str(text: &str) -> Result<Self, MixError> {
        if let Some(preset) = Preset::ALL.into_iter().find(|preset| preset.name() == text.trim()) {
            return Ok(preset.mix());
        }
        let mut weights = [None; TransactionKind::ALL.len()];
        for part in text.split(',') {
            let part = part.trim();
            let (name, weight) = part
                .split_once('=')
                .ok_or_else(|| MixError(format!("`{part}` is neither NAME=WEIGHT nor a preset (2.6, 2.7)")))?;
            let (name, weight) = (name.trim(), weight.trim());
            let kind = TransactionKind::ALL.into_iter().find(|kind| kind.short().eq_ignore_ascii_case(name));
            let kind = kind.ok_or_else(|| {
                let known: Vec<&str> = TransactionKind::ALL.into_iter().map(TransactionKind::short).collect();
                MixError(format!("there is no transaction `{name}`; there are {}", known.join(", ")))
            })?;
            let parsed = weight.parse().ok().filter(|weight| *weight <= MAX_WEIGHT);
            let parsed = parsed.ok_or_else(|| {
                MixError(format!(
                    "`{weight}` is no weight for {}: it is a whole number up to {MAX_WEIGHT}",
                    kind.short()
                ))
            })?;
            if weights[kind.index()].replace(parsed).is_some() {
                return Err(MixError(format!("the weight of {} is given twice", kind.short())));
            }
        }
        let weights = weights.map(|weight| weight.unwrap_or(0));
        if weights.iter().all(|weight| *weight == 0) {
            return Err(MixError("every weight is 0: nothing would be done".to_owned()));
        }
        Ok(Self(weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        for preset in Preset::ALL {
            assert_eq!(preset.mix().to_string().parse(), Ok(preset.mix()));
            assert_eq!(preset.name().parse(), Ok(preset.mix()));
        }
        let mix: Mix = "op=3, NCR=1".parse().unwrap();
        assert_eq!(mix.to_string(), "NCR=1,OP=3");
    }

    #[test]
    fn what_is_no_mix_is_refused_with_its_reason() {
        let why = |text: &str| text.parse::<Mix>().unwrap_err().to_string();
        assert_eq!(why("NCR"), "`NCR` is neither NAME=WEIGHT nor a preset (2.6, 2.7)");
        assert!(why("NEW=3").starts_with("there is no transaction `NEW`; there are NCR, UCD"));
        assert!(why("NCR=-1").starts_with("`-1` is no weight for NCR"));
        assert_eq!(why("NCR=1,ncr=2"), "the weight of NCR is given twice");
        assert_eq!(why("NCR=0"), "every weight is 0: nothing would be done");
        assert!(why("").contains("neither"));
    }
}
