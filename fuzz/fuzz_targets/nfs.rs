//! Any bytes as what an NFS server may send, and any text as an address or an oranfstab: nothing panics, no more data are handed on than
//! came, and what was read is printed so that it can be read again. The first byte chooses what is read, and how it is cut in pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll::config::nfs::{NfsAddress, Oranfstab};
use plimsoll::targets::nfs::wire::nfs4::{self, Results, Slot};
use plimsoll::targets::nfs::wire::{self, Fault, Reader, Records, Sink, Take, nfs3};

const MOST_BYTES: u32 = 8192;

/// What a reply of version 4.1 is taken for the answer in.
const SLOT: Slot = Slot { session: [0; 16], slot: 0, sequence: 1, highest: 63 };

/// Takes everything for READs and counts their data.
#[derive(Default)]
struct Data {
    /// Of version 4.1, in a session.
    is_in_session: bool,
    announced_bytes: u64,
    bytes: u64,
    ended: u64,
}

impl Sink for Data {
    fn head(&mut self, bytes: &[u8], _is_whole: bool) -> Result<Take, Fault> {
        let mut reader = Reader::new(bytes);
        if wire::reply_head(&mut reader)?.accepted.is_err() {
            return Ok(Take::Nothing);
        }
        let read = if self.is_in_session {
            let read = Results::begin(reader).and_then(|mut results| {
                nfs4::sequenced(&mut results, &SLOT)?;
                let head = nfs4::read_head(&mut results)?;
                reader = results.rest();
                Ok(head)
            });
            nfs4::told(read)?
        } else {
            nfs3::read_head(&mut reader)?
        };
        let Ok(read) = read else { return Ok(Take::Nothing) };
        if read.bytes > MOST_BYTES {
            return Err(Fault::Wrong("more than was asked"));
        }
        self.announced_bytes += u64::from(read.bytes);
        Ok(Take::Data { head_bytes: bytes.len() - reader.rest().len(), data_bytes: read.bytes })
    }

    fn data(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
    }

    fn data_end(&mut self) {
        self.ended += 1;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let piece = usize::from(choice >> 4) * 18 + 1;
    let reader = Reader::new(bytes);
    match choice & 15 {
        kind @ (0 | 8) => {
            let (mut records, mut data) =
                (Records::new(MOST_BYTES), Data { is_in_session: kind == 8, ..Data::default() });
            let _ = bytes.chunks(piece).try_for_each(|piece| records.feed(piece, &mut data));
            assert!(data.bytes <= data.announced_bytes && data.bytes <= bytes.len() as u64);
        }
        1 => drop((nfs3::write_done(reader), nfs3::commit_done(reader), nfs3::removed(reader), nfs3::renamed(reader))),
        2 => drop((nfs3::attributes(reader), nfs3::looked_up(reader), nfs3::created(reader))),
        3 => drop((nfs3::fs_info(reader), nfs3::fs_stat(reader))),
        4 => drop((wire::mounted(reader), wire::port(reader))),
        5 => drop(wire::reply_head(&mut reader.clone())),
        kind @ 9..=11 => {
            let Ok(results) = Results::begin(reader) else { return };
            let of = || results;
            match kind {
                9 => drop((
                    nfs4::write_done(&mut of()),
                    nfs4::commit_done(&mut of()),
                    nfs4::removed(&mut of()),
                    nfs4::renamed(&mut of()),
                )),
                10 => drop((
                    nfs4::attributes(&mut of()),
                    nfs4::looked_up(&mut of()),
                    nfs4::created(&mut of()),
                    nfs4::opened(&mut of()),
                )),
                _ => drop((
                    (nfs4::root(&mut of()), nfs4::server(&mut of()), nfs4::space(&mut of()), nfs4::closed(&mut of())),
                    (
                        nfs4::exchanged_id(&mut of()),
                        nfs4::created_session(&mut of()),
                        nfs4::sequenced(&mut of(), &SLOT),
                    ),
                )),
            }
        }
        6 => {
            if let Ok(address) = String::from_utf8_lossy(bytes).parse::<NfsAddress>() {
                assert_eq!(address.to_string().parse::<NfsAddress>().expect("what is printed is read"), address);
            }
        }
        _ => {
            if let Ok(tab) = Oranfstab::parse(&String::from_utf8_lossy(bytes)) {
                let _ = tab.address("/u02/oradata/system01.dbf");
            }
        }
    }
});
