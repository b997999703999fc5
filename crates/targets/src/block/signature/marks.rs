//! The table of marks that are proof enough by themselves: devices first, then files that hold somebody's data.

use super::{KIB, MIB};

/// Where a mark stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum SignatureOffset {
    /// Bytes from the start.
    Start(u64),
    /// Bytes before the end.
    End(u64),
}

impl SignatureOffset {
    pub(super) fn offset(self, size_bytes: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => Some(offset),
            Self::End(before) => size_bytes.checked_sub(before),
        }
    }
}

/// Bytes that alone are proof enough.
pub(super) struct Mark {
    pub(super) kind: &'static str,
    pub(super) place: SignatureOffset,
    pub(super) bytes: &'static [u8],
}

const fn start(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Mark {
    Mark { kind, place: SignatureOffset::Start(offset), bytes }
}

const fn end(kind: &'static str, before: u64, bytes: &'static [u8]) -> Mark {
    Mark { kind, place: SignatureOffset::End(before), bytes }
}

const BTRFS: &[u8] = b"_BHRfS_M";
const LUKS_SECOND: &[u8] = b"SKUL\xba\xbe";
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^Arh";

const BSD_LABEL: &[u8] = b"\x57\x45\x56\x82";
const INTEL_RAID: &[u8] = b"Intel Raid ISM Cfg Sig. ";
const DDF_RAID: &[u8] = b"\xde\x11\xde\x11";

/// Formats whose mark is long enough, at its place, that chance does not make it.
pub(super) const MARKS: &[Mark] = &[
    start("xfs", 0, b"XFSB"),
    // The superblock has copies at 64 MiB and 256 GiB; the first is the only one that a mount looks at.
    start("btrfs", 64 * KIB + 64, BTRFS),
    start("btrfs (second superblock)", 64 * MIB + 64, BTRFS),
    start("f2fs", KIB, b"\x10\x20\xf5\xf2"),
    start("jfs", 32 * KIB, b"JFS1"),
    start("reiserfs", 8 * KIB + 52, b"ReIsErFs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsErFs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsEr2Fs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsEr3Fs"),
    start("gfs2", 64 * KIB, b"\x01\x16\x19\x70"),
    // The superblock is the third block, of 512 to 4,096 bytes.
    start("ocfs2", KIB, b"OCFSV2"),
    start("ocfs2", 2 * KIB, b"OCFSV2"),
    start("ocfs2", 4 * KIB, b"OCFSV2"),
    start("ocfs2", 8 * KIB, b"OCFSV2"),
    start("exfat", 3, b"EXFAT   "),
    start("ntfs", 3, b"NTFS    "),
    start("BitLocker volume", 3, b"-FVE-FS-"),
    start("apfs", 32, b"NXSB"),
    start("squashfs", 0, b"hsqs"),
    start("squashfs", 0, b"sqsh"),
    start("refs", 3, b"ReFS\0"),
    start("hfs+", KIB, b"H+\0\x04"),
    start("hfs+", KIB, b"HX\0\x05"),
    start("erofs", KIB, b"\xe2\xe1\xf5\xe0"),
    start("cramfs", 0, b"\x45\x3d\xcd\x28"),
    start("cramfs", 0, b"\x28\xcd\x3d\x45"),
    start("romfs", 0, b"-rom1fs-"),
    start("ubifs", 0, b"\x31\x18\x10\x06"),
    start("UBI volume", 0, b"UBI#\x01"),
    start("zonefs", 0, b"SFOZ"),
    start("hpfs", 8 * KIB, b"\x49\xe8\x95\xf9"),
    start("befs", 32, b"1SFB"),
    start("befs", 512 + 32, b"1SFB"),
    start("vxfs", KIB, b"\xf5\xfc\x01\xa5"),
    start("vxfs", 8 * KIB, b"\xa5\x01\xfc\xf5"),
    // The superblock of ufs is at 8, 64 or 256 KiB, in the byte order of its machine; version 1, then 2.
    start("ufs", 8 * KIB + 1_372, b"\x54\x19\x01\0"),
    start("ufs", 8 * KIB + 1_372, b"\0\x01\x19\x54"),
    start("ufs", 64 * KIB + 1_372, b"\x19\x01\x54\x19"),
    start("ufs", 64 * KIB + 1_372, b"\x19\x54\x01\x19"),
    start("ufs", 256 * KIB + 1_372, b"\x19\x01\x54\x19"),
    start("ufs", 256 * KIB + 1_372, b"\x19\x54\x01\x19"),
    start("iso9660", 32 * KIB + 1, b"CD001"),
    start("vmfs volume", MIB, b"\x0d\xd0\x01\xc0"),
    start("vmfs", 2 * MIB, b"\x5e\xf1\xab\x2f"),
    start("LUKS2 (second header)", 16 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 32 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 64 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 128 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 256 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 512 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", MIB, LUKS_SECOND),
    start("LUKS2 (second header)", 2 * MIB, LUKS_SECOND),
    start("LUKS2 (second header)", 4 * MIB, LUKS_SECOND),
    start("bcache", 4 * KIB + 24, BCACHE),
    start("bcachefs", 4 * KIB + 24, BCACHEFS),
    start("Stratis pool", 512 + 4, STRATIS),
    start("Stratis pool", 9 * 512 + 4, STRATIS),
    start("Ceph BlueStore", 0, b"bluestore block device"),
    start("GPFS NSD", 512, b"NSD descriptor"),
    start("VDO volume", 0, b"dmvdo001"),
    start("LVM1 physical volume", 0, b"HM\x01\0"),
    start("LVM1 physical volume", 0, b"HM\x02\0"),
    start("device-mapper snapshot", 0, b"SnAp"),
    start("device-mapper verity", 0, b"verity\0\0"),
    start("device-mapper integrity", 0, b"integrt\0"),
    start("device-mapper writecache", 0, b"\x21\x93\x48\x23"),
    start("device-mapper zoned", 0, b"DBZD"),
    // The magic of these is behind a checksum, flags, the block's number and an identifier.
    start("device-mapper thin pool", 32, &27_022_010_u64.to_le_bytes()),
    // The kernel writes it with a leading zero, which makes it octal.
    start("device-mapper cache", 32, &0o6_142_003_u64.to_le_bytes()),
    start("device-mapper cache", 32, &6_142_003_u64.to_le_bytes()),
    start("device-mapper era", 32, &2_126_579_579_u64.to_le_bytes()),
    start("device-mapper clone", 32, &0x8af2_7f64_u64.to_le_bytes()),
    // The tag of a disk group's disk, with and without ASMLib; the header has a copy in the last block but one of the
    // second allocation unit, which is of 1 to 64 MiB, in blocks of 4 KiB.
    start("Oracle ASM disk", 32, b"ORCLDISK"),
    start("Oracle ASM disk", 0, b"\x01\x82\x01\x01"),
    start("Oracle ASM disk (second header)", 2 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 4 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 8 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 16 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 32 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 64 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 128 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    // Metadata inside the device lie at its end, the version's magic behind 60 bytes of identifiers and flags.
    end("DRBD 8", 4 * KIB - 60, b"\x83\x74\x02\x6b"),
    end("DRBD 8", 4 * KIB - 60, b"\x83\x74\x02\x6c"),
    end("DRBD 9", 4 * KIB - 60, b"\x83\x74\x02\x6d"),
    start("GPT partition table", 512, b"EFI PART"),
    start("GPT partition table", 4 * KIB, b"EFI PART"),
    end("GPT partition table (backup)", 512, b"EFI PART"),
    end("GPT partition table (backup)", 4 * KIB, b"EFI PART"),
    start("BSD label", 64, BSD_LABEL),
    start("BSD label", 512, BSD_LABEL),
    start("SGI label", 0, b"\x0b\xe5\xa9\x41"),
    start("Apple partition map", 512, b"PM\0\0"),
    // The third block of 4 KiB: the volume label in EBCDIC, behind a key in the compatible layout.
    start("DASD label", 8 * KIB, b"\xe5\xd6\xd3\xf1"),
    start("DASD label", 8 * KIB + 4, b"\xe5\xd6\xd3\xf1"),
    start("DASD label", 8 * KIB, b"\xd3\xd5\xe7\xf1"),
    start("DASD label", 8 * KIB, b"\xc3\xd4\xe2\xf1"),
    start("DASD label", 8 * KIB, b"\xd3\xf1\xf5\xc6"),
    // Firmware RAID keeps its metadata in the last sectors but a few; sectors are of 512 bytes or of 4 KiB.
    end("Intel firmware RAID member", 1_024, INTEL_RAID),
    end("Intel firmware RAID member", 8 * KIB, INTEL_RAID),
    end("DDF firmware RAID member", 512, DDF_RAID),
    end("DDF firmware RAID member", 257 * 512, DDF_RAID),
    end("NVIDIA firmware RAID member", 1_024, b"NVIDIA"),
    end("LSI firmware RAID member", 512, b"$XIDE$"),
    start("SQLite database", 0, b"SQLite format 3\0"),
    start("SQLite write-ahead log", 0, b"\x37\x7f\x06\x82"),
    start("SQLite write-ahead log", 0, b"\x37\x7f\x06\x83"),
    start("SQLite journal", 0, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"),
    start("MySQL redo log", 16, b"MySQL "),
    start("MySQL redo log", 16, b"mysqlbackup"),
    start("MariaDB redo log", 16, b"MariaDB "),
    start("MySQL binary log", 0, b"\xfebin"),
    start("MyISAM index", 0, b"\xfe\xfe\x07\x01"),
    start("LMDB database", 16, b"\xde\xc0\xef\xbe"),
    start("WiredTiger table", 0, b"\x41\xd8\x01\0\x01\0\0\0"),
    start("qcow2 image", 0, b"QFI\xfb"),
    start("QED image", 0, b"QED\0"),
    start("VMDK image", 0, b"KDMV"),
    start("VMDK image", 0, b"COWD"),
    start("VMDK descriptor", 0, b"# Disk DescriptorFile"),
    start("VDI image", 64, b"\x7f\x10\xda\xbe"),
    start("VHDX image", 0, b"vhdxfile"),
    start("VHD image", 0, b"conectix"),
    end("VHD image", 512, b"conectix"),
    start("tar archive", 257, b"ustar"),
    start("cpio archive", 0, b"070701"),
    start("cpio archive", 0, b"070702"),
    start("zip archive", 0, b"PK\x03\x04"),
    start("zip archive", 0, b"PK\x05\x06"),
    start("zip archive", 0, b"PK\x07\x08"),
    start("7-Zip archive", 0, b"7z\xbc\xaf\x27\x1c"),
    start("RAR archive", 0, b"Rar!\x1a\x07"),
    start("xz-compressed data", 0, b"\xfd7zXZ\0"),
    start("zstd-compressed data", 0, b"\x28\xb5\x2f\xfd"),
    start("lz4-compressed data", 0, b"\x04\x22\x4d\x18"),
    start("Parquet file", 0, b"PAR1"),
    start("program", 0, b"\x7fELF"),
];
