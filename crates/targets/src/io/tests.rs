//! Both engines answer alike.

use std::time::{Duration, Instant};

use super::*;
use test_support::loop_device::LoopDevice;
use test_support::scratch::scratch;
use test_support::skip::skip;

fn file_of(bytes: usize, fill: impl Fn(usize) -> u8) -> (tempfile::TempDir, Arc<StorageFile>) {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, (0..bytes).map(fill).collect::<Vec<u8>>()).unwrap();
    let file = Arc::new(StorageFile::open(&path, Durability::OnSync).unwrap());
    (dir, file)
}

fn engines() -> Vec<IoEngine> {
    match IoEngine::best_available() {
        (IoEngine::Uring, _) => vec![IoEngine::Uring, IoEngine::Psync],
        (_, reason) => {
            skip(format_args!("io_uring: {}", reason.unwrap_or_default()));
            vec![IoEngine::Psync]
        }
    }
}

fn request(direction: Direction, block: u64, slot: u64) -> Request {
    Request { direction, file: 0, file_offset: block * 4096, arena_offset: slot * 4096, bytes: 4096, token: block }
}

fn all(queue: &mut Queue) -> Vec<Completion> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(Patience::Until(Duration::from_secs(5)), &mut done).unwrap();
    }
    done
}

#[test]
fn reads_what_the_file_holds_even_far_more_than_the_ring_is_deep() {
    for engine in engines() {
        let (_dir, file) = file_of(4096 * 1024, |at| (at / 4096 % 251) as u8);
        let arena = Arc::new(Arena::new(4096 * 1024).unwrap());
        let mut queue = Queue::new(engine, &[file], Arc::clone(&arena), 1024).unwrap();
        for block in 0..1024 {
            queue.push(request(Direction::Read, block, 1023 - block)).unwrap();
        }
        let done = all(&mut queue);
        assert_eq!(done.len(), 1024);
        for completion in done {
            assert_eq!(completion.bytes().unwrap(), 4096);
            let expected = [(completion.token % 251) as u8; 8];
            assert_eq!(arena.load((1023 - completion.token) * 4096), u64::from_le_bytes(expected), "{engine}");
        }
    }
}

#[test]
fn writes_reach_the_file() {
    for engine in engines() {
        let (_dir, file) = file_of(8192, |_| 0);
        let arena = Arc::new(Arena::new(4096).unwrap());
        arena.store(0, 0x1122_3344_5566_7788);
        let mut queue = Queue::new(engine, &[Arc::clone(&file)], arena, 1).unwrap();
        queue.push(request(Direction::Write, 1, 0)).unwrap();
        assert_eq!(all(&mut queue)[0].bytes().unwrap(), 4096);
        let back = std::fs::read(file.path()).unwrap();
        assert_eq!(back[4096..4104], 0x1122_3344_5566_7788u64.to_le_bytes());
    }
}

#[test]
fn a_discarded_range_has_no_data_and_what_is_beside_it_has() {
    let (_dir, file) = file_of(64 * 4096, |at| (at / 4096 % 251 + 1) as u8);
    let image = file_of(64 * 4096, |at| (at / 4096 % 251 + 1) as u8);
    let device = LoopDevice::over(image.1.path());
    let device = device.as_ref().map(|device| Arc::new(StorageFile::open(device.path(), Durability::OnSync).unwrap()));
    for engine in engines() {
        for file in [Some(&file), device.as_ref()].into_iter().flatten() {
            file.check_discards().unwrap();
            let arena = Arc::new(Arena::new(4096 * 64).unwrap());
            let mut queue = Queue::new(engine, &[Arc::clone(file)], Arc::clone(&arena), 64).unwrap();
            let at = if engine == IoEngine::Uring { 8 } else { 32 };
            queue.push(Request { bytes: 4 * 4096, ..request(Direction::Discard, at, 0) }).unwrap();
            queue.push(request(Direction::Read, 0, 0)).unwrap();
            let moved = |done: Vec<Completion>| done.iter().map(|one| one.bytes().unwrap()).sum::<u32>();
            assert_eq!(moved(all(&mut queue)), 4096, "{engine}: a discard moves nothing");
            for block in 0..64 {
                queue.push(request(Direction::Read, block, block)).unwrap();
            }
            assert_eq!(moved(all(&mut queue)), 64 * 4096);
            for block in at - 1..at + 5 {
                let expected = if (at..at + 4).contains(&block) { 0 } else { block + 1 };
                let expected = u64::from_le_bytes([expected as u8; 8]);
                assert_eq!(arena.load(block * 4096), expected, "{engine} {block}");
            }
        }
    }
    let written = file.written(64 * 4096).unwrap().unwrap();
    assert!(written.hole_bytes >= 4 * 4096, "{written:?}");
}

#[test]
fn a_read_past_the_end_is_short_and_a_bad_one_is_an_error() {
    for engine in engines() {
        let (_dir, file) = file_of(4096, |_| 1);
        let mut queue = Queue::new(engine, &[file], Arc::new(Arena::new(8192).unwrap()), 2).unwrap();
        queue.push(request(Direction::Read, 7, 0)).unwrap();
        assert_eq!(all(&mut queue)[0].bytes().unwrap(), 0, "{engine}");
        queue.push(Request { file_offset: u64::MAX >> 1, ..request(Direction::Read, 1, 0) }).unwrap();
        assert!(all(&mut queue)[0].bytes().is_err(), "{engine}");
    }
}

#[test]
fn waiting_ends_when_woken_and_when_time_is_over() {
    for engine in engines() {
        let (_dir, file) = file_of(4096, |_| 1);
        let mut queue = Queue::new(engine, &[file], Arc::new(Arena::new(4096).unwrap()), 1).unwrap();
        let mut done = Vec::new();
        let begin = Instant::now();
        queue.wait(Patience::Until(Duration::from_millis(30)), &mut done).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(25), "{engine} returned early");
        for _ in 0..3 {
            let waker = queue.waker();
            let sleeper = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                waker.wake();
            });
            let begin = Instant::now();
            queue.wait(Patience::Until(Duration::from_secs(300)), &mut done).unwrap();
            assert!(begin.elapsed() < Duration::from_secs(150), "{engine} was not woken");
            sleeper.join().unwrap();
        }
        assert!(done.is_empty());
    }
}

#[test]
fn a_wake_before_the_wait_is_not_lost() {
    for engine in engines() {
        let (_dir, file) = file_of(4096, |_| 1);
        let mut queue = Queue::new(engine, &[file], Arc::new(Arena::new(4096).unwrap()), 1).unwrap();
        queue.waker().wake();
        let begin = Instant::now();
        queue.wait(Patience::Until(Duration::from_secs(300)), &mut Vec::new()).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(150), "{engine} lost the wake-up");
    }
}

#[test]
#[should_panic(expected = "outside the arena")]
fn a_request_outside_the_arena_is_a_bug() {
    let (_dir, file) = file_of(4096, |_| 1);
    let mut queue = Queue::new(IoEngine::Psync, &[file], Arc::new(Arena::new(4096).unwrap()), 1).unwrap();
    let _ = queue.push(request(Direction::Read, 0, 1));
}

#[test]
fn a_sync_and_nothing_at_all_come_back_like_any_request() {
    for engine in engines() {
        let (_dir, file) = file_of(4096, |_| 0);
        let arena = Arc::new(Arena::new(4096).unwrap());
        let mut queue = Queue::new(engine, &[file], arena, 4).unwrap();
        for (direction, token) in [(Direction::Sync, 1), (Direction::Nothing, 2)] {
            let bytes = 0;
            queue.push(Request { direction, file: 0, file_offset: 0, arena_offset: 0, bytes, token }).unwrap();
        }
        let mut tokens: Vec<_> = all(&mut queue).iter().map(|done| (done.token, done.bytes().unwrap())).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, [(1, 0), (2, 0)], "{engine}");
    }
}
