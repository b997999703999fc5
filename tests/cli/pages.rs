//! Pages in a real browser, with somebody who points, clicks and types.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::place::Place;
use crate::skip::skip;

const PROBE: &str = include_str!("../pages/probe.js");
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser on this machine; without one the test says that it was skipped.
pub(crate) fn browser() -> Option<&'static str> {
    let found = BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        skip("no page was opened: there is no Chromium (`make tools` installs it as root)");
    }
    found
}

/// Opens a page with the probe at its end, and returns what the probe wrote down.
fn probed(browser: &str, place: &Place, page: &str) -> Value {
    let text = std::fs::read_to_string(place.path(page)).unwrap();
    // The probe is no script of the program, so the page has to allow it.
    let text = text.replacen("script-src ", "script-src 'nonce-probe' ", 1);
    place.write("probed.html", &with_script(&text, &format!("<script nonce=\"probe\">{PROBE}</script>")));
    let dom = dom(browser, place, &place.path("probed.html"));
    let reported = dom
        .split("<pre id=\"probe-output\">")
        .nth(1)
        .unwrap_or_else(|| panic!("the probe reported nothing: {dom:.2000}"));
    let reported =
        reported.split("</pre>").next().unwrap().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&reported).unwrap()
}

/// A page with a script of somebody else at its end.
fn with_script(page: &str, script: &str) -> String {
    let (before, after) = page.rsplit_once("</body>").expect("a page has an end");
    format!("{before}{script}</body>{after}")
}

fn dom(browser: &str, place: &Place, file: &Path) -> String {
    let profile = format!("--user-data-dir={}", place.path("profile").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,900", &profile])
        .args(["--timeout=60000", "--dump-dom", &format!("file://{}", file.display())])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_script_that_is_not_of_the_program_does_not_run() {
    let Some(browser) = browser() else { return };
    let place = Place::with_kept_runs();
    place.done(&["report", "format-1-updates", "-o", "report.html"]);
    let page = std::fs::read_to_string(place.path("report.html")).unwrap();
    let foreign = "<script>document.body.dataset.foreign = 'ran';</script><img src=x onerror=\"document.body.dataset.foreign = 'ran'\">";
    place.write("foreign.html", &with_script(&page, foreign));
    let dom = dom(browser, &place, &place.path("foreign.html"));
    assert!(dom.contains("data-charts=\"ready\""), "the program's own runs: {dom:.2000}");
    assert!(!dom.contains("data-foreign"), "somebody else's ran");
}

#[test]
fn a_report_can_be_pointed_at_typed_into_and_read_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    let place = Place::with_kept_runs();
    place.done(&["report", "format-1-updates", "-o", "report.html"]);
    let reported = probed(browser, &place, "report.html");
    assert_eq!(reported["errors"], serde_json::json!([]), "errors in the page");
    assert_eq!(reported["ready"], "ready");

    let charts = reported["charts"].as_object().unwrap();
    for wanted in ["throughput", "latency", "heat", "wait-0", "percentiles"] {
        assert!(charts.contains_key(wanted), "{wanted} is not in {:?}", charts.keys());
    }
    for (id, chart) in charts {
        assert!(chart["shown"] == 1 && chart["width"].as_f64().unwrap() > 300.0, "{id}: one scale is seen: {chart}");
        let pointed = chart["pointed"].as_str().unwrap_or_else(|| panic!("{id} has no readout: {chart}"));
        assert!(pointed.len() > 5, "{id}: {pointed}");
        assert_eq!(chart["left"], Value::Null, "{id}: the readout goes with the pointer");
        let (first, last) = (chart["first"].as_str().unwrap(), chart["last"].as_str().unwrap());
        assert!(first.contains(':') && first != last, "{id}: keys read `{first}` and `{last}`");
        assert_eq!(chart["focus"], true, "{id} can be reached by keyboard");
    }
    assert_eq!(charts["latency"]["scales"], 2, "linear and logarithmic");

    let toggle = &reported["toggle"];
    assert_eq!((&toggle["before"], &toggle["after"], &toggle["again"]), (&true.into(), &false.into(), &true.into()));
    assert_eq!(toggle["pressed"], "false");
    let readout = toggle["readout"].as_str().unwrap();
    assert!(!readout.contains(toggle["name"].as_str().unwrap()), "a series that is put away is not read: {readout}");
    assert_eq!(reported["scale"]["before"], serde_json::json!(["row log"]));
    assert_eq!(reported["scale"]["after"], serde_json::json!(["row linear"]));

    let themes = reported["themes"].as_array().unwrap();
    assert_ne!(themes[0]["ground"], themes[1]["ground"], "light and dark differ: {themes:?}");
    for theme in themes {
        let least = |what: &str| theme["contrasts"][what].as_f64().unwrap();
        assert!(least("text") >= 4.5 && least("doubt") >= 4.5, "text is hard to read: {theme}");
        assert!(least("lines") >= 3.0, "lines are hard to see: {theme}");
    }
    assert_eq!(reported["unnamed"], serde_json::json!([]), "without a name for those who cannot see it");
    assert_eq!(reported["tables"], true, "a table that is wider than the page can be scrolled by keyboard");
    assert_eq!(reported["headings"], true, "headings leave out a level");
    place.done(&["report", "format-1-sweep", "--limit=p99=5ms", "-o", "sweep.html"]);
    assert_eq!(probed(browser, &place, "sweep.html")["overlaps"], serde_json::json!([]), "names lie on each other");
    let [width, reaches] = ["width", "reaches"].map(|what| reported["phone"][what].as_f64().unwrap());
    assert!(reaches <= width + 1.0, "wider than a telephone, more than rounding makes it: {}", reported["phone"]);
    assert_eq!(reported["phone"]["wide"], serde_json::json!([]));
}
