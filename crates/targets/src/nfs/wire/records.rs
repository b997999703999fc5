//! Records on a connection (RFC 5531, section 11): fragments with marks, taken from the stream as it comes and handed on without
//! being put together first.

use super::nfs3::MAX_READ_HEAD_BYTES;
use super::rpc::LAST_FRAGMENT;
use super::xdr::Fault;

/// Bytes that a record may have beside data.
const MAX_HEAD_BYTES: usize = 1024;
const _: () = assert!(MAX_READ_HEAD_BYTES <= MAX_HEAD_BYTES);

/// Takes what records hold.
pub trait Sink {
    /// Looks at the first bytes of a record, which are all of it if `is_whole`.
    ///
    /// # Errors
    /// [`Fault::Short`] asks for more bytes; any other fault ends the connection.
    fn head(&mut self, bytes: &[u8], is_whole: bool) -> Result<Take, Fault>;

    /// Takes the next data of the record.
    fn data(&mut self, bytes: &[u8]);

    /// All data of the record have come.
    fn data_end(&mut self);
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Nothing more that is of use.
    Nothing,
    /// So many bytes of head, and then so many of data.
    Data {
        /// Bytes of the head.
        head_bytes: usize,
        /// Bytes of the data.
        data_bytes: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looking for the end of the head.
    Head,
    /// So many bytes of data are to come.
    Data(u32),
    /// The rest of the record is of no use.
    Rest,
}

/// Cuts the stream of one connection into records.
#[derive(Debug)]
pub struct Records {
    mark: [u8; 4],
    mark_bytes: usize,
    fragment_left: usize,
    is_last: bool,
    state: State,
    /// The head of a record that has come in pieces.
    head: Vec<u8>,
    /// Bytes that the present record may still have.
    room: usize,
    record_max: usize,
}

impl Records {
    /// For records with at most `data_max` bytes of data.
    pub fn new(data_max: u32) -> Self {
        let record_max = data_max as usize + MAX_HEAD_BYTES;
        Self {
            mark: [0; 4],
            mark_bytes: 0,
            fragment_left: 0,
            is_last: false,
            state: State::Head,
            head: Vec::with_capacity(MAX_HEAD_BYTES),
            room: record_max,
            record_max,
        }
    }

    /// Bytes of data that come next without anything between: they may be read to where they belong and reported to
    /// [`Records::took_data`] instead of being fed.
    pub fn data_next(&self) -> usize {
        match self.state {
            State::Data(left) => self.fragment_left.min(left as usize),
            State::Head | State::Rest => 0,
        }
    }

    /// So many of [`Records::data_next`] were taken already.
    ///
    /// # Errors
    /// When the record ends before its data.
    pub fn took_data(&mut self, bytes: usize, sink: &mut impl Sink) -> Result<(), Fault> {
        self.advance_data(bytes, sink);
        self.consumed(bytes)
    }

    /// Takes the next bytes of the stream, any number of them.
    ///
    /// # Errors
    /// What cannot be a record of replies; the connection is of no use any more.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.fragment_left == 0 {
                let missing = (4 - self.mark_bytes).min(bytes.len());
                self.mark[self.mark_bytes..self.mark_bytes + missing].copy_from_slice(&bytes[..missing]);
                self.mark_bytes += missing;
                bytes = &bytes[missing..];
                if self.mark_bytes == 4 {
                    self.begin_fragment()?;
                }
                continue;
            }
            let (now, _) = bytes.split_at(bytes.len().min(self.fragment_left));
            let used = self.take(now, sink)?;
            bytes = &bytes[used..];
            self.consumed(used)?;
        }
        Ok(())
    }

    fn begin_fragment(&mut self) -> Result<(), Fault> {
        let mark = u32::from_be_bytes(self.mark);
        let length = (mark & !LAST_FRAGMENT) as usize;
        if length == 0 {
            return Err(Fault::Wrong("an empty fragment"));
        }
        self.room = self.room.checked_sub(length).ok_or(Fault::Wrong("a record over its limit"))?;
        (self.mark_bytes, self.fragment_left, self.is_last) = (0, length, mark & LAST_FRAGMENT != 0);
        Ok(())
    }

    /// Bytes of `now` that were used, at least one.
    fn take(&mut self, now: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        match self.state {
            State::Rest => Ok(now.len()),
            State::Data(left) => {
                let bytes = now.len().min(left as usize);
                sink.data(&now[..bytes]);
                self.advance_data(bytes, sink);
                Ok(bytes)
            }
            State::Head => {
                let before = self.head.len();
                let added = if before == 0 { now.len() } else { now.len().min(MAX_HEAD_BYTES - before) };
                let is_whole = self.is_last && added == self.fragment_left;
                let found = if before == 0 {
                    sink.head(now, is_whole)
                } else {
                    self.head.extend_from_slice(&now[..added]);
                    sink.head(&self.head, is_whole)
                };
                match found {
                    Ok(Take::Nothing) => {
                        self.head.clear();
                        self.state = State::Rest;
                        Ok(added)
                    }
                    Ok(Take::Data { head_bytes, data_bytes }) => {
                        self.head.clear();
                        self.state = State::Data(data_bytes);
                        self.advance_data(0, sink);
                        // A head that ended in bytes seen before would have been found then.
                        let used = head_bytes.checked_sub(before).filter(|used| (1..=added).contains(used));
                        used.ok_or(Fault::Wrong("a reply whose head ends nowhere"))
                    }
                    Err(Fault::Short) if is_whole => Err(Fault::Wrong("a reply that ends too early")),
                    Err(Fault::Short) if before + added >= MAX_HEAD_BYTES => {
                        Err(Fault::Wrong("a reply with too long a head"))
                    }
                    Err(Fault::Short) => {
                        if before == 0 {
                            self.head.extend_from_slice(now);
                        }
                        Ok(added)
                    }
                    Err(fault) => Err(fault),
                }
            }
        }
    }

    fn advance_data(&mut self, bytes: usize, sink: &mut impl Sink) {
        let State::Data(left) = self.state else { return };
        let left = left - (bytes as u32).min(left);
        self.state = if left == 0 { State::Rest } else { State::Data(left) };
        if left == 0 {
            sink.data_end();
        }
    }

    fn consumed(&mut self, bytes: usize) -> Result<(), Fault> {
        self.fragment_left -= bytes;
        if self.fragment_left > 0 || !self.is_last {
            return Ok(());
        }
        let ended = std::mem::replace(&mut self.state, State::Head);
        self.room = self.record_max;
        match ended {
            State::Rest => Ok(()),
            State::Data(_) | State::Head => Err(Fault::Wrong("a record that ends within its data")),
        }
    }
}
