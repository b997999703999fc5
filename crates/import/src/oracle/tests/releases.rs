//! What differs between releases, and between one instance and a cluster.

use super::specimens::{cluster_19, page, section, single_12, table};
use super::*;

#[test]
fn release_11_counts_in_milliseconds() {
    let body = [
        table("DB Name|DB Id|Instance|Inst num|Startup Time|Release|RAC\nOLD|5|old2|2|01-Feb-12 01:01|11.2.0.4.0|YES"),
        table("Host Name|Platform|CPUs|Cores|Sockets|Memory (GB)\nnode2|AIX-Based Systems (64-bit)|4|||8.00"),
        table(
            "|Snap Id|Snap Time|Sessions|Cursors/Session|Instances\nBegin Snap:|7|02-Feb-12 10:00:00|30|1.0|2\n\
             End Snap:|8|02-Feb-12 11:00:00|31|.9|2\nElapsed:||60.00 (mins)|||\nDB Time:||0.50 (mins)|||",
        ),
        section(
            "Foreground Wait Events",
            "Event|Waits|%Time -outs|Total Wait Time (s)|Avg wait (ms)|Waits /txn|% DB time\ndb file scattered read|200||3|15|1|1",
        ),
        section(
            "Wait Event Histogram",
            "^||% of Waits*8\nEvent|Total Waits|<1ms|<2ms|<4ms|<8ms|<16ms|<32ms|<=1s|>1s\n\
             db file scattered read|200|50.0||||45.0||5.0|\nlog file parallel write|40|97.5||||||2.5|",
        ),
        section(
            "Wait Event Histogram Detail (64 msec to 2 sec)",
            "^||% of Total Waits*8\nEvent|Waits 64ms  to 2s|<32ms|<64ms|<1/8s|<1/4s|<1/2s|<1s|<2s|>=2s\n\
             db file scattered read|10|95.0|4.0|1.0|||||",
        ),
        section(
            "Other Instance Activity Stats",
            "Statistic|Total|per Second|per Trans\nphysical reads|900|0.25|1\nphysical read IO requests|300|0.08|1",
        ),
        section("Key Instance Activity Stats", "Statistic|Total|per Second|per Trans\nuser commits|4|0.00|1"),
    ];
    let draft = read(&page("WORKLOAD REPOSITORY report for", &body.concat()));
    let step = &draft.steps[0];
    assert_eq!(
        (draft.title.as_str(), draft.target.facts.other["instance_number"].as_str()),
        ("OLD/old2 snapshots 7-8", "2")
    );
    assert_eq!(draft.environment.memory_bytes, Some(8 << 30));
    let read = wait(step, "db file scattered read");
    assert_eq!(buckets(read), [(1_000, 100), (16_000, 90), (64_000, 8), (128_000, 2)]);
    assert_eq!(read.waits.total_ns(), Some(3_000_000_000), "15 ms are the less exact here: 200 of them 0.1 s off");
    assert_eq!(buckets(wait(step, "log file parallel write")), [(1_000, 39), (1_024_000, 1)], "its second is 1,024 ms");
    assert_eq!((step.counters.physical_reads, step.counters.commits), (Some(300), Some(4)));
    assert_eq!(figure(step, "DB time"), value_and_unit(30.0, "s"));
}

#[test]
fn a_cluster_tells_of_each_instance() {
    let draft = read(&cluster_19());
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("DUO snapshots 11-12", "19.0.0.0.0"));
    let target = &draft.target;
    assert_eq!(
        (target.address.as_str(), target.block_bytes, target.cache_bytes),
        ("DUO", Some(16_384), Some(4_000 << 20))
    );
    let shown = target.facts.shown();
    let facts = ["instances", "hosts", "rac", "db_id", "cpus", "sessions_begin"].map(|name| shown[name].as_str());
    assert_eq!(facts, ["duo1, duo2", "left, right", "YES", "99", "8", "1,170"]);
    assert_eq!((step.window.duration_ns, draft.environment.hostname.as_ref()), (600_000_000_000, None));
    assert!(draft.notes.iter().any(|note| note.contains("hundredths of a minute")), "{:?}", draft.notes);
    let instances: Vec<_> = step
        .instances
        .iter()
        .map(|one| (one.node.as_str(), one.elapsed_ns, one.counters.physical_read_blocks, one.counters.redo_bytes))
        .collect();
    assert_eq!(
        instances,
        [("duo1", 600_000_000_000, Some(4_000), Some(10_240)), ("duo2", 598_800_000_000, Some(3_000), Some(20_480))]
    );
    let own = &step.instances[1].own;
    assert_eq!((own["DB time_ns"], own["DB CPU_ns"]), (900_250_000_000, 100_000_000_000));
    assert_eq!((own["BUSY_TIME_ns"], own["Txns"]), (50_000_000_000, 6));
    assert_eq!((step.counters.physical_read_blocks, step.counters.physical_reads), (Some(7_000), Some(6_900)));
    assert_eq!(figure(step, "duo2: Physical Reads/s"), value_and_unit(5.01, "/s"));
    assert_eq!(figure(step, "Physical Reads/s"), value_and_unit(11.68, "/s"));
    assert_eq!(figure(step, "duo1: % WIO"), value_and_unit(1.5, "%"));
    assert_eq!(figure(step, "DB time"), value_and_unit(2_400.75, "s"));
    assert_eq!(figure(step, "Total Requests: Reads/s"), value_and_unit(15.25, "/s"));
    assert_eq!(figure(step, "function DBWR: Requests: Total"), value_and_unit(1_200.0, ""));
    assert_eq!(figure(step, "function DBWR: MB: Read MB/s"), value_and_unit(0.25, "MB/s"));
}

#[test]
fn a_cluster_counts_rare_waits_exactly() {
    let draft = read(&cluster_19());
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.waits.count(), read.waits.total_ns()), (4_812_345, Some(9_624_690_000_000)));
    let counts = buckets(read);
    assert_eq!((counts[0], counts[6]), ((512, 122), (0, 1)), "{counts:?}");
    assert!(counts[3].1.abs_diff(2_887_407) < 2_500, "60 %: {counts:?}");
    assert_eq!(wait(step, "odd new event").class, "Other");
    assert!(!step.waits.iter().any(|wait| wait.event == "background cpu time"));
}

#[test]
fn release_23_lists_its_containers_and_single_microseconds() {
    let containers =
        table("Container DB Id|Container Name|Open Time\n1|CDB$ROOT|02-May-25 06:30\n2|PDB$SEED|02-May-25 06:30");
    let text = single_12()
        .replace("12.2.0.1.0", "23.7.0.25.01")
        .replacen("<h3 class=\"awr\">Report Summary", &format!("{containers}<h3 class=\"awr\">Report Summary"), 1)
        .replace("DB time</td>", "DB time&#160;&#160;[1]</td>")
        .replace(
            "<br /><a class=\"awr\" href=\"#top\">",
            &section(
                "Wait Event Histogram (up to 64 us)",
                "^||% of Total Waits*8\nEvent|Waits 1us  - 64us|<1us|<2us|<4us|<8us|<16us|<32us|<64us|>=64us\n\
                 latch free|8|25.0|50.0||25.0||||",
            ),
        );
    let draft = read(&text);
    assert_eq!(
        (draft.version.as_str(), draft.target.facts.database.containers.join(", ").as_str()),
        ("23.7.0.25.01", "CDB$ROOT, PDB$SEED")
    );
    assert_eq!(buckets(wait(&draft.steps[0], "latch free")), [(1, 2), (2, 4), (8, 2)]);
    assert_eq!(figure(&draft.steps[0], "DB time"), value_and_unit(6_030.12, "s"), "without its footnote");
}
