use super::*;
use crate::error::{ORACLE, OraNumber};

fn refused(number: u32) -> ServerError {
    ORACLE.refused("db1:1521/s", "look", OraNumber(number), "no")
}

/// What is found of a part where the views in `refused` answer with these errors.
fn found(part: Part, scope: Scope, errors: &[(&str, u32)]) -> (Option<String>, Option<String>) {
    let try_form = |form: &Form| match errors.iter().find(|(view, _)| *view == form.view) {
        Some((_, number)) => Err(refused(*number)),
        None => Ok(()),
    };
    let (form, note) = find(part, scope, "slob", try_form).unwrap();
    (form.map(|form| form.view), note)
}

#[test]
fn a_view_that_is_not_granted_is_unknown_and_its_grant_is_named() {
    for number in [942, 1031] {
        let (form, note) = found(Part::Events, Scope::Instance, &[("v$system_event", number)]);
        let note = note.unwrap();
        assert_eq!(form, None);
        assert!(note.contains("waits are not counted") && note.contains(&format!("ORA-{number:05}")), "{note}");
        assert!(note.contains("`GRANT SELECT ON SYS.V_$SYSTEM_EVENT TO slob`"), "{note}");
    }
    let (_, note) = found(Part::Statistics, Scope::Container, &[("v$con_sysstat", 942)]);
    assert!(note.unwrap().contains("GRANT SELECT ON SYS.V_$CON_SYSSTAT TO slob"));
    let (_, note) = found(Part::Ours, Scope::Instance, &[("v$session_event", 942)]);
    let note = note.unwrap();
    assert!(
        note.contains("GRANT SELECT ON SYS.V_$SESSION TO slob; GRANT SELECT ON SYS.V_$SESSION_EVENT TO slob"),
        "{note}"
    );
}

#[test]
fn what_is_granted_brings_no_note() {
    for scope in [Scope::Instance, Scope::Container] {
        for part in Part::ALL.into_iter().filter(|part| (*part, scope) != (Part::Functions, Scope::Container)) {
            let (form, note) = found(part, scope, &[]);
            assert!(form.is_some() && note.is_none(), "{part:?} {scope:?}: {note:?}");
        }
    }
}

#[test]
fn the_first_release_of_12_1_sorts_waits_into_milliseconds() {
    let (form, note) = found(Part::Histograms, Scope::Instance, &[("v$event_histogram_micro", 942)]);
    assert_eq!(form.as_deref(), Some("v$event_histogram"));
    let note = note.unwrap();
    assert!(note.contains("whole milliseconds") && note.contains("V_$EVENT_HISTOGRAM_MICRO"), "{note}");
    let both = [("v$event_histogram_micro", 942), ("v$event_histogram", 1031)];
    let (form, note) = found(Part::Histograms, Scope::Instance, &both);
    assert_eq!(form, None);
    assert!(note.unwrap().contains("V_$EVENT_HISTOGRAM_MICRO"), "the better one is asked for");
}

#[test]
fn a_missing_column_leaves_the_rest_of_its_view() {
    let tries = std::cell::Cell::new(0);
    let try_form = |form: &Form| {
        tries.set(tries.get() + 1);
        if form.sql.contains("_fg") { Err(refused(904)) } else { Ok(()) }
    };
    let (form, note) = find(Part::Events, Scope::Instance, "slob", try_form).unwrap();
    assert_eq!((tries.get(), form.unwrap().numbers), (2, 2));
    let note = note.unwrap();
    assert!(note.contains("lacks a column") && !note.contains("GRANT"), "{note}");
}

#[test]
fn what_is_no_refusal_of_a_view_ends_the_search() {
    let lost = |_: &Form| Err(ORACLE.lost("db1", "gone"));
    assert!(find(Part::Events, Scope::Instance, "slob", lost).is_err());
    assert!(find(Part::Events, Scope::Instance, "slob", |_| Err(refused(4031))).is_err());
}

#[test]
fn a_pluggable_database_is_asked_for_its_own_counters_alone() {
    let counted = [Part::Statistics, Part::Times, Part::Events, Part::Histograms];
    for form in counted.iter().flat_map(|part| part.forms(Scope::Container, Reach::One)) {
        assert!(form.view.starts_with("v$con_"), "{form:?}");
        assert!(
            form.sql.contains(&form.view) && form.sql.contains("con_id = :1") && form.bound == [Bound::Container],
            "{form:?}"
        );
    }
    let (form, note) = found(Part::Functions, Scope::Container, &[]);
    assert_eq!(form, None);
    assert!(note.unwrap().contains("pluggable"));
    for form in Part::ALL.iter().flat_map(|part| part.forms(Scope::Instance, Reach::One)) {
        assert!(!form.sql.contains("con_"), "{form:?}");
    }
}

#[test]
fn only_questions_about_the_loads_sessions_name_it() {
    let named = Part::ALL.into_iter().filter(|part| part.forms(Scope::Instance, Reach::One)[0].sql.contains(":1"));
    assert_eq!(named.collect::<Vec<_>>(), [Part::Ours, Part::Doing]);
}

#[test]
fn a_cluster_is_asked_for_the_same_of_each_instance() {
    for scope in [Scope::Instance, Scope::Container] {
        for part in Part::ALL {
            let (one, all) = (part.forms(scope, Reach::One), part.forms(scope, Reach::All));
            assert_eq!(one.len(), all.len());
            for (one, all) in one.iter().zip(&all) {
                assert_eq!(
                    (format!("g{}", one.view), one.numbers, one.texts),
                    (all.view.clone(), all.numbers, all.texts)
                );
                assert!(!all.sql.replace("gv$", "").contains("v$"), "{}", all.sql);
                // What a session says of itself is not known to the processes of other instances that read these.
                assert!(!all.sql.contains("SYS_CONTEXT") && !all.sql.contains("USER "), "{}", all.sql);
                let selects = all.sql.matches("SELECT ").count();
                assert_eq!(all.sql.matches("SELECT inst_id, ").count(), selects, "{}", all.sql);
                let groups = all.sql.matches("GROUP BY ").count();
                assert_eq!(all.sql.matches("GROUP BY inst_id").count(), groups, "{}", all.sql);
            }
        }
    }
}

#[test]
fn every_view_that_is_read_can_be_granted() {
    use crate::sql::{Need, grants};
    for (scope, reach) in [
        (Scope::Instance, Reach::One),
        (Scope::Container, Reach::One),
        (Scope::Instance, Reach::All),
        (Scope::Container, Reach::All),
    ] {
        let needs: &[Need] = match (scope, reach) {
            (Scope::Instance, Reach::One) => &[Need::Figures],
            (Scope::Container, Reach::One) => &[Need::Figures, Need::Container],
            (Scope::Instance, Reach::All) => &[Need::Cluster],
            (Scope::Container, Reach::All) => &[Need::Cluster, Need::ClusterContainer],
        };
        let granted: Vec<String> = grants("u", "t")
            .into_iter()
            .filter(|grant| needs.contains(&grant.need))
            .map(|grant| grant.statement)
            .collect();
        for part in Part::ALL {
            let Some(form) = part.forms(scope, reach).into_iter().next() else { continue };
            let wanted = grant(&form.view, "\"u\"");
            assert!(granted.contains(&wanted), "{wanted} is not among {granted:?}");
        }
    }
}
