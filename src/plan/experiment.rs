//! An experiment's steps: every combination of values put into its command and scripts, and the turns in which they are measured.

use std::collections::BTreeMap;

use super::alternating;
use model::config::experiment::{Entry, Experiment, ExperimentError, is_hidden};
use model::units::{Nanos, shell_word};

/// More turns than this are no evening's, and were hardly meant.
pub const MAX_TURNS: usize = 2_000;

/// What an experiment does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentPlan {
    /// What stands above the page.
    pub title: Option<String>,
    /// How long one sitting may take.
    pub budget: Option<Nanos>,
    /// Shell script before the first step.
    pub before: Option<String>,
    /// Shell script after the last one.
    pub after: Option<String>,
    /// Every combination.
    pub steps: Vec<Step>,
    /// Which of them is measured when.
    pub turns: Vec<Turn>,
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// From 1.
    pub number: u32,
    /// Line of the file on which its entry begins.
    pub line: usize,
    /// What the entry is called: steps of one name have one load, with other values.
    pub load: String,
    /// The words of its command, without the program's.
    pub words: Vec<String>,
    /// Tags of its runs.
    pub tags: BTreeMap<String, String>,
    /// How many times it is measured.
    pub repeats: u32,
    /// How long nothing is done before it.
    pub pause: Nanos,
    /// Whether the kernel is made to forget what it has cached.
    pub drop_caches: bool,
    /// Shell script before it.
    pub before: Option<String>,
    /// Shell script after it.
    pub after: Option<String>,
}

/// A step that is measured once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// From 1.
    pub round: u32,
    /// Index of the step.
    pub step: usize,
}

impl ExperimentPlan {
    /// Of what was asked for in the file `file`. Every other round goes backwards, so that what drifts does so for all alike.
    ///
    /// # Errors
    /// If a name in braces has no value, two combinations have one name and the same tags, or there are more than [`MAX_TURNS`] turns.
    pub fn of(experiment: Experiment, file: &str) -> Result<Self, ExperimentError> {
        let mut steps: Vec<Step> = Vec::new();
        for entry in &experiment.entries {
            let all: usize =
                entry.axes.iter().map(|(_, values)| values.len()).fold(entry.cases.len(), usize::saturating_mul);
            let measured = all.saturating_mul(entry.around.repeats as usize);
            let before: usize = steps.iter().map(|step: &Step| step.repeats as usize).sum();
            if before.saturating_add(measured) > MAX_TURNS {
                let problem = format!("with this step there are more than {MAX_TURNS} runs");
                let hint = "leave out values that tell little, or repeats".to_owned();
                return Err(ExperimentError { file: file.to_owned(), line: entry.line, problem, hint });
            }
            for values in combinations(entry) {
                let number = u32::try_from(steps.len() + 1).unwrap_or(u32::MAX);
                let step = step(entry, number, &values).map_err(|name| no_value(file, entry, &values, &name))?;
                if let Some(same) = steps.iter().find(|known| known.name() == step.name()) {
                    let problem = format!("`{}` stands in line {} too", step.name(), same.line);
                    let hint = "give the steps other names, or a value that tells them apart and is a tag".to_owned();
                    return Err(ExperimentError { file: file.to_owned(), line: entry.line, problem, hint });
                }
                steps.push(step);
            }
        }
        let rounds = steps.iter().map(|step| step.repeats).max().unwrap_or(1);
        let all: Vec<usize> = (0..steps.len()).collect();
        let turns = alternating(&all, rounds).into_iter().map(|(round, step)| Turn { round, step });
        let turns = turns.filter(|turn| turn.round <= steps[turn.step].repeats).collect();
        let Experiment { title, budget, before, after, .. } = experiment;
        Ok(Self { title, budget, before, after, steps, turns })
    }

    /// Whether runs of one are runs of the other: nothing differs but the title, the budget, and where entries stand in the file.
    pub fn measures_the_same(&self, other: &Self) -> bool {
        let alike = |plan: &Self| {
            let steps = plan.steps.iter().map(|step| Step { line: 0, ..step.clone() });
            (plan.before.clone(), plan.after.clone(), steps.collect::<Vec<_>>())
        };
        alike(self) == alike(other)
    }
}

impl Step {
    /// `slob sweep vm=D8s_v3 disk=p30x2`.
    pub fn name(&self) -> String {
        let tags = self.tags.iter().map(|(name, value)| format!(" {name}={value}"));
        [self.load.clone()].into_iter().chain(tags).collect()
    }
}

/// Whether a step that takes `next` can be begun after `spent` of a budget.
pub fn fits(budget: Option<Nanos>, spent: Nanos, next: Nanos) -> bool {
    budget.is_none_or(|budget| spent.0.saturating_add(next.0) <= budget.0)
}

/// Each case with each value of the first axis, of these each with each value of the next.
fn combinations(entry: &Entry) -> Vec<BTreeMap<String, String>> {
    let with = |known: Vec<BTreeMap<String, String>>, (name, values): &(String, Vec<String>)| {
        let each = |case: &BTreeMap<String, String>| {
            let with_value = |value: &String| {
                let mut case = case.clone();
                case.insert(name.clone(), value.clone());
                case
            };
            values.iter().map(with_value).collect::<Vec<_>>()
        };
        known.iter().flat_map(each).collect()
    };
    entry.axes.iter().fold(entry.cases.clone(), with)
}

/// The step of these values; an error is the name that has none.
fn step(entry: &Entry, number: u32, values: &BTreeMap<String, String>) -> Result<Step, String> {
    let script = |script: &Option<String>| script.as_ref().map(|script| filled(script, values, shell_word)).transpose();
    let plain = |text: &String| filled(text, values, str::to_owned);
    let around = &entry.around;
    let mut tags = BTreeMap::new();
    for (name, value) in &around.tags {
        tags.insert(name.clone(), plain(value)?);
    }
    tags.extend(values.clone());
    tags.retain(|name, _| !is_hidden(name));
    Ok(Step {
        number,
        line: entry.line,
        load: entry.name.clone(),
        words: entry.words.iter().map(plain).collect::<Result<_, _>>()?,
        tags,
        repeats: around.repeats,
        pause: around.pause,
        drop_caches: around.drop_caches,
        before: script(&around.before)?,
        after: script(&around.after)?,
    })
}

/// `text` with each name in braces replaced by its value, written as `write` does it. `{{` and `}}` are braces; so is one that no
/// name follows, and `${` is a shell's. An error is the name that has no value.
fn filled(text: &str, values: &BTreeMap<String, String>, write: fn(&str) -> String) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            out.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let name = from.strip_prefix('{').and_then(|from| from.split_once('}')).map(|(name, _)| name);
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
        };
        match name.filter(is_name).filter(|_| !out.ends_with('$')) {
            Some(name) => {
                out.push_str(&write(values.get(name).ok_or(name)?));
                rest = &from[name.len() + 2..];
            }
            None => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn no_value(file: &str, entry: &Entry, values: &BTreeMap<String, String>, name: &str) -> ExperimentError {
    let known: Vec<String> = values.keys().map(|name| format!("`{name}`")).collect();
    let hint = if known.is_empty() {
        format!("give it in `cases` or `matrix`, or write `{{{{{name}}}}}` for braces")
    } else {
        format!("there are {}; for braces write `{{{{{name}}}}}`", known.join(", "))
    };
    let problem = format!("`{{{name}}}` in the step that begins here has no value");
    ExperimentError { file: file.to_owned(), line: entry.line, problem, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<ExperimentPlan, ExperimentError> {
        ExperimentPlan::of(Experiment::parse("e.toml", text)?, "e.toml")
    }

    const TWO: &str = "[each]\nrepeats = 2\nbefore = \"echo {disk} ${HOME} {{x}} {\"\n\
                       [[step]]\nrun = \"slob run -t {threads} --target {_at}\"\nmatrix = { threads = [1, 2] }\n\
                       cases = [{ disk = \"p 30\", _at = \"sim:\" }, { disk = \"p60\", _at = \"dir:x\" }]\n\
                       [[step]]\nrun = \"io run\"\nrepeats = 1\nbefore = \"\"\n";

    #[test]
    fn every_case_is_multiplied_by_every_value_and_put_into_words_and_scripts() {
        let plan = plan(TWO).unwrap();
        let names: Vec<String> = plan.steps.iter().map(Step::name).collect();
        let expected = [
            "slob run disk=p 30 threads=1",
            "slob run disk=p 30 threads=2",
            "slob run disk=p60 threads=1",
            "slob run disk=p60 threads=2",
            "io run",
        ];
        assert_eq!(names, expected);
        assert_eq!(plan.steps[3].words, ["slob", "run", "-t", "2", "--target", "dir:x"]);
        assert_eq!(plan.steps[0].before.as_deref(), Some("echo 'p 30' ${HOME} {x} {"));
        assert_eq!(plan.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn every_other_round_goes_backwards_and_has_the_steps_that_are_repeated() {
        let turns: Vec<(u32, usize)> = plan(TWO).unwrap().turns.iter().map(|turn| (turn.round, turn.step)).collect();
        assert_eq!(turns, [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 2), (2, 1), (2, 0)]);
    }

    #[test]
    fn a_name_without_a_value_and_far_too_many_runs_are_errors() {
        let error = plan("\n[[step]]\nrun = \"slob run {treads}\"\nmatrix = { threads = [1] }").unwrap_err();
        assert_eq!((error.line, error.problem.contains("`{treads}`")), (2, true), "{error}");
        assert!(error.hint.contains("`threads`") && error.hint.contains("`{{treads}}`"), "{}", error.hint);
        let values: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        let values = values.join(", ");
        let error = plan(&format!("[[step]]\nrun = \"x\"\nrepeats = 3\nmatrix = {{ a = [{values}], b = [{values}] }}"));
        assert!(error.unwrap_err().problem.contains("more than 2000 runs"));
        let named = |updates: u32| {
            format!(
                "[[step]]\nname = \"a\"\nrun = \"x UPDATE_PCT={updates}\"\nmatrix = {{ t = [8], _u = [{updates}] }}\n"
            )
        };
        let error = plan(&(named(0) + &named(50))).unwrap_err();
        assert_eq!((error.line, error.problem.as_str()), (5, "`a t=8` stands in line 1 too"), "{error}");
    }

    #[test]
    fn a_title_and_a_budget_change_nothing_that_is_measured() {
        let plan_of = |head: &str, threads: u32| {
            plan(&format!("{head}\n[[step]]\nrun = \"slob run -t {{t}}\"\nmatrix = {{ t = [{threads}] }}")).unwrap()
        };
        let first = plan_of("", 1);
        assert!(first.measures_the_same(&plan_of("title = \"x\"\nbudget = \"1h\"\n", 1)));
        assert!(!first.measures_the_same(&plan_of("", 2)) && !first.measures_the_same(&plan_of("before = \"x\"", 1)));
    }

    #[test]
    fn a_step_is_begun_if_it_ends_within_the_budget() {
        let [hour, half] = [Nanos::seconds(3_600), Nanos::seconds(1_800)];
        assert!(fits(None, hour, hour) && fits(Some(hour), half, half));
        assert!(!fits(Some(hour), Nanos(half.0 + 1), half) && !fits(Some(hour), Nanos(u64::MAX), half));
    }
}
