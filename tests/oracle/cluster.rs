//! One address of a cluster: each of its instances is counted by itself, once, as long as it is there.

use serde_json::Value as Json;

use crate::model::Instance;
use crate::responder::{Answer, Column, Generation};
use crate::whole::{Site, intervals, longer};

/// Two instances, the second of which does twice as much, seen by a user who has the rights.
fn cluster(instances: [Instance; 2]) -> Site {
    let site = Site::new(Generation::V19);
    site.set_up();
    site.model.with(|database| {
        database.is_cluster = true;
        database.cluster = instances.into();
    });
    site
}

fn run(site: &Site, seconds: &str) -> Json {
    let words = ["slob", "run", &format!("RUN_TIME={seconds}"), "--warmup", "0", "--json"];
    site.done(&words).json()["run"].clone()
}

/// A run in which the servers answered in time, so that it has counts of each: on a busy machine that takes longer.
fn counted(site: &Site) -> Json {
    longer(["2", "8", "32"], |seconds| run(site, seconds), |run| !each(&run["steps"][0], "").is_empty())
}

fn notes(run: &Json) -> Vec<String> {
    run["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect()
}

fn has_note(run: &Json, parts: &[&str]) -> bool {
    notes(run).iter().any(|note| parts.iter().all(|part| note.contains(part)))
}

/// What each server of a step or an interval counted of something.
fn each(at: &Json, pointer: &str) -> Vec<(String, u64)> {
    let of = |server: &Json| {
        (server["node"].as_str().unwrap().to_owned(), server.pointer(pointer).and_then(Json::as_u64).unwrap_or(0))
    };
    at["servers"].as_array().map(|servers| servers.iter().map(of).collect()).unwrap_or_default()
}

/// The run's seconds.
fn seconds(site: &Site, run: &Json) -> Vec<Json> {
    intervals(&site.place.path("plimsoll-runs").join(run["id"].as_str().unwrap()))
}

#[test]
fn each_instance_is_counted_once_with_its_own_waits_and_seconds() {
    const SAMPLES: &str = "/session_samples/User I~1O:db file sequential read";
    let attempt = |seconds: &str| {
        let site = cluster([Instance::steady(1, "ONE1"), Instance::steady(2, "ONE2")]);
        let run = run(&site, seconds);
        (site, run)
    };
    let (site, run) = longer(["3", "12", "48"], attempt, |(site, run)| {
        let is_known = |pointer| {
            let of_each = each(&run["steps"][0], pointer);
            of_each.len() == 2 && of_each.iter().all(|(_, counted)| *counted > 0)
        };
        let is_second_of_both = |second: &Json| each(second, "/own/user commits").len() == 2;
        ["/activity/single_block_reads", SAMPLES].into_iter().all(is_known)
            && seconds(site, run).iter().any(is_second_of_both)
    });
    let step = &run["steps"][0];
    for pointer in ["/counters/logical_reads", "/own/physical reads direct", "/own/DB time_ns"] {
        let counted = each(step, pointer);
        let [(one, first), (two, second)] = counted.as_slice() else { panic!("{pointer}: {counted:?}") };
        assert_eq!((one.as_str(), two.as_str()), ("ONE1", "ONE2"));
        assert!(*first > 0 && *second == 2 * first, "{pointer}: {counted:?}");
    }
    let reads = each(step, "/counters/logical_reads");
    assert_eq!(step["counters"]["logical_reads"].as_u64().unwrap(), reads[0].1 + reads[1].1);
    // Ours too, and what sessions were seen doing on each.
    let singles = each(step, "/activity/single_block_reads");
    assert!(singles[0].1 > 0 && singles[1].1 == 2 * singles[0].1, "{singles:?}");
    assert!(each(step, "/sampled_times").iter().all(|(_, looks)| *looks > 0));
    let seen = each(step, SAMPLES);
    assert!(seen.iter().all(|(_, sessions)| *sessions > 0), "{seen:?}");
    // Waits are told of each, with buckets, and of all together.
    let waits = |at: &Json| {
        let wait =
            at["waits"].as_array().unwrap().iter().find(|wait| wait["event"] == "db file sequential read").unwrap();
        wait["waits"]["count"].as_u64().unwrap()
    };
    let of_each: Vec<u64> = step["servers"].as_array().unwrap().iter().map(waits).collect();
    assert!(of_each[1] == 2 * of_each[0] && waits(step) == of_each[0] + of_each[1], "{of_each:?}");
    let seconds: Vec<_> = seconds(&site, &run).iter().map(|at| each(at, "/own/user commits")).collect();
    assert!(seconds.iter().any(|second| second.len() == 2 && second[1].1 == 2 * second[0].1), "{seconds:?}");
    // All sessions landed on one, which the other's absence shows.
    assert!(has_note(&run, &["sessions landed on instances, over all steps: ONE1 2, ONE2 0"]), "{:?}", notes(&run));
    assert!(has_note(&run, &["unequal shares"]), "{:?}", notes(&run));
    assert!(!has_note(&run, &["alone, which is one of a cluster"]), "{:?}", notes(&run));
    // Figures are asked for in one statement for both.
    let counted =
        |sql: &str| site.responder.calls().iter().filter(|call| call.is_executed() && call.sql.contains(sql)).count();
    assert!(counted("FROM gv$con_sysstat") > 2 && counted("FROM v$con_sysstat") == 1);
    let id = run["id"].as_str().unwrap();
    // So does whoever reads: the columns of SLOB's, the report and its page.
    let table = site.place.run(&["table", id, "--style", "awr", "--format", "csv"]).stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let at = rows[0].iter().position(|column| *column == "LIO").unwrap();
    let of = |name: &str| -> f64 {
        let row = rows.iter().find(|row| row[0].ends_with(name)).unwrap_or_else(|| panic!("{table}"));
        row[at].parse().unwrap()
    };
    assert_eq!(rows.len(), 4, "{table}");
    assert!((of("/ONE2") / of("/ONE1") - 2.0).abs() < 0.01, "{table}");
    assert!((of("/s2_t1") / of("/ONE1") - 3.0).abs() < 0.01, "{table}");
    let full = site.place.run(&["report", id, "--full"]).stdout;
    for title in ["Nodes", "Wait events of each instance", "Reads that the load's sessions waited for"] {
        let part = full.split(&format!("\n{title}")).nth(1).unwrap_or_else(|| panic!("{title}\n{full}"));
        let part = part.split("\n\n").next().unwrap();
        assert!(title.starts_with("Reads") || part.contains("ONE1") && part.contains("ONE2"), "{part}");
    }
    site.place.run(&["report", id, "-o", "cluster.html"]);
    let page = std::fs::read_to_string(site.place.path("cluster.html")).unwrap();
    assert!(page.contains("Transactions of each node") && page.contains("ONE2"));
}

#[test]
fn an_instance_that_goes_in_the_middle_is_told_and_nothing_passes_for_the_whole() {
    let two = Instance { is_there: |at| at < 6, ..Instance::steady(2, "ONE2") };
    let site = cluster([Instance::steady(1, "ONE1"), two]);
    let run = run(&site, "8");
    assert!(has_note(&run, &["`ONE2` is not there any more"]), "{:?}", notes(&run));
    let step = &run["steps"][0];
    let reads = each(step, "/counters/logical_reads");
    assert_eq!(reads.len(), 2, "what it counted before is kept: {reads:?}");
    assert_eq!(
        step["counters"]["logical_reads"],
        Json::Null,
        "a sum of other times would pass for the whole: {reads:?}"
    );
    assert!(step["counters"]["operations"].as_u64().unwrap() > 0);
    let seconds = seconds(&site, &run);
    let (alone, both): (Vec<&Json>, Vec<&Json>) = seconds.iter().partition(|second| each(second, "/own").len() < 2);
    let is_known = |second: &&Json| second["counters"].get("logical_reads").is_some_and(Json::is_u64);
    assert!(!alone.is_empty() && !alone.iter().any(is_known) && both.iter().any(is_known), "{seconds:?}");
    let shown = site.place.run(&["report", run["id"].as_str().unwrap(), "--full"]).stdout;
    assert!(shown.contains("`ONE2` did not report its counters"), "{shown}");
}

#[test]
fn an_instance_that_was_started_again_begins_anew() {
    let two = Instance {
        is_there: |at| !(5..7).contains(&at),
        started: |at| if at < 7 { "2026-11-01 08:00:00" } else { "2026-11-23 10:00:00" },
        ..Instance::steady(2, "ONE2")
    };
    let site = cluster([Instance::steady(1, "ONE1"), two]);
    let run = run(&site, "7");
    for says in ["`ONE2` is not there any more", "`ONE2` was started again"] {
        assert!(has_note(&run, &[says]), "{:?}", notes(&run));
    }
    // Its first reading after the start is no difference: a count of a whole life would be more than twice that of the other. A reading
    // that comes late is counted with the next one.
    let seconds = seconds(&site, &run);
    let of_two = seconds.iter().flat_map(|second| each(second, "/own/user commits")).filter(|(name, _)| name == "ONE2");
    let of_two: Vec<u64> = of_two.map(|(_, commits)| commits).collect();
    assert!(!of_two.is_empty() && of_two.iter().all(|commits| commits % 20 == 0 && *commits <= 80), "{of_two:?}");
}

#[test]
fn without_the_rights_one_instance_is_told_of_and_the_grants_named() {
    let site = cluster([Instance::steady(1, "ONE1"), Instance::steady(2, "ONE2")]);
    site.model.with(|database| {
        for view in ["gv$con_sysstat", "gv$session_event"] {
            database.refused.push((view.to_owned(), 942, "table or view does not exist".to_owned()));
        }
    });
    let run = counted(&site);
    let grants = [
        "figures of the instance ONE1 alone",
        "SYS.GV_$CON_SYSSTAT TO \"SLOB\"",
        "SYS.GV_$SESSION TO \"SLOB\"",
        "GV_$SESSION_EVENT",
        "--per-node",
    ];
    assert!(has_note(&run, &grants), "{:?}", notes(&run));
    let nodes = each(&run["steps"][0], "/own/user commits");
    let [(node, _)] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert!(node.contains("127.0.0.1"), "{node}");
    for (refused, grant) in
        [(" FROM gv$instance", "GV_$INSTANCE TO \"SLOB\""), (" FROM gv$session WHERE", "GV_$SESSION TO \"SLOB\"")]
    {
        site.model.with(|database| {
            database.refused = vec![(refused.to_owned(), 1031, "insufficient privileges".to_owned())];
        });
        let run = self::run(&site, "2");
        assert!(has_note(&run, &["figures of the instance ONE1 alone", grant]), "{:?}", notes(&run));
    }
    // Who may not see that it is one of a cluster sees it by the number of instances.
    site.model.with(|database| {
        database.refused =
            vec![("parallel FROM v$instance".to_owned(), 942, "table or view does not exist".to_owned())];
    });
    let nodes = each(&counted(&site)["steps"][0], "/own/user commits");
    assert_eq!(nodes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["ONE1", "ONE2"]);
    // A listing of all instances that no process can be had for is no reason to end.
    site.model.with(|database| {
        database.refused = vec![("gv$con_sysstat".to_owned(), 12_850, "Could not allocate slaves".to_owned())];
    });
    let run = self::run(&site, "2");
    assert!(has_note(&run, &["figures of the instance ONE1 alone", "ORA-12850"]), "{:?}", notes(&run));
}

#[test]
fn set_up_asks_for_rights_to_a_cluster_where_there_is_one() {
    let site = Site::new(Generation::V19);
    let dry = ["slob", "setup", "-s", "2", "SCALE=300", "--dry-run"];
    let shown = site.done(&dry).stdout;
    assert!(shown.contains("SYS.V_$CON_SYSSTAT") && !shown.contains("GV_$"), "{shown}");
    site.model.with(|database| database.is_cluster = true);
    let shown = site.done(&dry).stdout;
    for view in ["GV_$INSTANCE", "GV_$CON_SYSSTAT", "GV_$SESSION_EVENT"] {
        assert!(shown.contains(&format!("GRANT SELECT ON SYS.{view} TO \"SLOB\" /* ")), "{view}\n{shown}");
    }
}

#[test]
fn scans_are_told_apart_by_whether_they_went_past_the_cache() {
    let site = Site::new(Generation::V23);
    site.set_up();
    // Reads that the sessions have waited for, more at each look.
    let waited = |event: &str| {
        let columns = [Column::number("I"), Column::text("EVENT"), Column::number("WAITS")];
        let row = |name: &str, waits: i64| [1_i64.into(), name.into(), waits.into()];
        let at =
            |look: i64| vec![row("sessions", 2), row("db file sequential read", 900 * look), row(event, 100 * look)];
        (0..400).map(|look| Answer::rows(columns.clone(), at(look))).collect()
    };
    let said = |event: &str| {
        let attempt = |length: &str| {
            site.model.with(|database| {
                database.cluster = vec![Instance::steady(1, "ONE1")];
                database.answered = vec![("gv$session_event".to_owned(), waited(event))];
            });
            let run =
                site.done(&["slob", "run", length, "SCAN_PCT=10", "--warmup", "0", "--json"]).json()["run"].clone();
            let full = site.place.run(&["report", run["id"].as_str().unwrap(), "--full"]).stdout;
            (run["steps"][0]["servers"][0]["activity"].clone(), full)
        };
        let is_known = |activity: &Json| {
            ["reads_past_cache", "multi_block_reads"].iter().any(|name| activity[*name].as_u64() > Some(0))
        };
        longer(["RUN_TIME=3", "RUN_TIME=12", "RUN_TIME=48"], attempt, |(activity, _)| is_known(activity))
    };
    let (activity, full) = said("direct path read");
    assert!(activity["reads_past_cache"].as_u64().unwrap() > 0, "{activity}");
    assert_eq!(activity["multi_block_reads"], 0);
    assert!(full.contains("past the cache"), "{full}");
    assert!(!full.contains("through the buffer cache") && !full.contains("several blocks at once"), "{full}");
    let (activity, full) = said("db file scattered read");
    assert_eq!(activity["reads_past_cache"], 0);
    assert!(activity["multi_block_reads"].as_u64().unwrap() > 0, "{activity}");
    assert!(full.contains("went through the buffer cache") && full.contains("_small_table_threshold"), "{full}");
    assert!(!full.contains("several blocks at once"), "scans were asked for: {full}");
}
