//! Traces made by the real tools where they are installed, and by hand where they are not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use test_support::skip::skip;

const SIZE: u64 = 160 * MIB;

/// Bytes and where they stand.
type Parts<'a> = &'a [(u64, &'a [u8])];

/// What is found on a device that holds these bytes at these places and zeroes elsewhere.
fn found_among(size_bytes: u64, parts: Parts<'_>) -> Vec<String> {
    let mut read = |offset: u64, length: usize| {
        assert!(offset + length as u64 <= size_bytes, "read beyond the end of the device");
        let mut bytes = vec![0; length];
        for (start, part) in parts {
            for (at, byte) in part.iter().enumerate() {
                if let Some(place) = (start + at as u64).checked_sub(offset).filter(|place| *place < length as u64) {
                    bytes[place as usize] = *byte;
                }
            }
        }
        Ok(bytes)
    };
    find(&mut read, size_bytes).unwrap().into_iter().map(|signature| signature.kind).collect()
}

fn found_in(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap();
    let size_bytes = file.metadata().unwrap().len();
    let mut read = |offset: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map(|()| bytes)
    };
    find(&mut read, size_bytes).unwrap().into_iter().map(|signature| signature.kind).collect()
}

#[test]
fn every_mark_of_the_table_is_found_where_it_stands() {
    for mark in marks::MARKS {
        let offset = mark.place.offset(SIZE).unwrap();
        let found = found_among(SIZE, &[(offset, mark.bytes)]);
        assert!(found.iter().any(|kind| kind == mark.kind), "{}: {found:?}", mark.kind);
        let found = found_among(SIZE, &[(offset + 1, mark.bytes)]);
        assert!(!found.iter().any(|kind| kind == mark.kind), "{} was found one byte away", mark.kind);
    }
}

#[test]
fn an_image_of_each_format_is_recognised_without_another_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    for image in images::all() {
        image.write(&path);
        let found = found_in(&path);
        assert!(found.contains(&image.kind), "{}: {found:?}", image.kind);
    }
}

#[test]
fn what_only_begins_like_a_format_is_not_taken_for_it() {
    let nearly: [(&str, Parts); 9] = [
        ("flags that gzip has not", &[(0, b"\x1f\x8b\x08\xe0")]),
        ("BZh without a block", &[(0, b"BZh9 and more")]),
        ("PostgreSQL's places in the wrong order", &[(10, b"\x04\0\x40\x1f\x28\0\0\x20\x04\x20")]),
        ("a catalogue of the 13th month", &[(0, b"\x01\x02\x03\x04\x05\x06\x07\x08\x14\x05\0\0\xc5\x86\x0d\x0c")]),
        ("a first page that names two tablespaces", &[(0, b"\x12\x34\x56\x78"), (24, b"\0\x08"), (37, b"\x07")]),
        ("Sun's mark behind no text", &[(0, b"\x90\x81"), (508, b"\xda\xbe")]),
        ("HFS with blocks of 100 bytes", &[(KIB, b"BD"), (KIB + 23, b"\x64")]),
        ("minix with what is reserved set", &[(KIB + 4, b"\x01"), (KIB + 24, b"\x5a\x4d")]),
        ("nilfs2 with blocks of 4 GiB", &[(KIB + 6, b"\x34\x34"), (KIB + 20, b"\x16")]),
    ];
    for (what, parts) in nearly {
        assert!(found_among(SIZE, parts).is_empty(), "{what}: {:?}", found_among(SIZE, parts));
    }
}

#[test]
fn a_program_that_is_not_on_the_path_is_found_beside_it_and_its_absence_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, image) = (directory.path().join("blkid"), directory.path().join("image"));
    std::fs::write(&tool, "#!/bin/sh\necho TYPE=made-up\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let missing = "plimsoll-test-no-such-program";
    let found = SecondOpinion::Found(vec![Signature { kind: "made-up, says blkid".to_owned(), offset_bytes: None }]);
    assert_eq!(ask(&[missing, tool.to_str().unwrap()], &image), found);
    assert_eq!(ask(&[missing, missing], &image), SecondOpinion::Absent);
    assert_eq!(ask(&[directory.path().to_str().unwrap()], &image), SecondOpinion::Silent);
}

#[test]
fn an_unused_device_of_any_size_is_clean() {
    for size in [0, 1, 511, 512, 4096, 5000, 64 * KIB, 300 * KIB, SIZE, (1 << 44) + 512] {
        assert!(found_among(size, &[]).is_empty(), "{size}");
    }
}

#[test]
fn our_own_data_are_no_trace_of_others() {
    let mut filling = vec![0; 2 << 20];
    for seed in 0..8 {
        model::workload::Rng::new(seed, 0).fill(&mut filling);
        let mut read = |offset: u64, length: usize| Ok(filling[offset as usize..][..length].to_vec());
        assert!(find(&mut read, 2 << 20).unwrap().is_empty());
    }
}

#[test]
fn ext_file_systems_are_distinguished_by_their_features() {
    let block = |compatible: u8, incompatible: u16, block_size: u8| {
        let mut block = vec![0; 128];
        block[24] = block_size;
        block[56..58].copy_from_slice(&[0x53, 0xef]);
        block[76] = 1;
        block[92] = compatible;
        block[96..98].copy_from_slice(&incompatible.to_le_bytes());
        found_among(SIZE, &[(1024, &block)])
    };
    assert_eq!(block(0, 0x2, 2), ["ext2"]);
    assert_eq!(block(0x4, 0x2, 2), ["ext3"]);
    assert_eq!(block(0x4, 0x2 | 0x40, 2), ["ext4"]);
    assert_eq!(block(0, 0x8, 2), ["ext journal device"]);
    assert!(block(0x4, 0x2, 77).is_empty(), "two bytes alone are no proof");
}

#[test]
fn swap_is_found_for_each_size_of_page() {
    for page in [4096, 8192, 16_384, 65_536] {
        assert_eq!(found_among(SIZE, &[(page - 10, b"SWAPSPACE2")]), ["swap space"]);
        assert_eq!(found_among(SIZE, &[(page - 10, b"S1SUSPEND")]), ["swap space of a hibernated machine"]);
    }
}

#[test]
fn a_volume_managers_label_may_stand_in_any_of_four_sectors() {
    for sector in 0..4 {
        let parts: [(u64, &[u8]); 2] = [(sector * 512, b"LABELONE"), (sector * 512 + 24, b"LVM2 001")];
        assert_eq!(found_among(SIZE, &parts), ["LVM2 physical volume"]);
    }
    assert!(found_among(SIZE, &[(512, b"LABELONE")]).is_empty());
}

#[test]
fn software_raid_is_found_in_all_its_places() {
    let size = 100 * MIB + 12 * KIB;
    let version_1 = b"\xfc\x4e\x2b\xa9\x01\0\0\0";
    let of = |offset, bytes: &[u8]| found_among(size, &[(offset, bytes)]);
    assert_eq!(of(100 * MIB - 64 * KIB, b"\xfc\x4e\x2b\xa9\0\0\0\0"), ["Linux RAID member (version 0.90)"]);
    assert_eq!(of(100 * MIB - 64 * KIB, b"\xa9\x2b\x4e\xfc\0\0\0\0"), ["Linux RAID member (version 0.90)"]);
    assert_eq!(of(100 * MIB + 4 * KIB, version_1), ["Linux RAID member (version 1.0)"]);
    assert_eq!(of(0, version_1), ["Linux RAID member (version 1.1)"]);
    assert_eq!(of(4096, version_1), ["Linux RAID member (version 1.2)"]);
}

#[test]
fn encrypted_and_zfs_devices_are_found() {
    assert_eq!(found_among(SIZE, &[(0, b"LUKS\xba\xbe\0\x01")]), ["LUKS1"]);
    assert_eq!(found_among(SIZE, &[(0, b"LUKS\xba\xbe\0\x02")]), ["LUKS2"]);
    let labels = [0, 256 * KIB, SIZE - 512 * KIB, SIZE - 256 * KIB];
    for label in labels {
        let uberblock = label + 128 * KIB + 4096;
        assert_eq!(found_among(SIZE, &[(uberblock, b"\x0c\xb1\xba\0\0\0\0\0")]), ["ZFS label"]);
        assert_eq!(found_among(SIZE, &[(uberblock, b"\0\0\0\0\0\xba\xb1\x0c")]), ["ZFS label"]);
    }
}

#[test]
fn a_boot_sector_is_fat_or_a_partition_table_or_nothing_known() {
    let end: (u64, &[u8]) = (510, b"\x55\xaa");
    let entry = b"\x80\0\0\0\x83\0\0\0\x00\x08\0\0\x00\x10\0\0";
    assert_eq!(found_among(SIZE, &[end, (446, entry)]), ["MBR partition table"]);
    assert_eq!(found_among(SIZE, &[end]), ["MBR partition table"]);
    assert_eq!(found_among(SIZE, &[end, (82, b"FAT32   ")]), ["fat32"]);
    assert_eq!(found_among(SIZE, &[end, (54, b"FAT16   ")]), ["fat16"]);
    assert!(found_among(SIZE, &[end, (446, b"\x12boot code here")]).is_empty());
    assert!(found_among(SIZE, &[(446, entry)]).is_empty());
}

#[test]
fn udf_is_found_behind_a_bridge_to_iso9660() {
    assert_eq!(found_among(SIZE, &[(32_769, b"BEA01"), (34_817, b"NSR02")]), ["udf"]);
    assert_eq!(found_among(SIZE, &[(32_769, b"CD001"), (38_913, b"NSR03")]), ["iso9660", "udf"]);
}

#[test]
fn what_cannot_be_read_is_an_error_and_not_clean() {
    let mut read = |_: u64, _: usize| Err(io::ErrorKind::PermissionDenied.into());
    assert_eq!(find(&mut read, SIZE).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

/// Makes an image with each tool that is installed; the others are covered by hand-made bytes above.
#[test]
fn what_real_tools_make_is_found() {
    let recipes: &[(&str, &[&str], &str)] = &[
        ("mkfs.ext2", &["-q", "-F"], "ext2"),
        ("mkfs.ext3", &["-q", "-F"], "ext3"),
        ("mkfs.ext4", &["-q", "-F"], "ext4"),
        ("mkfs.xfs", &["-q", "-f"], "xfs"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
        ("mkfs.vfat", &["-F", "32"], "fat32"),
        ("mkfs.ntfs", &["-q", "-F", "-f"], "ntfs"),
        ("mkfs.f2fs", &["-q", "-f"], "f2fs"),
        ("mkswap", &[], "swap space"),
    ];
    for (tool, arguments, kind) in recipes {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(400 * MIB).unwrap();
        let made = Command::new(tool).args(*arguments).arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match made {
            Ok(status) if status.success() => {
                let found = found_in(&image);
                assert!(found.iter().any(|other| other == kind), "{tool}: {found:?}");
                if let SecondOpinion::Found(said) = ask_blkid(&image) {
                    assert!(!said.is_empty());
                }
            }
            Ok(status) => skip(format_args!("{tool} ended with {status}")),
            Err(error) => skip(format_args!("{tool}: {error}")),
        }
    }
}

fn kinds(code: i32, export: &str) -> Vec<String> {
    match heard(Some(code), export) {
        SecondOpinion::Found(found) => found.into_iter().map(|signature| signature.to_string()).collect(),
        SecondOpinion::Nothing | SecondOpinion::Silent | SecondOpinion::Absent => Vec::new(),
    }
}

#[test]
fn what_blkid_says_is_understood() {
    assert_eq!(kinds(0, "DEVNAME=/dev/sdb\nUUID=1\nTYPE=ext4\nUSAGE=filesystem\n"), ["ext4, says blkid"]);
    assert_eq!(kinds(0, "DEVNAME=/dev/sdb\nPTTYPE=gpt\n"), ["gpt partition table, says blkid"]);
    assert_eq!(kinds(8, ""), ["traces of several formats, says blkid"]);
}

#[test]
fn the_place_of_a_partition_is_no_trace() {
    assert_eq!(heard(Some(0), "DEVNAME=/dev/sdb1\nPART_ENTRY_TYPE=0x83\n"), SecondOpinion::Nothing);
    assert_eq!(heard(Some(2), ""), SecondOpinion::Nothing);
    assert_eq!(heard(Some(4), ""), SecondOpinion::Silent);
    assert_eq!(heard(None, ""), SecondOpinion::Silent);
}
