//! The first screen: what each line says, and that advice goes with the answer.

use super::*;
use crate::{LatencyTarget, Message, UsedBy, analyse_asked};
use model::record::sample::{self, requests, servers};

fn samples() -> Vec<(&'static str, Run)> {
    let mut one = requests::sweep();
    one.steps.truncate(2);
    one.steps.remove(0);
    vec![
        ("a sweep of the engine", sample::sweep(60)),
        ("updates on the engine", sample::updates(30)),
        ("a sweep that was ended early", sample::interrupted()),
        ("an import", sample::imported()),
        ("a sweep of raw storage", requests::sweep()),
        ("one load of raw storage", one),
        ("rates on raw storage", requests::open_loop()),
        ("reads and writes on raw storage", requests::mixed()),
        ("a private cluster", servers::private_cluster()),
        ("a remote server", servers::remote()),
        ("two nodes", servers::two_nodes()),
        ("tables that changed their shape", servers::changed_shape()),
    ]
}

fn lines(screen: &FirstScreen) -> String {
    let named = [
        ("limited", &screen.limited_by),
        ("expected", &screen.expected),
        ("plan for", &screen.plan_for),
        ("waits", &screen.waits),
        ("next", &screen.next),
    ];
    let named = named.into_iter().filter_map(|(name, text)| Some(format!("  {name}: {}\n", text.as_ref()?)));
    let limits = screen.limits.iter().map(|line| {
        let LimitLine { what, limit, measured, answer, because } = line;
        format!("  {}: {what} {measured:?} of {limit} {because:?}\n", answer.in_a_list())
    });
    let tiles = screen.tiles.iter().map(|Tile { name, value, note }| format!("  [{name}] {value} | {note}\n"));
    let also = screen.also.iter().map(|text| format!("  also: {text}\n"));
    let warnings = screen.warnings.iter().map(|text| format!("  warning: {text}\n"));
    let rest: String = warnings.chain(named).chain(also).chain(limits).chain(tiles).collect();
    format!("{}\n{rest}", screen.headline())
}

#[test]
fn first_screens_of_every_sample() {
    let mut text = String::new();
    for (name, run) in samples() {
        for limit in [None, Some("p99=5ms"), Some("p99=10us")] {
            let target: Option<LatencyTarget> = limit.map(|text| text.parse().unwrap());
            let findings = analyse_asked(&run, target.as_ref());
            text +=
                &format!("== {name}, {}: {}", limit.unwrap_or("no limit"), lines(&FirstScreen::of(&run, &findings)));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_simulated_run_says_so_in_its_headline() {
    let mut run = requests::sweep();
    assert!(!FirstScreen::of(&run, &analyse_asked(&run, None)).is_simulated);
    run.target.kind = Some(model::record::TargetKind::Simulated);
    let screen = FirstScreen::of(&run, &analyse_asked(&run, None));
    assert!(screen.is_simulated && screen.headline().starts_with("Simulated: "), "{}", screen.headline());
}

/// Words that ask for more load.
const MORE_LOAD: [&str; 5] = ["Raise the load", "more sessions", "larger --depth", "more users", "higher rate"];

/// Every answer that says what stopped the load, beside every finding of every sample: none advises more load.
#[test]
fn advice_never_asks_for_more_of_what_was_stopped() {
    let analysed: Vec<(Run, Vec<Finding>)> = samples()
        .into_iter()
        .flat_map(|(_, run)| {
            let whole = (run.clone(), analyse_asked(&run, None));
            let target: LatencyTarget = "p99=1m".parse().unwrap();
            let judged = (run.clone(), analyse_asked(&run, Some(&target)));
            [whole, judged]
        })
        .collect();
    let ceiling = analysed.iter().flat_map(|(_, findings)| findings).find_map(|finding| match finding {
        Finding::Ceiling(found) if found.is_cap() => Some(found.clone()),
        _ => None,
    });
    let stops = crate::Stops::Processors { busy: 0.99, by: UsedBy::Server, others: None, stolen: None };
    let stopped_by = [
        StoppedBy::Ceiling(ceiling.expect("a sample has a cap")),
        StoppedBy::LoadGenerator,
        StoppedBy::SentLate(Nanos::millis(3)),
        StoppedBy::Crowded(crate::Crowd::Hypervisor),
        StoppedBy::Sessions(stops, crate::Vocabulary::Sessions),
        StoppedBy::Latency { what: None, value: None, load: None },
        StoppedBy::Queue,
        StoppedBy::Errors,
        StoppedBy::Missed("6.4 % of requests failed with 4 outstanding".to_owned()),
        StoppedBy::Hung(Nanos::seconds(3)),
        StoppedBy::Unsteady,
        StoppedBy::OneHost,
    ];
    let asks = |words: &str| MORE_LOAD.iter().any(|more| words.contains(more));
    let (mut pairs, mut asked_without) = (0, 0);
    for (run, findings) in &analysed {
        let opening = Opening::of(run, findings);
        for by in &stopped_by {
            let stopped = Opening { stopped_by: Some(by.clone()), ..opening.clone() };
            for (_, others) in &analysed {
                for finding in others {
                    pairs += 1;
                    asked_without += usize::from(finding.advice().is_some_and(|words| asks(&words)));
                    let advice = stopped.advice(finding).unwrap_or_default();
                    assert!(!asks(&advice), "{by:?}: {}: {advice}", finding.sentence());
                }
                let next = FirstScreen::with(&stopped, run, others).next.unwrap_or_default();
                assert!(!asks(&next), "{by:?}: {next}");
            }
        }
    }
    assert!(pairs > 1_000 && asked_without > 0, "{pairs} pairs, {asked_without} of them would contradict");
    let free = requests::sweep();
    let more = analysed.iter().flat_map(|(_, findings)| findings).find(|it| it.advice().is_some_and(|it| asks(&it)));
    let open = Opening { stopped_by: None, verdict: None, ..Opening::of(&free, &[]) };
    assert_eq!(open.advice(more.unwrap()), more.unwrap().advice(), "where nothing stopped it, more load is advice");
}

#[test]
fn what_may_be_invalid_says_so_before_the_number_and_plans_nothing() {
    let mut run = sample::sweep(60);
    run.outcome = model::record::Outcome::Interrupted;
    let screen = FirstScreen::of(&run, &analyse_asked(&run, None));
    assert!(screen.result.starts_with("not reliable (the run was ended early): "), "{}", screen.result);
    assert!(screen.is_doubtful && screen.plan_for.is_none() && !screen.warnings.is_empty());
    let advice = analyse_asked(&run, None).iter().find_map(Message::advice);
    assert_eq!(screen.next, advice);
}
