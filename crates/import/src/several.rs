//! Results of several programs in one text: each program's lines are read as if they stood alone.

use std::collections::VecDeque;

use super::console;
use super::fio;
use super::osstat::{begins, clock_line};

/// Lines that may stand between a command and what its program prints.
const LINES_ABOVE: usize = 8;

/// The program whose output begins at a line, by what no other writes. Readers of one program find where each of its own results
/// begins.
fn program(line: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 26] = [
        ("transaction type: ", "pgbench"),
        ("pgbench (", "pgbench"),
        ("Running the test with following options:", "sysbench"),
        ("Connecting to host ", "iperf3"),
        ("stress-ng: info:", "stress-ng"),
        ("system-info:", "stress-ng"),
        ("HammerDB CLI v", "hammerdb"),
        ("Hammerdb Log @", "hammerdb"),
        ("Vuser 1", "hammerdb"),
        ("WORKLOAD REPOSITORY", "awr"),
        ("STATSPACK report for", "statspack"),
        ("~~BEGIN-", "awr-miner"),
        ("<begin record>", "pylatencymap"),
        ("max_iops", "calibrate-io"),
        ("MAX_IOPS", "calibrate-io"),
        ("[Requesting a test]", "oratcptest"),
        ("ORION VERSION", "orion"),
        ("ORION: ", "orion"),
        ("<Results ", "swingbench"),
        ("Tracing block device I/O", "biolatency"),
        ("Tracing block I/O", "iolatency"),
        ("\"fio version\"", "fio"),
        ("\"start\":\t{", "iperf3"),
        ("\"start\": {", "iperf3"),
        ("\"sysstat\"", "iostat"),
        ("AAA,progname,", "nmon"),
    ];
    const WITHIN: [(&str, &str); 7] = [
        (";fio-", "fio"),
        ("WAIT_TIME_MI", "event-histogram"),
        ("Hammerdb T", "hammerdb"),
        ("pgio.conf->", "pgio"),
        (" thread(s) accessing ", "pgio"),
        ("@ Small=", "orion"),
        (" TPS ", "charbench"),
    ];
    let line = line.trim_start();
    let begun = line.trim_start_matches('{').trim_start();
    // Most lines begin in no such way.
    let first = begun.chars().next()?;
    let known = BEGINNINGS.iter().find(|(beginning, _)| begun.starts_with(beginning));
    let is_version =
        || line.strip_prefix("sysbench ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_of_charbench = |program: &str| program != "charbench" || begun.starts_with("Time");
    known
        .or_else(|| WITHIN.iter().find(|(part, program)| line.contains(part) && is_of_charbench(program)))
        .map(|(_, program)| *program)
        .or_else(|| (first == 's' && is_version()).then_some("sysbench"))
        .or_else(|| (line.contains("): ") && fio::text::begins_results(line)).then_some("fio"))
        .or_else(|| {
            let may_be = ["%idle", "kbmem", "/s"].iter().any(|word| line.contains(word));
            (may_be || matches!(first, 'r' | 'a')).then(|| begins(line))?
        })
}

/// Whether a line may stand before a program's output and belong to it: its command, the clock, the first line of sysstat.
fn leads(line: &str) -> bool {
    let line = line.trim();
    line == "{"
        || line.starts_with("<?xml")
        || console::after_prompt(line).is_some_and(|command| !command.is_empty())
        || clock_line(line)
}

/// What one program wrote of a text.
pub(super) struct Part {
    /// Which program.
    pub program: &'static str,
    /// Its lines, without those before its first one, and with blank lines for those of others.
    pub text: String,
    /// How many lines stand before it.
    pub before: u64,
    /// How many lines are its own.
    pub own: u64,
}

/// The part of each program, if there are several.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part> {
    // Where lines of another program begin.
    let mut begins: Vec<(usize, &'static str)> = Vec::new();
    let mut above: VecDeque<(usize, &str)> = VecDeque::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        let last = begins.last().map_or("", |(_, last)| *last);
        let starts = |words: [&str; 2]| words.iter().any(|word| line.trim_start().starts_with(word));
        // Sections of AWR Miner and records of PyLatencyMap hold tables of histograms themselves.
        is_inside = (is_inside && !starts(["~~END-", "<end record>"])) || starts(["~~BEGIN-", "<begin record>"]);
        let is_within = |program: &str| program == last || (program == "event-histogram" && is_inside);
        if let Some(program) = program(line).filter(|program| !is_within(program)) {
            let leading = above.iter().rev().take_while(|(_, line)| line.trim().is_empty() || leads(line));
            let first = leading.filter(|(_, line)| leads(line)).last();
            begins.push((first.map_or(at, |(from, _)| *from), program));
        }
        if above.len() == LINES_ABOVE {
            above.pop_front();
        }
        above.push_back((at, line));
    }
    let mut programs: Vec<&'static str> = Vec::new();
    for (_, program) in &begins {
        if !programs.contains(program) {
            programs.push(program);
        }
    }
    if programs.len() < 2 {
        programs.clear();
    }
    // What stands before the first belongs to it.
    if let Some((first, _)) = begins.first_mut() {
        *first = 0;
    }
    programs.into_iter().map(move |program| part(text, &begins, program))
}

/// The lines of one program.
fn part(text: &str, begins: &[(usize, &'static str)], program: &'static str) -> Part {
    let (mut part, mut before, mut own, mut blank) = (String::new(), 0, 0, 0);
    let mut next = begins.iter().peekable();
    let mut is_own = false;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        while let Some((_, begun)) = next.next_if(|(from, _)| *from <= at) {
            is_own = *begun == program;
        }
        if is_own {
            part.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
            part.push_str(line);
            own += 1;
        } else if part.is_empty() {
            before += 1;
        } else {
            blank += 1;
        }
    }
    // What ends with the next program ends with its line.
    part.extend((blank > 0).then_some('\n'));
    Part { program, text: part, before, own }
}

#[cfg(test)]
mod tests {
    use crate::read;
    use crate::specimens::source;

    const PGBENCH: &str = "transaction type: <builtin: select only>\nscaling factor: 1\nquery mode: simple\nnumber of clients: 3\n\
number of threads: 1\nduration: 10 s\nnumber of transactions actually processed: 1000\nlatency average = 1.5 ms\n\
tps = 100.5 (without initial connection time)\n";
    const VMSTAT: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
0  0      0 545724 270484 3683688    0    0     8    44   75   86  9  4 87  0  0\n \
9  0      0 545724 270484 3683688    0    0  9000  4400 7500 8600 90  4  6  0  0\n";

    /// The programs of the runs in a text, and the lines that were not understood.
    fn programs(text: &str) -> (Vec<&'static str>, Vec<Option<u64>>) {
        let (_, drafts, notes) = read(&source(text)).unwrap();
        let lines = notes.into_list().iter().map(|note| note.line).collect();
        (drafts.iter().map(|draft| draft.program).collect(), lines)
    }

    #[test]
    fn programs_of_one_text_are_read_each_in_any_order() {
        let page = include_str!("specimens/two_programs_in_one.md");
        assert_eq!(programs(page), (vec!["pgbench", "vmstat", "sysbench"], vec![]));
        for between in ["", "\n", "\n$ next\n", "\n## and then\n\n"] {
            assert_eq!(programs(&format!("{PGBENCH}{between}{VMSTAT}")).0, ["pgbench", "vmstat"], "{between:?}");
            assert_eq!(programs(&format!("{VMSTAT}{between}{PGBENCH}")).0, ["vmstat", "pgbench"], "{between:?}");
        }
    }

    #[test]
    fn one_that_cannot_be_read_is_named_with_its_line() {
        let (found, lines) =
            programs(&format!("{PGBENCH}\n$ sysbench cpu run\nsysbench 1.0.20 (using bundled LuaJIT)\n"));
        assert_eq!((found, lines), (vec!["pgbench"], vec![Some(11)]));
    }
}
