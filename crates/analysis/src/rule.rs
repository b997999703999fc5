//! The rules of the analysis: what each looks for, the name by which programs know its findings, and where the book explains it.

use super::Severity::{self, Answer, Doubt, Note};

macro_rules! rules {
    ($($name:ident $id:literal [$($severity:ident),+] $page:literal $meaning:literal;)+) => {
        /// A rule that makes findings. Its [`id`](Self::id) never changes its meaning; sentences may.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = $meaning] $name,)+
        }

        impl Rule {
            /// Every rule, as the reference lists them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What programs know its findings by: an area, a dot, and a word.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// How its findings can bear on the report, the usual one first.
            pub fn severities(self) -> &'static [Severity] {
                match self { $(Self::$name => &[$($severity),+],)+ }
            }

            /// The page of the book that explains it, below `docs/`.
            pub fn page(self) -> &'static str {
                match self { $(Self::$name => $page,)+ }
            }

            /// What it looks for, with its threshold.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }
        }
    };
}

rules! {
    RunNotCompleted "run.not_completed" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "The run failed, was ended early, or is not finished.";
    RunErrors "run.errors" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "Operations ended in errors.";
    RunCannotBe "run.cannot_be" [Doubt] "import.md#figures-that-cannot-be"
        "Values of the run contradict each other by more than rounding.";
    RunLate "run.late" [Doubt, Note] "method/servers.md"
        "Operations had not ended when they were no longer waited for after their window; a doubt above 1 % of a step.";
    RunNotLike "run.not_like" [Note] "like.md"
        "A load like that of another system did not reach a figure that was asked of it, although the target was not the limit.";
    RunRateNotReached "run.rate_not_reached" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "An open loop finished less than 97 % of what was due. Or it left a backlog above 1 % of that and above one \
         operation a session.";
    GeneratorSaturated "generator.saturated" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "The busiest thread of the load generator, or its process on all processors, was busy above 90 %.";
    GeneratorLate "generator.late" [Doubt, Note] "method/doubts.md#when-figures-are-doubtful"
        "p99 of the time from due to sent is above 10 % of the limit (a doubt), or above 10 % of the mean response.";
    GeneratorWaited "generator.waited" [Note] "method/doubts.md#when-figures-are-doubtful"
        "Sessions stood ready, or request slots stood empty in the load generator, for more than 5 % of the window.";
    GeneratorStopped "generator.stopped" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "A thread of the load generator that only sleeps woke 500 ms late or more within the window.";
    GeneratorFallback "generator.fallback" [Note] "method/storage.md"
        "Requests were sent by plain system calls instead of io_uring.";
    SteadinessUnsteady "steadiness.unsteady" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "In five rounds of the window, operations/s range over more than 20 % of their mean, or drift by more than 10 %.";
    SteadinessStall "steadiness.stall" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "No operation finished for a whole second where 20 or more are usual.";
    SteadinessRise "steadiness.rise" [Doubt] "method/limits.md#burst-credit"
        "Operations/s lie on two flat levels, the second one higher: a cache has warmed.";
    SteadinessLong "steadiness.long" [Answer, Doubt] "method/doubts.md#steady-state"
        "Whether and when a long load became steady; a doubt if it did not, or no longer is.";
    CreditSpent "credit.spent" [Doubt] "method/limits.md#burst-credit"
        "Requests lie on two flat levels, the second one lower: a burst credit ran out within the window.";
    CreditUnseen "credit.unseen" [Note] "method/limits.md#burst-credit"
        "The load was too short for a credit, or anything else that sets in late, to show.";
    LimitsVerdict "limits.verdict" [Answer] "method/load-line.md#yes-no-or-no-verdict"
        "Whether the run kept the limits that it was given.";
    LimitsFewOperations "limits.few_operations" [Note] "method/load-line.md#the-load-line"
        "Steps have too few operations for the quantile that the limit judges.";
    LoadLineSteps "load_line.steps" [Answer] "method/load-line.md#the-load-line"
        "The largest of the loads that kept the limit, and the least that did not.";
    LoadLineRates "load_line.rates" [Answer] "method/load-line.md#the-load-line"
        "Between which two rates of an open loop the load line lies.";
    LoadLineKnee "load_line.knee" [Answer] "method/load-line.md#the-knee"
        "Where latency begins to rise faster than load, in a closed loop.";
    LoadLineKneeOfRates "load_line.knee_of_rates" [Answer] "method/load-line.md#the-knee"
        "Where latency begins to rise faster than load, in an open loop.";
    LoadLineScales "load_line.scales" [Note] "method/load-line.md#curves"
        "The curve of throughput over load that fits a closed loop: contention and coherence.";
    LoadLineResponds "load_line.responds" [Note] "method/load-line.md#curves"
        "The curve of response time over load that fits an open loop.";
    CeilingLimit "ceiling.limit" [Answer] "method/limits.md#what-limited-the-load"
        "The rate is held as evenly as by something that counts requests or bytes: a cap, or the device if its service is even. Pulses after pauses tell which.";
    CeilingSizes "ceiling.sizes" [Answer] "method/limits.md#what-limited-the-load"
        "Several request sizes show what is limited: requests, bytes or both.";
    CeilingDevice "ceiling.device" [Answer] "method/limits.md#what-limited-the-load"
        "The device, or a queue in front of it, has no more to give.";
    CeilingServer "ceiling.server" [Answer] "method/limits.md#what-limited-the-load"
        "A server, or something below it, has no more to give; of an NFS server also the way there.";
    CeilingGenerator "ceiling.generator" [Doubt] "method/limits.md#what-limited-the-load"
        "The rate came within 10 % of what the load generator reaches without a device, and its busiest thread was \
         70 % busy.";
    CeilingNeighbour "ceiling.neighbour" [Answer] "method/limits.md#what-limited-the-load"
        "Others used the device in most seconds: what it gives alone is unknown.";
    CeilingUnclear "ceiling.unclear" [Answer] "method/limits.md#what-limited-the-load"
        "Some seconds are the same, too few to tell a limit from chance.";
    CeilingNone "ceiling.none" [Answer] "method/limits.md#what-limited-the-load"
        "The rate still grew at the largest load: no limit was reached.";
    CeilingTogether "ceiling.together" [Answer] "method/limits.md#whether-volumes-share-a-limit"
        "Whether several volumes that were loaded alone and together share a limit.";
    WaitsTop "waits.top" [Note] "method/figures.md#the-wait-table"
        "What the sessions of the largest load waited for most, where commits are it.";
    WaitsWriters "waits.writers" [Note] "method/figures.md#the-wait-table"
        "Sessions waited for the database writers (5 % of waited time) or for a checkpoint (2 %): reads were not the limit.";
    CacheHeld "cache.held" [Doubt, Note] "method/doubts.md#when-figures-are-doubtful"
        "90 % of logical reads or more did not go to storage (a doubt), or 50 % or more.";
    CacheTooSmall "cache.data_too_small" [Doubt, Note] "method/doubts.md#when-figures-are-doubtful"
        "The data set is smaller than memory while the page cache is in the path (a doubt). Or each block is read 10 \
         times in a window.";
    CachePageCache "cache.page_cache" [Doubt] "method/storage.md"
        "The page cache is in the path: files are not opened for direct I/O.";
    CacheSizes "cache.sizes" [Note] "flash-cache.md#how-much-would-a-cache-of-n-gb-help"
        "What a buffer cache of another size would have answered.";
    CacheFlash "cache.flash" [Doubt, Note] "flash-cache.md#what-the-report-says"
        "What a flash cache answered. A doubt if it still warmed (2 points in the last quarter) or failed more than \
         2 % of its reads.";
    StorageBytesDisagree "storage.bytes_disagree" [Doubt] "method/doubts.md#when-figures-are-doubtful"
        "The engine's count of bytes read or written and the kernel's differ by more than 1 %.";
    StorageFlushes "storage.flushes" [Doubt, Note] "method/doubts.md#when-figures-are-doubtful"
        "Whether durable writes were seen to reach the device. A doubt if no flush did and the device has a volatile \
         cache.";
    StorageShared "storage.shared" [Note] "method/storage.md"
        "A device read 1.1 times what the run did: others use it, or it reads ahead.";
    StorageTiers "storage.tiers" [Note] "method/limits.md#where-reads-came-from"
        "Reads of one block fall into groups by their time: memory, flash, array or disk.";
    ServerProcessors "server.processors" [Doubt] "method/servers.md"
        "The processors were idle for less than 5 % of the time, and half of what was used or more was the server's.";
    ServerShapeChanged "server.shape_changed" [Doubt] "method/servers.md"
        "A table grew by more than 1 % of its pages, or below 95 % of 1,000 updated rows or more stayed on their page.";
    ServerPageCache "server.page_cache" [Doubt, Note] "method/servers.md"
        "The page cache answered half of a server's buffer misses or more (a doubt), or 10 % or more.";
    ServerPageCacheUnknown "server.page_cache_unknown" [Note] "method/servers.md"
        "How many buffer misses the page cache answered is unknown.";
    ServerUnread "server.unread" [Doubt, Note] "method/servers.md"
        "A server did not report its counters for some seconds. A doubt if they miss more than half a second and 2 % \
         of the window.";
    ServerRolledBack "server.rolled_back" [Doubt, Note] "method/servers.md"
        "The database counted deadlocks (a doubt), or rolled back 1 % of the transactions or more.";
    ServerCheckpoint "server.checkpoint" [Note] "method/servers.md"
        "Checkpoints began within the window.";
    ServerLogCheckpoints "server.log_checkpoints" [Note] "method/servers.md"
        "The limit of the log requested more than one checkpoint in 60 s of the window. Also whether throughput was \
         at least 15 % lower while they ran.";
    ServerVacuum "server.vacuum" [Note] "method/servers.md"
        "The server vacuumed or analysed the tables within the window.";
    ServerMultiBlock "server.multi_block" [Doubt] "method/servers.md"
        "More than 1 % of 100 or more reads that the load's sessions waited for were of several blocks at once.";
    ServerScansCached "server.scans_cached" [Note] "method/servers.md"
        "Scans went through the server's buffer cache.";
    ServerNodes "server.nodes" [Note] "method/servers.md"
        "The logical reads/s of nodes differ by more than 10 % of their mean.";
    ServerSessions "server.sessions" [Note] "method/servers.md"
        "What the sessions of the largest load were found in most often, if it is neither a processor nor a read.";
    ServerLosesCommits "server.loses_commits" [Note] "method/servers.md"
        "The load commits, and a setting lets the server lose commits or tear data when its machine goes down.";
    ServerStopped "server.stopped" [Note] "method/servers.md"
        "What the transactions of the largest load were stopped by, or what most of their time went to.";
    ServerIdle "server.idle" [Note] "method/servers.md"
        "Sessions had nothing under way for more than 5 % of the window.";
    HostQuota "host.quota" [Answer] "host.md#what-is-found"
        "A limit of a control group held the load back in a tenth of five periods or more.";
    HostSteal "host.steal" [Answer] "host.md#what-is-found"
        "The hypervisor took 2 % of the time of the loaded processors, and 50 ms.";
    HostCompetition "host.competition" [Answer] "host.md#what-is-found"
        "Other processes took 3 % of the time of the loaded processors, and 50 ms.";
    HostSpeedFell "host.speed_fell" [Answer] "host.md#what-is-found"
        "The speed of the processors fell by 5 %, at once or bit by bit.";
    HostSlowProcessor "host.slow_processor" [Answer] "host.md#what-is-found"
        "A processor does less than 93 % of the median of all, undisturbed.";
    HostSharedCores "host.shared_cores" [Note] "host.md#what-is-found"
        "Processors are threads that share cores.";
    HostMemory "host.memory" [Note] "host.md#what-is-found"
        "From a number of processors on, more of them move less than 5 % more memory.";
    HostFarMemory "host.far_memory" [Note] "host.md#what-is-found"
        "A load from another node's memory takes 1.1 times as long.";
    HostTimers "host.timers" [Note] "host.md#what-is-found"
        "A thousandth of the sleeps ended more than 1 ms late.";
    NetworkStop "network.stop" [Answer] "method/network.md#how-causes-are-distinguished"
        "What stopped bulk data in one direction.";
    NetworkSlowLink "network.slow_link" [Answer] "method/network.md#how-causes-are-distinguished"
        "A link of several is slower than the median of the others.";
    NetworkOneFlow "network.one_flow" [Answer] "method/network.md#how-causes-are-distinguished"
        "A single flow is held by itself: four or more come to 1.5 times as much.";
    NetworkSeen "network.seen" [Note] "method/network.md#what-else-is-said"
        "What both ends saw besides: queues, packets that were sent again or dropped, a smaller path, allowances.";
    NetworkSurvey "network.survey" [Note] "method/network.md"
        "An answer of a survey besides its first sentence.";
    NfsConnections "nfs.connections" [Answer] "nfs.md#is-one-connection-enough"
        "What more connections to the server bring.";
    NfsQuota "nfs.quota" [Answer] "nfs.md#is-one-connection-enough"
        "The volume gives what it is sold with.";
    NfsSlots "nfs.slots" [Answer] "nfs.md#version-41-and-its-sessions"
        "The calls that connections may have in flight are the limit.";
    NfsSlowPath "nfs.slow_path" [Note] "nfs.md#when-a-path-fails"
        "A path answers later than the others.";
    NfsPathTrouble "nfs.path_trouble" [Note, Doubt] "nfs.md#when-a-path-fails"
        "Paths lost connections or packets; a doubt where operations waited for it.";
    GroupUneven "group.uneven" [Note] "groups.md#what-is-reported"
        "A member of a disk group has more than its part of the requests.";
    GroupSlow "group.slow" [Note] "groups.md#what-is-reported"
        "A member of a disk group answers later than the others.";
    GroupCopies "group.copies" [Note] "groups.md#what-is-reported"
        "What copies cost.";
    GroupDropped "group.dropped" [Doubt] "groups.md#what-is-reported"
        "Members of a disk group failed.";
    GroupRepaired "group.repaired" [Note] "groups.md#what-is-reported"
        "Blocks were repaired from another copy.";
    FleetMissing "fleet.missing" [Doubt] "fleet.md#how-a-part-ends"
        "Parts of the load were not there.";
    FleetDied "fleet.died" [Doubt] "fleet.md#how-a-part-ends"
        "A part did not come to its end.";
    FleetForced "fleet.forced" [Doubt] "fleet.md#what-belongs-together"
        "Runs were merged that do not belong together.";
    FleetDiffers "fleet.differs" [Note] "fleet.md#the-parts-beside-each-other"
        "A part, or all parts of a host, did something else than the median part.";
    FleetLate "fleet.late" [Note] "fleet.md#common-start"
        "Parts did not begin when it was agreed.";
    FleetClock "fleet.clock" [Note] "fleet.md#merge"
        "Clocks were off by more than their bound; the merge has put that right.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_an_area_and_a_word_and_no_two_are_the_same() {
        let ids: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for id in ids {
            let (area, word) = id.split_once('.').unwrap();
            assert!(is_word(area) && is_word(word), "{id}");
        }
    }
}
