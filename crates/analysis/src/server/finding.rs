//! What is to be said about servers, in words.

use super::{LogCheckpoints, Stops};
use crate::message::list;
use crate::{Message, Rule, Severity, ThreadsFlag};
use model::record::Term;
use model::record::{Run, SessionState};
use model::units::{Bytes, group_thousands, percent};

/// A thread of the load generator that wanted a processor for this share of the time kept sessions waiting itself.
const MOSTLY_BUSY: f64 = 0.7;

/// One thing that the counters of servers have to say. Shares are 0 to 1; `steps` are labels.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant's fields are the figures of its sentence, named with their units")]
pub enum ServerFinding {
    /// The server used up the processors of this machine.
    ProcessorsExhausted { steps: Vec<String>, busy: f64, server: f64, generator: Option<f64> },
    /// Tables grew, by pages and as a share, or the new versions of updated rows left their pages.
    ShapeChanged { steps: Vec<String>, grown: Option<(u64, f64)>, hot_share: Option<f64> },
    /// The page cache answered buffer misses.
    PageCacheServed { steps: Vec<String>, share: f64, is_private: bool, limited_to: Option<String> },
    /// Whether it did is not known.
    /// With the setting that has the server read past it, where it has one.
    PageCacheUnknown { steps: Vec<String>, data: Option<Bytes>, direct: Option<String> },
    /// A server did not answer when it was to be read, for so many seconds; its readings miss a share of the window.
    Unread { steps: Vec<String>, node: String, silent: usize, missed: f64 },
    /// Transactions were rolled back.
    RolledBack { steps: Vec<String>, deadlocks: u64, rollbacks: u64 },
    /// Checkpoints began, so that pages are logged in full when they change next; the largest share that these images can
    /// be of the log.
    CheckpointInWindow {
        steps: Vec<String>,
        timed: u64,
        requested: u64,
        images: u64,
        image_share: Option<f64>,
        terms: CheckpointTerms,
    },
    /// The limit of the log requested checkpoints too often: what of the step in which they cost most, and the largest share that full-page
    /// images can be of its log.
    LogCheckpoints { step: String, steps: Vec<String>, found: LogCheckpoints, image_share: Option<f64>, log: String },
    /// Our tables were vacuumed or analysed.
    VacuumInWindow { steps: Vec<String>, vacuums: u64, analyses: u64 },
    /// The load's sessions waited for reads of several blocks at once: as a share of the reads that they waited for. With what has
    /// them read each by itself.
    NotSingleBlock { steps: Vec<String>, share: f64, cure: String },
    /// Scans read nothing past the buffer cache, but neighbouring blocks into it so many times.
    ScansCached { steps: Vec<String>, neighbours: u64, cure: String },
    /// Nodes had different loads; the largest difference as a share of their mean.
    NodesUneven { steps: Vec<String>, imbalance: f64 },
    /// What the sessions of the largest load were found in most often.
    SessionsFoundIn { step: String, doing: String, share: f64, looks: u64, state: SessionState, log: String },
    /// Settings by which commits may be lost that were acknowledged.
    LosesCommits { settings: Vec<String> },
    /// What stops the transactions of the largest load.
    Stopped { step: String, stops: Stops },
    /// Sessions had nothing under way.
    Idle {
        steps: Vec<String>,
        share: f64,
        wanted: Option<f64>,
        #[serde(skip)]
        threads: ThreadsFlag,
    },
}

/// What a server calls that which makes checkpoints.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckpointTerms {
    /// The log.
    pub log: String,
    /// The setting that limits the log.
    pub log_capacity: String,
    /// The setting of the time between checkpoints.
    pub interval: String,
    /// The command that asks for one.
    pub command: String,
}

impl CheckpointTerms {
    pub(super) fn of(run: &Run) -> Self {
        let term = |term| run.target.term(term).to_owned();
        Self {
            log: term(Term::Log),
            log_capacity: term(Term::LogCapacity),
            interval: term(Term::CheckpointInterval),
            command: term(Term::CheckpointCommand),
        }
    }
}

/// Share of buffer misses from which they are figures of memory.
const MOSTLY_SERVED: f64 = 0.5;

impl ServerFinding {}

impl Message for ServerFinding {
    fn rule(&self) -> Rule {
        match self {
            Self::ProcessorsExhausted { .. } => Rule::ServerProcessors,
            Self::ShapeChanged { .. } => Rule::ServerShapeChanged,
            Self::PageCacheServed { .. } => Rule::ServerPageCache,
            Self::PageCacheUnknown { .. } => Rule::ServerPageCacheUnknown,
            Self::Unread { .. } => Rule::ServerUnread,
            Self::RolledBack { .. } => Rule::ServerRolledBack,
            Self::CheckpointInWindow { .. } => Rule::ServerCheckpoint,
            Self::LogCheckpoints { .. } => Rule::ServerLogCheckpoints,
            Self::VacuumInWindow { .. } => Rule::ServerVacuum,
            Self::NotSingleBlock { .. } => Rule::ServerMultiBlock,
            Self::ScansCached { .. } => Rule::ServerScansCached,
            Self::NodesUneven { .. } => Rule::ServerNodes,
            Self::SessionsFoundIn { .. } => Rule::ServerSessions,
            Self::LosesCommits { .. } => Rule::ServerLosesCommits,
            Self::Stopped { .. } => Rule::ServerStopped,
            Self::Idle { .. } => Rule::ServerIdle,
        }
    }

    fn severity(&self) -> Severity {
        match self {
            Self::PageCacheServed { share, .. } if *share < MOSTLY_SERVED => Severity::Note,
            Self::Unread { missed, .. } if *missed <= 0.0 => Severity::Note,
            Self::RolledBack { deadlocks: 0, .. } => Severity::Note,
            _ => self.rule().severities()[0],
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::ProcessorsExhausted { steps, busy, server, generator } => {
                let ours = generator
                    .map_or(String::new(), |share| format!(" and {} % of that the load generator's", percent(share)));
                format!(
                    "The processors of this machine were {} % busy in {}, {} % of that the server's{ours}: the limit is processor \
                     time, not storage.",
                    percent(*busy),
                    list(steps),
                    percent(*server)
                )
            }
            Self::ShapeChanged { steps, grown, hot_share } => {
                let grown = grown.map(|(pages, share)| {
                    format!(
                        "they grew by {} pages ({} %; 1 % is allowed)",
                        group_thousands(pages as f64),
                        percent(share)
                    )
                });
                let hot = hot_share.map(|share| {
                    format!("only {} % of updated rows stayed on their page (95 % should)", percent(share))
                });
                let how = grown.into_iter().chain(hot).collect::<Vec<_>>().join(", and ");
                format!(
                    "The tables changed their shape: {how}. From {} on, figures are of other tables than were set up.",
                    steps[0]
                )
            }
            Self::PageCacheServed { steps, share, .. } => {
                let verdict =
                    if *share >= MOSTLY_SERVED { ": buffer misses are figures of memory, not of storage" } else { "" };
                format!("{} % of buffer misses were page-cache hits in {}{verdict}.", percent(*share), list(steps))
            }
            Self::PageCacheUnknown { steps, .. } => format!(
                "How many buffer misses the page cache answered is not known in {}: they may be figures of memory.",
                list(steps)
            ),
            Self::Unread { steps, node, silent, missed } => {
                let silent = match silent {
                    0 => "at the edges of the window".to_owned(),
                    1 => "for 1 second".to_owned(),
                    n => format!("for {n} seconds"),
                };
                let missed = if *missed > 0.0 {
                    format!(": {} % of the time is missing from its counters, or outside the window", percent(*missed))
                } else {
                    "; its counters are complete anyway".to_owned()
                };
                format!("`{node}` did not report its counters {silent} in {}{missed}.", list(steps))
            }
            Self::RolledBack { steps, deadlocks, rollbacks } => format!(
                "The database counted {} and {} rolled back in {}.",
                counted(*deadlocks, "deadlock", "deadlocks"),
                counted(*rollbacks, "transaction", "transactions"),
                list(steps)
            ),
            Self::CheckpointInWindow { steps, timed, requested, images, image_share, terms } => {
                // That they are at most all of it says nothing.
                let share = image_share.filter(|share| *share < 1.0);
                let share = share.map_or(String::new(), |share| format!(", at most {} % of it", percent(share)));
                let images = match images {
                    0 => String::new(),
                    n => {
                        format!("; the {} has {}{share}", terms.log, counted(*n, "full-page image", "full-page images"))
                    }
                };
                let checkpoints = match (timed, requested) {
                    (0, requested) => counted(*requested, "requested checkpoint", "requested checkpoints"),
                    (timed, 0) => counted(*timed, "timed checkpoint", "timed checkpoints"),
                    (timed, requested) => format!("{timed} timed and {requested} requested checkpoints"),
                };
                format!("{checkpoints} began in {}{images}.", list(steps))
            }
            Self::LogCheckpoints { step, found, image_share, log, .. } => {
                let LogCheckpoints { requested, every, setting, limit, slower, log_bytes_per_s, .. } = found;
                let images = image_share.filter(|share| *share < 1.0);
                let images = images
                    .map_or_else(String::new, |share| format!(", at most {} % of it full-page images", percent(share)));
                let cost = match slower {
                    Some(share) => {
                        format!("they held the load back: throughput was {} % lower while they ran", percent(*share))
                    }
                    None => "that they held the load back is not seen in its seconds".to_owned(),
                };
                format!(
                    "`{setting}` ({limit}) requested {} in {step}, one every {every}, for {:.1} MB/s of {log}{images}: {cost}.",
                    counted(*requested, "checkpoint", "checkpoints"),
                    log_bytes_per_s / 1e6
                )
            }
            Self::VacuumInWindow { steps, vacuums, analyses } => format!(
                "Our tables were vacuumed {} and analysed {} by the server in {}: it read and wrote beside the load.",
                times(*vacuums),
                times(*analyses),
                list(steps)
            ),
            Self::NodesUneven { steps, imbalance } => format!(
                "Nodes were not loaded alike in {}: from the least to the most, their logical reads/s differ by {} % of the mean.",
                list(steps),
                percent(*imbalance)
            ),
            Self::NotSingleBlock { steps, share, .. } => format!(
                "{} % of the reads that sessions waited for were of several blocks at once in {}. Their times, and \
                 those of operations, are not single-block read times.",
                percent(*share),
                list(steps)
            ),
            Self::ScansCached { steps, neighbours, .. } => format!(
                "Scans in {} went through the buffer cache. No session waited for a read past it, and sessions \
                 waited {} times for neighbouring blocks into it. Blocks in the cache were not read at all.",
                list(steps),
                group_thousands(*neighbours as f64)
            ),
            Self::SessionsFoundIn { step, doing, share, looks, .. } => format!(
                "Sessions at work in {step} were found most often in `{doing}`: {} % of what {} looks saw.",
                percent(*share),
                group_thousands(*looks as f64)
            ),
            Self::LosesCommits { settings } => format!(
                "A crash of the server's machine can lose commits that were acknowledged, or destroy data ({}): these figures are not those of \
                 durable commits.",
                settings.join(", ")
            ),
            Self::Stopped { step, stops } => stops.sentence(step),
            Self::Idle { steps, share, wanted, .. } => {
                let wanted = wanted.map_or_else(String::new, |share| {
                    format!(", whose busiest needed a processor for {} % of the time", percent(share))
                });
                format!(
                    "Sessions had nothing to do in the server for {} % of the window in {}. That is the way there and \
                     back, and the wait for a load-generator thread{wanted}.",
                    percent(*share),
                    list(steps)
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::ProcessorsExhausted { .. } => {
                "Judge storage by steps with fewer sessions, or give the server more processors."
            }
            Self::ShapeChanged { .. } => {
                "Set up the data again before the next run, and end transactions that stay open for long: they keep old versions of rows alive."
            }
            Self::PageCacheServed { limited_to: Some(memory), .. } => {
                return Some(format!("Use a larger SCALE, or give the server less than the {memory} that it has."));
            }
            Self::PageCacheServed { is_private: true, .. } => {
                "Limit the server's memory with `--host-memory`, or use a larger SCALE."
            }
            Self::PageCacheServed { .. } => {
                "Use several times more data than the server's machine has memory: a larger SCALE, or more schemas."
            }
            Self::PageCacheUnknown { data, direct, .. } => {
                let data = data.map_or(String::new(), |data| format!(" The data is {data}."));
                if let Some(setting) = direct {
                    return Some(format!(
                        "Have the server read past the page cache (`{setting}`), or use several times more data than it has \
                         memory.{data}"
                    ));
                }
                return Some(format!(
                    "Run on the server's machine, as its user or as root, to distinguish them; or use several times more data than it has \
                     memory.{data}"
                ));
            }
            Self::Unread { .. } => "Look at the server's log for that time: it was overloaded, or the way to it was.",
            Self::RolledBack { .. } => {
                "Look at the server's log for why; others who use this database are counted too."
            }
            Self::CheckpointInWindow { requested: 0, terms, .. } => {
                return Some(format!(
                    "Compare with runs that had as many, or run for several times {}.",
                    terms.interval
                ));
            }
            Self::CheckpointInWindow { terms, .. } => {
                return Some(format!(
                    "Raise {} until a run's {} fits between two timed checkpoints, and do not call {}.",
                    terms.log_capacity, terms.log, terms.command
                ));
            }
            Self::LogCheckpoints { found: LogCheckpoints { setting, needed: Some(needed), .. }, log, .. } => {
                return Some(format!(
                    "Raise `{setting}` to {needed}: at this rate of {log} that is one checkpoint in the time after which one is due. It may \
                     be less, since fewer full-page images are logged then."
                ));
            }
            Self::LogCheckpoints { found: LogCheckpoints { setting, .. }, .. } => {
                return Some(format!("Raise `{setting}` until checkpoints begin when they are due."));
            }
            Self::VacuumInWindow { .. } => {
                "Compare with runs that had as much of it, or look at the seconds without it."
            }
            Self::NotSingleBlock { cure, .. } => {
                return Some(format!("Have sessions read each block by itself: {cure}."));
            }
            Self::ScansCached { cure, .. } => return Some(format!("To have scans read past the cache, {cure}.")),
            Self::NodesUneven { .. } => {
                "Sessions go to the nodes that are named in turn: ask for a multiple of their number; if it is one, a node is slower. A \
                 listener of several instances sends sessions where it likes: name each instance, with `--per-node`."
            }
            Self::SessionsFoundIn { state, log, .. } => return advice_on(*state, log),
            Self::LosesCommits { .. } => {
                "Set them to the server's safe values before you judge commits, or say that they may be lost."
            }
            Self::Stopped { stops, .. } => return Some(stops.advice()),
            Self::Idle { wanted: Some(wanted), threads, .. } if *wanted >= MOSTLY_BUSY => {
                return Some(threads.for_generator());
            }
            Self::Idle { .. } => {
                "Load from a machine nearer to the server, or ask for more sessions to make up for it."
            }
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        match self {
            Self::ProcessorsExhausted { steps, .. }
            | Self::PageCacheServed { steps, .. }
            | Self::NotSingleBlock { steps, .. }
            | Self::ScansCached { steps, .. }
            | Self::Unread { steps, .. }
            | Self::RolledBack { steps, .. } => Some(steps),
            // Tables that have changed their shape keep it.
            Self::ShapeChanged { .. } => None,
            _ => None,
        }
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_thousands(count as f64), if count == 1 { one } else { many })
}

fn times(count: u64) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{} times", group_thousands(n as f64)),
    }
}

/// What to do about what sessions were found in.
fn advice_on(state: SessionState, log: &str) -> Option<String> {
    match state {
        SessionState::LogWrite => Some(format!(
            "Commits wait for the {log}: put it on storage with faster durable writes, and judge that by the commit's latency."
        )),
        SessionState::Lock => {
            Some("Sessions wait for each other's rows: use more schemas, or a larger SCALE.".to_owned())
        }
        _ => None,
    }
}
