//! Which file system holds a path.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Root;
use super::proc::DeviceNumber;

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The file system's device; its major number is 0 for one without a device of its own, btrfs among them.
    pub device: DeviceNumber,
    /// The directory inside the file system that is mounted.
    pub root: PathBuf,
    /// Where.
    pub mount_point: PathBuf,
    /// Type, such as `ext4`.
    pub kind: String,
    /// What is mounted: a device or a remote address.
    pub source: String,
    /// Options of the mount, then those of the file system that it does not repeat, parted by commas.
    pub options: String,
}

/// All mounts that this process sees, in the order in which they were made.
pub fn all(root: &Root) -> Vec<Mount> {
    parse(&root.text("/proc/self/mountinfo").unwrap_or_default())
}

/// The lines of a `mountinfo` that have all of their fields. See proc(5).
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // A lone dash ends the optional fields. It cannot be part of an earlier field: those have no spaces inside.
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let device = mount.next()?.parse().ok()?;
    let root = unescaped(mount.next()?);
    let mount_point = unescaped(mount.next()?);
    let mount_options = mount.next()?;
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    let source = unescaped(file_system.next()?).to_string_lossy().into_owned();
    let super_options = file_system.next().unwrap_or_default();

    let mut options: Vec<&str> = Vec::new();
    for option in mount_options.split(',').chain(super_options.split(',')) {
        // A file system may be `rw` where this mount of it is `ro`: the mount decides.
        let decided = matches!(option, "rw" | "ro") && options.iter().any(|seen| matches!(*seen, "rw" | "ro"));
        if !option.is_empty() && !decided && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { device, root, mount_point, kind, source, options: options.join(",") })
}

/// Undoes the kernel's escapes: a backslash and three octal digits for space, tab, newline and backslash.
pub fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let escaped = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(first));
        if escaped.is_some() {
            rest = &after[3..];
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The mount that holds `path` (canonical), given the device number that the file's own metadata have. The longest
/// mount point wins, and of several at one place the last, which covers the others. A mount of another device is taken
/// only if none of the right device is there (btrfs invents a number for each subvolume): a mount over an outer
/// directory hides longer ones that are still listed.
pub fn holding<'a>(mounts: &'a [Mount], path: &Path, device: DeviceNumber) -> Option<&'a Mount> {
    let above = || mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    let depth = |mount: &&Mount| mount.mount_point.components().count();
    above().filter(|mount| mount.device == device).max_by_key(depth).or_else(|| above().max_by_key(depth))
}

/// Something that exists in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// Device of the file system that it is in.
    pub device: DeviceNumber,
    /// Its own number, if it is a block device.
    pub block_device: Option<DeviceNumber>,
}

impl ResolvedPath {
    /// `path` or, if that does not exist or cannot be reached, its nearest ancestor that does.
    pub fn nearest(root: &Root, path: &Path) -> Option<Self> {
        let absolute = std::path::absolute(path).ok()?;
        absolute.ancestors().find_map(|ancestor| Self::at(root, ancestor))
    }

    fn at(root: &Root, path: &Path) -> Option<Self> {
        let path = root.canonical(path)?;
        let metadata = root.path(&path).metadata().ok()?;
        let number = |raw: u64| DeviceNumber { major: libc::major(raw), minor: libc::minor(raw) };
        Some(Self {
            path,
            device: number(metadata.dev()),
            block_device: metadata.file_type().is_block_device().then(|| number(metadata.rdev())),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro
30 22 8:17 /pg /data rw,noatime shared:9 master:2 - xfs /dev/sdb1 rw,attr2,noquota
31 22 0:45 / /data/my\\040disk ro - nfs4 host:/export rw,vers=4.2
32 22 0:46 /@home /home rw - btrfs /dev/mapper/vg-home rw,ssd,subvol=/@home
33 30 8:33 / /data/old rw - ext4 /dev/sdc1 rw
34 22 0:50 / /data/old rw - tmpfs tmpfs rw,size=4k
short line
";

    const ELSEWHERE: DeviceNumber = DeviceNumber { major: 0, minor: 9_999 };

    fn source_of(path: &str, device: DeviceNumber) -> String {
        holding(&parse(TABLE), Path::new(path), device).unwrap().source.clone()
    }

    #[test]
    fn reads_all_fields_and_merges_options() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 6);
        assert_eq!(
            mounts[1],
            Mount {
                device: DeviceNumber { major: 8, minor: 17 },
                root: "/pg".into(),
                mount_point: "/data".into(),
                kind: "xfs".into(),
                source: "/dev/sdb1".into(),
                options: "rw,noatime,attr2,noquota".into(),
            }
        );
        assert_eq!(mounts[2].mount_point, Path::new("/data/my disk"));
        assert_eq!(mounts[2].options, "ro,vers=4.2");
    }

    #[test]
    fn only_whole_octal_escapes_are_undone() {
        for (field, plain) in [("a\\011b", "a\tb"), ("a\\134040", "a\\040"), ("\\9", "\\9"), ("\\04", "\\04")] {
            assert_eq!(unescaped(field), Path::new(plain), "{field}");
        }
    }

    #[test]
    fn the_longest_mount_point_holds_the_path() {
        assert_eq!(source_of("/data/x", ELSEWHERE), "/dev/sdb1");
        assert_eq!(source_of("/database", ELSEWHERE), "/dev/root");
        assert_eq!(source_of("/home/me", ELSEWHERE), "/dev/mapper/vg-home");
        assert_eq!(source_of("/data/my disk/x", ELSEWHERE), "host:/export");
    }

    #[test]
    fn the_last_of_two_mounts_at_one_place_covers_the_other() {
        assert_eq!(source_of("/data/old/x", ELSEWHERE), "tmpfs");
    }

    #[test]
    fn the_files_own_device_decides_against_a_hidden_mount() {
        assert_eq!(source_of("/data/old/x", DeviceNumber { major: 8, minor: 17 }), "/dev/sdb1");
    }

    #[test]
    fn a_path_that_does_not_exist_yet_stands_for_its_nearest_ancestor() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        std::fs::create_dir_all(root.path("/u01")).unwrap();
        std::os::unix::fs::symlink("u01", root.path("/link")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path("/dangling")).unwrap();
        for (path, nearest) in
            [("/u01/a/b", "/u01"), ("/link/a", "/u01"), ("/dangling/a", "/"), ("/u01/no/../../x", "/u01")]
        {
            assert_eq!(ResolvedPath::nearest(&root, Path::new(path)).unwrap().path, Path::new(nearest), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in prop_oneof![
            "(?s).{0,200}",
            "([0-9a-z/,:\\\\]{0,6} ){0,8}- ([a-z0-9,\\\\ ]{0,6} ){0,4}",
        ]) {
            let mounts = parse(&text);
            let _ = holding(&mounts, Path::new("/a/b"), ELSEWHERE);
        }

        #[test]
        fn a_path_survives_the_kernels_escapes(plain in "[a-z \\\\\t\n]{0,12}") {
            let mut escaped = String::new();
            for c in plain.chars() {
                match c {
                    ' ' | '\\' | '\t' | '\n' => escaped.push_str(&format!("\\{:03o}", u32::from(c))),
                    _ => escaped.push(c),
                }
            }
            prop_assert_eq!(unescaped(&escaped), PathBuf::from(plain));
        }
    }
}
