//! Executes prepared statements on a connection, at little cost to the client.
//!
//! The client's library hands each answer from the task that reads to the task that asked, and allocates for each row. For a load
//! generator on the server's own machine that is a third of its processor time. So sessions take the stream over once the library
//! has logged in, and one task sends, waits, and reads answers where they were received ("Extended Query" in PostgreSQL's manual).

mod failure;
mod message;
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

use self::message::{Message, column_types, count_of, parameter_types};
use super::stream::Shared;

pub(super) use self::failure::{Failure, Report};
pub(super) use self::message::Row;

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
