use model::trace::TraceKind::Read;

use super::request;
use crate::readers::ordered::Ordered;

fn pushed(times: &[u64]) -> Ordered {
    let mut ordered = Ordered::default();
    for (place, time) in times.iter().enumerate() {
        ordered.push(request(*time, 0, Read, (place as u64 * 512, 512), None));
    }
    ordered
}

fn popped(ordered: &mut Ordered, full: usize) -> Vec<(u64, u64)> {
    let mut batch = Vec::new();
    ordered.pop_into(&mut batch, full);
    batch.iter().map(|request| (request.at_ns, request.offset_bytes / 512)).collect()
}

#[test]
fn requests_wait_for_earlier_ones() {
    const S: u64 = 1_000_000_000;
    let mut ordered = pushed(&[5 * S, 7 * S, 4 * S, 7 * S, 4 * S, 6 * S, 14 * S]);
    assert!(!ordered.is_ready());
    ordered.push(request(14 * S + 1, 0, Read, (7 * 512, 512), None));
    assert_eq!(popped(&mut ordered, 100), [(0, 2), (0, 4)]);
    ordered.drain();
    assert_eq!(popped(&mut ordered, 3), [(S, 0), (2 * S, 5), (3 * S, 1)]);
    assert_eq!(popped(&mut ordered, 100), [(3 * S, 3), (10 * S, 6), (10 * S + 1, 7)]);
    assert_eq!(ordered.note(), None);
}

#[test]
fn what_is_too_late_has_the_time_of_the_request_before() {
    const S: u64 = 1_000_000_000;
    let mut ordered = pushed(&[20 * S, 40 * S, 60 * S]);
    assert_eq!(popped(&mut ordered, 100), [(0, 0), (20 * S, 1)]);
    ordered.push(request(S, 0, Read, (512 * 3, 512), None));
    ordered.drain();
    assert_eq!(popped(&mut ordered, 100), [(20 * S, 3), (40 * S, 2)]);
    let note = ordered.note().expect("a note");
    assert!(note.starts_with("requests more than 10 s too late") && note.ends_with(": 1"), "{note}");
}

#[test]
fn a_full_window_passes_requests_on() {
    let mut ordered = Ordered::default();
    for time in (1..=10_000_u64).rev() {
        assert!(!ordered.is_ready());
        ordered.push(request(time, 0, Read, (0, 512), None));
    }
    assert_eq!(popped(&mut ordered, 100).len(), 1);
}
