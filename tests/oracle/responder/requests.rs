//! Requests of a session that is logged on, as bytes become what is asked.

use super::answers::Kind;
use super::calls::{Bind, Cursors};
use super::values::Value;
use super::wire::{Reader, Short};

const FUNCTION: u8 = 3;
const PIGGYBACK: u8 = 17;

const REEXECUTE: u8 = 4;
const FETCH: u8 = 5;
const LOGOFF: u8 = 9;
const COMMIT: u8 = 14;
const ROLLBACK: u8 = 15;
const REEXECUTE_AND_FETCH: u8 = 78;
const EXECUTE: u8 = 94;
const CLOSE_CURSORS: u8 = 105;
const SET_END_TO_END: u8 = 135;
const PING: u8 = 147;
const SESSION_STATE: u8 = 176;

const OPTION_BIND: u64 = 0x08;
const OPTION_DEFINE: u64 = 0x10;
const OPTION_EXECUTE: u64 = 0x20;
const OPTION_FETCH: u64 = 0x40;
const OPTION_COMMIT: u64 = 0x100;
const OPTION_NOT_PLSQL: u64 = 0x8000;
const REEXECUTE_OPTION_COMMIT: u64 = 0x1;

const ROW: u8 = 7;
/// A statement's binds beyond this room come behind the others. Blocks have them in order.
const LONG_BIND_BYTES: u32 = 32_767;
/// Where the counts of a full execute are, of 13 numbers.
const EXECUTIONS: usize = 1;
const IS_QUERY: usize = 7;

/// A request with what came on its back.
pub struct Request {
    pub asked: Asked,
    pub closed_cursors: Vec<u16>,
    pub identity: Option<Identity>,
}

/// What the session is called by, where the client has set that.
#[derive(Clone, Default)]
pub struct Identity {
    pub client_identifier: Option<String>,
    pub module: Option<String>,
    pub action: Option<String>,
    pub client_info: Option<String>,
    pub operation: Option<String>,
}

/// What is asked for.
pub enum Asked {
    Execute(Execute),
    Reexecute {
        cursor: u16,
        binds: Vec<Vec<Value>>,
        rows_wanted: u32,
        autocommit: bool,
    },
    Fetch {
        cursor: u16,
        rows_wanted: u32,
    },
    /// A call without more to it.
    Plain(Kind),
}

/// A full execute, with the statement's text or for a cursor that has one.
pub struct Execute {
    pub cursor: u16,
    pub sql: Option<String>,
    pub described: Option<Vec<Bind>>,
    pub binds: Vec<Vec<Value>>,
    pub is_query: bool,
    pub is_block: bool,
    pub is_executed: bool,
    pub autocommit: bool,
    pub rows_wanted: u32,
}

pub fn request(reader: &mut Reader<'_>, cursors: &Cursors, has_token: bool) -> Result<Request, Short> {
    let mut closed_cursors = Vec::new();
    let mut identity = None;
    loop {
        let message = reader.byte()?;
        let function = reader.byte()?;
        reader.skip(1)?;
        if has_token {
            reader.number()?;
        }
        match (message, function) {
            (PIGGYBACK, CLOSE_CURSORS) => {
                reader.skip(1)?;
                for _ in 0..reader.count()? {
                    closed_cursors.push(cursor(reader)?);
                }
            }
            (PIGGYBACK, SET_END_TO_END) => identity = Some(end_to_end(reader)?),
            (PIGGYBACK, SESSION_STATE) => drop(reader.number()?),
            (PIGGYBACK, _) => return Err(Short::Unknown("a piggyback that the responder does not know")),
            (FUNCTION, _) => {
                let asked = asked(reader, function, cursors)?;
                return Ok(Request { asked, closed_cursors, identity });
            }
            _ => return Err(Short::Unknown("a message that is no function")),
        }
    }
}

fn asked(reader: &mut Reader<'_>, function: u8, cursors: &Cursors) -> Result<Asked, Short> {
    Ok(match function {
        EXECUTE => Asked::Execute(execute(reader)?),
        REEXECUTE | REEXECUTE_AND_FETCH => {
            let number = cursor(reader)?;
            let count = reader.number()?;
            reader.number()?;
            let autocommit = reader.number()? & REEXECUTE_OPTION_COMMIT != 0;
            let known = cursors.get(number).ok_or(Short::Unknown("a cursor that is not open"))?;
            let rows = if known.is_query { 1 } else { count as usize };
            let is_sent: Vec<bool> = known.binds.iter().map(|bind| bind.way.is_in()).collect();
            let binds = bind_rows(reader, &known.binds, known.is_block, rows, &is_sent)?;
            let rows_wanted = if function == REEXECUTE_AND_FETCH { count as u32 } else { 0 };
            Asked::Reexecute { cursor: number, binds, rows_wanted, autocommit }
        }
        FETCH => Asked::Fetch { cursor: cursor(reader)?, rows_wanted: reader.number()? as u32 },
        COMMIT => Asked::Plain(Kind::Commit),
        ROLLBACK => Asked::Plain(Kind::Rollback),
        PING => Asked::Plain(Kind::Ping),
        LOGOFF => Asked::Plain(Kind::Logoff),
        _ => return Err(Short::Unknown("a function that the responder does not know")),
    })
}

fn cursor(reader: &mut Reader<'_>) -> Result<u16, Short> {
    u16::try_from(reader.number()?).map_err(|_| Short::Unknown("a cursor's number beyond two bytes"))
}

fn execute(reader: &mut Reader<'_>) -> Result<Execute, Short> {
    let options = reader.number()?;
    let cursor = cursor(reader)?;
    let has_sql = reader.byte()? != 0;
    reader.number()?;
    reader.skip(1)?;
    reader.number()?;
    reader.skip(2)?;
    reader.number()?;
    let rows_wanted = reader.number()? as u32;
    reader.number()?;
    reader.skip(1)?;
    let bind_count = reader.count()?;
    reader.skip(5)?;
    if options & OPTION_DEFINE != 0 {
        return Err(Short::Unknown("columns that are defined, as for LOBs"));
    }
    reader.skip(1)?;
    // Columns to define, a registration, objects, long values, a name, the registration again, counts of changed rows, a signature, an id,
    // and chunks: a number each, and then pointers. This driver asks for nothing of that.
    for pointers in [0, 3, 1, 0, 1, 2, 1, 2, 0] {
        reader.number()?;
        reader.skip(pointers)?;
    }
    let sql = if has_sql { Some(reader.text()?) } else { None };
    let mut counts = [0; 13];
    for count in &mut counts {
        *count = reader.number()?;
    }
    let is_query = counts[IS_QUERY] != 0;
    let is_block = options & OPTION_NOT_PLSQL == 0 && options & OPTION_EXECUTE != 0;
    let (described, binds) = if options & OPTION_BIND != 0 {
        let described = (0..bind_count).map(|_| described_bind(reader)).collect::<Result<Vec<Bind>, Short>>()?;
        let rows = if is_query { 1 } else { counts[EXECUTIONS] as usize };
        let is_sent = vec![true; described.len()];
        let binds = bind_rows(reader, &described, is_block, rows, &is_sent)?;
        (Some(described), binds)
    } else {
        (None, vec![Vec::new()])
    };
    Ok(Execute {
        cursor,
        sql,
        described,
        binds,
        is_query,
        is_block,
        is_executed: options & OPTION_EXECUTE != 0,
        autocommit: options & OPTION_COMMIT != 0,
        rows_wanted: if options & OPTION_FETCH != 0 { rows_wanted } else { 0 },
    })
}

fn described_bind(reader: &mut Reader<'_>) -> Result<Bind, Short> {
    let kind = reader.byte()?;
    reader.skip(3)?;
    let bytes = reader.number()? as u32;
    reader.number()?;
    reader.number()?;
    reader.long_bytes()?;
    reader.number()?;
    reader.number()?;
    reader.skip(1)?;
    reader.number()?;
    reader.number()?;
    Ok(Bind::new(kind, bytes))
}

fn bind_rows(
    reader: &mut Reader<'_>,
    binds: &[Bind],
    is_block: bool,
    rows: usize,
    is_sent: &[bool],
) -> Result<Vec<Vec<Value>>, Short> {
    let mut order: Vec<usize> = (0..binds.len()).filter(|at| is_sent[*at]).collect();
    if !is_block {
        order.sort_by_key(|at| binds[*at].bytes > LONG_BIND_BYTES);
    }
    let mut all = Vec::with_capacity(rows);
    for _ in 0..rows {
        let mut row = vec![Value::Null; binds.len()];
        if !order.is_empty() {
            reader.expect(ROW, "no row of binds")?;
        }
        for at in &order {
            row[*at] = Value::decode(binds[*at].kind, reader.bytes()?).map_err(Short::Unknown)?;
        }
        all.push(row);
    }
    Ok(all)
}

fn end_to_end(reader: &mut Reader<'_>) -> Result<Identity, Short> {
    reader.skip(2)?;
    reader.number()?;
    // A pointer and a length for each text. The ones that nobody sets have no text behind.
    let mut length = || {
        reader.skip(1)?;
        reader.count()
    };
    let (identifier, module, action) = (length()?, length()?, length()?);
    let _ = (length()?, length()?);
    let info = length()?;
    let _ = (length()?, length()?);
    let operation = length()?;
    let mut text = |length: usize| if length == 0 { Ok(None) } else { reader.text().map(Some) };
    Ok(Identity {
        client_identifier: text(identifier)?,
        module: text(module)?,
        action: text(action)?,
        client_info: text(info)?,
        operation: text(operation)?,
    })
}
