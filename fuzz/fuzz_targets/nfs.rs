//! Any bytes as what an NFS server may send, and any text as an address or an oranfstab: nothing panics, no more data are handed on than
//! came, and what was read is printed so that it can be read again. The first byte chooses what is read, and how it is cut in pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll::config::nfs::{NfsAddress, Oranfstab};
use plimsoll::targets::nfs::wire::{self, Fault, Reader, Records, Sink, Take};

const MOST_BYTES: u32 = 8192;

/// Takes everything for READs and counts their data.
#[derive(Default)]
struct Data {
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
        let Ok(read) = wire::read_head(&mut reader)? else { return Ok(Take::Nothing) };
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
    let piece = usize::from(choice >> 3) * 9 + 1;
    let reader = Reader::new(bytes);
    match choice & 7 {
        0 => {
            let (mut records, mut data) = (Records::new(MOST_BYTES), Data::default());
            let _ = bytes.chunks(piece).try_for_each(|piece| records.feed(piece, &mut data));
            assert!(data.bytes <= data.announced_bytes && data.bytes <= bytes.len() as u64);
        }
        1 => drop((wire::write_done(reader), wire::commit_done(reader), wire::removed(reader), wire::renamed(reader))),
        2 => drop((wire::attributes(reader), wire::looked_up(reader), wire::created(reader))),
        3 => drop((wire::fs_info(reader), wire::fs_stat(reader))),
        4 => drop((wire::mounted(reader), wire::port(reader))),
        5 => drop(wire::reply_head(&mut reader.clone())),
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
