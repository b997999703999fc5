//! Reports in HTML of several releases, from their text to a run.

mod containers;
mod damage;
mod figures;
mod releases;
mod sections;
mod specimens;

use self::specimens::{cluster_19, page, section, single_12, table};
use super::*;
use crate::Began;
use model::record::{Step, Timestamp, WaitStats, Waited, Waiters};

fn read_all(text: &str) -> Result<(Draft, Vec<String>), ImportError> {
    let source = Source::new("report.html", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH))?;
    let mut notes = Notes::new(&source);
    let mut drafts = read_html(&source, &mut notes)?;
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
    step.reported.iter().find(|figure| figure.name == name).map(|figure| (figure.value, figure.unit.clone()))
}

fn value_and_unit(value: f64, unit: &str) -> Option<(f64, String)> {
    Some((value, unit.to_owned()))
}

fn wait<'a>(step: &'a Step, event: &str) -> &'a WaitStats {
    step.waits.iter().find(|wait| wait.event == event).unwrap_or_else(|| panic!("{event} is missing"))
}

/// Upper edges in microseconds (0 where open) with their counts.
fn buckets(wait: &WaitStats) -> Vec<(u64, u64)> {
    let value = serde_json::to_value(&wait.waits).unwrap();
    let all = value["reported"].as_array().unwrap().iter();
    all.map(|bucket| (bucket["to_ns"].as_u64().unwrap_or(0) / 1_000, bucket["count"].as_u64().unwrap())).collect()
}

#[test]
fn the_heading_alone_tells_a_report() {
    let known = |text: &str| html::recognises(text);
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
        let claims = crate::importers().iter().filter(|importer| (importer.recognises)(&text));
        assert_eq!(claims.map(|importer| importer.kind).collect::<Vec<_>>(), ["awr-html"]);
    }
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
        assert!(html::recognises(&text), "{how}");
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
    let drafts = read_html(&source, &mut notes).unwrap();
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
        assert_eq!(figure(&draft.steps[0], "DB time"), value_and_unit(6_030.12, "s"), "{heading}");
    }
}
