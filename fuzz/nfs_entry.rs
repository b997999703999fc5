//! Any bytes as what an NFS server may send, and any text as an address or an oranfstab: nothing panics, no more data are handed on than
//! came, and what was read is printed so that it can be read again. The first byte chooses what is read, and how it is cut in pieces.
//! The fuzz target `nfs` and a test of every day come in here.

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

/// Reads the bytes. Returns whether they were what they were taken for.
pub fn read(bytes: &[u8]) -> bool {
    let Some((choice, bytes)) = bytes.split_first() else { return false };
    let piece = usize::from(choice >> 4) * 18 + 1;
    let reader = Reader::new(bytes);
    match choice & 15 {
        kind @ (0 | 8) => {
            let (mut records, mut data) =
                (Records::new(MOST_BYTES), Data { is_in_session: kind == 8, ..Data::default() });
            let _ = bytes.chunks(piece).try_for_each(|piece| records.feed(piece, &mut data));
            assert!(data.bytes <= data.announced_bytes && data.bytes <= bytes.len() as u64);
            data.ended > 0
        }
        1 => {
            nfs3::write_done(reader).is_ok()
                | nfs3::commit_done(reader).is_ok()
                | nfs3::removed(reader).is_ok()
                | nfs3::renamed(reader).is_ok()
        }
        2 => nfs3::attributes(reader).is_ok() | nfs3::looked_up(reader).is_ok() | nfs3::created(reader).is_ok(),
        3 => nfs3::fs_info(reader).is_ok() | nfs3::fs_stat(reader).is_ok(),
        4 => wire::mounted(reader).is_ok() | wire::port(reader).is_ok(),
        5 => wire::reply_head(&mut reader.clone()).is_ok(),
        kind @ 9..=12 => Results::begin(reader).is_ok_and(|results| read_results(kind, results)),
        6 => {
            let address = String::from_utf8_lossy(bytes).parse::<NfsAddress>();
            address.is_ok_and(|address| {
                assert_eq!(address.to_string().parse::<NfsAddress>().expect("what is printed is read"), address);
                true
            })
        }
        _ => {
            let tab = Oranfstab::parse(&String::from_utf8_lossy(bytes));
            tab.is_ok_and(|tab| tab.address("/u02/oradata/system01.dbf").is_ok())
        }
    }
}

/// Of version 4.1, behind SEQUENCE where there is one.
fn read_results(kind: u8, results: Results<'_>) -> bool {
    let of = || {
        let mut later = results;
        if nfs4::sequenced(&mut later, &SLOT).is_ok() { later } else { results }
    };
    match kind {
        9 => {
            nfs4::write_done(&mut of()).is_ok()
                | nfs4::commit_done(&mut of()).is_ok()
                | nfs4::removed(&mut of()).is_ok()
                | nfs4::renamed(&mut of()).is_ok()
        }
        10 => {
            nfs4::attributes(&mut of()).is_ok()
                | nfs4::looked_up(&mut of()).is_ok()
                | nfs4::created(&mut of()).is_ok()
                | nfs4::opened(&mut of()).is_ok()
        }
        11 => {
            nfs4::root(&mut of()).is_ok()
                | nfs4::server(&mut of()).is_ok()
                | nfs4::space(&mut of()).is_ok()
                | nfs4::closed(&mut of()).is_ok()
        }
        _ => {
            nfs4::exchanged_id(&mut of()).is_ok()
                | nfs4::created_session(&mut of()).is_ok()
                | nfs4::completed(&mut of()).is_ok()
        }
    }
}
