//! Results that are not read, known by name so that the user learns what to save instead.

/// What a text is, and what to do instead; nothing if it is of no program that is known here.
pub(super) fn of(head: &str) -> Option<(&'static str, &'static str)> {
    const AWR: &str = "save the page itself as HTML, or make the report as text with `awrrpt.sql`";
    let has = |text: &str| head.contains(text);
    let begins = |text: &str| {
        head.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim_start().starts_with(text))
    };
    let all = |texts: &[&str]| texts.iter().all(|text| head.contains(text));
    Some(match () {
        () if all(&["disk-", "reads", "writes", "IO"]) && has("total merged sectors") => {
            ("output of `vmstat -d`, which counts since the machine started", "save `iostat -x -t 1` instead")
        }
        () if has("Vdbench distribution") || all(&["interval", "i/o", "MB/sec", "bytes", "resp"]) => {
            ("output of vdbench", "run the same load with fio, and save its output as JSON (`--output-format=json`)")
        }
        () if all(&["OPERATION", "RESULT TYPE", "FIRST DONE", "LAST DONE"]) || begins("ISO date,label,path type,") => {
            ("output of elbencho", "run the same load with fio, and save its output as JSON (`--output-format=json`)")
        }
        () if all(&["\"sysstat\"", "\"statistics\""]) => (
            "output of sysstat in JSON without what is read of it",
            "save `iostat -o JSON`, `sadf -j -- -u -d -r`, or `mpstat` as text",
        ),
        () if has("Client connecting to ") || (has("Server listening on TCP") || has("Server listening on UDP")) => {
            ("output of iperf 2", "measure with iperf3, and save its output with `--json`")
        }
        () if has("WORKLOAD REPOSITORY") || has("STATSPACK report") => {
            ("a report of Oracle that a page or a mail took apart", AWR)
        }
        () if all(&["Swingbench", "Benchmark"]) && (has("results2txt") || has("Transaction Response")) => {
            ("what `results2txt` of Swingbench prints", "import the XML or JSON from which it was made")
        }
        () if has("min/avg/max/mdev") && has("ioping") => {
            ("output of ioping", "measure with fio, and save its output as JSON")
        }
        () if has(" bytes (") && has(" copied, ") && has("records out") => {
            ("output of dd", "measure with fio, and save its output as JSON")
        }
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::read;
    use crate::specimens::source;

    #[test]
    fn what_is_not_read_is_called_by_its_name() {
        for (text, name) in [
            (
                "disk- ------------reads------------ ------------writes----------- -----IO------\n       \
                 total merged sectors      ms  total merged sectors      ms    cur    sec\nsda      1      0      8       1      0      0       0       0      0      0\n",
                "output of `vmstat -d`",
            ),
            (
                "Oct 01, 2026  interval        i/o   MB/sec   bytes   read     resp\n10:00:01.050    1  100.0  0.78  8192 100.00  1.0\n",
                "output of vdbench",
            ),
            (
                "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n=========== ================    ==========  ==========\nWRITE       Elapsed time     :     1s       2s\n",
                "output of elbencho",
            ),
            (
                "{\"sysstat\": {\"hosts\": [{\"nodename\": \"n\", \"statistics\": [{\"timestamp\": \"10:00:01\", \"interrupts\": []}]}]}}\n",
                "output of sysstat in JSON",
            ),
            (
                "------------------------------------------------------------\nClient connecting to 10.0.0.2, TCP port 5001\n",
                "output of iperf 2",
            ),
            (
                "WORKLOAD REPOSITORY report for\n\nDB Name\tDB Id\tInstance\tInst num\tStartup Time\tRelease\tRAC\n\
                 ORCL\t1380142923\torcl1\t1\t10-Jul-14 03:10\t11.2.0.4.0\tYES\n\n\tSnap Id\tSnap Time\tSessions\n\
                 Begin Snap:\t2\t10-Jan-14 04:00:45\t37\nEnd Snap:\t3\t10-Jan-14 05:00:58\t38\n",
                "a report of Oracle that a page or a mail took apart",
            ),
            (
                "Swingbench 2.6\nBenchmark : SOE\n\nTransaction Response Times (ms)\nOrder Entry    12.5\n",
                "what `results2txt` of Swingbench prints",
            ),
            (
                "4 KiB <<< /dev/sda (block device 1 TiB): request=1 time=200.1 us\n\n\
                 --- /dev/sda (block device 1 TiB) ioping statistics ---\n3 requests completed in 600 us, 12 KiB read\n\
                 min/avg/max/mdev = 190.1 us / 200.1 us / 210.3 us / 8.2 us\n",
                "output of ioping",
            ),
            (
                "16384+0 records in\n16384+0 records out\n134217728 bytes (134 MB) copied, 1.5 s, 89.5 MB/s\n",
                "output of dd",
            ),
        ] {
            let refused = read(&source(text)).unwrap_err();
            assert!(refused.to_string().contains(name), "{refused}");
            assert!(refused.hint().is_some_and(|hint| !hint.contains("--list")), "{refused:?}");
        }
    }
}
