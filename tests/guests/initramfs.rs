//! An initramfs: the format that the kernel unpacks (newc), written here since nothing else of it is needed.

use std::fs;
use std::path::Path;

/// Writes an archive of these files, each executable, in folders of their own.
pub fn write(path: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    let mut archive = Vec::new();
    let mut folders = std::collections::BTreeSet::from(["dev".to_owned()]);
    for (name, _) in files {
        let parts: Vec<&str> = name.split('/').collect();
        folders.extend((1..parts.len()).map(|depth| parts[..depth].join("/")));
    }
    for (at, folder) in folders.iter().enumerate() {
        entry(&mut archive, at + 1, folder, 0o040_755, &[], (0, 0));
    }
    // The first process has nowhere to say anything before this is there.
    entry(&mut archive, folders.len() + 1, "dev/console", 0o020_600, &[], (5, 1));
    for (at, (name, bytes)) in files.iter().enumerate() {
        entry(&mut archive, folders.len() + 2 + at, name, 0o100_755, bytes, (0, 0));
    }
    entry(&mut archive, 0, "TRAILER!!!", 0, &[], (0, 0));
    fs::write(path, archive)
}

fn entry(archive: &mut Vec<u8>, number: usize, name: &str, mode: u32, bytes: &[u8], device: (u32, u32)) {
    let links = 1;
    let size = bytes.len();
    // Number, mode, user, group, links, time, size, device of the file, device that it is, length of the name, sum.
    let header = format!(
        "070701{number:08X}{mode:08X}{:08X}{:08X}{links:08X}{:08X}{size:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
        0,
        0,
        0,
        0,
        0,
        device.0,
        device.1,
        name.len() + 1,
        0
    );
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(bytes);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}
