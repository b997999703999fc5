//! Both ends over sockets and pipes, and what others say to a witness.

use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::thread;

use super::*;
use crate::link::{Link, LinkError, Notebook, Pipe};
use crate::notes::tests::opening;
use crate::notes::{NotesError, read};
use targets::network::wire::{Token, prove_load};

static NEVER: AtomicBool = AtomicBool::new(false);

fn token() -> Token {
    Token::new("a token of tests").unwrap()
}

/// Ends a witness however a test ends, which would wait for it otherwise.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A witness with a new file, while `work` goes on; gives what became of both.
fn witnessed<T: Send>(
    work: impl FnOnce(u16, &Path) -> T + Send,
) -> (T, Result<Summary, WitnessError>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let writer = Writer::make(&path).unwrap();
    let stop = AtomicBool::new(false);
    let (done, summary) = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, &token().key(), writer, &stop, &|_| {}));
        let ending = Ending(&stop);
        let done = work(port, &path);
        // A load that has ended has ended it already.
        drop(ending);
        (done, serving.join().unwrap())
    });
    (done, summary, folder)
}

fn connected(port: u16) -> Result<Link, LinkError> {
    Link::connect("witness", ("127.0.0.1", port), &token())
}

fn end(has_failed: bool) -> End {
    End { has_failed, is_target_gone: false, idle_ms: 0, why: "a reason".to_owned() }
}

#[test]
fn what_is_answered_has_been_written() {
    let ((), summary, folder) = witnessed(|port, path| {
        let link = connected(port).unwrap();
        link.open(&opening(2, 4)).unwrap();
        assert_eq!(read(path).unwrap().notes, 0);
        for seq in 1..=20 {
            link.note(1, seq).unwrap();
            assert_eq!(read(path).unwrap().sessions[1].last, seq, "it goes on before its note is there");
        }
        thread::scope(|scope| {
            let link = &link;
            for session in 0..2 {
                scope.spawn(move || {
                    (0..50).for_each(|more| link.note(session, u64::from(session) * 20 + more + 1).unwrap())
                });
            }
        });
        link.end(end(true)).unwrap();
    });
    let Summary { notes, closing } = summary.unwrap();
    assert_eq!(
        (notes, closing.map(|closing| (closing.how, closing.why))),
        (120, Some((How::Failed, "a reason".to_owned())))
    );
    assert_eq!(read(&folder.path().join("notes")).unwrap().closing.unwrap().how, How::Failed);
}

#[test]
fn a_witness_has_one_load_and_is_free_again_for_one_that_never_began() {
    let ((), summary, folder) = witnessed(|port, _| {
        let first = connected(port).unwrap();
        let second = connected(port).unwrap_err();
        assert!(matches!(&second, LinkError::Refused { why, .. } if why.contains("another load")), "{second}");
        drop(first);
        // It takes a moment until the witness has seen that.
        let third = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            connected(port).ok()
        });
        drop(third.expect("it never became free"));
        let wrong = Link::connect("witness", ("127.0.0.1", port), &Token::new("another token").unwrap()).unwrap_err();
        assert!(
            wrong.to_string().contains("another token")
                && model::hint(&wrong).unwrap().contains("PLIMSOLL_WITNESS_TOKEN")
        );
    });
    assert_eq!(summary.unwrap(), Summary { notes: 0, closing: None });
    assert!(!folder.path().join("notes").exists(), "notes of no load are not kept");
}

#[test]
fn a_load_that_goes_without_a_word_is_noted_so() {
    let ((), summary, folder) = witnessed(|port, path| {
        let link = connected(port).unwrap();
        link.open(&opening(1, 4)).unwrap();
        link.note(0, 1).unwrap();
        drop(link);
        while read(path).unwrap().closing.is_none() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(summary.unwrap().notes, 1);
    let closing = read(&folder.path().join("notes")).unwrap().closing.unwrap();
    assert!(closing.how == How::Closed && closing.silent_ms < 3_000, "{closing:?}");
}

#[test]
fn a_load_whose_witness_stops_goes_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, writer) = (AtomicBool::new(false), Writer::make(&path).unwrap());
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, &token().key(), writer, &stop, &|_| {}));
        let _ending = Ending(&stop);
        let link = connected(port).unwrap();
        link.open(&opening(1, 4)).unwrap();
        link.note(0, 1).unwrap();
        stop.store(true, Ordering::Relaxed);
        let lost = (2..1000).find_map(|seq| link.note(0, seq).err()).expect("it was noted to the end");
        assert!(matches!(&lost, LinkError::Gone { why, .. } if why.contains("stopped")), "{lost}");
        assert_eq!(serving.join().unwrap().unwrap().closing.unwrap().how, How::Stopped);
    });
}

/// Says things to a witness behind the handshake, and hears whether it still answers.
fn said(port: u16, words: &[FromLoad], raw: &[u8]) -> Vec<FromWitness> {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    prove_load(&stream, &token().key(), deadline).unwrap();
    let mut control = Control::<FromWitness, FromLoad>::new(stream);
    words.iter().for_each(|word| control.send(word).unwrap());
    let mut stream = control.stream();
    stream.write_all(raw).unwrap();
    let mut heard = Vec::new();
    while let Ok(word) = control.expect(deadline) {
        heard.push(word);
    }
    heard
}

#[test]
fn what_no_load_says_ends_the_connection_and_not_the_witness() {
    let hello = || FromLoad::Hello(Version::ours());
    let other = Version { program: "9.9.9".to_owned(), ..Version::ours() };
    let mut wrong = opening(1, 4);
    wrong.shape.sessions = u32::MAX;
    let ((), summary, _folder) = witnessed(|port, _| {
        assert!(
            matches!(&said(port, &[FromLoad::Hello(other)], b"")[..], [FromWitness::Refused(why)] if why.contains("9.9.9"))
        );
        assert!(said(port, &[FromLoad::Alive], b"").is_empty());
        for word in [hello(), FromLoad::Open(Box::new(wrong)), FromLoad::End(end(false))] {
            let heard = said(port, &[hello(), word], b"");
            assert!(matches!(heard[..], [FromWitness::Welcome, FromWitness::Refused(_)]), "{heard:?}");
        }
        let heard = said(port, &[hello(), FromLoad::Notes(vec![(0, 1)])], b"");
        assert!(matches!(heard[..], [FromWitness::Welcome, FromWitness::Failed(_)]), "{heard:?}");
        for raw in [&b"\xff\xff\xff\xff"[..], &[2, 0, 0, 0, b'{', b'x']] {
            assert_eq!(said(port, &[hello()], raw), [FromWitness::Welcome]);
        }
        // After all of that a load comes, and notes what does not follow.
        let open = FromLoad::Open(Box::new(opening(1, 4)));
        let heard = said(port, &[hello(), open, FromLoad::Notes(vec![(0, 1), (0, 3)])], b"");
        assert!(matches!(heard[..], [FromWitness::Welcome, FromWitness::Opened, FromWitness::Failed(_)]), "{heard:?}");
    });
    let Summary { notes, closing } = summary.unwrap();
    assert_eq!((notes, closing.unwrap().how), (1, How::Stopped));
}

/// What a witness makes of a pipe with this text in it, whose writer has gone.
fn piped(pieces: &[&str]) -> (Result<Summary, WitnessError>, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let (input, mut output) = std::io::pipe().unwrap();
    let writer = Writer::make(&path).unwrap();
    let summary = thread::scope(|scope| {
        scope.spawn(move || {
            for piece in pieces {
                // A witness that has heard enough reads no further.
                let _ = output.write_all(piece.as_bytes());
                thread::sleep(Duration::from_millis(5));
            }
        });
        listen(&input, writer, &NEVER, &|_| {})
    });
    (summary, path, folder)
}

/// What a load writes to a pipe.
fn load_text(ends: bool) -> String {
    let mut written = tempfile::tempfile().unwrap();
    let pipe = Pipe::begin(&written, &NEVER).unwrap();
    pipe.alive().unwrap();
    pipe.open(&opening(2, 4)).unwrap();
    for seq in 1..=3 {
        pipe.note(0, seq).unwrap();
        pipe.alive().unwrap();
    }
    if ends {
        pipe.end(&end(false)).unwrap();
    }
    let mut text = String::new();
    written.rewind().and_then(|()| written.read_to_string(&mut text)).unwrap();
    text
}

#[test]
fn a_pipe_that_takes_nothing_is_left_when_the_user_ends_the_load() {
    let (reader, writer) = io::pipe().unwrap();
    let stop = AtomicBool::new(false);
    let pipe = Pipe::begin(&writer, &stop).unwrap();
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            (1..).find_map(|seq| {
                sent.store(seq, Ordering::Relaxed);
                pipe.note(0, seq).err()
            })
        });
        // Full once nothing has moved for a while; the load waits then, and goes on to wait.
        let mut before = 0;
        while before == 0 || sent.load(Ordering::Relaxed) != before {
            before = sent.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(300));
        }
        assert!(!load.is_finished());
        stop.store(true, Ordering::Relaxed);
        let error = load.join().unwrap().unwrap();
        assert!(error.to_string().contains("takes nothing"), "{error}");
    });
    // Half a line may be there, which no other may follow.
    assert!(pipe.end(&end(false)).is_err());
    drop(reader);
}

#[test]
fn what_comes_from_a_pipe_is_noted_wherever_it_is_cut() {
    let text = load_text(true);
    let opened = text.find("0 1\n").unwrap();
    for at in [0, 5, opened - 1, opened + 1, opened + 3, text.len() - 1, text.len()] {
        let (summary, path, _folder) = piped(&[&text[..at], &text[at..]]);
        let Summary { notes, closing } = summary.unwrap();
        assert_eq!((notes, closing.unwrap().how), (3, How::Done), "cut at {at}");
        assert_eq!(read(&path).unwrap().sessions[0].last, 3);
    }
    let unended = load_text(false);
    for half in ["", "0", "0 4", "end {\"has"] {
        let (summary, path, _folder) = piped(&[&unended, half]);
        let Summary { notes, closing } = summary.unwrap();
        assert_eq!((notes, closing.unwrap().how), (3, How::Closed), "{half}");
        assert!(read(&path).unwrap().closing.unwrap().silent_ms < 3_000);
    }
}

#[test]
fn what_no_load_writes_ends_the_notes_with_an_error() {
    let text = load_text(false);
    for line in [
        "0 5\n",
        "0 3\n",
        "9 1\n",
        "x\n",
        "0 x\n",
        "open {}\n",
        "end {}\n",
        "\u{1b}[2J\n",
        &format!("{}\n", "9".repeat(70_000)),
    ] {
        // In two pieces, and in one.
        let (both, whole) = ([text.as_str(), line], format!("{text}{line}"));
        let pieces: &[&str] = if line.len() % 2 == 0 { &both } else { &[&whole] };
        let (summary, path, _folder) = piped(pieces);
        let error = summary.unwrap_err();
        assert!(
            matches!(error, WitnessError::Strange(_)) && !error.to_string().contains('\u{1b}'),
            "{line:.20}: {error}"
        );
        let noted = read(&path).unwrap();
        assert_eq!((noted.notes, noted.closing.unwrap().how), (3, How::Stopped), "{line:.20}");
    }
    for strange in ["", "hello\n", "plimsoll durable load 1 9.9.9\n", "0 1\n"] {
        let (summary, path, _folder) = piped(&[strange]);
        assert!(summary.is_err() || summary.is_ok_and(|summary| summary.closing.is_none()), "{strange}");
        assert!(!path.exists() && matches!(read(&path), Err(NotesError::File(_))), "{strange}");
    }
}
