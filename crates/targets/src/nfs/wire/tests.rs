//! Any bytes as what a server may send, and valid replies cut anywhere.

use proptest::prelude::*;

use super::nfs3::*;
use super::*;

/// Takes READs with `xid` 1 and counts everything else.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    data: Vec<Vec<u8>>,
    ended: usize,
    others: usize,
}

impl Sink for Seen {
    fn head(&mut self, bytes: &[u8], _is_whole: bool) -> Result<Take, Fault> {
        let mut reader = Reader::new(bytes);
        let head = reply_head(&mut reader)?;
        if head.xid != 1 {
            self.others += 1;
            return Ok(Take::Nothing);
        }
        match read_head(&mut reader)? {
            Ok(read) => {
                self.data.push(Vec::new());
                Ok(Take::Data { head_bytes: bytes.len() - reader.rest().len(), data_bytes: read.bytes })
            }
            Err(_) => {
                self.others += 1;
                Ok(Take::Nothing)
            }
        }
    }

    fn data(&mut self, bytes: &[u8]) {
        self.data.last_mut().unwrap().extend_from_slice(bytes);
    }

    fn data_end(&mut self) {
        self.ended += 1;
    }
}

const MOST: u32 = 5_000;

/// The reply to a READ, or to something else.
fn reply(xid: u32, verifier: usize, attributes: bool, data: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    [xid, 1, 0, 7].into_iter().for_each(|word| put_u32(&mut reply, word));
    put_bytes(&mut reply, &vec![7; verifier]);
    [0, 0, u32::from(attributes)].into_iter().for_each(|word| put_u32(&mut reply, word));
    reply.resize(reply.len() + if attributes { 84 } else { 0 }, 1);
    [data.len() as u32, 0].into_iter().for_each(|word| put_u32(&mut reply, word));
    put_bytes(&mut reply, data);
    reply
}

fn record(reply: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let mut record = Vec::new();
    let pieces = reply.chunks(fragment_bytes);
    let last = pieces.len() - 1;
    for (number, piece) in pieces.enumerate() {
        put_u32(&mut record, piece.len() as u32 | if number == last { 1 << 31 } else { 0 });
        record.extend_from_slice(piece);
    }
    record
}

proptest! {
    #[test]
    fn replies_are_the_same_however_they_are_cut(
        replies in prop::collection::vec((0..3_u32, 0..=400_usize, any::<bool>(), prop::collection::vec(any::<u8>(), 0..MOST as usize), 1..3_000_usize), 1..6),
        cuts in prop::collection::vec(1..4_000_usize, 1..8), straight in any::<bool>(),
    ) {
        let mut stream = Vec::new();
        let mut expected = Seen::default();
        for (xid, verifier, attributes, data, fragment_bytes) in replies {
            stream.extend(record(&reply(xid, verifier, attributes, &data), fragment_bytes));
            if xid == 1 {
                expected.data.push(data);
                expected.ended += 1;
            } else {
                expected.others += 1;
            }
        }
        let (mut records, mut seen) = (Records::new(MOST), Seen::default());
        let (mut rest, mut cuts) = (stream.as_slice(), cuts.iter().cycle());
        while !rest.is_empty() {
            let next = records.data_next().min(rest.len());
            if straight && next > 0 {
                seen.data.last_mut().unwrap().extend_from_slice(&rest[..next]);
                records.took_data(next, &mut seen).unwrap();
                rest = &rest[next..];
                continue;
            }
            let (now, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            records.feed(now, &mut seen).unwrap();
            rest = later;
        }
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600), small in prop::collection::vec(0..4_u8, 0..300), cut in 1..64_usize) {
        for bytes in [&bytes, &small] {
            let reader = Reader::new(bytes);
            let _ = (reply_head(&mut reader.clone()), read_head(&mut reader.clone()), write_done(reader), commit_done(reader));
            let _ = (attributes(reader), looked_up(reader), created(reader), removed(reader), fs_info(reader), fs_stat(reader));
            let _ = (port(reader), mounted(reader));
            let (mut records, mut seen) = (Records::new(MOST), Seen::default());
            for piece in bytes.chunks(cut) {
                if records.feed(piece, &mut seen).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn damage_of_valid_replies_causes_no_panic(at in 0..600_usize, with in any::<u8>(), cut in 1..64_usize) {
        let mut stream = record(&reply(1, 8, true, &[9; 300]), 200);
        let at = at % stream.len();
        stream[at] = with;
        let (mut records, mut seen) = (Records::new(MOST), Seen::default());
        let _ = stream.chunks(cut).try_for_each(|piece| records.feed(piece, &mut seen));
        prop_assert!(seen.data.iter().map(Vec::len).sum::<usize>() <= stream.len());
    }
}

#[test]
fn a_call_has_its_mark_its_head_and_who_sends_it() {
    let mut call = vec![0xee; 3];
    let credential = Credential::new(b"db1", 1000, 100, &[7; 20]);
    let begin = begin_call(&mut call, 5, NFS3, Procedure::Read as u32, &credential);
    put_read(&mut call, &FileHandle::new(&[1, 2, 3]).unwrap(), 1 << 40, 8192);
    end_call(&mut call, begin);
    let call = &call[3..];
    let mut reader = Reader::new(call);
    assert_eq!(reader.u32().unwrap(), 1 << 31 | (call.len() as u32 - 4));
    let head: Vec<u32> = (0..6).map(|_| reader.u32().unwrap()).collect();
    assert_eq!(head, [5, 0, 2, 100_003, 3, 6]);
    assert_eq!(reader.u32().unwrap(), 1);
    let mut body = Reader::new(reader.bytes(400).unwrap());
    body.u32().unwrap();
    assert_eq!(body.bytes(255).unwrap(), b"db1");
    // AUTH_SYS has room for 16 groups.
    assert_eq!((body.u32(), body.u32(), body.u32(), body.rest().len()), (Ok(1000), Ok(100), Ok(16), 64));
    assert_eq!((reader.u32(), reader.u32()), (Ok(0), Ok(0)));
    assert_eq!(reader.bytes(64).unwrap(), [1, 2, 3]);
    assert_eq!((reader.u64(), reader.u32(), reader.rest()), (Ok(1 << 40), Ok(8192), &[][..]));
}

#[test]
fn refusals_and_rejections_are_told_apart() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let head = |bytes: &[u8]| reply_head(&mut Reader::new(bytes));
    assert_eq!(head(&words(&[9, 1, 0, 0, 0, 2, 2, 4])).unwrap().accepted, Err(Rejection::OtherVersion(2, 4)));
    assert_eq!(head(&words(&[9, 1, 1, 1, 5])).unwrap().accepted, Err(Rejection::Credential(5)));
    assert_eq!(head(&words(&[9, 0, 0])), Err(Fault::Wrong("a message that is not a reply")));
    assert_eq!(head(&words(&[9, 1, 0, 0, 404])), Err(Fault::Wrong("a length over its limit")));
    let stale = words(&[70]);
    assert_eq!(attributes(Reader::new(&stale)), Ok(Err(Status::STALE)));
    assert_eq!(
        (Status(10008).to_string(), Status(4711).to_string()),
        ("NFSERR_JUKEBOX".to_owned(), "status 4711".to_owned())
    );
    assert_eq!(port(Reader::new(&words(&[0]))), Ok(None));
    assert_eq!(port(Reader::new(&words(&[65_536]))), Err(Fault::Wrong("a port over 65535")));
}
