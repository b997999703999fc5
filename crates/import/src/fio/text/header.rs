//! What fio says before it begins: what each job is asked to do.

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};

use super::block::Block;
use super::line::{bytes, value, without_words};

/// What fio says of a job before it begins: `name: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32`.
#[derive(Debug)]
pub struct Header {
    raw_name: String,
    group: u64,
    options: BTreeMap<String, String>,
}

impl Header {
    /// That of a line.
    pub fn read(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(": (g=")?;
        let (group, rest) = rest.split_once("): rw=")?;
        let (rw, rest) = rest.split_once(", bs=")?;
        let mut options = BTreeMap::from([("rw".to_owned(), rw.trim().to_owned())]);
        let sizes = rest.split(", ioengine=").next().unwrap_or("");
        options.extend(block_sizes(sizes).map(|sizes| ("bs".to_owned(), sizes)));
        for name in ["ioengine", "iodepth"] {
            options.extend(value(rest, name).map(|value| (name.to_owned(), value.to_owned())));
        }
        // A client of `--client` writes the server's name before the job's.
        let name = match name.trim_start().strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
            Some((_, name)) => name,
            None => name,
        };
        Some(Self { raw_name: name.to_owned(), group: group.trim().parse().ok()?, options })
    }
}

/// `(R) 4096B-4096B, (W) 16.0KiB-16.0KiB, (T) 4096B-4096B`, or `4K-4K/4K-4K/4K-4K`, as the option `bs` would have them.
fn block_sizes(text: &str) -> Option<String> {
    let is_old = text.contains('/');
    let ranges: Vec<&str> = if is_old { text.split('/').collect() } else { text.split(',').collect() };
    let size = |text: &str| -> Option<u64> {
        let text = text.trim();
        if text.chars().all(|c| c.is_ascii_digit()) {
            return text.parse().ok();
        }
        // Up to 2.x, `4K` is of 1024.
        let (number, _, scale) = bytes(text, is_old || !text.contains('B'))?;
        crate::draft::whole(number * scale)
    };
    let sizes = ranges.iter().map(|range| {
        let range = range.trim().trim_start_matches(['(', 'R', 'W', 'T', ')', ' ']);
        let (least, most) = range.split_once('-')?;
        let (least, most) = (size(least)?, size(most)?);
        Some(if least == most { least.to_string() } else { format!("{least}-{most}") })
    });
    Some(sizes.collect::<Option<Vec<String>>>()?.join(","))
}

/// What jobs were asked to do alike, by their group, and by group and name.
#[derive(Debug, Default)]
pub struct JobOptions {
    of_groups: HashMap<u64, BTreeMap<String, String>>,
    of_names: HashMap<(u64, String), BTreeMap<String, String>>,
}

impl JobOptions {
    /// Of what fio said before it began; a log puts `words_before` words before each line.
    pub fn new(headers: Vec<Header>, words_before: usize) -> Self {
        let mut asked = Self::default();
        for Header { raw_name, group, options } in headers {
            let name = without_words(&raw_name, words_before).trim().to_owned();
            keep_common(asked.of_names.entry((group, name)), options.clone());
            keep_common(asked.of_groups.entry(group), options);
        }
        asked
    }

    /// What all jobs that may be in a block were asked to do alike: those of its name, or of its group if it sums up several.
    pub fn of(&self, block: &Block, words_before: usize) -> Option<BTreeMap<String, String>> {
        let (group, _) = block.identity();
        let common = if block.processes() > 1 {
            self.of_groups.get(&group)
        } else {
            self.of_names.get(&(group, block.name(words_before).trim().to_owned()))
        };
        // A depth that differs is not the default.
        common.filter(|options| options.contains_key("iodepth")).cloned()
    }
}

fn keep_common<K>(entry: Entry<'_, K, BTreeMap<String, String>>, options: BTreeMap<String, String>) {
    match entry {
        Entry::Vacant(vacant) => drop(vacant.insert(options)),
        Entry::Occupied(mut occupied) => occupied.get_mut().retain(|name, value| options.get(name) == Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_requests_are_bytes_in_every_age() {
        let read = |text: &str| block_sizes(text).unwrap();
        assert_eq!(read("4K-4K/8K-8K/4K-64K"), "4096,8192,4096-65536");
        assert_eq!(read("(R) 512B-512B, (W) 16.0KiB-16.0KiB, (T) 1024KiB-1024KiB"), "512,16384,1048576");
        assert_eq!(read("512-512/512-512"), "512,512");
        assert_eq!(block_sizes("(R) x"), None);
    }

    #[test]
    fn jobs_of_a_name_share_what_they_were_asked_alike() {
        let header =
            |depth| Header::read(&format!("log: a b: (g=1): rw=read, bs=4K-4K/4K-4K, ioengine=sync, iodepth={depth}"));
        let of = |headers: Vec<Option<Header>>| {
            let block = Block::begin("log: a b: (groupid=1, jobs=1): err= 0: pid=1", 1).unwrap();
            JobOptions::new(headers.into_iter().flatten().collect(), 1).of(&block, 1)
        };
        assert_eq!(of(vec![header(4), header(4)]).unwrap()["iodepth"], "4");
        assert_eq!(of(vec![header(4), header(8)]), None, "depths that differ are not known");
        assert_eq!(of(vec![]), None);
    }
}
