//! What a run measured beside what its platform should reach, where its tags name machine and volumes.

use super::Figures;
use super::traffic::request_bytes;
use model::platforms::{
    Asked, Cache, Catalogue, Combination, CombinationError, Expectation, NameError, Redundancy, VolumeError, Volumes,
    Whose, measured_against,
};
use model::record::{Metric, Run, Step};
use model::units::Bytes;

/// Names of tags by which people name the parts of a platform.
const MACHINE: [&str; 3] = ["vm", "machine", "instance"];
const VOLUME_TAGS: [&str; 3] = ["disk", "volume", "storage"];
const NODES: &str = "nodes";
const CACHE: [&str; 2] = ["cache", "caching"];
const REDUNDANCY: &str = "redundancy";
/// SLOB's parameter for the size of a block.
const BLOCK_SIZE: &str = "BLOCK_SZ";

/// What the tags of a run say of its platform.
#[derive(Debug, Clone, PartialEq)]
pub enum Tagged {
    /// They name a machine and volumes that are known and go together.
    Platform(Box<Combination>),
    /// They nearly do: what stands in the way, and what to write.
    Nearly(String),
    /// They do not.
    Nothing,
}

/// The platform that the tags of `run` name, by the names of `catalogue`.
pub fn tagged_platform(run: &Run, catalogue: &Catalogue) -> Tagged {
    let tag = |names: &[&str]| names.iter().find_map(|name| run.tags.get_key_value(*name));
    let (Some(machine), Some(volumes)) = (tag(&MACHINE), tag(&VOLUME_TAGS)) else { return Tagged::Nothing };
    let (nodes, cache, redundancy) = (nodes(run), tag(&CACHE).map(cache).transpose(), redundancy(run));
    let parts = (nodes.clone().unwrap_or(1), cache.clone().ok().flatten().unwrap_or_default());
    let redundant = redundancy.clone().unwrap_or_default();
    match Combination::parse(catalogue, (machine.1, parts.0), volumes.1, parts.1, redundant) {
        Err(problem) if !is_near(&problem) => Tagged::Nothing,
        // A word that is not understood would make it another platform, with another ceiling.
        found => match (nodes.err().or(cache.err()).or(redundancy.err()), found) {
            (Some(note), _) => Tagged::Nearly(note),
            (None, Ok(platform)) => Tagged::Platform(Box::new(platform)),
            (None, Err(problem)) => {
                let tags = format!("{}={} {}={}", machine.0, machine.1, volumes.0, volumes.1);
                Tagged::Nearly(format!("by its tags {tags} nothing can be expected: {problem}; {}", problem.hint()))
            }
        },
    }
}

fn not_understood((name, value): (&str, &str), understood: &str) -> String {
    format!("by its tag {name}={value} nothing can be expected: `{name}` is {understood}")
}

fn nodes(run: &Run) -> Result<u32, String> {
    let Some(written) = run.tags.get(NODES) else { return Ok(1) };
    written.trim().parse().map_err(|_| not_understood((NODES, written), "a number"))
}

/// Write Accelerator and the like stand after the cache's own word, as in `read-wa`.
fn cache((name, written): (&String, &String)) -> Result<Cache, String> {
    let lower = written.trim().to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        // A cache that holds writes back is none that is reckoned here.
        ["read" | "r", "write" | "w", ..] => Err(()),
        ["read" | "r" | "readonly" | "ro", ..] => Ok(Cache::Read),
        ["none" | "no" | "off", ..] => Ok(Cache::None),
        _ => Err(()),
    }
    .map_err(|()| not_understood((name, written), "`none` or `read`, and what follows after a `-` is yours"))
}

fn redundancy(run: &Run) -> Result<Redundancy, String> {
    let Some(written) = run.tags.get(REDUNDANCY) else { return Ok(Redundancy::External) };
    match written.trim().to_ascii_lowercase().as_str() {
        "external" => Ok(Redundancy::External),
        "normal" => Ok(Redundancy::Normal),
        "high" => Ok(Redundancy::High),
        _ => Err(not_understood((REDUNDANCY, written), "`external` (one copy), `normal` (two) or `high` (three)")),
    }
}

/// Whether the tags were probably meant to name a platform.
fn is_near(problem: &CombinationError) -> bool {
    match problem {
        CombinationError::Machine(problem) | CombinationError::Volumes(VolumeError::Name(problem)) => {
            NameError::is_near(problem)
        }
        CombinationError::Volumes(VolumeError::Written { .. }) | CombinationError::Apart { .. } => true,
    }
}

/// What a tag of `run` calls its volumes.
pub(super) fn volume_tag(run: &Run) -> Option<&str> {
    VOLUME_TAGS.iter().find_map(|name| Some(run.tags.get(*name)?.as_str()))
}

/// The volumes that a tag of `run` names, whatever the machine.
pub(super) fn volumes_by_tag(run: &Run, catalogue: &Catalogue) -> Option<Volumes> {
    VOLUME_TAGS.iter().find_map(|name| Volumes::parse(run.tags.get(*name)?, catalogue).ok())
}

/// A step beside what its platform should reach under a load such as its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Label of the step.
    pub step: String,
    /// Requests per second that it did.
    pub per_s: f64,
    /// With no read served by the host's cache.
    pub cold: Expectation,
    /// With all of them, where such a cache lies before the volumes.
    pub warm: Option<Expectation>,
}

impl Expected {
    /// Of one step of `run`; nothing where its requests or their size are not known, or it did none.
    pub fn of(run: &Run, step: &Step, platform: &Combination) -> Option<Self> {
        let per_s = Figures(step).requests_per_s().filter(|per_s| *per_s > 0.0)?;
        let block_bytes = request_bytes(step).or_else(|| block_bytes(run))?;
        // Of a database that writes through the page cache only reads are among the requests, and so in the mix.
        let reads = Figures(step).value(Metric::Reads).unwrap_or(0.0);
        let read_share = (reads / per_s).min(1.0);
        let with = |hit_share| Expectation::of(platform, Asked { read_share, block_bytes, hit_share });
        let warm = (platform.cache == Cache::Read).then(|| with(1.0));
        let cold = with(0.0);
        cold.sustained()?;
        Some(Self { step: step.label.clone(), per_s, cold, warm })
    }

    /// Of the step of `run` that did the most.
    pub fn of_run(run: &Run, platform: &Combination) -> Option<Self> {
        let of_steps = run.steps.iter().filter_map(|step| Self::of(run, step, platform));
        of_steps.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }

    /// `61,000 of 80,000 requests/s that the volumes allow; the machine allows 51,200 a node`, and what a warm cache allows.
    pub fn words(&self, platform: &Combination) -> Option<String> {
        let cold = measured_against(self.per_s, platform, &self.cold)?;
        let warm = self.warm.as_ref().and_then(Expectation::sustained);
        let warm = warm.filter(|warm| Some(warm.per_s) != self.cold.sustained().map(|cold| cold.per_s));
        let warm = warm.map_or_else(String::new, |warm| {
            format!(
                ", with no read served by the host's cache; with all of them {} requests/s",
                model::units::group_thousands(warm.per_s.floor())
            )
        });
        Some(format!("{cold}{warm}"))
    }

    /// Requests of such a load per second that the volumes allow.
    pub fn volumes_allow(&self) -> Option<f64> {
        [Whose::VolumesIops, Whose::VolumesBytes].into_iter().filter_map(|whose| self.cold.at(whose)).reduce(f64::min)
    }
}

/// Bytes of a read where they were not counted: SLOB's reads are of single blocks.
fn block_bytes(run: &Run) -> Option<f64> {
    run.parameters.get(BLOCK_SIZE)?.parse::<Bytes>().ok().map(|block| block.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    fn tagged(tags: &[(&str, &str)]) -> Run {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Run { tags, ..sample::sweep(10) }
    }

    fn platform(tags: &[(&str, &str)]) -> Tagged {
        tagged_platform(&tagged(tags), Catalogue::built_in())
    }

    #[test]
    fn tags_name_a_platform_only_where_both_names_are_understood() {
        let Tagged::Platform(found) = platform(&[
            ("vm", "M64s"),
            ("disk", "p30x32"),
            ("cache", "R-WA"),
            ("nodes", "2"),
            ("redundancy", "normal"),
        ]) else {
            panic!("both names are known")
        };
        assert_eq!(found.name(), "Standard_M64s x 2 with P30 x 32, read cache, normal redundancy");
        for tags in
            [&[("vm", "M64s")][..], &[("vm", "rack7"), ("disk", "p30")], &[("vm", "M64s"), ("disk", "our array")]]
        {
            assert_eq!(platform(tags), Tagged::Nothing, "{tags:?}");
        }
    }

    #[test]
    fn tags_that_are_nearly_names_bring_a_note() {
        for (tags, says) in [
            ([("vm", "M65s"), ("disk", "p30")], "the nearest are Standard_M64s"),
            ([("vm", "M64s"), ("disk", "p33")], "no volume is called `p33`"),
            ([("vm", "D8s_v3"), ("disk", "p30x17")], "takes 16"),
            ([("vm", "D8s_v3"), ("disk", "gp2x4")], "follows from its size"),
        ] {
            let Tagged::Nearly(note) = platform(&tags) else { panic!("{tags:?}") };
            assert!(note.contains(says), "{note}");
        }
    }

    #[test]
    fn a_word_that_is_not_understood_makes_no_other_platform() {
        let with = |key, value| platform(&[("vm", "M64s"), ("disk", "p30x32"), (key, value)]);
        for (key, value, says) in [
            ("redundancy", "double", "`redundancy` is `external` (one copy), `normal` (two) or `high` (three)"),
            ("cache", "rw", "`cache` is `none` or `read`"),
            ("cache", "read-write", "by its tag cache=read-write nothing can be expected"),
            ("caching", "ReadWrite", "`caching` is `none` or `read`"),
            ("nodes", "two", "`nodes` is a number"),
            ("nodes", "0", "1 to 1000 nodes"),
        ] {
            let Tagged::Nearly(note) = with(key, value) else { panic!("{key}={value}") };
            assert!(note.contains(says), "{note}");
        }
        for (key, value, cache, redundancy) in [
            ("redundancy", "Normal", Cache::None, Redundancy::Normal),
            ("redundancy", "external", Cache::None, Redundancy::External),
            ("caching", "ReadOnly", Cache::Read, Redundancy::External),
            ("cache", "ro", Cache::Read, Redundancy::External),
            ("cache", "read-wa", Cache::Read, Redundancy::External),
            ("cache", "None", Cache::None, Redundancy::External),
        ] {
            let Tagged::Platform(found) = with(key, value) else { panic!("{key}={value}") };
            assert_eq!((found.cache, found.redundancy), (cache, redundancy), "{key}={value}");
        }
        // What names no platform is not told how to write one.
        assert_eq!(platform(&[("vm", "rack7"), ("disk", "our array"), ("redundancy", "raid10")]), Tagged::Nothing);
    }

    #[test]
    fn a_step_stands_beside_what_is_allowed_for_its_own_mix_and_size() {
        let run = tagged(&[("vm", "E32s_v3"), ("disk", "p30x16"), ("nodes", "2")]);
        let Tagged::Platform(platform) = tagged_platform(&run, Catalogue::built_in()) else { panic!("known") };
        let expected = Expected::of_run(&run, &platform).unwrap();
        let most = run.steps.iter().filter_map(|step| Figures(step).requests_per_s()).fold(0.0, f64::max);
        assert_eq!(expected.per_s, most);
        assert_eq!(expected.volumes_allow(), Some(80_000.0));
        let words = expected.words(&platform).unwrap();
        assert!(
            words.ends_with("of 80,000 requests/s that the volumes allow; the machine allows 51,200 a node"),
            "{words}"
        );
        let mut nothing = run.steps[0].clone();
        nothing.counters = model::record::Counters::default();
        assert_eq!(Expected::of(&run, &nothing, &platform), None);
        // A simulated database counts reads and not their bytes; SLOB's are of one block.
        let mut uncounted = run.steps[0].clone();
        uncounted.counters.physical_read_bytes = None;
        uncounted.counters.physical_write_bytes = None;
        assert_eq!(Expected::of(&run, &uncounted, &platform), None);
        let mut slob = run.clone();
        slob.parameters.insert(BLOCK_SIZE.to_owned(), "8K".to_owned());
        assert_eq!(Expected::of(&slob, &uncounted, &platform).unwrap().cold.asked.block_bytes, 8_192.0);
    }
}
