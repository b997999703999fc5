//! AWR reports as text, and beside them the same reports in HTML.

use super::{folder, read};
use crate::Draft;
use model::record::WaitStats;

/// Each report as text and in HTML, of one instance and of the whole cluster.
fn twins() -> Vec<(String, String)> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut twins = vec![("awr/awr_11204_rac_inst1.txt".to_owned(), "awr/awr_11204_rac_inst1.html".to_owned())];
    let mut folders = vec![folder.join("flashgrid")];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                let text = path.strip_prefix(&folder).unwrap().display().to_string();
                let html = text.replace(".txt", ".html.gz");
                assert!(folder.join(&html).is_file(), "{html}");
                twins.push((text, html));
            }
        }
    }
    assert!(twins.len() > 8, "{twins:?}");
    twins
}

/// Figures of text have fewer digits: two are the same if they differ by half of the last one.
fn is_near(text: f64, html: f64, digit: f64) -> bool {
    (text - html).abs() <= digit * 0.51 + html.abs() * 1e-12
}

/// Windows are computed from rates, which have more digits in HTML.
fn is_near_time(text: u64, html: u64) -> bool {
    is_near(text as f64, html as f64, html as f64 * 1e-4)
}

/// Names as far as text may have them.
fn is_cut_of(text: &str, html: &str) -> bool {
    const SHORTEST_COLUMN: usize = 9;
    text == html || (text.len() >= SHORTEST_COLUMN && html.starts_with(text))
}

/// Names of times without what says that they are nanoseconds.
fn plain(name: &str) -> &str {
    name.strip_suffix("_ns").unwrap_or(name)
}

fn events(draft: &Draft) -> Vec<&WaitStats> {
    draft.steps.iter().flat_map(|step| &step.waits).collect()
}

/// Names of figures begin with that of an event or a function.
fn is_name_of(text: &str, html: &str) -> bool {
    match (text.rsplit_once(": "), html.rsplit_once(": ")) {
        (Some(text), Some(html)) => is_cut_of(text.0, html.0) && text.1 == html.1,
        _ => is_cut_of(text, html),
    }
}

fn is_same_event(text: &WaitStats, html: &WaitStats) -> bool {
    let is_same_time = match (text.sum().total_ns, html.sum().total_ns) {
        // A long average has as few digits as a short one.
        (Some(text), Some(html)) => is_near(text as f64, html as f64, 1e7),
        (text, html) => text == html,
    };
    let has_same_class = text.class == html.class || (text.class.is_empty() && text.event != html.event);
    let buckets = |event: &WaitStats| event.waits.buckets_ns().collect::<Vec<_>>();
    // Where two events have one name in text, the report does not report which of them its histograms are of.
    let has_lost_histogram = text.event != html.event && !text.waits.is_distribution();
    // Text cuts the unit of `118.6K`; then its histogram is of the waits that the table of events states.
    let has_cut_number = text.waits.count() != html.waits.count() && text.waits.count() == html.sum().count;
    is_same_time
        && has_same_class
        && text.foreground == html.foreground
        && text.sum().count == html.sum().count
        && (buckets(text) == buckets(html) || has_lost_histogram || has_cut_number)
}

#[test]
fn text_and_html_of_one_report_give_one_run() {
    for (text, html) in twins() {
        let (Some(text_runs), Some(html_runs)) = (read("awr-text", &text), read("awr-html", &html)) else { return };
        assert_eq!((text_runs.len(), html_runs.len()), (1, 1), "{text}");
        compare(&text, &text_runs[0], &html_runs[0]);
    }
}

fn compare(file: &str, text: &Draft, html: &Draft) {
    let (text_events, html_events) = (events(text), events(html));
    // Two `latch: MGA shared context …` are one name in text.
    let missing = html_events.len().checked_sub(text_events.len()).unwrap();
    assert!(missing <= 2, "{file}: {missing} {:?}", text.notes);
    for event in text_events {
        let mut same = html_events.iter().filter(|html| is_cut_of(&event.event, &html.event));
        assert!(same.any(|html| is_same_event(event, html)), "{file}: {event:?}");
    }
    assert_eq!((&text.title, text.began, text.ended), (&html.title, html.began, html.ended), "{file}");
    assert_eq!(
        (&text.program, &text.version, &text.target.kind),
        (&html.program, &html.version, &html.target.kind),
        "{file}"
    );
    assert_eq!(
        (text.target.block_bytes, text.target.cache_bytes),
        (html.target.block_bytes, html.target.cache_bytes),
        "{file}"
    );
    let (text_facts, html_facts) = (text.target.facts.shown(), html.target.facts.shown());
    assert!(text_facts.keys().eq(html_facts.keys()), "{file}: {text_facts:?} {html_facts:?}");
    for (name, value) in &text_facts {
        // The two files of this report were made of one snapshot of which the server had been started twice.
        let is_same = name.as_str() == "startup"
            || value.split(", ").zip(html_facts[name].split(", ")).all(|(text, html)| is_cut_of(text, html));
        assert!(is_same, "{file}: {name} {value} {}", html_facts[name]);
    }
    let (text, html) = (&text.steps[0], &html.steps[0]);
    assert_eq!((&text.counters, &text.label), (&html.counters, &html.label), "{file}");
    assert!(is_near_time(text.window.duration_ns, html.window.duration_ns), "{file} {:?}", text.window);
    assert_eq!(text.host_cpu, html.host_cpu, "{file}");
    assert_eq!(text.instances.len(), html.instances.len(), "{file}");
    for (text, html) in text.instances.iter().zip(&html.instances) {
        assert_eq!((&text.node, &text.counters), (&html.node, &html.counters), "{file}");
        assert!(is_near_time(text.elapsed_ns, html.elapsed_ns), "{file} {}", text.elapsed_ns);
        for (name, value) in &text.own {
            // Seconds are reported with one digit after the point in text, and with two in HTML.
            let digit = if name.ends_with("_ns") { 1e8 } else { 0.0 };
            let mut same = html.own.iter().filter(|(whole, _)| is_cut_of(plain(name), plain(whole)));
            assert!(same.any(|(_, html)| is_near(*value as f64, *html as f64, digit)), "{file}: {name} {value}");
        }
    }
    for figure in &text.reported {
        let mut same =
            html.reported.iter().filter(|html| is_name_of(&figure.name, &html.name) && html.unit == figure.unit);
        // Some rates are reported as `1.4E+04` in text.
        let is_same = same.any(|html| is_near(figure.value, html.value, 0.1f64.max(html.value / 10.0)));
        assert!(is_same, "{file}: {figure:?}");
    }
}

fn only(kind: &str, file: &str) -> Option<Draft> {
    let mut drafts = read(kind, file)?;
    assert_eq!((drafts.len(), drafts[0].steps.len()), (1, 1), "{file}");
    drafts.pop()
}

fn figure(draft: &Draft, name: &str) -> f64 {
    let figures = draft.steps.iter().flat_map(|step| &step.reported).filter(|figure| figure.name == name);
    let found: Vec<f64> = figures.map(|figure| figure.value).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

fn wait<'a>(draft: &'a Draft, event: &str) -> &'a WaitStats {
    let found: Vec<&WaitStats> = events(draft).into_iter().filter(|wait| wait.event == event).collect();
    assert_eq!(found.len(), 1, "{event}");
    found[0]
}

/// Asserts the shares in percent, to one decimal, of buckets that end at so many microseconds; 0 is the open end. The first
/// bucket of a list has all that took less time.
fn assert_shares(wait: &WaitStats, shares: &[(u64, f64)], of_waits: (u64, u64)) {
    let count = wait.waits.count();
    assert!((of_waits.0..=of_waits.1).contains(&count), "{} {count}", wait.event);
    let mut below = 0;
    for (to_us, share) in shares {
        let upto = if *to_us == 0 { count } else { wait.waits.below_ns(to_us * 1_000).0 };
        let found = (upto - below) as f64 / count as f64 * 100.0;
        assert!((found - share).abs() <= 0.1 + 50.0 / count as f64, "{} <{to_us}us: {found}, not {share}", wait.event);
        below = upto;
    }
}

/// The values that the author's tables have for a run: requests, and blocks read and written, in a second, of node 1 and of
/// node 2; then waits for `db file sequential read` in millions, and their shares.
struct Listed {
    folder: &'static str,
    nodes: [[f64; 3]; 2],
    reads: (u64, u64),
    shares: &'static [(u64, f64)],
}

const LISTED: [Listed; 6] = [
    Listed {
        folder: "asm-p30x2/cache-off/awr_p30x2_d8s_s40_t1_wu4",
        nodes: [[3_997.0, 3_484.51, 513.58], [4_042.0, 3_521.79, 521.59]],
        reads: (4_150_000, 4_250_000),
        shares: &[(4_096, 73.1), (8_192, 20.9), (16_384, 2.8), (32_768, 2.4), (65_536, 0.8)],
    },
    Listed {
        folder: "asm-p30x2/cache-on/awr_p30x2_d8s_s40_t1_wu4",
        nodes: [[4_448.0, 3_888.62, 559.12], [4_767.0, 4_156.90, 610.77]],
        reads: (4_750_000, 4_870_000),
        shares: &[(256, 0.3), (512, 13.2), (1_024, 3.7), (2_048, 0.6), (4_096, 64.5), (8_192, 12.9), (16_384, 1.9)],
    },
    Listed {
        folder: "asm-p60x2/awr_p60x2_e32s_s128_t1_wu4",
        nodes: [[12_096.0, 10_470.65, 1_625.94], [13_009.0, 11_226.43, 1_782.84]],
        reads: (13_200_000, 13_400_000),
        shares: &[(4_096, 90.1), (8_192, 4.9), (16_384, 2.5), (32_768, 2.2), (65_536, 0.3)],
    },
    Listed {
        folder: "asm-p60x2/awr_p60x2_e32s_s128_t1_wu6",
        nodes: [[12_962.0, 11_191.02, 1_771.33], [13_419.0, 11_587.29, 1_831.37]],
        reads: (6_700_000, 6_900_000),
        shares: &[(4_096, 82.4), (8_192, 6.4), (16_384, 4.3), (32_768, 5.7), (65_536, 1.3)],
    },
    Listed {
        folder: "asm-p80x2/awr_p80x2_e32s_s128_t1_wu12",
        nodes: [[16_478.29, 14_258.71, 2_219.58], [16_372.25, 14_158.99, 2_213.26]],
        reads: (5_400_000, 5_600_000),
        shares: &[(4_096, 60.5), (8_192, 23.4), (16_384, 4.5), (32_768, 9.4), (65_536, 2.2)],
    },
    Listed {
        folder: "asm-p80x2/awr_p80x2_e32s_s128_t1_wu16",
        nodes: [[16_594.37, 14_350.42, 2_243.95], [16_705.84, 14_442.18, 2_263.66]],
        reads: (4_900_000, 5_100_000),
        shares: &[(4_096, 60.2), (8_192, 21.9), (16_384, 4.3), (32_768, 10.9), (65_536, 2.6)],
    },
];

#[test]
fn reports_of_a_cluster_have_the_values_of_their_authors_tables() {
    for listed in &LISTED {
        let folder = listed.folder;
        let Some(cluster) = only("awr-text", &format!("flashgrid/{folder}/awr_rac.txt")) else { return };
        let Some(single) = only("awr-text", &format!("flashgrid/{folder}/awr.txt")) else { return };
        let reads = wait(&cluster, "db file sequential read");
        assert_shares(reads, listed.shares, listed.reads);
        let nodes = &cluster.steps[0].instances;
        assert_eq!(nodes.len(), listed.nodes.len());
        for (node, [requests, read, written]) in nodes.iter().zip(listed.nodes) {
            let rates = ["Reads", "Writes"].map(|what| figure(&cluster, &format!("{}: Physical {what}/s", node.node)));
            assert!((rates[0] - read).abs() < 0.06 && (rates[1] - written).abs() < 0.06, "{folder} {rates:?}");
            assert!((rates[0] + rates[1] - requests).abs() < 1.5, "{folder} {rates:?}");
        }
        let per_s = ["Physical read (blocks)", "Physical write (blocks)"].map(|name| figure(&single, name));
        let is_that_of =
            |[_, read, written]: [f64; 3]| (per_s[0] - read).abs() < 0.06 && (per_s[1] - written).abs() < 0.06;
        assert!(listed.nodes.into_iter().any(is_that_of), "{folder} {per_s:?}");
    }
}

#[test]
fn release_11_as_text_has_the_listed_values() {
    let Some(run) = only("awr-text", "awr/awr_11204_rac_inst1.txt") else { return };
    let facts = run.target.facts.shown();
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    assert_eq!((run.title.as_str(), run.version.as_str()), ("ORCL/orcl1 snapshots 2-3", "11.2.0.4.0"));
    assert_eq!((fact("db_id"), fact("rac"), fact("instance_number")), ("1380142923", "YES", "1"));
    assert_eq!(run.environment.hostname.as_deref(), Some("node1"));
    assert!((run.steps[0].window.duration_ns as f64 / 60e9 - 60.22).abs() < 0.006);
    assert_eq!((figure(&run, "Read IO requests"), figure(&run, "Write IO requests")), (0.0, 0.1));
    let profile = ["Read+Write Per Second", "Read per Second", "Write Per Second"];
    assert_eq!(profile.map(|column| figure(&run, &format!("Total Requests: {column}"))), [3.5, 2.5, 1.0]);
    assert_eq!(figure(&run, "physical read total IO requests"), 9_031.0);
    assert_eq!(figure(&run, "physical write total IO requests"), 3_435.0);
    let reads = wait(&run, "db file sequential read");
    assert_eq!((reads.foreground, reads.sum().count, reads.sum().mean_ns()), (false, 73, Some(4e6)));
    let shares = [(1_000, 47.1), (2_000, 14.3), (4_000, 2.9), (8_000, 12.9), (16_000, 17.1), (32_000, 5.7), (0, 0.0)];
    assert_shares(reads, &shares, (70, 70));
}
