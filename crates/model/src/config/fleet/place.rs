//! Which part a process is: as the user says, or as whatever started it does.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{FleetProblem, MAX_PARTS};
use crate::config::ConfigError;

/// What the user says about the part that a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartChoice {
    /// This one, of so many.
    Given {
        /// Number of the part, from 0.
        number: u32,
        /// Parts.
        parts: u32,
    },
    /// What the launcher says, which may not know how many there are.
    Auto {
        /// Parts, if the user says it.
        parts: Option<u32>,
    },
}

impl FromStr for PartChoice {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read(text).map_err(ConfigError::Fleet)
    }
}

fn read(text: &str) -> Result<PartChoice, FleetProblem> {
    let none = || FleetProblem::Part { text: text.to_owned() };
    let number = |word: &str| match word.bytes().all(|byte| byte.is_ascii_digit()) {
        true => word.parse::<u64>().map_err(|_| none()),
        false => Err(none()),
    };
    let parts = |word: &str| match number(word)? {
        parts if parts > u64::from(MAX_PARTS) => Err(FleetProblem::TooManyParts { parts }),
        parts => Ok(parts as u32),
    };
    match text.split_once('/') {
        None if text == "auto" => Ok(PartChoice::Auto { parts: None }),
        None => Err(number(text).map_or_else(|none| none, |_| FleetProblem::NoNumberOfParts { text: text.to_owned() })),
        Some(("auto", word)) => match parts(word)? {
            0 => Err(none()),
            parts => Ok(PartChoice::Auto { parts: Some(parts) }),
        },
        Some((first, word)) => {
            let (number, parts) = (u32::try_from(number(first)?).unwrap_or(u32::MAX), parts(word)?);
            if number >= parts {
                return Err(FleetProblem::NoSuchPart { number, parts });
            }
            Ok(PartChoice::Given { number, parts })
        }
    }
}

impl fmt::Display for PartChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given { number, parts } => write!(f, "{number}/{parts}"),
            Self::Auto { parts: None } => f.write_str("auto"),
            Self::Auto { parts: Some(parts) } => write!(f, "auto/{parts}"),
        }
    }
}

/// The part that a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartNumber {
    /// Its number, from 0.
    pub number: u32,
    /// Parts; more than `number`.
    pub parts: u32,
    /// What says so, such as `--part` or `OMPI_COMM_WORLD_RANK`.
    pub source: String,
    /// What the user should know about that.
    pub note: Option<String>,
}

/// A launcher that has a variable for the part and one for their number.
struct Launcher {
    number: &'static str,
    parts: &'static str,
}

/// MPI's launchers come first: below `mpirun` in a batch job, every process has Slurm's rank 0.
const MPI: [Launcher; 2] = [
    Launcher { number: "OMPI_COMM_WORLD_RANK", parts: "OMPI_COMM_WORLD_SIZE" },
    Launcher { number: "PMI_RANK", parts: "PMI_SIZE" },
];
const SLURM_PROCESS: &str = "SLURM_PROCID";
/// That of the step where there is one, and that of the job.
const SLURM_PROCESSES: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
/// Only `srun` sets it.
const SLURM_STEP: &str = "SLURM_STEP_ID";
const SLURM_ARRAY: &str = "SLURM_ARRAY_TASK_ID";
const SLURM_ARRAY_LEAST: &str = "SLURM_ARRAY_TASK_MIN";
const SLURM_ARRAY_COUNT: &str = "SLURM_ARRAY_TASK_COUNT";
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";

/// The part that a process on `host` with these variables is. `hosts` are those that the user names, in the order of the parts.
///
/// # Errors
/// If nothing says it, or several things do and differ.
pub fn find_place(
    choice: Option<PartChoice>,
    hosts: &[String],
    environment: &BTreeMap<String, String>,
    host: &str,
) -> Result<PartNumber, FleetProblem> {
    match choice {
        Some(given @ PartChoice::Given { .. }) if !hosts.is_empty() => {
            Err(FleetProblem::PartAndHosts { text: given.to_string() })
        }
        Some(PartChoice::Given { number, parts }) => Ok(place(number, parts, "--part")),
        Some(PartChoice::Auto { parts: Some(asked) }) if !hosts.is_empty() && hosts.len() != asked as usize => {
            Err(FleetProblem::OtherHosts { hosts: hosts.len() as u32, asked })
        }
        _ if !hosts.is_empty() => among(hosts, host),
        Some(PartChoice::Auto { parts }) => launched(parts, &Variables(environment)),
        None => Ok(place(0, 1, "no `--part`")),
    }
}

fn place(number: u32, parts: u32, source: impl Into<String>) -> PartNumber {
    PartNumber { number, parts, source: source.into(), note: None }
}

/// The position of a host among those named. A short name means the host whose full name begins with it.
fn among(hosts: &[String], host: &str) -> Result<PartNumber, FleetProblem> {
    let named = || hosts.join(",");
    if hosts.iter().any(|name| name.trim().is_empty()) {
        return Err(FleetProblem::EmptyHost { hosts: named() });
    }
    if hosts.len() > MAX_PARTS as usize {
        return Err(FleetProblem::TooManyParts { parts: hosts.len() as u64 });
    }
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_same = |name: &str| {
        let is_short = !name.contains('.') || !host.contains('.');
        name.eq_ignore_ascii_case(host) || (is_short && short(name).eq_ignore_ascii_case(&short(host)))
    };
    let mut found = (0..).zip(hosts).filter(|(_, name)| is_same(name.trim()));
    let Some((number, name)) = found.next() else {
        return Err(FleetProblem::NotAmongHosts { host: host.to_owned(), hosts: named() });
    };
    if let Some((_, other)) = found.next() {
        return Err(FleetProblem::HostTwice { name: name.clone(), other: other.clone() });
    }
    Ok(place(number, hosts.len() as u32, format!("--hosts, as `{}`", name.trim())))
}

struct Variables<'a>(&'a BTreeMap<String, String>);

impl Variables<'_> {
    fn number(&self, variable: &'static str) -> Result<Option<u32>, FleetProblem> {
        let Some(value) = self.0.get(variable) else { return Ok(None) };
        let number = value.trim().parse().ok();
        number.map(Some).ok_or_else(|| FleetProblem::Variable { variable, value: value.clone() })
    }
}

/// What the launcher says.
fn launched(asked: Option<u32>, variables: &Variables<'_>) -> Result<PartNumber, FleetProblem> {
    for Launcher { number, parts } in MPI {
        if let Some(rank) = variables.number(number)? {
            return of_launcher(rank, number, variables.number(parts)?.map(|found| (found, parts)), asked);
        }
    }
    let processes = || -> Result<Option<(u32, &'static str)>, FleetProblem> {
        for variable in SLURM_PROCESSES {
            if let Some(found) = variables.number(variable)? {
                return Ok(Some((found, variable)));
            }
        }
        Ok(None)
    };
    if let Some(id) = variables.number(SLURM_ARRAY)? {
        let (process, processes) = (variables.number(SLURM_PROCESS)?.unwrap_or(0), processes()?);
        let least = variables.number(SLURM_ARRAY_LEAST)?.unwrap_or(0);
        let count = variables.number(SLURM_ARRAY_COUNT)?;
        if let Some((processes, _)) = processes.filter(|(processes, _)| *processes > 1) {
            return Err(FleetProblem::ArrayOfMany { id, count: count.unwrap_or(0), process, processes });
        }
        let number = id.checked_sub(least).filter(|number| count.is_none_or(|count| *number < count));
        let Some(number) = number else {
            return Err(FleetProblem::ArrayWithGaps { id, least, count: count.unwrap_or(0) });
        };
        return of_launcher(number, SLURM_ARRAY, count.map(|found| (found, SLURM_ARRAY_COUNT)), asked);
    }
    if let Some(rank) = variables.number(SLURM_PROCESS)? {
        let found = of_launcher(rank, SLURM_PROCESS, processes()?, asked)?;
        let is_alone = rank == 0 && found.parts > 1 && !variables.0.contains_key(SLURM_STEP);
        let note = is_alone.then(|| {
            format!(
                "`SLURM_PROCID` is 0 of {} and no `srun` is around: a batch script runs once, and the other parts begin only if \
                 `srun` starts them",
                found.parts
            )
        });
        return Ok(PartNumber { note, ..found });
    }
    if let Some(index) = variables.number(KUBERNETES)? {
        return of_launcher(index, KUBERNETES, None, asked);
    }
    let numbers = MPI.iter().map(|launcher| launcher.number).chain([SLURM_PROCESS, SLURM_ARRAY, KUBERNETES]);
    let looked_for = numbers.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(FleetProblem::NoLauncher { looked_for })
}

/// A part by its launcher, and how many there are by it or by the user, who must not differ.
fn of_launcher(
    number: u32,
    variable: &'static str,
    found: Option<(u32, &'static str)>,
    asked: Option<u32>,
) -> Result<PartNumber, FleetProblem> {
    let parts = match (found, asked) {
        (Some((found, variable)), Some(asked)) if found != asked => {
            return Err(FleetProblem::OtherSize { variable, found, asked });
        }
        (Some((parts, _)), _) | (None, Some(parts)) => parts,
        (None, None) => return Err(FleetProblem::NoSize { variable, number }),
    };
    if parts > MAX_PARTS {
        return Err(FleetProblem::TooManyParts { parts: u64::from(parts) });
    }
    if number >= parts {
        return Err(FleetProblem::NoSuchPart { number, parts });
    }
    Ok(place(number, parts, variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(words: &str) -> BTreeMap<String, String> {
        words
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn auto(words: &str, parts: Option<u32>) -> Result<(u32, u32, String), FleetProblem> {
        let found = find_place(Some(PartChoice::Auto { parts }), &[], &environment(words), "h")?;
        Ok((found.number, found.parts, found.source))
    }

    #[test]
    fn a_part_is_written_with_their_number() {
        assert_eq!(read("0/4"), Ok(PartChoice::Given { number: 0, parts: 4 }));
        assert_eq!(read("3/4"), Ok(PartChoice::Given { number: 3, parts: 4 }));
        assert_eq!(read("auto"), Ok(PartChoice::Auto { parts: None }));
        assert_eq!(read("auto/4"), Ok(PartChoice::Auto { parts: Some(4) }));
        assert_eq!(read("4/4"), Err(FleetProblem::NoSuchPart { number: 4, parts: 4 }));
        assert_eq!(read("0/0"), Err(FleetProblem::NoSuchPart { number: 0, parts: 0 }));
        assert_eq!(read("3"), Err(FleetProblem::NoNumberOfParts { text: "3".to_owned() }));
        assert!(matches!(read("0/1000000"), Err(FleetProblem::TooManyParts { .. })));
        for text in [
            "",
            "/",
            "1/",
            "/4",
            "-1/4",
            "+1/4",
            "1/4/8",
            "auto/",
            "auto/0",
            "all",
            "1.5/4",
            " 1/4",
            "99999999999999999999/2",
        ] {
            assert!(matches!(read(text), Err(FleetProblem::Part { .. })), "{text}");
        }
    }

    #[test]
    fn launchers_say_which_part_a_process_is() {
        let cases = [
            ("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", (2, 4, "OMPI_COMM_WORLD_RANK")),
            ("PMI_RANK=1 PMI_SIZE=3", (1, 3, "PMI_RANK")),
            ("SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0", (3, 4, "SLURM_PROCID")),
            ("SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2", (1, 2, "SLURM_PROCID")),
            // `mpirun` in a batch job: Slurm's rank is 0 in every process.
            (
                "SLURM_PROCID=0 SLURM_NTASKS=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4",
                (2, 4, "OMPI_COMM_WORLD_RANK"),
            ),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 PMI_RANK=3 PMI_SIZE=4", (3, 4, "PMI_RANK")),
            (
                "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=8 SLURM_ARRAY_TASK_COUNT=4 SLURM_PROCID=0 SLURM_NTASKS=1",
                (2, 4, "SLURM_ARRAY_TASK_ID"),
            ),
        ];
        for (words, (number, parts, source)) in cases {
            assert_eq!(auto(words, None), Ok((number, parts, source.to_owned())), "{words}");
            assert_eq!(auto(words, Some(parts)).map(|found| found.0), Ok(number), "{words}");
            let asked = parts + 1;
            assert!(matches!(auto(words, Some(asked)), Err(FleetProblem::OtherSize { .. })), "{words}");
        }
        assert_eq!(auto("JOB_COMPLETION_INDEX=3", Some(4)), Ok((3, 4, "JOB_COMPLETION_INDEX".to_owned())));
    }

    #[test]
    fn what_launchers_leave_open_is_refused() {
        let problem = |words| auto(words, None).unwrap_err();
        assert!(matches!(problem(""), FleetProblem::NoLauncher { .. }));
        assert_eq!(
            problem("JOB_COMPLETION_INDEX=3"),
            FleetProblem::NoSize { variable: "JOB_COMPLETION_INDEX", number: 3 }
        );
        assert!(matches!(problem("PMI_RANK=1"), FleetProblem::NoSize { variable: "PMI_RANK", .. }));
        assert!(matches!(problem("PMI_RANK=x PMI_SIZE=3"), FleetProblem::Variable { variable: "PMI_RANK", .. }));
        assert!(matches!(problem("PMI_RANK= PMI_SIZE=3"), FleetProblem::Variable { .. }));
        assert_eq!(problem("PMI_RANK=3 PMI_SIZE=3"), FleetProblem::NoSuchPart { number: 3, parts: 3 });
        assert_eq!(auto("JOB_COMPLETION_INDEX=4", Some(4)), Err(FleetProblem::NoSuchPart { number: 4, parts: 4 }));
        let gaps = "SLURM_ARRAY_TASK_ID=8 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=3";
        assert_eq!(problem(gaps), FleetProblem::ArrayWithGaps { id: 8, least: 0, count: 3 });
        let both = "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_PROCID=1 SLURM_NTASKS=2";
        assert_eq!(problem(both), FleetProblem::ArrayOfMany { id: 1, count: 3, process: 1, processes: 2 });
    }

    #[test]
    fn a_batch_script_without_srun_is_told_that_it_is_alone() {
        let note =
            |words| find_place(Some(PartChoice::Auto { parts: None }), &[], &environment(words), "h").unwrap().note;
        assert!(note("SLURM_PROCID=0 SLURM_NTASKS=4").unwrap().contains("srun"));
        assert_eq!(note("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0"), None);
        assert_eq!(note("SLURM_PROCID=0 SLURM_NTASKS=1"), None);
        assert_eq!(note("SLURM_PROCID=1 SLURM_NTASKS=4"), None);
    }

    #[test]
    fn a_host_finds_itself_by_its_short_or_its_full_name() {
        let find = |hosts: &str, host: &str| {
            let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
            find_place(None, &hosts, &BTreeMap::new(), host).map(|found| (found.number, found.parts))
        };
        assert_eq!(find("a,b,c", "b"), Ok((1, 3)));
        assert_eq!(find("a,b,c", "B.example.com"), Ok((1, 3)));
        assert_eq!(find("a.example.com,b.example.com", "b"), Ok((1, 2)));
        assert_eq!(find("b.one.net,b.two.net", "b.two.net"), Ok((1, 2)));
        assert!(matches!(find("b.one.net,b.two.net", "b"), Err(FleetProblem::HostTwice { .. })));
        assert!(matches!(find("a,b,b", "b"), Err(FleetProblem::HostTwice { .. })));
        assert!(matches!(find("b,b.example.com", "b.example.com"), Err(FleetProblem::HostTwice { .. })));
        assert!(matches!(find("a,b", "ab"), Err(FleetProblem::NotAmongHosts { .. })));
        assert!(matches!(find("a,,b", "b"), Err(FleetProblem::EmptyHost { .. })));
    }

    #[test]
    fn hosts_and_a_part_must_not_both_say_it() {
        let hosts = ["a".to_owned(), "b".to_owned()];
        let find = |choice| find_place(Some(choice), &hosts, &environment("PMI_RANK=0 PMI_SIZE=9"), "b");
        assert!(matches!(find(PartChoice::Given { number: 1, parts: 2 }), Err(FleetProblem::PartAndHosts { .. })));
        assert_eq!(find(PartChoice::Auto { parts: None }).map(|found| found.number), Ok(1));
        assert_eq!(find(PartChoice::Auto { parts: Some(2) }).map(|found| found.number), Ok(1));
        assert_eq!(find(PartChoice::Auto { parts: Some(3) }), Err(FleetProblem::OtherHosts { hosts: 2, asked: 3 }));
    }

    #[test]
    fn every_problem_has_a_hint_that_names_what_to_write() {
        for text in ["x", "3", "4/4", "0/0", "0/9999999"] {
            assert!(crate::hint(&read(text).unwrap_err()).is_some(), "{text}");
        }
    }
}
