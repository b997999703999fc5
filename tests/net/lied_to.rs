//! The client before servers that lie, flood, stop in the middle or say nothing: it ends soon, with an error that names the server and
//! what is wrong, and nothing that cannot be enters a run.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::liar::{Liar, Lie};
use crate::peer::TOKEN;

/// Nothing here takes longer than a few seconds; what hangs takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a server may be silent. On a busy machine an honest answer may take longer than the shortest.
const LONG: &str = "20s";
const SHORT: &str = "1500ms";
const LONGER: &str = "6s";
/// Of a load in which a lie comes, which ends it; and of one that a lie comes after.
const UNTIL_IT_LIES: &str = "--duration=40s";
const TO_ITS_END: &str = "--duration=400ms";

const PING: &[&str] = &["--pattern", "ping"];
const DURABLE: &[&str] = &["--pattern", "redo-sync", "--durable"];
const UDP: &[&str] = &["--pattern", "gc", "--udp"];
const BULK: &[&str] = &["--pattern", "bulk"];
const BULK_DOWN: &[&str] = &["--pattern", "bulk", "--direction", "down"];

/// A run to a server that lies, and what the server is called.
fn run(lie: Lie, words: &[&str], duration: &str, timeout: &str) -> (Output, String) {
    let liar = Liar::start(lie);
    let (runs, server) = (tempfile::tempdir().unwrap(), liar.address.to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["net", "run", "--to", &server, duration, "--warmup=0s", "--quiet", "--timeout", timeout]);
    command.args(words).args(["--json", "--runs"]).arg(runs.path()).env("PLIMSOLL_NET_TOKEN", TOKEN);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    // What it says fits into no pipe, so it is read meanwhile.
    let mut said = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut said, &mut text).map(|_| text)
    });
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{lie:?}: the client hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut output = child.wait_with_output().unwrap();
    output.stdout = reading.join().unwrap().unwrap();
    (output, server)
}

/// What a server does, before which load, and what is said of it.
type Told<'a> = (Lie, &'a [&'a str], &'a str);

/// Whether it ends with an error that says what is wrong, and who says so; or what it says instead.
fn is_named(duration: &str, timeout: &str, (lie, words, expected): &Told<'_>) -> Result<(), String> {
    let (output, server) = run(*lie, words, duration, timeout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{lie:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains('\x1b'), "{lie:?}: {said}");
    let is_named = said.contains(expected) && said.contains(&format!("`{server}`"));
    is_named.then_some(()).ok_or_else(|| format!("{lie:?}: {said}"))
}

fn each_is_named(duration: &str, lies: &[Told<'_>]) {
    lies.iter().for_each(|lie| is_named(duration, LONG, lie).unwrap());
}

fn each_silence_is_named(duration: &str, lies: &[Told<'_>]) {
    lies.iter().for_each(|lie| is_named(duration, SHORT, lie).or_else(|_| is_named(duration, LONGER, lie)).unwrap());
}

#[test]
fn a_server_that_does_not_lie_is_believed() {
    for words in [PING, DURABLE, UDP, BULK, BULK_DOWN] {
        let (output, _) = run(Lie::None, words, TO_ITS_END, LONG);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn counts_and_times_that_cannot_be_are_no_results() {
    each_is_named(
        TO_ITS_END,
        &[
            (Lie::MoreReceived, PING, "bytes received, and"),
            (Lie::MoreReceived, BULK, "bytes received, and"),
            (Lie::FewerReceived, BULK, "reached the server"),
            (Lie::HalfIsKeptOnTheWay, BULK_DOWN, "differ: the server sent"),
            (Lie::LessTime, PING, "of a test that was open for"),
            (Lie::MoreTime, PING, "of a test that was requested"),
            (Lie::MoreProcessorTime, PING, "more processor time than time has passed"),
            (Lie::MoreDatagrams, UDP, "datagrams answered, and"),
        ],
    );
    // It takes two of its messages to see that.
    each_is_named(UNTIL_IT_LIES, &[(Lie::Backwards, PING, "its counts go backwards")]);
}

#[test]
fn messages_out_of_turn_too_long_or_too_many_end_the_run() {
    each_is_named(
        UNTIL_IT_LIES,
        &[
            (Lie::Again, PING, "it answers a request that was not sent, during a test"),
            (Lie::TooLong, PING, "a message of 65537 bytes was announced, and at most 65536 are taken"),
            (Lie::NoMessage, PING, "a message is not what it should be"),
            (Lie::Flood, PING, "it floods the control connection"),
            (Lie::EndsEarly, PING, "ended the test: it is [U+001B][2Jtired"),
            (Lie::PreparesForever, PING, "it floods the control connection"),
            (Lie::PreparesMore, PING, "it has filled 101 of 100 bytes"),
            (Lie::OpensWithoutFiles, DURABLE, "it opens a test without files to write"),
            (Lie::OpensWithoutDatagrams, UDP, "it opens a test without datagrams"),
        ],
    );
}

#[test]
fn answers_that_were_not_asked_for_or_cannot_be_end_the_run() {
    each_is_named(
        UNTIL_IT_LIES,
        &[
            (Lie::OtherNumber, PING, "number 21 of 64 bytes came, but number 20 of 64 bytes was requested"),
            (Lie::OtherLength, PING, "an answer of 65 bytes was announced"),
            (Lie::LaterThanItCame, PING, "the server says that it had a request for 1h00m"),
            (Lie::LaterThanItCame, UDP, "the server says that it had a request for 1h00m"),
            (Lie::WroteUnasked, PING, "the server reports a write that Plimsoll did not send"),
            (Lie::WroteNothing, DURABLE, "an answer does not say how long the server wrote"),
            (Lie::Twice, PING, "came, but number"),
            (Lie::FloodOfDatagrams, UDP, "datagrams came that answer nothing"),
        ],
    );
}

#[test]
fn a_server_that_goes_silent_or_away_is_given_up() {
    each_silence_is_named(
        UNTIL_IT_LIES,
        &[
            (Lie::SilentAtFirst, PING, "no answer in the handshake"),
            (Lie::SilentWhenAsked, PING, "no answer on the control connection"),
            (Lie::SilentInTheMiddle, PING, "connection 1 to"),
            (Lie::HalfAnAnswer, PING, "nothing came for"),
            (Lie::ClosesInTheMiddle, PING, "was lost while"),
            (Lie::ReadsNothing, BULK, "nothing could be sent for"),
        ],
    );
    each_silence_is_named(TO_ITS_END, &[(Lie::SilentAtTheEnd, PING, "no answer on the control connection")]);
}

#[test]
fn names_and_words_of_a_server_obey_no_terminal() {
    let (output, _) = run(Lie::NamesThatTerminalsObey, PING, TO_ITS_END, LONG);
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains("counter") && report.contains("interface") && report.contains("trouble"), "{report}");
    assert!(!report.contains('\x1b') && !report.contains("\\u001b"), "{report}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains('\x1b'));
}
