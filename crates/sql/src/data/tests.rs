//! What set-up, verification and removal do on a server of any kind, with a real one of each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::catalog::{self, Keeps, LOAD_TABLE, load};
use super::found::{Existing, Loaded};
use super::pieces::PIECE_BYTES;
use super::plan::{plan, run};
use super::streams::Halt;
use super::*;
use super::{Access, DataSet, Found, TableId, TableKind, drop, verify};
use crate::database::Dialect;
use crate::mysql::Connector as Mysql;
use crate::postgres::Connector as Postgres;
use targets::TargetError;
use targets::database::{Filling, Phase, Progress, Replace, SetupRequest};

/// What distinguishes kinds of servers in these tests.
pub(crate) trait Tested: Dialect {
    /// Phases of a set-up.
    const PHASES: &'static [Phase];
    /// Names that statements could take for something else.
    const HOSTILE: [&'static str; 3];
    /// Statements that make something in a namespace which has a name of ours, and that name.
    const CLASHES: &'static [(&'static str, &'static str)];

    /// Connects to a server as somebody who may do everything; the name is that of nobody else. `None` where there is no server.
    fn place(name: &str) -> Option<Self>;

    /// Connects to the server of such a place as a new user, who may work on rows of the namespace and call its procedures, and make
    /// nothing there.
    fn as_clerk(place: &str, namespace: &str) -> Self;

    /// Executes statements in the namespace.
    fn inside(access: &Access<'_, Self>, statements: &[&str]);

    /// Ends all sessions of this test.
    fn kill_sessions(&self);
}

/// A small request: two schemas with scan tables.
pub(crate) fn request<D: Dialect>() -> SetupRequest {
    SetupRequest {
        schemas: 2,
        scale_blocks: 300,
        scan_blocks: 20,
        block_bytes: D::DEFAULT_BLOCK_BYTES as u32,
        filling: Filling::Incompressible,
        streams: 2,
        seed: 42,
        is_seed_asked: true,
        replace: Replace::Refuse,
    }
}

/// Bytes of its blocks.
fn bytes<D: Dialect>(blocks: u64) -> u64 {
    blocks * D::DEFAULT_BLOCK_BYTES
}

/// Tables of several pieces each.
fn large<D: Dialect>() -> SetupRequest {
    SetupRequest { scale_blocks: 4 * PIECE_BYTES / D::DEFAULT_BLOCK_BYTES, scan_blocks: 0, ..request::<D>() }
}

pub(crate) fn set_up<D: Dialect>(access: &Access<'_, D>, request: &SetupRequest) -> Result<Loaded, TargetError> {
    Ok(run(plan(access, request)?, &|_, _| {}, &AtomicBool::new(false))?.0)
}

fn find<D: Dialect>(access: &Access<'_, D>) -> Result<Option<Found>, TargetError> {
    catalog::find(access)
}

fn drop_all<D: Dialect>(access: &Access<'_, D>) -> Result<bool, TargetError> {
    drop::run(drop::plan::<D, DataSet>(access)?, &AtomicBool::new(false))
}

pub(crate) fn assert_sound<D: Dialect>(access: &Access<'_, D>) {
    let report = verify(access, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let data = load(access).unwrap();
    D::prove(access, &data, data.schemas).unwrap();
}

/// The message and the hint of a refusal.
pub(crate) fn refusal<T>(result: Result<T, TargetError>) -> (String, String) {
    let Err(error) = result else { panic!("it was not refused") };
    (error.to_string(), error.hint().unwrap_or_default())
}

/// Interrupts a set-up when `when` says so, and gives the bytes that are loaded then.
pub(crate) fn interrupt<D: Dialect>(
    access: &Access<'_, D>,
    request: &SetupRequest,
    when: impl Fn(Phase, Progress) -> bool,
) -> u64 {
    let stop = AtomicBool::new(false);
    let notify = |phase, now| {
        if when(phase, now) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let outcome = run(plan(access, request).unwrap(), &notify, &stop);
    assert!(matches!(outcome, Err(TargetError::Interrupted)), "{outcome:?}");
    match plan(access, request).unwrap().existing {
        Existing::Unfinished { loaded_bytes } => loaded_bytes,
        other => panic!("{other:?}"),
    }
}

fn is_made_and_goes<D: Tested>() {
    let Some(connector) = D::place("data_made") else { return };
    let access = Access::new(&connector, "data_made");
    assert!(refusal(load(&access)).0.contains(&format!("no SLOB data in the {} `data_made`", D::HOLDER)));
    let planned = plan(&access, &request::<D>()).unwrap();
    assert_eq!((planned.existing, planned.data.tables().count()), (Existing::Nothing, 4));
    assert_eq!((planned.makes_data(), planned.missing_bytes()), (true, bytes::<D>(640)));
    assert!(find(&access).unwrap().is_none(), "planning writes nothing");
    let seen = Mutex::new(Vec::new());
    let notify = |phase, now| seen.lock().unwrap().push((phase, now));
    let (report, _) = run(planned, &notify, &AtomicBool::new(false)).unwrap();
    assert_eq!((report.bytes_written, report.bytes_found, report.created), (bytes::<D>(640), 0, true));
    // A server that adds several blocks at a time may leave empty ones, which are removed.
    let is_always = |phase: &Phase| *phase != Phase::Compact;
    let phases: Vec<Phase> = report.phases.iter().map(|(phase, _)| *phase).filter(is_always).collect();
    assert_eq!(phases, D::PHASES);
    let seen = seen.into_inner().unwrap();
    for phase in [Phase::Load, Phase::Index] {
        let last = seen.iter().rev().find(|(reported, _)| *reported == phase).unwrap().1;
        assert!(last.done_bytes == last.total_bytes && last.total_bytes > 0, "{phase}: {last:?}");
    }
    assert_sound(&access);
    assert!(!<D as Keeps<DataSet>>::objects(&mut D::open(access).unwrap()).unwrap().contains_key(LOAD_TABLE));
    let again = plan(&access, &request::<D>()).unwrap();
    assert_eq!((again.existing, again.makes_data(), again.missing_bytes()), (Existing::SameData, false, 0));
    assert!(!run(again, &|_, _| {}, &AtomicBool::new(false)).unwrap().0.created, "what is there is left alone");
    let plan = drop::plan::<D, DataSet>(&access).unwrap();
    // Tables, scan tables, procedures and the descriptor.
    assert_eq!(plan.objects.len(), 2 + 2 + 2 + 1);
    assert!(plan.bytes > bytes::<D>(640) && find(&access).unwrap().is_some(), "planning changes nothing");
    assert!(drop_all(&access).unwrap(), "what holds the data goes too");
    assert!(refusal(drop::plan::<D, DataSet>(&access)).0.contains("no SLOB data"));
}

#[test]
fn data_are_made_as_planned_and_go_without_a_trace() {
    is_made_and_goes::<Postgres>();
    is_made_and_goes::<Mysql>();
}

fn refuses_other_data<D: Tested>() {
    let Some(connector) = D::place("data_other") else { return };
    let access = Access::new(&connector, "data_other");
    set_up(&access, &request::<D>()).unwrap();
    let other = SetupRequest { schemas: 1, seed: 1, scan_blocks: 0, ..request::<D>() };
    let (what, hint) = refusal(plan(&access, &other));
    let differences = "the number of schemas is 2 there and 1 here; the number of blocks of a scan table is 20 there and 0 here; \
                       the seed is 42 there and 1 here";
    assert!(what.ends_with(differences) && hint.contains("--replace"), "{what}; {hint}");
    D::inside(&access, &["DROP TABLE slob_2"]);
    let (what, hint) = refusal(plan(&access, &request::<D>()));
    assert!(what.contains("`slob_2` is missing") && hint.contains("--replace"), "{what}; {hint}");
    let other = SetupRequest { replace: Replace::Replace, ..other };
    assert_eq!(plan(&access, &other).unwrap().existing, Existing::OtherData);
    assert_eq!(set_up(&access, &other).unwrap().phases[0].0, Phase::Remove);
    assert_sound(&access);
    let there = <D as Keeps<DataSet>>::objects(&mut D::open(access).unwrap()).unwrap();
    assert!(there.contains_key("slob_1") && !there.contains_key("scan_1"), "{there:?}");
}

#[test]
fn other_data_are_refused_with_every_difference_and_replaced_when_asked() {
    refuses_other_data::<Postgres>();
    refuses_other_data::<Mysql>();
}

fn goes_on<D: Tested>() {
    let Some(connector) = D::place("data_resumed") else { return };
    let access = Access::new(&connector, "data_resumed");
    let (request, all) = (large::<D>(), 8 * PIECE_BYTES);
    let loaded = interrupt(&access, &request, |phase, now| phase == Phase::Load && now.done_bytes > 0);
    assert!(loaded > 0 && loaded < all, "{loaded}");
    assert!(refusal(load(&access)).0.contains("never finished"));
    assert!(refusal(plan(&access, &SetupRequest { seed: 1, ..request.clone() })).0.contains("the seed is 42"));
    let began = find(&access).unwrap().unwrap().data.created_at;
    let after_load = D::PHASES.iter().skip_while(|phase| **phase != Phase::Load).skip(1);
    for phase in after_load {
        assert_eq!(interrupt(&access, &request, |now, _| now == *phase), all, "{phase}");
    }
    let report = set_up(&access, &request).unwrap();
    assert_eq!((report.bytes_written, report.bytes_found), (0, all));
    assert_sound(&access);
    assert_eq!(load(&access).unwrap().created_at, began);
}

#[test]
fn an_interrupted_set_up_goes_on_where_it_was() {
    goes_on::<Postgres>();
    goes_on::<Mysql>();
}

fn outlives_its_sessions<D: Tested>() {
    let Some(connector) = D::place("data_killed") else { return };
    let access = Access::new(&connector, "data_killed");
    let notify = |phase, now: Progress| {
        // More than two streams can have under way.
        if phase == Phase::Load && now.done_bytes > 2 * PIECE_BYTES {
            connector.kill_sessions();
        }
    };
    let (what, _) = refusal(run(plan(&access, &large::<D>()).unwrap(), &notify, &AtomicBool::new(false)));
    assert!(what.contains("gone") || what.contains("57P01"), "{what}");
    let report = set_up(&access, &large::<D>()).unwrap();
    assert!(report.bytes_found > 0 && report.bytes_written + report.bytes_found == 8 * PIECE_BYTES, "{report:?}");
    assert_sound(&access);
}

#[test]
fn what_was_loaded_before_the_sessions_were_killed_is_not_loaded_twice() {
    outlives_its_sessions::<Postgres>();
    outlives_its_sessions::<Mysql>();
}

/// A session that was killed while it committed a piece may not have done so when the next set-up looks.
fn waits_for_the_last_commit<D: Tested>() {
    let Some(connector) = D::place("data_committing") else { return };
    let access = Access::new(&connector, "data_committing");
    interrupt(&access, &request::<D>(), |phase, _| phase == Phase::Load);
    let mut committing = D::open(access).unwrap();
    let marks = D::qualified(access.namespace, LOAD_TABLE);
    for statement in ["BEGIN".to_owned(), format!("INSERT INTO {marks} VALUES (FALSE, 7, 0, 5)")] {
        D::execute(&mut committing, "test", &statement, Halt::NEVER).unwrap();
    }
    let seen = std::thread::scope(|scope| {
        let looked = scope.spawn(|| D::marks(access, &mut D::open(access).unwrap()).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        assert!(!looked.is_finished(), "nobody may take the piece for missing");
        D::execute(&mut committing, "test", "COMMIT", Halt::NEVER).unwrap();
        looked.join().unwrap()
    });
    assert_eq!(seen[&TableId { kind: TableKind::Rows, schema: 7 }], [(0, 5)]);
}

#[test]
fn a_piece_that_is_being_committed_is_waited_for() {
    waits_for_the_last_commit::<Postgres>();
    waits_for_the_last_commit::<Mysql>();
}

fn loads_a_lost_table_again<D: Tested>() {
    let Some(connector) = D::place("data_lost") else { return };
    let access = Access::new(&connector, "data_lost");
    interrupt(&access, &request::<D>(), |phase, _| phase == Phase::Index);
    D::inside(&access, &["DROP TABLE slob_2", "DROP TABLE scan_1"]);
    assert_eq!(set_up(&access, &request::<D>()).unwrap().bytes_written, bytes::<D>(320));
    assert_sound(&access);
}

#[test]
fn a_table_that_was_dropped_in_between_is_loaded_again() {
    loads_a_lost_table_again::<Postgres>();
    loads_a_lost_table_again::<Mysql>();
}

fn works_alone<D: Tested>() {
    let Some(connector) = D::place("data_alone") else { return };
    let access = Access::new(&connector, "data_alone");
    let second = Mutex::new(None);
    let notify = |phase, _| {
        if phase == Phase::Load {
            let holder = || D::lock_holder(&mut D::open(access).unwrap()).unwrap();
            let refused = || (refusal(set_up(&access, &request::<D>())).0, holder());
            second.lock().unwrap().get_or_insert_with(refused);
        }
    };
    run(plan(&access, &request::<D>()).unwrap(), &notify, &AtomicBool::new(false)).unwrap();
    let (what, holder) = second.into_inner().unwrap().unwrap();
    assert!(what.contains("another process makes or removes the data"), "{what}");
    assert!(what.contains(&holder.unwrap()) && what.contains("session "), "{what}");
    assert_sound(&access);
}

#[test]
fn two_set_ups_do_not_work_on_the_same_data() {
    works_alone::<Postgres>();
    works_alone::<Mysql>();
}

fn quotes_names<D: Tested>() {
    let Some(connector) = D::place("data_names") else { return };
    let victim = Access::new(&connector, "data_names");
    set_up(&victim, &request::<D>()).unwrap();
    for name in D::HOSTILE {
        let access = Access::new(&connector, name);
        set_up(&access, &request::<D>()).unwrap();
        assert_sound(&access);
        D::info(&access).unwrap();
        assert!(drop_all(&access).unwrap());
        assert!(find(&access).unwrap().is_none());
    }
    assert_sound(&victim);
    for name in ["", "a\0b", &"x".repeat(65)] {
        assert!(refusal(plan(&Access::new(&connector, name), &request::<D>())).0.contains("cannot be named"));
    }
}

#[test]
fn a_hostile_name_is_only_a_name() {
    quotes_names::<Postgres>();
    quotes_names::<Mysql>();
}

fn leaves_others_alone<D: Tested>() {
    let Some(connector) = D::place("data_others") else { return };
    let access = Access::new(&connector, "data_others");
    let outside = Access::new(&connector, "");
    D::inside(&outside, &["CREATE SCHEMA data_others"]);
    for (statement, clash) in D::CLASHES {
        D::inside(&access, &[statement]);
        let (what, hint) = refusal(plan(&access, &request::<D>()));
        assert!(what.contains(&format!("holds `{clash}`")) && hint.contains(D::HOLDER_OPTION), "{what}; {hint}");
        let [_, kind, ..] = statement.split(' ').collect::<Vec<_>>()[..] else { panic!("{statement}") };
        D::inside(&access, &[&format!("DROP {kind} {clash}")]);
    }
    // Anything else may be there, and stays.
    D::inside(&access, &["CREATE TABLE slob (id int)", "CREATE TABLE slob_99 (id int)"]);
    let (what, _) = refusal(plan(&access, &request::<D>()));
    assert!(what.contains("holds `slob_99`"), "{what}");
    D::inside(&access, &["DROP TABLE slob_99"]);
    set_up(&access, &request::<D>()).unwrap();
    D::inside(&access, &["CREATE TABLE slob_99 (id int)"]);
    assert_sound(&access);
    assert!(!drop_all(&access).unwrap(), "what holds the data stays");
    D::inside(&access, &["SELECT id FROM slob", "DROP TABLE slob", "DROP TABLE slob_99"]);
    set_up(&access, &request::<D>()).unwrap();
    assert!(!drop_all(&access).unwrap(), "somebody else made it");
}

#[test]
fn what_others_put_there_stays_and_keeps_set_up_away() {
    leaves_others_alone::<Postgres>();
    leaves_others_alone::<Mysql>();
}

fn refuses_what_cannot_be<D: Tested>() {
    let Some(connector) = D::place("data_shapes") else { return };
    let access = Access::new(&connector, "data_shapes");
    let (good, (_, most)) = (request::<D>(), D::MAX_TABLE_BLOCKS);
    let too_many = format!("at most {most} blocks");
    let cases = [
        (SetupRequest { schemas: 0, ..good.clone() }, "1 to 4096"),
        (SetupRequest { schemas: 4097, ..good.clone() }, "1 to 4096"),
        (SetupRequest { scale_blocks: 0, ..good.clone() }, "at least 1 block"),
        (SetupRequest { scale_blocks: most + 1, ..good.clone() }, too_many.as_str()),
        (SetupRequest { scan_blocks: most + 1, ..good.clone() }, too_many.as_str()),
        (SetupRequest { streams: 0, ..good.clone() }, "1 stream"),
        (SetupRequest { block_bytes: 2 * good.block_bytes, ..good }, "were requested"),
    ];
    for (request, word) in cases {
        let (what, _) = refusal(plan(&access, &request));
        assert!(what.contains(word), "{what}");
    }
}

#[test]
fn what_cannot_be_a_data_set_is_refused() {
    refuses_what_cannot_be::<Postgres>();
    refuses_what_cannot_be::<Mysql>();
}

fn shape(sizes: &[(u64, u64)]) -> Shape {
    Shape { tables: sizes.iter().map(|&(pages, index_pages)| TableShape { pages, index_pages }).collect() }
}

#[test]
fn growth_of_more_than_a_hundredth_is_a_change() {
    let before = shape(&[(1000, 10), (1000, 10)]);
    assert_eq!(shape(&[(1010, 11), (1000, 10)]).changed_since(&before), None);
    let reported = shape(&[(1011, 10), (1000, 10)]).changed_since(&before).unwrap();
    assert_eq!(reported, "`slob_1` grew by 1.1% (1000 blocks to 1011)");
}

#[test]
fn the_worst_change_is_reported_and_the_others_counted() {
    let before = shape(&[(1000, 10), (1000, 10)]);
    let reported = shape(&[(1100, 10), (900, 40)]).changed_since(&before).unwrap();
    assert_eq!(reported, "`slob_2_key` grew by 300.0% (10 blocks to 40); 2 more tables or indexes changed too");
    let reported = shape(&[(1000, 10), (900, 10)]).changed_since(&before).unwrap();
    assert_eq!(reported, "`slob_2` shrank by 10.0% (1000 blocks to 900)");
}
