//! Makes the parts of a large fleet from one run, by which `plimsoll merge` is measured: its intervals over and over, in as many
//! parts as are asked for.
//!
//! `fleet RUN DIRECTORY PARTS SECONDS`

use std::path::Path;

use plimsoll::record::store::{RunWriter, Store, load};
use plimsoll::record::{ClockOffset, FleetPart};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [run, directory, parts, seconds] = words.as_slice() else {
        return Err("usage: fleet RUN DIRECTORY PARTS SECONDS".into());
    };
    let (parts, seconds): (u32, usize) = (parts.parse()?, seconds.parse()?);
    let mut run = load(Path::new(run))?;
    run.steps.truncate(1);
    let mut step = run.steps.pop().ok_or("the run has no step")?;
    let (warmup, window): (Vec<_>, Vec<_>) =
        std::mem::take(&mut step.intervals).into_iter().partition(|one| one.warmup);
    let length_ns = window.first().ok_or("the run has no intervals")?.duration_ns;
    let full = |one: &&plimsoll::record::Interval| one.duration_ns == length_ns;
    let cycle: Vec<_> = window.iter().filter(full).cycle().take(seconds).cloned().collect();
    step.window.duration_ns = cycle.iter().map(|one| one.duration_ns).sum();
    run.steps.push(step);
    let store = Store::new(directory);
    for number in 0..parts {
        run.id = format!("part-{number:04}");
        run.environment.hostname = Some(format!("host{}", number / 4));
        run.part = Some(FleetPart {
            number,
            parts,
            source: "--part".to_owned(),
            configuration: "c0ffee".to_owned(),
            start_at_ns: None,
            start_error_ns: Some(150_000),
            clock: Some(ClockOffset { before_ns: i64::from(number) * 1_000, after_ns: None, bound_ns: 50_000 }),
        });
        let mut writer = RunWriter::create(&store, &run)?;
        let mut offset_ns = 0;
        for interval in warmup.iter().chain(&cycle) {
            let mut interval = interval.clone();
            interval.offset_ns = offset_ns;
            offset_ns += interval.duration_ns;
            writer.append(&interval)?;
        }
        writer.finish(&run)?;
    }
    Ok(())
}
