//! What a report says of stalls.

use super::{Blame, CauseShare, StallCause, Stalls, WatchedEpisode, WatchedSum};
use crate::fleet::capital;
use crate::{Message, Rule};
use model::units::{Nanos, percent};

/// Shares below this are not named in a sentence.
const NAMED: f64 = 0.1;

impl StallCause {
    /// The cause in a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Stopped => "the program or the machine was stopped".to_owned(),
            Self::Quota => "a CPU quota stopped the load generator".to_owned(),
            Self::Stolen => "the hypervisor took the CPUs".to_owned(),
            Self::Processors => "no CPU was free for the load generator".to_owned(),
            Self::Memory => "memory was short".to_owned(),
            Self::Retransmission => "packets were lost on the network".to_owned(),
            Self::ServerSilent => "the server answered nothing".to_owned(),
            Self::HeldLock(by) => format!("locks held by {by}"),
            Self::Checkpoint => "a checkpoint of the server".to_owned(),
            Self::Autovacuum => "vacuum that the server began by itself".to_owned(),
            Self::Wait(event) => format!("waits for `{event}`"),
            Self::DeviceSilent => "the device completed no request".to_owned(),
            Self::BeforeDevice => "requests were held before the device".to_owned(),
            Self::Neighbour => "others used the device".to_owned(),
            Self::Writes => "the device was busy with writes or flushes".to_owned(),
            Self::DeviceSlow => "the device was slow for all requests".to_owned(),
        }
    }

    /// What may relieve it.
    fn advice(&self) -> String {
        match self {
            Self::Stopped => {
                "Look for a paused or migrated virtual machine, a frozen control group, or SIGSTOP at that time."
            }
            Self::Quota => "Raise the CPU quota of the load generator's control group, and repeat.",
            Self::Stolen => "Ask for CPUs that are not shared, and repeat.",
            Self::Processors => {
                "See what had them at these times (`top`): other programs, or too many threads of the load. Repeat without that."
            }
            Self::Memory => "Leave more memory free: a smaller cache, or a larger machine.",
            Self::Retransmission => "Look for full queues, policers and bad links on the way to the server.",
            Self::ServerSilent => "Look whether the server was stopped, had no CPUs, or was out of reach at that time.",
            Self::HeldLock(_) => "Look at what that session does: a transaction left open, DDL, or many updates of one row.",
            Self::Checkpoint => {
                "Let checkpoints be rarer and smoother: room for more log between them, writes spread over that time, and faster storage."
            }
            Self::Autovacuum => "Let the server vacuum less at a time, and more often.",
            Self::Wait(event) => return format!("Look into `{event}` in the table of waits (`report --full`)."),
            Self::DeviceSilent | Self::DeviceSlow => {
                "Ask the storage team what happened at these times: failover, garbage collection, snapshots."
            }
            Self::BeforeDevice => {
                "Look for a limit (`io.max`, `blkio.throttle`), `fsfreeze`, a suspended mapping, or a full queue at that time."
            }
            Self::Neighbour => "Repeat without the other users of the device, or accept that they cost this.",
            Self::Writes => "Spread writes: a smoother checkpoint, or log and data on devices of their own.",
        }
        .to_owned()
    }
}

impl CauseShare {
    /// Its share and its episodes.
    fn words(&self) -> String {
        let cause = self.cause.as_ref().map_or_else(|| "unexplained".to_owned(), StallCause::words);
        let episodes = match self.episodes {
            1 => format!("one episode of {}", self.length),
            count => format!("{count} episodes, the longest {}", self.longest),
        };
        format!("{} % {cause} ({episodes})", percent(self.share))
    }
}

impl Stalls {
    /// Where the time beyond the threshold went, in one phrase: the causes with a tenth of it or more, or the first one.
    pub fn phrase(&self) -> String {
        let named = self.causes.iter().enumerate().filter(|(place, share)| *place == 0 || share.share >= NAMED);
        let causes: Vec<String> = named.map(|(_, share)| share.words()).collect();
        format!("of the time beyond {}: {}", self.threshold, causes.join(", "))
    }

    /// The cause with the largest share; absent where that is unexplained.
    pub fn main_cause(&self) -> Option<&StallCause> {
        self.causes.first()?.cause.as_ref()
    }
}

impl WatchedEpisode {
    /// What it is, in one phrase.
    pub fn phrase(&self) -> String {
        let Self { length, statements, sessions, longest, goes_on, blame, .. } = self;
        let cause = blame.as_ref().map_or_else(|| "unexplained".to_owned(), |blame| blame.cause.words());
        let until_now = if *goes_on { " and goes on" } else { "" };
        match statements {
            0 => format!("{length}{until_now}: {cause}"),
            1 => format!("{length}{until_now}, one statement: {cause}"),
            _ => format!(
                "{length}{until_now}, {statements} statements of {sessions} sessions, the longest {longest}: {cause}"
            ),
        }
    }

    /// What speaks for its cause.
    pub fn evidence(&self) -> Option<&str> {
        self.blame.as_ref().map(|blame| blame.evidence.as_str())
    }
}

impl WatchedSum {
    /// All episodes in one phrase.
    pub fn phrase(&self) -> String {
        let Self { watched, slower_than, episodes, statements, took, .. } = self;
        match (episodes, statements) {
            (0, _) => format!("watched for {watched}: no statement was held up for {slower_than} or longer"),
            (1, 0) => format!("watched for {watched}: one stall"),
            (_, 0) => format!("watched for {watched}: {episodes} stalls"),
            (1, 1) => format!("watched for {watched}: one stall, in which one statement took {took}"),
            (1, _) => {
                format!("watched for {watched}: one stall, in which {statements} statements took {took} together")
            }
            _ => format!(
                "watched for {watched}: {episodes} stalls, in which {statements} statements took {took} together"
            ),
        }
    }

    /// Each cause with its share.
    pub fn causes(&self) -> impl Iterator<Item = String> {
        self.causes.iter().map(CauseShare::words)
    }

    /// What may relieve the cause with the largest share.
    pub fn advice(&self) -> Option<String> {
        match self.causes.first()?.cause.as_ref()? {
            StallCause::Wait(event) => Some(format!("Look up `{event}` in the server's manual.")),
            cause => Some(cause.advice()),
        }
    }

    /// Statements that took long, and why they are no stalls.
    pub fn long(&self) -> Option<String> {
        let Self { slower_than, long_statements, .. } = self;
        (*long_statements > 0).then(|| {
            format!(
                "{long_statements} more took longer than {slower_than}: as long as their kind usually does, or it was not seen what that is"
            )
        })
    }
}

impl Message for Stalls {
    fn rule(&self) -> Rule {
        Rule::StallsEpisodes
    }

    fn sentence(&self) -> String {
        let Self { step, operations, scattered_share, unrecorded_share, episodes, .. } = self;
        let rest = |what: &str, share: f64| match percent(share).as_str() {
            "0.0" => String::new(),
            share => format!(" {what} had {share} %."),
        };
        let scattered = rest("Single slow operations", *scattered_share)
            + &rest("Slow operations that are not recorded one by one", *unrecorded_share);
        let main = self.main_cause();
        let of_main = episodes.iter().filter(|episode| episode.blame.as_ref().map(|blame| &blame.cause) == main);
        let evidence = of_main.max_by(|one, other| one.share.total_cmp(&other.share));
        let evidence = evidence.and_then(|episode| {
            let Blame { evidence, .. } = episode.blame.as_ref()?;
            Some(format!(" At {} of the window: {evidence}.", Nanos(episode.from.0)))
        });
        let unseen = match self.were_moments_seen {
            true => "",
            false => " What the system did meanwhile was not recorded, so no cause is known.",
        };
        format!(
            "{operations} operations of {step} took longer than {}, by {} together. {}.{}{scattered}{unseen}",
            self.threshold,
            self.beyond,
            capital(&self.phrase()),
            evidence.unwrap_or_default()
        )
    }

    fn advice(&self) -> Option<String> {
        let cause = self.main_cause()?;
        let log = self.log_checkpoints.as_ref().filter(|_| *cause == StallCause::Checkpoint);
        let larger = log.and_then(|log| {
            let (setting, needed) = (&log.setting, log.needed?);
            Some(format!(
                "Set {setting}={needed}, so that one checkpoint is needed in the time between two that are due."
            ))
        });
        larger.or_else(|| Some(cause.advice()))
    }
}
