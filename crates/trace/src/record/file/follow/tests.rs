use std::path::Path;

use super::super::files::{FileKey, FileRole};
use super::*;

const TASK: u32 = 7;

/// Looks that are done at one moment, with what each descriptor is then.
#[derive(Default)]
struct Fake {
    now_ns: u64,
    /// Inode, position, size and flags; without an inode it is a pipe.
    open: HashMap<u32, (Option<u64>, u64, u64, u32)>,
}

impl Proc for Fake {
    fn process(&mut self, task: u32) -> Option<u32> {
        (task < 100).then_some(TASK)
    }

    fn look(&mut self, _: u32, _: u32, descriptor: u32, files: &mut Files) -> Look {
        let (from_ns, to_ns) = (self.now_ns, self.now_ns + 1);
        let gone = Look { from_ns, to_ns, found: Found::Gone, position: 0, size: 0, flags: 0 };
        let Some((inode, position, size, flags)) = self.open.get(&descriptor).copied() else { return gone };
        let Some(inode) = inode else { return Look { found: Found::NotFile, ..gone } };
        let key = FileKey { device: 1, inode, role: FileRole::Data };
        let found = Found::File(files.place(key, Path::new("/x"), Some(size)));
        Look { found, position, size, flags, ..gone }
    }
}

fn enter(call: Call, arguments: &[u64]) -> What {
    let mut all = [0; ARGUMENTS];
    all[..arguments.len()].copy_from_slice(arguments);
    What::Enter(call, all)
}

type Events<'a> = &'a [(u64, u32, What)];

/// What is recorded of events that are read in batches: each with when it is read, and what is open then.
fn followed(batches: &[(Fake, Events<'_>)]) -> (Vec<TraceRequest>, Vec<TraceDevice>, CallCounts) {
    let (mut follow, mut devices, mut out) = (Follow::new(false), Vec::new(), Vec::new());
    follow.begin(1_000);
    for (fake, events) in batches {
        let mut fake = Fake { now_ns: fake.now_ns, open: fake.open.clone() };
        for (at_ns, task, what) in *events {
            follow.tell(*at_ns, Told { task: *task, what: *what });
        }
        follow.prepare(&mut fake);
        follow.settle(fake.now_ns.saturating_sub(100), &mut devices, &mut out);
    }
    let counts = follow.finish(&mut devices, &mut out);
    (out, devices, counts)
}

fn open(now_ns: u64, open: &[(u32, Option<u64>, u64, u64, u32)]) -> Fake {
    let open =
        open.iter().map(|&(descriptor, inode, position, size, flags)| (descriptor, (inode, position, size, flags)));
    Fake { now_ns, open: open.collect() }
}

type Shape = (u64, u16, TraceKind, u64, u64, Option<u64>);

fn shape(requests: &[TraceRequest]) -> Vec<Shape> {
    requests.iter().map(|one| (one.at_ns, one.device, one.kind, one.offset_bytes, one.bytes, one.latency_ns)).collect()
}

use Call::{Allocate, Close, Duplicate, Flush, Open, Read, ReadAt, Seek, Submit, Write, WriteAt};
use TraceKind::{Discard, Flush as Flushes, Read as Reads, Write as Writes};
use What::Exit;

#[test]
fn calls_on_files_are_requests_with_what_they_returned() {
    let events = [
        (1_010, TASK, enter(ReadAt, &[3, 0, 8_192, 4_096])),
        (1_020, 8, enter(WriteAt, &[3, 0, 512, 0])),
        (1_030, 8, Exit(WriteAt, 512)),
        // A short one.
        (1_040, TASK, Exit(ReadAt, 1_024)),
        (1_050, TASK, enter(Flush, &[3])),
        (1_090, TASK, Exit(Flush, 0)),
        (1_100, TASK, enter(Allocate, &[3, 3, 4_096, 65_536])),
        (1_110, TASK, Exit(Allocate, 0)),
        (1_120, TASK, enter(ReadAt, &[3, 0, 8_192, 4_096])),
        (1_130, TASK, Exit(ReadAt, -5)),
        (1_140, TASK, enter(ReadAt, &[3, 0, 8_192, 4_096])),
        (1_150, TASK, Exit(ReadAt, 0)),
        (1_160, TASK, enter(Write, &[4])),
        (1_170, TASK, Exit(Write, 9)),
        (1_180, TASK, enter(ReadAt, &[9, 0, 8_192, 0])),
        (1_190, TASK, Exit(ReadAt, 8_192)),
        (1_200, TASK, Exit(Submit, 16)),
        (1_210, TASK, What::Ring),
        (1_220, TASK, Exit(Call::Counted(1), 0)),
        (1_230, TASK, enter(Allocate, &[3, 0, 0, 65_536])),
        (1_240, TASK, Exit(Allocate, 0)),
        (1_250, TASK, enter(Flush, &[3])),
    ];
    let (out, devices, counts) =
        followed(&[(open(1_300, &[(3, Some(5), 0, 10_000, 0o10000), (4, None, 0, 0, 0)]), &events)]);
    let expected = [
        (10, 0, Reads, 4_096, 1_024, Some(30)),
        (20, 0, Writes, 0, 512, Some(10)),
        (50, 0, Flushes, 0, 0, Some(40)),
        (100, 0, Discard, 4_096, 65_536, Some(10)),
    ];
    assert_eq!(shape(&out), expected);
    assert_eq!(
        out.iter().map(|one| one.is_fua).collect::<Vec<_>>(),
        [false, true, false, false],
        "it is open with O_DSYNC"
    );
    assert_eq!(devices, [TraceDevice { name: "data-1".to_owned(), bytes: Some(10_000) }]);
    let counted = [("fallocate", 1), ("sync", 1)].into_iter().collect();
    let one = CallCounts { failed: 1, empty: 1, not_files: 1, unknown: 1, unanswered: 1, ..CallCounts::default() };
    assert_eq!(counts, CallCounts { io_submit: 16, io_uring: 1, counted, ..one });
}

#[test]
fn a_descriptor_that_is_another_file_since_is_not_taken_for_it() {
    // It was closed and is another file when it is looked up.
    let reused = [
        (1_010, TASK, enter(ReadAt, &[3, 0, 512, 0])),
        (1_020, TASK, Exit(ReadAt, 512)),
        (1_030, TASK, enter(Close, &[3])),
        (1_040, TASK, Exit(Open, 3)),
        (1_050, TASK, enter(ReadAt, &[3, 0, 512, 512])),
        (1_060, TASK, Exit(ReadAt, 512)),
    ];
    let (out, _, counts) = followed(&[(open(1_100, &[(3, Some(6), 0, 0, 0)]), &reused)]);
    assert_eq!((shape(&out), counts.unknown), (vec![(50, 0, Reads, 512, 512, Some(10))], 1));
    // It was closed while it was looked up, and the event of that is read later.
    let late = [(1_090, TASK, enter(Close, &[3]))];
    let first = [(1_010, TASK, enter(ReadAt, &[3, 0, 512, 0])), (1_020, TASK, Exit(ReadAt, 512))];
    let (out, _, counts) = followed(&[
        (open(1_100, &[(3, Some(6), 0, 0, 0)]), &first),
        (open(1_130, &[]), &late),
        (open(1_300, &[]), &[]),
    ]);
    assert_eq!((out.len(), counts.unknown), (0, 1));
    // It was closed, and what it is then was made by a call that has no event.
    let unseen = [first[0], first[1], (1_030, TASK, enter(Close, &[3]))];
    assert_eq!(followed(&[(open(1_100, &[(3, Some(6), 0, 0, 0)]), &unseen)]).2.unknown, 1);
    // Two files in turn at one descriptor, looked up in time.
    let (opened, again) = (
        [(1_005, TASK, Exit(Open, 3)), first[0], first[1]],
        [
            (1_150, TASK, enter(Close, &[3])),
            (1_160, TASK, Exit(Duplicate, 3)),
            (1_170, TASK, enter(ReadAt, &[3, 0, 512, 0])),
            (1_180, TASK, Exit(ReadAt, 512)),
        ],
    );
    let (out, devices, _) =
        followed(&[(open(1_100, &[(3, Some(6), 0, 0, 0)]), &opened), (open(1_200, &[(3, Some(8), 0, 0, 0)]), &again)]);
    assert_eq!((out.iter().map(|one| one.device).collect::<Vec<_>>(), devices.len()), (vec![0, 1], 2));
    // Another program has none of the descriptors that close with it.
    let executed = [first[0], first[1], (1_050, TASK, What::Executed)];
    assert_eq!(followed(&[(open(1_100, &[(3, Some(6), 0, 0, 0)]), &executed)]).2.unknown, 1);
}

#[test]
fn a_position_is_looked_up_once_and_followed() {
    let events = [
        (1_010, TASK, enter(Read, &[3])),
        (1_020, TASK, Exit(Read, 100)),
        (1_030, TASK, enter(Read, &[3])),
        (1_040, TASK, Exit(Read, 50)),
    ];
    let later = [
        (1_210, TASK, enter(Write, &[3])),
        (1_220, TASK, Exit(Write, 10)),
        (1_230, TASK, enter(Seek, &[3])),
        (1_240, TASK, Exit(Seek, 7_000)),
        (1_250, TASK, enter(Write, &[3])),
        (1_260, TASK, Exit(Write, 10)),
        // `pwritev2` at the position.
        (1_270, TASK, enter(WriteAt, &[3, 0, 1, u64::MAX])),
        (1_280, TASK, Exit(WriteAt, 10)),
    ];
    // When it is looked up, both reads have moved it.
    let seen = [(3, Some(5), 1_150, 9_000, 0)];
    let (out, _, counts) = followed(&[(open(1_100, &seen), &events), (open(1_300, &seen), &later)]);
    let offsets: Vec<u64> = out.iter().map(|one| one.offset_bytes).collect();
    assert_eq!((offsets, counts.unplaced), (vec![1_000, 1_100, 1_150, 7_000, 7_010], 0));
    // A call that began before the look and ended after moved it after.
    let around = [(1_090, TASK, enter(Read, &[3])), (1_110, TASK, Exit(Read, 100))];
    let (out, _, _) = followed(&[(open(1_100, &seen), &around[..1]), (open(1_300, &seen), &around[1..])]);
    assert_eq!(out[0].offset_bytes, 1_150);
    // One that ended while it was looked at may have moved it or not: another look helps the next call.
    let during = [(1_101, TASK, Exit(Read, 100)), (1_250, TASK, enter(Read, &[3])), (1_260, TASK, Exit(Read, 100))];
    let (out, _, counts) = followed(&[
        (open(1_100, &seen), &around[..1]),
        (open(1_240, &seen), &during[..1]),
        (open(1_300, &[(3, Some(5), 2_100, 9_000, 0)]), &during[1..]),
    ]);
    assert_eq!((out.len(), out[0].offset_bytes, counts.unplaced), (1, 2_000, 1));
    // A file that was just opened begins at its beginning.
    let opened = [(1_005, TASK, Exit(Open, 3)), (1_010, TASK, enter(Seek, &[9])), events[0], events[1]];
    assert_eq!(followed(&[(open(1_100, &[(3, Some(5), 100, 9_000, 0)]), &opened)]).0[0].offset_bytes, 0);
}

#[test]
fn what_is_appended_is_at_the_end_of_its_file() {
    let events = [
        (1_010, TASK, enter(Write, &[3])),
        (1_020, TASK, Exit(Write, 100)),
        // By another descriptor of the file.
        (1_030, TASK, enter(Write, &[4])),
        (1_040, TASK, Exit(Write, 50)),
        (1_050, TASK, enter(Write, &[3])),
        (1_060, TASK, Exit(Write, 10)),
    ];
    let seen = [(3, Some(5), 0, 1_160, APPENDS), (4, Some(5), 0, 1_160, APPENDS)];
    let (out, _, _) = followed(&[(open(1_100, &seen), &events[..4]), (open(1_300, &seen), &events[4..])]);
    let steps: Vec<u64> = out.windows(2).map(|two| two[1].offset_bytes - two[0].offset_bytes).collect();
    assert_eq!(steps, [100, 50]);
}

#[test]
fn what_is_lost_or_ends_does_not_mix_up_calls() {
    let events = [
        (1_010, TASK, enter(ReadAt, &[3, 0, 512, 0])),
        // The end of the first was lost.
        (1_050, TASK, enter(ReadAt, &[3, 0, 512, 512])),
        (1_060, TASK, Exit(ReadAt, 512)),
        (1_070, TASK, Exit(ReadAt, 512)),
        (1_080, 8, enter(Flush, &[3])),
        (1_090, 8, What::Ended),
        // A thread that is not there any more.
        (1_100, 500, enter(ReadAt, &[3, 0, 512, 0])),
        (1_110, 500, Exit(ReadAt, 512)),
    ];
    let (out, _, counts) = followed(&[(open(1_200, &[(3, Some(5), 0, 0, 0)]), &events)]);
    assert_eq!(shape(&out), [(50, 0, Reads, 512, 512, Some(10))]);
    assert_eq!((counts.unanswered, counts.unknown), (2, 1));
}

#[test]
fn a_thread_that_begins_has_the_files_of_its_process() {
    let events = [
        (1_005, TASK, What::Begun { task: 200, is_thread: true }),
        (1_006, TASK, What::Begun { task: 300, is_thread: false }),
        (1_010, 200, enter(Close, &[3])),
        (1_020, TASK, enter(ReadAt, &[3, 0, 512, 0])),
        (1_030, TASK, Exit(ReadAt, 512)),
        (1_040, 300, enter(Close, &[3])),
    ];
    let (out, _, counts) = followed(&[(open(1_100, &[(3, Some(5), 0, 0, 0)]), &events)]);
    assert_eq!((out.len(), counts.unknown), (1, 0), "what a child closes stays open in its parent");
}

proptest::proptest! {
    #[test]
    fn any_events_end_and_requests_are_in_order(
        events in proptest::collection::vec((0_u64..500, 0_u32..4, 0_usize..9, 0_u64..4, -3_i64..3), 0..300)
    ) {
        let calls = [ReadAt, Read, WriteAt, Write, Flush, Allocate, Seek, Close, Open];
        let events: Vec<(u64, u32, What)> = events
            .iter()
            .map(|&(at_ns, task, call, number, returned)| {
                let what = if returned < 0 { enter(calls[call], &[number, number, 5, number]) } else { Exit(calls[call], returned) };
                (1_000 + at_ns, task + 1, what)
            })
            .collect();
        let seen: Vec<_> = (0..3).map(|number| (number, Some(u64::from(number)), 4, 8, 0)).collect();
        let (half, rest) = events.split_at(events.len() / 2);
        let (out, devices, _) = followed(&[(open(1_250, &seen), half), (open(1_600, &seen), rest)]);
        proptest::prop_assert!(out.is_sorted_by_key(|one| one.at_ns));
        proptest::prop_assert!(out.iter().all(|one| usize::from(one.device) < devices.len()));
    }
}

#[test]
fn a_position_that_descriptors_share_is_not_made_up() {
    let seen = |position| open(1_300, &[(1, Some(5), position, 900, 0), (3, Some(5), position, 900, 0)]);
    let write =
        |at_ns, task, descriptor| [(at_ns, task, enter(Write, &[descriptor])), (at_ns + 1, task, Exit(Write, 10))];
    let duplicate = [(1_010, TASK, enter(Duplicate, &[3])), (1_011, TASK, Exit(Duplicate, 1))];
    let opened = [(1_001, TASK, Exit(Open, 3))];
    // Both ends write.
    let both = [&opened[..], &duplicate, &write(1_020, TASK, 3), &write(1_030, TASK, 1)].concat();
    let (out, _, counts) = followed(&[(seen(20), &both)]);
    assert_eq!((out.len(), counts.unplaced), (0, 2));
    // One is left, as after a shell has redirected what a program writes.
    let one = [&opened[..], &duplicate, &[(1_015, TASK, enter(Close, &[3]))], &write(1_020, TASK, 1)].concat();
    let (out, _, counts) = followed(&[(seen(10), &one)]);
    assert_eq!((shape(&out), counts.unplaced), (vec![(20, 0, Writes, 0, 10, Some(1))], 0));
    // A child has what is open, and what it opens is its own.
    let forked = [
        &opened[..],
        &write(1_010, TASK, 3),
        &[(1_020, TASK, What::Begun { task: 300, is_thread: false })],
        &write(1_030, TASK, 3),
        &write(1_040, 300, 3),
        &[(1_050, 300, Exit(Open, 1))],
        &write(1_060, 300, 1),
    ]
    .concat();
    let (out, _, counts) = followed(&[(seen(30), &forked)]);
    let offsets: Vec<_> = out.iter().map(|one| (one.at_ns, one.offset_bytes)).collect();
    assert_eq!((offsets, counts.unplaced), (vec![(10, 0), (60, 0)], 2));
    // Appends are at the end all the same.
    let (out, _, counts) = followed(&[(open(1_300, &[(3, Some(5), 0, 30, APPENDS)]), &forked[..8])]);
    assert_eq!((out.len(), counts.unplaced), (3, 0));
}

#[test]
fn a_file_that_was_cut_is_appended_at_its_new_end() {
    let append = |at_ns| [(at_ns, TASK, enter(Write, &[3])), (at_ns + 1, TASK, Exit(Write, 100))];
    let again = [&[(1_210, TASK, enter(Close, &[3])), (1_220, TASK, Exit(Open, 3))][..], &append(1_230)].concat();
    let (out, _, _) = followed(&[
        (open(1_150, &[(3, Some(5), 0, 1_100, APPENDS)]), &append(1_100)),
        (open(1_300, &[(3, Some(5), 0, 150, APPENDS)]), &again),
    ]);
    assert_eq!(out.iter().map(|one| one.offset_bytes).collect::<Vec<_>>(), [1_000, 50]);
    // Another descriptor shows that it was cut, and the first one is looked up again.
    let shown = [&[(1_220, TASK, enter(Flush, &[4])), (1_221, TASK, Exit(Flush, 0))][..], &append(1_230)].concat();
    let seen = |now_ns, size| open(now_ns, &[(3, Some(5), 0, size, APPENDS), (4, Some(5), 0, size, APPENDS)]);
    let (out, _, counts) = followed(&[
        (seen(1_150, 1_100), &append(1_100)),
        (seen(1_300, 150), &shown),
        (seen(1_450, 150), &[]),
        (seen(1_500, 250), &append(1_460)),
    ]);
    let offsets: Vec<_> = out.iter().map(|one| (one.at_ns, one.offset_bytes)).collect();
    assert_eq!((offsets, counts.unplaced), (vec![(100, 1_000), (220, 0), (460, 150)], 1));
}

#[test]
fn after_a_loss_what_was_before_is_unknown() {
    let (mut follow, mut devices, mut out) = (Follow::new(false), Vec::new(), Vec::new());
    let mut fake = open(1_050, &[(3, Some(5), 0, 0, 0)]);
    let tell = |follow: &mut Follow, events: Events<'_>| {
        events.iter().for_each(|&(at_ns, task, what)| follow.tell(at_ns, Told { task, what }));
    };
    follow.begin(1_000);
    tell(&mut follow, &[(1_010, TASK, enter(Flush, &[3]))]);
    follow.prepare(&mut fake);
    // It is under way.
    follow.settle(1_060, &mut devices, &mut out);
    let read = |at_ns, task| [(at_ns, task, enter(ReadAt, &[3, 0, 512, 0])), (at_ns + 1, task, Exit(ReadAt, 512))];
    tell(&mut follow, &read(1_100, 8));
    follow.prepare(&mut fake);
    follow.doubt(1_200);
    tell(&mut follow, &[(1_210, TASK, Exit(Flush, 0))]);
    tell(&mut follow, &read(1_220, 8));
    fake.now_ns = 1_300;
    follow.prepare(&mut fake);
    follow.settle(1_400, &mut devices, &mut out);
    let counts = follow.finish(&mut devices, &mut out);
    assert_eq!(shape(&out), [(220, 0, Reads, 0, 512, Some(1))]);
    assert_eq!((counts.unanswered, counts.unknown), (1, 1));
}

#[test]
fn so_many_descriptors_that_they_are_forgotten_do_not_mix_up_files() {
    let mut follow = Follow::new(false);
    let (mut devices, mut out) = (Vec::new(), Vec::new());
    follow.begin(1_000);
    let mut fake = open(0, &[]);
    fake.open = (0..500).map(|descriptor| (descriptor, (Some(u64::from(descriptor) % 40), 0, 0, 0))).collect();
    for batch in 0..20 {
        for descriptor in 0..25 {
            let (at_ns, number) = (1_000 + batch * 1_000 + descriptor, batch * 25 + descriptor);
            let offset = number % 40 * 512;
            follow.tell(at_ns, Told { task: TASK, what: enter(ReadAt, &[number, 0, 512, offset]) });
            follow.tell(at_ns, Told { task: TASK, what: Exit(ReadAt, 512) });
        }
        fake.now_ns = 1_500 + batch * 1_000;
        follow.prepare(&mut fake);
        // It settles a batch later.
        follow.settle(1_000 + batch * 1_000, &mut devices, &mut out);
    }
    let counts = follow.finish(&mut devices, &mut out);
    assert_eq!((out.len(), counts.unknown), (500, 0));
    assert!(out.iter().all(|one| one.offset_bytes == u64::from(one.device) * 512));
}

#[test]
fn rings_are_of_processes_that_are_there() {
    let mut follow = Follow::new(false);
    let mut fake = open(1_050, &[]);
    for (at_ns, task, what) in [(1_010, TASK, Exit(Call::RingSetup, 5)), (1_020, 8, Exit(Call::RingSetup, -1))] {
        follow.tell(at_ns, Told { task, what });
    }
    follow.prepare(&mut fake);
    assert!(follow.has_new_rings() && follow.has_task(TASK) && !follow.has_task(99));
    assert_eq!((follow.take_new_rings(), follow.has_new_rings()), (vec![TASK], false));
}
