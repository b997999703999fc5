//! The words of findings, and what to do about them.

use super::Finding;
use crate::analysis::message::list;
use crate::analysis::{Message, Subject, Vocabulary};
use crate::units::{Bytes, group_thousands, percent};

impl Finding {
    /// The finding as one or two sentences.
    pub fn sentence(&self) -> String {
        match self {
            Self::Verdict(reported) => reported.sentence(),
            Self::ClientSaturated { steps, share, whole_machine } => {
                let who = if *whole_machine { "This process used" } else { "The busiest thread used" };
                let of = if *whole_machine { "of all processors" } else { "of its processor" };
                format!(
                    "{who} {} % {of} in {}: these figures show the limit of the load generator, not of the target.",
                    percent(*share),
                    list(steps)
                )
            }
            Self::RateNotReached { step, asked_per_s, achieved_per_s, backlog, words } => {
                let queue = backlog.map_or(String::new(), |operations| {
                    format!(", with {} {} due but not sent at the end", group_thousands(operations as f64), words.work())
                });
                format!(
                    "The rate asked for was not reached in {step}: {} of {}{queue}.",
                    group_thousands(*achieved_per_s),
                    words.rate(*asked_per_s)
                )
            }
            Self::Failed { error, steps } => format!("The run failed with {}: {error}", begun(*steps)),
            Self::Interrupted { steps: 0, .. } => "The run was ended early, before anything was measured.".to_owned(),
            Self::Interrupted { steps, last_is_partial } => format!(
                "The run was ended early with {}{}.",
                begun(*steps),
                if *last_is_partial { "; the last is partial" } else { "" }
            ),
            Self::Unfinished { steps } => {
                format!("The run has not finished, or its process was killed, with {}.", begun(*steps))
            }
            Self::OperationErrors { steps, errors } => {
                let operations = if *errors == 1 { "operation" } else { "operations" };
                format!("{} {operations} ended in errors in {}.", group_thousands(*errors as f64), list(steps))
            }
            Self::PageCacheInPath => {
                "Files are not read directly (direct_io is off): the operating system's page cache may have served reads."
                    .to_owned()
            }
            Self::PageCacheUsed(reported) => reported.sentence(),
            Self::SentLate(reported) => reported.sentence(),
            Self::WritesDisagree(reported) => reported.sentence(),
            Self::DurableWrites(reported) => reported.sentence(),
            Self::ReadsDisagree { steps, share, engine_bytes, kernel_bytes } => format!(
                "Bytes read by our count and by the kernel's differ by {} % in {}: {} against {}.",
                percent(*share),
                list(steps),
                Bytes(*engine_bytes),
                Bytes(*kernel_bytes)
            ),
            Self::NotSteady { steps, range, drift } => format!(
                "Throughput was not steady in {}: it ranged over {} % of its mean (20 % is allowed) and drifted by {}{} % within the \
                 window (10 % is allowed).",
                list(steps),
                percent(*range),
                if *drift > 0.0 { "+" } else { "" },
                percent(*drift)
            ),
            Self::Stalled { steps, longest } => {
                format!("No operation finished for {longest} in {}, although load was on.", list(steps))
            }
            Self::WaitedForProcessor { steps, share, words, .. } => format!(
                "{} for {} % of the window in {} before a thread came to them.",
                match words {
                    Vocabulary::Sessions => "Sessions stood ready",
                    Vocabulary::Requests => "Request slots stood empty in the load generator",
                },
                percent(*share),
                list(steps)
            ),
            Self::CacheHeld { steps, hit_ratio, data_fits } => {
                let why = if *data_fits { " The data set fits into the cache." } else { "" };
                format!(
                    "{} % of logical reads never reached storage in {}.{why}",
                    percent(*hit_ratio),
                    list(steps)
                )
            }
            Self::StepLine(line) => line.sentence(),
            Self::Knee(knee) => knee.sentence(),
            Self::Ceiling(reported) => reported.sentence(),
            Self::SizeLimits(reported) => reported.sentence(),
            Self::Together(reported) => reported.sentence(),
            Self::RateKnee(reported) => reported.sentence(),
            Self::Scales(reported) => reported.sentence(),
            Self::Responds(reported) => reported.sentence(),
            Self::FreeBufferWaits { steps, share } => format!(
                "Sessions waited for a clean buffer for {} % of their waiting time in {}: the database writers were the limit, not reads.",
                percent(*share),
                list(steps)
            ),
            Self::CheckpointIncomplete { steps, share } => format!(
                "Sessions waited for a checkpoint to free a log file for {} % of their waiting time in {}: the redo logs are too \
                 small for this rate of change, or writers too slow.",
                percent(*share),
                list(steps)
            ),
            Self::CommitsDominate { steps, share } => format!(
                "Sessions waited for commits more than for anything else in {}: `log file sync` is {} % of their waiting time.",
                list(steps),
                percent(*share)
            ),
            Self::FewWaits { steps, target, wanted } => format!(
                "{} has fewer than the {} {} that {} needs to mean something.",
                list(steps),
                group_thousands(*wanted as f64),
                target.subject.as_ref().map_or("waits", Subject::things),
                target.quantile_name()
            ),
            Self::Burst(reported) => reported.sentence(),
            Self::Rose(reported) => reported.sentence(),
            Self::CreditNotSeen(reported) => reported.sentence(),
            Self::DeviceSharedWithOthers { steps, device, share } => format!(
                "Of what `{device}` read in {}, {} % was not for this run: somebody else uses it, or it reads ahead.",
                list(steps),
                percent(*share)
            ),
            Self::FallbackEngine { engine } => {
                format!("Requests were sent by `{engine}`, not io_uring: they cost more processor time and fewer can be outstanding.")
            }
            Self::TopWait { step, event, share, mean } => format!(
                "Sessions of {step} waited most for `{event}`: {} % of their waiting time, {mean} each.",
                percent(*share)
            ),
            Self::OpenLoadLine(line) => line.sentence(),
            Self::Steady(state) => state.sentence(),
            Self::Tiers(tiers) => tiers.sentence(),
            Self::CacheTrap(trap) => trap.sentence(),
            Self::Server(reported) => reported.sentence(),
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Verdict(reported) => return reported.advice(),
            Self::ClientSaturated { .. } => {
                "Judge storage by steps with less load, use fewer, larger operations, or give the machine more processors."
            }
            Self::RateNotReached { words: Vocabulary::Sessions, .. } => {
                "Ask for a lower rate, or more sessions if latency was low; response times include the queue."
            }
            Self::RateNotReached { words: Vocabulary::Requests, .. } => {
                "Ask for a lower rate, or a larger --depth if service times were short; response times include the queue."
            }
            Self::Failed { .. } => "Mend what the error names and run again; the steps before it stand.",
            Self::Interrupted { steps: 0, .. } => return None,
            Self::Interrupted { .. } => "Compare the complete steps only.",
            Self::Unfinished { .. } => "If it is not running any more, take it as cut short.",
            Self::OperationErrors { .. } => "Find out what failed before using these figures.",
            Self::PageCacheInPath => {
                "Put the target on a file system that takes O_DIRECT, such as xfs or ext4, and allow it."
            }
            Self::PageCacheUsed(reported) => return reported.advice(),
            Self::SentLate(reported) => return reported.advice(),
            Self::WritesDisagree(reported) => return reported.advice(),
            Self::DurableWrites(reported) => return reported.advice(),
            Self::ReadsDisagree { .. } => {
                "If the kernel counted less, its page cache served reads; check direct I/O, or network file systems, which it does not count."
            }
            Self::NotSteady { .. } => "Run longer, or with more warm-up; look at the intervals for when it changed.",
            Self::Stalled { .. } => {
                "Look at the intervals and the kernel log for that time: storage or a noisy neighbour stopped answering."
            }
            Self::WaitedForProcessor { words, threads, .. } => {
                let what = match words {
                    Vocabulary::Requests => "Storage saw fewer requests at once than asked for.",
                    Vocabulary::Sessions => "They waited for processor time, as sessions of a busy database do.",
                };
                return Some(format!("{what} {}", threads.where_idle()));
            }
            Self::CacheHeld { .. } => "To measure storage, use a larger SCALE or a smaller cache.",
            Self::StepLine(line) => return line.advice(),
            Self::Ceiling(reported) => return reported.advice(),
            Self::SizeLimits(reported) => return reported.advice(),
            Self::Together(reported) => return reported.advice(),
            Self::RateKnee(reported) => return reported.advice(),
            Self::Scales(reported) => return reported.advice(),
            Self::Responds(reported) => return reported.advice(),
            Self::FreeBufferWaits { .. } => "Lower UPDATE_PCT to judge reads; a larger cache only postpones it.",
            Self::CheckpointIncomplete { .. } => "Use larger redo logs, as on the database being modelled.",
            Self::CommitsDominate { .. } => {
                "Put redo on storage with faster durable writes; judge it by `log file parallel write`."
            }
            Self::FewWaits { .. } => "Run longer.",
            Self::Burst(reported) => return reported.advice(),
            Self::Rose(reported) => return reported.advice(),
            Self::CreditNotSeen(reported) => return reported.advice(),
            Self::DeviceSharedWithOthers { .. } => "Repeat when the device is quiet.",
            Self::FallbackEngine { .. } => {
                "Unless that was asked for, allow io_uring (kernel.io_uring_disabled, or the container's seccomp profile)."
            }
            Self::OpenLoadLine(line) => return line.advice(),
            Self::Steady(state) => return state.advice(),
            Self::Tiers(tiers) => return tiers.advice(),
            Self::CacheTrap(trap) => return trap.advice(),
            Self::Server(reported) => return reported.advice(),
            Self::Knee(_) | Self::TopWait { .. } => return None,
        };
        Some(advice.to_owned())
    }
}

fn begun(steps: usize) -> String {
    match steps {
        0 => "no step recorded".to_owned(),
        1 => "1 step recorded".to_owned(),
        n => format!("{n} steps recorded"),
    }
}
