//! Networks: `plimsoll net` beside iperf3 and sockperf. Both ends of each are on this machine, on loopback or in two network namespaces.

mod link;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll::record::{NetworkSide, Run, Step};

use self::link::{End, Link};
use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, run_of, text};

/// Known to both of our ends: it is worth nothing beyond this machine.
const TOKEN: &str = "figures of one machine";
/// The rate of the open loop.
const RATE_PER_S: &str = "20000";

/// A server that is ended when this is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What one side moved.
#[derive(Clone, Copy)]
struct Moved {
    gbit_per_s: f64,
    /// Processor time of both ends for each GB that arrived.
    cpu_ms_per_gb: f64,
}

/// Round trips of one side.
#[derive(Clone, Copy)]
struct Trips {
    median_us: f64,
    p999_us: f64,
}

impl Bench {
    /// Bulk data with one flow and with four, against iperf3, over loopback.
    pub(crate) fn net_bulk(&self) -> Result<(), Failure> {
        self.bulk_over(&Link::loopback())
    }

    /// The same between two network namespaces, which takes root.
    pub(crate) fn net_veth(&self) -> Result<(), Failure> {
        match Link::veth()? {
            Some(link) => self.bulk_over(&link),
            None => {
                figure("| bulk over a veth pair: not measured, which takes root | - | - | - | - | |");
                Ok(())
            }
        }
    }

    fn bulk_over(&self, link: &Link) -> Result<(), Failure> {
        let (_server, address) = self.net_serve(link)?;
        let (_theirs, port) = iperf3(link)?;
        for (flows, asked) in [(1, 1.0), (4, 1.2)] {
            let rounds = (0..self.rounds).map(|round| {
                in_turn(round, || self.our_bulk(link, &address, flows), || self.their_bulk(link, port, flows))
            });
            let rounds: Vec<(Moved, Moved)> = rounds.collect::<Result<_, Failure>>()?;
            let of = |what: fn(&Moved) -> f64| rounds.iter().map(move |(ours, theirs)| (what(ours), what(theirs)));
            let plural = if flows == 1 { "flow" } else { "flows" };
            let pairs: Vec<(f64, f64)> = of(|moved| moved.gbit_per_s).collect();
            ratios(
                &format!("bulk over {}, {flows} {plural}, against iperf3: Gbit/s", link.name),
                &pairs,
                1,
                Goal::AtLeast(asked),
            );
            let pairs: Vec<(f64, f64)> = of(|moved| moved.cpu_ms_per_gb).collect();
            let what = "the same: processor time of both ends for each GB, ms";
            ratios(what, &pairs, 0, Goal::AtMost(1.0));
        }
        Ok(())
    }

    /// Messages of 8 KiB to and fro, one at a time, against sockperf.
    pub(crate) fn net_answers(&self) -> Result<(), Failure> {
        let (_server, address) = self.net_serve(&Link::loopback())?;
        let (_theirs, port) = sockperf(&Link::loopback())?;
        let rounds = (0..self.rounds).map(|round| {
            in_turn(round, || self.our_trips(&address, &[]).map(|(service, _)| service), || self.their_trips(port))
        });
        let rounds: Vec<(Trips, Trips)> = rounds.collect::<Result<_, Failure>>()?;
        let of = |what: fn(&Trips) -> f64| rounds.iter().map(move |(ours, theirs)| (what(ours), what(theirs)));
        let pairs: Vec<(f64, f64)> = of(|trips| trips.median_us).collect();
        let what = "8 KiB asked and answered over loopback, one at a time, against sockperf: median, us";
        ratios(what, &pairs, 1, Goal::AtMost(1.0));
        let pairs: Vec<(f64, f64)> = of(|trips| trips.p999_us).collect();
        ratios("the same: p99.9, us", &pairs, 1, Goal::AtMost(1.0));
        Ok(())
    }

    /// Messages at a rate against as many one after the other.
    pub(crate) fn net_rate(&self) -> Result<(), Failure> {
        let (_server, address) = self.net_serve(&Link::loopback())?;
        let rounds = (0..self.rounds).map(|round| {
            in_turn(round, || self.our_trips(&address, &["--rate", RATE_PER_S]), || self.our_trips(&address, &[]))
        });
        let rounds: Vec<_> = rounds.collect::<Result<Vec<_>, Failure>>()?;
        let p99 = rounds.iter().map(|((_, open), (_, closed))| (open.p99_us, closed.p99_us)).collect::<Vec<_>>();
        let what = "p99 of response at 20,000/s (from due) against closed loop with one session, both ours, us";
        ratios(what, &p99, 1, Goal::AtMost(1.10));
        let kept = median(rounds.iter().map(|((_, open), _)| open.per_second));
        figure(&format!("| the same: operations/s | {kept:.0} | - | - | {RATE_PER_S} | |"));
        Ok(())
    }

    /// A server of ours, and where it listens.
    fn net_serve(&self, link: &Link) -> Result<(Serving, String), Failure> {
        let mut command = link.command(End::Server, self.program.as_os_str());
        command.args(["net", "serve", "--listen", &format!("{}:0", link.server)]).env("PLIMSOLL_NET_TOKEN", TOKEN);
        let mut server = Serving(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
        let mut address = String::new();
        BufReader::new(server.0.stdout.take().ok_or("no standard output")?).read_line(&mut address)?;
        Ok((server, address.trim().to_owned()))
    }

    fn net_run(&self, link: &Link, address: &str, words: &[&str]) -> Result<Run, Failure> {
        let (runs, seconds) = (self.runs.display().to_string(), self.seconds.to_string());
        let mut command = link.command(End::Client, self.program.as_os_str());
        command.args(["net", "run", "--json", "--quiet", "--to", address, "--runs", &runs, "--duration", &seconds]);
        let printed = text(command.args(["--warmup", "2"]).args(words).env("PLIMSOLL_NET_TOKEN", TOKEN))?;
        Ok(serde_json::from_value(run_of(&printed)?)?)
    }

    fn our_bulk(&self, link: &Link, address: &str, flows: u32) -> Result<Moved, Failure> {
        let run = self.net_run(link, address, &["--pattern", "bulk", "--flows", &flows.to_string()])?;
        let step = first_step(&run)?;
        let server = step.network.iter().find(|end| end.side == NetworkSide::Server);
        let server = server.ok_or("the server said nothing")?;
        let bytes = server.received_bytes.ok_or("bytes were not counted")? as f64;
        // Each end has a time of its own, which differs by a reading.
        let of_each = step.network.iter().map(|end| {
            let cpu = end.process_cpu?;
            Some((cpu.user_ns + cpu.system_ns) as f64 / end.elapsed_ns as f64)
        });
        let busy: f64 = of_each.collect::<Option<Vec<f64>>>().ok_or("processor time is not known")?.iter().sum();
        let bytes_per_ns = bytes / server.elapsed_ns as f64;
        Ok(Moved { gbit_per_s: bytes_per_ns * 8.0, cpu_ms_per_gb: busy / bytes_per_ns * 1e9 / 1e6 })
    }

    fn their_bulk(&self, link: &Link, port: u16, flows: u32) -> Result<Moved, Failure> {
        let (port, seconds, flows) = (port.to_string(), self.seconds.to_string(), flows.to_string());
        let words = ["-c", link.server, "-p", &port, "-t", &seconds, "-O", "2", "-P", &flows, "-J"];
        let document: serde_json::Value =
            serde_json::from_str(&text(link.command(End::Client, "iperf3".as_ref()).args(words))?)?;
        let end = &document["end"];
        let bits_per_s = number(&end["sum_received"]["bits_per_second"])?;
        let cpu = &end["cpu_utilization_percent"];
        let busy = (number(&cpu["host_total"])? + number(&cpu["remote_total"])?) / 100.0;
        Ok(Moved { gbit_per_s: bits_per_s / 1e9, cpu_ms_per_gb: busy / (bits_per_s / 8.0) * 1e9 * 1e3 })
    }

    /// Messages of 8 KiB both ways, as sockperf has them: service, and all of the response.
    fn our_trips(&self, address: &str, more: &[&str]) -> Result<(Trips, Response), Failure> {
        let words = ["--pattern", "gc", "--request", "8k", "--size", "8k"];
        let run = self.net_run(&Link::loopback(), address, &[&words[..], more].concat())?;
        let step = first_step(&run)?;
        let operations = step.operations.first().ok_or("no operation finished")?;
        let us = |quantile: f64, times: &plimsoll::record::Histogram| {
            times.quantile_ns(quantile).map(|ns| ns as f64 / 1e3).ok_or("no operation finished")
        };
        let done = step.counters.operations.ok_or("no operations were counted")? as f64;
        let per_second = done / step.window.duration_ns as f64 * 1e9;
        Ok((
            Trips { median_us: us(0.5, &operations.service)?, p999_us: us(0.999, &operations.service)? },
            Response { p99_us: us(0.99, &operations.response)?, per_second },
        ))
    }

    fn their_trips(&self, port: u16) -> Result<Trips, Failure> {
        let (port, seconds) = (port.to_string(), (self.seconds + 2).to_string());
        let words = ["ping-pong", "--tcp", "-i", "127.0.0.1", "-p", &port, "-m", "8192", "-t", &seconds, "--full-rtt"];
        let printed = text(Command::new("sockperf").args(words))?;
        let percentile = |name: &str| -> Result<f64, Failure> {
            let line = printed.lines().find_map(|line| line.split_once(&format!("percentile {name} ="))).map(|it| it.1);
            Ok(line.ok_or_else(|| format!("sockperf printed no percentile {name}"))?.trim().parse()?)
        };
        Ok(Trips { median_us: percentile("50.000")?, p999_us: percentile("99.900")? })
    }
}

/// What was answered, from when it was due.
struct Response {
    p99_us: f64,
    per_second: f64,
}

fn first_step(run: &Run) -> Result<&Step, Failure> {
    Ok(run.steps.first().ok_or("a run without a step")?)
}

fn iperf3(link: &Link) -> Result<(Serving, u16), Failure> {
    let port = free_port()?;
    let words = ["-s", "-B", link.server, "-p", &port.to_string()].map(str::to_owned);
    listening(link, "iperf3", &words, port)
}

fn sockperf(link: &Link) -> Result<(Serving, u16), Failure> {
    let port = free_port()?;
    let words = ["server", "--tcp", "-i", link.server, "-p", &port.to_string()].map(str::to_owned);
    listening(link, "sockperf", &words, port)
}

fn listening(link: &Link, program: &str, words: &[String], port: u16) -> Result<(Serving, u16), Failure> {
    let mut command = link.command(End::Server, program.as_ref());
    let spawned = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Serving(spawned.map_err(|error| format!("cannot start {program}: {error}"))?);
    // It says nothing when it listens, and a connection would be taken for a client.
    let is_there = |table: &str| table.lines().any(|line| line.contains(&format!(":{port:04X} 00000000:0000 0A")));
    for _ in 0..100 {
        if is_there(&text(link.command(End::Server, "cat".as_ref()).arg("/proc/net/tcp"))?) {
            return Ok((server, port));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("{program} does not listen").into())
}

fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
