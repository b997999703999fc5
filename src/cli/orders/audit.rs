//! What an audit found, after a run and in `plimsoll orders verify`.

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::cli::recording::Recording;
use model::units::{Nanos, group_thousands};
use targets::database::Sheet;
use targets::orders::{Acknowledgements, Audit, Auditor};

/// Where a run keeps what servers acknowledged.
pub(super) const ACKNOWLEDGED_FILE: &str = "acknowledged.txt";

/// An audit as rows and as a document.
pub(super) fn sheet(audit: &Audit, acknowledged: &Acknowledgements) -> Sheet {
    let Audit { rules, elapsed_ns } = audit;
    let orders = acknowledged.orders.len();
    let processed = acknowledged.processed.len();
    let document: Value = json!({
        "sound": audit.is_sound(),
        "elapsed_ns": elapsed_ns,
        "acknowledged": { "orders": orders, "processed": processed },
        "rules": rules,
    });
    let mut sheet = Sheet::of(document);
    if !acknowledged.is_empty() {
        let counts = [orders, processed].map(|count| group_thousands(count as f64));
        sheet.add("acknowledged", format!("{} orders made, {} processed", counts[0], counts[1]));
    }
    for rule in rules {
        if rule.violations == 0 {
            sheet.add("holds", rule.rule.clone());
            continue;
        }
        sheet.add("broken", format!("{}: not so {} times", rule.rule, group_thousands(rule.violations as f64)));
        rule.rows.iter().for_each(|row| sheet.add("", row.clone()));
        let unshown = rule.violations.saturating_sub(rule.rows.len() as u64);
        if unshown > 0 {
            sheet.add("", format!("and {} more", group_thousands(unshown as f64)));
        }
    }
    let verdict = if audit.is_sound() { "sound" } else { "not sound" };
    sheet.add(verdict, format!("{} rules in {}", rules.len(), Nanos(*elapsed_ns)));
    sheet
}

/// Audits what a load has left, and writes down with the run what it found. Returns whether no rule was found broken.
pub(super) fn after_load(auditor: &dyn Auditor, recording: &mut Recording, is_asked: bool, stop: &AtomicBool) -> bool {
    let acknowledged = auditor.take_acknowledged();
    if !acknowledged.is_empty() {
        recording.keep(ACKNOWLEDGED_FILE, &acknowledged.to_text());
    }
    if !is_asked {
        return true;
    }
    let later = "`plimsoll orders verify --run RUN` audits what it left";
    if recording.has_failed() {
        recording.note(format!("the data were not audited, since an error ended the load; {later}"));
        return true;
    }
    match auditor.audit(&acknowledged, stop) {
        Err(error) => {
            recording.note(format!("the data were not audited: {error}; {later}"));
            true
        }
        Ok(audit) => {
            let loses = recording.run().target.facts.server.loses_commits();
            words(&audit, &acknowledged, &loses).into_iter().for_each(|note| recording.note(note));
            audit.is_sound()
        }
    }
}

/// What a run without a crash shows of acknowledged orders is that they were not lost without one.
fn words(audit: &Audit, acknowledged: &Acknowledgements, loses: &[String]) -> Vec<String> {
    let (rules, took) = (audit.rules.len(), Nanos(audit.elapsed_ns));
    if audit.is_sound() {
        let made = group_thousands(acknowledged.orders.len() as f64);
        let crash = match loses {
            [] => "nothing crashed in between".to_owned(),
            loses => format!("nothing crashed in between, and a crash may lose them: {}", loses.join(", ")),
        };
        return vec![format!(
            "audit: all {rules} rules hold, and all {made} orders that were acknowledged are there after the run ({took}); {crash}"
        )];
    }
    let broken = audit.rules.iter().filter(|rule| rule.violations > 0);
    broken
        .map(|rule| {
            let rows = rule.rows.join("; ");
            format!("audit: broken {} times: {} ({rows})", group_thousands(rule.violations as f64), rule.rule)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use targets::orders::Audited;

    fn audit(violations: u64) -> Audit {
        let rule = Audited {
            rule: "no stock is below zero".to_owned(),
            violations,
            rows: (0..violations.min(2)).map(|row| format!("{row}, 7, -1")).collect(),
        };
        Audit { rules: vec![rule], elapsed_ns: 1_500_000_000 }
    }

    #[test]
    fn what_is_broken_is_shown_with_its_rows() {
        let acknowledged = Acknowledgements { orders: vec![1, 2], processed: Vec::new() };
        let rows = sheet(&audit(3), &acknowledged).rows;
        let text: Vec<String> = rows.iter().map(|(label, text)| format!("{label}: {text}")).collect();
        assert_eq!(
            text,
            [
                "acknowledged: 2 orders made, 0 processed",
                "broken: no stock is below zero: not so 3 times",
                ": 0, 7, -1",
                ": 1, 7, -1",
                ": and 1 more",
                "not sound: 1 rules in 1.50 s",
            ]
        );
        assert_eq!(words(&audit(1), &acknowledged, &[]), ["audit: broken 1 times: no stock is below zero (0, 7, -1)"]);
        assert_eq!(
            words(&audit(0), &acknowledged, &[]),
            [
                "audit: all 1 rules hold, and all 2 orders that were acknowledged are there after the run (1.50 s); nothing crashed in between"
            ]
        );
        let unsafe_words = words(&audit(0), &acknowledged, &["fsync=off".to_owned()]);
        assert!(unsafe_words[0].ends_with("and a crash may lose them: fsync=off"), "{unsafe_words:?}");
        assert_eq!(sheet(&audit(0), &acknowledged).document["sound"], true);
    }
}
