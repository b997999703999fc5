//! vmstat of procps as text.

use super::clock::{self, Day, Stamp, Timeline};
use super::header::{self, Tool};
use super::iostat::{is_shell, shown};
use super::{note_on_time, step_of};
use crate::numbers::number;
use crate::{Began, Draft, ImportError, Notes, Source, console};
use model::record::Workload;

/// Whether a text is of vmstat.
pub(crate) fn recognises(head: &str) -> bool {
    header::tool_of(head) == Some(Tool::Vmstat)
}

/// Its runs: one for each time that vmstat was started. vmstat does not say how many processors there are, so shares stay shares.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found: Vec<Draft> = Vec::new();
    let mut table = Table::default();
    let last_line_whole = source.text().ends_with('\n');
    let mut lines = source.timed_lines().peekable();
    while let Some((line_number, timed, line)) = lines.next() {
        let is_last = lines.peek().is_none();
        let line = console::plain(line);
        // A logger may have been started by the command, after the banner.
        let (own, rest) = clock::before(line).map_or((None, line), |(stamp, rest)| (Some(stamp), rest));
        let prefix = own.or(timed.and_then(clock::before).map(|(stamp, _)| stamp));
        if let Some(stamp) = clock::snapshot(rest) {
            found.extend(std::mem::replace(&mut table, Table { snapshot: stamp, ..Table::default() }).draft());
        } else if rest.trim().is_empty() || header::is_vmstat_banner(rest) {
        } else if let Some(columns) = Columns::of(rest) {
            found.extend(table.header(columns));
        } else if let Some(columns) = &table.columns {
            match columns.row(rest, prefix) {
                // The last figure of a line that was cut may lack digits.
                Some(_) if is_last && !last_line_whole && !table.rows.is_empty() => table.cut = true,
                Some(row) => table.row(row),
                None if is_last
                    && !table.rows.is_empty()
                    && rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    table.cut = true;
                }
                None if is_shell(rest) => {
                    table.next_command = Some(header::command(rest, "vmstat").unwrap_or_default())
                }
                None if !rest.contains(|char: char| char.is_ascii_digit()) => notes.unknown(line_number, rest),
                None => notes.not_understood(
                    line_number,
                    format!("{}; {} figures were expected", shown(rest), columns.names.len()),
                ),
            }
        } else if let Some((command, pace_s)) = header::command(rest, "vmstat") {
            (table.command, table.pace_s) = (command, pace_s);
        } else {
            notes.unknown(line_number, rest);
        }
    }
    found.extend(table.draft());
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no line of figures of vmstat"));
    }
    Ok(found)
}

/// The columns, and the zone of the time stamps that may follow them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Columns {
    names: Vec<(String, &'static str)>,
    utc: bool,
}

#[derive(Debug)]
struct Row {
    stamp: Option<Stamp>,
    values: Vec<f64>,
}

impl Columns {
    /// Nothing if the line does not name them.
    fn of(line: &str) -> Option<Self> {
        let (names, zone) = header::vmstat_columns(line)?;
        let names = names.into_iter().map(|name| (name.to_owned(), unit(name))).collect();
        Some(Self { names, utc: matches!(zone, Some("UTC" | "GMT")) })
    }

    /// A row of figures; a time may stand behind them, or before them as `prefix`.
    fn row(&self, line: &str, prefix: Option<Stamp>) -> Option<Row> {
        let mut rest = line;
        let mut values = Vec::with_capacity(self.names.len());
        for _ in &self.names {
            let (word, after) = clock::word(rest)?;
            values.push(number(word)?);
            rest = after;
        }
        let behind = clock::leading(rest);
        let stamp = behind
            .map(|(stamp, zone)| Stamp { utc: stamp.utc || self.utc || matches!(zone.trim(), "UTC" | "GMT"), ..stamp });
        if stamp.is_none() && !rest.trim().is_empty() {
            return None;
        }
        Some(Row { stamp: stamp.or(prefix), values })
    }
}

/// Memory and swapping are in units that `-S` sets and that the output does not report.
fn unit(column: &str) -> &'static str {
    match column {
        "bi" | "bo" => "KiB/s",
        "in" | "cs" => "1/s",
        "us" | "sy" | "id" | "wa" | "st" | "gu" => "%",
        _ => "",
    }
}

/// Rows of the smallest terminal; vmstat repeats its header after as many as fit, and after 21 where there is none.
const MIN_PAGE: usize = 10;

/// What one invocation wrote.
#[derive(Debug, Default)]
struct Table {
    columns: Option<Columns>,
    rows: Vec<Row>,
    /// Rows since the last header, and between the first two.
    since_header: usize,
    page: Option<usize>,
    cut: bool,
    command: Vec<String>,
    pace_s: Option<f64>,
    /// The time of the snapshot that it is of.
    snapshot: Option<Stamp>,
    /// What a prompt behind the rows shows: the command that comes next, if it is vmstat, and its interval.
    next_command: Option<(Vec<String>, Option<f64>)>,
}

impl Table {
    /// Takes a header. Those of one invocation have the same columns and the same number of rows between them; any other one is
    /// of the next invocation, with a first line since boot of its own. Returns the run of the one before.
    fn header(&mut self, columns: Columns) -> Option<Draft> {
        let same = self.columns.as_ref().is_none_or(|before| *before == columns);
        let is_page = self.since_header >= MIN_PAGE && self.page.is_none_or(|page| page == self.since_header);
        let mut ended = None;
        if !self.rows.is_empty() && (!same || !is_page || self.next_command.is_some()) {
            let (command, pace_s) = self.next_command.take().unwrap_or_default();
            ended = std::mem::replace(self, Self { command, pace_s, ..Self::default() }).draft();
        } else if !self.rows.is_empty() {
            self.page = Some(self.since_header);
        }
        self.columns = Some(columns);
        self.since_header = 0;
        ended
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row);
        self.since_header += 1;
    }

    fn draft(mut self) -> Option<Draft> {
        let columns = self.columns?;
        let mut stamps: Vec<Option<Stamp>> = self.rows.iter().map(|row| row.stamp).collect();
        let first = stamps.first_mut()?;
        let month_first = first.or(self.snapshot).and_then(|stamp| stamp.month_first);
        let is_first_real = header::omits_since_boot(&self.command, self.pace_s);
        if is_first_real {
            let before = first.zip(self.pace_s).and_then(|(first, pace_s)| first.before(pace_s, month_first));
            stamps.insert(0, before.or(self.snapshot));
        } else {
            *first = first.or(self.snapshot);
        }
        let mut draft = Draft::new(Workload::Host, "vmstat", "vmstat");
        let mut timeline = Timeline::new(&stamps, Day::Unreported, month_first, self.pace_s);
        if !is_first_real && self.rows.len() > 1 {
            draft.notes.push(
                "The first line is left out: it is the average since the machine started, unless vmstat ran with -y."
                    .to_owned(),
            );
            self.rows.remove(0);
        } else if !is_first_real {
            draft
                .notes
                .push("The only line is the average since the machine started, unless vmstat ran with -y.".to_owned());
            timeline.spans = vec![(0, 0)];
        }
        if self.cut {
            draft.notes.push("The last line was cut off: it is left out.".to_owned());
        }
        let rows: Vec<Vec<f64>> = self.rows.into_iter().map(|row| row.values).collect();
        draft.notes.push("Memory and swapping are in KiB, unless vmstat was reported another unit with -S.".to_owned());
        note_on_time(&timeline, &mut draft.notes);
        draft.steps = vec![step_of("vmstat", &columns.names, &rows, &timeline, &mut draft.notes)];
        draft.began = timeline.began.filter(|began: &Began| began.timestamp().0 > jiff::Timestamp::UNIX_EPOCH);
        draft.ended = timeline.ended.filter(|_| draft.began.is_some());
        draft.command = self.command;
        Some(draft)
    }
}

#[cfg(test)]
mod tests {
    use crate::osstat::tests::{VMSTAT, figure_value, wall};
    use crate::specimens::{drafts, only, source};
    use crate::{Began, read};
    use model::record::Timestamp;

    #[test]
    fn vmstat_gives_averages_of_the_lines_after_the_first() {
        let draft = only("vmstat", VMSTAT);
        let step = &draft.steps[0];
        assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:56Z".parse().unwrap()))));
        assert_eq!((step.window.duration_ns, step.intervals.len()), (4_000_000_000, 2));
        assert_eq!(
            ["r", "us", "id", "bi", "free", "gu"].map(|name| figure_value(step, name)),
            [3.0, 25.0, 50.0, 200.0, 600.0, 0.0]
        );
        assert_eq!((step.intervals[1].reported["wa"], step.host_cpu), (10.0, None));
        let unit = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().unit.clone();
        assert_eq!(["bi", "us", "free"].map(unit), ["KiB/s", "%", ""]);
    }

    #[test]
    fn vmstat_without_times_or_with_times_before_its_lines_is_read() {
        let bare: String = VMSTAT
            .lines()
            .map(|line| {
                format!(
                    "{}\n",
                    line.split(" 2026-").next().unwrap().replace(" -----timestamp-----", "").trim_end_matches("UTC")
                )
            })
            .collect();
        let draft = only("vmstat", &bare);
        assert_eq!(
            (draft.began, draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "us")),
            (None, 0, 25.0)
        );
        let mut second = 0;
        let timed: String = bare
            .lines()
            .map(|line| {
                second += 2;
                format!("11:00:{second:02} {line}\n")
            })
            .collect();
        let late = timed.replace("11:00:10", "11:00:14");
        // 20 % for 2 s, 30 % for 6 s.
        let step = only("vmstat", &late).steps.remove(0);
        assert_eq!((figure_value(&step, "us"), step.window.duration_ns), (27.5, 8_000_000_000));
        let cut = bare.trim_end();
        let (_, whole, _) = read(&source(&cut[..cut.len() - 6])).unwrap();
        assert_eq!(whole[0].steps[0].intervals.len(), 1);
        let (_, _, notes) = read(&source(&bare.replace(" 2  1      0    500", " 2  1      0      x"))).unwrap();
        assert_eq!(notes.into_list()[0].line, Some(4));
        let german = bare.replace("memory", "Speicher").replace("system", "System");
        assert_eq!(only("vmstat", &german).steps[0].intervals.len(), 2);
        let other = bare.replace("buff  cache", "inact active");
        assert_eq!(drafts("vmstat", &format!("{bare}{other}")).len(), 2, "other columns are another invocation");
    }

    /// Of `pages` with so many rows each below a header; the first row says 90 % of the time was user time, the others 10 %.
    fn paged(pages: &[usize]) -> String {
        let header = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";
        let row = |user: u32| {
            format!(" 1  0      0    500     10    700    0    0     5     4  100  200 {user}  0 10  0  0\n")
        };
        let body: Vec<String> = pages.iter().map(|rows| format!("{header}{}", row(10).repeat(*rows))).collect();
        body.concat().replacen(&row(10), &row(90), 1)
    }

    #[test]
    fn headers_repeat_in_one_invocation_after_the_same_number_of_rows() {
        let lengths = |text: &str| -> Vec<usize> {
            drafts("vmstat", text).iter().map(|draft| draft.steps[0].intervals.len()).collect()
        };
        assert_eq!(lengths(&paged(&[21, 21, 8])), [49]);
        // `vmstat 1 3` again and again, and two that were written to one file.
        assert_eq!(lengths(&[paged(&[3]), paged(&[3]), paged(&[3])].concat()), [2, 2, 2]);
        let both = [paged(&[21, 21, 8]), paged(&[21, 4])].concat();
        assert_eq!(lengths(&both), [49, 24]);
        assert!(
            drafts("vmstat", &both).iter().all(|draft| figure_value(&draft.steps[0], "us") == 10.0),
            "no row is since boot"
        );
        let prompted = format!("$ vmstat 2\n{}^C\n$ vmstat 5\n{}", paged(&[21]), paged(&[21, 21]));
        let paces: Vec<u64> =
            drafts("vmstat", &prompted).iter().map(|draft| draft.steps[0].window.duration_ns / 1_000_000_000).collect();
        assert_eq!(paces, [40, 205]);
    }

    #[test]
    fn each_snapshot_of_a_watcher_is_a_run_with_its_time() {
        let text = format!(
            "zzz ***Mon Jan 5 22:00:00 CET 2026\n{}zzz <01/05/2026 22:00:30> Count:2\n{}",
            paged(&[3]),
            paged(&[3])
        );
        let found = drafts("vmstat", &text);
        let began: Vec<Option<Began>> = found.iter().map(|draft| draft.began).collect();
        assert_eq!(began, [wall("2026-01-05T22:00:00Z"), wall("2026-01-05T22:00:30Z")]);
        assert!(found.iter().all(|draft| draft.steps[0].intervals.len() == 2));
    }

    #[test]
    fn columns_in_other_languages_are_known_by_their_places() {
        let german = VMSTAT.replace("free   buff  cache", "frei   buff  Cache").replace("timestamp", "Zeitstempel");
        let chinese = VMSTAT
            .replace("swpd   free   buff  cache", "交换 空闲 缓冲 缓存")
            .replace("-----io----", "---输入---")
            .replace("-----cpu-----", "----处理器---");
        for text in [german, chinese] {
            let draft = only("vmstat", &text);
            let step = &draft.steps[0];
            assert_eq!(
                ["r", "swpd", "free", "bi", "us", "gu"].map(|name| figure_value(step, name)),
                [3.0, 0.0, 600.0, 200.0, 25.0, 0.0]
            );
            assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:56Z".parse().unwrap()))));
            assert_eq!(
                (step.reported.len(), figure_value(step, "cache")),
                (18, -1.0),
                "what -a makes of it is not reported"
            );
        }
    }

    #[test]
    fn where_the_command_leaves_out_the_line_since_boot_the_first_is_a_sample() {
        let asked = |command: &str| only("vmstat", &format!("$ {command}\n{VMSTAT}"));
        for command in ["vmstat -ty 2", "vmstat -w --no-first -t 2 3"] {
            let draft = asked(command);
            assert_eq!(draft.began, Some(Began::Utc(Timestamp("2026-02-01T23:59:54Z".parse().unwrap()))), "{command}");
            assert_eq!((draft.steps[0].intervals.len(), draft.steps[0].window.duration_ns), (3, 6_000_000_000));
            assert!(!draft.notes.iter().any(|note| note.contains("since the machine started")), "{:?}", draft.notes);
        }
        assert_eq!(asked("vmstat -t 2").steps[0].intervals.len(), 2);
    }
}
