//! What is written in version 4.1 reads as RFC 8881 says, answers are read, and any bytes and every damage are refused or read.

use proptest::prelude::*;

use super::super::*;
use super::*;

const SLOT: Slot = Slot { session: [7; 16], slot: 3, sequence: 9, highest: 63 };

/// Builds replies.
#[derive(Debug, Clone, Default)]
struct Reply(Vec<u8>);

impl Reply {
    fn of(results: u32) -> Self {
        Self::default().words(&[0]).bytes(b"tag").words(&[results])
    }

    fn words(mut self, words: &[u32]) -> Self {
        words.iter().for_each(|word| put_u32(&mut self.0, *word));
        self
    }

    fn long(self, long: u64) -> Self {
        self.words(&[(long >> 32) as u32, long as u32])
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        put_bytes(&mut self.0, bytes);
        self
    }

    fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn op(self, op: Op) -> Self {
        self.words(&[op as u32, 0])
    }

    fn sequence(self, slot: &Slot) -> Self {
        self.op(Op::Sequence).fixed(&slot.session).words(&[slot.sequence, slot.slot, 63, 63, 0])
    }

    fn attributes(self) -> Self {
        // type, size, fsid, fileid | numlinks, space_used
        let map = [1 << 1 | 1 << 4 | 1 << 8 | 1 << 20, 1 << (35 - 32) | 1 << (45 - 32)];
        let mut values = Vec::new();
        put_u32(&mut values, 1);
        [8192_u64, 5, 6, 77].into_iter().for_each(|long| values.extend_from_slice(&long.to_be_bytes()));
        put_u32(&mut values, 2);
        values.extend_from_slice(&4096_u64.to_be_bytes());
        self.op(Op::GetAttr).words(&[2, map[0], map[1]]).bytes(&values)
    }

    fn opened(self) -> Self {
        self.op(Op::PutFh)
            .op(Op::Open)
            .words(&[1])
            .fixed(&[5; 12])
            .words(&[1, 0, 1, 0, 2, 4, 2, 0, 1 << 1])
            // No delegation, since nobody wanted one.
            .words(&[3, 0])
    }

    fn read<T>(&self, read: impl Fn(&mut Results<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        Results::begin(Reader::new(&self.0)).and_then(|mut results| read(&mut results))
    }
}

fn valid() -> Vec<Reply> {
    let of = |op| Reply::of(3).sequence(&SLOT).op(Op::PutFh).op(op);
    vec![
        of(Op::Read).words(&[1]).bytes(&[9; 100]),
        of(Op::Write).words(&[100, 0]).long(4711),
        of(Op::Commit).long(4711),
        Reply::of(4).opened().op(Op::GetFh).bytes(&[8; 128]).attributes(),
        Reply::of(4).op(Op::PutFh).op(Op::Lookup).op(Op::GetFh).bytes(&[8; 20]).attributes(),
        Reply::of(1).op(Op::CreateSession).fixed(&[7; 16]).words(&[1, 0, 0, 9000, 9001, 900, 8, 64, 0]),
        Reply::of(1).op(Op::ExchangeId).long(11).words(&[1, 0, 0]),
    ]
}

fn read_all(reply: &[u8]) -> usize {
    let Ok(results) = Results::begin(Reader::new(reply)) else { return 0 };
    let of = || {
        let mut results = results;
        let _ = sequenced(&mut results, &SLOT);
        results
    };
    let mut good = 0;
    for results in [results, of()] {
        let fresh = || results;
        good += usize::from(read_head(&mut fresh()).is_ok()) + usize::from(write_done(&mut fresh()).is_ok());
        good += usize::from(commit_done(&mut fresh()).is_ok()) + usize::from(attributes(&mut fresh()).is_ok());
        good += usize::from(created(&mut fresh()).is_ok()) + usize::from(looked_up(&mut fresh()).is_ok());
        good += usize::from(opened(&mut fresh()).is_ok()) + usize::from(closed(&mut fresh()).is_ok());
        good += usize::from(removed(&mut fresh()).is_ok()) + usize::from(renamed(&mut fresh()).is_ok());
        good += usize::from(root(&mut fresh()).is_ok()) + usize::from(server(&mut fresh()).is_ok());
        good += usize::from(space(&mut fresh()).is_ok()) + usize::from(exchanged_id(&mut fresh()).is_ok());
        good += usize::from(created_session(&mut fresh()).is_ok());
    }
    good
}

#[test]
fn a_read_in_a_session_is_written_word_for_word() {
    let mut call = Vec::new();
    let mut compound = Compound::begin(&mut call);
    put_sequence(&mut compound, &SLOT, true);
    put_read(&mut compound, (&FileHandle::new(&[1, 2, 3]).unwrap(), StateId([4; 12])), 1 << 40, 8192);
    let mut reader = Reader::new(&call);
    assert_eq!((reader.u32(), reader.u32(), reader.u32()), (Ok(0), Ok(1), Ok(3)), "tag, minor version, operations");
    assert_eq!((reader.u32(), reader.fixed(16)), (Ok(53), Ok(&[7; 16][..])));
    let words: Vec<u32> = (0..4).map(|_| reader.u32().unwrap()).collect();
    assert_eq!(words, [9, 3, 63, 1], "sequence, slot, highest slot, to be kept");
    assert_eq!((reader.u32(), reader.bytes(128)), (Ok(22), Ok(&[1, 2, 3][..])));
    assert_eq!((reader.u32(), reader.u32(), reader.fixed(12)), (Ok(25), Ok(0), Ok(&[4; 12][..])));
    assert_eq!((reader.u64(), reader.u32(), reader.rest()), (Ok(1 << 40), Ok(8192), &[][..]));
}

#[test]
fn answers_are_read() {
    let all = valid();
    let in_session =
        |reply: &Reply| reply.read(|results| sequenced(results, &SLOT).map(|()| results.rest().rest().len()));
    assert!(all[..3].iter().all(|reply| in_session(reply).is_ok()));
    let head = all[0].read(|results| sequenced(results, &SLOT).and_then(|()| read_head(results)));
    assert_eq!(head, Ok(ReadHead { bytes: 100, is_end: true }));
    let done = all[1].read(|results| sequenced(results, &SLOT).and_then(|()| write_done(results)));
    assert_eq!(done, Ok(WriteDone { bytes: 100, committed: Committed::Not, verifier: 4711 }));
    let made = all[3].read(created).unwrap();
    let attributes = made.attributes.unwrap();
    assert_eq!((made.handle.unwrap().as_bytes().len(), made.state), (128, Some(StateId([5; 12]))));
    assert_eq!((attributes.kind, attributes.size_bytes, attributes.fileid), (FileKind::Regular, 8192, 77));
    assert_eq!((attributes.links, attributes.used_bytes, attributes.fsid), (2, 4096, 5 ^ 6 << 32));
    assert!(all[4].read(looked_up).is_ok_and(|(handle, _)| handle.as_bytes() == [8; 20]));
    let (session, channel) = all[5].read(created_session).unwrap();
    assert_eq!((session, channel.reply_bytes, channel.slots), ([7; 16], 9001, 64));
    assert_eq!(all[6].read(exchanged_id), Ok((11, 1)));
}

#[test]
fn refusals_and_what_cannot_be_are_told_apart() {
    let refused = Reply::of(2).sequence(&SLOT).words(&[Op::PutFh as u32, 70]);
    let read = |results: &mut Results<'_>| sequenced(results, &SLOT).and_then(|()| read_head(results));
    assert_eq!(refused.read(read), Err(Problem::Refused(Status::STALE)));
    let lost = Reply::of(1).words(&[Op::Sequence as u32, 10052]);
    assert_eq!(lost.read(read), Err(Problem::Refused(Status::BADSESSION)));
    assert_eq!(Status::BADSESSION.to_string(), "NFSERR_BADSESSION");
    let other = Slot { sequence: 10, ..SLOT };
    assert_eq!(Reply::of(1).sequence(&other).read(read), Err(Fault::Wrong("the answer of another slot").into()));
    let minor = Reply::default().words(&[10021]).bytes(&[]).words(&[0]);
    assert_eq!(minor.read(read), Err(Problem::Refused(Status::MINOR_VERS_MISMATCH)));
    let delegated = Reply::of(2).op(Op::PutFh).op(Op::Open).words(&[1]).fixed(&[5; 12]);
    let delegated = delegated.words(&[1, 0, 1, 0, 2, 4, 0, 1]);
    assert_eq!(delegated.read(opened), Err(Fault::Wrong("a delegation that was not requested").into()));
    let unasked = Reply::of(2).op(Op::PutFh).op(Op::GetAttr).words(&[1, 1 << 5]).bytes(&[]);
    assert_eq!(unasked.read(attributes), Err(Fault::Wrong("attributes that were not requested").into()));
    let nothing = Reply::of(2).op(Op::PutFh).op(Op::GetAttr).words(&[0]).bytes(&[]);
    assert_eq!(nothing.read(attributes), Err(Fault::Wrong("a file without kind, length or number").into()));
    let no_slots = Reply::of(1).op(Op::CreateSession).fixed(&[7; 16]).words(&[1, 0, 0, 1, 1, 1, 8, 0, 0]);
    assert_eq!(no_slots.read(created_session), Err(Fault::Wrong("a session without slots").into()));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), small in prop::collection::vec(0..4_u8, 0..300)) {
        read_all(&bytes);
        read_all(&small);
    }

    #[test]
    fn damage_of_valid_replies_causes_no_panic(which in 0..7_usize, at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut reply = valid()[which].0.clone();
        prop_assert!(read_all(&reply) > 0);
        let place = at.index(reply.len());
        reply[place] = with;
        read_all(&reply);
        reply.truncate(cut.index(reply.len()));
        read_all(&reply);
    }
}
