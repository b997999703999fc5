//! Files on NFS servers, from addresses and an `oranfstab` to where they lie.

use std::path::Path;
use std::sync::Arc;

use crate::cli::exit::Failure;
use crate::cli::say;
use model::config::nfs::{NfsAddress, Oranfstab};
use model::plain;
use model::units::Bytes;
use targets::block::VirtualPlace;
use targets::nfs::NfsDirectory;

/// Reads an address.
pub(super) fn address(text: &str) -> Result<NfsAddress, Failure> {
    text.parse::<NfsAddress>()
        .map_err(|problem| Failure::new(format_args!("`{text}`: {problem}")).with_hint(problem.hint()))
}

/// The longest `oranfstab`.
const MAX_OFSTAB: Bytes = Bytes::mib(1);

/// The addresses that an `oranfstab` has for the database's paths.
pub(super) fn by_oranfstab(file: &Path, paths: &[String]) -> Result<Vec<NfsAddress>, Failure> {
    let shown = file.display();
    let text = plain::read_named_text(file, MAX_OFSTAB)
        .map_err(|error| Failure::new(format_args!("cannot read `{shown}`: {error}")))?;
    let wrong = |problem: model::config::nfs::OranfstabProblem| {
        Failure::new(format_args!("`{shown}`: {problem}")).with_hint(problem.hint())
    };
    let tab = Oranfstab::parse(&text).map_err(wrong)?;
    tab.notes.iter().for_each(|note| say::note(format_args!("`{shown}`, {note}")));
    paths.iter().map(|path| tab.address(path).map_err(wrong)).collect()
}

/// Whether files lie in one directory and are reached in one way, and so share connections.
fn share_a_mount(one: &NfsAddress, other: &NfsAddress) -> bool {
    one.directory_and_name().0 == other.directory_and_name().0
        && NfsAddress { path: one.path.clone(), ..other.clone() } == *one
}

/// Of files that share a mount, the first.
pub(super) fn mounts(addresses: &[NfsAddress]) -> impl Iterator<Item = &NfsAddress> {
    let is_first =
        |(at, address): &(usize, &NfsAddress)| !addresses[..*at].iter().any(|other| share_a_mount(other, address));
    addresses.iter().enumerate().filter(is_first).map(|(_, address)| address)
}

/// Mounts what the files lie in. Files in one directory that are reached in one way share a mount.
pub(super) fn connect(addresses: &[NfsAddress]) -> Result<Vec<VirtualPlace>, Failure> {
    let mut known: Vec<(NfsAddress, Arc<NfsDirectory>)> = Vec::new();
    let mut places = Vec::new();
    for address in addresses {
        let (_, name) = address.directory_and_name();
        let directory = match known.iter().find(|(other, _)| share_a_mount(other, address)) {
            Some((_, directory)) => Arc::clone(directory),
            None => {
                let mounted = NfsDirectory::of_file(address).map_err(|error| {
                    Failure::new(format_args!("cannot use `{address}`: {error}")).with_hint(error.hint())
                })?;
                say::note(mounted.words());
                let mounted = Arc::new(mounted);
                known.push((address.clone(), Arc::clone(&mounted)));
                mounted
            }
        };
        places.push(VirtualPlace::new(directory, name.to_owned()));
    }
    Ok(places)
}
