//! Loads alone and together, in turns.

use super::{Level, run};
use crate::record::{BesideMark, Company, Run};

/// The group of [`rounds`].
pub const GROUP: &str = "20261120-103000";

/// `count` rounds of two loads: A pays nothing, B carries `share` of its rate beside it, and its reads take longer.
pub fn rounds(count: u32, share: f64) -> Vec<Run> {
    (1..=count).flat_map(|number| round(number, share)).collect()
}

fn round(number: u32, share: f64) -> Vec<Run> {
    let one = |letter: &str, company: Company, operations_per_s: u64, read_ns: u64| {
        let mut run = run(&[Level { sessions: 8, operations_per_s, read_ns, seconds: 20, update_pct: 0 }]);
        let (group, load) = (GROUP.to_owned(), letter.to_owned());
        run.tags.extend(BesideMark { group, load, round: number, company }.tags());
        run.id = format!("{letter}-{}-{number}", company.word());
        run.command = ["plimsoll", "slob", "run", "8", "--runs", "here"].map(str::to_owned).to_vec();
        run
    };
    let scatter = u64::from(number % 3);
    let beside = ((500 + scatter) as f64 * share) as u64;
    vec![
        one("A", Company::Alone, 400 + scatter, 500_000),
        one("B", Company::Alone, 500 + scatter, 500_000),
        one("A", Company::Together, 400 + scatter, 500_000),
        one("B", Company::Together, beside, 900_000),
    ]
}
