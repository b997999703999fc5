//! Everything that can be wrong with a place in a fleet, in words.

use miette::Diagnostic;

use super::MAX_PARTS;

const BY_HAND: &str = "say it: `--part 0/4` … `--part 3/4`";
const NUMBER_AND_PARTS: &str =
    "write its number, from 0, and how many there are: `--part 0/4` … `--part 3/4`, or `--part auto`";
const EACH_HOST_ONCE: &str =
    "name each host once: `--hosts a,b,c`; several parts on one host need `--part 0/4` … `--part 3/4`";

/// Why the place of a process in a fleet, or the start of all, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum FleetProblem {
    /// A text that says nothing about a part.
    #[error("`{text}` is not a part")]
    #[diagnostic(help("{NUMBER_AND_PARTS}"))]
    Part { text: String },
    /// A part without the number of parts.
    #[error("`{text}` does not say of how many parts")]
    #[diagnostic(help("{NUMBER_AND_PARTS}"))]
    NoNumberOfParts { text: String },
    /// A part that is not one of them.
    #[error("there is no part {number} of {parts}")]
    #[diagnostic(help("{}", numbers_of(*parts)))]
    NoSuchPart { number: u32, parts: u32 },
    /// More parts than there can be.
    #[error("{parts} parts are too many; {MAX_PARTS} is the most")]
    #[diagnostic(help("start fewer processes with more sessions each"))]
    TooManyParts { parts: u64 },
    /// Nobody says which part this is.
    #[error("nothing says which part this process is: none of {looked_for} is set")]
    #[diagnostic(help("{BY_HAND}, or name all hosts in one order everywhere: `--hosts a,b,c,d`"))]
    NoLauncher { looked_for: String },
    /// A launcher that says which part, and not of how many.
    #[error("`{variable}` says that this is part {number}, and nothing says of how many")]
    #[diagnostic(help("say how many there are: `--part auto/4`, or `--part {number}/4`"))]
    NoSize { variable: &'static str, number: u32 },
    /// A variable that is no number.
    #[error("`{variable}={value}` is not a number")]
    #[diagnostic(help("unset `{variable}`, or {BY_HAND}"))]
    Variable { variable: &'static str, value: String },
    /// A launcher with another number of parts.
    #[error("`{variable}` says that there are {found} parts, and `--part` says {asked}")]
    #[diagnostic(help("write `--part auto/{found}` or `--part auto`, or start as many as there are to be"))]
    OtherSize { variable: &'static str, found: u32, asked: u32 },
    /// An array whose indices are not one after the other.
    #[error(
        "the indices of the array have gaps: `SLURM_ARRAY_TASK_ID` is {id}, from {least}, and there are {count} of them"
    )]
    #[diagnostic(help(
        "number the array without gaps, as in `sbatch --array=0-3`, or say the part by hand: `--part 2/4`"
    ))]
    ArrayWithGaps { id: u32, least: u32, count: u32 },
    /// An array of jobs with several processes each.
    #[error(
        "which part this is can be read in two ways: it is task {id} of an array of {count}, and process {process} of {processes}"
    )]
    #[diagnostic(help(
        "give the array one process in each job, or one job without an array; or say the part by hand: `--part 2/4`"
    ))]
    ArrayOfMany { id: u32, count: u32, process: u32, processes: u32 },
    /// A host that is not among those named.
    #[error("this host, `{host}`, is none of `--hosts {hosts}`")]
    #[diagnostic(help("write the names as `hostname` prints them, in one order on every host"))]
    NotAmongHosts { host: String, hosts: String },
    /// A host that is there more than once.
    #[error("`{name}` stands for this host as `{other}` does: which part it is is not clear")]
    #[diagnostic(help("{EACH_HOST_ONCE}"))]
    HostTwice { name: String, other: String },
    /// A name that is no name.
    #[error("`--hosts {hosts}` has a name without letters")]
    #[diagnostic(help("{EACH_HOST_ONCE}"))]
    EmptyHost { hosts: String },
    /// A part beside a list of hosts.
    #[error("`--part {text}` says which part this is, and so does `--hosts`")]
    #[diagnostic(help("leave one of them out"))]
    PartAndHosts { text: String },
    /// A number of parts beside a list of hosts.
    #[error("`--hosts` names {hosts} hosts, and `--part` says that there are {asked} parts")]
    #[diagnostic(help("leave the number of parts out: it is that of the hosts"))]
    OtherHosts { hosts: u32, asked: u32 },
    /// A time that counts from now.
    #[error("`{text}` counts from now, and now is another instant on every host")]
    #[diagnostic(help(
        "work it out once for all parts: `--start-at $(date -u -d '+60 seconds' +%s)` where they are started"
    ))]
    RelativeTime { text: String },
    /// A time without a zone.
    #[error("`{text}` has no time zone, and hosts may be in several")]
    #[diagnostic(help("add it: `{text}Z` is UTC, `{text}+02:00` two hours ahead of it"))]
    NoZone { text: String },
    /// A text that is no time.
    #[error("`{text}` is not a time")]
    #[diagnostic(help("write it as `2026-11-24T03:00:00Z`, or in seconds since 1970 as `date +%s` has them"))]
    Time { text: String },
    /// A time that is over.
    #[error("the start, {start}, was {late} ago: this part is too late")]
    #[diagnostic(help("choose a later start: every part has to be up and its sessions connected by then"))]
    Late { start: String, late: String },
    /// Seconds that were meant from now.
    #[error("`{text}` is {start}: a number is seconds since 1970, and never seconds from now")]
    #[diagnostic(help("`date -u -d '+60 seconds' +%s` is a minute from now"))]
    LongPast { text: String, start: String },
    /// A time that nobody waits for.
    #[error("the start, {start}, is {ahead} ahead; {most} is the most")]
    #[diagnostic(help("is it in milliseconds? Seconds since 1970 have ten digits"))]
    FarAhead { start: String, ahead: String, most: String },
}

fn numbers_of(parts: u32) -> String {
    match parts {
        0 => "an experiment has one part or more: `--part 0/1`".to_owned(),
        _ => format!("parts are counted from 0: `--part 0/{parts}` … `--part {}/{parts}`", parts - 1),
    }
}
