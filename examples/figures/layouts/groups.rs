//! What a disk group costs beyond its member.

use super::{cpu_us, extra_us, reads_per_s};
use crate::{Bench, Failure, Goal, in_turn, ratios};

impl Bench {
    /// The same reads from a file of a group with external redundancy, and from a file that is as its member.
    pub(crate) fn group_reads(&self) -> Result<(), Failure> {
        let folder = self.raw.with_extension("group");
        std::fs::create_dir_all(&folder)?;
        let (member, alone) = (folder.join("member").display().to_string(), folder.join("alone").display().to_string());
        let spec = format!("bench=external,size=1200M:{member}");
        let seconds = self.seconds.to_string();
        let load = |storage: [&str; 2], seconds: &str| {
            let words =
                ["io", "run", "--size=1G", "--pattern=randread", "--depth=32", "--warmup=2", "--duration", seconds];
            self.step_of(&[&words[..], &storage].concat())
        };
        // Both are laid out before either is measured.
        for storage in [["--group", &spec], ["--path", &alone]] {
            load(storage, "100ms")?;
        }
        let of = |storage: [&str; 2]| {
            let step = load(storage, &seconds)?;
            Ok((reads_per_s(&step)?, cpu_us(&step)?))
        };
        let rounds = (0..self.rounds).map(|round| in_turn(round, || of(["--group", &spec]), || of(["--path", &alone])));
        let rounds: Vec<((f64, f64), (f64, f64))> = rounds.collect::<Result<_, Failure>>()?;
        let rates: Vec<(f64, f64)> = rounds.iter().map(|(group, file)| (group.0, file.0)).collect();
        let costs: Vec<(f64, f64)> = rounds.iter().map(|(group, file)| (group.1, file.1)).collect();
        ratios(
            "8 KiB random reads/s, depth 32: a disk group of one member against the file alone",
            &rates,
            0,
            Goal::Nothing,
        );
        extra_us("processor time for each of these reads, us", &costs, 1.0);
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
