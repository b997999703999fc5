//! Where a run came from that another program measured.

use serde::{Deserialize, Serialize};

use super::{Known, Metric};

/// The files that a run was made from, and what could not be read in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Imported {
    /// The files, the one that gave the run its name first.
    pub files: Vec<ImportedFile>,
    /// What the times of the run are reported in.
    pub clock: Clock,
    /// What was recognised as belonging to a file of its kind, and not understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<NotUnderstood>,
}

/// A file that a run was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImportedFile {
    /// Its path, as it was named.
    pub path: String,
    /// What it is, such as `awr-text` or `fio-json`.
    pub kind: String,
    /// Its size, after decompression.
    pub bytes: u64,
    /// CRC-64/NVME of its content after decompression, in hexadecimal: the same file is not taken twice.
    pub crc64: String,
    /// Which run of the file this is, from 0, where it holds several.
    #[serde(default)]
    pub part: u32,
}

/// What the times of an imported run are reported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Universal time, or a time with its zone.
    Utc,
    /// Time of the clock on the wall, in a zone that is not reported; it is written as if it were UTC.
    Wall,
    /// The file reports no time: that of its last change.
    FileTime,
}

/// Something that an importer recognised and did not understand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotUnderstood {
    /// The file.
    pub path: String,
    /// Its line, from 1, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What stands there and what was expected.
    pub what: String,
}

/// A figure by the name that the program which measured it uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedFigure {
    /// Layer at which it was measured: `client`, `engine`, `server`, `OS file`, `device`, `network`, `host`.
    pub layer: String,
    /// Name, as the program writes it, such as `NOPM` or `bogo ops/s (real time)`.
    pub name: String,
    /// Unit, such as `MB/s` or `%`; empty for a plain number.
    pub unit: String,
    /// Its value in that unit.
    pub value: f64,
    /// Which metric of the catalogue it is; absent where it is none, and in runs from before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Known>,
}

impl ReportedFigure {
    /// A figure by the name that its program uses, of which no metric is known.
    pub fn new(layer: &str, name: impl Into<String>, unit: &str, value: f64) -> Self {
        Self { layer: layer.to_owned(), name: name.into(), unit: unit.to_owned(), value, metric: None }
    }

    /// The same, which is `metric`: `factor` of its unit are one of the figure's.
    #[must_use]
    pub fn is(mut self, metric: impl Into<Option<Metric>>, factor: f64) -> Self {
        self.metric = metric.into().map(|key| Known { key, factor, of: None });
        self
    }

    /// The same of a part of the measured, such as a device or a node.
    #[must_use]
    pub fn of(mut self, part: &str) -> Self {
        self.metric.iter_mut().for_each(|known| known.of = Some(part.to_owned()));
        self
    }

    /// Its value in the unit of `metric`; absent where it is another one, or one of a part.
    pub fn value_of(&self, metric: Metric) -> Option<f64> {
        self.part_of(metric).filter(|(part, _)| part.is_none()).map(|(_, value)| value)
    }

    /// The part that it is `metric` of, and its value in the unit of that.
    pub fn part_of(&self, metric: Metric) -> Option<(Option<&str>, f64)> {
        let known = self.metric.as_ref().filter(|known| known.key == metric)?;
        Some((known.of.as_deref(), self.value * known.factor))
    }
}
