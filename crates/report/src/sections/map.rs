//! The mixes of a map and the line that they show.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, duration};
use analysis::{MapAnswer, MapEnded, MappedMix};
use model::record::Run;
use model::units::{group_thousands, percent};

/// A row for each mix: the largest rates that met the limit, the least that did not, and the line between.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(map) = MapAnswer::of(run) else { return Ok(()) };
    let changes = map.of.changes();
    let (rate, time) = (format!("{changes}/s"), format!("p. {changes}"));
    let mut grid = Grid::new(0, ["reads", "reads/s", &rate, "met/s", "missed/s", "p. reads", &time, "points"]);
    let per_s = |known: Option<f64>| known.map_or_else(|| NONE.to_owned(), group_thousands);
    for mix in &map.mixes {
        let on_line = mix.on_line();
        grid.push(vec![
            format!("{} %", percent(mix.read_share)),
            per_s(on_line.map(|[reads, _]| reads)),
            per_s(on_line.map(|[_, writes]| writes)),
            per_s(mix.carried_per_s),
            missed(mix),
            duration(mix.read_ns),
            duration(mix.write_ns),
            mix.points.to_string(),
        ]);
    }
    if grid.is_empty() {
        return Ok(());
    }
    paper.table(&format!("The line within {}", map.limit), &grid)?;
    remarks(&map).iter().try_for_each(|words| paper.remark(words))
}

fn missed(mix: &MappedMix) -> String {
    match (mix.missed_per_s, mix.is_generators) {
        (_, true) => "generator".to_owned(),
        (Some(per_s), false) => group_thousands(per_s),
        (None, false) => NONE.to_owned(),
    }
}

fn remarks(map: &MapAnswer) -> Vec<String> {
    let changes = map.of.changes();
    let mut remarks = vec![format!(
        "reads/s, {changes}/s: on the line. met/s: the largest rate of the mix that met the limit. missed/s: the least that did not, or was \
         not steady. p. reads, p. {changes}: the {} where it was met.",
        map.limit.split('=').next().unwrap_or("percentile")
    )];
    let full = map.mixes.iter().filter(|mix| mix.is_full).count();
    if full > 0 {
        remarks.push(format!(
            "In {full} of {} mixes all sessions were busy where the limit was missed: more of them (`-t`) may move the line.",
            map.mixes.len()
        ));
    }
    let ended = match map.ended {
        MapEnded::Found => None,
        MapEnded::NoLine => Some("Fewer than two mixes met the limit at any rate, so there is no line."),
        MapEnded::OutOfPoints => Some("All points were used before the line was known as well as requested."),
        MapEnded::CutShort => Some("The map was cut short."),
    };
    remarks.extend(ended.map(str::to_owned));
    let few = map.mixes.iter().filter(|mix| mix.has_few).count();
    if few > 0 {
        remarks.push(format!(
            "In {few} of {} mixes one kind is too rare for its percentile: only clear misses of it count. Longer windows (`--duration`) \
             judge it.",
            map.mixes.len()
        ));
    }
    match (map.anchors, map.anchors_missed) {
        (0, _) => {}
        (times, 0) => {
            remarks.push(format!("The first mix was measured again {times} times and met the limit each time."))
        }
        (times, missed) => remarks.push(format!(
            "The first mix was measured again {times} times and missed the limit {missed} times: {} changed meanwhile.",
            map.of.carrier()
        )),
    }
    remarks
}
