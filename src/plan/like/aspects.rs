//! What of a production a load on a database reproduces and by what, in words; and what it does not, and why.

use super::observed::MOST_HITS;
use super::slob::{Planned, Updates};
use super::{by, mean_size, not, partly, rate};
use model::record::{Aspect, WorkFigure};
use model::units::{Bytes, percent};

/// What is asked for counts as what production did if it is no further from it.
const SAME: f64 = 0.02;

impl Planned<'_> {
    /// Of each figure that production reports.
    pub(super) fn aspects(&self) -> Vec<Aspect> {
        WorkFigure::ALL.into_iter().filter(|figure| self.work.contains_key(figure)).map(|it| self.aspect(it)).collect()
    }

    fn aspect(&self, figure: WorkFigure) -> Aspect {
        match figure {
            WorkFigure::Reads => self.aspect_of_reads(),
            WorkFigure::LogicalReads => self.aspect_of_logical_reads(),
            WorkFigure::LargeReads => self.aspect_of_large_reads(),
            WorkFigure::ReadBytes => self.aspect_of_read_bytes(),
            WorkFigure::Writes => self.aspect_of_writes(),
            WorkFigure::WriteBytes => not(figure, self.why_no_write_bytes()),
            WorkFigure::Commits => self.aspect_of_commits(),
            WorkFigure::RedoBytes => self.aspect_of_redo(),
            WorkFigure::RedoWrites => {
                not(figure, "how many commits share one write of the log is the platform's doing, and is measured")
            }
            WorkFigure::ActiveSessions => not(
                figure,
                format!(
                    "work is due at its rate, and how much of it is under way follows from the platform's latency; at most {} sessions",
                    self.facts.max_sessions
                ),
            ),
            WorkFigure::ClientBytes => {
                not(figure, "operations carry no results to clients; `plimsoll net run --like` asks for a network")
            }
        }
    }

    fn aspect_of_reads(&self) -> Aspect {
        let hits = match self.hits {
            0.0 => String::new(),
            hits if hits < 0.0 => format!("; each touch was seen to make {:.2} reads", 1.0 - hits),
            hits => {
                let answers =
                    if self.facts.observed.is_some() { "was seen to answer" } else { "is expected to answer" };
                format!("; a cache {answers} {} % of these touches, which are requested in addition", percent(hits))
            }
        };
        let updates = match self.updates.cold_touches() {
            0.0 => String::new(),
            touches => format!(", and {} blocks/s of updates", rate(touches)),
        };
        let alone = match self.cold_reads {
            0.0 => "no separate reads".to_owned(),
            reads => format!("{} reads/s of one block at random", rate(reads)),
        };
        let words = format!("{alone}{updates}{hits}");
        let gap = (self.hits >= MOST_HITS).then(|| {
            "nearly all data fits into the cache, so it is unknown how many reads reach storage. A larger SCALE or a \
             smaller cache decides it"
                .to_owned()
        });
        partly(WorkFigure::Reads, words, gap)
    }

    fn aspect_of_large_reads(&self) -> Aspect {
        let figure = WorkFigure::LargeReads;
        if self.lacks_scan_table && self.facts.scan_blocks > 0 {
            return not(
                figure,
                "the scan tables fit into the target's cache, so scans would read no storage; a larger SCAN_TABLE_SZ does",
            );
        }
        if self.lacks_scan_table {
            return not(figure, "the data have no scan table; `plimsoll slob setup SCAN_TABLE_SZ=1M` makes one");
        }
        let production = self.known(figure).unwrap_or(0.0);
        let is_same = (self.scan_requests - production).abs() <= SAME * production;
        let gap = (!is_same).then(|| {
            let reads = self.known(WorkFigure::Reads).unwrap_or(0.0).max(f64::MIN_POSITIVE);
            let (production, asked) = (percent(production / reads), percent(self.scan_requests / reads));
            format!(
                "requests are of one block or of 1 MiB, to match production's requests and bytes. {asked} % of the \
                 requests are large instead of {production} %"
            )
        });
        if self.scan_requests == 0.0 {
            return Aspect {
                figure,
                by: None,
                gap: gap.or_else(|| Some("the reads are of one block on average".to_owned())),
            };
        }
        partly(figure, format!("{} scans/s of the scan table past the cache (SCAN_TABLE_SZ)", rate(self.scans)), gap)
    }

    fn aspect_of_read_bytes(&self) -> Aspect {
        let (asked, production) = (self.asked(), self.known(WorkFigure::ReadBytes).unwrap_or(0.0));
        let asked = asked.get(&WorkFigure::ReadBytes).copied().unwrap_or(0.0);
        let words = if self.scan_requests > 0.0 { "scans besides single blocks" } else { "single blocks" };
        let gap = ((asked - production).abs() > SAME * production).then(|| {
            let reads = self.known(WorkFigure::Reads).unwrap_or(0.0).max(f64::MIN_POSITIVE);
            format!("production's requests are of {} on average", mean_size(production, reads))
        });
        partly(WorkFigure::ReadBytes, words.to_owned(), gap)
    }

    fn aspect_of_logical_reads(&self) -> Aspect {
        let figure = WorkFigure::LogicalReads;
        if self.hot_set == 0 {
            return not(figure, "the target has no buffer cache that is known");
        }
        let production = self.known(figure).unwrap_or(0.0);
        let gap = (self.logical_reads() > production * (1.0 + SAME)).then(|| {
            "storage is read as often as blocks are touched: there are no fewer logical reads than that".to_owned()
        });
        if self.hot_reads == 0.0 {
            return partly(figure, "the touches that bring the reads".to_owned(), gap);
        }
        let words = format!(
            "{} reads/s of {} blocks each from a hot set of {} in each schema, which stays in the cache",
            rate(self.hot_reads),
            self.hot_read_blocks,
            Bytes(self.hot_set * u64::from(self.facts.block_bytes))
        );
        partly(figure, words, gap)
    }

    fn aspect_of_writes(&self) -> Aspect {
        let figure = WorkFigure::Writes;
        let production = self.known(figure).unwrap_or(0.0);
        if production == 0.0 && self.writes == 0.0 {
            return by(figure, "no updates of cold blocks".to_owned());
        }
        if self.updates.per_s() == 0.0 {
            return not(figure, "a block is changed by a commit, and commits are not reported or none");
        }
        let Updates { cold_per_s, cold_blocks, .. } = self.updates;
        let words = format!(
            "{} updates/s of {cold_blocks:.2} cold blocks each, of which each is written later",
            rate(cold_per_s)
        );
        let why = match self.writes {
            asked if asked > production * (1.0 + SAME) => {
                Some("each commit changes a block, and blocks of a hot set are not known")
            }
            asked if asked >= production * (1.0 - SAME) => None,
            _ if production > self.single || self.updates.hot_per_s > 0.0 => {
                Some("a database reads a block before it changes it, and more is written than is read in single blocks")
            }
            _ => Some("a commit changes 1,024 blocks at most"),
        };
        let gap = why.map(|why| format!("{} of {} are requested: {why}", rate(self.writes), rate(production)));
        partly(figure, words, gap)
    }

    fn why_no_write_bytes(&self) -> String {
        let mean =
            self.known(WorkFigure::WriteBytes).zip(self.known(WorkFigure::Writes)).filter(|(_, writes)| *writes > 0.0);
        match mean {
            Some((bytes, writes)) => format!(
                "how many blocks go out in one request is the writer's doing; production's requests are of {} on average",
                mean_size(bytes, writes)
            ),
            None => "how many blocks go out in one request is the writer's doing".to_owned(),
        }
    }

    fn aspect_of_commits(&self) -> Aspect {
        let figure = WorkFigure::Commits;
        let Updates { cold_per_s, hot_per_s, .. } = self.updates;
        if self.updates.per_s() == 0.0 {
            return by(figure, "no updates".to_owned());
        }
        let hot = if hot_per_s > 0.0 { format!(", {} of them on hot blocks", rate(hot_per_s)) } else { String::new() };
        by(figure, format!("{} updates/s with a commit each{hot}", rate(cold_per_s + hot_per_s)))
    }

    fn aspect_of_redo(&self) -> Aspect {
        let figure = WorkFigure::RedoBytes;
        let production = self.known(figure).unwrap_or(0.0);
        let Some(redo) = self.redo() else {
            return match self.updates.per_s() {
                0.0 => not(figure, "redo is made by updates, and there are none"),
                _ => not(figure, "how much redo a change makes on this target is not known before: a trial shows it"),
            };
        };
        let Updates { heavy_share, hot_blocks, hot_per_s, .. } = self.updates;
        let is_known = self.facts.redo.is_some();
        let mut words = match is_known {
            true => format!("REDO_STRESS=HEAVY for {} % of the updates", percent(heavy_share)),
            false => "what the updates were seen to make".to_owned(),
        };
        if hot_per_s > 0.0 && is_known {
            words += &format!(", and {hot_blocks:.2} hot blocks in each of the updates of hot blocks");
        }
        let gap = match redo {
            redo if redo > production * (1.0 + SAME) => {
                Some("the changes that the writes need make more redo than production did")
            }
            redo if redo < production * (1.0 - SAME) && !is_known => Some(
                "on a server no extra blocks are changed just to make redo, since each change may cause more writes",
            ),
            redo if redo < production * (1.0 - SAME) => {
                Some("a commit changes no more hot blocks than there are to change")
            }
            _ => None,
        };
        let gap =
            gap.map(|why| format!("{} kB/s of {} are requested: {why}", rate(redo / 1e3), rate(production / 1e3)));
        partly(figure, words, gap)
    }
}
