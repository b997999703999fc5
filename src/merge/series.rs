//! Intervals of all parts, read side by side: only those of a few instants are held.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::align::Lying;
use super::part::{Part, Second, Source, workers};
use super::sum::Gathered;
use super::{MergeError, Voice};
use model::record::Interval;
use model::record::store::IntervalLines;

/// Instants that are read before they are handed over: enough that starting threads does not count.
const BATCH: usize = 16;

/// What is read of one part.
pub(super) struct PartInput<'a> {
    pub(super) part: &'a Part,
    pub(super) seconds: &'a [Second],
    pub(super) first: usize,
    pub(super) voice: &'a Voice,
}

/// A part that is being read.
struct Reader<'a> {
    of: &'a PartInput<'a>,
    from: From<'a>,
    /// The line that comes next.
    next: usize,
}

enum From<'a> {
    Lines(&'a Path, Option<IntervalLines>),
    Held(&'a [Interval]),
}

impl<'a> Reader<'a> {
    fn new(of: &'a PartInput<'a>) -> Self {
        let from = match &of.part.source {
            Source::Kept(directory) => From::Lines(directory, None),
            Source::Held(intervals) => From::Held(intervals),
        };
        Self { of, from, next: 0 }
    }

    /// The interval of instant number `at`.
    fn read(&mut self, at: usize) -> Result<Option<Interval>, MergeError> {
        let Some(second) = self.of.seconds.get(self.of.first + at) else { return Ok(None) };
        match &mut self.from {
            From::Held(intervals) => Ok(intervals.get(second.line).cloned()),
            From::Lines(directory, lines) => {
                if lines.is_none() || second.line < self.next {
                    (*lines, self.next) = (IntervalLines::open(directory)?, 0);
                }
                let Some(lines) = lines else { return Ok(None) };
                while self.next < second.line {
                    lines.skip()?;
                    self.next += 1;
                }
                self.next += 1;
                Ok(lines.read()?)
            }
        }
    }
}

/// Hands over what all parts saw at each instant, one after the other.
pub(super) fn gather<E: std::convert::From<MergeError>>(
    readings: &[PartInput<'_>],
    lying: &Lying,
    server_waits: &[String],
    stop: &AtomicBool,
    mut each: impl FnMut(usize, Gathered) -> Result<(), E>,
) -> Result<(), E> {
    let hosts =
        Voice { before: readings.first().map(|one| one.voice.before.clone()).unwrap_or_default(), ..Voice::default() };
    let mut readers: Vec<Reader<'_>> = readings.iter().map(Reader::new).collect();
    let share = readers.len().div_ceil(workers()).max(1);
    let instants = lying.lead + lying.count;
    for begin in (0..instants).step_by(BATCH) {
        if stop.load(Ordering::Relaxed) {
            return Err(MergeError::Stopped.into());
        }
        let batch = begin..(begin + BATCH).min(instants);
        let read = |readers: &mut [Reader<'_>]| -> Result<Vec<Gathered>, MergeError> {
            let mut gathered = vec![Gathered::default(); batch.len()];
            for reader in readers {
                for (at, sum) in batch.clone().zip(&mut gathered) {
                    if let Some(interval) = reader.read(at)? {
                        sum.add(interval, reader.of.voice, server_waits);
                    }
                }
            }
            Ok(gathered)
        };
        let all = thread::scope(|scope| {
            let mut crews = readers.chunks_mut(share);
            let own = crews.next();
            let start = |crew| thread::Builder::new().spawn_scoped(scope, || read(crew)).map_err(MergeError::Thread);
            let others = crews.map(start).collect::<Result<Vec<_>, _>>()?;
            let mut all = vec![own.map_or_else(|| Ok(Vec::new()), read)?];
            for crew in others {
                all.push(crew.join().expect("adding intervals up does not panic")?);
            }
            Ok::<_, MergeError>(all)
        })?;
        let mut all = all.into_iter();
        let mut sums = all.next().unwrap_or_default();
        for crew in all {
            sums.iter_mut().zip(crew).for_each(|(sum, more)| sum.join(more, &hosts));
        }
        for (at, sum) in batch.zip(sums) {
            each(at, sum)?;
        }
    }
    Ok(())
}
