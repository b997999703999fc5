//! Any bytes as what an NFS server may send: see `nfs_entry.rs`.

#![no_main]

#[path = "../nfs_entry.rs"]
mod entry;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    entry::read(bytes);
});
