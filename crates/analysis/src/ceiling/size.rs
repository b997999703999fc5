//! Whether a limit counts requests or bytes, by the same load with requests of another size.

use super::{Ceiling, LIKE_PUBLISHED, Limit, may_be};
use crate::load_line::find_limits;
use crate::traffic::request_bytes;
use crate::{Finding, LatencyTarget, Series};
use model::platforms;
use model::record::{Run, SizeTest, Step};

/// A limit that counts holds its rate to this share: what it saved meanwhile comes to less within the window.
const SAME: f64 = 0.05;
/// The smallest request of both sizes: no device is asked for less than its unit.
const LEAST_BYTES: u32 = 4_096;

/// The size that tells requests from bytes for a load of `request_bytes`: half of it, or twice the smallest. Absent where neither is a
/// multiple of what devices take.
pub fn other_size(request_bytes: u32) -> Option<u32> {
    match request_bytes {
        LEAST_BYTES => Some(2 * LEAST_BYTES),
        bytes if bytes > 0 && bytes.is_multiple_of(2 * LEAST_BYTES) => Some(bytes / 2),
        _ => None,
    }
}

/// The load whose requests of another size would tell what a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeWanted {
    /// Position of its step in the run.
    pub step: usize,
    /// Length of the requests.
    pub request_bytes: u32,
}

/// The largest load of a run, if its steps show a limit that may count either.
pub fn size_wanted(run: &Run) -> Option<SizeWanted> {
    let all = Series::of(run);
    let [series] = all.as_slice() else { return None };
    let is_open = |finding: &Finding| matches!(finding, Finding::Ceiling(found) if counts_either(found));
    if !find_limits(run, &LatencyTarget::default()).iter().any(is_open) {
        return None;
    }
    let last = *series.steps.last()?;
    let step = run.steps.iter().position(|step| std::ptr::eq(step, last))?;
    Some(SizeWanted { step, request_bytes: other_size(own_bytes(last)?)? })
}

fn counts_either(found: &Ceiling) -> bool {
    matches!(found.limit, Limit::RequestsOrThroughput)
}

/// Of a step whose requests are all of one size.
fn own_bytes(step: &Step) -> Option<u32> {
    request_bytes(step).filter(|bytes| bytes.fract() == 0.0 && *bytes <= f64::from(u32::MAX)).map(|bytes| bytes as u32)
}

/// A limit, with what requests of another size say of it where they were tried.
pub(super) fn decided(run: &Run, series: &Series<'_>, found: Ceiling) -> Ceiling {
    let tried = series.steps.iter().rev().find_map(|step| Some((*step, step.size_test?)));
    let Some((step, test)) = tried.filter(|_| counts_either(&found)) else { return found };
    let Some(limit) = counted(step, &test, found.per_s) else { return found };
    // What is published counts either as well.
    let like = match (limit, found.megabytes_per_s) {
        (Limit::Throughput, Some(megabytes)) => {
            platforms::like(true, megabytes * 1e6, LIKE_PUBLISHED).filter(|like| may_be(run, like))
        }
        _ => found.like,
    };
    Ceiling { other_size: Some(test), limit, like, ..found }
}

/// What a limit counts that lets `per_s` requests of the step's own size through; absent where it is neither.
fn counted(step: &Step, test: &SizeTest, per_s: f64) -> Option<Limit> {
    let own_bytes = f64::from(own_bytes(step)?);
    let requests = test.requests_per_s() / per_s;
    let bytes = requests * f64::from(test.request_bytes) / own_bytes;
    let is_same = |ratio: f64| (ratio - 1.0).abs() <= SAME;
    match (is_same(requests), is_same(bytes)) {
        (true, false) => Some(Limit::Requests),
        (false, true) => Some(Limit::Throughput),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, analyse};
    use model::record::sample::requests;

    /// A sweep that comes to 5,000 requests/s of 8 KiB, with so many of 4 KiB in 1.5 s.
    fn tried(requests: u64) -> Ceiling {
        let mut run = requests::sweep();
        run.steps.last_mut().unwrap().size_test =
            Some(SizeTest { request_bytes: 4_096, requests, window_ns: 1_500_000_000 });
        let found = analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
            Finding::Ceiling(found) => Some(found),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn what_counts_bytes_is_likened_to_no_volume_that_the_tag_excludes() {
        let like = |tag: Option<&str>| {
            let mut run = requests::sweep();
            for step in &mut run.steps {
                // 5,000 requests/s are 200 MB/s.
                let bytes = |requests: Option<u64>| requests.map(|requests| requests * 40_000);
                step.counters.physical_read_bytes = bytes(step.counters.physical_reads);
                for second in &mut step.intervals {
                    second.counters.physical_read_bytes = bytes(second.counters.physical_reads);
                }
            }
            run.steps.last_mut().unwrap().size_test =
                Some(SizeTest { request_bytes: 20_000, requests: 15_000, window_ns: 1_500_000_000 });
            run.tags = tag.map(|volume| ("volume".to_owned(), volume.to_owned())).into_iter().collect();
            let found = analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
                Finding::Ceiling(found) => Some(found),
                _ => None,
            });
            found.map(|found| (found.limit, found.like.is_some()))
        };
        assert_eq!(like(None), Some((Limit::Throughput, true)));
        assert_eq!(like(Some("gp3")), Some((Limit::Throughput, false)));
    }

    #[test]
    fn half_the_size_is_tried_and_twice_the_smallest() {
        let sizes = [4_096, 8_192, 16_384, 1 << 20, 512, 12_288, 24_576, 0];
        let other = [Some(8_192), Some(4_096), Some(8_192), Some(1 << 19), None, None, Some(12_288), None];
        assert_eq!(sizes.map(other_size), other);
        let run = requests::sweep();
        assert_eq!(size_wanted(&run), Some(SizeWanted { step: run.steps.len() - 1, request_bytes: 4_096 }));
    }

    #[test]
    fn as_many_requests_are_a_limit_on_requests_and_as_many_bytes_one_on_bytes() {
        let requests = tried(7_480);
        assert_eq!(requests.limit, Limit::Requests);
        let sentence = requests.sentence();
        assert!(sentence.contains(" Requests of 4 KiB came at 4,987/s as well: it counts requests."), "{sentence}");
        let bytes = tried(15_300);
        assert_eq!(bytes.limit, Limit::Throughput);
        assert!(
            bytes.sentence().contains(" Requests of 4 KiB came at 10,200/s, which is as many bytes: it counts bytes."),
            "{}",
            bytes.sentence()
        );
        for neither in [5_000, 9_000, 12_000, 20_000] {
            let found = tried(neither);
            assert_eq!((found.limit, found.other_size), (Limit::RequestsOrThroughput, None), "{neither}");
        }
    }
}
