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
    RunNotCompleted "run.not_completed" [Doubt] "start/read.md#warnings"
        "The run failed, was ended early, or is not finished.";
    RunErrors "run.errors" [Doubt] "start/read.md#warnings"
        "Operations ended in errors.";
    RunCannotBe "run.cannot_be" [Doubt] "reference/imports.md#impossible-values"
        "Values of the run contradict each other by more than rounding.";
    RunLate "run.late" [Doubt, Note] "workloads/servers.md#where-each-metric-comes-from"
        "Operations had not ended when they were no longer waited for after their window; a doubt above 1 % of a step.";
    RunNotLike "run.not_like" [Note] "recipes/size.md#apply-productions-load"
        "A load like that of another system missed a requested metric, although the target was not the limit.";
    RunRateNotReached "run.rate_not_reached" [Doubt] "start/read.md#warnings"
        "An open loop finished less than 97 % of what was due. Or it left a backlog above 1 % of that and above one \
         operation a session.";
    ReplayIncomplete "replay.incomplete" [Doubt] "recipes/production.md#is-the-replay-faithful"
        "A replay sent fewer requests than the recorded window has.";
    GeneratorSaturated "generator.saturated" [Doubt] "start/read.md#warnings"
        "The busiest thread of the load generator, or its process, used or wanted processors for more than 90 % of the time.";
    GeneratorLate "generator.late" [Doubt, Note] "start/read.md#warnings"
        "p99 of the time from due to sent is above 10 % of the limit (a doubt), or above 10 % of the mean response.";
    GeneratorWaited "generator.waited" [Note] "start/read.md#warnings"
        "Sessions stood ready, or request slots stood empty in the load generator, for more than 5 % of the window.";
    GeneratorStopped "generator.stopped" [Doubt] "start/read.md#warnings"
        "A thread of the load generator that only sleeps woke 500 ms late or more within the window.";
    GeneratorFallback "generator.fallback" [Note] "workloads/storage.md#what-the-columns-mean"
        "Requests were sent by plain system calls instead of io_uring.";
    SteadinessUnsteady "steadiness.unsteady" [Doubt] "start/read.md#warnings"
        "In five rounds of the window, operations/s range over more than 20 % of their mean, or drift by more than 10 %.";
    SteadinessStall "steadiness.stall" [Doubt] "start/read.md#warnings"
        "No operation finished for a whole second where 20 or more are usual.";
    SteadinessRise "steadiness.rise" [Doubt] "reference/method.md#burst-credit"
        "Operations/s lie on two flat levels, the second one higher: a cache has warmed.";
    SteadinessLong "steadiness.long" [Answer, Doubt] "reference/method.md#steady-state"
        "Whether and when a long load became steady; a doubt if it did not, or no longer is.";
    StallsEpisodes "stalls.episodes" [Note] "reference/method.md#why-operations-were-slow"
        "Operations of several sessions took three times as long as the slowest thousandth of a usual second, and 25 ms: when, and why.";
    CreditSpent "credit.spent" [Doubt] "reference/method.md#burst-credit"
        "Requests lie on two flat levels, the second one lower: a burst credit ran out within the window.";
    CreditUnseen "credit.unseen" [Note] "reference/method.md#burst-credit"
        "The load was too short for a credit, or anything else that sets in late, to show.";
    LimitsVerdict "limits.verdict" [Answer] "reference/method.md#yes-no-or-no-verdict"
        "Whether the run kept the limits that it was given.";
    LimitsFewOperations "limits.few_operations" [Note] "reference/method.md#the-load-line"
        "Steps have too few operations for the quantile that the limit judges.";
    LoadLineSteps "load_line.steps" [Answer] "reference/method.md#the-load-line"
        "The largest of the loads that kept the limit, and the least that did not.";
    LoadLineRates "load_line.rates" [Answer] "reference/method.md#the-load-line"
        "Between which two rates of an open loop the load line lies.";
    LoadLineKnee "load_line.knee" [Answer] "reference/method.md#the-knee"
        "Where latency begins to rise faster than load, in a closed loop.";
    LoadLineKneeOfRates "load_line.knee_of_rates" [Answer] "reference/method.md#the-knee"
        "Where latency begins to rise faster than load, in an open loop.";
    LoadLineScales "load_line.scales" [Note] "reference/method.md#curves"
        "The curve of throughput over load that fits a closed loop: contention and coherence.";
    LoadLineResponds "load_line.responds" [Note] "reference/method.md#curves"
        "The curve of response time over load that fits an open loop.";
    CeilingLimit "ceiling.limit" [Answer] "reference/method.md#what-limited-the-load"
        "The rate is held as evenly as by something that counts requests or bytes: a cap, or the device if its service is even. Pulses after pauses tell which.";
    CeilingSizes "ceiling.sizes" [Answer] "reference/method.md#what-limited-the-load"
        "Several request sizes show what is limited: requests, bytes or both.";
    CeilingDevice "ceiling.device" [Answer] "reference/method.md#what-limited-the-load"
        "The device, or a queue in front of it, has no more to give.";
    CeilingServer "ceiling.server" [Answer] "reference/method.md#what-limited-the-load"
        "A server, or something below it, has no more to give; of an NFS server also the way there.";
    CeilingGenerator "ceiling.generator" [Doubt] "reference/method.md#what-limited-the-load"
        "The rate came within 10 % of what the load generator reaches without a device, and its busiest thread was \
         70 % busy.";
    CeilingNeighbour "ceiling.neighbour" [Answer] "reference/method.md#what-limited-the-load"
        "Others used the device in most seconds: what it gives alone is unknown.";
    CeilingUnclear "ceiling.unclear" [Answer] "reference/method.md#what-limited-the-load"
        "Some seconds are the same, too few to tell a limit from chance.";
    CeilingNone "ceiling.none" [Answer] "reference/method.md#what-limited-the-load"
        "The rate still grew at the largest load: no limit was reached.";
    CeilingTogether "ceiling.together" [Answer] "reference/method.md#whether-volumes-share-a-limit"
        "Whether several volumes that were loaded alone and together share a limit.";
    WaitsTop "waits.top" [Note] "reference/method.md#the-wait-table"
        "What the sessions of the largest load waited for most, where commits are it.";
    WaitsWriters "waits.writers" [Note] "reference/method.md#the-wait-table"
        "Sessions waited for the database writers (5 % of waited time) or for a checkpoint (2 %): reads were not the limit.";
    CacheHeld "cache.held" [Doubt, Note] "start/read.md#warnings"
        "90 % of logical reads or more did not go to storage (a doubt), or 50 % or more.";
    CacheTooSmall "cache.data_too_small" [Doubt, Note] "start/read.md#warnings"
        "The data set is smaller than memory while the page cache is in the path (a doubt). Or each block is read 10 \
         times in a window.";
    CachePageCache "cache.page_cache" [Doubt] "workloads/storage.md#what-the-columns-mean"
        "The page cache is in the path: files are not opened for direct I/O.";
    CacheSizes "cache.sizes" [Note] "workloads/slob.md#how-much-would-another-cache-size-help"
        "What a buffer cache of another size would have answered.";
    CacheFlash "cache.flash" [Doubt, Note] "workloads/slob.md#the-flash-cache"
        "What a flash cache answered. A doubt if it still warmed (2 points in the last quarter) or failed more than \
         2 % of its reads.";
    StorageBytesDisagree "storage.bytes_disagree" [Doubt] "start/read.md#warnings"
        "The engine's count of bytes read or written and the kernel's differ by more than 1 %.";
    StorageFlushes "storage.flushes" [Doubt, Note] "start/read.md#warnings"
        "Whether durable writes were seen to reach the device. A doubt if no flush did and the device has a volatile \
         cache.";
    StorageShared "storage.shared" [Note] "workloads/storage.md#what-the-columns-mean"
        "A device read 1.1 times what the run did: others use it, or it reads ahead.";
    StorageArray "storage.array" [Doubt] "start/read.md#warnings"
        "When the run began, an array lacked members, or the kernel resynchronised, rebuilt, checked or reshaped it.";
    StoragePaths "storage.paths" [Doubt] "start/read.md#warnings"
        "When the run began, a multipath device had paths that the kernel could not use.";
    StorageThinPool "storage.thin_pool" [Doubt, Note] "start/read.md#warnings"
        "A thin pool takes no new blocks and the run wrote, or it has failed (a doubt). Or it was above 90 % of its data \
         or metadata.";
    StorageNvme "storage.nvme" [Doubt, Note] "start/read.md#warnings"
        "An NVMe device states a critical warning or its critical temperature (a doubt). Or it states media errors, or \
         a life used up.";
    StorageSnapshot "storage.snapshot" [Note] "workloads/storage.md#what-the-columns-mean"
        "A snapshot of the volume exists, and the run writes: old blocks are copied first.";
    StorageCompressed "storage.compressed" [Note] "workloads/storage.md#what-the-columns-mean"
        "The file system compresses: results depend on the data.";
    StorageTiers "storage.tiers" [Note] "reference/method.md#where-reads-came-from"
        "Reads of one block fall into groups by their time: memory, flash, array or disk.";
    ServerProcessors "server.processors" [Doubt] "workloads/servers.md#where-each-metric-comes-from"
        "The processors were idle for less than 5 % of the time, and half of what was used or more was the server's.";
    ServerShapeChanged "server.shape_changed" [Doubt] "workloads/servers.md#where-each-metric-comes-from"
        "A table grew by more than 1 % of its pages, or below 95 % of 1,000 updated rows or more stayed on their page.";
    ServerPageCache "server.page_cache" [Doubt, Note] "workloads/servers.md#where-each-metric-comes-from"
        "The page cache answered half of a server's buffer misses or more (a doubt), or 10 % or more.";
    ServerPageCacheUnknown "server.page_cache_unknown" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "How many buffer misses the page cache answered is unknown.";
    ServerUnread "server.unread" [Doubt, Note] "workloads/servers.md#where-each-metric-comes-from"
        "A server did not report its counters for some seconds. A doubt if they miss more than half a second and 2 % \
         of the window.";
    ServerRolledBack "server.rolled_back" [Doubt, Note] "workloads/servers.md#where-each-metric-comes-from"
        "The database counted deadlocks (a doubt), or rolled back 1 % of the transactions or more.";
    ServerCheckpoint "server.checkpoint" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "Checkpoints began within the window.";
    ServerLogCheckpoints "server.log_checkpoints" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "The limit of the log requested more than one checkpoint in 60 s of the window. Also whether throughput was \
         at least 15 % lower while they ran.";
    ServerVacuum "server.vacuum" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "The server vacuumed or analysed the tables within the window.";
    ServerMultiBlock "server.multi_block" [Doubt] "workloads/servers.md#where-each-metric-comes-from"
        "More than 1 % of 100 or more reads that the load's sessions waited for were of several blocks at once.";
    ServerScansCached "server.scans_cached" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "Scans went through the server's buffer cache.";
    ServerNodes "server.nodes" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "The logical reads/s of nodes differ by more than 10 % of their mean.";
    ServerSessions "server.sessions" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "What the sessions of the largest load were found in most often, if it is neither a processor nor a read.";
    ServerLosesCommits "server.loses_commits" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "The load commits, and a setting lets the server lose commits or tear data when its machine goes down.";
    ServerStopped "server.stopped" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "What the transactions of the largest load were stopped by, or what most of their time went to.";
    ServerIdle "server.idle" [Note] "workloads/servers.md#where-each-metric-comes-from"
        "Sessions had nothing under way for more than 5 % of the window.";
    HostQuota "host.quota" [Answer] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "A limit of a control group held the load back in a tenth of five periods or more.";
    HostSteal "host.steal" [Answer] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "The hypervisor took 2 % of the time of the loaded processors, and 50 ms.";
    HostCompetition "host.competition" [Answer] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "Other processes took 3 % of the time of the loaded processors, and 50 ms.";
    HostSpeedFell "host.speed_fell" [Answer] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "The speed of the processors fell by 5 %, at once or bit by bit.";
    HostSlowProcessor "host.slow_processor" [Answer] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "A processor does less than 93 % of the median of all, undisturbed.";
    HostSharedCores "host.shared_cores" [Note] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "Processors are threads that share cores.";
    HostMemory "host.memory" [Note] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "From a number of processors on, more of them move less than 5 % more memory.";
    HostFarMemory "host.far_memory" [Note] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "A load from another node's memory takes 1.1 times as long.";
    HostTimers "host.timers" [Note] "workloads/host-network.md#what-plimsoll-finds-on-a-host"
        "A thousandth of the sleeps ended more than 1 ms late.";
    NetworkStop "network.stop" [Answer] "workloads/host-network.md#what-stops-bulk-data"
        "What stopped bulk data in one direction.";
    NetworkSlowLink "network.slow_link" [Answer] "workloads/host-network.md#what-stops-bulk-data"
        "A link of several is slower than the median of the others.";
    NetworkOneFlow "network.one_flow" [Answer] "workloads/host-network.md#what-stops-bulk-data"
        "A single flow is held by itself: four or more come to 1.5 times as much.";
    NetworkSeen "network.seen" [Note] "workloads/host-network.md#what-else-the-report-states"
        "What both ends saw besides: queues, packets that were sent again or dropped, a smaller path, allowances.";
    NetworkSurvey "network.survey" [Note] "workloads/host-network.md#network"
        "An answer of a survey besides its first sentence.";
    NfsConnections "nfs.connections" [Answer] "recipes/networks.md#is-one-connection-enough"
        "What more connections to the server bring.";
    NfsQuota "nfs.quota" [Answer] "recipes/networks.md#is-one-connection-enough"
        "The volume gives what it is sold with.";
    NfsSlots "nfs.slots" [Answer] "workloads/storage.md#nfs-version-41"
        "The calls that connections may have in flight are the limit.";
    NfsSlowPath "nfs.slow_path" [Note] "workloads/storage.md#when-a-path-fails"
        "A path answers later than the others.";
    NfsPathTrouble "nfs.path_trouble" [Note, Doubt] "workloads/storage.md#when-a-path-fails"
        "Paths lost connections or packets; a doubt where operations waited for it.";
    GroupUneven "group.uneven" [Note] "workloads/storage.md#disk-groups"
        "A member of a disk group has more than its part of the requests.";
    GroupSlow "group.slow" [Note] "workloads/storage.md#disk-groups"
        "A member of a disk group answers later than the others.";
    GroupCopies "group.copies" [Note] "workloads/storage.md#disk-groups"
        "What copies cost.";
    GroupDropped "group.dropped" [Doubt] "workloads/storage.md#disk-groups"
        "Members of a disk group failed.";
    GroupRepaired "group.repaired" [Note] "workloads/storage.md#disk-groups"
        "Blocks were repaired from another copy.";
    FleetMissing "fleet.missing" [Doubt] "recipes/together.md#how-a-part-ends"
        "Parts of the load were not there.";
    FleetDied "fleet.died" [Doubt] "recipes/together.md#how-a-part-ends"
        "A part did not come to its end.";
    FleetForced "fleet.forced" [Doubt] "recipes/together.md#merge"
        "Runs were merged that do not belong together.";
    FleetDiffers "fleet.differs" [Note] "recipes/together.md#merge"
        "A part, or all parts of a host, did something else than the median part.";
    FleetLate "fleet.late" [Note] "recipes/together.md#common-start"
        "Parts did not begin when it was agreed.";
    FleetClock "fleet.clock" [Note] "recipes/together.md#merge"
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
