//! What is sent after the head of a reply: a page that is there, or a file piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 << 10;

/// The body of a reply.
#[derive(Debug)]
pub(super) enum Body {
    /// All of it.
    Whole(Option<Bytes>),
    /// Pieces of a file, and how many bytes are still to come.
    Pieces(mpsc::Receiver<io::Result<Bytes>>, u64),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self::Whole(None)
    }

    /// The first `bytes` of `file`, read as fast as they are taken.
    pub(super) fn of_file(mut file: File, bytes: u64) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut left = bytes;
            while left > 0 {
                // A file system can be slow, and everybody else waits on this thread.
                let read = tokio::task::spawn_blocking(move || (piece(&mut file, left), file)).await;
                let Ok((piece, same)) = read else { return };
                file = same;
                left -= piece.as_ref().map_or(left, |piece| piece.len() as u64);
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Self::Pieces(receiver, bytes)
    }
}

fn piece(file: &mut File, left: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
    let read = file.read(&mut piece)?;
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
    }
    piece.truncate(read);
    Ok(piece.into())
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(receiver, left) => receiver.poll_recv(cx).map(|piece| {
                let piece = piece?;
                *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                Some(piece.map(Frame::data))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces(_, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Pieces(_, left) => *left,
        })
    }
}
