//! A network like a production's: the redo that a standby is sent.

use super::words::{by, not, rate};
use crate::plan::PlanError;
use model::config::net::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES};
use model::record::{Like, WorkFigure};
use model::units::Bytes;

/// Redo writes that are like a production's, once.
#[derive(Debug, Clone, PartialEq)]
pub struct RedoLike {
    /// Writes per second.
    pub per_s: f64,
    /// Bytes of each.
    pub write_bytes: u32,
    /// The production, with what is asked for and what is not.
    pub like: Like,
}

/// The redo of a production's one moment.
///
/// # Errors
/// If it does not report its redo and the writes of its log.
pub fn redo(like: &Like) -> Result<RedoLike, PlanError> {
    let mut like = like.clone();
    let nothing = PlanError::NoRedoAlike { database: like.database.clone() };
    let Some(moment) = like.moments.first_mut() else { return Err(nothing) };
    let of = |figure: WorkFigure| moment.work.get(&figure).copied().filter(|value| *value > 0.0);
    let Some((bytes, per_s)) = of(WorkFigure::RedoBytes).zip(of(WorkFigure::RedoWrites)) else { return Err(nothing) };
    let write_bytes = message_bytes(bytes / per_s);
    let size = Bytes(u64::from(write_bytes));
    let known = || WorkFigure::ALL.into_iter().filter(|figure| moment.work.contains_key(figure));
    let aspects = known().map(|figure| match figure {
        WorkFigure::RedoWrites => by(figure, format!("{} redo writes/s, each sent and acknowledged", rate(per_s))),
        WorkFigure::RedoBytes => by(figure, format!("redo writes of {size} each, which is their mean")),
        WorkFigure::ClientBytes => not(
            figure,
            "answers to clients are another load: `--pattern sqlnet`, beside this one with `plimsoll beside`",
        ),
        WorkFigure::Commits => not(figure, "commits that share a redo write are one message"),
        _ => not(figure, "it is no load of the network"),
    });
    like.aspects = aspects.collect();
    moment.asked = [(WorkFigure::RedoWrites, per_s), (WorkFigure::RedoBytes, per_s * f64::from(write_bytes))].into();
    Ok(RedoLike { per_s, write_bytes, like })
}

/// A size that a message can have.
pub fn message_bytes(bytes: f64) -> u32 {
    bytes.round().clamp(f64::from(MIN_MESSAGE_BYTES), f64::from(MAX_MESSAGE_BYTES)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{LikeMoment, Work};

    fn like(work: Work) -> Like {
        let moment = LikeMoment { name: "peak".to_owned(), words: String::new(), work, asked: Work::new() };
        Like {
            database: "PROD".to_owned(),
            runs: Vec::new(),
            at: "peak".to_owned(),
            moments: vec![moment],
            aspects: Vec::new(),
        }
    }

    #[test]
    fn redo_goes_out_in_writes_of_its_mean_size() {
        let work = [(WorkFigure::RedoBytes, 2e6), (WorkFigure::RedoWrites, 400.0), (WorkFigure::Reads, 9.0)].into();
        let redo = redo(&like(work)).unwrap();
        assert_eq!((redo.per_s, redo.write_bytes), (400.0, 5_000));
        assert_eq!(redo.like.moments[0].asked[&WorkFigure::RedoBytes], 2e6);
        assert!(redo.like.aspects[0].by.is_none() && redo.like.aspects[2].by.is_some(), "{:?}", redo.like.aspects);
    }

    #[test]
    fn without_redo_there_is_nothing_to_send() {
        let error = redo(&like([(WorkFigure::RedoBytes, 2e6)].into())).unwrap_err();
        assert!(error.to_string().contains("PROD"), "{error}");
    }
}
