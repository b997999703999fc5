//! What `bpftrace` is asked to do. Everything from outside that gets into the text is a number.

use std::fmt::Write;

use super::device::TracedDevice;
use super::place::{ClassifiedPath, Kind, Reach};
use crate::os::proc::DeviceNumber;

/// How often the sums are printed, in milliseconds.
pub(super) const PRINT_EVERY_MS: u64 = 100;

/// What a system call does with a file, and its calls. io_uring and `libaio` hand requests over in other ways, which no call
/// shows; memory that is mapped is read and written without any.
const CALLS: [(&str, &[&str]); 4] = [
    ("read", &["pread64", "preadv", "preadv2", "read", "readv"]),
    ("write", &["pwrite64", "pwritev", "pwritev2", "write", "writev"]),
    ("sync", &["fsync", "fdatasync"]),
    // Asks for writing to begin and promises nothing, so it is no sync.
    ("write-back", &["sync_file_range"]),
];

/// What is done to a device, in the order of their numbers in the program, from 1.
const REQUESTS: [&str; 3] = ["read", "write", "flush"];

/// Numbers of events: those of files are below, those of a device begin at a multiple of its place among the devices.
const FIRST_DEVICE_EVENT: u64 = 16;
const EVENTS_OF_DEVICE: u64 = 4;

/// One thing that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its number in the program.
    pub(super) number: u64,
    /// Where it was timed.
    pub(super) layer: &'static str,
    /// What was timed.
    pub(super) name: String,
    /// Which device.
    pub(super) device: Option<String>,
}

/// Everything that the program counts. `places` are those of the process, if one is traced: its log is called as its server calls it.
pub(super) fn events(places: Option<&[ClassifiedPath]>, devices: &[TracedDevice]) -> Vec<Event> {
    let has_redo = places.is_some_and(|places| places.iter().any(|place| place.kind == Kind::Redo));
    let log = if has_redo { (Kind::Redo, "redo") } else { (Kind::Wal, "wal") };
    let of_files = [(Kind::Data, "data"), log, (Kind::Other, "other")].into_iter().flat_map(|(kind, kind_name)| {
        CALLS.iter().enumerate().map(move |(call, (call_name, _))| Event {
            number: file_event(kind, call),
            layer: "OS file",
            name: format!("{kind_name} {call_name}"),
            device: None,
        })
    });
    let of_devices = devices.iter().enumerate().flat_map(|(place, device)| {
        (1_u64..).zip(REQUESTS).map(move |(request, name)| Event {
            number: device_events(place) + request,
            layer: "device",
            name: name.to_owned(),
            device: Some(device.name.clone()),
        })
    });
    of_files.filter(|_| places.is_some()).chain(of_devices).collect()
}

fn kind_number(kind: Kind) -> u64 {
    match kind {
        // A place that is not in the kernel's table reads as zero.
        Kind::Other => 0,
        Kind::Data => 1,
        // No server has both.
        Kind::Wal | Kind::Redo => 2,
    }
}

fn file_event(kind: Kind, call: usize) -> u64 {
    kind_number(kind) * CALLS.len() as u64 + call as u64
}

fn device_events(place: usize) -> u64 {
    FIRST_DEVICE_EVENT + place as u64 * EVENTS_OF_DEVICE
}

/// The program that counts all [`events`].
pub(super) fn text(process: Option<u32>, places: &[ClassifiedPath], devices: &[TracedDevice]) -> String {
    let mut text = String::new();
    if let Some(pid) = process {
        text += &files(pid, places);
    }
    if !devices.is_empty() {
        text += &requests(devices);
    }
    // Attached last. Its first print says that everything is in force: nothing is printed while probes are being attached.
    let _ = write!(
        text,
        "interval:ms:{PRINT_EVERY_MS}\n{{ printf(\"begin %llu\\n\", nsecs); print(@us); print(@ns); print(@bytes); \
         printf(\"end\\n\"); }}\n"
    );
    text
}

/// System calls of a process, its children and theirs. Which file a descriptor stands for is asked of the kernel at each call, so
/// nothing has to be followed: not descriptors from before the start, nor inherited, passed or reused ones.
fn files(pid: u32, places: &[ClassifiedPath]) -> String {
    let mut text = String::new();
    let numbered = places.iter().filter_map(|place| i64::try_from(place.inode).ok().map(|inode| (place, inode)));
    let rows: Vec<String> = numbered
        .map(|(place, inode)| {
            let (reach, device) = (reach_number(place.reach), kernel_number(place.device));
            format!("  @place[{reach}, (uint64){device}, (uint64){inode}] = {};\n", kind_number(place.kind))
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "BEGIN\n{{\n{}}}\n", rows.concat());
    }
    // Nearest first: the file itself, its directory, the directory above.
    let mut kind = "  $kind = (uint64)0;\n".to_owned();
    for (reach, inode) in [
        (Reach::Itself, "$file->f_inode->i_ino"),
        (Reach::Children, "$file->f_path.dentry->d_parent->d_inode->i_ino"),
        (Reach::Grandchildren, "$file->f_path.dentry->d_parent->d_parent->d_inode->i_ino"),
    ] {
        if !rows.is_empty() && places.iter().any(|place| place.reach == reach) {
            let _ = writeln!(
                kind,
                "    if ($kind == 0) {{ $kind = (uint64)@place[{}, (uint64)$file->f_inode->i_sb->s_dev, (uint64){inode}]; }}",
                reach_number(reach)
            );
        }
    }
    for (call, (_, names)) in CALLS.iter().enumerate() {
        let enter: Vec<String> = names.iter().map(|name| format!("tracepoint:syscalls:sys_enter_{name}")).collect();
        let per_kind = CALLS.len();
        let _ = write!(
            text,
            "{}\n/pid == {pid} || {PARENT}->tgid == {pid} || {PARENT}->real_parent->tgid == {pid}/\n{{\n  \
             $file = (struct file *)*(uint64 *)({TASK}->files->fdt->fd + args->fd);\n  \
             $type = $file->f_inode->i_mode & {FILE_TYPE:#x};\n  \
             if ($type == {REGULAR_FILE:#x} || $type == {BLOCK_DEVICE:#x}) {{\n  {kind}    \
             @call[tid] = (nsecs, (uint64)($kind * {per_kind} + {call}));\n  }}\n}}\n",
            enter.join(",\n"),
        );
    }
    let exits = CALLS.iter().flat_map(|(_, names)| *names).map(|name| format!("tracepoint:syscalls:sys_exit_{name}"));
    // For each use of what a tracepoint reports, `bpftrace` reads the list of all tracepoints some twenty times for each of those that a
    // block is for, which is most of what a start costs; so what is needed twice is kept.
    let _ = write!(
        text,
        "{}\n/@call[tid].0 != 0/\n{{\n  $call = @call[tid];\n  $ret = args->ret;\n  if ($ret >= 0) {{\n    $ns = nsecs - $call.0;\n    \
         @us[$call.1] = hist($ns / 1000);\n    @ns[$call.1] = sum($ns);\n    @bytes[$call.1] = sum($ret);\n  }}\n  \
         delete(@call[tid]);\n}}\n",
        exits.collect::<Vec<_>>().join(",\n")
    );
    text
}

const TASK: &str = "((struct task_struct *)curtask)";
const PARENT: &str = "((struct task_struct *)curtask)->real_parent";

/// See inode(7): only files and block devices are storage; pipes and sockets are left out here.
const FILE_TYPE: u32 = 0xf000;
const REGULAR_FILE: u32 = 0x8000;
const BLOCK_DEVICE: u32 = 0x6000;

fn reach_number(reach: Reach) -> u64 {
    match reach {
        Reach::Itself => 0,
        Reach::Children => 1,
        Reach::Grandchildren => 2,
    }
}

/// Requests of devices, from when they are given to the driver to when they are done.
fn requests(devices: &[TracedDevice]) -> String {
    let only: Vec<String> =
        devices.iter().map(|device| format!("args->dev == {}", kernel_number(device.number))).collect();
    let only = only.join(" || ");
    // The first letter says what a request does, but for one `F` that asks for a flush before a write.
    let request = "  $request = strncmp(args->rwbs, \"R\", 1) == 0 ? 1 : (strncmp(args->rwbs, \"W\", 1) == 0 ? 2 : \
                   (strncmp(args->rwbs, \"FW\", 2) == 0 ? 2 : (strncmp(args->rwbs, \"F\", 1) == 0 ? 3 : 0)));\n  \
                   $sector = $request == 3 ? (uint64)0 : args->sector;\n  $dev = args->dev;\n";
    let mut events = String::new();
    for (place, device) in devices.iter().enumerate() {
        let first = device_events(place);
        if place == 0 {
            let _ = writeln!(events, "    $event = (uint64)$request + {first};");
        } else {
            let number = kernel_number(device.number);
            let _ = writeln!(events, "    if ($dev == {number}) {{ $event = (uint64)$request + {first}; }}");
        }
    }
    // Requests for one place that are under way at once cannot be told apart, and to take the time of one for another's would
    // make it too short: none of them is timed until the place has been idle. One of which no end was seen for long is forgotten.
    // A flush has no place, and the kernel names different ones at its two ends. The last part of a write that is to be durable
    // ends twice, and is known no more the second time.
    format!(
        "tracepoint:block:block_rq_issue\n/{only}/\n{{\n{request}  if ($request > 0) {{\n    \
         $known = @request[$dev, $sector, $request];\n    \
         $before = nsecs - $known.0 < {FORGOTTEN_AFTER_NS} ? $known.2 : (uint64)0;\n    \
         @request[$dev, $sector, $request] = (nsecs, (uint64)args->nr_sector, $before + 1, \
         $before > 0 ? (uint64)1 : (uint64)0);\n  }}\n}}\n\
         tracepoint:block:block_rq_requeue\n/{only}/\n{{\n{request}  delete(@request[$dev, $sector, $request]);\n}}\n\
         tracepoint:block:block_rq_complete\n/{only}/\n{{\n{request}  $known = @request[$dev, $sector, $request];\n  \
         if ($known.2 > 1) {{\n    \
         @request[$dev, $sector, $request] = ($known.0, $known.1, $known.2 - 1, (uint64)1);\n  }}\n  \
         if ($known.2 == 1) {{\n    delete(@request[$dev, $sector, $request]);\n{events}    \
         if (args->error == 0 && $known.3 == 0) {{\n      $ns = nsecs - $known.0;\n      @us[$event] = hist($ns / 1000);\n      \
         @ns[$event] = sum($ns);\n      @bytes[$event] = sum($known.1 * 512);\n    }}\n  }}\n}}\n"
    )
}

/// When a request whose end was not seen is taken for one that is no longer under way: disks and their drivers give up sooner.
const FORGOTTEN_AFTER_NS: u64 = 120_000_000_000;

/// A device's number inside the kernel: 12 bits of the driver's above 20 of the device's.
fn kernel_number(device: DeviceNumber) -> u64 {
    u64::from(device.major) << 20 | u64::from(device.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, major: u32, minor: u32) -> TracedDevice {
        TracedDevice { name: name.to_owned(), number: DeviceNumber { major, minor } }
    }

    #[test]
    fn every_event_has_a_number_of_its_own() {
        let events = super::events(Some(&[]), &[device("sda", 8, 0), device("sdb", 8, 16)]);
        let mut numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), events.len()), (18, 18));
        let named = |name: &str| events.iter().find(|event| event.name == name).unwrap().number;
        assert_eq!((named("other read"), named("data sync"), named("wal write")), (0, 6, 9));
    }

    #[test]
    fn a_log_is_called_as_its_server_calls_it() {
        let logs = |kind| {
            let device = DeviceNumber { major: 254, minor: 1 };
            let place = ClassifiedPath { path: "/data".into(), reach: Reach::Children, kind, device, inode: 42 };
            let names = events(Some(&[place]), &[]).into_iter().map(|event| (event.number, event.name));
            names.filter(|(_, name)| name.ends_with("l sync") || name.ends_with("o sync")).collect::<Vec<_>>()
        };
        assert_eq!(logs(Kind::Wal), [(10, "wal sync".to_owned())]);
        assert_eq!(logs(Kind::Redo), [(10, "redo sync".to_owned())]);
    }

    #[test]
    fn only_what_was_asked_for_is_in_the_program() {
        let files = text(Some(77), &[], &[]);
        assert!(
            files.contains("/pid == 77 || ") && !files.contains("block_rq") && !files.contains("@place"),
            "{files}"
        );
        let devices = text(None, &[], &[device("sda", 8, 0), device("sdb", 8, 16)]);
        assert!(devices.contains("/args->dev == 8388608 || args->dev == 8388624/"), "{devices}");
        assert!(!devices.contains("syscalls"), "{devices}");
    }

    #[test]
    fn a_place_is_looked_up_only_where_one_reaches() {
        let place = ClassifiedPath {
            path: "/data/base\"; system(\"true".into(),
            reach: Reach::Grandchildren,
            kind: Kind::Data,
            device: DeviceNumber { major: 254, minor: 1 },
            inode: 42,
        };
        let text = text(Some(1), &[place], &[]);
        assert!(text.contains("@place[2, (uint64)266338305, (uint64)42] = 1;"), "{text}");
        assert!(text.contains("@place[2, (uint64)$file") && !text.contains("@place[1,"), "{text}");
        assert!(!text.contains("base"), "a path got into the program: {text}");
    }
}
