//! Reading the form: TOML, checked so that whatever is wrong is an error with its line.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::config::Tag;
use crate::units::{Nanos, shell_split};

/// Where the form is explained.
const FORM: &str = "docs/recipes/compare.md shows the form, key by key";
/// Tags by which runs of an experiment, or of loads beside each other, are known.
const RESERVED: [&str; 2] = ["experiment", "beside"];
/// The program's name, which may stand before a command.
const PROGRAM: &str = "plimsoll";

type Named<T> = BTreeMap<Spanned<String>, Spanned<T>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Option<String>,
    budget: Option<Spanned<Value>>,
    before: Option<String>,
    after: Option<String>,
    #[serde(default)]
    each: WrittenAround,
    #[serde(default)]
    matrix: Named<Vec<Value>>,
    #[serde(default)]
    step: Vec<Spanned<WrittenStep>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAround {
    repeats: Option<Spanned<i64>>,
    pause: Option<Spanned<Value>>,
    drop_caches: Option<bool>,
    before: Option<String>,
    after: Option<String>,
    #[serde(default)]
    tags: Named<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    name: Option<String>,
    run: Spanned<String>,
    #[serde(default)]
    cases: Vec<Spanned<Named<Value>>>,
    #[serde(default)]
    matrix: Named<Vec<Value>>,
    repeats: Option<Spanned<i64>>,
    pause: Option<Spanned<Value>>,
    drop_caches: Option<bool>,
    before: Option<String>,
    after: Option<String>,
    #[serde(default)]
    tags: Named<Value>,
}

impl Experiment {
    /// Reads `text`, which is the file `file`.
    ///
    /// # Errors
    /// If it is not of the form, or says what cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self, ExperimentError> {
        read(file, text)
    }
}

fn read(file: &str, text: &str) -> Result<Experiment, ExperimentError> {
    let source = Source { file, text };
    let written: Written = toml::from_str(text).map_err(|problem| {
        let at = problem.span().unwrap_or(0..0);
        source.error(&at, problem.message().trim_end().replace('\n', "; "), FORM)
    })?;
    if written.step.is_empty() {
        return source.fail(&(0..0), "there is no `[[step]]`".to_owned(), "add one with `run = \"slob run 8\"`");
    }
    let budget = written.budget.as_ref().map(|budget| source.time("budget", budget)).transpose()?;
    if budget == Some(Nanos(0)) {
        let at = written.budget.map_or(0..0, |budget| budget.span());
        return source.fail(&at, "`budget` is 0: nothing could be done".to_owned(), "leave it out, or write `\"6h\"`");
    }
    let each = source.around(
        &Around { repeats: 1, pause: Nanos(0), drop_caches: false, before: None, after: None, tags: BTreeMap::new() },
        written.each,
    )?;
    let shared = source.axes(&written.matrix)?;
    let are_named: Vec<bool> = written.step.iter().map(|step| step.get_ref().name.is_some()).collect();
    let entries = written.step.into_iter().map(|step| source.entry(step, &each, &shared));
    let entries = entries.collect::<Result<Vec<Entry>, _>>()?;
    check_names(file, &entries, &are_named)?;
    let Written { title, before, after, .. } = written;
    Ok(Experiment { title, budget, before, after, entries })
}

/// Steps of one name are ranked against each other, which nobody means who did not name them.
fn check_names(file: &str, entries: &[Entry], are_named: &[bool]) -> Result<(), ExperimentError> {
    let twice = entries.iter().enumerate().find(|(at, entry)| {
        let others = entries[..*at].iter().zip(are_named).filter(|(other, _)| other.name == entry.name);
        others.into_iter().any(|(_, is_named)| !is_named || !are_named[*at])
    });
    let Some((_, entry)) = twice else { return Ok(()) };
    let problem = format!("two steps are called `{}`, and not both by their `name`", entry.name);
    let hint = "give each a `name`; loads of one name are ranked against each other".to_owned();
    Err(ExperimentError { file: file.to_owned(), line: entry.line, problem, hint })
}

/// The file, for whatever is wrong with it.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }

    fn error(&self, span: &Range<usize>, problem: String, hint: &str) -> ExperimentError {
        let (file, line) = (self.file.to_owned(), self.line(span.start));
        ExperimentError { file, line, problem, hint: hint.to_owned() }
    }

    fn fail<T>(&self, span: &Range<usize>, problem: String, hint: &str) -> Result<T, ExperimentError> {
        Err(self.error(span, problem, hint))
    }

    /// Seconds, or a time with a unit.
    fn time(&self, key: &str, written: &Spanned<Value>) -> Result<Nanos, ExperimentError> {
        let text = match written.get_ref() {
            Value::Integer(seconds) => format!("{seconds}s"),
            Value::Float(seconds) => format!("{seconds}s"),
            Value::String(text) if text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                format!("{}s", text.trim())
            }
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let read = text.parse::<Nanos>();
        read.map_err(|problem| {
            let problem = format!("`{key}` is not a time: {problem}");
            self.error(&written.span(), problem, "write seconds as a number, or `\"90s\"`, `\"10m\"`, `\"6h\"`")
        })
    }

    /// A value as it stands in commands and tags.
    fn value(&self, span: &Range<usize>, name: &str, value: &Value) -> Result<String, ExperimentError> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
                let problem = format!("a value of `{name}` is neither text nor a number");
                return self.fail(span, problem, "write one value: `\"read\"`, `64`, `true`");
            }
        };
        let is_tag = is_hidden(name) || format!("{name}={text}").parse::<Tag>().is_ok();
        if !is_tag || text.chars().any(char::is_control) {
            let hint = "a value that becomes a tag needs a letter, and no line breaks. A name that begins with `_` \
                does not become a tag";
            return self.fail(span, format!("`{name}={text}` cannot be a tag"), hint);
        }
        Ok(text)
    }

    fn name(&self, name: &Spanned<String>) -> Result<String, ExperimentError> {
        let text = name.get_ref();
        let mut letters = text.chars();
        let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter)) {
            let hint = "a name has letters, digits, `_`, `-` and `.`, and begins with a letter or `_`";
            return self.fail(&name.span(), format!("`{text}` cannot be the name of a value"), hint);
        }
        if RESERVED.iter().any(|known| text == known || text.starts_with(&format!("{known}."))) {
            let hint = "call it otherwise: runs of an experiment are known by tags of this name";
            return self.fail(&name.span(), format!("`{text}` is a name of the program's own"), hint);
        }
        Ok(text.clone())
    }

    /// In the order in which they stand.
    fn axes(&self, written: &Named<Vec<Value>>) -> Result<Vec<(String, Vec<String>)>, ExperimentError> {
        let mut axes: Vec<(&Spanned<String>, &Spanned<Vec<Value>>)> = written.iter().collect();
        axes.sort_by_key(|(name, _)| name.span().start);
        let axis = |(name, values): (&Spanned<String>, &Spanned<Vec<Value>>)| {
            let (span, name) = (values.span(), self.name(name)?);
            let read = |value: &Value| self.value(&span, &name, value);
            let texts = values.get_ref().iter().map(read).collect::<Result<Vec<String>, _>>()?;
            if texts.is_empty() {
                let hint = "give it one value at least, or leave it out";
                return self.fail(&span, format!("`{name}` has no values"), hint);
            }
            if let Some(twice) = texts.iter().enumerate().find(|(at, text)| texts[..*at].contains(text)) {
                let hint = "leave one of them out; `repeats` measures a step more than once";
                return self.fail(&span, format!("`{name}` has the value `{}` twice", twice.1), hint);
            }
            Ok((name, texts))
        };
        axes.into_iter().map(axis).collect()
    }

    fn tags(&self, written: &Named<Value>) -> Result<BTreeMap<String, String>, ExperimentError> {
        let tag = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
            let name = self.name(name)?;
            let text = self.value(&value.span(), &name, value.get_ref())?;
            Ok((name, text))
        };
        written.iter().map(tag).collect()
    }

    /// What is written, and else what `outer` says.
    fn around(&self, outer: &Around, written: WrittenAround) -> Result<Around, ExperimentError> {
        let repeats = match &written.repeats {
            None => outer.repeats,
            Some(repeats) => {
                let known =
                    u32::try_from(*repeats.get_ref()).ok().filter(|repeats| (1..=MAX_REPEATS).contains(repeats));
                known.ok_or_else(|| {
                    let problem = format!("`repeats` is {}", repeats.get_ref());
                    self.error(&repeats.span(), problem, &format!("a step is measured 1 to {MAX_REPEATS} times"))
                })?
            }
        };
        let pause = written.pause.as_ref().map_or(Ok(outer.pause), |pause| self.time("pause", pause))?;
        let mut tags = outer.tags.clone();
        tags.extend(self.tags(&written.tags)?);
        Ok(Around {
            repeats,
            pause,
            drop_caches: written.drop_caches.unwrap_or(outer.drop_caches),
            before: written.before.or_else(|| outer.before.clone()),
            after: written.after.or_else(|| outer.after.clone()),
            tags,
        })
    }

    fn entry(
        &self,
        written: Spanned<WrittenStep>,
        each: &Around,
        shared: &[(String, Vec<String>)],
    ) -> Result<Entry, ExperimentError> {
        let line = self.line(written.span().start);
        let WrittenStep { name, run, cases, matrix, repeats, pause, drop_caches, before, after, tags } =
            written.into_inner();
        let Some(mut words) = shell_split(run.get_ref()) else {
            let hint = "close the quotation mark; a command is split into words as a shell does it";
            return self.fail(&run.span(), "`run` has a quotation mark that is not closed".to_owned(), hint);
        };
        if words.first().is_some_and(|first| first == PROGRAM) {
            words.remove(0);
        }
        if words.is_empty() {
            return self.fail(&run.span(), "`run` is empty".to_owned(), "write a load: `run = \"slob run 8\"`");
        }
        let axes: Vec<(String, Vec<String>)> = shared.iter().cloned().chain(self.axes(&matrix)?).collect();
        let mut read = Vec::new();
        for case in &cases {
            let values = self.tags(case.get_ref())?;
            if let Some(name) = axes.iter().map(|(name, _)| name).find(|name| values.contains_key(*name)) {
                let hint = "give it in one of the two";
                return self.fail(&case.span(), format!("`{name}` is in `cases` and in a matrix"), hint);
            }
            if read.contains(&values) {
                let hint = "leave one of them out; `repeats` measures a step more than once";
                return self.fail(&case.span(), "this case stands here twice".to_owned(), hint);
            }
            read.push(values);
        }
        if let Some(twice) = matrix.keys().find(|name| shared.iter().any(|(known, _)| known == name.get_ref())) {
            let problem = format!("`{}` is in the matrix of the file and of the step", twice.get_ref());
            return self.fail(&twice.span(), problem, "give it once: in the file's `[matrix]`, or in each step's");
        }
        if read.is_empty() {
            read.push(BTreeMap::new());
        }
        let own = WrittenAround { repeats, pause, drop_caches, before, after, tags };
        let around = self.around(each, own)?;
        let name = name.unwrap_or_else(|| words.iter().take(2).cloned().collect::<Vec<_>>().join(" "));
        Ok(Entry { line, name, words, cases: read, axes, around })
    }
}

/// What is wrong with an experiment's file, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ExperimentError {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// Most times that a step is measured.
pub const MAX_REPEATS: u32 = 99;

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// What stands above the page, if it says.
    pub title: Option<String>,
    /// How long one sitting may take; no step is begun that would end later.
    pub budget: Option<Nanos>,
    /// Shell script before the first step.
    pub before: Option<String>,
    /// Shell script after the last one.
    pub after: Option<String>,
    /// Its steps in the order in which they stand, at least one.
    pub entries: Vec<Entry>,
}

/// One `[[step]]`: a load, and the values that it is measured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Line on which it begins, from 1.
    pub line: usize,
    /// What it is called: its name, or the words of its command.
    pub name: String,
    /// The words of its command, without the program's; names in braces still stand in them.
    pub words: Vec<String>,
    /// Values that belong together, by their names; one empty case where there is none.
    pub cases: Vec<BTreeMap<String, String>>,
    /// Values that each case is multiplied by: those of the file, then the step's own.
    pub axes: Vec<(String, Vec<String>)>,
    /// What surrounds each of its steps.
    pub around: Around,
}

/// What surrounds a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// How many times it is measured, from 1.
    pub repeats: u32,
    /// How long nothing is done before it, unless nothing was done before that.
    pub pause: Nanos,
    /// Whether the kernel is made to forget what it has cached.
    pub drop_caches: bool,
    /// Shell script before it.
    pub before: Option<String>,
    /// Shell script after it.
    pub after: Option<String>,
    /// Tags of its runs besides the values.
    pub tags: BTreeMap<String, String>,
}

/// Whether a value of this name is no tag of the runs: its name begins with `_`.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('_')
}
