//! The one list of parameters: errors, `--help` and the documentation's table are all made from it.

use std::fmt;

use super::{ConfigError, Origin};
use crate::units::edit_distance;

/// A parameter of `slob.conf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "PARAMETERS says what each one means")]
pub enum Key {
    UpdatePct,
    ScanPct,
    RunTime,
    WorkLoop,
    Scale,
    ScanTableSz,
    WorkUnit,
    RedoStress,
    LoadParallelDegree,
    ThreadsPerSchema,
    DoHotspot,
    HotspotMb,
    HotspotOffsetMb,
    HotspotFrequency,
    HotSchemaFrequency,
    ThinkTmFrequency,
    ThinkTmMin,
    ThinkTmMax,
    ObfuscateColumns,
    BlockSz,
    ExternalScript,
    DatabaseStatisticsType,
    AdminSqlnetService,
    SqlnetServiceBase,
    SqlnetServiceMax,
    DbaPrivUser,
    SysdbaPasswd,
    NoOsPerfData,
}

/// What a parameter has its effect on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What operations are and how often they come. These may vary within a sweep.
    Load,
    /// How many sessions; a sweep varies it with `--threads`.
    Threads,
    /// How long a step lasts.
    Length,
    /// The blocks that set-up writes.
    DataSet,
    /// A program that is called around a run.
    Script,
    /// How SLOB reaches its database; kept for SQL targets.
    Connection,
}

/// Everything that is said about one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Which one it is.
    pub key: Key,
    /// Its name in `slob.conf`.
    pub name: &'static str,
    /// Its value when nobody gives one, as it would stand in the file; empty if it is then absent.
    pub default: &'static str,
    /// What it accepts, to be read after "is not".
    pub accepted: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// In what it differs from SLOB 2.5; empty if in nothing.
    pub differs: &'static str,
    /// What it has its effect on.
    pub role: Role,
}

impl Key {
    /// The parameter of exactly this name. Names are case-sensitive, as in a shell.
    pub fn from_name(name: &str) -> Option<Self> {
        PARAMETERS.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.key)
    }

    /// What is said about it.
    pub fn parameter(self) -> &'static Parameter {
        &PARAMETERS[self as usize]
    }

    /// Its name in `slob.conf`.
    pub fn name(self) -> &'static str {
        self.parameter().name
    }

    /// Whether its value must never be printed or saved.
    pub fn is_secret(self) -> bool {
        self == Self::SysdbaPasswd
    }
}

impl std::str::FromStr for Key {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let unknown = || ConfigError::UnknownParameter { name: name.to_owned(), origin: Origin::Default };
        Self::from_name(name).ok_or_else(unknown)
    }
}

crate::text::as_text!(Key);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

const PERCENT: &str = "a whole number from 0 to 100";
const TRUE_OR_FALSE: &str = "`TRUE` or `FALSE`";
const MEBIBYTES: &str = "a number of MiB, or a size such as `64M` or `1G`";
const FREQUENCY: &str = "a whole number from 0 to 4294967295";
const SECONDS: &str = "a number of seconds, or a duration such as `250ms`";
const ANY_TEXT: &str = "text";

/// All parameters, in the order in which the documentation has them; the position is the [`Key`].
pub const PARAMETERS: [Parameter; 28] = [
    Parameter {
        key: Key::UpdatePct,
        name: "UPDATE_PCT",
        default: "25",
        accepted: PERCENT,
        meaning: "Updates in every hundred operations of a session.",
        differs: "51 to 99 work too; updates are spread evenly and do not depend on the block.",
        role: Role::Load,
    },
    Parameter {
        key: Key::ScanPct,
        name: "SCAN_PCT",
        default: "0",
        accepted: PERCENT,
        meaning: "Table scans in every hundred operations of a session.",
        differs: "Counted in all operations; SLOB counts it in those that are not updates. 51 to 99 work too.",
        role: Role::Load,
    },
    Parameter {
        key: Key::RunTime,
        name: "RUN_TIME",
        default: "300",
        accepted: "a number of seconds, or a duration such as `90s` or `10m`, from one second on",
        meaning: "Length of the measured window.",
        differs: "Below 30 s works; warm-up comes before it and is not part of it.",
        role: Role::Length,
    },
    Parameter {
        key: Key::WorkLoop,
        name: "WORK_LOOP",
        default: "0",
        accepted: "a whole number, 0 for no limit",
        meaning: "Operations after which a session ends, if RUN_TIME does not end it before.",
        differs: "",
        role: Role::Length,
    },
    Parameter {
        key: Key::Scale,
        name: "SCALE",
        default: "80M",
        accepted: "a number of blocks, or a size such as `80M` or `1.5G`, more than 0",
        meaning: "Data that operations choose from, for each schema.",
        differs: "Below 10,000 blocks works; K and fractions work at set-up and in a run.",
        role: Role::DataSet,
    },
    Parameter {
        key: Key::ScanTableSz,
        name: "SCAN_TABLE_SZ",
        default: "1M",
        accepted: "a number of blocks, or a size such as `80M` or `1.5G`",
        meaning: "Size of the table that scans read, for each schema; 0 for none.",
        differs: "0 works; in SLOB 4 blocks are the least.",
        role: Role::DataSet,
    },
    Parameter {
        key: Key::WorkUnit,
        name: "WORK_UNIT",
        default: "64",
        accepted: "a whole number from 1 to 65536",
        meaning: "Blocks that one operation touches.",
        differs: "Exactly that many; SLOB touches one less, and accepts 3 to 1024.",
        role: Role::Load,
    },
    Parameter {
        key: Key::RedoStress,
        name: "REDO_STRESS",
        default: "LITE",
        accepted: "`LITE` or `HEAVY`",
        meaning: "Columns that an update changes in each row: 2 (LITE) or all 19 (HEAVY).",
        differs: "Anything else is an error; SLOB does not check.",
        role: Role::Load,
    },
    Parameter {
        key: Key::LoadParallelDegree,
        name: "LOAD_PARALLEL_DEGREE",
        default: "2",
        accepted: "a whole number from 1 to 4096",
        meaning: "Loaders that set-up runs side by side.",
        differs: "",
        role: Role::DataSet,
    },
    Parameter {
        key: Key::ThreadsPerSchema,
        name: "THREADS_PER_SCHEMA",
        default: "1",
        accepted: "a whole number from 1 to 4096",
        meaning: "Sessions for each schema; `-t` overrides it.",
        differs: "",
        role: Role::Threads,
    },
    Parameter {
        key: Key::DoHotspot,
        name: "DO_HOTSPOT",
        default: "FALSE",
        accepted: TRUE_OR_FALSE,
        meaning: "Whether some operations go to a hot spot within their schema.",
        differs: "",
        role: Role::Load,
    },
    Parameter {
        key: Key::HotspotMb,
        name: "HOTSPOT_MB",
        default: "8",
        accepted: MEBIBYTES,
        meaning: "Size of the hot spot.",
        differs: "Counted in the data set's own blocks, not in 8192 bytes; must hold a WORK_UNIT; suffixes work.",
        role: Role::Load,
    },
    Parameter {
        key: Key::HotspotOffsetMb,
        name: "HOTSPOT_OFFSET_MB",
        default: "16",
        accepted: MEBIBYTES,
        meaning: "Where the hot spot begins.",
        differs: "As HOTSPOT_MB.",
        role: Role::Load,
    },
    Parameter {
        key: Key::HotspotFrequency,
        name: "HOTSPOT_FREQUENCY",
        default: "3",
        accepted: FREQUENCY,
        meaning: "One operation in this many goes to the hot spot.",
        differs: "Drawn for each operation; in SLOB it is each n-th one. 0 with DO_HOTSPOT=TRUE is an error.",
        role: Role::Load,
    },
    Parameter {
        key: Key::HotSchemaFrequency,
        name: "HOT_SCHEMA_FREQUENCY",
        default: "0",
        accepted: FREQUENCY,
        meaning: "One operation in this many goes to the first schema; 0 for none.",
        differs: "Drawn for each operation, independently of the hot spot.",
        role: Role::Load,
    },
    Parameter {
        key: Key::ThinkTmFrequency,
        name: "THINK_TM_FREQUENCY",
        default: "0",
        accepted: FREQUENCY,
        meaning: "A session thinks before one operation in this many; 0 for never.",
        differs: "Drawn for each operation, independently of the block.",
        role: Role::Load,
    },
    Parameter {
        key: Key::ThinkTmMin,
        name: "THINK_TM_MIN",
        default: ".1",
        accepted: SECONDS,
        meaning: "Shortest think time.",
        differs: "Checked; not rounded to hundredths of a second.",
        role: Role::Load,
    },
    Parameter {
        key: Key::ThinkTmMax,
        name: "THINK_TM_MAX",
        default: ".5",
        accepted: SECONDS,
        meaning: "Longest think time.",
        differs: "As THINK_TM_MIN.",
        role: Role::Load,
    },
    Parameter {
        key: Key::ObfuscateColumns,
        name: "OBFUSCATE_COLUMNS",
        default: "TRUE",
        accepted: TRUE_OR_FALSE,
        meaning: "Whether rows hold bytes that cannot be compressed.",
        differs: "Default: TRUE; in SLOB FALSE.",
        role: Role::DataSet,
    },
    Parameter {
        key: Key::BlockSz,
        name: "BLOCK_SZ",
        default: "",
        accepted: "a block size: 2K, 4K, 8K, 16K or 32K",
        meaning: "Block size that set-up uses.",
        differs: "Not documented in SLOB, where it must be the tablespace's.",
        role: Role::DataSet,
    },
    Parameter {
        key: Key::ExternalScript,
        name: "EXTERNAL_SCRIPT",
        default: "",
        accepted: "a path",
        meaning: "Program that is called with `pre`, `post` and `end`.",
        differs: "",
        role: Role::Script,
    },
    Parameter {
        key: Key::DatabaseStatisticsType,
        name: "DATABASE_STATISTICS_TYPE",
        default: "",
        accepted: "`statspack` or `awr`",
        meaning: "Which report SLOB asks the database for.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::AdminSqlnetService,
        name: "ADMIN_SQLNET_SERVICE",
        default: "",
        accepted: ANY_TEXT,
        meaning: "Service for the administrator's connection.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::SqlnetServiceBase,
        name: "SQLNET_SERVICE_BASE",
        default: "",
        accepted: ANY_TEXT,
        meaning: "Service, or beginning of the services' names, for the sessions.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::SqlnetServiceMax,
        name: "SQLNET_SERVICE_MAX",
        default: "",
        accepted: "a whole number from 1 to 4294967295",
        meaning: "Services over which sessions are spread.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::DbaPrivUser,
        name: "DBA_PRIV_USER",
        default: "",
        accepted: ANY_TEXT,
        meaning: "Administrator's name.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::SysdbaPasswd,
        name: "SYSDBA_PASSWD",
        default: "",
        accepted: ANY_TEXT,
        meaning: "Administrator's password. Never printed, never saved.",
        differs: IGNORED,
        role: Role::Connection,
    },
    Parameter {
        key: Key::NoOsPerfData,
        name: "NO_OS_PERF_DATA",
        default: "",
        accepted: ANY_TEXT,
        meaning: "Anything keeps SLOB from running iostat, vmstat and mpstat.",
        differs: "Kept, ignored on the embedded engine: no such program is run.",
        role: Role::Connection,
    },
];

const IGNORED: &str = "Kept for SQL targets, ignored on the embedded engine.";

/// The parameters that have an effect on the embedded engine, one a line with default and meaning, for `--help`.
pub fn help_text() -> String {
    let shown = || PARAMETERS.iter().filter(|parameter| parameter.role != Role::Connection);
    let label = |Parameter { name, default, .. }: &Parameter| {
        if default.is_empty() { (*name).to_owned() } else { format!("{name}={default}") }
    };
    let width = shown().map(|parameter| label(parameter).len()).max().unwrap_or(0);
    shown().map(|parameter| format!("  {:<width$}  {}\n", label(parameter), parameter.meaning)).collect()
}

/// Names that SLOB had before 2.5, and what took their place.
const RETIRED: [(&str, Key); 4] = [
    ("SHARED_DATA_MODULUS", Key::HotSchemaFrequency),
    ("DO_UPDATE_HOTSPOT", Key::DoHotspot),
    ("HOTSPOT_PCT", Key::HotspotMb),
    ("THINK_TM_MODULUS", Key::ThinkTmFrequency),
];

/// What somebody who wrote an unknown name most likely meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// The same name in other letters.
    OtherCase(Key),
    /// A name of an older SLOB.
    Retired(Key),
    /// A name that differs by a few letters.
    Misspelt(Key),
}

/// The parameter that `name` most likely means; `None` if it is far from all of them.
pub(super) fn meant_by(name: &str) -> Option<Meant> {
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
    fn each_parameter_stands_at_the_position_of_its_key() {
        for (index, parameter) in PARAMETERS.iter().enumerate() {
            assert_eq!(parameter.key as usize, index, "{}", parameter.name);
            assert_eq!(Key::from_name(parameter.name), Some(parameter.key));
        }
    }

    #[test]
    fn every_parameter_is_described_without_breaking_the_table() {
        for Parameter { name, accepted, meaning, differs, default, .. } in &PARAMETERS {
            assert!(!accepted.is_empty() && meaning.ends_with('.'), "{name}");
            assert!([accepted, meaning, differs, default].iter().all(|text| !text.contains(['|', '\n'])), "{name}");
        }
    }

    /// The parameters as a Markdown table, which the documentation has.
    fn markdown_table() -> String {
        let mut out = String::from(
            "| parameter | default | accepted | meaning | differs from SLOB 2.5 |\n|---|---|---|---|---|\n",
        );
        for Parameter { name, default, accepted, meaning, differs, .. } in &PARAMETERS {
            let default = if default.is_empty() { "–".to_owned() } else { format!("`{default}`") };
            let differs = if differs.is_empty() { "–" } else { differs };
            out.push_str(&format!("| `{name}` | {default} | {accepted} | {meaning} | {differs} |\n"));
        }
        out
    }

    #[test]
    fn the_documented_table_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/parameters.md");
        let page = format!(
            "# SLOB's parameters\n\nThe parameters of `plimsoll slob`, in a file (`-c slob.conf`) or as `KEY=VALUE` on the command line. \
             `UPDATE_DOCS=1 cargo test\nthe_documented_table` makes this page from the program. [How they are \
             read](../workloads/slob.md#parameters).\n\n{}",
            markdown_table()
        );
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let documented = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            documented == page,
            "docs/reference/parameters.md is stale: UPDATE_DOCS=1 cargo test the_documented_table"
        );
    }

    #[test]
    fn help_shows_what_has_an_effect_here() {
        let help = help_text();
        assert!(
            help.starts_with("  UPDATE_PCT=25           Updates in every hundred operations of a session.\n"),
            "{help}"
        );
        assert!(help.contains("EXTERNAL_SCRIPT ") && !help.contains("SYSDBA_PASSWD"), "{help}");
    }

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
