//! Calls of a session: what the test is asked, and what becomes of its answer.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Generation;
use super::answers::{Answer, Call, Column, Kind, Way};
use super::faults::Ended;
use super::log::State;
use super::reply::Error;
use super::requests::{self, Asked, Execute, Request};
use super::session::Session;
use super::values::Value;

/// A bind as the client has described it, and the way it goes as the server has said.
#[derive(Clone, Debug)]
pub struct Bind {
    pub kind: u8,
    pub bytes: u32,
    pub way: Way,
}

impl Bind {
    pub fn new(kind: u8, bytes: u32) -> Bind {
        // Everything goes in until a block says otherwise.
        Bind { kind, bytes, way: Way::In }
    }
}

/// A statement that is open on the server.
pub struct Cursor {
    pub sql: Arc<str>,
    pub is_query: bool,
    pub is_block: bool,
    pub binds: Vec<Bind>,
    bind_bytes: Arc<[u32]>,
    /// What is left of the result.
    pub columns: Vec<Column>,
    pub rows: VecDeque<Vec<Value>>,
    pub fetched: u64,
    /// The row that was sent last.
    pub last: Option<Vec<Value>>,
    /// Comes instead of the end.
    pub error: Option<Error>,
}

/// The open cursors of a session, by number from 1 on.
pub struct Cursors {
    open: Vec<Option<Cursor>>,
    max: usize,
}

impl Cursors {
    pub fn new(max: usize) -> Cursors {
        Cursors { open: Vec::new(), max }
    }

    pub fn get(&self, number: u16) -> Option<&Cursor> {
        self.open.get(usize::from(number).checked_sub(1)?)?.as_ref()
    }

    pub fn get_mut(&mut self, number: u16) -> Option<&mut Cursor> {
        self.open.get_mut(usize::from(number).checked_sub(1)?)?.as_mut()
    }

    fn close(&mut self, number: u16) {
        if let Some(slot) = usize::from(number).checked_sub(1).and_then(|at| self.open.get_mut(at)) {
            *slot = None;
        }
    }

    /// The new cursor's number, or none if there are too many.
    fn open(&mut self, cursor: Cursor) -> Option<u16> {
        let at = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if at >= self.max {
            return None;
        }
        if at == self.open.len() {
            self.open.push(None);
        }
        self.open[at] = Some(cursor);
        u16::try_from(at + 1).ok()
    }
}

impl Session<'_> {
    /// Reads one call and answers it.
    pub fn call(&mut self) -> Result<(), Ended> {
        let has_token = self.shared.options.generation == Generation::V23;
        let request = self.request(|reader, cursors| requests::request(reader, cursors, has_token))?;
        let Request { asked, closed_cursors, identity } = request;
        for cursor in &closed_cursors {
            self.cursors.close(*cursor);
        }
        self.log(|log| {
            log.closed_cursors += closed_cursors.len() as u64;
            if let Some(identity) = identity {
                let set = |to: &mut String, text: Option<String>| *to = text.unwrap_or_else(|| std::mem::take(to));
                set(&mut log.client_identifier, identity.client_identifier);
                set(&mut log.module, identity.module);
                set(&mut log.action, identity.action);
                set(&mut log.client_info, identity.client_info);
                set(&mut log.operation, identity.operation);
            }
        });
        let (kind, number, binds, rows_wanted, autocommit) = match asked {
            Asked::Execute(execute) => return self.execute(execute),
            Asked::Reexecute { cursor, binds, rows_wanted, autocommit } => {
                (Kind::Reexecute, cursor, binds, rows_wanted, autocommit)
            }
            Asked::Fetch { cursor, rows_wanted } => (Kind::Fetch, cursor, vec![Vec::new()], rows_wanted, false),
            Asked::Plain(kind) => (kind, 0, vec![Vec::new()], 0, false),
        };
        self.ask(kind, number, binds, rows_wanted, autocommit)
    }

    fn execute(&mut self, execute: Execute) -> Result<(), Ended> {
        let Execute { mut cursor, sql, described, binds, is_query, is_block, is_executed, autocommit, rows_wanted } =
            execute;
        let kind = match (is_executed, &sql) {
            (false, _) => Kind::Parse,
            (true, Some(_)) => Kind::Execute,
            (true, None) => Kind::Reexecute,
        };
        if let Some(sql) = sql {
            // A statement that is parsed again gives its old cursor up.
            self.cursors.close(cursor);
            let parsed = Cursor {
                sql: Arc::from(sql),
                is_query,
                is_block,
                binds: Vec::new(),
                bind_bytes: Arc::from([]),
                columns: Vec::new(),
                rows: VecDeque::new(),
                fetched: 0,
                last: None,
                error: None,
            };
            let Some(number) = self.cursors.open(parsed) else {
                let error = Error::new(1000, "maximum open cursors exceeded");
                let answer = self.error(0, 0, Some(&error));
                return self.link.send_data(answer);
            };
            cursor = number;
        }
        let Some(known) = self.cursors.get_mut(cursor) else {
            return Err(Ended::Nonsense("a cursor that is not open"));
        };
        // A statement that was only parsed is known for a block when it is executed.
        known.is_block |= is_block;
        if let Some(described) = described {
            known.bind_bytes = described.iter().map(|bind| bind.bytes).collect();
            known.binds = described;
        }
        self.ask(kind, cursor, binds, rows_wanted, autocommit)
    }

    /// Asks the test, and does with the answer what it says.
    fn ask(
        &mut self,
        kind: Kind,
        number: u16,
        binds: Vec<Vec<Value>>,
        rows_wanted: u32,
        autocommit: bool,
    ) -> Result<(), Ended> {
        let (sql, bind_bytes) = match self.cursors.get(number) {
            Some(cursor) => (Arc::clone(&cursor.sql), Arc::clone(&cursor.bind_bytes)),
            None if number == 0 => (Arc::from(""), Arc::from([])),
            None => return Err(Ended::Nonsense("a cursor that is not open")),
        };
        let call = Call { session: self.number(), kind, sql, binds, bind_bytes, rows_wanted, autocommit };
        let keeps = self.shared.options.keeps_calls;
        self.log(|log| {
            log.round_trips += 1;
            if keeps {
                log.calls.push(call.clone());
            }
        });
        let mut answer = self.shared.answers.answer(&call);
        loop {
            answer = match answer {
                Answer::Delay(wait, answer) => match self.waits(wait)? {
                    true => *answer,
                    false => return Ok(()),
                },
                Answer::Silence => match self.waits_forever()? {
                    true => return Err(Ended::ByFault),
                    false => return Ok(()),
                },
                Answer::Close => return Err(Ended::ByFault),
                Answer::Bytes(bytes) => return self.link.write(&bytes),
                Answer::CutInTheMiddle(answer) => {
                    let packets = self.packets(&call, number, *answer);
                    self.link.write(&packets[..packets.len() / 2])?;
                    return Err(Ended::ByFault);
                }
                Answer::Halting(wait, answer) => {
                    let packets = self.packets(&call, number, *answer);
                    let (first, rest) = packets.split_at(packets.len() / 2);
                    self.link.write(first)?;
                    std::thread::sleep(wait);
                    return self.link.write(rest);
                }
                Answer::BreakThenError { code, message } => {
                    self.announce_break()?;
                    Answer::Error { code, message }
                }
                answer => {
                    let packets = self.packets(&call, number, answer);
                    if kind == Kind::Logoff {
                        self.log(|log| log.state = State::LoggedOff);
                    }
                    return self.link.write(&packets);
                }
            }
        }
    }

    fn packets(&mut self, call: &Call, number: u16, answer: Answer) -> Vec<u8> {
        let message = self.reply(call, number, answer);
        self.link.data(message)
    }
}
