//! What parameters do to a test.

use std::collections::BTreeMap;

use measure::doctor::Check;
use model::units::Bytes;

/// Data of so many times the buffer cache leave it little to answer.
const AMPLE_TIMES: u64 = 4;
/// What SLOB has set to 0, so that a range scan asks for one block at a time.
const PREFETCH: [&str; 3] =
    ["_db_block_prefetch_limit", "_db_block_prefetch_quota", "_db_file_noncontig_mblock_read_count"];

/// What each parameter means that is known.
pub(super) fn judge(parameters: &BTreeMap<String, String>) -> Vec<Check> {
    let value = |name: &str| parameters.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let is = |name: &str, wanted: &str| value(name).map(|value| value.eq_ignore_ascii_case(wanted));
    let mut checks = vec![prefetch(parameters)];
    match is("timed_statistics", "TRUE") {
        Some(true) => checks.push(Check::good("timed_statistics", "TRUE: waits are timed")),
        Some(false) => checks.push(Check::problem(
            "timed_statistics",
            "FALSE: no wait is timed, so the server has no latencies and no histograms",
            "ALTER SYSTEM SET timed_statistics = TRUE",
        )),
        None => {}
    }
    if let Some(options) = value("filesystemio_options") {
        let finding = format!("{options}: on a file system, data files are read ");
        checks.push(match options.to_ascii_uppercase().as_str() {
            "SETALL" | "DIRECTIO" => Check::good("filesystemio_options", finding + "past the page cache"),
            _ => Check::advice(
                "filesystemio_options",
                finding + "through the page cache, which hides the storage; ASM and Direct NFS do without",
                "where data files are on a file system: ALTER SYSTEM SET filesystemio_options = SETALL SCOPE = SPFILE, and \
                 restart",
            ),
        });
    }
    match is("disk_asynch_io", "TRUE") {
        Some(true) => checks.push(Check::good("disk_asynch_io", "TRUE: writers keep many writes outstanding")),
        Some(false) => checks.push(Check::advice(
            "disk_asynch_io",
            "FALSE: each writer waits for each write, so updates may be limited by that and not by storage",
            "ALTER SYSTEM SET disk_asynch_io = TRUE SCOPE = SPFILE, and restart",
        )),
        None => {}
    }
    checks.extend(commits(value("commit_wait"), value("commit_logging")));
    // It is there and empty where no plan is active.
    match (parameters.contains_key("resource_manager_plan"), value("resource_manager_plan")) {
        (true, None) => checks.push(Check::good("resource plan", "none is active")),
        (_, Some(plan)) => checks.push(Check::advice(
            "resource plan",
            format!("{plan} is active: it may hold back processors and storage"),
            "measure with the plan that counts, or with none, which the next maintenance window must not set again: ALTER SYSTEM SET \
             resource_manager_plan = 'FORCE:'",
        )),
        (false, None) => {}
    }
    if let Some(packs) = value("control_management_pack_access") {
        checks.push(Check::good(
            "licence",
            format!("control_management_pack_access is {packs}: what is switched on, which proves no licence; no pack was used"),
        ));
    }
    checks
}

fn prefetch(parameters: &BTreeMap<String, String>) -> Check {
    let set: Vec<String> = PREFETCH
        .iter()
        .filter_map(|name| parameters.get(*name).map(|value| format!("{name}={}", value.trim())))
        .collect();
    if set.len() == PREFETCH.len() && set.iter().all(|setting| setting.ends_with("=0")) {
        return Check::good("prefetching", "off, as SLOB has it: a range scan asks for one block at a time");
    }
    let seen = if set.is_empty() {
        "no hidden parameter for it is visible, as on a server where none was set".to_owned()
    } else {
        format!("only {} can be seen", set.join(", "))
    };
    Check::advice(
        "prefetching",
        format!("{seen}: a range scan may ask for several blocks at once"),
        format!(
            "look at the reads below. If they are not single blocks, read key by key. Or on a test database: ALTER \
            SYSTEM SET \"{}\" = 0 SCOPE = SPFILE, the same for \"{}\" and \"{}\", and restart",
            PREFETCH[0], PREFETCH[1], PREFETCH[2]
        ),
    )
}

fn commits(wait: Option<&str>, logging: Option<&str>) -> Vec<Check> {
    let mut checks = Vec::new();
    match wait.map(str::to_ascii_uppercase).as_deref() {
        Some("NOWAIT") => checks.push(Check::advice(
            "commit_wait",
            "NOWAIT: a plain COMMIT does not wait for its redo; ours do, since they ask for it",
            "leave it to each session: ALTER SYSTEM RESET commit_wait",
        )),
        Some("FORCE_WAIT") => checks.push(Check::advice(
            "commit_wait",
            "FORCE_WAIT: every commit waits, also those that ask not to, as SLOB's do within PL/SQL",
            "compare with SLOB's own figures only from servers that have the same",
        )),
        Some(other) => checks.push(Check::good("commit_wait", other)),
        None => {}
    }
    match logging.map(str::to_ascii_uppercase).as_deref() {
        Some("BATCH") => checks.push(Check::advice(
            "commit_logging",
            "BATCH: redo of plain commits is gathered; ours ask for IMMEDIATE",
            "leave it to each session: ALTER SYSTEM RESET commit_logging",
        )),
        Some(other) => checks.push(Check::good("commit_logging", other)),
        None => {}
    }
    checks
}

/// What a buffer cache of `cache` leaves of reads from data of `data`, where both are known.
pub(super) fn cache(cache: Option<Bytes>, data: Option<Bytes>, parameters: &BTreeMap<String, String>) -> Check {
    let topic = "buffer cache";
    let Some(cache) = cache else {
        return Check::advice(
            topic,
            "its size is not known, so nor is how many reads it answers",
            "grant the right to v$sgainfo, or compare the data with sga_target yourself",
        );
    };
    let is_set =
        |name: &&str| parameters.get(*name).is_some_and(|value| value.parse::<u64>().is_ok_and(|bytes| bytes > 0));
    let managed =
        ["memory_target", "sga_target"].into_iter().find(is_set).map(|name| format!(", which {name} may change"));
    let finding = format!("{cache} now{}", managed.unwrap_or_default());
    let ample = Bytes(cache.0.saturating_mul(AMPLE_TIMES));
    match data {
        None => Check::good(topic, format!("{finding}; data of {ample} or more leave it little to answer")),
        Some(data) if data > ample => Check::good(topic, format!("{finding}; the data is {data}")),
        Some(data) => {
            let finding =
                format!("{finding}, and the data only {data}: the cache serves much of what should reach storage");
            let advice = format!(
                "make data of {ample} or more in all (SCALE), or a smaller cache: db_cache_size and sga_target"
            );
            if data <= cache { Check::problem(topic, finding, advice) } else { Check::advice(topic, finding, advice) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::doctor::Status;

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn status(checks: &[Check], topic: &str) -> Option<Status> {
        checks.iter().find(|check| check.topic == topic).map(|check| check.status)
    }

    #[test]
    fn nothing_is_said_of_parameters_that_are_not_seen() {
        let checks = judge(&BTreeMap::new());
        assert_eq!(checks.len(), 1, "{checks:?}");
        assert!(checks[0].finding.contains("no hidden parameter"), "{checks:?}");
    }

    #[test]
    fn each_parameter_that_spoils_a_test_is_named_with_its_cure() {
        let good = [
            ("timed_statistics", "TRUE"),
            ("filesystemio_options", "setall"),
            ("disk_asynch_io", "TRUE"),
            ("resource_manager_plan", ""),
            ("control_management_pack_access", "NONE"),
            ("_db_block_prefetch_limit", "0"),
            ("_db_block_prefetch_quota", "0"),
            ("_db_file_noncontig_mblock_read_count", "0"),
        ];
        let checks = judge(&parameters(&good));
        assert!(checks.iter().all(|check| check.status == Status::Good) && checks.len() == 6, "{checks:?}");
        for (name, value, topic, worse) in [
            ("timed_statistics", "FALSE", "timed_statistics", Status::Problem),
            ("filesystemio_options", "none", "filesystemio_options", Status::Advice),
            ("disk_asynch_io", "FALSE", "disk_asynch_io", Status::Advice),
            ("resource_manager_plan", "DEFAULT_MAINTENANCE_PLAN", "resource plan", Status::Advice),
            ("_db_block_prefetch_quota", "10", "prefetching", Status::Advice),
            ("commit_wait", "NOWAIT", "commit_wait", Status::Advice),
            ("commit_wait", "FORCE_WAIT", "commit_wait", Status::Advice),
            ("commit_logging", "BATCH", "commit_logging", Status::Advice),
        ] {
            let mut all = parameters(&good);
            all.insert(name.to_owned(), value.to_owned());
            assert_eq!(status(&judge(&all), topic), Some(worse), "{name}={value}");
        }
    }

    #[test]
    fn data_are_held_against_the_cache() {
        let of = |data: u64| cache(Some(Bytes::gib(1)), Some(Bytes::gib(data)), &BTreeMap::new()).status;
        assert_eq!([of(1), of(4), of(5)], [Status::Problem, Status::Advice, Status::Good]);
        let unknown = cache(None, Some(Bytes::gib(9)), &BTreeMap::new());
        assert_eq!(unknown.status, Status::Advice);
        let managed = cache(Some(Bytes::gib(1)), None, &parameters(&[("sga_target", "99"), ("memory_target", "0")]));
        assert!(managed.finding.contains("which sga_target may change"), "{managed:?}");
    }
}
