//! Where names stand in a chart, so that none overlaps another: computed for the narrowest chart that shows names of points.

use super::{At, EARLY, Mark};

/// Pixels of that chart, of a letter at most, of a line of text, and of the gaps that the style leaves.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 217.0;
const LETTER: f64 = 7.0;
const LINE: f64 = 15.0;
const GAP: f64 = 7.0;

/// Lines that the name of a mark may be raised by.
const MAX_LEVEL: usize = 6;

/// On which side of its point a name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Right,
    Left,
    Below,
}

impl Side {
    /// As a class of the style.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Left => "left",
            Self::Below => "below",
        }
    }
}

/// Left, bottom, right and top of a text.
type Room = [f64; 4];

/// Where each name stands.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Of each mark, how many lines its name is raised by.
    pub(super) levels: Vec<usize>,
    /// Of each point, the side of its name; none where there is no room.
    pub(super) sides: Vec<Option<Side>>,
    taken: Vec<Room>,
}

impl Places {
    /// Of marks and points. `place` says where a point of either axis lies, 0 to 1.
    pub(super) fn of(marks: &[Mark], points: &[(f64, f64, String)], place: impl Fn(f64, f64) -> (f64, f64)) -> Self {
        let mut places = Self::default();
        for mark in marks {
            let width = width(&mark.name);
            let level = match mark.at {
                At::Y(y) => {
                    let bottom = place(0.0, y).1 * HEIGHT;
                    places.taken.push([GAP, bottom, GAP + width, bottom + LINE]);
                    0
                }
                At::X(x) => {
                    let share = place(x, 0.0).0;
                    let left = if share < EARLY { share * WIDTH } else { share * WIDTH - width };
                    let room = |level: usize| {
                        let bottom = GAP / 2.0 + level as f64 * LINE;
                        [left, bottom, left + width, bottom + LINE]
                    };
                    let level = (0..MAX_LEVEL).find(|level| places.is_free(room(*level))).unwrap_or(0);
                    places.taken.push(room(level));
                    level
                }
            };
            places.levels.push(level);
        }
        for (x, y, name) in points {
            let (across, up) = place(*x, *y);
            let (x, y, width) = (across * WIDTH, up * HEIGHT, width(name));
            let rooms = [
                (Side::Right, [x + GAP, y, x + GAP + width, y + LINE]),
                (Side::Left, [x - GAP - width, y, x - GAP, y + LINE]),
                (Side::Below, [x + GAP, y - LINE - GAP, x + GAP + width, y - GAP]),
            ];
            let is_inside = |room: &Room| room[0] >= 0.0 && room[2] <= WIDTH && room[1] >= 0.0;
            let found = rooms.into_iter().find(|(_, room)| is_inside(room) && places.is_free(*room));
            places.taken.extend(found.map(|(_, room)| room));
            places.sides.push(found.map(|(side, _)| side));
        }
        places
    }

    fn is_free(&self, room: Room) -> bool {
        !self
            .taken
            .iter()
            .any(|other| room[0] < other[2] && other[0] < room[2] && room[1] < other[3] && other[1] < room[3])
    }
}

fn width(name: &str) -> f64 {
    name.chars().count() as f64 * LETTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lie_on_each_other() {
        let mark = |at, name: &str| Mark { at, name: name.to_owned() };
        let marks = [
            mark(At::Y(0.5), "limit 5.00 ms"),
            mark(At::X(0.80), "load line 4,800"),
            mark(At::X(0.84), "ceiling 5,000"),
            mark(At::X(0.10), "knee 500"),
        ];
        let points: Vec<(f64, f64, String)> =
            (0..30).map(|at| (0.5 + f64::from(at) * 0.01, 0.5, format!("r{at}000"))).collect();
        let places = Places::of(&marks, &points, |x, y| (x, y));
        assert_eq!(places.levels, [0, 0, 1, 0], "the second name is raised");
        assert_eq!(places.sides[0], Some(Side::Right));
        assert!(places.sides.iter().flatten().count() < 10, "there is no room for all: {:?}", places.sides);
        for (at, room) in places.taken.iter().enumerate() {
            let others = Places { taken: places.taken[..at].to_vec(), ..Places::default() };
            assert!(others.is_free(*room), "{room:?}");
        }
    }

    #[test]
    fn a_point_at_the_edge_has_its_name_within_the_chart() {
        let points = [(1.0, 0.5, "d64".to_owned()), (0.99, 0.01, "d128".to_owned())];
        let places = Places::of(&[], &points, |x, y| (x, y));
        assert_eq!(places.sides, [Some(Side::Left), Some(Side::Left)]);
    }
}
