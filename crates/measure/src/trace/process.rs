//! Processes and their children, by `/proc`.

use crate::os::Root;

/// A process that was there once. Its number may be given to another when it has ended, so its time of birth is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    born_ticks: u64,
}

impl Process {
    /// The process of this number, if there is one that has not ended.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = Stat::read(&Root::default(), pid)?;
        (!stat.has_ended).then_some(Self { pid, born_ticks: stat.born_ticks })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its short name, as `ps` shows it.
    pub fn name(&self) -> Option<String> {
        Root::default().value(format!("/proc/{}/comm", self.pid))
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        Self::find(self.pid) == Some(*self)
    }
}

/// The process, its children and theirs, as far as tracing looks.
pub(super) fn family(root: &Root, pid: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = root
        .names("/proc")
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(|pid| Some((pid, Stat::read(root, pid)?.parent)))
        .collect();
    let children = |parents: &[u32]| -> Vec<u32> {
        all.iter().filter(|(_, parent)| parents.contains(parent)).map(|(pid, _)| *pid).collect()
    };
    let children_of = children(&[pid]);
    let grandchildren = children(&children_of);
    [vec![pid], children_of, grandchildren].concat()
}

/// What is used of `/proc/PID/stat`. See proc_pid_stat(5).
struct Stat {
    has_ended: bool,
    parent: u32,
    born_ticks: u64,
}

impl Stat {
    fn read(root: &Root, pid: u32) -> Option<Self> {
        Self::parse(&root.text(format!("/proc/{pid}/stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may itself hold parentheses and blanks; behind the last one everything is regular.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            has_ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            born_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_move_the_fields() {
        let stat = Stat::parse("7 (a) Z 1 (x) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 998877 1 2\n").unwrap();
        assert_eq!((stat.has_ended, stat.parent, stat.born_ticks), (false, 42, 998_877));
        assert!(Stat::parse("7 (a) Z 1").is_none());
    }

    #[test]
    fn a_process_is_found_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        assert!(process.is_running());
        assert!(family(&Root::default(), std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_running());
    }
}
