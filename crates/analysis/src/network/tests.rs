use model::record::{
    CpuTime, Histogram, Interval, Load, NetworkEnd, NetworkFacts, OperationStats, Outcome, ProcessorTime, Spread, Step,
    TcpStats, ThreadTime, Workload, sample,
};
use std::collections::BTreeMap;

use super::*;
use crate::{Message, Severity};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// A step of four seconds in which the client sent, with so many megabits in each second and nothing that held it back.
struct Made {
    step: Step,
}

fn spread(value: u64) -> Spread {
    Spread { count: 4, sum: 4 * value, least: value, most: value }
}

impl Made {
    fn of(label: &str, flows: u32, mbit: &[u64]) -> Self {
        let seconds = mbit.len() as u64;
        let bytes = mbit.iter().sum::<u64>() * 125_000;
        let end = |side, bytes: (u64, u64)| NetworkEnd {
            side,
            node: side_name(side),
            elapsed_ns: seconds * SECOND,
            sent_bytes: Some(bytes.0),
            received_bytes: Some(bytes.1),
            tcp: Some(TcpStats {
                flows,
                busy_ns: seconds * SECOND * u64::from(flows),
                segments_sent: bytes.0 / 1_448,
                bytes_sent: bytes.0,
                bytes_acked: bytes.0,
                rtt_ns: spread(MILLI),
                min_rtt_ns: Some(MILLI),
                mss_bytes: spread(1_448),
                path_mtu_bytes: spread(1_500),
                peer_window_bytes: spread(3_000_000),
                unread_bytes: spread(0),
                cwnd_segments: spread(10),
                ..TcpStats::default()
            }),
            facts: Some(NetworkFacts { mtu_bytes: Some(1_500), ..NetworkFacts::default() }),
            ..NetworkEnd::default()
        };
        let mut step = Step::new(0, label);
        step.outcome = Outcome::Completed;
        step.window.duration_ns = seconds * SECOND;
        step.operations = vec![OperationStats {
            kind: "send".to_owned(),
            count: 1,
            errors: 0,
            block_touches: 0,
            service: Histogram::default(),
            response: Histogram::default(),
            transactions: None,
            failed: Default::default(),
        }];
        step.network = vec![end(NetworkSide::Client, (bytes, 0)), end(NetworkSide::Server, (0, bytes))];
        step.intervals = mbit
            .iter()
            .map(|mbit| Interval {
                duration_ns: SECOND,
                network: vec![NetworkEnd {
                    side: NetworkSide::Server,
                    elapsed_ns: SECOND,
                    received_bytes: Some(mbit * 125_000),
                    ..NetworkEnd::default()
                }],
                ..Interval::default()
            })
            .collect();
        Self { step }
    }

    fn sender(mut self, change: impl Fn(&mut NetworkEnd)) -> Self {
        change(&mut self.step.network[0]);
        self
    }

    fn receiver(mut self, change: impl Fn(&mut NetworkEnd)) -> Self {
        change(&mut self.step.network[1]);
        self
    }

    fn tcp(self, change: impl Fn(&mut TcpStats)) -> Self {
        self.sender(|end| change(end.tcp.as_mut().unwrap()))
    }

    fn cause(&self) -> Option<NetworkCause> {
        let stops = stops_of(&self.step);
        assert!(stops.len() <= 1, "{stops:?}");
        stops.into_iter().next().map(|stop| stop.cause)
    }
}

fn side_name(side: NetworkSide) -> String {
    side.name().to_owned()
}

const EVEN: &[u64] = &[500, 501, 499, 500];

fn even() -> Made {
    Made::of("c1", 1, EVEN)
}

fn run_of(steps: Vec<Made>) -> Run {
    let mut run = sample::sweep(5);
    run.load = Load::foreign(Workload::Network);
    run.steps = steps.into_iter().map(|made| made.step).collect();
    run
}

fn found(run: &Run) -> Vec<NetworkFinding> {
    find(run)
        .into_iter()
        .map(|finding| match finding {
            Finding::Network(found) => found,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn nothing_is_named_where_nothing_holds_back_and_where_little_was_to_send() {
    assert_eq!(even().cause(), None);
    let idle = even().tcp(|tcp| {
        tcp.busy_ns /= 10;
        tcp.rwnd_limited_ns = tcp.busy_ns;
        tcp.rtt_ns = spread(30 * MILLI);
    });
    assert_eq!(idle.cause(), None);
    assert_eq!(found(&run_of(vec![even()])), []);
}

#[test]
fn a_thread_that_has_no_more_to_give_is_named_with_its_end() {
    let thread = |running: u64, waiting: u64| ThreadTime { running_ns: running * SECOND, waiting_ns: waiting * SECOND };
    let sender = even().sender(|end| end.busiest_thread = Some(thread(4, 0)));
    let Some(NetworkCause::SenderProcessor(lack)) = sender.cause() else { panic!("{:?}", sender.cause()) };
    assert!(!lack.is_taken() && !lack.is_throttled());
    let busy = even().sender(|end| end.busiest_thread = Some(thread(3, 0)));
    assert_eq!(busy.cause(), None);
    // A hypervisor has the rest of the processor that it computes on.
    let stolen = even().tcp(|tcp| tcp.busy_ns /= 20).sender(|end| {
        end.busiest_thread = Some(ThreadTime { running_ns: 3_320 * MILLI, waiting_ns: 0 });
        let (busy_ns, stolen_ns) = (3_400 * MILLI, 500 * MILLI);
        end.processors = vec![ProcessorTime { number: 1, busy_ns, softirq_ns: 0, stolen_ns }];
    });
    assert!(matches!(stolen.cause(), Some(NetworkCause::SenderProcessor(_))));
    let of_another = stolen.tcp(|tcp| tcp.busy_ns *= 20);
    assert_eq!(of_another.cause(), None, "what it sends waits for the network");
    let beside = even().sender(|end| end.busiest_thread = Some(thread(1, 2)));
    assert!(matches!(beside.cause(), Some(NetworkCause::SenderProcessor(_))), "others have it for half of the time");
    let taken = even().receiver(|end| end.busiest_thread = Some(thread(2, 2)));
    assert_eq!(taken.cause(), None, "its window was open all the time");
    let closes = |tcp: &mut TcpStats| tcp.rwnd_limited_ns = tcp.busy_ns / 2;
    let taken = taken.tcp(closes);
    let Some(NetworkCause::ReceiverProcessor(lack)) = taken.cause() else { panic!("{:?}", taken.cause()) };
    assert!(lack.is_taken() && lack.by_others.is_none());
    let cpu = |user_ns, idle_ns| Some(CpuTime { user_ns, idle_ns, ..CpuTime::default() });
    let cases = [
        (3, 0, 0, "Something else uses"),
        (7, 0, 0, "own threads share"),
        (3, 4, 0, "See what uses"),
        (3, 0, 4, "See what uses"),
    ];
    for (own_s, idle_s, softirq_s, words) in cases {
        let taken = even().tcp(closes).receiver(|end| {
            end.busiest_thread = Some(thread(2, 2));
            (end.process_cpu, end.host_cpu) = (cpu(own_s * SECOND, None), cpu(8 * SECOND, Some(idle_s * SECOND)));
            let softirq_ns = softirq_s * SECOND;
            end.processors = vec![ProcessorTime { softirq_ns, ..ProcessorTime::default() }];
        });
        let advice = stops_of(&taken.step)[0].advice();
        assert!(advice.contains(words), "{advice}");
    }
    let throttled = even().tcp(closes).receiver(|end| end.throttled_ns = Some(2 * SECOND));
    assert!(matches!(throttled.cause(), Some(NetworkCause::ReceiverProcessor(lack)) if lack.is_throttled()));
    let interrupts = even().receiver(|end| {
        end.processors = vec![ProcessorTime { number: 3, busy_ns: 4 * SECOND, softirq_ns: 3 * SECOND, stolen_ns: 0 }];
    });
    assert!(matches!(interrupts.cause(), Some(NetworkCause::ReceiverProcessor(_))));
    assert!(stops_of(&interrupts.step)[0].words().contains("processor 3 was busy for 100 %"));
}

#[test]
fn a_closed_window_is_a_late_program_or_a_small_buffer() {
    let closed = || even().tcp(|tcp| tcp.rwnd_limited_ns = tcp.busy_ns * 9 / 10);
    assert!(matches!(closed().cause(), Some(NetworkCause::ReceiveWindow { .. })));
    let late = closed().receiver(|end| end.tcp.as_mut().unwrap().unread_bytes = spread(4_000_000));
    assert!(matches!(late.cause(), Some(NetworkCause::SlowReceiver { .. })));
    // It computes while data wait for it: 78 % of the time, and what is missing went to others on the way to the thread.
    let thread = |milliseconds: u64| ThreadTime { running_ns: milliseconds * MILLI, waiting_ns: 200 * MILLI };
    let computes = late.receiver(|end| end.busiest_thread = Some(thread(3_120)));
    assert!(matches!(computes.cause(), Some(NetworkCause::ReceiverProcessor(_))), "{:?}", computes.cause());
    let rests = computes.receiver(|end| end.busiest_thread = Some(thread(2_000)));
    assert!(matches!(rests.cause(), Some(NetworkCause::SlowReceiver { .. })));
    let at_times = even().tcp(|tcp| tcp.rwnd_limited_ns = tcp.busy_ns / 3);
    assert_eq!(at_times.cause(), None);
    // What is on its way fills it: 12,500 bytes at 100 Mbit/s and a millisecond. A queue could fill it too.
    let filled = at_times.tcp(|tcp| tcp.peer_window_bytes = spread(14_000));
    assert!(matches!(filled.cause(), Some(NetworkCause::ReceiveWindow { .. })));
    let queued = filled.tcp(|tcp| tcp.min_rtt_ns = Some(MILLI / 2));
    assert_eq!(queued.cause(), None);
}

#[test]
fn a_small_send_buffer_is_named_with_its_size() {
    let small = even().tcp(|tcp| tcp.sndbuf_limited_ns = tcp.busy_ns / 2).sender(|end| {
        end.facts.as_mut().unwrap().send_buffer_bytes = Some(131_072);
    });
    assert!(matches!(small.cause(), Some(NetworkCause::SendBuffer { buffer_bytes: Some(131_072), .. })));
    assert!(stops_of(&small.step)[0].words().contains("of 128 KiB"), "{}", stops_of(&small.step)[0].words());
    // Filled again at once: the kernel books none of the time under it.
    // 500 Mbit/s over a round trip of a millisecond are 62,500 bytes on their way.
    let of = |bytes: u64| even().sender(|end| end.facts.as_mut().unwrap().send_buffer_bytes = Some(bytes));
    assert!(matches!(of(80_000).cause(), Some(NetworkCause::SendBuffer { .. })), "{:?}", of(80_000).cause());
    assert!(stops_of(&of(80_000).step)[0].words().contains("rate × round trip fills it"));
    assert_eq!(of(125_000).cause(), None);
    let queued = of(800_000).tcp(|tcp| tcp.rtt_ns = spread(10 * MILLI));
    assert!(matches!(queued.cause(), Some(NetworkCause::Shaper { .. })), "{:?}", queued.cause());
}

#[test]
fn a_queue_is_a_shaper_and_losses_at_a_flat_rate_a_policer() {
    let queue = || even().tcp(|tcp| tcp.rtt_ns = spread(9 * MILLI));
    assert!(matches!(queue().cause(), Some(NetworkCause::Shaper { .. })));
    let lossy = |again: u64| {
        even()
            .tcp(|tcp| {
                tcp.segments_resent = tcp.segments_sent / 100;
                tcp.bytes_resent = tcp.bytes_sent / 100;
            })
            .sender(|end| end.counters = BTreeMap::from([("tcpext.TCPLostRetransmit".to_owned(), again)]))
    };
    assert!(matches!(lossy(1_000).cause(), Some(NetworkCause::Policer { .. })));
    assert!(matches!(lossy(10).cause(), Some(NetworkCause::Loss { .. })), "lost again as often as any other");
    let early = lossy(1_000).tcp(|tcp| tcp.segments_duplicate = Some(tcp.segments_resent));
    assert_eq!(early.cause(), None, "all that was sent again had come before");
    let mostly_early = even()
        .tcp(|tcp| {
            (tcp.segments_sent, tcp.segments_resent, tcp.segments_duplicate) = (41_931, 1_727, Some(1_496));
            tcp.bytes_resent = tcp.bytes_sent / 26;
        })
        .sender(|end| end.counters = BTreeMap::from([("tcpext.TCPLostRetransmit".to_owned(), 242)]));
    assert!(
        matches!(mostly_early.cause(), Some(NetworkCause::Policer { .. })),
        "what was sent again too early hides nothing"
    );
    let few = even()
        .tcp(|tcp| {
            (tcp.segments_sent, tcp.segments_resent) = (2_491, 31);
            tcp.bytes_resent = tcp.bytes_sent / 80;
        })
        .sender(|end| end.counters = BTreeMap::from([("tcpext.TCPLostRetransmit".to_owned(), 2)]));
    assert!(matches!(few.cause(), Some(NetworkCause::Loss { .. })), "two of 31 may be chance");
    let waits_for_a_processor = lossy(1_000).tcp(|tcp| {
        tcp.min_rtt_ns = Some(5_000);
        tcp.rtt_ns = spread(325_000);
    });
    assert!(
        matches!(waits_for_a_processor.cause(), Some(NetworkCause::Policer { .. })),
        "too few packets wait for a queue"
    );
    let waits_to_be_dropped = lossy(1_000).tcp(|tcp| tcp.rtt_ns = spread(9 * MILLI));
    assert!(matches!(waits_to_be_dropped.cause(), Some(NetworkCause::Shaper { .. })));
    let full = queue().tcp(|tcp| {
        tcp.segments_resent = tcp.segments_sent / 100;
        tcp.bytes_resent = tcp.bytes_sent / 100;
    });
    assert!(matches!(full.cause(), Some(NetworkCause::Shaper { .. })), "its queue is full at times");
}

#[test]
fn a_credit_is_what_went_above_the_later_rate() {
    let made = Made::of("c1", 1, &[2_500, 900, 480, 482, 478, 480]);
    let Some(NetworkCause::TokenBucket(burst)) = made.cause() else { panic!("{:?}", made.cause()) };
    assert_eq!(burst.base_bits_per_s, 480e6);
    assert_eq!(burst.after, model::units::Nanos(2 * SECOND));
    // 2,020 and 420 Mbit.
    assert!((burst.credit_bytes / 305e6 - 1.0).abs() < 0.01, "{burst:?}");
    assert_eq!(Made::of("c1", 1, &[600, 500, 480, 482, 478, 480]).cause(), None);
    assert_eq!(Made::of("c1", 1, &[2_500, 480, 900, 300, 700, 480]).cause(), None, "what is left is not even");
    let swings = Made::of("c1", 1, &[211, 125, 152, 199, 138, 95, 168, 131]).cause();
    assert_eq!(swings, None, "a later second is as high as the first");
}

#[test]
fn an_interface_is_used_up_only_if_its_speed_means_something() {
    let at = |driver: &str| {
        Made::of("c8", 8, &[941, 941, 941, 941])
            .tcp(|tcp| tcp.rtt_ns = spread(9 * MILLI))
            .sender(|end| {
                let facts = end.facts.as_mut().unwrap();
                (facts.speed_mbit_per_s, facts.driver) = (Some(1_000), Some(driver.to_owned()));
            })
            .cause()
    };
    assert!(matches!(at("igb"), Some(NetworkCause::Interface { side: NetworkSide::Client, mbit_per_s: 1_000 })));
    assert!(matches!(at("veth"), Some(NetworkCause::Shaper { .. })));
}

#[test]
fn an_interface_is_used_up_by_what_goes_to_several_servers_together() {
    let causes = |interfaces: [&str; 2]| {
        let to = |server: usize| {
            let mut made = Made::of("c8", 4, &[471, 471, 471, 471]).tcp(|tcp| tcp.rtt_ns = spread(9 * MILLI)).step;
            for end in made.network.iter_mut().chain(made.intervals.iter_mut().flat_map(|second| &mut second.network)) {
                end.server = Some(format!("db{server}"));
                if end.side == NetworkSide::Server {
                    end.node = format!("db{server}");
                }
            }
            let facts = made.network[0].facts.as_mut().unwrap();
            (facts.speed_mbit_per_s, facts.driver) = (Some(1_000), Some("igb".to_owned()));
            facts.interface = Some(interfaces[server].to_owned());
            made
        };
        let [mut step, other] = [to(0), to(1)];
        step.network.extend(other.network);
        for (second, more) in step.intervals.iter_mut().zip(other.intervals) {
            second.network.extend(more.network);
        }
        stops_of(&step).into_iter().map(|stop| stop.cause).collect::<Vec<_>>()
    };
    let client = NetworkCause::Interface { side: NetworkSide::Client, mbit_per_s: 1_000 };
    assert_eq!(causes(["eth0", "eth0"]), [client; 2]);
    let [NetworkCause::Shaper { .. }, NetworkCause::Shaper { .. }] = causes(["eth0", "eth1"])[..] else {
        panic!("each has half of its own interface")
    };
}

#[test]
fn connections_over_which_nothing_large_comes_are_in_a_black_hole() {
    let silent = Made::of("c1", 1, &[0, 0, 0]).tcp(|tcp| tcp.segments_resent = 3);
    assert!(matches!(silent.cause(), Some(NetworkCause::BlackHole { packet_bytes: Some(1_500) })));
    assert_eq!(Made::of("c1", 1, &[0, 0, 0]).tcp(|tcp| tcp.busy_ns = 0).cause(), None, "nobody sent anything");
}

#[test]
fn one_flow_is_held_where_several_go_on() {
    let eight = || Made::of("c8", 8, &[4_000, 4_000, 4_000, 4_000]);
    let mut run = run_of(vec![even(), eight()]);
    let [NetworkFinding::Seen(NetworkSeen::OneFlow { flows: 8, like: None, .. })] = found(&run)[..] else {
        panic!("{:?}", found(&run))
    };
    assert_eq!(found(&run)[0].severity(), Severity::Answer);
    run = run_of(vec![Made::of("c1", 1, &[4_950, 4_950, 4_950, 4_950]), Made::of("c8", 8, &[9_000; 4])]);
    run.environment.machine = Some("Amazon EC2 m7i.large".to_owned());
    assert!(find(&run)[0].sentence().contains("5 Gbit/s are published for one flow between AWS instances"), "{run:?}");
    let full = even().sender(|end| {
        end.busiest_thread = Some(ThreadTime { running_ns: 4 * SECOND, waiting_ns: 0 });
    });
    let stopped = found(&run_of(vec![full, eight()]));
    assert!(matches!(stopped[..], [NetworkFinding::Stop(_)]), "its processor is what holds one flow: {stopped:?}");
}

#[test]
fn what_both_ends_saw_besides_is_reported_with_its_counters() {
    let made = even()
        .tcp(|tcp| {
            tcp.path_mtu_bytes = spread(1_400);
            (tcp.segments_resent, tcp.bytes_resent) = (40, tcp.bytes_sent / 4_000);
        })
        .receiver(|end| {
            let counters = [("udp.RcvbufErrors", 7), ("eth0.bw_in_allowance_exceeded", 2), ("ip.ReasmFails", 0)];
            end.counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
        });
    let seen = found(&run_of(vec![made]));
    let words: Vec<String> = find(&run_of(vec![even()])).iter().map(Finding::sentence).collect();
    assert_eq!(words, Vec::<String>::new());
    assert!(
        matches!(
            &seen[..],
            [
                NetworkFinding::Seen(NetworkSeen::Resent { side: NetworkSide::Client, .. }),
                NetworkFinding::Seen(NetworkSeen::PathMtu { path_bytes: 1_400, interface_bytes: 1_500, .. }),
                NetworkFinding::Seen(NetworkSeen::Counted { why: CountedLoss::Allowance, count: 2, .. }),
                NetworkFinding::Seen(NetworkSeen::Counted { why: CountedLoss::UdpBuffer, count: 7, .. }),
            ]
        ),
        "{seen:#?}"
    );
}

#[test]
fn steps_that_the_same_stopped_are_one_finding_and_each_has_advice() {
    let queue = |label: &str| Made::of(label, 1, EVEN).tcp(|tcp| tcp.rtt_ns = spread(30 * MILLI));
    let both = found(&run_of(vec![queue("c1"), queue("c1_again")]));
    let [NetworkFinding::Stop(stop), NetworkFinding::Seen(NetworkSeen::Bloat { steps, .. })] = &both[..] else {
        panic!("{both:?}")
    };
    assert_eq!((stop.steps.as_slice(), steps.len()), (&["c1".to_owned(), "c1_again".to_owned()][..], 2));
    for finding in find(&run_of(vec![queue("c1")])) {
        assert!(finding.advice().is_some_and(|advice| advice.ends_with('.')), "{finding:?}");
        assert!(finding.sentence().ends_with('.'), "{}", finding.sentence());
    }
}

#[test]
fn a_host_that_reaches_itself_is_known_by_its_name() {
    for server in ["self", "localhost:7018", "127.0.0.1:7018", "127.8.0.1:1", "[::1]:7018"] {
        assert!(is_this_host(server), "{server}");
    }
    for server in ["db2:7018", "10.0.0.2:7018", "[2001:db8::1]:7018", "self.example:7018", ""] {
        assert!(!is_this_host(server), "{server}");
    }
}
