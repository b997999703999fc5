//! The report of one load on one screen: the answer, the values that decide, findings, and which run it is. The rest is reported in
//! full.

use model::record::{Load, Run, Workload};
use std::io::{self, Write};

use super::facts::brief;
use super::first_screen;
use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::sections::failure::failure_rows;
use super::sections::{self, replay, requests, servers, transactions};
use super::text::{Detail, Noticed};
use super::words::NONE;
use analysis::{FailureCost, Finding, FirstScreen, Severity, Vocabulary, is_on_servers};

/// Lines of the report; the program says below it where the run is kept.
const LINES: usize = 24;
/// Lines of a doubt, where little room is left.
const DOUBT: usize = 5;
/// Columns of the names on the left.
const NAMES: usize = 14;
/// The run and its command are shown even where there is little room.
const FIRST_FACTS: usize = 2;
const REST: &str = "`?`: not known. MB: 1,000,000 bytes. Everything else, every table and what each means: `--full`.";

/// Whether a run is reported on one screen: one load of ours. An imported result has tables of its own, and so have the parts of a fleet
/// and a load that is like a production's.
pub(super) fn fits(run: &Run, detail: Detail) -> bool {
    detail == Detail::Brief
        && run.steps.len() == 1
        && run.imported.is_none()
        && run.merged.is_none()
        && run.like.is_none()
        && matches!(run.workload(), Workload::Slob | Workload::Io | Workload::Orders)
}

/// Writes the answer, the values that decide, findings as there is room for them, and which run it is.
pub(super) fn write(
    out: &mut impl Write,
    run: &Run,
    findings: &Noticed<'_>,
    answer: &FirstScreen,
    width: usize,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut terminal = Terminal { out: &mut text, width };
    first_screen::write(&mut terminal, answer)?;
    terminal.gap()?;
    let mut screen = Screen { terminal, name: "", meaning: String::new() };
    figures(&mut screen, run)?;
    // Lines between the parts, and the last one.
    let room = LINES.saturating_sub(lines_of(&text) + 3);
    // What makes the result doubtful comes before facts of the run.
    let urgent = findings.shown().next().filter(|finding| finding.severity() == Severity::Doubt);
    let urgent = urgent.map(|finding| written(width, |terminal| findings.paragraph(terminal, finding))).transpose()?;
    // What a failure cost takes many lines, and a doubt is shown all the same.
    let room = if run.steps.iter().any(|step| step.failure.is_some()) { room.max(DOUBT) } else { room };
    let reserved = urgent.map_or(0, |text| lines_of(&text)).min(room);
    let mut room = room - reserved;
    let mut facts = Vec::new();
    for (place, (name, words)) in brief(run).into_iter().enumerate() {
        let fact = written(width, |terminal| terminal.paragraph(&words, &format!("{name:<NAMES$}")))?;
        // A line stays for the number of findings that have no room.
        if place < FIRST_FACTS || lines_of(&fact) < room {
            room = room.saturating_sub(lines_of(&fact));
            facts.extend(fact);
        }
    }
    out.write_all(&text)?;
    noticed(out, findings, room + reserved, width)?;
    writeln!(out)?;
    out.write_all(&facts)?;
    Terminal { out, width }.remark(REST)
}

fn lines_of(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// What `write` writes for a terminal of `width` columns.
fn written(width: usize, write: impl FnOnce(&mut Terminal<'_>) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    write(&mut Terminal { out: &mut text, width })?;
    Ok(text)
}

/// The figures that decide. Each table has one row, or few, and becomes lines of names and values.
fn figures(screen: &mut Screen<'_>, run: &Run) -> io::Result<()> {
    if let Some((marks, cost)) = run.steps.first().and_then(|step| step.failure).zip(FailureCost::of(run)) {
        let mut rows = failure_rows(&cost, &cost.demands(marks)).into_iter();
        return rows.try_for_each(|(label, words)| screen.terminal.paragraph(&words, &format!("{label:<NAMES$}")));
    }
    match Vocabulary::of(run) {
        Vocabulary::Requests => {
            screen.named("Requests", run, requests::throughput)?;
            match &run.load {
                Load::Replay(_) => {
                    screen.named("Replayed", run, replay::write)?;
                    let words = replay::faithful(run);
                    words.iter().try_for_each(|words| screen.terminal.paragraph(words, &" ".repeat(NAMES)))?;
                }
                _ => screen.named("Each type", run, requests::kinds)?,
            }
            screen.named("Generator", run, |paper, run| requests::generator(paper, run, Detail::Brief))
        }
        Vocabulary::Users => {
            screen.named("Transactions", run, transactions::rates)?;
            screen.named("Connections", run, super::sections::write_connects)?;
            screen.named("Blocks/s", run, servers::blocks)?;
            screen.named("Log", run, servers::log_rates)?;
            screen.named("Locks", run, servers::locks)
        }
        Vocabulary::Sessions if is_on_servers(run) => {
            screen.named("Operations", run, servers::operations)?;
            screen.named("Blocks/s", run, servers::blocks)?;
            screen.named("Log", run, servers::log_rates)?;
            screen.named("Commits", run, servers::commit_latency)?;
            screen.named("Locks", run, servers::locks)?;
            screen.named("One operation", run, super::sections::of_run)?;
            screen.named("Own report", run, |paper, run| servers::own_reports(paper, run, Detail::Brief))
        }
        Vocabulary::Sessions => {
            screen.named("Throughput", run, sections::throughput)?;
            // An open loop is judged by its response times.
            if run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some()) {
                screen.named("Operations", run, servers::operations)?;
            }
            screen.named("Block reads", run, sections::reads_and_processors)?;
            screen.named("% of reads", run, |paper, run| sections::histograms(paper, run, Detail::Brief))
        }
    }
}

/// As many findings as there is room for, each in whole, the most important first.
fn noticed(out: &mut impl Write, findings: &Noticed<'_>, room: usize, width: usize) -> io::Result<()> {
    let (mut left, mut hidden) = (room, [0_usize; 3]);
    let mut is_first = true;
    for finding in findings.shown() {
        let text = written(width, |terminal| findings.paragraph(terminal, finding))?;
        let lines = lines_of(&text);
        // One line stays for the number of those that have no room.
        if hidden == [0; 3] && lines < left {
            if is_first {
                writeln!(out)?;
            }
            (left, is_first) = (left - lines, false);
            out.write_all(&text)?;
        } else {
            hidden[place(finding)] += 1;
        }
    }
    let words = ["warning", "answer", "note"].iter().zip(hidden).filter(|(_, count)| *count > 0);
    let words: Vec<String> =
        words.map(|(word, count)| format!("{count} more {word}{}", if count == 1 { "" } else { "s" })).collect();
    if words.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}{}: `--full`.", if is_first { "\n" } else { "" }, words.join(", "))
}

fn place(finding: &Finding) -> usize {
    match finding.severity() {
        Severity::Doubt => 0,
        Severity::Answer => 1,
        Severity::Note => 2,
    }
}

/// A paper on which tables of few rows become lines: each heading before its value, and nothing that there was none of.
struct Screen<'a> {
    terminal: Terminal<'a>,
    /// What stands before the next line.
    name: &'static str,
    /// What stands behind it: which times, or which layer.
    meaning: String,
}

impl Screen<'_> {
    fn named(
        &mut self,
        name: &'static str,
        run: &Run,
        section: fn(&mut dyn Paper, &Run) -> io::Result<()>,
    ) -> io::Result<()> {
        self.name = name;
        section(self, run)
    }
}

impl Screen<'_> {
    /// Names and values after the name of the line, broken between pairs and never within one.
    fn pairs(&mut self, words: &str) -> io::Result<()> {
        let (room, mut lines) = (self.terminal.width - NAMES, vec![String::new()]);
        for pair in words.split_inclusive(", ") {
            match lines.last_mut() {
                Some(line) if line.is_empty() || (line.len() + pair.trim_end().len()) <= room => line.push_str(pair),
                _ => lines.push(pair.to_owned()),
            }
        }
        lines.iter().enumerate().try_for_each(|(place, line)| {
            let name = if place == 0 { self.name } else { "" };
            self.terminal.paragraph(line, &format!("{name:<NAMES$}"))
        })
    }
}

impl Paper for Screen<'_> {
    fn title(&mut self, title: &str) -> io::Result<()> {
        let (words, behind) = title.split_once('(').and_then(|(_, rest)| rest.split_once(')')).unwrap_or_default();
        let is_reported = ["times", "layer"].iter().any(|word| words.starts_with(word));
        self.meaning = if is_reported { format!(" ({words}{behind})") } else { String::new() };
        Ok(())
    }

    fn grid(&mut self, grid: &Grid) -> io::Result<()> {
        let keys = grid.keys();
        for row in grid.rows() {
            let pairs = grid.header().iter().zip(row).skip(keys).filter(|(_, value)| *value != NONE);
            let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name} {value}")).collect();
            // The first name of a row is its step, of which there is one.
            let of: String = row[1..keys].iter().map(|name| format!("{name}: ")).collect();
            let words = format!("{of}{}{}", pairs.join(", "), std::mem::take(&mut self.meaning));
            self.pairs(&words)?;
            self.name = "";
        }
        Ok(())
    }

    fn next_grid(&mut self, _: &str, grid: &Grid) -> io::Result<()> {
        self.grid(grid)
    }

    fn aside(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remark(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{LatencyTarget, Opening, analyse};
    use model::record::sample::{self, requests as raw, servers as database};

    fn one_step(mut run: Run) -> Run {
        run.steps.truncate(1);
        run
    }

    fn rendered(run: &Run, width: usize) -> String {
        let mut out = Vec::new();
        let findings = analyse(run, &LatencyTarget::default());
        crate::text(&mut out, run, &findings, Detail::Brief, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_load_is_reported_on_one_screen() {
        let mut at_a_rate = sample::updates(60);
        at_a_rate.steps[0].load.rate_operations_per_s = Some(500.0);
        let runs = [
            at_a_rate,
            raw::mixed(),
            one_step(raw::sweep()),
            one_step(raw::open_loop()),
            sample::updates(60),
            one_step(sample::sweep(60)),
            one_step(database::private_cluster()),
            database::remote(),
            database::two_nodes(),
            database::changed_shape(),
        ];
        for run in runs {
            let text = rendered(&run, 100);
            assert!(text.lines().count() <= 25, "{} lines\n{text}", text.lines().count());
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert!(text.contains("--full") && text.contains("p99 "), "{text}");
        }
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let run = raw::mixed();
        let mut findings = analyse(&run, &LatencyTarget::default());
        let all = findings.len();
        assert!(all > 0, "the sample has something to notice");
        findings.extend(findings.clone());
        let mut out = Vec::new();
        let opening = Opening::of(&run, &findings);
        noticed(&mut out, &Noticed { findings: &findings, opening: &opening }, 2, 100).unwrap();
        let text = String::from_utf8(out).unwrap();
        let count: usize =
            text.split(", ").filter_map(|part| part.split_whitespace().next()?.parse::<usize>().ok()).sum();
        assert_eq!(count, 2 * all, "{text}");
        assert_eq!(text.trim().lines().count(), 1, "{text}");
    }

    #[test]
    fn screens() {
        insta::assert_snapshot!("screen_of_raw_storage", rendered(&raw::mixed(), 100));
        insta::assert_snapshot!("screen_of_the_engine", rendered(&sample::updates(60), 100));
        insta::assert_snapshot!("screen_of_a_server", rendered(&one_step(database::private_cluster()), 100));
    }
}
