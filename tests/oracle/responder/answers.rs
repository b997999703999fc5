//! What a test is asked by the responder, and what it can answer.

use std::sync::Arc;
use std::time::Duration;

use super::faults::Fault;
use super::values::{self, Value};

/// One call of a client: one round trip.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The session's number, from 1 on in the order of connecting.
    pub session: u32,
    pub kind: Kind,
    /// The statement, as it came when it was parsed. Empty for calls without one.
    pub sql: Arc<str>,
    /// One for each row of binds. An OUT bind is what the client put in its place at the first execution, NULL afterwards.
    pub binds: Vec<Vec<Value>>,
    /// The room for each bind in bytes, as the client described it.
    pub bind_bytes: Arc<[u32]>,
    /// How many rows of a result are wanted at once.
    pub rows_wanted: u32,
    /// Whether the client wants a commit with the call.
    pub autocommit: bool,
}

impl Call {
    /// Whether a statement is executed, for the first time or again.
    pub fn is_executed(&self) -> bool {
        matches!(self.kind, Kind::Execute | Kind::Reexecute)
    }
}

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A statement with its text.
    Execute,
    /// A statement that was parsed before, without its text.
    Reexecute,
    /// A statement is looked at, but not executed.
    Parse,
    Fetch,
    Commit,
    Rollback,
    Ping,
    Logoff,
}

/// What the responder says to a call.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What a healthy server says: a statement without rows is done, a fetch gets the next rows, a commit is made.
    Ok,
    /// The rows of a query. The client gets as many at a time as it wants.
    Rows { columns: Vec<Column>, rows: Vec<Vec<Value>> },
    /// Rows, and then an error in the middle of fetching, as when a snapshot is too old.
    RowsThenError { columns: Vec<Column>, rows: Vec<Vec<Value>>, code: u32, message: String },
    /// How many rows a statement has changed. A transaction is open from then on.
    Changed(u64),
    /// A block has ended. Which way its binds go, and for each row of binds the values of those that go out.
    Block { ways: Vec<Way>, out: Vec<Vec<Value>> },
    /// An error with Oracle's number; its text without the number.
    Error { code: u32, message: String },
    /// An error that the server announces by a marker, as servers before 23 do.
    BreakThenError { code: u32, message: String },
    /// The answer comes later, unless the client breaks off first.
    Delay(Duration, Box<Answer>),
    /// Half of the answer, a pause, and the rest.
    Halting(Duration, Box<Answer>),
    /// Nothing comes until the client breaks off or goes.
    Silence,
    /// Half of the answer, and the connection is gone.
    CutInTheMiddle(Box<Answer>),
    /// The connection is gone.
    Close,
    /// These bytes instead of an answer.
    Bytes(Vec<u8>),
}

impl Answer {
    pub fn error(code: u32, message: &str) -> Answer {
        Answer::Error { code, message: message.to_owned() }
    }

    pub fn rows<const N: usize>(columns: [Column; N], rows: Vec<[Value; N]>) -> Answer {
        Answer::Rows { columns: columns.into(), rows: rows.into_iter().map(Vec::from).collect() }
    }
}

/// Which way a bind goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    InOut,
}

impl Way {
    pub fn is_in(self) -> bool {
        self != Way::Out
    }

    pub fn is_out(self) -> bool {
        self != Way::In
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: u8,
    /// The room for a value in bytes.
    pub bytes: u32,
}

impl Column {
    pub fn number(name: &str) -> Column {
        Column { name: name.to_owned(), kind: values::NUMBER, bytes: 22 }
    }

    pub fn text(name: &str) -> Column {
        Column { name: name.to_owned(), kind: values::VARCHAR2, bytes: 4000 }
    }

    pub fn raw(name: &str, bytes: u32) -> Column {
        Column { name: name.to_owned(), kind: values::RAW, bytes }
    }

    pub fn double(name: &str) -> Column {
        Column { name: name.to_owned(), kind: values::BINARY_DOUBLE, bytes: 8 }
    }

    pub fn date(name: &str) -> Column {
        Column { name: name.to_owned(), kind: values::DATE, bytes: 7 }
    }

    pub fn timestamp(name: &str) -> Column {
        Column { name: name.to_owned(), kind: values::TIMESTAMP, bytes: 11 }
    }
}

/// What a test answers. A closure from `&Call` to `Answer` will do; whoever keeps state implements this.
pub trait Answers: Send + Sync + 'static {
    /// Is asked about every call, a commit and a goodbye included. Rows are fine for a fetch: it gets what is left of them.
    fn answer(&self, call: &Call) -> Answer;

    /// What goes wrong with a session that connects to this service, if anything.
    fn connecting(&self, _session: u32, _service: &str) -> Option<Fault> {
        None
    }
}

impl<F: Fn(&Call) -> Answer + Send + Sync + 'static> Answers for F {
    fn answer(&self, call: &Call) -> Answer {
        self(call)
    }
}
