//! How the machine's processors, caches and memory lie, from `/sys/devices/system`.

use crate::os::Root;
use model::record::{Cache, NumaNode, Processor, Topology};

const PROCESSORS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// What the kernel reports; `None` if it lists no processor.
pub(super) fn topology(root: &Root) -> Option<Topology> {
    let online = list(&root.value(format!("{PROCESSORS}/online"))?);
    let first = *online.first()?;
    let processor = |number: &u32| {
        let part = |file: &str| root.number(format!("{PROCESSORS}/cpu{number}/topology/{file}"));
        Processor { number: *number, core: part("core_id"), socket: part("physical_package_id") }
    };
    let mut caches: Vec<Cache> = root
        .names(format!("{PROCESSORS}/cpu{first}/cache"))
        .iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(|name| cache(root, &format!("{PROCESSORS}/cpu{first}/cache/{name}")))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    let mut nodes: Vec<NumaNode> = root
        .names(NODES)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .map(|number| node(root, number))
        .collect();
    nodes.sort_by_key(|node| node.number);
    Some(Topology { processors: online.iter().map(processor).collect(), nodes, caches })
}

/// A cache that holds data.
fn cache(root: &Root, directory: &str) -> Option<Cache> {
    let kind = root.value(format!("{directory}/type"))?;
    if kind == "Instruction" {
        return None;
    }
    let shared = root.value(format!("{directory}/shared_cpu_list")).map(|text| list(&text).len());
    Some(Cache {
        level: root.number(format!("{directory}/level"))?,
        bytes: size(&root.value(format!("{directory}/size"))?)?,
        shared_by: shared.and_then(|shared| u32::try_from(shared).ok()).filter(|shared| *shared > 0),
    })
}

fn node(root: &Root, number: u32) -> NumaNode {
    let directory = format!("{NODES}/node{number}");
    let memory = root.text(format!("{directory}/meminfo")).and_then(|text| {
        let line = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1.trim();
        line.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let distances = root.value(format!("{directory}/distance")).unwrap_or_default();
    NumaNode {
        number,
        processors: root.value(format!("{directory}/cpulist")).map(|text| list(&text)).unwrap_or_default(),
        memory_bytes: memory,
        distances: distances.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect(),
    }
}

/// Most processors that a list is believed to have: Linux knows fewer.
const MAX_PROCESSORS: usize = 16_384;

/// The kernel's way to write a list of numbers: `0-3,8,10-11`. What is no number is passed over.
fn list(text: &str) -> Vec<u32> {
    let range = |word: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(MAX_PROCESSORS).collect()
}

/// `48K` or `32768K`.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn threads_caches_and_nodes_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |path: &str, text: &str| {
            let path = root.path(format!("/sys/devices/system/{path}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(topology(&root), None);
        put("cpu/online", "0-3\n");
        for (number, core) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            put(&format!("cpu/cpu{number}/topology/core_id"), &format!("{core}\n"));
            put(&format!("cpu/cpu{number}/topology/physical_package_id"), "0\n");
        }
        for (index, level, kind, bytes) in
            [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (3, 3, "Unified", "32M")]
        {
            put(&format!("cpu/cpu0/cache/index{index}/level"), &format!("{level}\n"));
            put(&format!("cpu/cpu0/cache/index{index}/type"), &format!("{kind}\n"));
            put(&format!("cpu/cpu0/cache/index{index}/size"), &format!("{bytes}\n"));
        }
        put("cpu/cpu0/cache/index3/shared_cpu_list", "0-3\n");
        put("node/node0/cpulist", "0,2\n");
        put("node/node0/distance", "10 21\n");
        put("node/node0/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB\n");
        put("node/node1/cpulist", "1,3\n");
        let found = topology(&root).unwrap();
        assert_eq!(found.cores(), Some(2));
        let caches: Vec<_> = found.caches.iter().map(|cache| (cache.level, cache.bytes, cache.shared_by)).collect();
        assert_eq!(caches, [(1, 48 << 10, None), (3, 32 << 20, Some(4))]);
        let [first, second] = found.nodes.as_slice() else { panic!("{:?}", found.nodes) };
        assert_eq!((first.processors.as_slice(), first.memory_bytes), ([0, 2].as_slice(), Some(2 << 20)));
        assert_eq!(
            (first.distances.as_slice(), second.processors.as_slice()),
            ([10, 21].as_slice(), [1, 3].as_slice())
        );
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic_or_grow_without_end(text in "[0-9,-]{0,40}|.{0,40}") {
            prop_assert!(list(&text).len() <= MAX_PROCESSORS);
            let _ = size(&text);
        }
    }
}
