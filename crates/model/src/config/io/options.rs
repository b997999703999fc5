//! A load on raw storage, as the user asked for it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, Gap, numbers};
use crate::units::Bytes;
use crate::workload::Arrival;
use crate::workload::io::{Access, Distribution};

use super::{BlockSize, DepthList, Durable, IoProblem, MAX_DEPTH, Pattern, RateRange, is_rate};
use crate::config::nfs::MAX_CONNECTIONS;

/// Whether blocks are kept once or twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Redundancy {
    /// Each block lies on one path.
    #[default]
    None,
    /// Each write goes to two paths (`--mirror`), as with a disk group's normal redundancy.
    Mirror,
}

/// Whether requests go through the operating system's page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// Past it: O_DIRECT (`--direct on`).
    #[default]
    Bypassed,
    /// Through it (`--direct off`).
    Used,
}

/// Whether the content of what is read is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// It is not looked at.
    #[default]
    Nothing,
    /// Each block read must be the one that was written there (`--verify`).
    Blocks,
}

/// What several paths are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Volumes {
    /// All paths make one volume.
    #[default]
    One,
    /// Each path is a volume, loaded alone and together with the others (`--together`).
    Each {
        /// How often each of these loads is measured.
        rounds: u32,
    },
}

impl Volumes {
    /// Volumes that can be distinguished by a letter.
    pub const MAX: usize = 26;
    /// Rounds that can be asked for.
    pub const MAX_ROUNDS: u32 = 1_000;
    /// An even number: rounds go forth and back, so that a drift in time touches every load alike.
    pub const DEFAULT_ROUNDS: u32 = 2;
}

/// A load on raw storage, as the user asked for it; [`check`](Self::check) says whether it makes sense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct IoOptions {
    /// Files or block devices; none where the target is simulated, and in a document, whose target has the address.
    #[serde(skip)]
    pub paths: Vec<PathBuf>,
    /// Order and direction of requests.
    pub pattern: Pattern,
    /// Their size.
    pub block: BlockSize,
    /// Reads in each hundred requests; the pattern's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_pct: Option<u8>,
    /// How often each block is drawn; uniformly where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// Requests outstanding of all jobs together, one step each: a run has one. With `rates`, the most that may be
    /// outstanding.
    pub depths: DepthList,
    /// Streams that share the depth.
    pub jobs: u32,
    /// Rates of an open loop; absent for a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RateRange>,
    /// How the requests of an open loop arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// What the paths are to each other.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub volumes: Volumes,
    /// Whether connections to an NFS server are varied, at one depth.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub connections: Connections,
    /// How much of a volume is used, which is that of all paths unless each is one; all where absent.
    #[serde(default, rename = "size_bytes", skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// When writes count as durable.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub durable: Durable,
    /// Whether the page cache is used.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub page_cache: PageCache,
    /// The stripe in which blocks are spread over the paths.
    #[serde(default, rename = "stripe_bytes", skip_serializing_if = "Option::is_none")]
    pub stripe: Option<Bytes>,
    /// Whether blocks are kept twice.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub redundancy: Redundancy,
    /// Whether what is read is checked.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub verify: Verify,
}

impl IoOptions {
    /// Finds what contradicts each other, as far as it shows without the device.
    ///
    /// # Errors
    /// [`ConfigError::Io`] with the first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let read_pct = self.pattern.read_pct(self.read_pct)?;
        self.check_places()
            .and_then(|()| self.check_load())
            .and_then(|()| self.check_paths())
            .and_then(|()| self.check_volumes())
            .and_then(|()| self.check_connections())
            .map_err(ConfigError::Io)?;
        if read_pct == 100 && self.durable != Durable::None {
            let problem = IoProblem::NothingToMakeDurable { durable: self.durable, pattern: self.pattern };
            return Err(ConfigError::Io(problem));
        }
        match (self.verify, self.page_cache) {
            (Verify::Blocks, PageCache::Used) => Err(ConfigError::Io(IoProblem::VerifyInMemory)),
            _ => Ok(()),
        }
    }

    /// Whether any request changes the volume.
    pub fn writes(&self) -> bool {
        self.read_pct_in_force() < 100
    }

    /// Reads in each hundred requests. Of a load that [`check`](Self::check) refuses, the pattern's own.
    pub fn read_pct_in_force(&self) -> u8 {
        self.pattern.read_pct(self.read_pct).unwrap_or(self.pattern.own_read_pct())
    }

    /// In which order blocks are visited.
    pub fn access(&self) -> Access {
        if self.pattern.is_sequential() {
            return Access::Sequential;
        }
        Access::Random(self.distribution.unwrap_or_default())
    }

    fn check_places(&self) -> Result<(), IoProblem> {
        if let Some(distribution) = self.distribution.filter(|_| self.pattern.is_sequential()) {
            return Err(IoProblem::NothingToDistribute { distribution, pattern: self.pattern });
        }
        match self.size {
            Some(size) if size < self.block.into() => Err(IoProblem::SizeBelowBlock { size, block: self.block }),
            _ => Ok(()),
        }
    }

    fn check_load(&self) -> Result<(), IoProblem> {
        let DepthList(depths) = &self.depths;
        if let Some(depth) = depths.iter().find(|depth| !(1..=MAX_DEPTH).contains(*depth)) {
            return Err(IoProblem::Depth { text: depth.to_string() });
        }
        let least = *depths.iter().min().ok_or(IoProblem::NoDepth)?;
        if self.jobs == 0 {
            return Err(IoProblem::NoJobs);
        }
        if self.jobs > least {
            return Err(IoProblem::TooManyJobs { jobs: self.jobs, depth: least });
        }
        match &self.rates {
            None if self.arrival.is_some() => Err(IoProblem::ArrivalWithoutRate),
            None => Ok(()),
            Some(_) if depths.len() > 1 => Err(IoProblem::DepthsAndRates { depths: depths.len() }),
            Some(rates) => match rates.named().into_iter().find(|rate| !is_rate(*rate)) {
                Some(rate) => Err(IoProblem::Rate { text: rate.to_string() }),
                None => Ok(()),
            },
        }
    }

    fn check_paths(&self) -> Result<(), IoProblem> {
        for (index, path) in self.paths.iter().enumerate() {
            if self.paths[..index].contains(path) {
                return Err(IoProblem::PathTwice { path: path.clone() });
            }
        }
        let paths = self.paths.len();
        if self.redundancy == Redundancy::Mirror && paths < 2 {
            return Err(IoProblem::MirrorOfOne { paths });
        }
        match self.stripe {
            None => Ok(()),
            Some(_) if paths < 2 => Err(IoProblem::StripeOfOne { paths }),
            Some(stripe) if stripe < IoProblem::MIN_STRIPE => Err(IoProblem::StripeTooSmall { stripe }),
            Some(stripe) if !stripe.0.is_multiple_of(u64::from(self.block.bytes())) => {
                Err(IoProblem::StripeAcrossBlocks { stripe, block: self.block })
            }
            Some(_) => Ok(()),
        }
    }

    fn check_volumes(&self) -> Result<(), IoProblem> {
        let Volumes::Each { rounds } = self.volumes else { return Ok(()) };
        let paths = self.paths.len();
        let cut_over_paths = match (self.stripe, self.redundancy) {
            (_, Redundancy::Mirror) => Some("--mirror"),
            (Some(_), Redundancy::None) => Some("--stripe"),
            (None, Redundancy::None) => None,
        };
        match cut_over_paths {
            _ if rounds == 0 || rounds > Volumes::MAX_ROUNDS => Err(IoProblem::Rounds { rounds }),
            Some(flag) => Err(IoProblem::TogetherAsOneVolume { flag }),
            // Simulated storage has no paths, and says itself how many volumes it is.
            None if paths == 1 => Err(IoProblem::TogetherAlone),
            None if paths > Volumes::MAX => Err(IoProblem::TooManyVolumes { paths }),
            None if self.rates.is_some() => Err(IoProblem::TogetherAtRate),
            None if self.verify == Verify::Blocks => Err(IoProblem::TogetherVerified),
            None => Ok(()),
        }
    }

    fn check_connections(&self) -> Result<(), IoProblem> {
        let Connections::Each { list: ConnectionList(numbers), rounds } = &self.connections else { return Ok(()) };
        match self.depths.0.len() {
            _ if numbers.is_empty() => Err(IoProblem::Connections { text: String::new() }),
            _ if *rounds == 0 || *rounds > Volumes::MAX_ROUNDS => Err(IoProblem::Rounds { rounds: *rounds }),
            _ if self.rates.is_some() => Err(IoProblem::ConnectionsAtRate),
            _ if self.volumes != Volumes::One => Err(IoProblem::ConnectionsTogether),
            depths if depths > 1 => Err(IoProblem::ConnectionsAndDepths { depths }),
            _ => Ok(()),
        }
    }
}

/// Connections of each thread to each path of an NFS server, one step each, written as depths are: `1,2,4,8` or `1..16`.
///
/// What is read has at least one number, each from 1 to [`MAX_CONNECTIONS`] and there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionList(pub Vec<u32>);

/// Whether the connections to an NFS server are varied.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// They are as many as the address says.
    #[default]
    Addressed,
    /// Each number in turn, everything else the same (`--connections`).
    Each {
        /// The numbers.
        list: ConnectionList,
        /// How often each of them is measured, forth and back.
        rounds: u32,
    },
}

impl Connections {
    /// Each number is one step.
    pub const DEFAULT_ROUNDS: u32 = 1;
}

impl FromStr for ConnectionList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let list = numbers(text, read, |gap| match gap {
            Gap::Twice(connections) => IoProblem::ConnectionsTwice { connections },
            Gap::Down { first, last } => IoProblem::DepthOrder { first, last },
            Gap::NoDoubling { before, first } => {
                IoProblem::NoDoubling { before: f64::from(before), first: f64::from(first) }
            }
        });
        list.map(Self).map_err(ConfigError::Io)
    }
}

fn read(text: &str) -> Result<u32, IoProblem> {
    let number = text.parse().ok().filter(|number| (1..=MAX_CONNECTIONS).contains(number));
    number.ok_or_else(|| IoProblem::Connections { text: text.to_owned() })
}

impl fmt::Display for ConnectionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_refused;
    use super::{ConnectionList, *};

    fn plain() -> IoOptions {
        IoOptions {
            paths: vec!["/u01/one".into(), "/u02/two".into()],
            pattern: Pattern::RandRead,
            block: "8K".parse().unwrap(),
            read_pct: None,
            distribution: None,
            depths: DepthList(vec![32]),
            jobs: 4,
            rates: None,
            arrival: None,
            volumes: Volumes::One,
            connections: Connections::Addressed,
            size: None,
            durable: Durable::None,
            page_cache: PageCache::Bypassed,
            stripe: None,
            redundancy: Redundancy::None,
            verify: Verify::Nothing,
        }
    }

    fn assert_contradicts(asked: &IoOptions, message: &str, hint: &str) {
        let error = asked.check().unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint().unwrap().as_str()), (message, hint));
    }

    #[test]
    fn a_load_with_everything_that_fits_together_passes() {
        plain().check().unwrap();
        let full = IoOptions {
            pattern: Pattern::RandRw,
            read_pct: Some(70),
            distribution: Some("zipf:1.1".parse().unwrap()),
            rates: Some("1000..60000".parse().unwrap()),
            arrival: Some(Arrival::Fixed),
            size: Some(Bytes(8192)),
            durable: "fsync:8".parse().unwrap(),
            stripe: Some(Bytes::mib(1)),
            redundancy: Redundancy::Mirror,
            verify: Verify::Blocks,
            ..plain()
        };
        full.check().unwrap();
        IoOptions { depths: "4..256".parse().unwrap(), ..plain() }.check().unwrap();
        IoOptions { paths: Vec::new(), ..plain() }.check().unwrap();
    }

    #[test]
    fn reads_and_writes_are_reported_from_the_pattern_and_the_percentage() {
        let of = |pattern, read_pct| IoOptions { pattern, read_pct, ..plain() };
        assert!(!of(Pattern::Read, None).writes());
        assert!(of(Pattern::Write, None).writes());
        assert!(of(Pattern::RandRw, None).writes());
        assert!(!of(Pattern::RandRw, Some(100)).writes());
        assert_eq!(of(Pattern::Rw, Some(30)).read_pct_in_force(), 30);
        // A contradiction never makes a load that writes look harmless.
        assert!(of(Pattern::Write, Some(100)).writes());
        assert!(of(Pattern::RandRw, Some(200)).writes());
    }

    #[test]
    fn the_order_of_blocks_comes_from_the_pattern() {
        let of = |pattern, distribution| IoOptions { pattern, distribution, ..plain() }.access();
        assert_eq!(of(Pattern::Rw, None), Access::Sequential);
        assert_eq!(of(Pattern::RandRw, None), Access::Random(Distribution::Uniform));
        let zipf = Distribution::Zipf { theta: 1.1 };
        assert_eq!(of(Pattern::RandWrite, Some(zipf)), Access::Random(zipf));
    }

    #[test]
    fn contradictions_about_places_are_found() {
        assert_contradicts(
            &IoOptions { read_pct: Some(70), ..plain() },
            "`randread` only reads, which excludes `--read-pct 70`",
            "use `randrw`",
        );
        assert_contradicts(
            &IoOptions { pattern: Pattern::Write, distribution: Some("zipf:1.1".parse().unwrap()), ..plain() },
            "`--distribution zipf:1.1` has no meaning for `write`, which goes from block to block",
            "use `randwrite`, or leave `--distribution` out",
        );
        assert_contradicts(
            &IoOptions { size: Some(Bytes(8191)), ..plain() },
            "`--size 8191B` is less than one request of 8K",
            "raise `--size` or lower `--block-size`",
        );
    }

    #[test]
    fn contradictions_about_the_load_are_found() {
        let depths = "write such a number; a sweep takes several: `1,2,4,8`, or `1..256` for doublings";
        assert_contradicts(
            &IoOptions { depths: DepthList(vec![0]), ..plain() },
            "`0` is not a number from 1 to 4096",
            depths,
        );
        assert_contradicts(
            &IoOptions { depths: DepthList(vec![5_000]), ..plain() },
            "`5000` is not a number from 1 to 4096",
            depths,
        );
        assert_contradicts(&IoOptions { depths: DepthList(Vec::new()), ..plain() }, "no depth was given", depths);
        assert_contradicts(
            &IoOptions { jobs: 0, ..plain() },
            "`--jobs 0` would send nothing",
            "give `--jobs` at least 1",
        );
        assert_contradicts(
            &IoOptions { depths: "2..64".parse().unwrap(), ..plain() },
            "4 jobs cannot share a depth of 2: each needs a request of its own",
            "use `--jobs 2` or fewer, or raise `--depth`",
        );
        assert_contradicts(
            &IoOptions { rates: Some(RateRange::Each(vec![0.0])), ..plain() },
            "`0` is not a rate",
            "write operations a second from 0.001 to 1000000000, such as `1000..60000` or `1k,2k,5k`",
        );
        assert_contradicts(
            &IoOptions { depths: "4..64".parse().unwrap(), rates: Some(RateRange::Each(vec![5.0])), ..plain() },
            "a sweep over rates has one depth, but 5 were given",
            "vary one of the two: with `--rate`, `--depth` is the most that may be outstanding",
        );
        assert_contradicts(
            &IoOptions { arrival: Some(Arrival::Fixed), ..plain() },
            "`--arrival` has no meaning without `--rate`",
            "add `--rate`, or leave `--arrival` out",
        );
    }

    #[test]
    fn contradictions_about_paths_are_found() {
        let one = || IoOptions { paths: vec!["/u01/one".into()], ..plain() };
        assert_contradicts(
            &IoOptions { paths: vec!["/u01/one".into(), "/u01/one".into()], ..plain() },
            "`--path /u01/one` is listed twice",
            "give each path once",
        );
        assert_contradicts(
            &IoOptions { redundancy: Redundancy::Mirror, ..one() },
            "`--mirror` keeps each block on two paths, but only one was given",
            "give a second `--path`, or leave `--mirror` out",
        );
        assert_contradicts(
            &IoOptions { stripe: Some(Bytes::mib(1)), paths: Vec::new(), ..plain() },
            "`--stripe` spreads blocks over several paths, but none was given",
            "give a second `--path`, or leave `--stripe` out",
        );
        assert_contradicts(
            &IoOptions { stripe: Some(Bytes::kib(2)), block: "1K".parse().unwrap(), ..plain() },
            "a stripe of 2K is less than 4 KiB",
            "use `--stripe 1M`, as disk groups and volume managers do",
        );
        assert_contradicts(
            &IoOptions { stripe: Some(Bytes::kib(12)), ..plain() },
            "a stripe of 12K is not a multiple of the request size 8K",
            "use a multiple of 8K, such as `--stripe 1M`",
        );
        assert_contradicts(
            &IoOptions { stripe: Some(Bytes::mib(1)), block: "4M".parse().unwrap(), ..plain() },
            "a stripe of 1M is not a multiple of the request size 4M",
            "use a multiple of 4M, such as `--stripe 4M`",
        );
    }

    #[test]
    fn a_stripe_of_nothing_is_too_small() {
        let error = IoOptions { stripe: Some(Bytes(0)), ..plain() }.check().unwrap_err();
        assert_eq!(error.to_string(), "a stripe of 0B is less than 4 KiB");
    }

    #[test]
    fn contradictions_about_volumes_that_are_loaded_together_are_found() {
        let together = || IoOptions { volumes: Volumes::Each { rounds: 2 }, ..plain() };
        together().check().unwrap();
        IoOptions { paths: Vec::new(), ..together() }.check().unwrap();
        assert_contradicts(
            &IoOptions { volumes: Volumes::Each { rounds: 0 }, ..plain() },
            "`--rounds 0` is not a number of rounds from 1 to 1000",
            "leave `--rounds` out, or use an even number, which may be large where the storage is noisy",
        );
        assert_contradicts(
            &IoOptions { paths: vec!["/u01/one".into()], ..together() },
            "`--together` compares volumes with each other, but only one path was given",
            "give each volume's `--path`, at least two",
        );
        assert_contradicts(
            &IoOptions { redundancy: Redundancy::Mirror, ..together() },
            "`--together` takes each path for a volume of its own, and `--mirror` makes one volume of all",
            "leave one of the two out",
        );
        assert_contradicts(
            &IoOptions { stripe: Some(Bytes::mib(1)), ..together() },
            "`--together` takes each path for a volume of its own, and `--stripe` makes one volume of all",
            "leave one of the two out",
        );
        assert_contradicts(
            &IoOptions { rates: Some(RateRange::Each(vec![5.0])), ..together() },
            "`--together` measures how much the volumes sustain, which a fixed `--rate` hides",
            "use `--depth` alone: it is what is outstanding on each volume",
        );
        assert_contradicts(
            &IoOptions { verify: Verify::Blocks, ..together() },
            "`--together` cannot check what it reads",
            "leave `--verify` out, or verify each volume by itself",
        );
        let many = (0..27).map(|number| format!("/u{number}").into()).collect();
        assert!(IoOptions { paths: many, ..together() }.check().is_err());
    }

    #[test]
    fn contradictions_about_connections_are_found() {
        let each = |list: &str, rounds| Connections::Each { list: list.parse().unwrap(), rounds };
        let varied = || IoOptions { connections: each("1..8", 1), ..plain() };
        varied().check().unwrap();
        assert_contradicts(
            &IoOptions { depths: "4,8".parse().unwrap(), ..varied() },
            "connections are compared at one depth, but 2 were given",
            "give one `--depth`, which is outstanding at every number of connections",
        );
        let others = [
            IoOptions { rates: Some(RateRange::Each(vec![5.0])), ..varied() },
            IoOptions { volumes: Volumes::Each { rounds: 2 }, ..varied() },
            IoOptions { connections: each("1", 0), ..plain() },
        ];
        assert!(others.iter().all(|asked| asked.check().is_err()));
    }

    #[test]
    fn contradictions_about_what_is_kept_are_found() {
        let durable = |pattern, read_pct| IoOptions { pattern, read_pct, durable: Durable::Dsync, ..plain() };
        assert_contradicts(
            &durable(Pattern::RandRead, None),
            "`--durable dsync` has no meaning for a load that never writes (`randread`)",
            "leave `--durable` out, or choose a pattern that writes",
        );
        assert!(durable(Pattern::Rw, Some(100)).check().is_err());
        durable(Pattern::Rw, Some(99)).check().unwrap();
        assert_contradicts(
            &IoOptions { verify: Verify::Blocks, page_cache: PageCache::Used, ..plain() },
            "`--verify` with `--direct off` would check blocks in the page cache instead of those on the storage",
            "leave one of the two out",
        );
    }

    #[test]
    fn lists_are_written_as_others_are() {
        for text in ["1,2,4,8,16", "1,2,…,16", "1..16"] {
            assert_eq!(text.parse::<ConnectionList>().unwrap().to_string(), "1,2,4,8,16", "{text}");
        }
        assert_eq!("8,1".parse::<ConnectionList>().unwrap().0, [8, 1]);
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write how many connections each thread has to each path: `1,2,4,8`, or `1..16` for doublings";
        for (text, item) in [("", ""), ("0", "0"), ("1,,2", ""), ("1025", "1025"), ("-1", "-1"), ("4.5", "4.5")] {
            let message = format!("`{item}` is not a number of connections from 1 to 1024");
            assert_refused::<ConnectionList>(text, &message, hint);
        }
        assert_refused::<ConnectionList>("1,2,1", "1 is listed twice among the connections", "give each number once");
        assert_refused::<ConnectionList>("8..1", "the range from 8 to 1 has nothing in it", "write `1..8`");
    }
}
