//! A second opinion: `blkid`, where it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use super::Signature;

/// What another program says of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondOpinion {
    /// It is not installed or could not look.
    Silent,
    /// It found nothing.
    Nothing,
    /// It found this.
    Found(Vec<Signature>),
}

/// Asks `blkid` to look at the device itself, not at what it remembers.
pub fn ask_blkid(path: &Path) -> SecondOpinion {
    let mut command = Command::new("blkid");
    command.args(["-p", "-o", "export"]).arg(path).stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Ok(output) => heard(output.status.code(), &String::from_utf8_lossy(&output.stdout)),
        Err(_) => SecondOpinion::Silent,
    }
}

/// Exit code 2 stands for nothing found, also where the device could not be opened; 8 for several traces that exclude
/// each other.
fn heard(code: Option<i32>, export: &str) -> SecondOpinion {
    let said = |kind: String| Signature { kind: format!("{kind}, says blkid"), offset_bytes: None };
    let value = |key: &str| export.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    match code {
        Some(0) => {
            let table = value("PTTYPE").map(|kind| said(format!("{kind} partition table")));
            let content = value("TYPE").map(|kind| said(kind.to_owned()));
            let found: Vec<_> = content.into_iter().chain(table).collect();
            // What is left are facts about a partition's place in its disk.
            if found.is_empty() { SecondOpinion::Nothing } else { SecondOpinion::Found(found) }
        }
        Some(2) => SecondOpinion::Nothing,
        Some(8) => SecondOpinion::Found(vec![said("traces of several formats".to_owned())]),
        _ => SecondOpinion::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(code: i32, export: &str) -> Vec<String> {
        match heard(Some(code), export) {
            SecondOpinion::Found(found) => found.into_iter().map(|signature| signature.to_string()).collect(),
            SecondOpinion::Nothing | SecondOpinion::Silent => Vec::new(),
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
}
