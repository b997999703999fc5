//! Sources with planted faults, so that it is known that the rules see them.

use std::collections::BTreeSet;

use crate::graph::{Edge, Modules, circles};
use crate::trespasses;
use crate::uses::Part;

const ROOMS: &[(&str, &[&str])] = &[("low", &[]), ("middle", &["low"]), ("high", &["middle"])];

/// A crate of three rooms, in which files have been replaced or added.
fn planted(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let clean = [
        ("lib.rs", "pub mod low; pub mod middle; pub mod high;"),
        ("low/mod.rs", "mod stone; pub use stone::Stone;"),
        ("low/stone.rs", "pub struct Stone;"),
        ("middle/mod.rs", "mod wall; pub use wall::Wall; pub(crate) use crate::low::Stone as Brick;"),
        ("middle/wall.rs", "use crate::low::Stone; pub struct Wall(Stone);"),
        ("high/mod.rs", "pub mod roof; mod tower;"),
        ("high/roof.rs", "use crate::middle::Wall; pub struct Roof(Wall);"),
        ("high/tower.rs", "use super::roof::Roof; pub struct Tower(Roof);"),
    ];
    let kept = clean.iter().filter(|(path, _)| !files.iter().any(|(other, _)| other == path));
    kept.chain(files).map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    circles(&Modules::of(&planted(files), Part::WithoutTests).edges())
}

#[test]
fn a_clean_house_brings_no_complaint() {
    assert_eq!(trespasses(&planted(&[]), ROOMS), Vec::<String>::new());
    assert_eq!(circles_of(&[]), Vec::<Vec<String>>::new());
}

#[test]
fn a_use_of_a_room_is_seen_however_it_is_written() {
    for source in [
        "use crate::low::Stone;",
        "use crate::{middle::{Wall, self}, low::{stone::{Stone}}};",
        "use {std::fmt, crate::{low}};",
        "use super::super::low::Stone;",
        "use super::{super::{low::*}};",
        "pub use crate::low::Stone as Pebble;",
        "fn f() -> crate::low::Stone { todo!() }",
        "fn f() { println!(\"{}\", crate::low::answer()); }",
        "macro_rules! m { () => { $crate::low::Stone } }",
        "mod inside { use super::super::super::low::Stone; }",
        "#[cfg(test)] mod tests { use crate::low::Stone; }",
        // What another room passes on is used where it is defined.
        "use crate::middle::Brick;",
    ] {
        let wrong = trespasses(&planted(&[("high/tower.rs", source)]), ROOMS);
        assert_eq!(wrong, ["high/tower.rs uses `low`, which is no neighbour of `high`"], "{source}");
    }
}

#[test]
fn what_is_no_use_of_a_room_is_not_taken_for_one() {
    for source in [
        "// crate::low::Stone\n/* use crate::low::Stone; */",
        "/// [`crate::low::Stone`]\npub struct Tower;",
        "const TEXT: &str = \"use crate::low::Stone;\"; const RAW: &str = r#\"crate::low\"#;",
        "pub(in crate::high) fn f() {}",
        "struct S; impl S { fn low() {} } fn f() { S::low() }",
        "use std::low::Stone;",
    ] {
        assert_eq!(trespasses(&planted(&[("high/tower.rs", source)]), ROOMS), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn circles_are_seen_through_reexports_and_children() {
    let roof_and_tower = ["high/roof.rs", "high/tower.rs"];
    for (house, roof) in [
        ("pub mod roof; mod tower;", "use super::tower::Tower; pub struct Roof(Tower);"),
        ("pub mod roof; mod tower;", "pub struct Roof(super::tower::Tower);"),
        ("pub mod roof; mod tower; pub use tower::Tower;", "use super::Tower; pub struct Roof(Tower);"),
        ("pub mod roof; mod tower; pub use tower::Tower as T;", "use crate::{high::{T}}; pub struct Roof(T);"),
        ("pub mod roof; mod tower; pub use tower::*;", "use super::Tower; pub struct Roof(Tower);"),
        ("pub mod roof; mod tower;", "use super::tower; pub struct Roof(tower::Tower);"),
    ] {
        let found = circles_of(&[("high/mod.rs", house), ("high/roof.rs", roof)]);
        assert_eq!(found, [roof_and_tower], "{house} {roof}");
    }
    let parent = circles_of(&[
        ("high/mod.rs", "mod roof; mod tower; fn build() { tower::raise() } pub struct House;"),
        ("high/tower.rs", "use super::House; pub fn raise() {}"),
        ("high/roof.rs", ""),
    ]);
    assert_eq!(parent, [["high/mod.rs", "high/tower.rs"]]);
    let three = circles_of(&[
        ("low/mod.rs", "mod stone; mod sand; mod water;"),
        ("low/stone.rs", "use super::sand::Sand;"),
        ("low/sand.rs", "use super::water::Water; pub struct Sand;"),
        ("low/water.rs", "use super::stone; fn f() { stone::g() } pub struct Water;"),
    ]);
    assert_eq!(three, [["low/sand.rs", "low/stone.rs", "low/water.rs"]]);
}

#[test]
fn tests_make_no_circle_and_neither_does_what_is_only_passed_on() {
    let tests = "use super::*; use super::tower::Tower;";
    let found = circles_of(&[
        ("high/mod.rs", "pub mod roof; mod tower; pub use roof::Roof; pub use tower::Tower;"),
        (
            "high/roof.rs",
            &format!("pub struct Roof; #[cfg(test)] #[path = \"x\"] mod tests; #[cfg(test)] mod more {{ {tests} }}"),
        ),
        ("high/roof/tests.rs", tests),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
    let edges = Modules::of(&planted(&[]), Part::WithoutTests).edges();
    let edge = |from: &str, to: &str| Edge { from: from.to_owned(), to: to.to_owned() };
    let expected =
        [("high/roof.rs", "middle/wall.rs"), ("high/tower.rs", "high/roof.rs"), ("middle/wall.rs", "low/stone.rs")];
    assert_eq!(edges, expected.map(|(from, to)| edge(from, to)).into_iter().collect::<BTreeSet<_>>());
}
