//! What short loads after the steps of a run showed: after pauses, and with requests of another size.

use serde::{Deserialize, Serialize};

/// Pulses: the load of a step put on again for a moment, each time after a pause without load. A limiter that saves what is not used
/// lets more through at first; a device cannot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct PulseTest {
    /// Time without load before each pulse; at least so long.
    pub pause_ns: u64,
    /// Length of a pulse, from the moment when load begins.
    pub window_ns: u64,
    /// Requests per second of the same load without a pause: the higher one of the rate of the step and that of one more second. Above 0.
    pub steady_requests_per_s: f64,
    /// The pulses that were whole, in their order.
    pub pulses: Vec<Pulse>,
}

/// One pulse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Pulse {
    /// Requests that ended in it.
    pub requests: u64,
    /// How many times as many as at the steady rate.
    pub ratio: f64,
}

impl PulseTest {
    /// Pulses of which nothing is known yet.
    pub fn new(pause_ns: u64, window_ns: u64, steady_requests_per_s: f64) -> Self {
        Self { pause_ns, window_ns, steady_requests_per_s, pulses: Vec::new() }
    }

    /// Requests that end in as long a time at the steady rate.
    pub fn steady_requests(&self) -> f64 {
        self.steady_requests_per_s * self.window_ns as f64 / 1e9
    }

    /// One more pulse, in which so many requests ended.
    pub fn push(&mut self, requests: u64) {
        let ratio = requests as f64 / self.steady_requests();
        self.pulses.push(Pulse { requests, ratio });
    }

    /// The middle one of the ratios, or the mean of the two in the middle; absent without pulses.
    pub fn median_ratio(&self) -> Option<f64> {
        let mut ratios: Vec<f64> = self.pulses.iter().map(|pulse| pulse.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios.get(ratios.len().checked_sub(1)? / 2)?, ratios.get(ratios.len() / 2)?);
        Some(low.midpoint(*high))
    }
}

/// The load of a step with requests of another size, put on for a moment: a limit on requests lets as many through, one on bytes as many
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct SizeTest {
    /// Length of its requests.
    pub request_bytes: u32,
    /// Requests that ended in the window.
    pub requests: u64,
    /// Length of the window, without the warm-up before it. Above 0.
    pub window_ns: u64,
}

/// The load of a step put on again for a moment with what stopped it relieved: a cause that was the right one lets more through then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReliefTest {
    /// What was changed meanwhile, such as `synchronous_commit=off`.
    pub setting: String,
    /// Operations per second that were requested. Above 0.
    pub asked_per_s: f64,
    /// Operations that ended in the window.
    pub operations: u64,
    /// Length of the window, without the warm-up before it. Above 0.
    pub window_ns: u64,
}

impl ReliefTest {
    /// Operations per second.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 * 1e9 / self.window_ns as f64
    }
}

impl SizeTest {
    /// Requests per second.
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 * 1e9 / self.window_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_to_what_ends_at_the_steady_rate() {
        let mut test = PulseTest::new(700_000_000, 10_000_000, 4_000.0);
        assert_eq!(test.median_ratio(), None);
        [400, 40, 20].into_iter().for_each(|requests| test.push(requests));
        assert_eq!(test.pulses.iter().map(|pulse| pulse.ratio).collect::<Vec<_>>(), [10.0, 1.0, 0.5]);
        assert_eq!(test.median_ratio(), Some(1.0));
        test.push(120);
        assert_eq!(test.median_ratio(), Some(2.0), "between 1.0 and 3.0");
    }
}
