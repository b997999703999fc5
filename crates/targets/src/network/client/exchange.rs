//! Requests and answers on one connection: what is still to be sent, and what has come of the answers.

use std::collections::VecDeque;
use std::io::IoSlice;

use crate::network::wire::{ANSWER_HEAD_BYTES, Answer, REQUEST_HEAD_BYTES, RequestHead, Status, WireError};
use model::units::Nanos;

/// A request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentRequest {
    /// Session, counted from the lane's first.
    pub(super) session: u32,
    /// When it was sent.
    pub(super) sent_ns: u64,
    /// Bytes of its answer.
    pub(super) answer_bytes: u32,
    /// Whether it is to be written.
    pub(super) is_durable: bool,
    sequence: u64,
}

impl SentRequest {
    pub(super) fn new(session: u32, sent_ns: u64, answer_bytes: u32, is_durable: bool, sequence: u64) -> Self {
        Self { session, sent_ns, answer_bytes, is_durable, sequence }
    }
}

/// An answer that has wholly come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    /// What it answers.
    pub(super) asked: SentRequest,
    /// What it says.
    pub(super) answer: Answer,
}

/// How much longer than it took a server may say that it had a request: clocks of two hosts do not run alike.
const CLOCKS_DIFFER_BY: u64 = 50;
const LEEWAY_NS: u64 = 1_000_000;

impl Answered {
    /// What of the answer, which came at `now_ns`, cannot be.
    pub(super) fn doubt(&self, now_ns: u64) -> Option<String> {
        let Self { asked, answer } = self;
        let took_ns = now_ns.saturating_sub(asked.sent_ns);
        if answer.server_ns > took_ns.saturating_add(took_ns / CLOCKS_DIFFER_BY).saturating_add(LEEWAY_NS) {
            let (server, took) = (Nanos(answer.server_ns), Nanos(took_ns));
            return Some(format!(
                "the server says that it had a request for {server}, and the answer came after {took}"
            ));
        }
        match (asked.is_durable, answer.status, answer.durable_ns) {
            (true, Status::Done, 0) => Some("an answer does not say how long the server wrote".to_owned()),
            (false, Status::NotWritten, _) | (false, Status::Done, 1..) => {
                Some("the server reports a write that Plimsoll did not send".to_owned())
            }
            _ => None,
        }
    }
}

/// The exchanges of one connection. Does no I/O: whoever has the socket takes what is to be sent and brings what came.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// Requests that are not wholly sent.
    to_send: VecDeque<([u8; REQUEST_HEAD_BYTES], usize)>,
    /// Bytes of the first of these that are sent.
    sent: usize,
    /// Those whose answers have not come, in their order.
    asked: VecDeque<SentRequest>,
    next_sequence: u64,
    head: [u8; ANSWER_HEAD_BYTES],
    /// Bytes of the head that have come.
    head_bytes: usize,
    /// The answer whose bytes are coming, and how many of them have not.
    coming: Option<(Answer, usize)>,
}

impl Exchanges {
    /// Adds a request.
    pub(super) fn ask(&mut self, session: u32, sent_ns: u64, request_bytes: u32, answer_bytes: u32, is_durable: bool) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let request = RequestHead { request_bytes, answer_bytes, sequence, is_durable, is_whole: false };
        self.to_send.push_back((request.bytes(), request_bytes as usize));
        self.asked.push_back(SentRequest::new(session, sent_ns, answer_bytes, is_durable, sequence));
    }

    /// Whether something is to be sent.
    pub(super) fn has_to_send(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Whether an answer has not wholly come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// How many bytes have to come until the first answer is whole, where only one is awaited.
    pub(super) fn awaited_bytes(&self) -> Option<usize> {
        let [only] = self.asked.as_slices().0 else { return None };
        let missing = match self.coming {
            Some((_, missing)) => missing,
            None => only.answer_bytes as usize - self.head_bytes,
        };
        (self.asked.len() == 1).then_some(missing)
    }

    /// The parts of what is to be sent next; `filling` is as long as the longest request.
    pub(super) fn next_parts<'a>(&'a self, filling: &'a [u8]) -> Option<[IoSlice<'a>; 2]> {
        let (head, bytes) = self.to_send.front()?;
        let head = &head[self.sent.min(REQUEST_HEAD_BYTES)..];
        let body_from = self.sent.saturating_sub(REQUEST_HEAD_BYTES);
        let body = &filling[body_from..(*bytes - REQUEST_HEAD_BYTES)];
        Some([IoSlice::new(head), IoSlice::new(body)])
    }

    /// So many bytes of [`next_parts`](Self::next_parts) were sent.
    pub(super) fn was_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.to_send.front().is_some_and(|(_, whole)| self.sent >= *whole) {
            self.to_send.pop_front();
            self.sent = 0;
        }
    }

    /// Takes in what came; calls `answered` for each answer that is whole.
    ///
    /// # Errors
    /// When it is no answer, or not the one to what was asked.
    pub(super) fn came(&mut self, mut bytes: &[u8], answered: &mut dyn FnMut(Answered)) -> Result<(), WireError> {
        while !bytes.is_empty() {
            let Some((answer, missing)) = self.coming else {
                let part = bytes.len().min(ANSWER_HEAD_BYTES - self.head_bytes);
                self.head[self.head_bytes..self.head_bytes + part].copy_from_slice(&bytes[..part]);
                self.head_bytes += part;
                bytes = &bytes[part..];
                if self.head_bytes == ANSWER_HEAD_BYTES {
                    self.head_bytes = 0;
                    self.begin_answer(answered)?;
                }
                continue;
            };
            let part = bytes.len().min(missing);
            bytes = &bytes[part..];
            self.coming = Some((answer, missing - part));
            if missing == part {
                self.end_answer(answer, answered);
            }
        }
        Ok(())
    }

    fn begin_answer(&mut self, answered: &mut dyn FnMut(Answered)) -> Result<(), WireError> {
        let Some(asked) = self.asked.front() else {
            return Err(WireError::Malformed { what: "an answer", why: "no request is open".to_owned() });
        };
        let answer = Answer::read(&self.head, asked.answer_bytes)?;
        if (answer.sequence, answer.answer_bytes) != (asked.sequence, asked.answer_bytes) {
            let why = format!(
                "number {} of {} bytes came, but number {} of {} bytes was requested",
                answer.sequence, answer.answer_bytes, asked.sequence, asked.answer_bytes
            );
            return Err(WireError::Malformed { what: "an answer", why });
        }
        let missing = answer.answer_bytes as usize - ANSWER_HEAD_BYTES;
        self.coming = Some((answer, missing));
        if missing == 0 {
            self.end_answer(answer, answered);
        }
        Ok(())
    }

    fn end_answer(&mut self, answer: Answer, answered: &mut dyn FnMut(Answered)) {
        self.coming = None;
        if let Some(asked) = self.asked.pop_front() {
            answered(Answered { asked, answer });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(sequence: u64, answer_bytes: u32) -> Vec<u8> {
        let answer = Answer { answer_bytes, status: Status::Done, sequence, server_ns: 9, durable_ns: 4 };
        let mut bytes = answer.bytes().to_vec();
        bytes.resize(answer_bytes as usize, 7);
        bytes
    }

    fn sent(exchanges: &mut Exchanges, filling: &[u8], most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(parts) = exchanges.next_parts(filling) {
            let flat: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).take(most).collect();
            all.extend_from_slice(&flat);
            exchanges.was_sent(flat.len());
        }
        all
    }

    proptest! {
        #[test]
        fn however_bytes_are_cut_requests_and_answers_are_whole(
            sizes in prop::collection::vec((32..300_u32, 32..300_u32), 1..8), out in 1..100_usize, back in 1..100_usize,
        ) {
            let filling: Vec<u8> = (0..300).map(|byte| byte as u8).collect();
            let mut exchanges = Exchanges::default();
            for (session, (request, answer)) in (0..).zip(&sizes) {
                exchanges.ask(session, 5, *request, *answer, session % 2 == 0);
            }
            let bytes = sent(&mut exchanges, &filling, out);
            let mut rest = &bytes[..];
            for (number, (request, answer)) in (0..).zip(&sizes) {
                let (head, after) = rest.split_first_chunk::<32>().unwrap();
                let read = RequestHead::read(head, 300, 300).unwrap();
                prop_assert_eq!((read.request_bytes, read.answer_bytes, read.sequence), (*request, *answer, number));
                prop_assert_eq!(&after[..*request as usize - 32], &filling[..*request as usize - 32]);
                rest = &after[*request as usize - 32..];
            }
            prop_assert!(rest.is_empty());
            let answers: Vec<u8> = (0..).zip(&sizes).flat_map(|(number, (_, bytes))| answer(number, *bytes)).collect();
            let mut done = Vec::new();
            for piece in answers.chunks(back) {
                exchanges.came(piece, &mut |answered| done.push(answered.asked.session)).unwrap();
            }
            prop_assert_eq!(done, (0..sizes.len() as u32).collect::<Vec<_>>());
            prop_assert!(!exchanges.is_waiting());
        }
    }

    #[test]
    fn an_answer_that_nobody_asked_for_is_an_error() {
        let mut nothing = |_| panic!("this is no answer");
        let error = Exchanges::default().came(&answer(0, 64), &mut nothing).unwrap_err();
        assert_eq!(error.to_string(), "an answer is not what it should be: no request is open");
        for (sequence, bytes) in [(1, 64), (0, 48), (0, 65)] {
            let mut exchanges = Exchanges::default();
            exchanges.ask(0, 0, 32, 64, false);
            assert!(exchanges.came(&answer(sequence, bytes), &mut nothing).is_err(), "{sequence} {bytes}");
        }
    }

    #[test]
    fn times_and_writes_that_cannot_be_are_doubted() {
        let doubted = |is_durable: bool, status: Status, server_ns: u64, durable_ns: u64| {
            let asked = SentRequest::new(0, 1_000, 64, is_durable, 0);
            let answer = Answer { answer_bytes: 64, status, sequence: 0, server_ns, durable_ns };
            Answered { asked, answer }.doubt(100_001_000)
        };
        for (is_durable, status, durable_ns) in
            [(false, Status::Done, 0), (true, Status::Done, 5), (true, Status::NotWritten, 0)]
        {
            assert_eq!(doubted(is_durable, status, 102_000_000, durable_ns), None);
        }
        assert!(doubted(false, Status::Done, 104_000_000, 0).unwrap().contains("had a request for 104"));
        assert!(doubted(false, Status::Done, u64::MAX, 0).is_some());
        assert!(doubted(true, Status::Done, 9, 0).unwrap().contains("does not say how long"));
        assert!(doubted(false, Status::Done, 9, 9).unwrap().contains("did not send"));
        assert!(doubted(false, Status::NotWritten, 9, 0).unwrap().contains("did not send"));
    }

    #[test]
    fn what_has_to_come_of_an_only_answer_is_known() {
        let mut exchanges = Exchanges::default();
        assert_eq!(exchanges.awaited_bytes(), None);
        exchanges.ask(0, 0, 32, 64, false);
        assert_eq!(exchanges.awaited_bytes(), Some(64));
        exchanges.came(&answer(0, 64)[..40], &mut |_| ()).unwrap();
        assert_eq!(exchanges.awaited_bytes(), Some(24));
        exchanges.ask(0, 0, 32, 64, false);
        assert_eq!(exchanges.awaited_bytes(), None);
    }
}
