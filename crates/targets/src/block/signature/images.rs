//! An image of each format, for tests: its marks in an otherwise empty file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::marks::{MARKS, SignatureOffset};
use super::{KIB, MIB};

/// Large enough for every mark, and not a multiple of what formats round to.
pub(in crate::block) const IMAGE_BYTES: u64 = 160 * MIB + 12 * KIB;

/// What makes an image one of a format.
pub(in crate::block) struct Image {
    /// What is to be found in it.
    pub(in crate::block) kind: String,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Image {
    fn new(kind: &str, parts: &[(u64, &[u8])]) -> Self {
        Self { kind: kind.to_owned(), parts: parts.iter().map(|(offset, bytes)| (*offset, bytes.to_vec())).collect() }
    }

    /// Makes a sparse file of it.
    pub(in crate::block) fn write(&self, path: &Path) {
        let file = File::create(path).unwrap();
        file.set_len(IMAGE_BYTES).unwrap();
        for (offset, bytes) in &self.parts {
            file.write_all_at(bytes, *offset).unwrap();
        }
    }
}

/// Puts numbers of 16 bits behind each other.
fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The first block of one of Oracle's files, and the first byte of the second.
fn oracle(kind: &str, block_bytes: u32, second: u8) -> Image {
    let size = block_bytes.to_le_bytes();
    Image::new(kind, &[(20, &size), (28, b"}|{z"), (block_bytes.into(), &[second])])
}

/// One or more of each format that is recognised.
pub(in crate::block) fn all() -> Vec<Image> {
    let mut all: Vec<Image> = Vec::new();
    for mark in MARKS {
        let offset = match mark.place {
            SignatureOffset::Start(offset) => offset,
            SignatureOffset::End(before) => IMAGE_BYTES - before,
        };
        all.push(Image::new(mark.kind, &[(offset, mark.bytes)]));
    }
    let (entry, end): (&[u8], &[u8]) = (b"\x80\0\0\0\x83\0\0\0\x00\x08\0\0\x00\x10\0\0", b"\x55\xaa");
    let last_raid = (IMAGE_BYTES / (64 * KIB) - 1) * 64 * KIB;
    all.extend([
        Image::new("ext4", &[(KIB + 56, b"\x53\xef"), (KIB + 96, b"\x40\0\0\0")]),
        Image::new("swap space", &[(4_096 - 10, b"SWAPSPACE2")]),
        Image::new("LVM2 physical volume", &[(512, b"LABELONE"), (512 + 24, b"LVM2 001")]),
        Image::new("Linux RAID member (version 0.90)", &[(last_raid, b"\xfc\x4e\x2b\xa9\0\0\0\0")]),
        Image::new("Linux RAID member (version 1.0)", &[(IMAGE_BYTES - 8 * KIB, b"\xfc\x4e\x2b\xa9\x01\0\0\0")]),
        Image::new("Linux RAID member (version 1.2)", &[(4 * KIB, b"\xfc\x4e\x2b\xa9\x01\0\0\0")]),
        Image::new("LUKS1", &[(0, b"LUKS\xba\xbe\0\x01")]),
        Image::new("LUKS2", &[(0, b"LUKS\xba\xbe\0\x02")]),
        Image::new("ZFS label", &[(132 * KIB, b"\x0c\xb1\xba\0\0\0\0\0")]),
        Image::new("udf", &[(34 * KIB + 1, b"NSR02")]),
        Image::new("nilfs2", &[(KIB + 6, b"\x34\x34")]),
        Image::new("nilfs2", &[(IMAGE_BYTES - 4 * KIB + 6, b"\x34\x34")]),
        Image::new("minix", &[(KIB + 16, b"\x8f\x13\x01\0")]),
        Image::new("minix", &[(KIB + 24, b"\x5a\x4d")]),
        Image::new("hfs", &[(KIB, b"BD"), (KIB + 20, b"\0\0\x10\0")]),
        Image::new("Sun label", &[(0, b"SUN72G cyl 14087"), (508, b"\xda\xbe")]),
        Image::new("fat32", &[(82, b"FAT32   "), (510, end)]),
        Image::new("MBR partition table", &[(446, entry), (510, end)]),
        oracle("Oracle data file", 8_192, 0x0b),
        oracle("Oracle control file", 16_384, 0x15),
        oracle("Oracle redo log", 512, 0x01),
        oracle("Oracle backup piece", 8_192, 0x13),
        Image::new("Oracle data file", &[(20, b"\0\0\x20\0"), (28, b"z{|}")]),
        Image::new("InnoDB tablespace", &[(0, b"\x12\x34\x56\x78"), (24, b"\0\x08"), (34, b"\0\0\0\x07\0\0\0\x07")]),
        // MariaDB 10.11 with `full_crc32`, the system tablespace: no checksum here, and number 0.
        Image::new("InnoDB tablespace", &[(8, &[0xff; 8]), (22, b"\xaa\x34\0\x08")]),
        // Flags, lower, upper, special, size and version.
        Image::new("PostgreSQL table or index", &[(10, &words(&[4, 40, 8_000, 8_192, 0x2004]))]),
        Image::new("PostgreSQL control file", &[(0, b"\x01\x02\x03\x04\x05\x06\x07\x08\x14\x05\0\0\x25\x77\x0d\x0c")]),
        Image::new("PostgreSQL write-ahead log", &[(0, b"\x10\xd1\x06\0"), (32, b"\0\0\0\x01\0\x20\0\0")]),
        Image::new("gzip-compressed data", &[(0, b"\x1f\x8b\x08\x08")]),
        Image::new("bzip2-compressed data", &[(0, b"BZh91AY&SY")]),
    ]);
    all
}
