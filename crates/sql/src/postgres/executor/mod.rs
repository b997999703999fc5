//! Executes prepared statements on a connection, at little cost to the client.
//!
//! The client's library hands each answer from the task that reads to the task that asked, and allocates for each row. For a load
//! generator on the server's own machine that is a third of its processor time. So sessions take the stream over once the library
//! has logged in, and one task sends, waits, and reads answers where they were received ("Extended Query" in PostgreSQL's manual).

#[cfg(test)]
mod tests;

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};

use super::stream::Shared;

/// Values are sent and read in binary.
const BINARY: i16 = 1;
/// Room for answers at first. It grows with the longest message.
const ROOM_BYTES: usize = 8 << 10;
/// The server breaks down or is stopped; it says so before it closes connections (class 57P).
const FAREWELL: &str = "57P";

/// A statement that a connection has prepared, or whose text is sent each time.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Empty where the text is sent.
    name: String,
    /// Empty where it is prepared: a thousand sessions need not keep it.
    text: String,
    parameters: Vec<Type>,
    columns: Vec<Option<Type>>,
}

impl Prepared {
    /// The same to be sent as `text` each time, on any connection: in one round trip, as when it was prepared.
    pub(super) fn unprepared(&self, text: String) -> Self {
        Self { name: String::new(), text, parameters: self.parameters.clone(), columns: self.columns.clone() }
    }
}

/// A connection that executes prepared statements, one exchange at a time.
#[derive(Debug)]
pub(super) struct Executor {
    stream: Shared,
    /// What is to be sent.
    out: BytesMut,
    /// Received bytes from `read` to `received`, and room behind them.
    input: Vec<u8>,
    read: usize,
    received: usize,
    /// Answers that are to come: one for each statement that was sent.
    due: u32,
    prepared: u32,
    farewell: Option<Report>,
}

impl Executor {
    /// On a stream on which somebody has logged in, and of which nothing is under way.
    pub(super) fn new(stream: Shared) -> Self {
        Self {
            stream,
            out: BytesMut::new(),
            input: vec![0; ROOM_BYTES],
            read: 0,
            received: 0,
            due: 0,
            prepared: 0,
            farewell: None,
        }
    }

    /// Prepares a statement.
    pub(super) async fn prepare(&mut self, text: &str) -> Result<Prepared, Failure> {
        let name = format!("p{}", self.prepared);
        self.prepared += 1;
        frontend::parse(&name, text, [], &mut self.out).map_err(Failure::System)?;
        frontend::describe(b'S', &name, &mut self.out).map_err(Failure::System)?;
        frontend::sync(&mut self.out);
        self.due += 1;
        let (mut parameters, mut columns) = (Ok(Vec::new()), Ok(Vec::new()));
        self.exchange(|message| match message.kind {
            b't' => parameters = parameter_types(message.body),
            b'T' => columns = column_types(message.body),
            _ => {}
        })
        .await?;
        Ok(Prepared { name, text: String::new(), parameters: parameters?, columns: columns? })
    }

    /// Has a statement without values and rows sent with the next one that is executed, and done before it.
    pub(super) fn send_before(&mut self, text: &str) -> Result<(), Failure> {
        frontend::query(text, &mut self.out).map_err(Failure::System)?;
        self.due += 1;
        Ok(())
    }

    /// Executes a statement without values and rows.
    pub(super) async fn execute_text(&mut self, text: &str) -> Result<(), Failure> {
        self.send_before(text)?;
        self.exchange(|_| ()).await
    }

    /// Executes a statement, has `row` look at each of its rows, and gives how many it returned or changed.
    pub(super) async fn execute(
        &mut self,
        statement: &Prepared,
        values: &[&(dyn ToSql + Sync)],
        mut row: impl FnMut(Row<'_>),
    ) -> Result<u64, Failure> {
        let Prepared { name, text, parameters, columns } = statement;
        let before = self.out.len();
        if name.is_empty() {
            frontend::parse("", text, parameters.iter().map(Type::oid), &mut self.out).map_err(Failure::System)?;
        }
        if let Err(error) = bind(name, parameters, values, &mut self.out) {
            self.out.truncate(before);
            return Err(Failure::Value(error));
        }
        frontend::execute("", 0, &mut self.out).map_err(Failure::System)?;
        frontend::sync(&mut self.out);
        self.due += 1;
        let mut count = None;
        self.exchange(|message| match message.kind {
            b'D' => row(Row::new(message.body, columns)),
            b'C' => count = count_of(message.body),
            _ => {}
        })
        .await?;
        Ok(count.unwrap_or(0))
    }

    /// Sends what is to be sent and reads until everything is answered. The first refusal counts.
    async fn exchange(&mut self, mut hear: impl FnMut(Message<'_>)) -> Result<(), Failure> {
        self.send().await?;
        let mut refused = None;
        loop {
            while let Some((message, length)) = Message::first(&self.input[self.read..self.received])? {
                match message.kind {
                    b'Z' => self.due -= 1,
                    b'E' => {
                        let report = Report::read(message.body);
                        if report.ends_the_connection() {
                            return Err(Failure::Ended(Some(report)));
                        }
                        refused.get_or_insert(report);
                    }
                    b'N' => {
                        let notice = Report::read(message.body);
                        if notice.code.starts_with(FAREWELL) {
                            self.farewell = Some(notice);
                        }
                    }
                    b'G' | b'H' | b'W' => return Err(Failure::Protocol("a request to copy rows")),
                    _ => hear(message),
                }
                self.read += length;
                if self.due == 0 {
                    return refused.map_or(Ok(()), |report| Err(Failure::Refused(report)));
                }
            }
            self.receive().await?;
        }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let Self { stream, out, .. } = self;
        let mut sent = 0;
        while sent < out.len() {
            match poll_fn(|task| Pin::new(&mut *stream).poll_write(task, &out[sent..])).await {
                Ok(0) => return Err(Failure::Ended(self.farewell.take())),
                Ok(bytes) => sent += bytes,
                // The server's last words may have come before it closed the connection.
                Err(error) if is_end(&error) => {
                    out.clear();
                    return Err(self.last_words().await);
                }
                Err(error) => return Err(Failure::System(error)),
            }
        }
        out.clear();
        poll_fn(|task| Pin::new(&mut *stream).poll_flush(task)).await.map_err(Failure::System)
    }

    /// What the server said before it closed the connection.
    async fn last_words(&mut self) -> Failure {
        loop {
            match Message::first(&self.input[self.read..self.received]) {
                Ok(Some((Message { kind: b'E', body }, _))) => return Failure::Ended(Some(Report::read(body))),
                Ok(Some((Message { kind: b'N', body }, length))) => {
                    self.farewell = Some(Report::read(body));
                    self.read += length;
                }
                Ok(Some((_, length))) => self.read += length,
                Ok(None) => {
                    if let Err(failure) = self.receive().await {
                        return failure;
                    }
                }
                Err(failure) => return failure,
            }
        }
    }

    /// Waits for more bytes.
    async fn receive(&mut self) -> Result<(), Failure> {
        let Self { stream, input, read, received, .. } = self;
        if read == received {
            (*read, *received) = (0, 0);
        } else if *received == input.len() {
            // A message that is not whole: room for the rest of it.
            input.copy_within(*read..*received, 0);
            (*read, *received) = (0, *received - *read);
            if *received > input.len() / 2 {
                input.resize(2 * input.len(), 0);
            }
        }
        let mut room = ReadBuf::new(&mut input[*received..]);
        let bytes = poll_fn(|task| match Pin::new(&mut *stream).poll_read(task, &mut room) {
            Poll::Ready(outcome) => Poll::Ready(outcome.map(|()| room.filled().len())),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match bytes {
            Ok(0) => Err(Failure::Ended(self.farewell.take())),
            Ok(bytes) => {
                *received += bytes;
                Ok(())
            }
            Err(error) if is_end(&error) => Err(Failure::Ended(self.farewell.take())),
            Err(error) => Err(Failure::System(error)),
        }
    }
}

/// Whether somebody closed the connection.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Leaves as servers expect, without waiting for anything.
impl Drop for Executor {
    fn drop(&mut self) {
        let mut goodbye = BytesMut::new();
        frontend::terminate(&mut goodbye);
        let mut task = Context::from_waker(Waker::noop());
        // A connection that takes nothing now is closed without a word.
        if self.due == 0 && Pin::new(&mut self.stream).poll_write(&mut task, &goodbye).is_ready() {
            let _ = Pin::new(&mut self.stream).poll_flush(&mut task);
        }
    }
}

fn bind(
    name: &str,
    types: &[Type],
    values: &[&(dyn ToSql + Sync)],
    out: &mut BytesMut,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    if types.len() != values.len() {
        return Err(format!("{} values for {} parameters", values.len(), types.len()).into());
    }
    let write = |(value, of): (&&(dyn ToSql + Sync), &Type), out: &mut BytesMut| {
        value.to_sql_checked(of, out).map(|is_null| match is_null {
            IsNull::Yes => postgres_protocol::IsNull::Yes,
            IsNull::No => postgres_protocol::IsNull::No,
        })
    };
    frontend::bind("", name, [BINARY], values.iter().zip(types), write, [BINARY], out).map_err(|error| match error {
        frontend::BindError::Conversion(error) => error,
        frontend::BindError::Serialization(error) => error.into(),
    })
}

/// Why an exchange failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refused, and goes on.
    Refused(Report),
    /// The connection has ended, with these last words of the server if it had any.
    Ended(Option<Report>),
    /// The system refuses to send or receive.
    System(io::Error),
    /// The server sent this, which it should not.
    Protocol(&'static str),
    /// A value cannot be sent or read as what it should be.
    Value(Box<dyn Error + Send + Sync>),
}

/// What a server says of an error, or in a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// In English, whatever the server's language.
    pub(super) severity: String,
    /// SQLSTATE.
    pub(super) code: String,
    pub(super) message: String,
}

impl Report {
    /// Reads the body of an error or a notice.
    fn read(body: &[u8]) -> Self {
        let mut report = Self { severity: String::new(), code: String::new(), message: String::new() };
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text);
            match kind {
                b'V' => report.severity = text.into_owned(),
                b'C' => report.code = text.into_owned(),
                b'M' => report.message = text.into_owned(),
                _ => {}
            }
        }
        report
    }

    /// Whether nothing follows on the same connection.
    pub(super) fn ends_the_connection(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

/// Bytes of a message before its body: its kind, and the length of the rest, which counts itself.
const HEAD_BYTES: usize = 5;
/// No message of ours is answered by a longer one; a larger length is no message of a server.
const MAX_BYTES: usize = 1 << 30;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message<'a> {
    /// Its first byte.
    kind: u8,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message of `bytes`, with how many bytes it takes; `None` when more are to come.
    fn first(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Failure> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if !(HEAD_BYTES - 1..MAX_BYTES).contains(&length) {
            return Err(Failure::Protocol("a message of impossible length"));
        }
        let body = rest.get(..length + 1 - HEAD_BYTES);
        Ok(body.map(|body| (Self { kind, body }, length + 1)))
    }
}

/// A row of an answer, its values as the server sends them in binary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    body: &'a [u8],
    types: &'a [Option<Type>],
}

impl<'a> Row<'a> {
    fn new(body: &'a [u8], types: &'a [Option<Type>]) -> Self {
        // The number of columns comes first; it is that of the statement.
        Self { body: body.get(2..).unwrap_or_default(), types }
    }

    /// Its values from the first column on: `None` is null.
    pub(super) fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            // A negative length is null.
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = after;
                return Some(None);
            };
            let (value, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Some(value))
        })
    }

    /// Whole numbers of any width, from the first column on. What is none is taken for null.
    pub(super) fn whole_numbers(self) -> impl Iterator<Item = Option<i64>> {
        self.values().map(|value| match *value? {
            [a, b] => Some(i16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        })
    }

    /// The value of a column, from 0, as what its type is read as.
    ///
    /// # Errors
    /// When there is no such value, it is null, or it is of another type.
    pub(super) fn get<T: tokio_postgres::types::FromSqlOwned>(self, column: usize) -> Result<T, Failure> {
        let (Some(Some(raw)), Some(Some(of))) = (self.values().nth(column), self.types.get(column)) else {
            return Err(Failure::Protocol("a row without a requested value"));
        };
        if !T::accepts(of) {
            return Err(Failure::Protocol("a value of another type than requested"));
        }
        T::from_sql(of, raw).map_err(Failure::Value)
    }
}

/// The types of a statement's parameters.
fn parameter_types(body: &[u8]) -> Result<Vec<Type>, Failure> {
    let (oids, _) = body.get(2..).unwrap_or_default().as_chunks::<4>();
    let known = |oid: &[u8; 4]| Type::from_oid(u32::from_be_bytes(*oid));
    oids.iter()
        .map(|oid| known(oid).ok_or(Failure::Protocol("a parameter of a type that is not PostgreSQL's own")))
        .collect()
}

/// The types of the columns of a statement's rows; `None` for one that is not PostgreSQL's own.
fn column_types(body: &[u8]) -> Result<Vec<Option<Type>>, Failure> {
    const MALFORMED: Failure = Failure::Protocol("a malformed description of rows");
    let mut rest = body.get(2..).ok_or(MALFORMED)?;
    let mut types = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).ok_or(MALFORMED)?;
        // After the name: table, column, type, size, modifier, format.
        let about: &[u8; 18] = rest[end + 1..].first_chunk().ok_or(MALFORMED)?;
        let [_, _, _, _, _, _, oid @ .., _, _, _, _, _, _, _, _] = *about;
        types.push(Type::from_oid(u32::from_be_bytes(oid)));
        rest = &rest[end + 1 + about.len()..];
    }
    Ok(types)
}

/// How many rows a statement returned or changed: the last word of what the server says it did.
fn count_of(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body.strip_suffix(b"\0")?).ok()?;
    text.rsplit(' ').next()?.parse().ok()
}
