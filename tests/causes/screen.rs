//! A first screen, read for the causes that it names.

/// Something that stops a load, as reports name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A limit on requests or bytes.
    Limit,
    /// A limit or the device: what pulses leave open.
    LimitOrDevice,
    /// Requests wait before the device.
    Before,
    Device,
    /// Others on the device.
    Neighbour,
    Server,
    /// The way to a server, it itself, or the way back: what a client alone can see.
    Beyond,
    ServerStorage,
    Processors,
    OtherPrograms,
    Quota,
    Commits,
    Locks,
    Reads,
    /// A wait by the server's own name.
    NamedWait,
    Hypervisor,
    /// Between client and server.
    Outside,
    Generator,
    Checkpoints,
    /// Commits may be lost: what a server's settings do.
    MayLose,
}

/// Words by which each is named, and what must not stand there besides.
const NAMES: [(Cause, &[&str]); 21] = [
    (Cause::Limit, &["by a limit at", "by a limit set", "an IOPS limit", "a throughput limit", ", which caps "]),
    (Cause::LimitOrDevice, &["by a limit or the device itself"]),
    (Cause::Before, &["before the device"]),
    (Cause::Device, &["by the device, at"]),
    (Cause::Neighbour, &["others who used the device", "Others used the device"]),
    (Cause::Server, &["the server, or what it reads from"]),
    (
        Cause::Beyond,
        &["on the way to the server, in it and back", "the way to the server, it itself, or what it reads from"],
    ),
    (Cause::ServerStorage, &["the storage that the server reads from"]),
    (
        Cause::Processors,
        &[
            "the server's processors",
            "processors that server and load generator share",
            "the processors of this machine",
        ],
    ),
    (Cause::OtherPrograms, &["by other programs"]),
    (Cause::Quota, &["processor quota"]),
    (Cause::Commits, &["by commits", "went to commits"]),
    (Cause::Locks, &["locks of rows", "locks other than of rows"]),
    (Cause::Reads, &["reads from storage"]),
    (Cause::NamedWait, &["that the server calls"]),
    (Cause::Hypervisor, &["by the hypervisor"]),
    (Cause::Outside, &["the way to the server and back"]),
    (
        Cause::Generator,
        &[
            "by the load generator",
            "the load generator's processors",
            "the load generator had no processor time left",
            "the limit of the load generator",
        ],
    ),
    (Cause::Checkpoints, &["heckpoints"]),
    (Cause::MayLose, &["Commits may be lost"]),
    (Cause::Generator, &["this machine was too busy"]),
];

/// What a screen is worth to whoever asked why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Right,
    /// Only `report --full` names it.
    InFull,
    /// No cause is named.
    Silent,
    /// A cause is named that is not there.
    Wrong,
}

pub struct Screen {
    pub first: String,
    pub full: String,
}

impl Screen {
    /// What answers: all that a check says, or the first paragraph of a report up to its advice.
    pub fn answer(&self, is_check: bool) -> String {
        let is_answer = |line: &&str| is_check || !(line.is_empty() || line.starts_with("NEXT "));
        self.first.lines().take_while(is_answer).map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// `right` is empty where nothing was planted: then nothing but what is `beside` may be named.
    pub fn judged(&self, is_check: bool, right: &[Cause], beside: &[Cause]) -> Verdict {
        let named = named(&self.answer(is_check));
        let is_right = |cause: &Cause| right.contains(cause);
        if named.iter().any(|cause| !is_right(cause) && !beside.contains(cause)) {
            return Verdict::Wrong;
        }
        if right.is_empty() || named.iter().any(is_right) {
            return Verdict::Right;
        }
        let full = self.full.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if self::named(&full).iter().any(is_right) { Verdict::InFull } else { Verdict::Silent }
    }
}

fn named(text: &str) -> Vec<Cause> {
    let is_there = |(_, words): &&(Cause, &[&str])| words.iter().any(|words| text.contains(words));
    NAMES.iter().filter(is_there).map(|(cause, _)| *cause).collect()
}

#[test]
fn screens_are_read_as_a_user_reads_them() {
    let screen = |first: &str| Screen { first: first.to_owned(), full: "stopped by commits (64 %)".to_owned() };
    let capped = screen(
        "RESULT  2,000 requests/s\nLIMITED by a limit at\n        2,000 requests/s\nNEXT    look\nstopped by commits",
    );
    assert_eq!(capped.judged(false, &[Cause::Limit], &[]), Verdict::Right);
    assert_eq!(capped.judged(false, &[Cause::Commits], &[]), Verdict::Wrong);
    assert_eq!(capped.judged(false, &[], &[Cause::Limit]), Verdict::Right);
    assert_eq!(capped.judged(false, &[], &[]), Verdict::Wrong);
    let silent = screen("RESULT  2,000 requests/s");
    assert_eq!(silent.judged(false, &[Cause::Commits], &[]), Verdict::InFull);
    assert_eq!(silent.judged(false, &[Cause::Locks], &[]), Verdict::Silent);
}
