//! `--connections`: storage that has some, and what the user should know of how many are varied.

use super::arguments::Storage;
use super::nfs::mounts;
use crate::cli::exit::Failure;
use model::config::io::{ConnectionList, Connections, IoOptions};
use model::config::nfs::DEFAULT_OUTSTANDING;
use model::record::facts::NFS_CONNECTIONS;

/// Requests outstanding unless the user says otherwise: what one connection takes, so that its bound is not what is measured.
pub(super) const DEFAULT_DEPTH: u32 = 64;

/// Refuses to vary connections of what has none, or what the address says already.
pub(super) fn check(storage: &Storage, asked: &Connections) -> Result<(), Failure> {
    if *asked == Connections::Addressed {
        return Ok(());
    }
    let fail = |message: String, hint: &str| Err(Failure::new(message).with_hint(hint.to_owned()));
    match storage {
        Storage::Nfs { addresses, .. } => match addresses.iter().find(|address| address.connections.is_some()) {
            Some(address) => {
                fail(format!("`{address}` says how many connections, and `--connections` varies them"), "leave one out")
            }
            None => Ok(()),
        },
        Storage::Paths(paths) => {
            let path = paths.first().map_or_else(String::new, |path| path.display().to_string());
            fail(
                format!(
                    "`--connections` varies connections to an NFS server, and `{path}` is reached through the kernel"
                ),
                "name the file as `nfs://SERVER/EXPORT/FILE`; the kernel's own client has as many connections as its mount's \
                 `nconnect` says",
            )
        }
        Storage::Group { .. } => fail(
            "`--connections` varies connections to an NFS server, and a disk group is its members'".to_owned(),
            "name a file as `nfs://SERVER/EXPORT/FILE`, or write `connections=N` into the members' addresses",
        ),
        Storage::Simulated(_) => fail(
            "`--connections` varies connections to an NFS server, and simulated storage has none".to_owned(),
            "name a file as `nfs://SERVER/EXPORT/FILE`",
        ),
    }
}

/// What is known of the numbers before the load.
#[derive(Default)]
pub(super) struct Varied {
    /// For the record: which numbers these are.
    pub(super) facts: Vec<(String, String)>,
    /// Which of them cannot all be used, or cannot hold the load.
    pub(super) notes: Vec<String>,
}

/// Looks what the numbers come to, with so many threads over all parts; nothing where they are not varied.
pub(super) fn look(asked: &IoOptions, storage: &Storage, threads: u32) -> Varied {
    let mut varied = Varied::default();
    let (Connections::Each { list, .. }, Storage::Nfs { addresses, .. }) = (&asked.connections, storage) else {
        return varied;
    };
    let ConnectionList(numbers) = list;
    let depth = asked.depths.0.first().copied().unwrap_or(1);
    // Files of one directory share connections, others have their own.
    let paths = mounts(addresses).map(|address| address.routes().count() as u32).sum::<u32>().max(1);
    let outstanding = addresses.iter().map(|address| address.outstanding.unwrap_or(DEFAULT_OUTSTANDING));
    let outstanding = outstanding.min().unwrap_or(1);
    let all = |each: u32| each.saturating_mul(paths).saturating_mul(threads);
    let (least, most) = (numbers.iter().copied().min().unwrap_or(1), numbers.iter().copied().max().unwrap_or(1));
    let idle: Vec<String> = numbers
        .iter()
        .filter(|each| all(**each) > depth)
        .map(|each| format!("{each} ({} in all)", all(*each)))
        .collect();
    if !idle.is_empty() {
        varied.notes.push(format!(
            "with {depth} outstanding some connections of {} have nothing to do: use `--depth {}` or more",
            idle.join(", "),
            all(most)
        ));
    }
    let room = all(least).saturating_mul(outstanding);
    if room < depth {
        varied.notes.push(format!(
            "with {least} the connections take {room} of the {depth} outstanding, and the others wait here: that is compared as \
             well; use `--depth {room}`, or a larger `outstanding=` in the address"
        ));
    }
    varied.facts.push((NFS_CONNECTIONS.to_owned(), list.to_string()));
    varied
}
