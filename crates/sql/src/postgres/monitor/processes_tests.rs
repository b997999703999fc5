use std::fs;

use super::*;

/// A machine with a server whose postmaster is process 10.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(file_system: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(machine.0.path().join("srv/pg")).unwrap();
        fs::create_dir_all(machine.0.path().join("proc/self")).unwrap();
        let mount = format!("22 1 8:2 / / rw - {file_system} /dev/root rw\n");
        fs::write(machine.0.path().join("proc/self/mountinfo"), mount).unwrap();
        machine
    }

    /// A process that began at tick `start`, used `ticks` of both kinds, read `blocks` of 8 KiB from storage and as many from the
    /// page cache.
    fn process(&self, pid: u32, parent: u32, start: u64, ticks: u64, blocks: u64) {
        let process = self.0.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&process).unwrap();
        let stat = format!("{pid} (postgres) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} {ticks} 0 0 20 0 1 0 {start} 0 0");
        fs::write(process.join("stat"), stat).unwrap();
        let bytes = blocks * 8192;
        fs::write(process.join("io"), format!("rchar: {}\nread_bytes: {bytes}\n", 2 * bytes)).unwrap();
    }

    fn title(&self, pid: u32, title: &str) {
        fs::write(self.0.path().join(format!("proc/{pid}/cmdline")), title).unwrap();
    }

    fn gone(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(format!("proc/{pid}"))).unwrap();
    }

    fn processes(&self) -> Processes {
        let server = LocalServer { postmaster_pid: 10, data_directory: Some("/srv/pg".into()) };
        Processes::new(Root::at(self.0.path()), server).unwrap()
    }
}

fn blocks(reads: Option<ProcessReads>) -> Option<u64> {
    reads.map(|reads| reads.storage_bytes / 8192)
}

#[test]
fn only_what_our_sessions_read_is_counted_and_of_new_ones_everything() {
    let machine = Machine::new("ext4");
    machine.process(10, 1, 1, 1, 0);
    machine.process(11, 10, 2, 0, 100);
    machine.process(12, 10, 2, 0, 1_000);
    machine.process(13, 1, 2, 0, 1_000);
    let mut processes = machine.processes();
    let earlier = processes.read(&[11, 13]).unwrap();
    machine.process(11, 10, 2, 0, 107);
    machine.process(12, 10, 2, 0, 2_000);
    machine.process(13, 1, 2, 0, 2_000);
    machine.process(14, 10, 9, 0, 20);
    let later = processes.read(&[11, 13, 14]).unwrap();
    assert_eq!(blocks(later.reads_since(&earlier)), Some(27));
    assert_eq!(later.reads_since(&earlier).unwrap().called_bytes, 2 * 27 * 8192);
    assert_eq!(processes.unknown(), None);
}

#[test]
fn what_a_session_read_before_it_ended_is_not_lost() {
    let machine = Machine::new("xfs");
    machine.process(10, 1, 1, 1, 5);
    machine.process(11, 10, 2, 0, 100);
    machine.process(12, 10, 2, 0, 40);
    let mut processes = machine.processes();
    let earlier = processes.read(&[11]).unwrap();
    // 11 read 9 more and 12, which is not ours, nothing more; both ended, and their parent holds what they had read.
    machine.process(10, 1, 1, 1, 5 + 109 + 40);
    machine.gone(11);
    machine.gone(12);
    let later = processes.read(&[]).unwrap();
    assert_eq!(blocks(later.reads_since(&earlier)), Some(9));
}

#[test]
fn a_number_that_is_used_again_is_another_session() {
    let machine = Machine::new("xfs");
    machine.process(10, 1, 1, 1, 0);
    machine.process(11, 10, 2, 0, 100);
    let mut processes = machine.processes();
    let earlier = processes.read(&[11]).unwrap();
    machine.process(10, 1, 1, 1, 100);
    machine.process(11, 10, 5, 0, 130);
    let later = processes.read(&[11]).unwrap();
    assert_eq!(blocks(later.reads_since(&earlier)), Some(130));
}

#[test]
fn workers_that_read_for_sessions_count_as_sessions() {
    let machine = Machine::new("ext4");
    machine.process(10, 1, 1, 1, 0);
    machine.process(11, 10, 2, 0, 1);
    machine.title(11, "postgres: main: io worker 0 ");
    let mut processes = machine.processes();
    let earlier = processes.read(&[]).unwrap();
    machine.process(11, 10, 2, 0, 4);
    assert_eq!(blocks(processes.read(&[]).unwrap().reads_since(&earlier)), Some(3));
}

#[test]
fn processor_time_is_that_of_all_processes() {
    let machine = Machine::new("ext4");
    machine.process(10, 1, 1, 1, 0);
    machine.process(11, 10, 2, 5, 0);
    let mut processes = machine.processes();
    let earlier = processes.read(&[]).unwrap();
    // 11 ended, and its time went over to its parent; 12 is new.
    machine.process(10, 1, 1, 8, 0);
    machine.gone(11);
    machine.process(12, 10, 3, 4, 0);
    let later = processes.read(&[]).unwrap();
    let tick_ns = 1_000_000_000 / ticks_per_second().unwrap();
    let cpu = later.cpu_since(&earlier).unwrap();
    assert_eq!((cpu.user_ns, cpu.system_ns), (6 * tick_ns, 6 * tick_ns));
    assert_eq!(earlier.cpu_since(&later), None);
}

#[test]
fn reads_are_unknown_where_the_kernel_or_its_rights_hide_them() {
    let hidden = Machine::new("ext4");
    hidden.process(10, 1, 1, 1, 0);
    hidden.process(11, 10, 2, 0, 1);
    fs::remove_file(hidden.0.path().join("proc/11/io")).unwrap();
    let reading = hidden.processes().read(&[11]).unwrap();
    assert_eq!(reading.reads_since(&reading), None);
    assert!(reading.cpu_since(&reading).is_some());
    fs::remove_file(hidden.0.path().join("proc/10/io")).unwrap();
    let nobody = hidden.processes().read(&[]).unwrap();
    assert_eq!(nobody.reads_since(&nobody), None);
    assert!(hidden.processes().unknown().unwrap().contains("run as root"));

    let uncounted = Machine::new("zfs");
    uncounted.process(10, 1, 1, 1, 0);
    uncounted.process(11, 10, 2, 0, 1);
    let reading = uncounted.processes().read(&[11]).unwrap();
    assert_eq!(reading.reads_since(&reading), None);
    assert!(uncounted.processes().unknown().unwrap().contains("file system"));
}

#[test]
fn no_server_is_no_reading() {
    assert_eq!(Machine::new("ext4").processes().read(&[]), None);
}
