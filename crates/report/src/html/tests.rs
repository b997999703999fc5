use model::record::{
    Clock, Histogram, Imported, Load, NetworkEnd, NetworkSide, ReportedBucket, ReportedFigure, Spread, Target,
    TargetKind, TcpStats, Workload,
};
use std::collections::BTreeSet;

use super::*;
use analysis::analyse_asked;
use model::record::sample::{self, Level, requests, servers};

fn samples() -> Vec<Run> {
    let mut samples = vec![sample::sweep(60), sample::updates(30), sample::interrupted(), sample::imported()];
    samples.extend([requests::sweep(), requests::open_loop(), requests::mixed()]);
    samples.extend([servers::private_cluster(), servers::remote(), servers::two_nodes(), servers::changed_shape()]);
    let mut empty = sample::sweep(10);
    empty.steps.clear();
    samples.push(empty);
    samples
}

fn page_of(runs: &[Run]) -> String {
    let findings: Vec<_> = runs.iter().map(|run| analyse_asked(run, None)).collect();
    let reported: Vec<_> = runs.iter().zip(&findings).map(|(run, findings)| Reported::new(run, findings)).collect();
    let mut page = Vec::new();
    report(&mut page, &reported, &Kept::File).unwrap();
    String::from_utf8(page).unwrap()
}

/// What stands between `before` and the next `after`, wherever `before` is found.
fn between<'a>(page: &'a str, before: &str, after: char) -> Vec<&'a str> {
    page.split(before).skip(1).map(|rest| rest.split(after).next().unwrap_or_default()).collect()
}

fn charts_of(page: &str) -> Vec<Value> {
    let json =
        page.split("id=\"charts\" type=\"application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn every_kind_of_run_becomes_a_page_with_unique_ids_whose_links_lead_somewhere() {
    let runs = samples();
    for page in runs.iter().map(|run| page_of(std::slice::from_ref(run))).chain([page_of(&runs)]) {
        let ids = between(&page, " id=\"", '"');
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "ids are used twice");
        for reference in ["href=\"#", "aria-labelledby=\"", "aria-describedby=\""] {
            for id in between(&page, reference, '"') {
                assert!(unique.contains(id), "{reference}{id} leads nowhere");
            }
        }
    }
}

#[test]
fn nothing_outside_the_page_is_ever_loaded() {
    for run in samples() {
        let page = page_of(&[run]);
        assert!(page.contains("default-src 'none'"));
        for address in ["src=", "url(", "@import", "<link", "<img", "<iframe", "fetch(", "http-equiv=\"refresh\""] {
            assert!(!page.contains(address), "the page has {address}");
        }
        for link in between(&page, "href=\"", '"') {
            assert!(link.starts_with('#'), "{link}");
        }
    }
}

#[test]
fn every_chart_has_a_title_units_and_words_and_its_values_for_the_readout() {
    for run in samples() {
        let page = page_of(std::slice::from_ref(&run));
        let figures = between(&page, "<figure class=\"chart\" id=\"", '"');
        let ids: Vec<String> = charts_of(&page).iter().map(|chart| chart["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(figures, ids, "{}", run.id);
        for (figure, id) in page.split("<figure class=\"chart\"").skip(1).zip(figures) {
            let part = |before: &str| figure.split(before).nth(1).and_then(|rest| rest.split('<').next()).unwrap_or("");
            assert!(part(&format!("<h3 id=\"{id}-title\">")).len() > 3, "{id} has no title");
            assert!(
                part("<div class=\"y-title\">").len() > 2 && part("<div class=\"x-title\">").len() > 2,
                "{id}: axes"
            );
            assert!(
                part(&format!("<p class=\"words\" id=\"{id}-words\">")).len() > 20,
                "{id} is not reported in words"
            );
        }
    }
}

#[test]
fn the_run_tells_which_charts_it_has() {
    let ids = |run: Run| {
        let charts = charts_of(&page_of(&[run]));
        charts.iter().map(|chart| chart["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let engine = ids(sample::sweep(60));
    for wanted in ["load-line", "throughput", "latency", "heat", "wait-0", "percentiles", "waits"] {
        assert!(engine.iter().any(|id| id == wanted), "{wanted} is not in {engine:?}");
    }
    let raw = ids(requests::open_loop());
    assert!(raw.contains(&"responses".to_owned()) && !raw.contains(&"waits".to_owned()), "{raw:?}");
    let nodes = ids(servers::two_nodes());
    assert!(nodes.contains(&"node-rates".to_owned()) && nodes.contains(&"doing".to_owned()), "{nodes:?}");
    let cluster = ids(servers::private_cluster());
    assert!(cluster.contains(&"sources".to_owned()) && cluster.contains(&"trace-0".to_owned()), "{cluster:?}");
    let imported = ids(sample::imported());
    assert!(!imported.contains(&"throughput".to_owned()), "an import without seconds has nothing over time");
}

#[test]
fn both_ends_of_a_network_are_drawn_over_time() {
    let mut run = sample::sweep(60);
    run.load = Load::foreign(Workload::Network);
    let end = |side, bytes: (u64, u64)| NetworkEnd {
        side,
        elapsed_ns: 1_000_000_000,
        sent_bytes: Some(bytes.0),
        received_bytes: Some(bytes.1),
        tcp: Some(TcpStats {
            rtt_ns: Spread { count: 2, sum: 80_000, least: 30_000, most: 50_000 },
            ..TcpStats::default()
        }),
        ..NetworkEnd::default()
    };
    for interval in run.steps.iter_mut().flat_map(|step| &mut step.intervals) {
        let twice = end(NetworkSide::Server, (0, 25_000_000));
        interval.network = vec![end(NetworkSide::Client, (62_500_000, 0)), twice.clone(), twice];
    }
    let page = page_of(&[run]);
    let charts = charts_of(&page);
    let series_of = |id: &str| {
        let chart = charts.iter().find(|chart| chart["id"] == id)?;
        Some(chart["series"].as_array()?.iter().map(|line| line["name"].as_str().unwrap()).collect::<Vec<_>>())
    };
    let rates = series_of("network-rates").unwrap();
    assert_eq!(rates, ["up, sent by the client", "up, received by the server"], "nothing went down");
    assert_eq!(series_of("network-round-trip").unwrap(), ["client", "server"]);
    assert_eq!(series_of("network-resent"), None, "nothing was sent again");
    assert!(
        page.contains("up, sent by the client: 500 Mbit/s to 500 Mbit/s; up, received by the server: 400 Mbit/s to")
    );
    assert!(page.contains("client: 40 us to 40 us"), "two looks of 30 and 50 us");
    assert!(page.contains("Layer: client, requests and their answers."));
}

#[test]
fn text_from_outside_stays_text() {
    let mut run = sample::sweep(60);
    let hostile = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    run.name = hostile.to_owned();
    run.tags.insert(hostile.to_owned(), hostile.to_owned());
    run.parameters.insert(hostile.to_owned(), hostile.to_owned());
    run.notes.push(hostile.to_owned());
    run.steps[0].label = hostile.to_owned();
    run.steps[0].waits[0].event = hostile.to_owned();
    let page = page_of(&[run]);
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "text became markup");
    assert_eq!(page.matches("</script>").count(), 2, "one for the values, one for the script");
    assert!(charts_of(&page).iter().any(|chart| chart.to_string().contains("alert(1)")), "names are still there");
}

/// What stands in the scripts of a page that a browser would run.
fn scripts(page: &str) -> Vec<&str> {
    page.split("<script>").skip(1).map(|rest| rest.split("</script>").next().unwrap()).collect()
}

#[test]
fn only_the_scripts_of_this_program_may_run() {
    let run = sample::sweep(10);
    let reported = [Reported::new(&run, &[])];
    let follow = Follow { path: "/runs/a", seconds: 2 };
    for (kept, count) in
        [(Kept::File, 1), (Kept::Served { follow: None }, 1), (Kept::Served { follow: Some(follow) }, 2)]
    {
        let mut page = Vec::new();
        report(&mut page, &reported, &kept).unwrap();
        let page = String::from_utf8(page).unwrap();
        let policy = policy(&kept);
        let of_scripts = policy.split("; ").find_map(|part| part.strip_prefix("script-src ")).unwrap();
        assert!(of_scripts.split(' ').all(|source| source.starts_with("'sha256-")), "{of_scripts}");
        // As it stands in an attribute.
        assert!(page.contains(&format!("content=\"{policy}\"")), "{policy}");
        let found = scripts(&page);
        assert_eq!(found.len(), count);
        assert!(
            found.iter().all(|script| of_scripts.contains(&hash(script))),
            "a browser would not run a script of ours"
        );
        let attributes = ["onclick=", "onload=", "onerror=", "javascript:"];
        assert!(attributes.iter().all(|attribute| !page.contains(attribute)), "a browser would not run it");
    }
    // As `openssl dgst -sha256 -binary | base64` has it.
    assert_eq!(hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
}

#[test]
fn what_turns_or_hides_text_is_shown_on_a_page() {
    let mut run = sample::sweep(10);
    run.name = "a\x1b[31m\u{202e}gnp.exe\u{2066}".to_owned();
    let page = page_of(&[run]);
    assert!(page.contains("a[U+001B][31m[U+202E]gnp.exe[U+2066]"));
    assert!(!page.contains(['\x1b', '\u{202e}', '\u{2066}']));
}

/// An hour in seconds, in eight steps: as long a run as is usual.
fn hour() -> Run {
    let level = |power: u32| Level {
        sessions: 1 << power,
        operations_per_s: 200 + 37 * u64::from(power),
        read_ns: 90_000 + 61_000 * u64::from(power),
        seconds: 450,
        update_pct: 20,
    };
    sample::run(&(0..8).map(level).collect::<Vec<_>>())
}

#[test]
fn an_hour_in_seconds_and_several_of_them_keep_within_what_a_page_may_weigh() {
    let one = page_of(&[hour()]);
    assert!(one.len() <= MAX_BYTES, "{} bytes", one.len());
    let several = page_of(&[hour(), hour(), hour()]);
    assert!(several.len() <= MAX_BYTES, "{} bytes", several.len());
}

#[test]
fn charts_show_the_values_of_the_run() {
    let run = hour();
    let charts = charts_of(&page_of(std::slice::from_ref(&run)));
    let chart = |id: &str| charts.iter().find(|chart| chart["id"] == id).unwrap();
    let series = |id: &str, name: &str| {
        chart(id)["series"].as_array().unwrap().iter().find(|series| series["name"] == name).unwrap().clone()
    };
    // Longest response of any second: thinning must not lose it.
    let longest = run.steps.iter().flat_map(|step| &step.intervals).filter_map(|interval| interval.response.max_ns());
    let shown =
        series("latency", "response max")["y"].as_array().unwrap().iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    let wanted = longest.max().unwrap() as f64 / 1e3;
    assert!((shown / wanted - 1.0).abs() < 1e-3, "{shown} us shown, {wanted} us measured");
    let reads = run.steps[3].waits.iter().find(|wait| wait.event == "db file sequential read").unwrap();
    let words = series("wait-0", "s8_t1")["words"].clone();
    let reported: f64 = words
        .as_array()
        .unwrap()
        .iter()
        .map(|word| {
            word.as_str()
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .replace("none", "0")
                .replace(',', "")
                .parse::<f64>()
                .unwrap()
        })
        .sum();
    assert_eq!(reported as u64, reads.waits.count());
}

#[test]
fn histograms_are_drawn_of_what_sessions_waited_for_longest() {
    let mut run = sample::imported();
    let waits = Histogram::reported([ReportedBucket { from_ns: 0, to_ns: Some(1_000), count: 50 }], None, None, None);
    let template = run.steps[0].waits[0].clone();
    let wait = |event: &str, class: &str, seconds: u64| {
        let reported = model::record::ReportedWaits {
            by: model::record::Waiters::Foreground,
            count: 60,
            total_ns: Some(seconds * 1_000_000_000),
            layer: "engine".to_owned(),
            source: "Wait Events".to_owned(),
        };
        let (event, class) = (event.to_owned(), class.to_owned());
        model::record::WaitStats { event, class, waits: waits.clone(), reported: vec![reported], ..template.clone() }
    };
    run.steps[0].waits = vec![
        wait("SQL*Net message from client", "Idle", 900),
        wait("gc cr block lost", "Cluster", 7),
        wait("gc cr grant busy", "Cluster", 90),
        wait("db file sequential read", "User I/O", 1),
    ];
    let page = page_of(&[run]);
    let of_waits = between(&page, "<h3 id=\"wait-", '<');
    let titles: Vec<&str> = of_waits.iter().filter_map(|heading| heading.split('>').nth(1)).collect();
    let expected = ["db file sequential read", "gc cr grant busy", "gc cr block lost", "SQL*Net message from client"];
    assert_eq!(titles, expected);
}

#[test]
fn edges_of_buckets_and_targets_that_nobody_reported_are_not_passed_off_as_known() {
    let mut run = requests::sweep();
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
    run.target = Target::default();
    let bucket = |from_ns, to_ns, count| ReportedBucket { from_ns, to_ns: Some(to_ns), count };
    let durations =
        Histogram::reported(vec![bucket(0, 128_000, 5_000), bucket(128_000, 256_000, 7_000)], None, None, None);
    for operation in run.steps.iter_mut().flat_map(|step| &mut step.operations) {
        (operation.response, operation.service) = (durations.clone(), durations.clone());
    }
    let page = page_of(&[run.clone()]);
    assert!(page.contains("p50 &lt;=256 us, p99 &lt;=256 us"), "{}", between(&page, "p50 ", '<').join("\n"));
    let under_title = between(&page, "class=\"under-title\">", '\u{0}')[0].split("</p>").next().unwrap();
    assert!(!under_title.contains(" on "), "{under_title}");
    run.target.kind = Some(TargetKind::Block);
    assert!(page_of(&[run]).contains(" on block · completed"));
}

#[test]
fn most_of_them_is_said_of_more_than_half_only() {
    use crate::html::distribution::{Heights, Named, bars};
    let words = |counts: [u64; 3]| {
        let bucket = |(at, count): (usize, &u64)| {
            let from_ns = 270 + 10 * at as u64;
            ReportedBucket { from_ns, to_ns: Some(from_ns + 10), count: *count }
        };
        let mut buckets: Vec<ReportedBucket> = counts.iter().enumerate().map(bucket).collect();
        buckets.push(ReportedBucket { from_ns: 540, to_ns: Some(12_000), count: 40 });
        let times = std::borrow::Cow::Owned(Histogram::reported(buckets, None, None, None));
        let drawn =
            bars("b".to_owned(), "sync", "", "waits", Heights::Counts, &[Named { name: "redo".to_owned(), times }]);
        (drawn.frame.words, drawn.places[0].clone(), drawn.groups[0].values[1])
    };
    let most = words([100, 700, 160]);
    assert_eq!(most, ("redo: 1,000 waits, most of them (96.0 %) <1us.".to_owned(), "<1us".to_owned(), None));
    assert_eq!(words([1, 2, 3]).0, "redo: 46 waits, most of them (87.0 %) <16us.");
    assert_eq!(words([10, 10, 20]).0, "redo: 80 waits.", "half is not most");
}

#[test]
fn what_another_program_timed_from_sending_is_not_said_to_be_timed_from_due() {
    let mut run = requests::mixed();
    assert!(page_of(std::slice::from_ref(&run)).contains("Operations, from due to finished"));
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::Wall, not_understood: Vec::new() });
    for operation in run.steps.iter_mut().flat_map(|step| &mut step.operations) {
        operation.response = operation.service.clone();
    }
    let page = page_of(&[run]);
    assert!(page.contains("Operations, from sent to finished") && !page.contains("Operations, from due to"));
}

#[test]
fn what_stands_between_backticks_is_code_and_never_markup() {
    assert_eq!(marked("p99 of `a<b>` is 1").into_string(), "p99 of <code>a&lt;b&gt;</code> is 1");
    assert_eq!(marked("none").into_string(), "none");
}

#[test]
fn what_each_pays_comes_first_and_every_load_has_its_charts() {
    let mut runs = sample::beside::rounds(3, 0.5);
    runs.iter_mut().for_each(|run| run.command = vec!["plimsoll".to_owned(), "</script><b>".to_owned()]);
    let found = Interference::of("20261120-103000", runs, 0.05).unwrap();
    let mut out = Vec::new();
    interference(&mut out, &found, &Kept::File).unwrap();
    let page = String::from_utf8(out).unwrap();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("class=\"opening") < at("What each load pays") && at("What each load pays") < at("id=\"histogram-a\""));
    assert!(at("id=\"percentiles-a\"") < at("id=\"percentiles-b\""));
    assert!(!page.contains("</script><b>"), "a command became markup");
}

#[test]
fn what_cannot_be_is_marked_in_text_and_struck_through_on_a_page() {
    let mut run = sample::imported();
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::FileTime, not_understood: Vec::new() });
    let figure = ReportedFigure::new("client", "latency max", "ms", 20_000.0);
    run.steps[0].reported.push(ReportedFigure { doubted: Some("within-load".to_owned()), ..figure });
    let mut text = Vec::new();
    crate::text(&mut text, &run, &[], crate::text::Detail::Full, 120).unwrap();
    let (text, page) = (String::from_utf8(text).unwrap(), page_of(&[run]));
    assert!(text.contains("20,000 (doubted)"), "{text}");
    assert!(page.contains(">20,000</s>") && !page.contains("20,000 (doubted)"));
}
