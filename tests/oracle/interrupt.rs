//! Ctrl-C while the server works on something that takes long.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::model::Model;
use crate::place::Place;
use crate::responder::{Answer, Answers, Call, Fault, Generation, Options, Responder};
use crate::whole::PASSWORD;

/// Longer than any test: what is asked is never answered.
const LONG: Duration = Duration::from_secs(3600);
/// The program looks after it for two seconds, in batches ten; the rest is what a busy machine may take.
const BOUND: Duration = Duration::from_secs(40);

/// A model that can be made so slow that it does not answer, where a statement has this part.
#[derive(Clone)]
struct Slow {
    model: Model,
    part: &'static str,
    is_slow: Arc<AtomicBool>,
    /// Calls that wait.
    waiting: Arc<AtomicUsize>,
}

impl Slow {
    fn of(model: &Model, part: &'static str) -> Self {
        Self { model: model.clone(), part, is_slow: Arc::default(), waiting: Arc::default() }
    }

    /// Waits until so many calls have to wait.
    fn wait_for(&self, calls: usize) {
        self.is_slow.store(true, Ordering::SeqCst);
        let until = Instant::now() + Duration::from_secs(120);
        while self.waiting.load(Ordering::SeqCst) < calls {
            assert!(Instant::now() < until, "nothing is asked that takes long");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Answers for Slow {
    fn answer(&self, call: &Call) -> Answer {
        if self.is_slow.load(Ordering::SeqCst) && call.is_executed() && call.sql.contains(self.part) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            return Answer::Delay(LONG, Box::new(Answer::Ok));
        }
        self.model.answer(call)
    }

    fn connecting(&self, session: u32, service: &str) -> Option<Fault> {
        self.model.connecting(session, service)
    }
}

struct Slowed {
    slow: Slow,
    responder: Responder,
    place: Place,
}

impl Slowed {
    fn new(part: &'static str) -> Self {
        let options = Options { hashings: 1, password: PASSWORD.to_owned(), ..Options::of(Generation::V19) };
        let slow = Slow::of(&Model::default(), part);
        let responder = Responder::start(options, slow.clone());
        Self { slow, responder, place: Place::new() }
    }

    fn start(&self, words: &[&str]) -> Child {
        let address = format!("oracle://slob@127.0.0.1:{}/orcl", self.responder.port());
        let mut command = self.place.plimsoll(&[words, &["--target", &address]].concat());
        command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn set_up(&self) {
        let child = self.start(&["slob", "setup", "-s", "2", "SCALE=300", "--quiet"]);
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Reads what it says until these words are there.
fn heard(child: &mut Child, words: &str) -> String {
    let (mut said, mut more) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&said).into_owned();
        if text.contains(words) {
            return text;
        }
        let bytes = child.stderr.as_mut().unwrap().read(&mut more).unwrap();
        assert!(bytes > 0, "it ended without `{words}`:\n{text}");
        said.extend_from_slice(&more[..bytes]);
    }
}

/// How it ends, and after how long.
fn ended(mut child: Child, within: Duration) -> (ExitStatus, Duration, String) {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let took = began.elapsed();
            let said = child.wait_with_output().unwrap();
            return (status, took, String::from_utf8_lossy(&said.stderr).into_owned());
        }
        if began.elapsed() > within {
            child.kill().unwrap();
            panic!("it went on for {within:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_first_ctrl_c_ends_a_load_that_waits_and_keeps_what_was_measured() {
    for (send, part) in [("statement", "COUNT(t.c2)"), ("batch", ":operations")] {
        let slowed = Slowed::new(part);
        slowed.set_up();
        let words = ["slob", "run", "-t", "2", "--send", send, "RUN_TIME=600", "--warmup", "0"];
        let child = slowed.start(&words);
        slowed.responder.wait_until("the load runs", |sessions| {
            sessions.iter().map(|session| session.round_trips).sum::<u64>() > 500
        });
        // A second of it is whole by then.
        std::thread::sleep(Duration::from_millis(2500));
        slowed.slow.wait_for(2);
        interrupt(&child);
        let (status, took, said) = ended(child, BOUND);
        assert_eq!(status.code(), Some(130), "{send}, {took:?}\n{said}");
        let id = slowed.place.runs().pop().unwrap();
        let shown = slowed.place.run(&["report", &id, "--json"]);
        let run = &shown.json()["run"];
        assert_eq!(run["outcome"], "interrupted", "{send}\n{said}\n{shown}");
        assert!(run["steps"][0]["counters"]["operations"].as_u64().unwrap() > 0, "{send}\n{shown}");
        // The server answers another connection meanwhile, so that it is late and not gone.
        assert!(shown.to_string().contains("had not ended"), "{send}\n{said}\n{shown}");
        assert!(run["steps"][0]["unended"]["operations"].as_u64().unwrap() > 0, "{send}\n{shown}");
    }
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let attempt = || {
        let slowed = Slowed::new(":operations");
        slowed.set_up();
        let mut child = slowed.start(&["slob", "run", "-t", "2", "--send", "batch", "RUN_TIME=600", "--warmup", "0"]);
        slowed.slow.wait_for(2);
        interrupt(&child);
        // The statement goes on for minutes; after the first one alone the program ends ten seconds later.
        let first = heard(&mut child, "once more to abort at once");
        interrupt(&child);
        let (status, took, said) = ended(child, BOUND);
        assert_eq!(status.code(), Some(130), "{first}{said}");
        (took < Duration::from_secs(6)).then_some(()).ok_or_else(|| format!("{took:?}\n{first}{said}"))
    };
    // On a busy machine an end may take as long.
    attempt().or_else(|_| attempt()).unwrap();
}

#[test]
fn ctrl_c_ends_a_set_up_whose_statement_takes_long_and_the_same_command_goes_on() {
    let slowed = Slowed::new("CREATE UNIQUE INDEX");
    slowed.slow.is_slow.store(true, Ordering::SeqCst);
    let words = ["slob", "setup", "-s", "1", "SCALE=300", "--quiet"];
    let child = slowed.start(&words);
    slowed.slow.wait_for(1);
    interrupt(&child);
    let (status, took, said) = ended(child, BOUND);
    assert_eq!(status.code(), Some(130), "{took:?}\n{said}");
    slowed.slow.is_slow.store(false, Ordering::SeqCst);
    let again = slowed.start(&words).wait_with_output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}
