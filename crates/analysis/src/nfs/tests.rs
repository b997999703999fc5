//! Made-up runs on NFS servers that have what a rule is about, and others that nearly have it.

use super::*;
use crate::Severity;
use crate::{Opening, analyse_asked};
use model::config::io::IoLevel;
use model::record::Level;
use model::record::sample::requests::{self, Requests};
use model::record::{ChannelKind, ChannelStats, Step};

const DEPTH: u32 = 64;

fn load(reads_per_s: u64) -> Requests {
    // What Little's law makes of the depth.
    let service_ns = u64::from(DEPTH) * 1_000_000_000 / reads_per_s;
    Requests { slots: DEPTH, asked_per_s: None, reads_per_s, writes_per_s: 0, service_ns, queued_ns: 0 }
}

/// A connection, or several with one name, that carried so many reads of so long each.
fn way(path: &str, channels: u32, reads: u64, read_ns: u64) -> ChannelStats {
    let mut way = ChannelStats {
        kind: ChannelKind::Connection,
        of: "filer1:2049".to_owned(),
        within: Some(path.to_owned()),
        name: "1".to_owned(),
        channels,
        reads,
        outstanding_ns: reads * read_ns,
        queued: Some(0),
        queued_ns: Some(0),
        retries: Some(0),
        reconnects: Some(0),
        segments_resent: Some(0),
        ..ChannelStats::default()
    };
    way.read.record_n(read_ns, reads);
    way
}

/// Connections, reads per second, and processor time of each in microseconds.
fn made(points: &[(u32, u64, u64)]) -> Run {
    let mut run = requests::run(&points.iter().map(|(_, rate, _)| load(*rate)).collect::<Vec<_>>());
    run.target.facts.nfs.outstanding = Some(128);
    run.tags.clear();
    for (step, (each, rate, processor_us)) in run.steps.iter_mut().zip(points) {
        step.label = format!("c{each}");
        step.level = Some(Level::Io(IoLevel::Connections { depth: DEPTH, each: *each, round: None }));
        let cpu = step.process_cpu.as_mut().unwrap();
        (cpu.user_ns, cpu.system_ns) = (0, rate * 10 * processor_us * 1_000);
        step.channels = vec![way("10.0.0.1", *each, rate * 10, u64::from(DEPTH) * 1_000_000_000 / rate)];
    }
    run
}

/// The seconds of a step stray to either side by this share.
fn scatter(step: &mut Step, share: f64) {
    let seconds = step.intervals.iter_mut().filter(|interval| !interval.warmup);
    for (second, interval) in seconds.enumerate() {
        let sign = if second % 2 == 0 { 1.0 } else { -1.0 };
        let scatter = |count: &mut Option<u64>| *count = count.map(|it| (it as f64 * (1.0 + sign * share)) as u64);
        let counters = &mut interval.counters;
        scatter(&mut counters.physical_reads);
        scatter(&mut counters.physical_read_bytes);
        scatter(&mut counters.operations);
    }
}

fn found(run: &Run) -> Vec<NfsFinding> {
    let of_nfs = |finding| match finding {
        Finding::Nfs(found) => Some(found),
        _ => None,
    };
    analyse_asked(run, None).into_iter().filter_map(of_nfs).collect()
}

fn the_sweep(run: &Run) -> ConnectionSweep {
    let sweep = found(run).into_iter().find_map(|found| match found {
        NfsFinding::Connections(sweep) => Some(sweep),
        _ => None,
    });
    sweep.expect("connections were varied")
}

fn opened(run: &Run) -> String {
    Opening::of(run, &analyse_asked(run, None)).sentence()
}

#[test]
fn a_rate_that_rises_with_connections_names_one_as_the_limit_and_where_it_stops() {
    let run = made(&[(1, 10_000, 7), (2, 19_500, 8), (4, 28_000, 10), (8, 28_100, 12)]);
    let sweep = the_sweep(&run);
    let sentence = sweep.sentence();
    assert!(
        sentence.starts_with(
            "One TCP connection is the limit: with 64 outstanding, 4 connections reach 2.81 times (+/- 0.00) the rate of one, 28,000 \
             requests/s instead of 10,000 requests/s. More than 4 add nothing."
        ),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("takes 7.0 us of this machine's processors over one, and 12.0 us over 8."),
        "{sentence}"
    );
    let opening = opened(&run);
    assert!(opening.contains("; 4 connections reach 2.8 × the rate of one; more than 4 add nothing: "), "{opening}");
    // Nearly: two carry more, within what noise brings.
    let nearly = the_sweep(&made(&[(1, 10_000, 7), (2, 10_600, 7), (4, 10_500, 7)]));
    assert_eq!(nearly.verdict, SweepVerdict::Flat);
}

#[test]
fn a_rate_that_still_rises_at_the_end_asks_for_more() {
    let sweep = the_sweep(&made(&[(1, 5_000, 7), (2, 10_000, 7), (4, 20_000, 7)]));
    assert!(sweep.sentence().contains(" The rate still rises there."), "{}", sweep.sentence());
    assert_eq!(sweep.phrase(), "4 connections reach 4.0 × the rate of one, and more may reach still more");
    assert_eq!(sweep.plateau, None);
}

#[test]
fn connections_that_only_cost_processor_time_are_not_the_limit() {
    let run = made(&[(1, 24_000, 7), (4, 23_500, 10), (16, 23_300, 14)]);
    let sweep = the_sweep(&run);
    assert_eq!(sweep.verdict, SweepVerdict::Flat);
    let sentence = sweep.sentence();
    assert!(
        sentence.starts_with("One connection is enough: with 64 outstanding, no number up to 16 reaches more"),
        "{sentence}"
    );
    assert!(sentence.contains("7.0 us of this machine's processors over one, and 14.0 us over 16"), "{sentence}");
    assert!(opened(&run).contains("; one connection is enough, more add nothing"), "{}", opened(&run));
    // Nearly: they cost hardly more.
    let cheap = the_sweep(&made(&[(1, 24_000, 70), (4, 23_500, 75)]));
    assert!(!cheap.sentence().contains("processors"), "{}", cheap.sentence());
}

#[test]
fn a_generator_without_time_left_says_nothing_of_connections() {
    let mut run = made(&[(1, 24_000, 7), (4, 24_000, 10)]);
    run.steps.iter_mut().for_each(|step| step.generator.as_mut().unwrap().busiest_share = 0.99);
    assert_eq!(the_sweep(&run).verdict, SweepVerdict::GeneratorBound);
}

#[test]
fn rounds_that_differ_are_not_taken_for_connections() {
    // The server's cache warmed: each number carries more in its second round.
    let mut run = made(&[(1, 10_000, 7), (4, 20_000, 7), (4, 28_000, 7), (1, 28_000, 7)]);
    assert!(matches!(the_sweep(&run).verdict, SweepVerdict::Changed { each: 1, .. }));
    run.steps.truncate(2);
    assert!(matches!(the_sweep(&run).verdict, SweepVerdict::Rises { enough: 4, .. }));
    assert!(the_sweep(&run).advice().is_some_and(|advice| advice.contains("--rounds 2")));
    run.steps.iter_mut().for_each(|step| step.intervals.truncate(4));
    assert!(matches!(the_sweep(&run).verdict, SweepVerdict::TooFewSeconds { each: 1, .. }));
    run.steps.truncate(1);
    assert!(found(&run).is_empty());
}

#[test]
fn a_quota_is_named_where_the_rate_is_what_the_volume_is_sold_with() {
    // 8 TiB of the level Ultra: 1,024 MiB/s, which are 131,072 requests of 8 KiB.
    let points = [(1, 60_000, 7), (4, 131_000, 8), (8, 131_050, 9), (16, 131_072, 9)];
    let quota = |run: &Run| {
        let quota = found(run).into_iter().find_map(|found| match found {
            NfsFinding::Quota(quota) => Some(quota),
            _ => None,
        });
        quota.map(|quota| quota.sentence())
    };
    let mut run = made(&points);
    let unnamed = quota(&run).unwrap();
    assert!(unnamed.starts_with("Something that counts holds the rate, such as a quota of the volume"), "{unnamed}");
    run.target.facts.nfs.volume_bytes = Some(8 << 40);
    let by_size = quota(&run).unwrap();
    assert!(by_size.starts_with("The volume's quota seems to be the limit: from 4 to 16 connections"), "{by_size}");
    assert!(by_size.contains("100.0 % of the 1,074 MB/s of ANF Ultra of 8 TiB"), "{by_size}");
    run.tags.extend([("volume".to_owned(), "ANF Ultra:8T".to_owned())]);
    let by_tag = quota(&run).unwrap();
    assert!(by_tag.starts_with("The volume's quota is the limit: ") && by_tag.contains("by Little's law"), "{by_tag}");
    let opening = opened(&run);
    assert!(opening.contains("more than 4 add nothing: the volume's quota is reached, "), "{opening}");
    // Nearly: a volume of twice the size is not at its quota, however even the rate is.
    run.tags.extend([("volume".to_owned(), "ANF Ultra:16T".to_owned())]);
    assert!(quota(&run).unwrap().starts_with("Something that counts"));
    // And a rate that strays is held by nothing that counts.
    let mut uneven = made(&points);
    uneven.steps.iter_mut().for_each(|step| scatter(step, 0.05));
    assert_eq!(quota(&uneven), None);
    assert!(opened(&uneven).contains("more than 4 add nothing: the server or the network gives no more"));
}

#[test]
fn calls_in_flight_are_the_limit_where_connections_are_full_and_requests_wait() {
    let full = |outstanding: u64, queued: u64| {
        let mut run = requests::run(&[load(10_000)]);
        run.target.facts.nfs.outstanding = Some(16);
        let step = &mut run.steps[0];
        let mut way = way("10.0.0.1", 2, 100_000, 3_000_000);
        way.outstanding_ns = outstanding * step.window.duration_ns;
        (way.queued, way.queued_ns) = (Some(queued), Some(queued * 2_000_000));
        step.channels = vec![way];
        found(&run)
    };
    let seen = full(30, 90_000);
    let sentence = seen[0].sentence();
    assert!(
        sentence.starts_with(
            "The calls in flight on a connection are the limit. In d64 each of 2 connections had 15.0 of at most 16"
        ),
        "{sentence}"
    );
    assert!(sentence.contains("90.0 % of the requests first waited here, for 2.00 ms"), "{sentence}");
    // Nearly: as many wait as calls that are timed alone make wait; or connections had room on average.
    assert_eq!((full(30, 2_000), full(20, 90_000)), (Vec::new(), Vec::new()));
    // What was reached with room is not limited by the lack of it.
    let beside = |roomy_per_s: u64| {
        let mut run = requests::run(&[load(roomy_per_s), load(10_000)]);
        run.target.facts.nfs.outstanding = Some(16);
        for (step, (outstanding, queued)) in run.steps.iter_mut().zip([(10, 0), (30, 90_000)]) {
            let mut way = way("10.0.0.1", 2, 100_000, 3_000_000);
            step.label = format!("of_{outstanding}");
            way.outstanding_ns = outstanding * step.window.duration_ns;
            (way.queued, way.queued_ns) = (Some(queued), Some(queued * 2_000_000));
            step.channels = vec![way];
        }
        found(&run).iter().any(|found| matches!(found, NfsFinding::Slots(_)))
    };
    assert!(beside(5_000) && !beside(9_900));
    // The bound of a server that is published is passed on where it is reached.
    let advice = |bound| {
        let full = SlotsFull {
            steps: Vec::new(),
            bound,
            mean: 1.0,
            connections: 1,
            waited: 1.0,
            wait: model::units::Nanos(1),
        };
        full.advice().unwrap()
    };
    assert!(advice(128).contains("(Azure NetApp Files takes 128 from one)") && !advice(64).contains("NetApp"));
}

#[test]
fn calls_that_are_all_in_flight_stop_a_rate_where_they_take_no_longer_than_with_room() {
    let stopped = |full_call_ns: u64| {
        let mut run = requests::run(&[(4, 4_000), (32, 10_000), (64, 10_100)].map(|(slots, reads_per_s)| {
            let service_ns = u64::from(slots) * 1_000_000_000 / reads_per_s;
            Requests { slots, asked_per_s: None, reads_per_s, writes_per_s: 0, service_ns, queued_ns: 0 }
        }));
        run.target.facts.nfs.outstanding = Some(10);
        run.tags.clear();
        for (step, (call_ns, queued)) in
            run.steps.iter_mut().zip([(1_000_000, 0), (full_call_ns, 1), (full_call_ns, 1)])
        {
            // No second is like another, which a limit on requests would make them.
            scatter(step, 0.1);
            let mut way = way("10.0.0.1", 1, 100_000, call_ns);
            if queued > 0 {
                way.outstanding_ns = 10 * step.window.duration_ns;
                way.reads = way.outstanding_ns / call_ns;
                (way.queued, way.queued_ns) = (Some(way.reads), Some(way.reads * 2_000_000));
            }
            step.channels = vec![way];
        }
        opened(&run)
    };
    let (slots, server) = (stopped(1_000_000), stopped(1_350_000));
    assert!(slots.contains("the 10 calls in flight that each connection may have, at 10,"), "{slots}");
    assert!(server.contains("the way to the server, it itself, or what it reads from, at 10,"), "{server}");
}

#[test]
fn what_one_connection_may_not_hold_is_not_blamed_on_tcp() {
    let mut run = made(&[(1, 10_000, 7), (4, 28_000, 10), (8, 28_000, 12)]);
    run.target.facts.nfs.outstanding = Some(16);
    let first = &mut run.steps[0].channels[0];
    first.outstanding_ns = 16 * 10 * 1_000_000_000;
    (first.queued, first.queued_ns) = (Some(90_000), Some(90_000_000));
    let sentence = the_sweep(&run).sentence();
    assert!(
        sentence.starts_with("The 16 calls that a connection may have in flight are the limit, or the"),
        "{sentence}"
    );
}

/// A run over four paths, of which the last is as given.
fn over_paths(last: ChannelStats) -> Run {
    let mut run = requests::run(&[load(14_000)]);
    let others = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|path| way(path, 1, 40_000, 1_000_000));
    run.steps[0].channels = others.into_iter().chain([last]).collect();
    run
}

#[test]
fn the_path_that_is_slow_is_named_with_what_it_was_given() {
    assert_eq!(found(&over_paths(way("10.0.0.4", 1, 40_000, 1_000_000))), []);
    assert_eq!(found(&over_paths(way("10.0.0.4", 1, 30_000, 1_400_000))), [], "nearly");
    let mut slow = way("10.0.0.4", 1, 8_000, 5_000_000);
    slow.nothing.record_n(4_000_000, 80);
    let mut run = over_paths(slow);
    run.steps[0].channels[0].nothing.record_n(200_000, 400);
    let seen = found(&run);
    let sentence = seen[0].sentence();
    assert!(
        sentence.starts_with(
            "The path `10.0.0.4` to `filer1:2049` is slow: in d64 its requests took 5.00 ms on average, those of the others 1.00 ms; \
             calls that ask for nothing took 4.00 ms there, and 200 us on the others."
        ),
        "{sentence}"
    );
    assert!(sentence.ends_with("It was given 6.2 % of the requests, where an equal part is 25.0 %."), "{sentence}");
    assert_eq!((seen.len(), seen[0].severity()), (1, Severity::Note));
    // One server's path is not compared with that of another.
    let other = ChannelStats { of: "filer2:2049".to_owned(), ..way("10.0.0.4", 1, 8_000, 5_000_000) };
    assert_eq!(found(&over_paths(other)), []);
}

#[test]
fn paths_that_were_made_again_or_lost_packets_are_told() {
    let with = |reconnects, retries, resent| {
        let (reconnects, retries, segments_resent) = (Some(reconnects), Some(retries), Some(resent));
        let last = way("10.0.0.4", 1, 40_000, 1_000_000);
        found(&over_paths(ChannelStats { reconnects, retries, segments_resent, ..last }))
    };
    let lost = with(1, 12, 0);
    assert_eq!((lost[0].severity(), lost[0].steps()), (Severity::Doubt, Some(&["d64".to_owned()][..])));
    assert_eq!(
        lost[0].sentence(),
        "Connections to the server were lost in d64: 1 connection made again, 12 requests sent again on the path `10.0.0.4` to \
         `filer1:2049`."
    );
    let asked_again = with(0, 12, 0);
    assert_eq!(asked_again[0].severity(), Severity::Doubt);
    assert!(
        asked_again[0]
            .sentence()
            .starts_with("Requests were not answered, or the server forgot its sessions in d64: 12")
    );
    let lossy = with(0, 0, 400);
    assert_eq!(lossy[0].severity(), Severity::Note);
    assert!(lossy[0].sentence().starts_with("The network lost packets in d64: 400 TCP segments sent again"));
    assert_eq!(with(0, 0, 30), [], "a few of 40,000 are nothing");
}

#[test]
fn both_clients_are_told_by_what_they_carry_and_a_local_file_is_no_client() {
    let run = |rates: [u64; 2]| {
        let level = |(slots, rate): (u32, u64)| Requests { slots, ..load(rate) };
        requests::run(&[4, 32].into_iter().zip(rates).map(level).collect::<Vec<_>>())
    };
    let (mut kernel, direct) = (run([8_000, 10_000]), run([7_900, 28_000]));
    assert_eq!(NfsClients::of(&[&kernel, &direct]), None);
    kernel.target.facts.nfs.kernel_client = Some(KernelClient::Mount("nfs4 rw,vers=4.1,nconnect=1".to_owned()));
    let told = |kernel: &Run, direct: &Run| NfsClients::of(&[kernel, direct]).unwrap().sentence();
    assert_eq!(
        told(&kernel, &direct),
        "Direct NFS reaches up to 2.8 times the rate of the kernel's client (28,000 against 10,000 requests/s with 32 outstanding)."
    );
    assert!(told(&kernel, &kernel).starts_with("Direct NFS reaches the same rate as the kernel's client ("));
    assert!(
        told(&kernel, &run([7_900, 5_000]))
            .starts_with("Direct NFS reaches no more than the kernel's client, down to 0.50")
    );
    kernel.target.facts.nfs.kernel_client = Some(KernelClient::Instead("ext4 at `/`".to_owned()));
    let local = told(&kernel, &direct);
    assert!(
        local.starts_with("The kernel's half is a local file, not NFS (ext4 at `/`): it says nothing of"),
        "{local}"
    );
}
