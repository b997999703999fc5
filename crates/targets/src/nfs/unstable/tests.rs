//! What a COMMIT covers, what is sent again, and who waits for whom.

use super::kept::CHUNK_BYTES;
use super::*;
use proptest::prelude::*;

fn keep(writes: &Writes, writer: &Writer, offset: u64, data: &[u8], verifier: u64) -> bool {
    let sent = writes.number();
    writes.keep(writer, (sent, offset), data, verifier)
}

#[test]
fn a_commit_covers_what_was_answered_before_it_was_sent() {
    let writes = Writes::new(1);
    let writer = writes.open();
    assert!(keep(&writes, &writer, 0, &[1; 10], 7));
    let mark = writes.number();
    assert!(keep(&writes, &writer, 10, &[2; 20], 7));
    assert_eq!(writes.committed(mark, 1, 7), Outcome::Durable);
    assert_eq!(writes.kept_bytes(), 20);
    assert_eq!(writes.latest(100), (1, vec![Piece { offset: 10, data: vec![2; 20] }]));
    // The server begins a new life: nothing is forgotten, and nothing read is trusted.
    assert_eq!(writes.committed(writes.number(), 1, 8), Outcome::Lost);
    assert!(!writes.is_sound(1));
    let early = writes.number();
    writes.taken_again(8);
    assert_eq!(writes.committed(early, 1, 8), Outcome::AskAgain);
    assert_eq!(writes.committed(writes.number(), 1, 8), Outcome::Durable);
    assert!(writes.is_sound(1) && writes.kept_bytes() == 0);
}

#[test]
fn a_restart_is_seen_at_the_next_write_and_over_a_new_connection_nothing_is_trusted() {
    let writes = Writes::new(1);
    let writer = writes.open();
    assert!(keep(&writes, &writer, 0, &[1], 7) && writes.is_sound(1) && !writes.is_sound(2));
    assert!(!keep(&writes, &writer, 1, &[2], 8));
    assert!(!writes.is_sound(1));
    assert_eq!(writes.committed(writes.number(), 2, 8), Outcome::Lost);
}

#[test]
fn whoever_sends_again_waits_for_writes_in_flight_and_others_wait_for_him() {
    let writes = Writes::new(1);
    let (here, there) = (writes.open(), writes.open());
    assert!(writes.begin(&here));
    assert!(writes.hold() && !writes.hold());
    assert!(!writes.is_quiet() && !writes.begin(&there));
    here.end();
    assert!(writes.is_quiet());
    writes.let_go();
    assert!(writes.begin(&there));
}

#[test]
fn a_server_that_restarts_again_and_again_is_given_up_and_room_is_asked_for_by_one() {
    let writes = Writes::new(1);
    let writer = writes.open();
    keep(&writes, &writer, 0, &[1], 7);
    assert_eq!((0..9).filter(|_| writes.may_begin_round()).count(), 5);
    assert_eq!(writes.committed(writes.number(), 1, 7), Outcome::Durable);
    assert!(writes.may_begin_round());
    assert!(writes.may_ask_for_room(5) && !writes.may_ask_for_room(6));
    assert!(writes.may_ask_for_room(7 + ROOM_PATIENCE_NS));
    writes.was_asked_for_room();
    assert!(writes.may_ask_for_room(9));
}

#[test]
fn what_a_thread_wrote_before_it_went_is_kept_and_memory_is_used_again() {
    let writes = Writes::new(1);
    let gone = writes.open();
    keep(&writes, &gone, 0, &[1; 3], 7);
    drop(gone);
    let writer = writes.open();
    assert_eq!(writes.writers().len(), 2);
    for _ in 0..5 {
        (0..3).for_each(|at| assert!(keep(&writes, &writer, at, &vec![9; CHUNK_BYTES / 2], 7)));
        assert_eq!(writes.committed(writes.number(), 1, 7), Outcome::Durable);
    }
    let kept = writer.kept();
    assert_eq!((kept.chunks.len(), kept.spare.len()), (0, 2));
    drop(kept);
    drop(writes.open());
    assert_eq!(writes.writers().len(), 2);
}

proptest! {
    #[test]
    fn later_writes_win_wherever_they_overlap(
        all in prop::collection::vec((0..60_u64, 0..20_usize, 0..3_usize), 0..40), most in 1..50_usize,
    ) {
        let writes = Writes::new(1);
        let writers = [writes.open(), writes.open(), writes.open()];
        let mut file: Vec<Option<u8>> = vec![None; 80];
        for (value, (offset, bytes, writer)) in (0..).zip(&all) {
            keep(&writes, &writers[*writer], *offset, &vec![value; *bytes], 7);
            file[*offset as usize..*offset as usize + bytes].fill(Some(value));
        }
        let (count, pieces) = writes.latest(most);
        prop_assert_eq!(count, all.len() as u64);
        let mut again: Vec<Option<u8>> = vec![None; 80];
        for Piece { offset, data } in pieces {
            prop_assert!((1..=most).contains(&data.len()));
            for (at, value) in (offset as usize..).zip(data) {
                prop_assert_eq!(again[at].replace(value), None, "sent twice");
            }
        }
        prop_assert_eq!(again, file);
    }
}
