//! Programs as procedures, in the words of a dialect.

use std::marker::PhantomData;

use super::program::procedure_name as name_of;
use super::program::{ANSWER, Bank, Condition, Local, Parameter, Program, Step, Text, Value, Whole};
use super::statements::{Gives, Statement};
use crate::SqlText;
use model::workload::MinimalStandard;
use model::workload::orders::TransactionKind;

/// What begins the mark of every procedure of ours.
pub const MARK: &str = "Plimsoll order entry, version ";

/// What a procedure is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Its bare name.
    pub name: String,
    /// What it is called with: names, and whether each is text.
    pub parameters: Vec<(String, bool)>,
    /// Its whole numbers, each 0 at first but for those of `begins`.
    pub wholes: Vec<String>,
    /// Variables that begin with the value of a parameter.
    pub begins: Vec<(String, String)>,
    /// Where it keeps rows: names, and how many columns. How many rows it keeps is the whole number of that name.
    pub banks: Vec<(String, usize)>,
    /// Whether it may pause.
    pub pauses: bool,
    /// What it answers, in the order of the row.
    pub answer: Vec<String>,
    /// Its steps, a line each.
    pub body: Vec<String>,
}

/// A procedure of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    /// Its bare name.
    pub name: String,
    /// What makes it.
    pub text: String,
    /// What says that it is ours, and which version: its text decides on that.
    pub mark: String,
}

impl Procedure {
    /// The procedure for transactions of this kind on data in a namespace, in a dialect.
    pub fn of<W: SqlText>(kind: TransactionKind, namespace: &str) -> Self {
        let parts = parts::<W>(kind, namespace);
        let unmarked = W::frame(namespace, &parts, MARK);
        let version = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, unmarked.as_bytes());
        let mark = format!("{MARK}{version:016x}");
        Self { name: name_of(kind), text: W::frame(namespace, &parts, &mark), mark }
    }

    /// Those for all kinds.
    pub fn all<W: SqlText>(namespace: &str) -> Vec<Self> {
        TransactionKind::ALL.into_iter().map(|kind| Self::of::<W>(kind, namespace)).collect()
    }
}

/// The names of all procedures, as a list of SQL.
pub fn names() -> String {
    TransactionKind::ALL.map(|kind| format!("'{}'", name_of(kind))).join(", ")
}

fn parts<W: SqlText>(kind: TransactionKind, namespace: &str) -> Parts {
    let program = Program::of(kind);
    let mut writer = Writer::<W>::new(namespace);
    writer.steps(program.steps);
    let Writer { lines, locals, banks, .. } = writer;
    let is_given = |local: &Local| program.wholes.contains(local);
    let own = locals.iter().filter(|local| !is_given(local)).map(|local| variable(*local));
    let counts = banks.iter().map(|(bank, _)| bank_name(*bank));
    let mut wholes: Vec<String> = own.chain(counts).collect();
    let answer: Vec<String> = ANSWER.iter().map(|name| format!("v_{name}")).collect();
    wholes.retain(|name| !answer.contains(name));
    let mut begins = vec![("v_random".to_owned(), "p_random".to_owned())];
    if program.pauses() {
        begins.push(("v_lengths".to_owned(), "p_lengths".to_owned()));
    }
    let named = |parameter: Parameter| match parameter {
        Parameter::Random => ("p_random".to_owned(), false),
        Parameter::Lengths => ("p_lengths".to_owned(), false),
        Parameter::LeastPause => ("p_least_us".to_owned(), false),
        Parameter::MostPause => ("p_most_us".to_owned(), false),
        Parameter::MeanPause => ("p_mean_us".to_owned(), false),
        Parameter::Whole(local) => (variable(local), false),
        Parameter::Text(text) => (text_variable(text), true),
    };
    Parts {
        name: name_of(kind),
        parameters: program.parameters().map(named).collect(),
        wholes,
        begins,
        banks: banks.into_iter().map(|(bank, width)| (bank_name(bank), width)).collect(),
        pauses: program.pauses(),
        answer,
        body: lines,
    }
}

fn snake(name: &str) -> String {
    let mut words = String::from("v");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// A variable has its name from what it holds, and no column is called so.
fn variable(local: Local) -> String {
    snake(&format!("{local:?}"))
}

fn text_variable(text: Text) -> String {
    snake(&format!("{text:?}")) + "_text"
}

fn bank_name(bank: Bank) -> String {
    snake(&format!("{bank:?}"))
}

/// Writes steps.
struct Writer<'n, W> {
    namespace: &'n str,
    words: PhantomData<W>,
    lines: Vec<String>,
    depth: usize,
    /// Nothing was asked since the last commit, whichever way was taken.
    is_clean: bool,
    locals: Vec<Local>,
    /// Banks that rows are kept in, and how many of their columns.
    banks: Vec<(Bank, usize)>,
}

impl<'n, W: SqlText> Writer<'n, W> {
    fn new(namespace: &'n str) -> Self {
        let (lines, locals, banks) = (Vec::new(), Vec::new(), Vec::new());
        Self { namespace, words: PhantomData, lines, depth: 0, is_clean: true, locals, banks }
    }

    fn line(&mut self, text: &str) {
        self.lines.push(format!("{}{text}", "  ".repeat(self.depth)));
    }

    fn lines(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(line));
    }

    fn assign(&mut self, variable: &str, to: &str) {
        self.line(&W::assign(variable, to));
    }

    fn count(&mut self, variable: &str, by: &str) {
        self.assign(variable, &format!("{variable} + {by}"));
    }

    fn local(&mut self, local: Local) -> String {
        if !self.locals.contains(&local) {
            self.locals.push(local);
        }
        variable(local)
    }

    fn bank(&mut self, bank: Bank, width: usize) -> String {
        match self.banks.iter_mut().find(|(known, _)| *known == bank) {
            Some((_, known)) => *known = width.max(*known),
            None => self.banks.push((bank, width)),
        }
        bank_name(bank)
    }

    fn whole(&mut self, whole: Whole) -> String {
        match whole {
            Whole::Number(number) => number.to_string(),
            Whole::Of(local) => self.local(local),
            Whole::Rows(bank) => self.bank(bank, 0),
        }
    }

    fn value(&mut self, value: Value) -> String {
        match value {
            Value::Whole(whole) => self.whole(whole),
            Value::Word(word) => format!("'{word}'"),
            Value::Chosen(text) => text_variable(text),
        }
    }

    fn condition(&mut self, condition: Condition) -> String {
        let (one, sign, other) = match condition {
            Condition::Exceeds(one, other) => (one, ">", other),
            Condition::Is(one, other) => (one, "=", other),
        };
        format!("{} {sign} {}", self.whole(one), self.whole(other))
    }

    fn steps(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
    }

    /// Steps that may be left out.
    fn nested(&mut self, steps: &[Step]) {
        let was_clean = self.is_clean;
        self.depth += 1;
        self.steps(steps);
        self.depth -= 1;
        self.is_clean &= was_clean;
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Begin => {
                if let Some(begin) = W::begin_changes(self.is_clean) {
                    self.line(begin);
                }
            }
            Step::Commit => {
                self.line(W::commit());
                self.count("v_commits", "1");
                self.is_clean = true;
            }
            Step::GiveUp => {
                self.line("ROLLBACK;");
                self.count("v_rollbacks", "1");
                self.line(W::leave());
            }
            Step::Pause => self.pause(),
            Step::Draw { into, least, most } => {
                let into = self.local(*into);
                self.draw("v_random");
                let numbers = match most {
                    Whole::Number(most) => (most - least + 1).to_string(),
                    most if *least == 1 => format!("GREATEST({}, 1)", self.whole(*most)),
                    most => format!("GREATEST({} - {least} + 1, 1)", self.whole(*most)),
                };
                let drawn = format!("MOD(v_random, {numbers})");
                self.assign(&into, &if *least == 0 { drawn } else { format!("{least} + {drawn}") });
            }
            Step::Set(into, to) => {
                let (into, to) = (self.local(*into), self.whole(*to));
                self.assign(&into, &to);
            }
            Step::Add(to, what) => {
                let (to, what) = (self.local(*to), self.whole(*what));
                self.count(&to, &what);
            }
            Step::Pick { from, row, column, into } => {
                let (into, row, bank) = (self.local(*into), self.whole(*row), self.bank(*from, column + 1));
                let kept = W::kept(&bank, column + 1, &row);
                self.line(&format!("IF {row} <= {bank} THEN"));
                self.line(&format!("  {}", W::assign(&into, &format!("COALESCE({kept}, 0)"))));
                self.line("ELSE");
                self.line(&format!("  {}", W::assign(&into, "0")));
                self.line("END IF;");
            }
            Step::Keep(into, locals) => {
                let values = locals.map(|local| self.local(local));
                let bank = self.bank(*into, values.len());
                self.lines(&W::keep_row(&bank, &values));
            }
            Step::Query(statement, values, into) => {
                let columns = statement.columns();
                let (bank, query) = (self.bank(*into, columns.len()), self.statement(*statement, values, ""));
                self.lines(&W::keep_rows(&query, &bank, columns));
                self.count("v_statements", "1");
                self.count("v_rows_read", &bank);
                self.is_clean = false;
            }
            Step::Change(statement, values) => {
                let change = self.statement(*statement, values, "");
                self.line(&format!("{change};"));
                let changed = self.local(Local::Changed);
                self.line(&W::count_changed(&changed));
                self.count("v_statements", "1");
                self.count("v_rows_changed", &changed);
                self.is_clean = false;
            }
            Step::Insert(statement, values, key) => {
                let key = self.local(*key);
                let insertion = self.statement(*statement, values, &key);
                self.line(&format!("{insertion};"));
                if let Some(given) = W::given(&key) {
                    self.line(&given);
                }
                self.count("v_statements", "1");
                self.count("v_rows_changed", "1");
                self.is_clean = false;
            }
            Step::If(condition, steps) => {
                let condition = self.condition(*condition);
                self.line(&format!("IF {condition} THEN"));
                self.nested(steps);
                self.line("END IF;");
            }
            Step::Times(times, steps) => {
                let (counter, times) = (self.local(Local::Counter), self.whole(*times));
                let (begin, end) = W::repeated();
                self.assign(&counter, "0");
                self.line(&format!("WHILE {counter} < {times} {begin}"));
                self.line(&format!("  {}", W::assign(&counter, &format!("{counter} + 1"))));
                self.nested(steps);
                self.line(end);
            }
            Step::Do(steps) => self.steps(steps),
        }
    }

    fn draw(&mut self, state: &str) {
        let (multiplier, modulus) = (MinimalStandard::MULTIPLIER, MinimalStandard::MODULUS);
        self.assign(state, &format!("MOD({state} * {multiplier}, {modulus})"));
    }

    fn pause(&mut self) {
        self.line("IF p_most_us + p_mean_us > 0 THEN");
        self.depth += 1;
        self.draw("v_lengths");
        let unit = format!("(v_lengths / {}.0)", MinimalStandard::MODULUS);
        let length = format!("p_least_us + (p_most_us - p_least_us) * {unit} - p_mean_us * LN{unit}");
        self.assign("v_length", &length);
        self.lines(&W::sleep());
        self.depth -= 1;
        self.line("END IF;");
    }

    /// A statement with its values in their places; `key` is where an insertion's key goes.
    fn statement(&mut self, statement: Statement, values: &[Value], key: &str) -> String {
        debug_assert_eq!(statement.gives() == Gives::Key, !key.is_empty(), "{statement:?}");
        let values: Vec<String> = values.iter().map(|value| self.value(*value)).collect();
        statement.written::<W>(self.namespace, &|number| values[number - 1].clone(), &|column| W::giving(column, key))
    }
}
