//! What was found out about a database before it is measured, so that somebody else can read it; and what it says of its storage.

use std::collections::BTreeMap;

use serde::Serialize;

use measure::doctor::{Check, Status};

/// What matters about a database, as far as it could be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// Its address.
    pub target: String,
    /// What was looked at, in an order that does not depend on how it came out.
    pub checks: Vec<Check>,
    /// What the checks come from, as the database says it.
    pub facts: BTreeMap<String, String>,
}

impl Examination {
    /// Whether something stands against measuring there.
    pub fn has_problem(&self) -> bool {
        self.checks.iter().any(|check| check.status == Status::Problem)
    }

    /// The same with `host-1`, `host-2`, … in the place of the names and addresses of these machines, wherever they stand. A
    /// machine is also known by the first part of its name.
    #[must_use]
    pub fn masked(self, hosts: &[String]) -> Self {
        let masks = masks(hosts);
        let mask = |text: &str| masked(text, &masks);
        let checks = self.checks.into_iter().map(|check| Check {
            finding: mask(&check.finding),
            advice: check.advice.as_deref().map(mask),
            ..check
        });
        Self {
            target: mask(&self.target),
            checks: checks.collect(),
            facts: self.facts.into_iter().map(|(name, value)| (name, mask(&value))).collect(),
        }
    }
}

/// Each name of a machine in small letters, and what stands in its place; longer names before what they begin with.
fn masks(hosts: &[String]) -> Vec<(String, String)> {
    let mut masks: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    for host in hosts.iter().map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty()) {
        let is_address = host.contains(':') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let short = host.split('.').next().filter(|_| !is_address).unwrap_or(&host).to_owned();
        let known = masks.iter().find(|(name, _)| *name == host || *name == short).map(|(_, mask)| mask.clone());
        let mask = known.unwrap_or_else(|| {
            count += 1;
            format!("host-{count}")
        });
        for name in [host, short] {
            if !masks.iter().any(|(known, _)| *known == name) {
                masks.push((name, mask.clone()));
            }
        }
    }
    masks.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    masks
}

fn masked(text: &str, masks: &[(String, String)]) -> String {
    let lower = text.to_ascii_lowercase();
    let is_of_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
    while at < text.len() {
        let begins = at == 0 || !is_of_name(lower.as_bytes().get(at - 1));
        let found = masks.iter().find(|(name, _)| {
            begins && lower[at..].starts_with(name.as_str()) && !is_of_name(lower.as_bytes().get(at + name.len()))
        });
        let step = match found {
            Some((name, mask)) => {
                shown.push_str(mask);
                name.len()
            }
            None => {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                shown.push_str(&text[at..at + next]);
                next
            }
        };
        at += step;
    }
    shown
}

/// What a database is asked that can calibrate its own storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoCalibrationRequest {
    /// Disks behind it, about.
    pub disks: u32,
    /// Longest mean latency of small reads, in milliseconds.
    pub max_latency_ms: u32,
}

/// What a database says that its storage carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IoCalibration {
    /// Most reads of a block a second.
    pub max_iops: u64,
    /// Most megabytes a second, in reads of 1 MiB.
    pub max_mb_per_s: u64,
    /// Mean latency at the most reads, in whole milliseconds, as the database rounds it: 0 is less than one.
    pub latency_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked_by(hosts: &[&str], text: &str) -> String {
        masked(text, &masks(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()))
    }

    #[test]
    fn machines_are_masked_by_whatever_name_they_are_called() {
        let hosts = ["db1.example.com", "10.0.0.7", "DB1", "scan.example.com", ""];
        let text = "oracle://slob@DB1.example.com:1521/db1x; 10.0.0.7 and db1 (10.0.0.71), scan,db1-vip é db1";
        assert_eq!(
            masked_by(&hosts, text),
            "oracle://slob@host-1:1521/db1x; host-2 and host-1 (10.0.0.71), host-3,db1-vip é host-1"
        );
        assert_eq!(masked_by(&[], "db1"), "db1");
    }

    #[test]
    fn nothing_of_an_examination_is_left_out() {
        let found = Examination {
            target: "oracle://u@h9/s".to_owned(),
            checks: vec![Check::advice("data", "none at h9", "ask h9")],
            facts: BTreeMap::from([("session".to_owned(), "from h9".to_owned())]),
        };
        assert!(!found.has_problem());
        let text = format!("{:?}", found.masked(&["h9".to_owned()]));
        assert!(!text.contains("h9") && text.matches("host-1").count() == 4, "{text}");
    }
}
