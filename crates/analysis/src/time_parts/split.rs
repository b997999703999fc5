//! Where operations are that are under way, by what the target lets us see. `U` is how many there are.
//!
//! - **Raw storage on devices of this machine.** *In the device* is the kernel's integral of requests in flight over the time between its
//!   readings ([`DeviceStats::weighted_ns`]): at most `U`, and at least the share of it that operations moved of the device's bytes, since it
//!   counts the requests of all programs. Of a stack of devices the one with least says the lower bound. *Before the device* is what `U` has
//!   beyond that. With the page cache between them the device works when it wants to: the lower bound is 0.
//! - **Other storage**, such as servers of files, and simulated targets: all of `U` is in the target.
//! - **A database server.** Waits by class are what looks at its sessions found ([`Classes`]). *Running* is the processor time of its
//!   processes, and *ready* their run delay, which contains what a quota held back; both are at most what waits leave, and of processes
//!   that work for no session as well. So their bounds rest on the looks too, in which sessions used or wanted a processor. A server on
//!   another machine shows neither: both are between 0 and those sessions. What is left is *outside*.
//! - **The embedded engine.** Waits are what it timed, *running* the processor time of the lanes. An operation may wait for as many
//!   blocks at once as it touches (`WORK_UNIT`), and its lane works meanwhile: so reads may take as much less, and where all exceed `U`,
//!   reads give way.
//! - **The load generator's own work** is between 0 and the processors that its process used, at most what is outside of the target. An
//!   engine is in the same process, so that its processor time is *running*.

use super::{Place, Range, Seen};
use crate::server::Classes;
use crate::{is_on_server, operations_are_requests, proof};
use model::record::{DeviceStats, TargetKind};

type Parts = Vec<(Place, Range)>;

impl Seen<'_> {
    /// The parts of what is under way.
    pub(super) fn under_way_parts(&self) -> Parts {
        match self.run.target.kind {
            // Its time is no time of this machine's processors.
            Some(TargetKind::Simulated) => vec![(Place::Target, self.under_way)],
            _ if is_on_server(self.step) => self.on_server(),
            _ if operations_are_requests(self.run) && self.step.devices.is_empty() => self.in_target(),
            _ if operations_are_requests(self.run) => self.on_devices(),
            Some(TargetKind::Embedded) => self.in_engine(),
            // A server that nothing was heard of.
            _ => self.on_server(),
        }
    }

    /// The load generator's own work, at most so many sessions.
    fn client(&self, most: f64) -> Range {
        Range::up_to(self.client.unwrap_or(most).min(most))
    }

    fn in_target(&self) -> Parts {
        let client = self.client(self.under_way.most);
        let Range { least, likely, most } = self.under_way;
        let target = Range::new(least - client.most, likely - client.most, most);
        vec![(Place::Client, client), (Place::Target, target)]
    }

    fn on_devices(&self) -> Parts {
        let all = self.under_way;
        let device = self.device().within(all.most);
        let client = self.client(all.most - device.least);
        let before = Range::new(
            all.least - device.most - client.most,
            all.likely - device.most - client.most,
            all.most - device.least,
        );
        vec![(Place::Client, client), (Place::BeforeDevice, before), (Place::Device, device)]
    }

    /// Requests of ours in the devices and their queues.
    fn device(&self) -> Range {
        // A second in which nothing was read of them.
        if self.devices.is_empty() {
            return Range::up_to(self.under_way.most);
        }
        let in_flight = |device: &DeviceStats| device.weighted_ns as f64 / device.elapsed_ns.max(1) as f64;
        let is_cached = proof::is_through_page_cache(self.run);
        let ours = |devices: &[&DeviceStats]| {
            let moved: u64 = devices
                .iter()
                .map(|device| device.read_bytes.saturating_add(device.write_bytes))
                .fold(0, u64::saturating_add);
            let share = self.bytes.filter(|_| moved > 0 && !is_cached).map_or(0.0, |bytes| bytes as f64 / moved as f64);
            share.min(1.0) * devices.iter().map(|device| in_flight(device)).sum::<f64>()
        };
        let tops = proof::tops(self.run, self.step);
        let now = |name: &str| self.devices.iter().find(|device| device.name == name);
        match tops.as_slice() {
            // Which is below which is not known.
            [] => Range::up_to(self.devices.iter().map(in_flight).sum()),
            [_] => {
                let least = self.devices.iter().map(|device| ours(&[device])).reduce(f64::min).unwrap_or(0.0);
                Range::new(least, least, self.devices.iter().map(in_flight).fold(0.0, f64::max))
            }
            several => {
                let several: Vec<&DeviceStats> = several.iter().filter_map(|top| now(&top.name)).collect();
                let least = ours(&several);
                Range::new(least, least, several.iter().map(|device| in_flight(device)).sum())
            }
        }
    }

    /// Of an engine's waiting time the share that reads spent before they reached the devices, at least: what it timed of them beyond all
    /// requests that the kernel had in flight there. A commit may wait for another's flush, so that its time is not that of a request.
    pub(super) fn held_reads(&self) -> Option<f64> {
        let is_seen = self.run.target.kind == Some(TargetKind::Embedded)
            && !self.devices.is_empty()
            && !proof::is_through_page_cache(self.run);
        let waits = self.waits.filter(|_| is_seen)?;
        let all = waits.reads + waits.log + waits.other;
        let in_flight: f64 =
            self.devices.iter().map(|device| device.weighted_ns as f64 / device.elapsed_ns.max(1) as f64).sum();
        (all > 0.0).then(|| (waits.reads - in_flight).max(0.0) / all)
    }

    fn on_server(&self) -> Parts {
        let all = self.under_way;
        let (running, ready) = (self.served.processors(), self.served.ready());
        if !self.served.is_sampled() {
            let unknown = Range::up_to(all.most);
            let up_to = |processors: Option<f64>| processors.map_or(unknown, |most| Range::up_to(most.min(all.most)));
            return vec![
                (Place::Client, self.client(all.most)),
                (Place::Outside, unknown),
                (Place::Running, up_to(running)),
                (Place::Ready, up_to(ready)),
                (Place::Reads, unknown),
                (Place::Log, unknown),
                (Place::Locks, unknown),
                (Place::OtherWaits, unknown),
            ];
        }
        let Classes { mut reads, log, locks, other, processor, either } = Classes::of(&self.served, self.sessions);
        // Sessions that were reading, unless they used a processor.
        let (at_processors, undecided) = match self.served.read_seconds_per_s() {
            Some(timed) => {
                let read = |sessions: f64| sessions.min(timed);
                let rest = |sessions: f64| (sessions - timed).max(0.0);
                reads = reads.and(Range::new(read(either.least), read(either.likely), read(either.most)));
                let rest = Range::new(rest(either.least), rest(either.likely), rest(either.most));
                (processor.and(rest), Range::default())
            }
            None => {
                reads = reads.and(Range::up_to(either.most));
                (processor.and(Range::up_to(either.most)), either)
            }
        };
        let waits = [reads, log, locks, other];
        let sum = |of: fn(&Range) -> f64| waits.iter().map(of).sum::<f64>();
        let waiting = sum(|range| range.likely);
        let room = |taken: f64| (all.likely - taken).max(0.0);
        let likely_running = running.map(|running| running.min(room(waiting)));
        let likely_ready = likely_running.zip(ready).map(|(running, ready)| ready.min(room(waiting + running)));
        let seen = likely_running.unwrap_or(0.0) + likely_ready.unwrap_or(0.0);
        let outside = Range::new(
            all.least - sum(|range| range.most) - at_processors.most.max(seen),
            room(waiting + undecided.likely + at_processors.likely.max(seen)),
            all.most - sum(|range| range.least) - undecided.least - at_processors.least,
        );
        // Where only one of both is known, the other has the rest of the sessions that used or wanted a processor.
        let bounds = |own: Option<f64>, likely: Option<f64>, beside: Option<f64>| match own {
            None => Range::up_to(at_processors.most),
            Some(own) => {
                let least = at_processors.least - beside.unwrap_or(at_processors.least);
                Range::new(least.min(own), likely.unwrap_or(0.0), own)
            }
        };
        let client = self.client(outside.most);
        let outside = Range::new(outside.least - client.most, outside.likely - client.most, outside.most);
        let inside = [
            (Place::Running, bounds(running, likely_running, ready)),
            (Place::Ready, bounds(ready, likely_ready, running)),
            (Place::Reads, reads),
            (Place::Log, log),
            (Place::Locks, locks),
            (Place::OtherWaits, other),
        ];
        let inside = inside.map(|(place, range)| (place, range.within(all.most)));
        [(Place::Client, client), (Place::Outside, outside)].into_iter().chain(inside).collect()
    }

    fn in_engine(&self) -> Parts {
        let all = self.under_way;
        let processor = self.client.unwrap_or(all.most);
        let running = Range::new(0.0, self.lanes.unwrap_or(processor), processor).within(all.most);
        let Some(waits) = self.waits else {
            let unknown = Range::up_to(all.most);
            let waiting = [Place::Ready, Place::Reads, Place::Log, Place::OtherWaits].map(|place| (place, unknown));
            return [(Place::Running, Range::up_to(running.most))].into_iter().chain(waiting).collect();
        };
        let at_once = self.run.parameter(self.step, "WORK_UNIT").and_then(|blocks| blocks.parse::<f64>().ok());
        let share = at_once.filter(|blocks| *blocks >= 1.0).map_or(0.0, |blocks| 1.0 / blocks);
        // A commit is waited for by itself.
        let log = Range::exactly(waits.log).within(all.most);
        let other = Range::new(waits.other * share, waits.other, waits.other).within(all.most - log.least);
        let room = |taken: f64| (all.likely - taken).max(0.0);
        let reads = waits.reads.min(room(log.likely + other.likely + running.likely));
        let reads = Range::new(waits.reads * share, reads, waits.reads).within(all.most - log.least);
        let running = Range::new(0.0, running.likely.min(room(log.likely + other.likely + reads.likely)), running.most);
        let ready = Range::up_to(all.most - log.least - reads.least - other.least);
        vec![
            (Place::Running, running),
            (Place::Ready, ready),
            (Place::Reads, reads),
            (Place::Log, log),
            (Place::OtherWaits, other),
        ]
    }
}
