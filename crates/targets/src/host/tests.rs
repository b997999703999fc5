use super::*;

#[test]
fn numbers_are_written_as_the_kernel_writes_them() {
    assert_eq!(ranges(&[3, 0, 1, 2, 9, 7, 7]), "0-3,7,9");
    assert_eq!(ranges(&[]), "");
}

#[test]
fn what_is_taken_is_what_was_done_since_it_was_taken_before() {
    let processors = vec![allowed_processors().unwrap()[0]];
    let options = HostOptions { processors, size_bytes: 1 << 20, cache: None, memory_of: None, wake_on: None };
    let target = HostTarget::open(options, Clock::start()).unwrap();
    target.counts[0].operations.store(5, Ordering::Relaxed);
    target.counts[0].units[HostKind::Sort.index()].store(50, Ordering::Relaxed);
    let first = target.take();
    assert_eq!((first.loaded.operations, first.work["sort"], first.processors.len()), (5, 50, 1));
    target.counts[0].operations.store(7, Ordering::Relaxed);
    let second = target.take();
    assert_eq!((second.loaded.operations, second.work.is_empty()), (2, true));
}
