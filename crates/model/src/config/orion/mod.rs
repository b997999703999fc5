//! ORION's own command line and its list of devices, read as ORION reads them.
//!
//! ORION (ORacle IO Numbers) walks a matrix: so many small random requests outstanding in the columns, so many large ones
//! in the rows. Its users have their command lines ready, so the options keep ORION's names, units and defaults, single
//! dash included. What ORION lacks is Plimsoll's own and has no place here.
//!
//! ```
//! use plimsoll_model::config::orion::{OrionCommand, RunType, parse};
//!
//! let words = ["-run", "oltp", "-testname", "san", "-num_disks", "4", "-write", "20"].map(str::to_owned);
//! let OrionCommand::Run(options) = parse(&words)? else { panic!("no help was asked for") };
//! assert_eq!(options.run, RunType::Oltp);
//! assert!(options.destroys_data());
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod reading;

pub use reading::{LunFile, OrionProblem, help_text, lun_file, parse, read_luns};

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// What ORION is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrionCommand {
    /// `-help`: say what the options are, whatever else is asked.
    Help,
    /// Walk the matrix.
    Run(OrionOptions),
}

/// ORION's options, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OrionOptions {
    /// What to walk.
    pub run: RunType,
    /// Base name of the device list and of all output; may be a path. Never empty, one printable line.
    pub testname: String,
    /// Spindles, at least 1: only scales how far the load rises. Default: the number of devices in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_disks: Option<u32>,
    /// Size of a small request.
    #[serde(rename = "small_bytes")]
    pub size_small: Bytes,
    /// Size of a large request.
    #[serde(rename = "large_bytes")]
    pub size_large: Bytes,
    /// Where large requests go.
    pub pattern: LargePattern,
    /// Writes in a hundred requests, 0 to 100. More than 0 destroys data.
    pub write_pct: u8,
    /// How the devices are put together to one volume.
    pub layout: ArrayLayout,
    /// How the array's cache is filled before a large sequential point.
    pub cache: ArrayCache,
    /// Length of each point.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// How much is reported on the way.
    #[serde(skip)]
    pub verbosity: OrionVerbosity,
    /// What the user should know: options that mean nothing here, or nothing beside the others.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl OrionOptions {
    /// Whether requests write, so that what the devices hold is lost.
    pub fn destroys_data(&self) -> bool {
        self.write_pct > 0
    }
}

/// What to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunType {
    /// Small requests alone, then large ones alone.
    Simple,
    /// Every combination of small and large.
    Normal,
    /// Small requests alone, much further up: the most requests per second.
    Oltp,
    /// Large requests alone, much further up: the most bytes per second.
    Dss,
    /// What the matrix says, with every other option free.
    Advanced(Matrix),
}

impl RunType {
    /// The word after `-run`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Normal => "normal",
            Self::Oltp => "oltp",
            Self::Dss => "dss",
            Self::Advanced(_) => "advanced",
        }
    }

    /// The matrix that it is short for.
    pub fn matrix(self) -> Matrix {
        match self {
            Self::Simple => Matrix::Basic,
            Self::Normal => Matrix::Detailed,
            Self::Oltp => Matrix::Row { large: 0 },
            Self::Dss => Matrix::Col { small: 0 },
            Self::Advanced(matrix) => matrix,
        }
    }
}

/// The part of the matrix that an advanced run walks. Numbers are requests outstanding; of large sequential ones, streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Matrix {
    /// The first row and the first column: small alone, large alone.
    Basic,
    /// All of it.
    Detailed,
    /// One point; not both numbers are 0.
    Point {
        /// Small requests outstanding.
        small: u32,
        /// Large requests outstanding.
        large: u32,
    },
    /// Rising large load beside so many small requests.
    Col {
        /// Small requests outstanding.
        small: u32,
    },
    /// Rising small load beside so many large requests.
    Row {
        /// Large requests outstanding.
        large: u32,
    },
    /// All combinations up to these maxima, of which not both are 0.
    Max {
        /// Most small requests outstanding.
        small: u32,
        /// Most large requests outstanding.
        large: u32,
    },
}

impl Matrix {
    /// The word after `-matrix`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Detailed => "detailed",
            Self::Point { .. } => "point",
            Self::Col { .. } => "col",
            Self::Row { .. } => "row",
            Self::Max { .. } => "max",
        }
    }
}

/// Where large requests go. Small ones are always random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LargePattern {
    /// Anywhere.
    Random,
    /// One after the other in each stream.
    Sequential {
        /// Requests that each stream keeps outstanding, at least 1.
        requests_per_stream: u32,
    },
}

/// How the devices are put together to one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrayLayout {
    /// One after the other.
    Concat,
    /// Striped, as ASM and RAID 0 do.
    Raid0 {
        /// Bytes on one device before the next is used.
        stripe: Bytes,
    },
}

/// What is known about the array's cache. It decides on requests that are not measured, before each large sequential
/// point, so that the point does not read what the one before it has left in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrayCache {
    /// Nothing: two minutes of random requests.
    NotEntered,
    /// There is none: no such requests.
    Absent,
    /// Its size: random requests of so many bytes in all.
    Size(Bytes),
}

/// How much is reported on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrionVerbosity {
    /// What is reported on every run.
    #[default]
    Usual,
    /// Each point's result as it ends (`-verbose`).
    EachPoint,
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::reading::{OPTIONS, Opt};
    use super::*;
    use crate::config::ConfigError;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn options(line: &str) -> OrionOptions {
        match parse(&words(line)).unwrap() {
            OrionCommand::Run(options) => options,
            OrionCommand::Help => panic!("`{line}` asks for no help"),
        }
    }

    /// Message and hint of what is wrong with a command line.
    fn wrong(line: &str) -> (String, String) {
        let error = parse(&words(line)).unwrap_err();
        (error.to_string(), error.hint().unwrap())
    }

    #[test]
    fn defaults_are_orions() {
        assert_eq!(
            options("-run simple"),
            OrionOptions {
                run: RunType::Simple,
                testname: "orion".to_owned(),
                num_disks: None,
                size_small: Bytes::kib(8),
                size_large: Bytes::mib(1),
                pattern: LargePattern::Random,
                write_pct: 0,
                layout: ArrayLayout::Concat,
                cache: ArrayCache::NotEntered,
                duration: Nanos::seconds(60),
                verbosity: OrionVerbosity::Usual,
                notes: Vec::new(),
            }
        );
        assert!(!options("-run simple").destroys_data());
    }

    #[test]
    fn an_advanced_run_takes_every_option_in_any_order() {
        let options = options(
            "-verbose -num_large 3 -matrix point -num_small 7 -type seq -num_streamIO 8 -simulate RAID0 -stripe 256 \
         -write 30 -cache_size 512 -duration 5 -size_small 16 -size_large 512 -num_disks 12 -testname ./san/lun7 \
         -run ADVANCED",
        );
        assert_eq!(options.run, RunType::Advanced(Matrix::Point { small: 7, large: 3 }));
        assert_eq!(options.pattern, LargePattern::Sequential { requests_per_stream: 8 });
        assert_eq!(options.layout, ArrayLayout::Raid0 { stripe: Bytes::kib(256) });
        assert_eq!(options.cache, ArrayCache::Size(Bytes::mib(512)));
        assert_eq!((options.size_small, options.size_large), (Bytes::kib(16), Bytes::kib(512)));
        assert_eq!((options.num_disks, options.duration), (Some(12), Nanos::seconds(5)));
        assert_eq!((options.testname.as_str(), options.verbosity), ("./san/lun7", OrionVerbosity::EachPoint));
        assert!(options.destroys_data());
        assert_eq!(options.notes, Vec::<String>::new());
    }

    #[test]
    fn each_matrix_takes_its_own_numbers() {
        for (line, matrix) in [
            ("", Matrix::Basic),
            ("-matrix basic", Matrix::Basic),
            ("-matrix detailed", Matrix::Detailed),
            ("-matrix col -num_small 0", Matrix::Col { small: 0 }),
            ("-matrix row -num_large 2", Matrix::Row { large: 2 }),
            ("-matrix max -num_small 9 -num_large 0", Matrix::Max { small: 9, large: 0 }),
        ] {
            assert_eq!(options(&format!("-run advanced {line}")).run, RunType::Advanced(matrix), "{line}");
        }
    }

    #[test]
    fn a_cache_of_size_zero_is_no_cache() {
        assert_eq!(options("-run simple -cache_size 0").cache, ArrayCache::Absent);
    }

    #[test]
    fn what_changes_nothing_is_accepted_and_explained() {
        let options = options("-run advanced -hugenotneeded -storax skgfr -stripe 64 -num_streamIO 2");
        assert_eq!(options.notes.len(), 4);
        assert!(options.notes.iter().all(|note| note.contains("changes nothing")), "{:?}", options.notes);
    }

    #[test]
    fn help_wins_over_whatever_else_is_there() {
        assert_eq!(parse(&words("-run wrong -help --what")).unwrap(), OrionCommand::Help);
    }

    #[test]
    fn what_is_wrong_is_reported_with_what_to_do() {
        for (line, message, hint) in [
            ("", "`-run` is missing", "-run simple"),
            ("-run quick", "`-run quick` is not one of `simple`", "what to measure"),
            ("-run", "`-run` has no value", "-run simple|normal"),
            ("-run -write 5", "`-run` has no value", "simple|normal"),
            ("-run simple -run dss", "`-run` is given twice", "-run simple|normal"),
            ("-run simple -testname a/", "`-testname a/` is not a name for files", "NAME.lun"),
            ("-run oltp -write 101", "`-write 101` is not a percentage from 0 to 100", "destroys"),
            ("-run oltp -write +5", "`-write +5` is not", "requests that write"),
            ("-run oltp -duration 0", "`-duration 0` is not a number of seconds from 1", "length of each point"),
            ("-run simple -num_disks 0", "is not a number of disks from 1 to 4096", "how far the load rises"),
            ("-run advanced -type zigzag", "`-type zigzag` is not `rand` or `seq`", "sequential streams"),
            ("-run advanced -simulate raid5", "is not `concat` or `raid0`", "one volume"),
            ("-run simple -storax ioctl", "is not one of `skgfr`", "I/O layers"),
            ("-run simple -matrix detailed", "`-matrix` does not go with `-run simple`", "-run advanced -matrix basic"),
            ("-run normal -num_small 3", "`-num_small` does not go with `-run normal`", "-matrix detailed"),
            ("-run oltp -num_large 3", "`-num_large` does not go with `-run oltp`", "-matrix row -num_large 0"),
            ("-run dss -type seq", "`-type` does not go with `-run dss`", "-matrix col -num_small 0"),
            ("-run simple -write 10", "`-write` does not go with `-run simple`", "-run advanced"),
            ("-run advanced -matrix row", "`-matrix row` needs `-num_large`", "for point, row and max"),
            (
                "-run advanced -matrix point -num_large 1",
                "`-matrix point` needs `-num_small`",
                "for point, col and max",
            ),
            ("-run advanced -num_small 1", "`-num_small` does not go with `-matrix basic`", "-matrix max"),
            ("-run advanced -matrix point -num_large 0 -num_small 0", "asks for no load at all", "from 1 on"),
            ("-run simple -numdisks 3", "no option `-numdisks`", "`-num_disks`"),
            ("-run simple --num_disks 3", "no option `--num_disks`", "`-num_disks`"),
            ("-run simple –write 0", "no option `–write`", "type `-write`"),
            ("-run simple --destroy", "no option `--destroy`", "stand before"),
            ("-run simple 5", "no option `5`", "`-help`"),
        ] {
            let (reported, advice) = wrong(line);
            assert!(reported.contains(message), "{line}: {reported}");
            assert!(advice.contains(hint), "{line}: {advice}");
        }
    }

    #[test]
    fn the_table_has_every_option_once_and_help_lists_it() {
        let help = help_text();
        for (index, row) in OPTIONS.iter().enumerate() {
            assert_eq!(row.option.name(), row.name);
            assert_eq!(OPTIONS.iter().position(|other| other.option == row.option), Some(index));
            assert!(help.contains(&format!("-{}", row.name)));
        }
        assert_eq!(OPTIONS.last().unwrap().option, Opt::Help);
    }

    fn list(text: &str) -> Result<LunFile, ConfigError> {
        LunFile::parse(text, Path::new("san.lun"))
    }

    #[test]
    fn a_list_has_one_path_a_line() {
        let found = list("/dev/sdb\n/dev/sdc  \r\n/data/with blank\n").unwrap();
        assert_eq!(found.luns, ["/dev/sdb", "/dev/sdc", "/data/with blank"].map(PathBuf::from));
        assert_eq!(found.notes, Vec::<String>::new());
    }

    #[test]
    fn blank_lines_and_comments_are_passed_over_with_a_note() {
        let found = list("# disk group DATA\n\n/dev/sdb\n\n").unwrap();
        assert_eq!(found.luns, [PathBuf::from("/dev/sdb")]);
        assert!(found.notes[0].contains("2 blank lines"), "{:?}", found.notes);
        assert!(found.notes[1].contains("1 comment line passed over"), "{:?}", found.notes);
    }

    #[test]
    fn a_list_that_cannot_be_one_is_refused() {
        for (text, message) in [
            ("/dev/sdb\n#\n/dev/sdb\n", "san.lun:3: `/dev/sdb` is listed twice, first in line 1"),
            ("", "lists no device"),
            ("# later\n", "lists no device"),
            ("/dev/\u{7}\n", "san.lun:1"),
        ] {
            let error = list(text).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn a_missing_list_says_what_to_write_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("san").display().to_string();
        let error = read_luns(&name).unwrap_err();
        assert!(error.to_string().contains("san.lun`, which lists the devices"), "{error}");
        assert!(error.hint().unwrap().contains("one device or file a line"));
        std::fs::write(lun_file(&name), "/dev/sdb\n").unwrap();
        assert_eq!(read_luns(&name).unwrap().luns, [PathBuf::from("/dev/sdb")]);
        let error = read_luns(&format!("{name}.lun")).unwrap_err();
        assert!(error.hint().unwrap().ends_with("san`"), "{:?}", error.hint());
    }

    fn any_words() -> impl Strategy<Value = Vec<String>> {
        let option = prop::sample::select(OPTIONS.iter().map(|row| format!("-{}", row.name)).collect::<Vec<_>>());
        let value = prop::sample::select(vec![
            "simple", "normal", "advanced", "oltp", "dss", "basic", "point", "col", "max", "0", "1", "4096", "raid0",
            "seq",
        ]);
        let number = any::<u64>().prop_map(|n| n.to_string());
        prop::collection::vec(
            prop_oneof![4 => option, 4 => value.prop_map(str::to_owned), 1 => number, 1 => ".*"],
            0..12,
        )
    }

    proptest! {
        #[test]
        fn no_words_make_the_parser_panic(words in any_words()) {
            if let Err(error) = parse(&words) {
                prop_assert!(error.hint().is_some(), "{error}");
            }
        }

        #[test]
        fn no_text_makes_the_list_panic(text in "(/dev/[a-c]|#|\\PC|\n){0,40}") {
            if let Ok(found) = list(&text) {
                prop_assert!(!found.luns.is_empty());
            }
        }
    }
}
