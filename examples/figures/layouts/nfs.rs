//! Files on an NFS server of this machine: what a request costs the client, and what further paths add.

use plimsoll::record::{ChannelStats, Step};

use super::{cpu_us, reads_per_s, space};
use crate::ganesha::Ganesha;
use crate::{Bench, Failure, Goal, figure, median, ratios, verdict};

/// Paths that are held to a rate each.
const PATHS: [&str; 4] = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
const PATH_RATE: &str = "300mbit";

impl Bench {
    /// Random reads of 8 KiB over one connection from a file in the server's page cache.
    pub(crate) fn nfs_reads(&self) -> Result<(), Failure> {
        let Some(ganesha) = Ganesha::start() else { return not_measured("files on an NFS server") };
        for (version, url) in [("3", ganesha.url("bench.dat", "")), ("4.1", ganesha.url_4("bench.dat", ""))] {
            let at_depth = |depth: &str| -> Result<Vec<Step>, Failure> {
                (0..self.rounds).map(|_| self.nfs_step(&url, "64M", depth)).collect()
            };
            let deep = at_depth("32")?;
            let (cost, rate) = (median_of(&deep, cpu_us)?, median_of(&deep, reads_per_s)?);
            let what = format!("NFS {version}, 8 KiB random reads, depth 32, one connection ({rate:.0}/s)");
            let reached = verdict(cost <= 7.0);
            figure(&format!(
                "| {what}: client's processor time each, us | {cost:.2} | - | - | at most 7 | {reached} |"
            ));
            let over = median_of(&at_depth("1")?, over_nothing_us)?;
            let reached = verdict(over <= 5.0);
            figure(&format!(
                "| NFS {version}, depth 1: median READ less median NULL, us | {over:.2} | - | - | at most 5 | {reached} |"
            ));
        }
        Ok(())
    }

    /// Four paths that are held to a rate each, against one of them.
    pub(crate) fn nfs_paths(&self) -> Result<(), Failure> {
        let measured = space::inside(|| {
            space::shape(&PATHS, PATH_RATE)?;
            let Some(ganesha) = Ganesha::start_on("0.0.0.0") else { return Ok(None) };
            let paths = |count: usize| ganesha.url("bench.dat", &format!("&paths={}", PATHS[..count].join(",")));
            let (one, four) = (paths(1), paths(PATHS.len()));
            self.nfs_step(&one, "16M", "64")?;
            let rate = |url: &str| reads_per_s(&self.nfs_step(url, "16M", "64")?);
            let rounds = (0..self.rounds).map(|_| Ok((rate(&four)?, rate(&one)?)));
            rounds.collect::<Result<Vec<_>, Failure>>().map(Some)
        })?;
        let Some(pairs) = measured else { return not_measured("paths to an NFS server") };
        ratios("NFS, 8 KiB random reads/s: four paths of 300 Mbit/s against one", &pairs, 0, Goal::AtLeast(3.9));
        Ok(())
    }

    fn nfs_step(&self, url: &str, size: &str, depth: &str) -> Result<Step, Failure> {
        let seconds = self.seconds.to_string();
        let words = ["io", "run", "--path", url, "--size", size, "--pattern", "randread", "--depth", depth];
        self.step_of(&[&words[..], &["--warmup", "2", "--duration", &seconds]].concat())
    }
}

/// How much longer the median READ took than the median call that asks for nothing, on the same connection.
fn over_nothing_us(step: &Step) -> Result<f64, Failure> {
    let channel: &ChannelStats = step.channels.first().ok_or("no connection was counted")?;
    let median_ns = |times: &plimsoll::record::Histogram| times.quantile_ns(0.5).ok_or("a time is missing");
    Ok((median_ns(&channel.read)? as f64 - median_ns(&channel.nothing)? as f64) / 1e3)
}

fn median_of(steps: &[Step], of: fn(&Step) -> Result<f64, Failure>) -> Result<f64, Failure> {
    Ok(median(steps.iter().map(of).collect::<Result<Vec<_>, _>>()?.into_iter()))
}

fn not_measured(what: &str) -> Result<(), Failure> {
    figure(&format!("| {what}: not measured, which takes root and nfs-ganesha | - | - | - | - | |"));
    Ok(())
}
