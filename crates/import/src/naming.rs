//! What the name of a run reports, where people name it as SLOB's users do: `awr_p30x2_d8s_s64_t1_wu64`.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a name reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// The name without its `awr_`.
    pub(super) name: String,
    /// `disk=p30 qty=2 vm=d8s`.
    pub(super) tags: BTreeMap<&'static str, String>,
    /// Schemas, sessions for each, and blocks an operation touches.
    pub(super) schemas: Option<u32>,
    pub(super) threads: Option<u32>,
    pub(super) work_unit: Option<u32>,
    /// Percentage of operations that change blocks.
    pub(super) update_pct: Option<u32>,
}

/// Endings of files of results; what else follows a point belongs to the name, such as `4xlarge`.
const ENDINGS: [&str; 16] =
    ["awr", "bz2", "conf", "csv", "gz", "htm", "html", "json", "log", "lis", "lst", "md", "out", "spool", "txt", "xml"];

/// The name of a file without its endings.
pub(super) fn stem(mut name: &str) -> &str {
    while let Some((rest, ending)) = name.rsplit_once('.')
        && ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
    {
        name = rest;
    }
    name
}

/// Reads a name of parts between underscores. Only a name that has schemas and threads or a work unit is taken for one: those
/// of other things hold such parts by chance. A part that fits nothing is left to the name.
pub(super) fn read(name: &str) -> Option<Named> {
    let has_kind =
        name.get(..4).is_some_and(|kind| ["awr_", "rac_"].iter().any(|known| kind.eq_ignore_ascii_case(known)));
    let stem = if has_kind { name.get(4..)? } else { name };
    let mut named = Named { name: stem.to_owned(), ..Named::default() };
    let number = |part: &str, prefix: &str| {
        let (letters, digits) = part.split_at_checked(prefix.len())?;
        let is_number = letters.eq_ignore_ascii_case(prefix) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|number| is_number && *number > 0)
    };
    for part in stem.split('_') {
        // `wu` before others: no other part begins so.
        if let Some(work_unit) = number(part, "wu") {
            named.work_unit.get_or_insert(work_unit);
        } else if let Some(schemas) = number(part, "s") {
            named.schemas.get_or_insert(schemas);
        } else if let Some(threads) = number(part, "t") {
            named.threads.get_or_insert(threads);
        } else if let Some(update_pct) = updates(part) {
            named.update_pct.get_or_insert(update_pct);
        } else if let Some((disk, quantity)) = disks(part) {
            named.tags.entry("disk").or_insert_with(|| disk.to_owned());
            named.tags.entry("qty").or_insert_with(|| quantity.to_string());
        } else if is_machine(part) {
            named.tags.entry("vm").or_insert_with(|| part.to_owned());
        }
    }
    let of_load = [named.threads, named.work_unit, named.update_pct];
    let is_one = named.schemas.is_some() && of_load.iter().any(Option::is_some);
    is_one.then_some(named)
}

/// `upd5`, `update3`, `updatepct10`: a percentage of updates.
pub(super) fn updates(part: &str) -> Option<u32> {
    let digits = part.find(|c: char| c.is_ascii_digit())?;
    let (word, number) = part.split_at(digits);
    let is_word =
        ["upd", "update", "updates", "updpct", "updatepct"].iter().any(|known| word.eq_ignore_ascii_case(known));
    number.parse().ok().filter(|percent| is_word && *percent <= 100)
}

/// `awr.txt.128`: sessions behind the name of a report, where SLOB's own script that sums up reports looks for them.
pub(super) fn sessions(file: &str) -> Option<u32> {
    let (name, sessions) = file.rsplit_once('.')?;
    let is_report = name.get(..3).is_some_and(|kind| kind.eq_ignore_ascii_case("awr")) && name.ends_with(".txt");
    sessions.parse().ok().filter(|sessions| is_report && *sessions > 0)
}

/// `p30x2`: a kind of disk, and how many.
fn disks(part: &str) -> Option<(&str, u32)> {
    let (disk, quantity) = part.rsplit_once(['x', 'X'])?;
    let is_disk =
        disk.starts_with(|c: char| c.is_ascii_alphabetic()) && disk.chars().all(|c| c.is_ascii_alphanumeric());
    Some((disk, quantity.parse().ok().filter(|quantity| is_disk && *quantity > 0)?))
}

/// `d8s`, `e32s`, `m64`, `D32sv3`, `r5.4xlarge`: a letter or two, a number, and what follows in letters, digits and points.
fn is_machine(part: &str) -> bool {
    let letters = part.chars().take_while(char::is_ascii_alphabetic).count();
    let digits = part.chars().skip(letters).take_while(char::is_ascii_digit).count();
    (1..=2).contains(&letters)
        && digits > 0
        && part.len() <= 16
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
}

/// What a folder above a run reports, where it is called `cache-off` or the like: a tag of its own.
pub(super) fn of_folder(folder: &str) -> Option<(&'static str, String)> {
    let value = folder.strip_prefix("cache-").or_else(|| folder.strip_prefix("cache_"))?;
    (!value.is_empty()).then(|| ("cache", value.to_owned()))
}

/// A tag for each of the folders of results that have one name: where their paths differ. Folders that are all called alike but for
/// what follows, such as `cache-on` and `cache-off` or `disk=p30` and `disk=p60`, have the beginning as its key. Nothing if all are
/// in one folder.
pub fn distinct_names(folders: &[PathBuf]) -> Option<Vec<(String, String)>> {
    let parts = |folder: &PathBuf| -> Vec<String> {
        folder.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let all: Vec<Vec<String>> = folders.iter().map(parts).collect();
    let first = all.first()?;
    let shortest = all.iter().map(Vec::len).min()?;
    let same = |at: &dyn Fn(&Vec<String>) -> Option<String>| all.iter().all(|parts| at(parts) == at(first));
    let before = (0..shortest).take_while(|at| same(&|parts| parts.get(*at).cloned())).count();
    let from_end =
        |parts: &Vec<String>, at: usize| parts.len().checked_sub(at + 1).and_then(|at| parts.get(at).cloned());
    let after = (0..shortest - before).take_while(|at| same(&|parts| from_end(parts, *at))).count();
    if all.iter().all(|parts| parts == first) {
        return None;
    }
    let middle = |parts: &Vec<String>| parts.get(before..parts.len() - after).unwrap_or_default().join("/");
    // One folder may lie in another one.
    let name =
        |parts: &Vec<String>| Some(middle(parts)).filter(|name| !name.is_empty()).unwrap_or_else(|| ".".to_owned());
    let names: Vec<String> = all.iter().map(name).collect();
    let pair = |name: &String| {
        let (key, value) = name.split_once(['=', '-'])?;
        let is_pair = !value.is_empty() && !name.contains('/') && key.starts_with(|c: char| c.is_ascii_alphabetic());
        is_pair.then(|| (key.to_owned(), value.to_owned()))
    };
    let pairs: Option<Vec<(String, String)>> = names.iter().map(pair).collect();
    let of_one_key = pairs.filter(|pairs| pairs.windows(2).all(|two| two[0].0 == two[1].0));
    Some(of_one_key.unwrap_or_else(|| names.into_iter().map(|name| ("folder".to_owned(), name)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_a_parameter() {
        let of = |name: &str| read(name).and_then(|named| named.update_pct);
        assert_eq!([of("awr_p30x2_s64_t1_upd5"), of("s8_update3_wu64"), of("s8_upd0")], [Some(5), Some(3), Some(0)]);
        assert_eq!([of("s8_t1_upd500"), of("s8_t1_updown5"), of("upd5")], [None; 3]);
    }

    #[test]
    fn sessions_stand_behind_the_name_of_a_report() {
        let of =
            ["awr.txt.128", "awr_rac.txt.64", "awr.txt", "awr.txt.0", "report.txt.128", "awr.html.128"].map(sessions);
        assert_eq!(of, [Some(128), Some(64), None, None, None, None]);
    }

    #[test]
    fn folders_are_distinguished_by_what_differs_in_their_paths() {
        let of = |folders: &[&str]| distinct_names(&folders.iter().map(PathBuf::from).collect::<Vec<_>>());
        let tags = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(of(&["/r/day1/awr_s8_t1", "/r/day2/awr_s8_t1"]), tags(&[("folder", "day1"), ("folder", "day2")]));
        assert_eq!(of(&["/r/disk=p30", "/r/disk=p60"]), tags(&[("disk", "p30"), ("disk", "p60")]));
        assert_eq!(of(&["/r/asm-p30/x", "/r/asm-p60/x"]), tags(&[("asm", "p30"), ("asm", "p60")]));
        assert_eq!(of(&["/r/a/b/x", "/r/c/x"]), tags(&[("folder", "a/b"), ("folder", "c")]));
        assert_eq!(of(&["/r", "/r/old"]), tags(&[("folder", "."), ("folder", "old")]));
        assert_eq!((of(&["/r/a", "/r/a"]), of(&[])), (None, None));
    }

    #[test]
    fn a_name_tells_disks_machine_and_load() {
        let named = read("awr_p30x2_d8s_s64_t1_wu64").unwrap();
        assert_eq!(named.name, "p30x2_d8s_s64_t1_wu64");
        assert_eq!((named.schemas, named.threads, named.work_unit), (Some(64), Some(1), Some(64)));
        let tags: Vec<String> = named.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(tags.join(" "), "disk=p30 qty=2 vm=d8s");
    }

    #[test]
    fn parts_in_another_order_and_unknown_ones_are_borne() {
        let named = read("s8_t4_ultrax16_e32sv3_nocache").unwrap();
        assert_eq!((named.schemas, named.threads, named.work_unit), (Some(8), Some(4), None));
        assert_eq!((named.tags["disk"].as_str(), named.tags["vm"].as_str()), ("ultra", "e32sv3"));
    }

    #[test]
    fn points_and_capitals_belong_to_a_name() {
        let named = read(stem("AWR_P30X2_r5.4xlarge_S64_T1.txt.GZ")).unwrap();
        assert_eq!((named.name.as_str(), named.schemas, named.threads), ("P30X2_r5.4xlarge_S64_T1", Some(64), Some(1)));
        assert_eq!((named.tags["disk"].as_str(), named.tags["vm"].as_str()), ("P30", "r5.4xlarge"));
        assert_eq!([stem("awr_rac.html.gz"), stem("r5.4xlarge"), stem(".out")], ["awr_rac", "r5.4xlarge", ""]);
    }

    #[test]
    fn other_names_tell_nothing() {
        for name in ["awrrpt_1_171_172", "report", "s8", "iostat_2020", "x_y_z", "", "p30x2_d8s"] {
            assert_eq!(read(name), None, "{name}");
        }
        assert_eq!(of_folder("cache-off"), Some(("cache", "off".to_owned())));
        assert_eq!(of_folder("cachet"), None);
    }
}
