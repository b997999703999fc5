//! How each number in a report was made, for readers who do not believe it before they know.

use maud::{Markup, html};

use analysis::{Vocabulary, is_host_load, is_on_servers, operations_are_requests};
use model::record::Run;

/// A figure, and how it was made.
type Made = (&'static str, &'static str);

const EVERYWHERE: [Made; 7] = [
    (
        "Window",
        "Every metric of a step counts what happened within its measured window, while all sessions were at work, divided by the \
         measured length. Charts shade warm-up seconds; no metric contains them.",
    ),
    (
        "Response and service time",
        "Response time runs from when an operation was due until it finished, service time from when it was sent. In a closed loop \
         an operation is due when its session is free, so both are the same. At a fixed rate (open loop) the schedule decides: \
         waiting behind a slow operation counts.",
    ),
    (
        "Percentiles",
        "From HdrHistograms with two significant digits, merged exactly: at most 0.8 % too high, never too low. The maximum \
         and the mean are exact. A percentile of a step is that of all its operations, not a mean of percentiles of seconds.",
    ),
    (
        "Wait histogram",
        "A wait of w microseconds counts under the lowest power of two above w. 1 ms in these headings is 1024 us, as in \
         Oracle's tables. `-` is none; 0.0 is less than 0.05 %.",
    ),
    (
        "Load line",
        "The largest load that was measured and met the latency target, with a larger one that did not. It is not \
         extrapolated.",
    ),
    ("Processors", "From the kernel's account of this process; 1 or 100 % is one whole processor."),
    (
        "Devices",
        "Differences of /proc/diskstats over a second or a window: everybody's requests, after the kernel has merged and \
         split them. Time of a request is queue and device together; in flight is the mean over time.",
    ),
];

const OF_ENGINE: [Made; 3] = [
    (
        "Logical and physical reads",
        "Logical reads are blocks found through the buffer cache, hit or miss. Physical reads are read requests sent to \
         storage, counted by the engine and compared with the kernel's account.",
    ),
    (
        "Wait events",
        "Each wait is timed by the engine from the request to its completion and bears the name that Oracle gives it. \
         % waited is its share of the time that sessions waited.",
    ),
    ("Hit %", "Logical reads that found their block in the buffer cache, or found another session already reading it."),
];

const OF_SERVERS: [Made; 3] = [
    (
        "Server counters",
        "The database server's own counters, read at both edges of the window and each second by a connection of its own. \
         They count everybody's work, not only this load's.",
    ),
    (
        "Buffer misses, page-cache hits, device reads",
        "Each buffer miss was a read from the operating system. Those that the kernel fetched from storage for the server's \
         sessions (/proc/PID/io) are device reads; the rest were in the page cache. `?` where that cannot be read.",
    ),
    (
        "What sessions were doing",
        "Samples of the load's sessions: looks at the server's activity view. Sessions on average, not timed waits.",
    ),
];

const OF_USERS: [Made; 2] = [
    (
        "Transactions per minute",
        "Those that ended well in sixty seconds. `highest minute` is the most in any sixty seconds of the window.",
    ),
    (
        "Connections",
        "The client times each from its first packet until it can send a statement: name lookup, encryption, login and session \
         settings. This is part of the response time of the transaction that needed it, not of its service time.",
    ),
];

const OF_PROCESSORS: [Made; 3] = [
    (
        "Work",
        "A slice is a fixed amount of work, the same on every machine. Of all of them: units finished in the window by its length. \
         One, while at it: units by the time that its slices took. Bytes are those that the program reads and writes.",
    ),
    (
        "Own, others, stolen",
        "Own is the processor time of the load's threads. Others is what /proc/stat counts as busy on the same processors beyond that; \
         stolen what it counts as taken by the hypervisor.",
    ),
    ("Sleeps", "Only how late a sleep of 1 ms ended. Wake-ups are both of a round trip between two threads."),
];

const OF_REQUESTS: [Made; 2] = [
    ("Requests", "Each operation is one request to storage, past the page cache unless the report says otherwise."),
    (
        "Limited by",
        "The load generator's verdict on itself: whether its threads had time left, and how fast the same loop is with no \
         device at all.",
    ),
];

const OF_IMPORTED: [Made; 5] = [
    (
        "Window",
        "From the start to the end that the other program reports. For an AWR report: its totals divided by its rates, where this \
         agrees with the elapsed time that it prints. Without a length there are no rates.",
    ),
    (
        "Percentiles",
        "`<=` is the upper edge of the bucket that the other program reports; the true value may be anywhere in that bucket. `?` where \
         the bucket has no upper edge. Means are from sums that it reports.",
    ),
    (
        "Wait histogram",
        "A wait counts under the lowest power of two of microseconds above it. 1 ms in these headings is 1024 us, as in Oracle's \
         tables. `?` where a reported bucket spans several columns. `-` is none; 0.0 is less than 0.05 %.",
    ),
    (
        "Reads and writes",
        "reads/s and writes/s are requests. blocks read/s and blocks written/s are `physical reads` and `physical writes` of an \
         Oracle report, one request may contain many of them.",
    ),
    (
        "As the source reports",
        "Figures under the names, and in the units, of the program that measured them; each with the layer at which that was.",
    ),
];

/// The figures that this run has.
pub(super) fn words(run: &Run) -> Markup {
    if run.imported.is_some() {
        return listed(run, OF_IMPORTED.iter());
    }
    let users: &[Made] = if Vocabulary::of(run) == Vocabulary::Users { &OF_USERS } else { &[] };
    let own: &[Made] = if is_host_load(run) {
        &OF_PROCESSORS
    } else if operations_are_requests(run) {
        &OF_REQUESTS
    } else if is_on_servers(run) {
        &OF_SERVERS
    } else {
        &OF_ENGINE
    };
    listed(run, EVERYWHERE.iter().chain(own).chain(users))
}

fn listed<'a>(run: &Run, made: impl Iterator<Item = &'a Made>) -> Markup {
    html! {
        dl.facts.made {
            @for (name, words) in made { dt { (name) } dd { (words) } }
        }
        p.note { "Made by " (run.tool.name) " " (run.tool.version) ". `?`: not known. `-`: none." }
    }
}
