//! The line through the mixes that were measured, what may lie between them, and where another mix would say most.

use super::MappedMix;

/// Mixes closer than this to each other, as a part of the quarter turn between reads alone and writes alone, say nothing new.
const NEAREST: f64 = 0.03;
/// Directions that are looked at between two neighbours.
const LOOKS: usize = 15;
/// What lies between two mixes may be this part of what is wanted to both sides, from end to end.
const OF_WITHIN: f64 = 1.0;

/// A mix, and between which rates of all requests its line lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edge {
    pub(super) read_share: f64,
    /// The largest that met the limit, per second; above 0.
    pub(super) low: f64,
    /// The least that did not; absent where the range or the load generator ended first.
    pub(super) high: Option<f64>,
    /// Whether requests were too slow at `high`, and the load was not merely unsteady.
    pub(super) has_failed: bool,
}

impl Edge {
    /// Reads and writes per second in the middle of the interval.
    fn middle(&self) -> [f64; 2] {
        super::of_share(self.read_share, self.per_s())
    }

    fn per_s(&self) -> f64 {
        self.low.sqrt() * self.high.unwrap_or(self.low).sqrt()
    }

    /// How far the line may be off, as a factor; absent where only one end is known, or the other was merely not steady.
    fn wide(&self) -> Option<f64> {
        self.high.filter(|_| self.has_failed).map(|high| (high / self.low).sqrt())
    }
}

/// Where a demand lies.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MapPlace {
    /// Below the line: at least as much of both was measured to meet the limit, or lies within what the line is known to.
    Inside {
        /// The line in the same mix as a multiple of the demand, where it is known.
        times: Option<f64>,
    },
    /// Beyond it, likewise.
    Outside {
        /// The line in the same mix as a multiple of the demand, where it is known.
        times: Option<f64>,
    },
    /// Too close to the line to say, or outside of the mixes that were measured.
    Unknown {
        /// The line as a multiple of the demand, where it is known.
        times: Option<f64>,
    },
}

/// The line, reads alone first. Directions are of axes that are scaled to their largest rates, so that storage which writes a tenth of
/// what it reads is looked at as evenly as any.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Line {
    edges: Vec<Edge>,
    scale: [f64; 2],
    within: f64,
    fewest: usize,
    /// Shares of reads of mixes in which nothing met the limit.
    voids: Vec<f64>,
    /// Reads and writes per second of points that met the limit, and of those that did not.
    met: Vec<Vector>,
    missed: Vec<Vector>,
}

/// What may lie on the line in some direction.
#[derive(Debug, Clone, Copy)]
struct Possible {
    /// Times the direction.
    low: f64,
    high: f64,
}

type Vector = [f64; 2];

fn cross([x, y]: Vector, [v, w]: Vector) -> f64 {
    x * w - y * v
}

/// How many times `direction` the line through two points is; infinite where it does not meet it.
fn meets(direction: Vector, one: Vector, other: Vector) -> f64 {
    let along = [other[0] - one[0], other[1] - one[1]];
    let times = cross(one, along) / cross(direction, along);
    if times.is_finite() && times > 0.0 { times } else { f64::INFINITY }
}

impl Line {
    pub(super) fn new(mut edges: Vec<Edge>, within: f64, fewest: usize) -> Self {
        edges.sort_by(|one, other| other.read_share.total_cmp(&one.read_share));
        edges.dedup_by(|one, other| one.read_share == other.read_share);
        let most = |axis: usize| edges.iter().map(|edge| edge.middle()[axis]).fold(0.0, f64::max);
        let scale = [most(0), most(1)];
        Self { edges, scale, within, fewest, ..Self::default() }
    }

    /// The same with all that was measured.
    pub(super) fn with(self, voids: Vec<f64>, met: Vec<Vector>, missed: Vec<Vector>) -> Self {
        Self { voids, met, missed, ..self }
    }

    /// How many mixes lie on it.
    pub(super) fn count(&self) -> usize {
        self.edges.len()
    }

    fn scaled(&self, point: Vector) -> Vector {
        let [reads, writes] = self.scale;
        [point[0] / reads.max(f64::MIN_POSITIVE), point[1] / writes.max(f64::MIN_POSITIVE)]
    }

    fn point(&self, place: usize) -> Vector {
        self.scaled(self.edges[place].middle())
    }

    /// The angle of a point from reads alone, in quarter turns.
    fn turn([reads, writes]: Vector) -> f64 {
        writes.atan2(reads) / std::f64::consts::FRAC_PI_2
    }

    /// How far a mix lies from the middle between reads alone and writes alone, in quarter turns.
    pub(super) fn tilt(&self, mix: &MappedMix) -> f64 {
        mix.on_line().map_or(1.0, |point| (Self::turn(self.scaled(point)) - 0.5).abs())
    }

    /// What may lie in a direction between the neighbours `place` and the next. Lines through each and the one beyond it bound it if the
    /// line bends in one way; and what is less of both kinds than something carried is carried.
    fn between(&self, place: usize, direction: Vector) -> Possible {
        let (one, other) = (self.point(place), self.point(place + 1));
        let chord = meets(direction, one, other);
        let before = place.checked_sub(1).map(|before| meets(direction, self.point(before), one));
        let after = self.edges.get(place + 2).map(|_| meets(direction, other, self.point(place + 2)));
        // What is less of both than something that was carried is carried.
        let [reads, writes] = direction;
        let inner = (one[1] / writes.max(f64::MIN_POSITIVE)).max(other[0] / reads.max(f64::MIN_POSITIVE)).min(chord);
        let most = [one[0].max(other[0]), one[1].max(other[1])];
        let outer = (most[0] / reads.max(f64::MIN_POSITIVE)).min(most[1] / writes.max(f64::MIN_POSITIVE)).max(chord);
        let lines = || before.into_iter().chain(after);
        let beyond = lines().filter(|times| *times > chord).fold(outer, f64::min);
        let short = lines().filter(|times| *times < chord).fold(inner, f64::max);
        match (lines().any(|times| times > chord), lines().any(|times| times < chord)) {
            // It bends from one way into the other between them.
            (true, true) => Possible { low: f64::midpoint(chord, short), high: f64::midpoint(chord, beyond) },
            (false, true) => Possible { low: short, high: chord },
            (_, false) => Possible { low: chord, high: beyond },
        }
    }

    /// Directions between two neighbours.
    fn directions(&self, place: usize) -> impl Iterator<Item = Vector> + '_ {
        let (from, to) = (Self::turn(self.point(place)), Self::turn(self.point(place + 1)));
        (1..=LOOKS).map(move |look| {
            let turn = from + (to - from) * look as f64 / (LOOKS + 1) as f64;
            let angle = turn * std::f64::consts::FRAC_PI_2;
            [angle.cos(), angle.sin()]
        })
    }

    fn gaps(&self) -> std::ops::Range<usize> {
        0..self.edges.len().saturating_sub(1)
    }

    /// The gap with its widest direction, and how wide it is.
    fn widest_of(&self, place: usize) -> Option<(f64, Vector, Possible)> {
        let wide = |direction: Vector| {
            let possible = self.between(place, direction);
            let width = possible.high / possible.low - 1.0;
            width.is_finite().then_some((width, direction, possible))
        };
        // Of equals the middle one.
        let mut looked: Vec<_> = self.directions(place).filter_map(wide).collect();
        let middle = looked.len() as f64 / 2.0 - 0.5;
        let far: Vec<f64> = (0..looked.len()).map(|look| (look as f64 - middle).abs()).collect();
        let best = (0..looked.len()).max_by(|one, other| {
            let by_width = looked[*one].0.total_cmp(&looked[*other].0);
            by_width.then(far[*other].total_cmp(&far[*one]))
        })?;
        Some(looked.swap_remove(best))
    }

    /// Whether the line is not led across a gap, since nothing met the limit in a mix between.
    fn is_broken(&self, place: usize) -> bool {
        is_between(&self.edges[place], &self.edges[place + 1], &self.voids)
    }

    /// The share of reads of the mix that would say most, and the most that it may carry; absent where the line is known well enough.
    /// Gaps in which one of `open` lies are left out.
    pub(super) fn widest(&self, open: &[f64]) -> Option<(f64, f64)> {
        let is_open =
            |place: usize| is_between(&self.edges[place], &self.edges[place + 1], open) || self.is_broken(place);
        let turns = |place: usize| Self::turn(self.point(place + 1)) - Self::turn(self.point(place));
        let gaps = || self.gaps().filter(|place| !is_open(*place) && turns(*place) > 2.0 * NEAREST);
        let unlike =
            gaps().filter_map(|place| self.widest_of(place)).filter(|(width, ..)| *width > OF_WITHIN * self.within);
        let widest = unlike.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, direction, it)| (direction, it));
        // A line that looks straight is looked at between its ends all the same.
        let few = || {
            if self.edges.len() + open.len() >= self.fewest {
                return None;
            }
            let place = gaps().max_by(|one, other| turns(*one).total_cmp(&turns(*other)))?;
            let direction = self.directions(place).nth(LOOKS / 2)?;
            Some((direction, self.between(place, direction)))
        };
        let (direction, possible) = widest.or_else(few)?;
        let [reads, writes] = [direction[0] * self.scale[0], direction[1] * self.scale[1]];
        let share = readable_share(reads / (reads + writes));
        let is_new = share > 0.0 && share < 1.0 && self.edges.iter().all(|edge| edge.read_share != share);
        is_new.then_some((share, (reads + writes) * possible.high))
    }

    /// How far the line may be off to either side; absent without two mixes.
    pub(super) fn off(&self) -> Option<f64> {
        if self.edges.len() < 2 {
            return None;
        }
        let of_mixes = self.edges.iter().filter_map(Edge::wide).map(|wide| wide - 1.0);
        let is_closed = |place: &usize| {
            let ends = [self.edges[*place], self.edges[*place + 1]];
            ends.iter().all(|edge| edge.wide().is_some()) && !self.is_broken(*place)
        };
        let of_gaps = self.gaps().filter(is_closed).filter_map(|place| self.widest_of(place));
        of_mixes.chain(of_gaps.map(|(width, ..)| (1.0 + width).sqrt() - 1.0)).reduce(f64::max)
    }

    /// Where so many reads and writes per second lie.
    pub(super) fn place(&self, demand: Vector) -> MapPlace {
        let unknown = MapPlace::Unknown { times: None };
        if demand.iter().any(|per_s| !(per_s.is_finite() && *per_s >= 0.0)) || demand.iter().sum::<f64>() <= 0.0 {
            return unknown;
        }
        let by_line = self.by_line(demand);
        let times = by_line.times();
        // What was measured comes before what lies between: less of both kinds is carried where more is.
        let is_within = |point: &Vector| demand[0] <= point[0] && demand[1] <= point[1];
        let is_beyond = |point: &Vector| demand[0] >= point[0] && demand[1] >= point[1];
        match (self.met.iter().any(is_within), self.missed.iter().any(is_beyond)) {
            (true, true) => MapPlace::Unknown { times },
            (true, false) => MapPlace::Inside { times },
            (false, true) => MapPlace::Outside { times },
            (false, false) => by_line,
        }
    }

    fn by_line(&self, demand: Vector) -> MapPlace {
        let point = self.scaled(demand);
        let turn = Self::turn(point);
        let gap = self.gaps().filter(|place| !self.is_broken(*place)).find(|place| {
            let (from, to) = (Self::turn(self.point(*place)), Self::turn(self.point(*place + 1)));
            (from - 1e-9..=to + 1e-9).contains(&turn)
        });
        let Some(gap) = gap else { return MapPlace::Unknown { times: None } };
        let Possible { low, high } = self.between(gap, point);
        let times = Some(low.sqrt() * high.sqrt()).filter(|times| times.is_finite());
        // A line through few mixes may bend in any way between them, and one that is open ends farther out.
        let ends = [self.edges[gap], self.edges[gap + 1]];
        let wide = ends.iter().map(Edge::wide).try_fold(1.0_f64, |most, wide| Some(most.max(wide?)));
        match wide.filter(|_| self.edges.len() >= self.fewest) {
            Some(wide) if low >= wide => MapPlace::Inside { times },
            Some(wide) if high * wide < 1.0 => MapPlace::Outside { times },
            _ => MapPlace::Unknown { times },
        }
    }
}

/// Whether one of these shares of reads lies between those of two mixes.
fn is_between(one: &Edge, other: &Edge, shares: &[f64]) -> bool {
    shares.iter().any(|share| *share < one.read_share && *share > other.read_share)
}

/// A share in three digits of what is rarer, so that neighbours differ where one kind is a thousandth of the other.
fn readable_share(share: f64) -> f64 {
    let rare = share.min(1.0 - share);
    if rare <= 0.0 {
        return share;
    }
    let unit = 10_f64.powi(rare.log10().floor() as i32 - 2);
    let rare = (rare / unit).round() * unit;
    if share <= 0.5 { rare } else { 1.0 - rare }
}
