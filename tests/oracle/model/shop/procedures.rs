//! Procedures of transactions: kept by their source, and executed from it, as far as ours use the language. Whatever else stands in
//! one ends the test.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::{Chars, Lines};

use super::{Cell, Shop, name_in};
use crate::model::USER;
use crate::responder::{Answer, Call, Column, Kind, Value, Way};

/// Steps, as their lines contain each other.
enum Step {
    Line(String),
    If(String, Vec<Step>, Vec<Step>),
    While(String, Vec<Step>),
    For(String, Vec<Step>),
}

/// Steps up to a line that begins with one of these, which is gone too.
fn steps(lines: &mut Lines<'_>, ends: &[&str]) -> (Vec<Step>, String) {
    let mut steps = Vec::new();
    loop {
        let line = lines.next().expect("a block has an end").trim();
        if ends.contains(&line) {
            return (steps, line.to_owned());
        }
        let inner = |begin: &str, end: &str| Some(line.strip_prefix(begin)?.strip_suffix(end)?.to_owned());
        steps.push(if let Some(condition) = inner("IF ", " THEN") {
            let (then, end) = self::steps(lines, &["ELSE", "END IF;"]);
            let otherwise = if end == "ELSE" { self::steps(lines, &["END IF;"]).0 } else { Vec::new() };
            Step::If(condition, then, otherwise)
        } else if let Some(condition) = inner("WHILE ", " LOOP") {
            Step::While(condition, self::steps(lines, &["END LOOP;"]).0)
        } else if let Some(query) = inner("FOR v_record IN (", ") LOOP") {
            Step::For(query, self::steps(lines, &["END LOOP;"]).0)
        } else {
            Step::Line(line.trim_end_matches(';').to_owned())
        });
    }
}

/// What a call keeps.
#[derive(Default)]
struct Frame {
    variables: BTreeMap<String, Cell>,
    /// Rows that are kept, by the name of their column and their number.
    kept: BTreeMap<(String, i64), i64>,
    /// The row of a loop.
    record: BTreeMap<String, i64>,
    changed: i64,
}

impl Frame {
    fn whole(&self, expression: &str) -> i64 {
        let mut rest = expression.chars().peekable();
        let value = self.sum(&mut rest).unwrap_or_else(|| panic!("{expression} has no value"));
        assert!(rest.next().is_none(), "more than a number: {expression}");
        value
    }

    fn sum(&self, rest: &mut Peekable<Chars<'_>>) -> Option<i64> {
        let mut sum = self.product(rest);
        while let Some(sign) = sign(rest, &['+', '-']) {
            let next = self.product(rest)?;
            sum = Some(if sign == '+' { sum? + next } else { sum? - next });
        }
        sum
    }

    fn product(&self, rest: &mut Peekable<Chars<'_>>) -> Option<i64> {
        let mut product = self.atom(rest);
        while sign(rest, &['*']).is_some() {
            product = Some(product? * self.atom(rest)?);
        }
        product
    }

    /// A number, a variable, or a function of numbers; nothing where it is NULL.
    fn atom(&self, rest: &mut Peekable<Chars<'_>>) -> Option<i64> {
        let is_negative = sign(rest, &['-']).is_some();
        let mut word = String::new();
        sign(rest, &[]);
        while let Some(letter) = rest.next_if(|letter| letter.is_ascii_alphanumeric() || "_.%".contains(*letter)) {
            word.push(letter);
        }
        if let Ok(number) = word.parse::<i64>() {
            return Some(if is_negative { -number } else { number });
        }
        if rest.next_if_eq(&'(').is_none() {
            return match word.as_str() {
                "SQL%ROWCOUNT" => Some(self.changed),
                _ => match word.strip_prefix("v_record.") {
                    Some(column) => self.record.get(column).copied(),
                    None => self.variables.get(&word).unwrap_or_else(|| panic!("there is no {word}")).number(),
                },
            };
        }
        let first = self.sum(rest);
        let second = sign(rest, &[',']).and_then(|_| self.sum(rest));
        assert_eq!(sign(rest, &[')']), Some(')'), "{word}");
        match word.as_str() {
            "MOD" => Some(first? % second?),
            "GREATEST" => Some(first?.max(second?)),
            "COALESCE" => first.or(second),
            bank => self.kept.get(&(bank.to_owned(), first?)).copied(),
        }
    }

    fn holds(&self, condition: &str) -> bool {
        for (sign, holds) in
            [(" <= ", i64::le as fn(&i64, &i64) -> bool), (" < ", i64::lt), (" > ", i64::gt), (" = ", i64::eq)]
        {
            if let Some((one, other)) = condition.split_once(sign) {
                return holds(&self.whole(one), &self.whole(other));
            }
        }
        panic!("{condition} compares nothing")
    }

    /// A statement as the model knows it: with binds in the places of variables.
    fn bound(&self, statement: &str) -> (String, Vec<Value>) {
        let (mut text, mut values, mut word) = (String::new(), Vec::new(), String::new());
        for letter in statement.chars().chain([' ']) {
            if letter.is_ascii_alphanumeric() || letter == '_' {
                word.push(letter);
                continue;
            }
            match self.variables.get(&word) {
                Some(cell) => {
                    values.push(match cell {
                        Cell::Int(number) => Value::from(*number),
                        Cell::Text(words) => Value::from(&**words),
                        Cell::Null => Value::Null,
                    });
                    text.push_str(&format!(":v{}", values.len()));
                }
                None => text.push_str(&word),
            }
            word.clear();
            text.push(letter);
        }
        (text.trim_end().to_owned(), values)
    }
}

/// The next sign behind blanks, if it is one of these.
fn sign(rest: &mut Peekable<Chars<'_>>, of: &[char]) -> Option<char> {
    while rest.next_if_eq(&' ').is_some() {}
    rest.next_if(|next| of.contains(next))
}

impl Shop {
    pub(super) fn procedure(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let name = || name_in(text).map(str::to_owned);
        if text.starts_with("CREATE PROCEDURE ") {
            if self.procedures.insert(name()?, call.sql.to_string()).is_some() {
                return Some(Answer::error(955, "name is already used by an existing object"));
            }
            return Some(Answer::Ok);
        }
        if text.starts_with("DROP PROCEDURE ") {
            return Some(match self.procedures.remove(&name()?) {
                Some(_) => Answer::Ok,
                None => Answer::error(4043, "object does not exist"),
            });
        }
        if text.contains("FROM user_source ") {
            let row = |(name, source): (&String, &String)| {
                let mark = source.lines().nth(2).unwrap_or_default().trim_start_matches([' ', '-']);
                [name.as_str().into(), Value::from(format!("\"{USER}\".{name}").as_str()), mark.into()]
            };
            let rows = self.procedures.iter().map(row).collect();
            return Some(Answer::rows([Column::text("NAME"), Column::text("REFERENCE"), Column::text("MARK")], rows));
        }
        if text.contains("FROM user_errors ") {
            let rows = self.broken.iter().map(|(name, why)| [name.as_str().into(), why.as_str().into()]).collect();
            return Some(Answer::rows([Column::text("NAME"), Column::text("TEXT")], rows));
        }
        let name = text.starts_with("BEGIN \"").then(name).flatten()?;
        let Some(source) = self.procedures.get(&name).cloned() else {
            return Some(Answer::error(6550, &format!("PLS-00201: identifier '{name}' must be declared")));
        };
        Some(self.execute(&source, call))
    }

    fn execute(&mut self, source: &str, call: &Call) -> Answer {
        self.calls += 1;
        let binds = call.binds.first().expect("a call has values");
        let mut lines = source.lines();
        let head = lines.next().and_then(|head| head.split_once('(')?.1.strip_suffix(')')).expect("a head");
        let mut frame = Frame::default();
        let (mut ways, mut out) = (Vec::new(), Vec::new());
        for (parameter, value) in head.split(", ").zip(binds) {
            let (name, kind) = parameter.split_once(' ').expect("a name and a kind");
            let is_out = kind.starts_with("OUT ");
            ways.push(if is_out { Way::Out } else { Way::In });
            if is_out {
                out.push(name.to_owned());
            }
            frame.variables.insert(name.to_owned(), if is_out { Cell::Null } else { Cell::of(value) });
        }
        assert_eq!(ways.len(), head.split(", ").count(), "{head}: {binds:?}");
        for line in lines.by_ref().take_while(|line| *line != "BEGIN") {
            if let Some((name, value)) = line.trim().trim_end_matches(';').split_once(" NUMBER := ") {
                let value = Cell::Int(frame.whole(value));
                frame.variables.insert(name.to_owned(), value);
            }
        }
        let body = steps(&mut lines, &["END;"]).0;
        self.follow(&body, &mut frame, call);
        let out = out.iter().map(|name| Value::from(frame.whole(name))).collect();
        Answer::Block { ways, out: vec![out] }
    }

    /// Follows steps, and says whether one of them ended the call.
    fn follow(&mut self, steps: &[Step], frame: &mut Frame, call: &Call) -> bool {
        for step in steps {
            let ended = match step {
                Step::Line(line) => self.line(line, frame, call),
                Step::If(condition, then, otherwise) => {
                    let steps = if frame.holds(condition) { then } else { otherwise };
                    self.follow(steps, frame, call)
                }
                Step::While(condition, steps) => {
                    let mut ended = false;
                    while !ended && frame.holds(condition) {
                        ended = self.follow(steps, frame, call);
                    }
                    ended
                }
                Step::For(query, steps) => {
                    let (text, values) = frame.bound(query);
                    let inner = Call { binds: vec![values], ..call.clone() };
                    let Some(Answer::Rows { columns, rows }) = self.transaction(&text, &inner) else {
                        panic!("the model does not know: {text}")
                    };
                    for row in rows {
                        let named = columns.iter().zip(&row).filter_map(|(column, value)| {
                            let bare = column.name.rsplit('.').next().unwrap_or_default();
                            let name = if bare.ends_with(" * 100") { "cents" } else { bare };
                            Some((name.to_owned(), value.as_i64()?))
                        });
                        frame.record = named.collect();
                        assert!(!self.follow(steps, frame, call), "a loop over rows only keeps them");
                    }
                    false
                }
            };
            if ended {
                return true;
            }
        }
        false
    }

    fn line(&mut self, line: &str, frame: &mut Frame, call: &Call) -> bool {
        match line {
            "COMMIT WRITE IMMEDIATE WAIT" => self.end(call.session, Kind::Commit),
            "ROLLBACK" => self.end(call.session, Kind::Rollback),
            "RETURN" => return true,
            _ if line.starts_with("INSERT INTO ") => {
                let (statement, key) = match line.rsplit_once(" INTO v_") {
                    Some((statement, key)) if statement.contains(" RETURNING ") => (statement, Some(key)),
                    _ => (line, None),
                };
                let (text, values) = frame.bound(statement);
                let inner = Call { binds: vec![values], ..call.clone() };
                let given = text.strip_prefix("INSERT INTO ").and_then(|text| self.insert(text, &inner));
                let given = given.unwrap_or_else(|| panic!("the model does not know: {text}"));
                frame.changed = 1;
                if let Some(key) = key {
                    frame.variables.insert(format!("v_{key}"), Cell::Int(given));
                }
            }
            _ if line.starts_with("UPDATE ") => {
                let (text, values) = frame.bound(line);
                let inner = Call { binds: vec![values], ..call.clone() };
                match self.transaction(&text, &inner) {
                    Some(Answer::Changed(rows)) => frame.changed = rows as i64,
                    other => panic!("the model does not know: {text}: {other:?}"),
                }
            }
            _ => {
                let (place, value) = line.split_once(" := ").unwrap_or_else(|| panic!("no step: {line}"));
                match place.strip_suffix(')').and_then(|place| place.split_once('(')) {
                    Some((bank, row)) => {
                        let row = frame.whole(row);
                        frame.kept.insert((bank.to_owned(), row), frame.whole(value));
                    }
                    None => {
                        let value = Cell::Int(frame.whole(value));
                        frame.variables.insert(place.to_owned(), value);
                    }
                }
            }
        }
        false
    }
}
