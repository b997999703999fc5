//! Bulk data from the client to the server, watched at both ends as the program watches it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use plimsoll::analysis::{Finding, analyse};
use plimsoll::measure::monotonic_ns;
use plimsoll::measure::os::EndWatch;
use plimsoll::record::{Histogram, Interval, NetworkEnd, NetworkSide, OperationStats, Outcome, Run, Step};
use rustix::net::sockopt;

use crate::spaces::{CLIENT, SERVER, Spaces};

const CHUNK: usize = 128 << 10;
const INTERVAL: Duration = Duration::from_millis(500);
/// Intervals of warm-up, and of the window.
const WARMUP: u32 = 2;
const LOOKS: u32 = 5;

/// What the two ends do.
#[derive(Clone, Copy)]
pub struct Load {
    pub flows: u32,
    pub intervals: u32,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
    /// Time that the sender computes or rests for each chunk.
    pub sender: Pause,
    pub receiver: Pause,
    pub congestion: &'static str,
    /// How long data flow before anybody looks.
    pub lead: Duration,
}

/// What a thread does between two chunks.
#[derive(Clone, Copy)]
pub enum Pause {
    None,
    Rest(Duration),
    Compute(Duration),
}

impl Pause {
    fn take(self) {
        match self {
            Self::None => {}
            Self::Rest(time) => std::thread::sleep(time),
            Self::Compute(time) => {
                let end = Instant::now() + time;
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

impl Default for Load {
    fn default() -> Self {
        Self {
            flows: 1,
            intervals: 6,
            send_buffer: None,
            receive_buffer: None,
            sender: Pause::None,
            receiver: Pause::None,
            congestion: "cubic",
            lead: Duration::ZERO,
        }
    }
}

/// What both sides share.
struct Shared {
    stop: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
    ready: Barrier,
}

/// Puts the load on, and gives the step that comes of it.
pub fn run(spaces: &Spaces, label: &str, load: Load) -> Step {
    let shared = Shared {
        stop: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        ready: Barrier::new(2),
    };
    let (tell, address) = std::sync::mpsc::channel();
    let (client, server) = std::thread::scope(|scope| {
        let shared = &shared;
        let server = scope.spawn(move || {
            spaces.enter("s");
            let listener = TcpListener::bind((SERVER, 0)).unwrap();
            if let Some(bytes) = load.receive_buffer {
                sockopt::set_socket_recv_buffer_size(&listener, bytes).unwrap();
            }
            tell.send(listener.local_addr().unwrap()).unwrap();
            let flows: Vec<_> = (0..load.flows).map(|_| Arc::new(listener.accept().unwrap().0)).collect();
            watch(NetworkSide::Server, SERVER, &flows, load, shared, |flow| {
                let mut chunk = vec![0; CHUNK];
                while !shared.stop.load(Ordering::Relaxed) {
                    if let Ok(bytes) = (&mut &*flow).read(&mut chunk) {
                        shared.received.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                    load.receiver.take();
                }
            })
        });
        let client = scope.spawn(move || {
            spaces.enter("c");
            let address = address.recv().unwrap();
            let connect = || {
                let flow = TcpStream::connect(address).unwrap();
                sockopt::set_tcp_congestion(&flow, load.congestion).unwrap();
                if let Some(bytes) = load.send_buffer {
                    sockopt::set_socket_send_buffer_size(&flow, bytes).unwrap();
                }
                Arc::new(flow)
            };
            let flows: Vec<_> = (0..load.flows).map(|_| connect()).collect();
            watch(NetworkSide::Client, CLIENT, &flows, load, shared, |flow| {
                let chunk = vec![1; CHUNK];
                while !shared.stop.load(Ordering::Relaxed) {
                    if let Ok(bytes) = (&mut &*flow).write(&chunk) {
                        shared.sent.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                    load.sender.take();
                }
            })
        });
        (client.join().unwrap(), server.join().unwrap())
    });
    step(label, load, client, server)
}

/// Starts a thread for each flow and watches until the time is over: each interval's part of what this end saw.
fn watch(
    side: NetworkSide,
    address: &str,
    flows: &[Arc<TcpStream>],
    load: Load,
    shared: &Shared,
    work: impl Fn(&TcpStream) + Sync,
) -> Vec<NetworkEnd> {
    let threads = if side == NetworkSide::Client { "send" } else { "take" };
    for flow in flows {
        flow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        flow.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    }
    shared.ready.wait();
    std::thread::scope(|scope| {
        for flow in flows {
            let work = &work;
            let builder = std::thread::Builder::new().name(threads.to_owned());
            builder.spawn_scoped(scope, move || work(flow)).unwrap();
        }
        std::thread::sleep(load.lead);
        let mut watch = EndWatch::begin(side, side.name(), address.parse().ok(), threads, monotonic_ns());
        flows.iter().for_each(|flow| watch.add(flow));
        let read = |watch: &mut EndWatch| {
            let (sent, received) = (shared.sent.load(Ordering::Relaxed), shared.received.load(Ordering::Relaxed));
            let (sent, received) = if side == NetworkSide::Client { (sent, 0) } else { (0, received) };
            watch.read(monotonic_ns(), Some(sent), Some(received))
        };
        let mut before = read(&mut watch);
        let mut seen = Vec::new();
        for _ in 0..load.intervals + WARMUP {
            for _ in 0..LOOKS {
                std::thread::sleep(INTERVAL / LOOKS);
                watch.look();
            }
            let now = read(&mut watch);
            seen.push(now.since(&before));
            before = now;
        }
        shared.stop.store(true, Ordering::Relaxed);
        seen
    })
}

fn step(label: &str, load: Load, client: Vec<NetworkEnd>, server: Vec<NetworkEnd>) -> Step {
    let mut step = Step::new(0, label);
    step.outcome = Outcome::Completed;
    step.window.duration_ns = u64::from(load.intervals) * INTERVAL.as_nanos() as u64;
    step.load.sessions = Some(load.flows);
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
    for (number, (client, server)) in (0..).zip(client.into_iter().zip(server)) {
        let warmup = number < WARMUP;
        let ends = [client, server];
        if !warmup {
            NetworkEnd::add_to(&mut step.network, &ends);
        }
        step.intervals.push(Interval {
            offset_ns: u64::from(number) * INTERVAL.as_nanos() as u64,
            duration_ns: INTERVAL.as_nanos() as u64,
            warmup,
            network: ends.map(NetworkEnd::of_interval).into(),
            ..Interval::default()
        });
    }
    step
}

/// What is said of such steps.
pub fn found(steps: Vec<Step>) -> Vec<plimsoll::analysis::NetworkFinding> {
    let run: Run = serde_json::from_value(serde_json::json!({
        "format": plimsoll::record::FORMAT,
        "id": "planted",
        "name": "planted",
        "tool": { "name": "plimsoll", "version": "0" },
        "load": { "kind": "foreign", "workload": "network" },
        "command": [],
        "started_at": "2026-11-23T10:00:00Z",
        "outcome": "completed",
        "tags": {},
        "parameters": {},
        "target": { "kind": "network", "address": SERVER, "facts": {} },
        "environment": plimsoll::record::Environment::default(),
        "notes": [],
        "steps": [],
    }))
    .unwrap();
    let run = Run { steps, ..run };
    let network = |finding| match finding {
        Finding::Network(found) => Some(found),
        _ => None,
    };
    analyse(&run, &plimsoll::analysis::LatencyTarget::default()).into_iter().filter_map(network).collect()
}
