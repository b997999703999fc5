//! What a sweep varies.

use std::fmt;
use std::str::FromStr;

use super::parameter::Role;
use super::slob::MAX_SESSIONS;
use super::{ConfigError, Gap, Key, Origin, Setting, SlobParameters, VaryProblem, numbers, one_ellipsis};

/// Most steps that one sweep may have.
pub const MAX_STEPS: usize = 1_000;

/// One parameter and the values that a sweep gives it, such as `WORK_UNIT=4,16,64`.
///
/// Only what shapes the load may vary: the data set, the length of a step and the connection stay the same through a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    /// The parameter.
    pub key: Key,
    /// Its values, each valid and there once, in the order in which they were given.
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |problem| Err(ConfigError::Vary(problem));
        let Some((name, list)) = text.split_once('=') else {
            return fail(VaryProblem::NotAList { text: text.to_owned() });
        };
        let key = Setting::new(name, "", Origin::CommandLine)?.key;
        if key.parameter().role != Role::Load {
            return fail(VaryProblem::Fixed { key });
        }
        let mut values: Vec<String> = Vec::new();
        for value in without_ellipsis(list)? {
            if value.is_empty() {
                return fail(VaryProblem::NotAList { text: text.to_owned() });
            }
            SlobParameters::check_value(&Setting::from_command_line(key, value.as_str()))?;
            if values.contains(&value) {
                return fail(VaryProblem::Twice { value });
            }
            values.push(value);
        }
        Ok(Self { key, values })
    }
}

/// The values of a list. Where something is left out, all of them are whole numbers.
fn without_ellipsis(list: &str) -> Result<Vec<String>, ConfigError> {
    if !one_ellipsis(list).contains('…') {
        return Ok(list.split(',').map(|value| value.trim().to_owned()).collect());
    }
    let whole = |text: &str| {
        let number = text.parse::<u32>().ok().filter(|number| *number > 0).map(u64::from);
        number.ok_or_else(|| ConfigError::Vary(VaryProblem::NotWhole { text: text.to_owned() }))
    };
    Ok(numbers(list, whole, of_gap)?.iter().map(u64::to_string).collect())
}

fn of_gap<T: fmt::Display>(gap: Gap<T>) -> ConfigError {
    ConfigError::Vary(match gap {
        Gap::Twice(value) => VaryProblem::Twice { value: value.to_string() },
        Gap::Down { first, last } => VaryProblem::Down { first: first.to_string(), last: last.to_string() },
        Gap::NoDoubling { before, first } => {
            VaryProblem::NoDoubling { before: before.to_string(), first: first.to_string() }
        }
    })
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

/// Threads per schema, one step each, such as `1,2,4,8`, or with the doublings between left out as `1,2,…,64` or `1..64`.
/// Each from 1 to [`MAX_SESSIONS`] and there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadList(pub Vec<u32>);

impl FromStr for ThreadList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let threads = |item: &str| match item.parse() {
            Ok(count @ 1..=MAX_SESSIONS) => Ok(count),
            _ => Err(ConfigError::Vary(VaryProblem::Threads { text: item.to_owned() })),
        };
        numbers(text, threads, of_gap).map(Self)
    }
}

impl fmt::Display for ThreadList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&counts.join(","))
    }
}

/// Everything that a sweep varies: its steps are the product of all axes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes {
    varied: Vec<Vary>,
}

impl Axes {
    /// Axes from `--vary` (outermost, in the order given) and `--threads` (innermost, so that each load curve runs in one
    /// go).
    ///
    /// # Errors
    ///
    /// [`ConfigError::Vary`] if a parameter varies twice, or if there would be more than [`MAX_STEPS`] steps.
    pub fn new(threads: Option<ThreadList>, mut varied: Vec<Vary>) -> Result<Self, ConfigError> {
        varied.extend(threads.map(|ThreadList(counts)| Vary {
            key: Key::ThreadsPerSchema,
            values: counts.iter().map(u32::to_string).collect(),
        }));
        for (index, vary) in varied.iter().enumerate() {
            if varied[..index].iter().any(|earlier| earlier.key == vary.key) {
                return Err(ConfigError::Vary(VaryProblem::AxisTwice { key: vary.key }));
            }
        }
        let steps = varied.iter().try_fold(1usize, |steps, vary| steps.checked_mul(vary.values.len()));
        match steps {
            Some(steps) if steps <= MAX_STEPS => Ok(Self { varied }),
            _ => Err(ConfigError::Vary(VaryProblem::TooManySteps)),
        }
    }

    /// The parameters that vary, outermost first.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.varied.iter().map(|vary| vary.key)
    }

    /// One list of overriding settings for each step; appended to the settings of the run they give that step's
    /// parameters. One empty list if nothing varies.
    pub fn points(&self) -> Vec<Vec<Setting>> {
        let mut points = vec![Vec::new()];
        for vary in &self.varied {
            points = points
                .iter()
                .flat_map(|point| {
                    vary.values.iter().map(|value| {
                        let mut longer: Vec<Setting> = point.clone();
                        longer.push(Setting::from_command_line(vary.key, value));
                        longer
                    })
                })
                .collect();
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(axes: &Axes) -> Vec<String> {
        let show = |point: &Vec<Setting>| point.iter().map(Setting::to_string).collect::<Vec<_>>().join(" ");
        axes.points().iter().map(show).collect()
    }

    #[test]
    fn steps_are_the_product_with_threads_innermost() {
        let axes = Axes::new(Some("1,2".parse().unwrap()), vec!["WORK_UNIT=4,64".parse().unwrap()]).unwrap();
        assert_eq!(
            shown(&axes),
            [
                "WORK_UNIT=4 THREADS_PER_SCHEMA=1",
                "WORK_UNIT=4 THREADS_PER_SCHEMA=2",
                "WORK_UNIT=64 THREADS_PER_SCHEMA=1",
                "WORK_UNIT=64 THREADS_PER_SCHEMA=2",
            ]
        );
        assert_eq!(axes.keys().collect::<Vec<_>>(), [Key::WorkUnit, Key::ThreadsPerSchema]);
    }

    #[test]
    fn nothing_that_varies_is_one_step() {
        assert_eq!(Axes::default().points(), [Vec::new()]);
    }

    #[test]
    fn a_percentage_that_only_fits_with_other_settings_may_vary() {
        assert_eq!("SCAN_PCT=0,100".parse::<Vary>().unwrap().values, ["0", "100"]);
    }

    #[test]
    fn refuses_what_cannot_vary_with_the_reason() {
        for (text, message, hint) in [
            (
                "WORK_UNIT",
                "`WORK_UNIT` is not a parameter with values",
                "write KEY=VALUE,VALUE such as `WORK_UNIT=4,16,64`",
            ),
            (
                "WORK_UNIT=4,,8",
                "`WORK_UNIT=4,,8` is not a parameter with values",
                "write KEY=VALUE,VALUE such as `WORK_UNIT=4,16,64`",
            ),
            (
                "SCALE=1G,2G",
                "`SCALE` cannot vary within a sweep",
                "it belongs to the data set: set up another one and run again",
            ),
            (
                "RUN_TIME=30,60",
                "`RUN_TIME` cannot vary within a sweep",
                "steps are compared, so they have the same length",
            ),
            ("THREADS_PER_SCHEMA=1,2", "`THREADS_PER_SCHEMA` cannot vary within a sweep", "use `--threads 1,2,4,8`"),
            ("WORK_UNIT=4,4", "`4` is listed twice", "give each value once"),
        ] {
            let error = text.parse::<Vary>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
        }
        assert_eq!(
            "UPDATE_PCT=10,200".parse::<Vary>().unwrap_err().to_string(),
            "command line: `UPDATE_PCT=200` is not a whole number from 0 to 100"
        );
    }

    #[test]
    fn refuses_bad_thread_lists() {
        for text in ["", "1,,2", "0", "1-4", "4097", "2,2"] {
            assert!(text.parse::<ThreadList>().is_err(), "{text}");
        }
        assert_eq!("1, 2,4".parse::<ThreadList>().unwrap().to_string(), "1,2,4");
    }

    #[test]
    fn doublings_may_be_left_out_of_every_list() {
        for text in ["1..8", "1,2,…,8", "1,2,...,8", "1,2,4,8"] {
            assert_eq!(text.parse::<ThreadList>().unwrap().0, [1, 2, 4, 8], "{text}");
        }
        assert_eq!("WORK_UNIT=4..64".parse::<Vary>().unwrap().values, ["4", "8", "16", "32", "64"]);
        assert_eq!("REDO_STRESS=LITE,HEAVY".parse::<Vary>().unwrap().values, ["LITE", "HEAVY"]);
        for (text, message, hint) in [
            ("WORK_UNIT=64..4", "the range from 64 to 4 has nothing in it", "write `4..64`"),
            (
                "WORK_UNIT=1,3,…,9",
                "3 is not the double of 1, so it is not clear what `…` stands for",
                "write every number, or double them as in `1,2,…,64`",
            ),
            (
                "UPDATE_PCT=0..50",
                "`0` cannot begin or end a range",
                "a range doubles from whole number to whole number, from 1 on: `1..64`; write other values one by one",
            ),
            (
                "WORK_UNIT=4..8192..9",
                "`8192…9` cannot begin or end a range",
                "a range doubles from whole number to whole number, from 1 on: `1..64`; write other values one by one",
            ),
        ] {
            let error = text.parse::<Vary>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
        }
        assert!("WORK_UNIT=1..4294967295".parse::<Vary>().is_err(), "more than the parameter accepts");
    }

    #[test]
    fn refuses_axes_that_meet_or_never_end() {
        let vary = || "WORK_UNIT=4,16".parse::<Vary>().unwrap();
        let error = Axes::new(None, vec![vary(), vary()]).unwrap_err();
        assert_eq!(error.to_string(), "`WORK_UNIT` varies twice");
        let hundred = (1..=100).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let threads = hundred.parse().unwrap();
        let work_units = format!("WORK_UNIT={hundred}").parse().unwrap();
        let error = Axes::new(Some(threads), vec![work_units]).unwrap_err();
        assert_eq!(error.to_string(), "the sweep would have more than 1000 steps");
    }
}
