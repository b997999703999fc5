//! What fio's options say of the load, and by which of our names.

use std::collections::BTreeMap;

/// Names of options that may hold what nobody else should read.
const SECRETS: [&str; 6] = ["pass", "secret", "key", "token", "credential", "http_user"];

/// Engines that have one request outstanding at most, whatever `iodepth` says: those with `FIO_SYNCIO` in fio's `engines/`.
const ONE_AT_A_TIME: [&str; 20] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "ftruncate",
    "falloc",
    "splice",
    "net",
    "netsplice",
    "gfapi",
    "http",
    "libhdfs",
    "dev-dax",
    "libpmem",
    "mtd",
    "filecreate",
    "filestat",
    "filedelete",
];

/// The size of a request unless something else is set.
const DEFAULT_BLOCK: u64 = 4_096;

/// The value of an option as it may be shown.
pub fn shown(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    if SECRETS.iter().any(|secret| name.contains(secret)) {
        return "***".to_owned();
    }
    without_password(value)
}

/// `nbd://user:word@host/` without the word.
fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
        Some((user, word)) => format!("{scheme}://{user}:***{}", rest.get(user.len() + 1 + word.len()..).unwrap_or("")),
        None => value.to_owned(),
    }
}

/// Options of a job and those that all jobs have.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Of the job.
    pub own: &'a BTreeMap<String, String>,
    /// Of all.
    pub globals: &'a BTreeMap<String, String>,
    /// Whether these are all that were set to a value, so that others have fio's defaults.
    pub are_all: bool,
}

impl<'a> Options<'a> {
    /// An option by any of its names.
    pub fn get(&self, names: &[&str]) -> Option<&'a str> {
        let of = |options: &'a BTreeMap<String, String>| names.iter().find_map(|name| options.get(*name));
        of(self.own).or_else(|| of(self.globals)).map(|value| value.trim())
    }

    fn whole(&self, names: &[&str]) -> Option<u64> {
        self.get(names)?.parse().ok()
    }

    /// Whether a switch is on; absent where it is not set.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.get(&[name]).map(|value| !matches!(value, "0" | "false" | "no"))
    }

    /// Whether jobs of a group are reported as one.
    pub fn are_groups_summed(&self) -> bool {
        self.switch("group_reporting").unwrap_or(false)
    }

    /// Whether what was written is read again to verify it.
    pub fn verifies(&self) -> bool {
        self.get(&["verify"]).is_some()
    }

    /// Requests that one process may have outstanding; absent where it cannot be known.
    pub fn depth(&self) -> Option<u64> {
        let engine = self.get(&["ioengine"]);
        if engine.is_some_and(|engine| ONE_AT_A_TIME.contains(&engine)) {
            return Some(1);
        }
        match self.get(&["iodepth"]) {
            None => Some(1),
            // Without an engine it is the platform's, which on most of them does one at a time.
            Some(_) if engine.is_none() => self.whole(&["iodepth"]).filter(|depth| *depth == 1),
            Some(_) => self.whole(&["iodepth"]).filter(|depth| *depth > 0),
        }
    }

    /// Processes that were started of the job.
    pub fn processes(&self) -> Option<u64> {
        if self.get(&["numjobs"]).is_none() { Some(1) } else { self.whole(&["numjobs"]).filter(|jobs| *jobs > 0) }
    }

    /// The one size of requests of reads, writes and trims; absent where there are several, or it cannot be known.
    pub fn blocks(&self) -> [Option<u64>; 3] {
        if self.get(&["bsrange", "blocksize_range", "bssplit", "bs_is_seq_rand"]).is_some() {
            return [None; 3];
        }
        let Some(text) = self.get(&["bs", "blocksize"]) else {
            let is_default = self.are_all && self.get(&["rw", "readwrite"]).is_some();
            return [is_default.then_some(DEFAULT_BLOCK); 3];
        };
        let si = self.get(&["kb_base"]) == Some("1000");
        let parts: Vec<Option<u64>> = text.split([',', '/']).map(|part| size(part, si)).collect();
        // Those that are not reported are as the one before.
        [0, 1, 2].map(|at| parts.get(at.min(parts.len() - 1)).copied().flatten())
    }

    /// Parameters by the names that our own runs use, where the meaning is the same.
    pub fn ours(&self) -> BTreeMap<String, String> {
        let mut ours = BTreeMap::new();
        let pattern = self.get(&["rw", "readwrite"]).map(pattern);
        if let Some((pattern, read_pct)) = pattern {
            ours.insert("PATTERN".to_owned(), pattern.to_owned());
            let write_pct = self.whole(&["rwmixwrite"]).and_then(|pct| 100_u64.checked_sub(pct));
            let asked = || self.whole(&["rwmixread"]).or(write_pct).filter(|pct| *pct <= 100);
            let read_pct = read_pct.or_else(asked);
            ours.extend(read_pct.map(|pct| ("READ_PCT".to_owned(), pct.to_string())));
        }
        let [read, write, _] = self.blocks();
        let block = match pattern.and_then(|(_, read_pct)| read_pct) {
            Some(100) => read,
            Some(0) => write,
            _ => read.filter(|_| read == write),
        };
        ours.extend(block.map(|bytes| ("BLOCK_SIZE".to_owned(), size_text(bytes))));
        if let Some(distribution) = self.get(&["random_distribution"])
            && distribution.starts_with("zipf:")
        {
            ours.insert("DISTRIBUTION".to_owned(), distribution.to_owned());
        }
        ours
    }
}

/// The pattern by our name, and the share of reads where it follows.
fn pattern(text: &str) -> (&str, Option<u64>) {
    let name = text.split([':', ',']).next().unwrap_or(text).trim();
    match name {
        "readwrite" | "rw" => ("rw", None),
        "read" | "randread" => (name, Some(100)),
        "write" | "randwrite" => (name, Some(0)),
        other => (other, None),
    }
}

/// A size as fio's options write it. With the usual `kb_base` of 1024 its `k` and `KiB` trade meanings: `4k` is 4096.
fn size(text: &str, si: bool) -> Option<u64> {
    let text = text.trim();
    let text = match text.split_once('-') {
        // `4096-4096` is one size, `4k-16k` is not.
        Some((least, most)) if least.trim() == most.trim() => most.trim(),
        Some(_) => return None,
        None => text,
    };
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit = unit.trim().to_ascii_lowercase();
    let (power, is_iec) = match unit.trim_end_matches('b') {
        "" => (0, false),
        "k" => (1, false),
        "m" => (2, false),
        "g" => (3, false),
        "ki" => (1, true),
        "mi" => (2, true),
        "gi" => (3, true),
        _ => return None,
    };
    let base: u64 = if si == is_iec { 1_024 } else { 1_000 };
    digits.parse::<u64>().ok()?.checked_mul(base.pow(power)).filter(|bytes| *bytes > 0)
}

/// A size as our own runs write it.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn of<R>(own: &str, read: impl Fn(Options<'_>) -> R) -> R {
        read(Options { own: &options(own), globals: &options("ioengine=libaio"), are_all: false })
    }

    #[test]
    fn sizes_have_the_units_of_fio() {
        let read = |text| of(text, |options| options.blocks());
        assert_eq!(read("bs=8k"), [Some(8_192); 3]);
        assert_eq!(read("bs=4KiB"), [Some(4_000); 3], "kb_base=1024 turns them round");
        assert_eq!(read("bs=4KiB kb_base=1000")[0], Some(4_096));
        assert_eq!(read("blocksize=8k,64k"), [Some(8_192), Some(65_536), Some(65_536)]);
        assert_eq!(read("bsrange=4k-8k bs=4k"), [None; 3]);
        assert_eq!(read("bs=4k-8k"), [None; 3]);
        assert_eq!(read("bs=99999999999999999999k"), [None; 3]);
    }

    #[test]
    fn depth_is_that_which_the_engine_can_have() {
        assert_eq!(of("iodepth=32", |options| options.depth()), Some(32));
        assert_eq!(of("iodepth=32 ioengine=psync", |options| options.depth()), Some(1));
        assert_eq!(of("rw=read", |options| options.depth()), Some(1));
        let none = BTreeMap::new();
        assert_eq!(Options { own: &options("iodepth=32"), globals: &none, are_all: false }.depth(), None);
        assert_eq!(of("iodepth=x", |options| options.depth()), None);
    }

    #[test]
    fn names_are_ours_where_the_meaning_is() {
        let ours = of("rw=readwrite:8 rwmixwrite=30 bs=8k random_distribution=zipf:1.1", |options| options.ours());
        let shown: Vec<String> = ours.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["BLOCK_SIZE=8K", "DISTRIBUTION=zipf:1.1", "PATTERN=rw", "READ_PCT=70"]);
        assert_eq!(of("rw=randread bs=1m,4k", |options| options.ours())["BLOCK_SIZE"], "1M");
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(shown("http_s3_key", "abc"), "***");
        assert_eq!(shown("uri", "nbd://me:word@host:1/x"), "nbd://me:***@host:1/x");
        assert_eq!(shown("filename", "/dev/sda:/dev/sdb"), "/dev/sda:/dev/sdb");
    }
}
