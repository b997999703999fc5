//! Reports in HTML of several releases, from their text to a run.

mod specimens;

use proptest::prelude::*;

use self::specimens::{cluster_19, page, section, single_12, table};
use super::*;
use crate::import::Began;
use crate::record::{Step, Timestamp, WaitStats};

fn read_all(text: &str) -> Result<(Draft, Vec<String>), ImportError> {
    let source = Source::new("report.html", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH))?;
    let mut notes = Notes::new(&source);
    let mut drafts = read_awr_html(&source, &mut notes)?;
    assert_eq!((drafts.len(), drafts[0].steps.len()), (1, 1));
    let notes = notes.into_list().into_iter().map(|note| note.what).collect();
    Ok((drafts.pop().unwrap(), notes))
}

fn read(text: &str) -> Draft {
    let (draft, notes) = read_all(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(notes.is_empty(), "{notes:?}");
    draft
}

fn figure(step: &Step, name: &str) -> Option<(f64, String)> {
    step.told.iter().find(|figure| figure.name == name).map(|figure| (figure.value, figure.unit.clone()))
}

fn told(value: f64, unit: &str) -> Option<(f64, String)> {
    Some((value, unit.to_owned()))
}

fn wait<'a>(step: &'a Step, event: &str) -> &'a WaitStats {
    step.waits.iter().find(|wait| wait.event == event).unwrap_or_else(|| panic!("{event} is missing"))
}

/// Upper edges in microseconds (0 where open) with their counts.
fn buckets(wait: &WaitStats) -> Vec<(u64, u64)> {
    let value = serde_json::to_value(&wait.waits).unwrap();
    let all = value["told"].as_array().unwrap().iter();
    all.map(|bucket| (bucket["to_ns"].as_u64().unwrap_or(0) / 1_000, bucket["count"].as_u64().unwrap())).collect()
}

#[test]
fn the_heading_alone_tells_a_report() {
    let known = |text: &str| recognises_awr_html(text);
    assert!(known(&single_12()));
    assert!(known(
        "SQL> @awrrpt\r\n<HTML><H1 CLASS=awr>\r\nWORKLOAD REPOSITORY REPORT (RAC)</H1><TH COLSPAN=2>Snapshot Ids"
    ));
    assert!(known("\"<h1 class=\"\"awr\"\">WORKLOAD REPOSITORY PDB report (root snapshots)\n</h1><th>DB Id</th>"));
    assert!(
        known(
            "<h1><a name=top></a><span lang=EN-US\nstyle='x'>WORKLOAD\r\nREPOSITORY <b>report</b> for<o:p></o:p></span></h1><p>DB Id"
        ),
        "a word processor saved it"
    );
    for other in [
        "<h1>WORKLOAD REPOSITORY COMPARE PERIOD REPORT</h1><th>DB Id</th>",
        "<h1 class=\"awr\">WORKLOAD REPOSITORY SQL Report</h1><th>DB Id</th>",
        "<h1>WORKLOAD REPOSITORY report for</h1><th>instance name</th><th>begin snap id</th>",
        "WORKLOAD REPOSITORY report for\n\nDB Name         DB Id",
        "<p>How to read a WORKLOAD REPOSITORY report for beginners</p>",
        "<h1>ASH Report For SHOP/shop1</h1>",
        "",
    ] {
        assert!(!known(other), "{other}");
    }
}

#[test]
fn no_other_importer_claims_a_report() {
    for text in [single_12(), cluster_19(), format!("SQL> spool awr.html\n{}", single_12())] {
        let claims = crate::import::importers().iter().filter(|importer| (importer.recognises)(&text));
        assert_eq!(claims.map(|importer| importer.kind).collect::<Vec<_>>(), ["awr-html"]);
    }
}

#[test]
fn the_header_says_what_was_measured_where_and_when() {
    let draft = read(&single_12());
    assert_eq!((draft.title.as_str(), draft.workload), ("SHOP/shop1 snapshots 41-42", "database"));
    assert_eq!((draft.program, draft.version.as_str()), ("Oracle Database", "12.2.0.1.0"));
    assert_eq!((draft.target.kind.as_str(), draft.target.address.as_str()), ("oracle", "SHOP/shop1"));
    let facts = ["db_id", "snapshots", "role", "startup", "platform", "cores", "sessions_begin", "sessions_end"];
    let found = facts.map(|name| draft.target.facts[name].as_str());
    assert_eq!(found, ["77001", "41-42", "PRIMARY", "02-May-21 06:30", "Linux x86 64-bit", "8", "60", "61"]);
    assert_eq!((draft.target.block_bytes, draft.target.cache_bytes), (Some(8_192), Some(2 << 30)));
    assert_eq!((draft.environment.hostname.as_deref(), draft.environment.cpus), (Some("big.box"), Some(16)));
    assert_eq!(draft.environment.memory_bytes, Some(67_108_864_000), "not the rounded gigabytes");
    let at = |text: &str| Began::wall(text.parse().unwrap()).unwrap();
    assert_eq!(draft.began, Some(at("2021-05-03T09:00:10")));
    assert_eq!(draft.ended, Some(at("2021-05-03T09:20:30").timestamp()));
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.load.sessions), (1_220_000_000_000, None), "sessions are no load");
}

#[test]
fn statistics_become_counters_by_what_they_mean() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    let counters = &step.counters;
    let reads = (counters.physical_reads, counters.physical_read_bytes, counters.physical_read_blocks);
    assert_eq!(reads, (Some(9_500), Some(819_200_000), Some(100_000)));
    let writes = (counters.physical_writes, counters.physical_write_bytes, counters.physical_write_blocks);
    assert_eq!(writes, (Some(50), Some(819_200), Some(100)));
    assert_eq!((counters.logical_reads, counters.cache_hits), (Some(160_000), Some(60_000)), "60,000 were direct");
    assert_eq!((counters.commits, counters.redo_bytes, counters.redo_writes), (Some(33), Some(5_000), Some(12)));
    assert_eq!((counters.block_changes, counters.log_switches, counters.direct_reads), (Some(3_000), Some(2), None));
    assert_eq!(step.instances.len(), 1);
    assert_eq!((step.instances[0].node.as_str(), &step.instances[0].counters), ("shop1", counters));
    let own = &step.instances[0].own;
    assert_eq!((own["physical read total IO requests"], own["DB CPU_ns"]), (11_000, 1_030_250_000_000));
    assert_eq!((own["DB time_ns"], own["BUSY_TIME_ns"]), (6_030_120_000_000, 4_000_000_000_000));
    let cpu = step.host_cpu.unwrap();
    assert_eq!((cpu.user_ns, cpu.system_ns), (2_500_000_000_000, 1_500_000_000_000));
    let idle = (cpu.idle_ns, cpu.iowait_ns);
    assert_eq!(idle, (Some(15_000_000_000_000), Some(1_000_000_000_000)), "idle includes waiting for I/O there");
}

#[test]
fn figures_keep_the_names_of_the_report() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    assert_eq!(figure(step, "DB time"), told(6_030.12, "s"), "more exact than the minutes of the header");
    assert_eq!(figure(step, "Read IO requests"), told(1_000.5, "/s"));
    assert_eq!(figure(step, "Total Requests: Write Per Second"), told(100.3, "/s"));
    assert_eq!(figure(step, "Redo Requests: Read per Second"), None, "blank");
    assert_eq!(figure(step, "%WIO"), told(3.5, "%"));
    assert_eq!(figure(step, "physical read total IO requests"), told(11_000.0, ""));
    assert_eq!(figure(step, "function LGWR: Writes: Data"), told(2_147_483_648.0, "B"));
    assert_eq!(figure(step, "function LGWR: Writes: Reqs per sec"), told(4.25, "/s"));
    assert_eq!(figure(step, "function LGWR: Writes: Data per sec"), told(1_572_864.0, "B/s"));
    assert_eq!(figure(step, "function LGWR: Waits: Count"), told(1_200.0, ""));
    assert_eq!(figure(step, "function LGWR: Waits: Avg Time"), told(0.6405, "ms"));
    assert_eq!(figure(step, "file type Data File: Small Read"), told(0.25, "ms"));
}

#[test]
fn all_histogram_tables_of_an_event_are_one() {
    let draft = read(&single_12());
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.class.as_str(), read.layer.as_str(), read.foreground), ("User I/O", "engine", true));
    assert_eq!(
        buckets(read),
        [(256, 1_000), (512, 3_000), (1_024, 900), (2_048, 2_000), (4_096, 3_000), (131_072, 100)],
        "9,000 and 1,000 waits are the 10K of the histogram"
    );
    assert_eq!(read.waits.total_ns(), Some(19_090_000_000), "averages are more exact than whole seconds here");
    assert_eq!(figure(step, "db file sequential read: foreground waits"), told(9_000.0, ""));
    assert!(draft.notes.iter().any(|note| note.contains("foreground and background together")), "{:?}", draft.notes);
    let write = wait(step, "db file parallel write");
    assert_eq!((buckets(write), write.foreground), (vec![(256, 1), (512, 4)], false));
    assert_eq!(wait(step, "log file sync").waits.total_ns(), Some(48_200_000));
    let latch = wait(step, "latch free");
    assert_eq!((latch.waits.count(), latch.waits.total_ns()), (8, None), "no table of events has it");
    let idle = wait(step, "SQL*Net message from client");
    assert_eq!((idle.class.as_str(), idle.waits.is_distribution(), idle.waits.count()), ("Idle", false, 700));
}

#[test]
fn statements_are_not_kept() {
    let draft = read(&single_12());
    assert!(!format!("{draft:?}").contains("card_number"));
}

#[test]
fn release_11_counts_in_milliseconds() {
    let body = [
        table("DB Name|DB Id|Instance|Inst num|Startup Time|Release|RAC\nOLD|5|old2|2|01-Feb-12 01:01|11.2.0.4.0|YES"),
        table("Host Name|Platform|CPUs|Cores|Sockets|Memory (GB)\nnode2|AIX-Based Systems (64-bit)|4|||8.00"),
        table(
            "|Snap Id|Snap Time|Sessions|Cursors/Session|Instances\nBegin Snap:|7|02-Feb-12 10:00:00|30|1.0|2\n\
             End Snap:|8|02-Feb-12 11:00:00|31|.9|2\nElapsed:||60.00 (mins)|||\nDB Time:||0.50 (mins)|||",
        ),
        section(
            "Foreground Wait Events",
            "Event|Waits|%Time -outs|Total Wait Time (s)|Avg wait (ms)|Waits /txn|% DB time\ndb file scattered read|200||3|15|1|1",
        ),
        section(
            "Wait Event Histogram",
            "^||% of Waits*8\nEvent|Total Waits|<1ms|<2ms|<4ms|<8ms|<16ms|<32ms|<=1s|>1s\n\
             db file scattered read|200|50.0||||45.0||5.0|\nlog file parallel write|40|97.5||||||2.5|",
        ),
        section(
            "Wait Event Histogram Detail (64 msec to 2 sec)",
            "^||% of Total Waits*8\nEvent|Waits 64ms  to 2s|<32ms|<64ms|<1/8s|<1/4s|<1/2s|<1s|<2s|>=2s\n\
             db file scattered read|10|95.0|4.0|1.0|||||",
        ),
        section(
            "Other Instance Activity Stats",
            "Statistic|Total|per Second|per Trans\nphysical reads|900|0.25|1\nphysical read IO requests|300|0.08|1",
        ),
        section("Key Instance Activity Stats", "Statistic|Total|per Second|per Trans\nuser commits|4|0.00|1"),
    ];
    let draft = read(&page("WORKLOAD REPOSITORY report for", &body.concat()));
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.target.facts["instance_number"].as_str()), ("OLD/old2 snapshots 7-8", "2"));
    assert_eq!(draft.environment.memory_bytes, Some(8 << 30));
    let read = wait(step, "db file scattered read");
    assert_eq!(buckets(read), [(1_000, 100), (16_000, 90), (64_000, 8), (128_000, 2)]);
    assert_eq!(read.waits.total_ns(), Some(3_000_000_000), "15 ms are the less exact here: 200 of them 0.1 s off");
    assert_eq!(buckets(wait(step, "log file parallel write")), [(1_000, 39), (1_024_000, 1)], "its second is 1,024 ms");
    assert_eq!((step.counters.physical_reads, step.counters.commits), (Some(300), Some(4)));
    assert_eq!(figure(step, "DB time"), told(30.0, "s"));
}

#[test]
fn a_cluster_tells_of_each_instance() {
    let draft = read(&cluster_19());
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("DUO snapshots 11-12", "19.0.0.0.0"));
    let target = &draft.target;
    assert_eq!(
        (target.address.as_str(), target.block_bytes, target.cache_bytes),
        ("DUO", Some(16_384), Some(4_000 << 20))
    );
    let facts =
        ["instances", "hosts", "rac", "db_id", "cpus", "sessions_begin"].map(|name| target.facts[name].as_str());
    assert_eq!(facts, ["duo1, duo2", "left, right", "YES", "99", "8", "1,170"]);
    assert_eq!((step.window.duration_ns, draft.environment.hostname.as_ref()), (600_000_000_000, None));
    assert!(draft.notes.iter().any(|note| note.contains("hundredths of a minute")), "{:?}", draft.notes);
    let instances: Vec<_> = step
        .instances
        .iter()
        .map(|one| (one.node.as_str(), one.elapsed_ns, one.counters.physical_read_blocks, one.counters.redo_bytes))
        .collect();
    assert_eq!(
        instances,
        [("duo1", 600_000_000_000, Some(4_000), Some(10_240)), ("duo2", 598_800_000_000, Some(3_000), Some(20_480))]
    );
    let own = &step.instances[1].own;
    assert_eq!((own["DB time_ns"], own["DB CPU_ns"]), (900_250_000_000, 100_000_000_000));
    assert_eq!((own["BUSY_TIME_ns"], own["Txns"]), (50_000_000_000, 6));
    assert_eq!((step.counters.physical_read_blocks, step.counters.physical_reads), (Some(7_000), Some(6_900)));
    assert_eq!(figure(step, "duo2: Physical Reads/s"), told(5.01, "/s"));
    assert_eq!(figure(step, "Physical Reads/s"), told(11.68, "/s"));
    assert_eq!(figure(step, "duo1: % WIO"), told(1.5, "%"));
    assert_eq!(figure(step, "DB time"), told(2_400.75, "s"));
    assert_eq!(figure(step, "Total Requests: Reads/s"), told(15.25, "/s"));
    assert_eq!(figure(step, "function DBWR: Requests: Total"), told(1_200.0, ""));
    assert_eq!(figure(step, "function DBWR: MB: Read MB/s"), told(0.25, "MB/s"));
}

#[test]
fn a_cluster_counts_rare_waits_exactly() {
    let draft = read(&cluster_19());
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.waits.count(), read.waits.total_ns()), (4_812_345, Some(9_624_690_000_000)));
    let told = buckets(read);
    assert_eq!((told[0], told[6]), ((512, 122), (0, 1)), "{told:?}");
    assert!(told[3].1.abs_diff(2_887_407) < 2_500, "60 %: {told:?}");
    assert_eq!(wait(step, "odd new event").class, "Other");
    assert!(!step.waits.iter().any(|wait| wait.event == "background cpu time"));
}

#[test]
fn release_23_lists_its_containers_and_single_microseconds() {
    let containers =
        table("Container DB Id|Container Name|Open Time\n1|CDB$ROOT|02-May-25 06:30\n2|PDB$SEED|02-May-25 06:30");
    let text = single_12()
        .replace("12.2.0.1.0", "23.7.0.25.01")
        .replacen("<h3 class=\"awr\">Report Summary", &format!("{containers}<h3 class=\"awr\">Report Summary"), 1)
        .replace("DB time</td>", "DB time&#160;&#160;[1]</td>")
        .replace(
            "<br /><a class=\"awr\" href=\"#top\">",
            &section(
                "Wait Event Histogram (up to 64 us)",
                "^||% of Total Waits*8\nEvent|Waits 1us  - 64us|<1us|<2us|<4us|<8us|<16us|<32us|<64us|>=64us\n\
                 latch free|8|25.0|50.0||25.0||||",
            ),
        );
    let draft = read(&text);
    assert_eq!(
        (draft.version.as_str(), draft.target.facts["containers"].as_str()),
        ("23.7.0.25.01", "CDB$ROOT, PDB$SEED")
    );
    assert_eq!(buckets(wait(&draft.steps[0], "latch free")), [(1, 2), (2, 4), (8, 2)]);
    assert_eq!(figure(&draft.steps[0], "DB time"), told(6_030.12, "s"), "without its footnote");
}

#[test]
fn tags_of_any_make_say_the_same() {
    let neat = format!("{:?}", read(&single_12()));
    let unclosed = single_12().replace("</td>", "").replace("</th>", "").replace("</tr>", "");
    let shouted = single_12().replace("<td class='awrc'", "<TD CLASS=awrc NOWRAP").replace("table", "TABLE");
    let quoted = format!("\"{}\"\n", single_12().replace('"', "\"\""));
    let converted = single_12().replace("<th ", "<td ").replace("</th>", "</td>");
    let unclosed_headings = single_12().replace("</h3>", "");
    let nested = single_12().replace("log file sync</td>", "<b><font size=1>log</font> file <i>sync</i></b></td>");
    let prompted =
        format!("SQL> @awrrpt\r\nEnter value: 42 <return>\r\n{}\nSQL> exit\n", single_12().replace('\n', "\r\n"));
    for (how, text) in [
        ("unclosed", unclosed),
        ("converted", converted),
        ("unclosed headings", unclosed_headings),
        ("shouted", shouted),
        ("quoted", quoted),
        ("nested", nested),
        ("prompted", prompted),
    ] {
        assert!(recognises_awr_html(&text), "{how}");
        assert_eq!(format!("{:?}", read(&text)), neat, "{how}");
    }
}

#[test]
fn headings_may_span_rows() {
    let spanned = cluster_19().replace(
        "<tr>\n<td>&#160;</td><td>&#160;</td><th class=\"awrbg\" colspan=\" 8\" id=\"x\">% of Total Waits</th></tr><tr><th class='awrc'>Event</th><th class='awrc'>Waits</th>",
        "<tr><th rowspan=2>Event</th><th rowspan=\"2\">Waits</th><th colspan=8>% of Total Waits</th></tr><tr>",
    );
    assert_ne!(spanned, cluster_19());
    assert_eq!(format!("{:?}", read(&spanned)), format!("{:?}", read(&cluster_19())));
}

#[test]
fn reports_that_follow_one_another_are_runs_of_their_own() {
    let text = format!("{}SQL> @awrgrpt\n{}", single_12(), cluster_19());
    let source = Source::new("both.html", text.into_bytes(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let mut notes = Notes::new(&source);
    let drafts = read_awr_html(&source, &mut notes).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let [first, second] = drafts.as_slice() else { panic!("{} runs", drafts.len()) };
    assert_eq!(format!("{first:?}"), format!("{:?}", read(&single_12())));
    assert_eq!(format!("{second:?}"), format!("{:?}", read(&cluster_19())));
}

#[test]
fn reports_of_other_kinds_in_the_same_file_are_left_out() {
    let other = |heading: &str| page(heading, &table("DB Name|DB Id\nSHOP|77001"));
    for heading in
        ["WORKLOAD REPOSITORY SQL Report", "WORKLOAD REPOSITORY COMPARE PERIOD REPORT", "ASH Report For SHOP/shop1"]
    {
        let text =
            single_12() + &other(heading) + &section("Time Model Statistics", "Statistic Name|Time (s)\nDB time|1.0");
        let draft = read(&text);
        assert_eq!(figure(&draft.steps[0], "DB time"), told(6_030.12, "s"), "{heading}");
    }
}

#[test]
fn a_report_that_ends_early_tells_what_it_has() {
    let text = single_12();
    let cut = &text[..text.find("SQL ordered").unwrap()];
    let (draft, notes) = read_all(cut).unwrap();
    assert_eq!((draft.title.as_str(), draft.steps[0].counters.commits), ("SHOP/shop1 snapshots 41-42", None));
    assert!(notes.iter().any(|note| note.contains("the report ends here")), "{notes:?}");
    let in_a_row = &text[..text.find("redo writes").unwrap() + 40];
    let (draft, _) = read_all(in_a_row).unwrap();
    assert_eq!((draft.steps[0].counters.redo_bytes, draft.steps[0].counters.redo_writes), (Some(5_000), None));
    let error = read_all(&text[..text.find("Begin Snap").unwrap()]).unwrap_err().to_string();
    assert!(error.contains("no begin and end snapshots"), "{error}");
    let error = read_all("<h1>WORKLOAD REPOSITORY report for</h1>").unwrap_err().to_string();
    assert!(error.contains("has no table"), "{error}");
}

#[test]
fn rates_stand_in_for_statistics_that_are_missing() {
    let text = single_12().replace("Instance Activity Stats", "Instance Gossip");
    let draft = read(&text);
    assert_eq!(draft.steps[0].counters.physical_reads, Some(1_220_610), "1,000.5 in each of 1,220 seconds");
    assert!(
        draft.notes.iter().any(|note| note.contains("rates of its load profile times its window")),
        "{:?}",
        draft.notes
    );
    let timeless = text.replace("03-May-21", "in May").replace("20.33 (mins)", "");
    let draft = read(&timeless);
    assert_eq!(
        (draft.steps[0].window.duration_ns, draft.steps[0].counters.physical_reads, draft.began),
        (0, None, None)
    );
}

#[test]
fn rates_tell_the_window_more_exactly_than_snapshots() {
    let rated = single_12().replace(
        "<td class='awrc'>819,200,000</td><td class='awrc'>1<",
        "<td class='awrc'>819,200,000</td><td class='awrc'>671,750.72<",
    );
    let draft = read(&rated);
    let step = &draft.steps[0];
    assert_eq!(step.window.duration_ns / 1_000_000, 1_219_499, "not 1,220 s");
    assert_eq!(step.instances[0].elapsed_ns, step.window.duration_ns);
    let cluster = cluster_19()
        .replace(
            "<td class='awrc'>4,000</td><td class='awrc'>300<",
            "<td class='awrc'>4,000,000,000</td><td class='awrc'>300<",
        )
        .replace("<td class='awrc'>6.67<", "<td class='awrc'>6,670,000.00<");
    let step = &read(&cluster).steps[0];
    assert_eq!(step.instances[0].elapsed_ns / 1_000_000, 599_700, "not 600 s");
    assert_eq!((step.instances[1].elapsed_ns, step.window.duration_ns), (598_800_000_000, 600_000_000_000));
}

#[test]
fn a_clock_that_was_changed_does_not_change_the_window() {
    let draft = read(&single_12().replace("09:20:30", "10:20:30"));
    assert_eq!(draft.steps[0].window.duration_ns, 1_219_800_000_000, "20.33 minutes, not 80");
}

#[test]
fn histograms_of_quite_other_waits_stand_alone() {
    let draft = read(&single_12().replace(
        "<td class='awrc'>9,000</td><td class='awrc'>&#160;",
        "<td class='awrc'>4,000</td><td class='awrc'>&#160;",
    ));
    let step = &draft.steps[0];
    let read = wait(step, "db file sequential read");
    assert_eq!((read.waits.count(), read.waits.total_ns()), (10_000, None));
    assert_eq!(figure(step, "db file sequential read: foreground waits"), told(4_000.0, ""));
    assert_eq!(figure(step, "db file sequential read: background waits"), told(1_000.0, ""));
    assert!(draft.notes.iter().any(|note| note.contains("of 1 I/O events these differ")), "{:?}", draft.notes);
}

#[test]
fn what_was_cut_to_one_name_is_told_of_neither() {
    let twice = single_12().replace("db block changes<", "user commits<").replace(
        "log file sync</td><td class='awrc'>400</td><td class='awrc'>&#160;</td><td class='awrc'>0<",
        "db file sequential read</td><td class='awrc'>400</td><td class='awrc'>&#160;</td><td class='awrc'>0<",
    );
    let draft = read(&twice);
    let step = &draft.steps[0];
    assert_eq!((step.counters.commits, step.counters.redo_writes), (None, Some(12)));
    assert!(!step.waits.iter().any(|wait| wait.event == "db file sequential read"));
    assert!(draft.notes.iter().any(|note| note.contains("cut to one name")), "{:?}", draft.notes);
    let draft = read(&single_12().replace(">latch free<", ">log file sync<"));
    let sync = wait(&draft.steps[0], "log file sync");
    assert_eq!((sync.waits.count(), sync.waits.is_distribution()), (400, false), "its histogram is one of two");
}

#[test]
fn what_is_not_understood_is_noted_with_its_line() {
    let text = single_12()
        .replace("&lt;1/8s", "&lt;8 apples")
        .replace(">400</td>", ">4x0</td>")
        .replace('\n', "\r\n")
        .replace(">80.0</td><td class='awrc'>&#160;</td></tr>", ">8?</td></tr>");
    let source = Source::new("report.html", text.clone().into_bytes(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let mut notes = Notes::new(&source);
    read_awr_html(&source, &mut notes).unwrap();
    let notes = notes.into_list();
    let lines: Vec<&str> = text.lines().collect();
    for (what, mark) in
        [("rising durations", "apples"), ("a number was expected", "4x0"), ("not all percentages", "8?")]
    {
        let note = notes.iter().find(|note| note.what.contains(what)).unwrap_or_else(|| panic!("{what}: {notes:?}"));
        let near = lines[note.line.unwrap() as usize - 1..].iter().take(3).any(|line| line.contains(mark));
        assert!(near, "line {:?} for {mark}", note.line);
    }
}

#[test]
fn hostile_pages_cost_no_more_than_their_text() {
    let begun = std::time::Instant::now();
    let open = "<table><tr><th>Event<td colspan=999999999 rowspan=999999999>".repeat(20_000);
    let deep = "<b><ul><li>".repeat(100_000);
    let wide = format!("<table><tr>{}</tr>", "<th>&lt;1us".repeat(200_000));
    let long = format!("<table><tr><th>Event</th></tr><tr><td>{}</td></tr>", "x ".repeat(500_000));
    let tall = format!("<table><tr>{}</tr>{}", "<th>x".repeat(128), "<tr><td>1".repeat(20_000));
    for bomb in [open, deep, wide, long, tall] {
        let text = single_12()
            .replace("<h3 class=\"awr\">Wait Event Histogram</h3>", &format!("<h3>Wait Event Histogram</h3>{bomb}"));
        if let Ok((_, notes)) = read_all(&text) {
            let noted = notes.iter().any(|note| note.contains("longer than any report"));
            assert_eq!(noted, bomb.starts_with("<table><tr><th>x"));
        }
    }
    // What grows with the square of its text takes hours; a busy machine takes its time as well.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_mangled_report_is_read_or_refused(
        cluster: bool,
        cuts in prop::collection::vec((0.0_f64..1.0, 0_usize..400, any::<u8>(), 0_usize..4), 1..8),
    ) {
        let mut bytes = if cluster { cluster_19() } else { single_12() }.into_bytes();
        for (place, length, byte, what) in cuts {
            let from = (place * bytes.len() as f64) as usize;
            let to = (from + length).min(bytes.len());
            match what {
                0 => drop(bytes.drain(from..to)),
                1 => bytes[from..to].iter_mut().step_by(97).for_each(|at| *at = byte.max(1)),
                2 => { let again = bytes[from..to].to_vec(); bytes.splice(from..from, again); }
                _ => { bytes.splice(from..from, std::iter::repeat_n(b'9', length * 50)); }
            }
        }
        if let Ok(source) = Source::new("x", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) {
            let mut notes = Notes::new(&source);
            if let Ok(drafts) = read_awr_html(&source, &mut notes) {
                prop_assert!(drafts.iter().all(|draft| draft.steps.len() == 1));
            }
        }
    }
}
