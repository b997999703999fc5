//! `plimsoll durable witness`.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;

use crate::cli::arguments::Seconds;
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::net::At;
use crate::cli::token::{self, TokenOf};
use crate::cli::{Interrupt, say, shell};
use ::durable::notes::Writer;
use ::durable::opening::How;
use ::durable::witness::{self, Event, Summary};
use model::shown::shown;
use model::units::{Nanos, group_thousands};

/// How often a command that cuts is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A load that said nothing for longer is not known to be under way.
const SPEAKS_WITHIN: Duration = Duration::from_millis(1500);
/// How long it may still say how it ended when the witness has ended.
const SAYS_IN: Duration = Duration::from_secs(3);

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll durable witness --listen 0.0.0.0 --notes cut1.notes
  plimsoll durable witness --listen 10.0.0.9 --notes /net/cut1.notes
  plimsoll durable witness --stdin --notes cut1.notes
  plimsoll durable witness --listen 10.0.0.9 --notes cut1.notes \\
    --cut 'virsh destroy db1' --cut-after 30s

With `--stdin` a load is piped into it, and nothing but ssh is needed:

  ssh db1 plimsoll durable load --target dir:/u01/durable \\
    | plimsoll durable witness --stdin --notes cut1.notes

Notes that are in the pipe when the power fails are lost, so fewer commits can be compared. Run the witness on a machine that keeps its \
power. It notes one load and ends 10 s after that fell silent. Each note is written before it is answered, and flushed within a second.";

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll durable witness [OPTIONS] --notes <FILE>
         <--listen <ADDR[:PORT]>|--stdin>";

/// Arguments of `plimsoll durable witness`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("way").args(["listen", "stdin"]).required(true), override_usage = USAGE)]
pub(in crate::cli) struct Arguments {
    /// Address to listen on, with or without a port
    ///
    /// 127.0.0.1 serves this machine alone, 0.0.0.0 every machine that can reach it.
    #[arg(long, value_name = "ADDR[:PORT]", help_heading = "Network")]
    listen: Option<At>,

    /// Read notes of `durable load` from standard input
    #[arg(long, help_heading = "Network")]
    stdin: bool,

    /// File with the token of the witness [default: the variable PLIMSOLL_WITNESS_TOKEN, else a new token]
    #[arg(long, value_name = "FILE", conflicts_with = "stdin", help_heading = "Network")]
    token_file: Option<PathBuf>,

    /// File with the notes of the witness
    #[arg(long, value_name = "FILE", help_heading = "Notes")]
    notes: PathBuf,

    /// Shell command that cuts the power once a load has committed for `--cut-after`
    ///
    /// It runs on this machine, and only while the load is under way. Without it you cut the power.
    #[arg(long, value_name = "COMMAND", help_heading = "Cut")]
    cut: Option<String>,

    /// Time from the beginning of the load to that command
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "cut", help_heading = "Cut")]
    cut_after: Seconds,

    /// Print what would be done, and exit
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
}

/// What cuts the power, at its time and once.
struct Cut<'a> {
    command: &'a str,
    after: Duration,
    /// Told that a load has begun; cut off when the witness has ended.
    begun: Receiver<()>,
    load: &'a Heard,
    interrupt: &'a Interrupt,
}

/// When a load was heard last.
#[derive(Default)]
struct Heard(Mutex<Option<Instant>>);

impl Heard {
    fn tell(&self, event: &Event) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Opened { .. } | Event::Heard => *heard = Some(Instant::now()),
            Event::Ended => *heard = None,
            Event::TurnedAway { .. } => {}
        }
    }

    /// Whether one is under way now: it speaks twice a second.
    fn is_there(&self) -> bool {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|heard| heard.elapsed() < SPEAKS_WITHIN)
    }
}

/// What came of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// Its command was not run: no load was under way.
    NotRun,
    /// It ended well, or did not say how it ended.
    Run,
    /// It failed, and said so.
    Failed,
}

impl Cut<'_> {
    /// Waits for its time, and for the end of the command.
    fn run(self) -> Came {
        let is_time =
            self.begun.recv().is_ok() && self.begun.recv_timeout(self.after) == Err(RecvTimeoutError::Timeout);
        if !is_time || self.interrupt.stop().is_asked() || !self.load.is_there() {
            return Came::NotRun;
        }
        say::line(format_args!("{} cutting: `{}`", now(), shown(self.command)));
        self.carry_out().unwrap_or_else(|failure| {
            // At once: the witness goes on for as long as the load does.
            if let Failure::Reported(reported) = failure {
                say::error(&reported.message);
            }
            Came::Failed
        })
    }

    fn carry_out(&self) -> Result<Came, Failure> {
        let mut process = Some(shell::shell(self.command, Stdio::null())?);
        let mut over: Option<Instant> = None;
        while process.is_some() {
            if self.interrupt.stop().is_asked() {
                shell::end_group(process.take());
                say::note("the command that cuts was ended");
                return Ok(Came::Failed);
            }
            // Once the power is gone, the command need not say so.
            if over.is_some_and(|over| over.elapsed() >= SAYS_IN) {
                say::note("the command that cuts still runs");
                return Ok(Came::Run);
            }
            shell::ended(&mut process, Some(self.command))?;
            if over.is_some() {
                std::thread::sleep(LOOK_EVERY);
            } else if self.begun.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
                over = Some(Instant::now());
            }
        }
        Ok(Came::Run)
    }
}

/// The witness's clock, as it stands before what is told.
fn now() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { listen, notes, .. } = arguments;
    let given = match listen {
        Some(_) => token::given(TokenOf::Witness, arguments.token_file.as_deref())?,
        None => None,
    };
    if arguments.dry_run {
        let from = listen.as_ref().map_or("standard input".to_owned(), |At(address)| address.to_string());
        let new = format!("`{}`, which must not exist", notes.display());
        let cut = arguments
            .cut
            .as_ref()
            .map(|cut| format!("`{}`, {} after the load begins", shown(cut), arguments.cut_after.0));
        return DryRun::default().fact("from", from).fact("notes", new).facts("cut by", cut).print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    let listener = match listen {
        Some(At(address)) => Some(bind(*address)?),
        None => None,
    };
    let writer = Writer::make(notes).map_err(|error| {
        let is_there = error.kind() == std::io::ErrorKind::AlreadyExists;
        let hint = is_there.then(|| "each load has notes of its own: name a new file".to_owned());
        let failure = Failure::of_file("make", notes, &error);
        if is_there { failure.with_hint(hint) } else { failure }
    })?;
    let load = Heard::default();
    std::thread::scope(|scope| {
        let (tells, begun) = mpsc::channel();
        let cut = match arguments.cut.as_deref() {
            Some(command) => {
                let after = arguments.cut_after.0.as_duration();
                let cut = Cut { command, after, begun, load: &load, interrupt: &interrupt };
                let thread = std::thread::Builder::new().name("cut".to_owned());
                match thread.spawn_scoped(scope, move || cut.run()) {
                    Ok(cut) => Some(cut),
                    Err(error) => {
                        writer.discard();
                        return Err(Failure::new(format_args!("no thread for `--cut`: {error}")));
                    }
                }
            }
            None => None,
        };
        let tell = |event: &Event| {
            load.tell(event);
            if !matches!(event, Event::Heard | Event::Ended) {
                say::line(format_args!("{} {event}", now()));
            }
            if matches!(event, Event::Opened { .. }) {
                // Without a cut nothing hears it.
                let _ = tells.send(());
            }
        };
        let summary = match listener {
            Some(listener) => {
                let is_made = given.is_none();
                let token = match given.map_or_else(token::made, Ok) {
                    Ok(token) => token,
                    Err(failure) => {
                        writer.discard();
                        return Err(failure);
                    }
                };
                greet(&listener, is_made.then(|| token.expose()));
                witness::serve(&listener, &token.key(), writer, interrupt.flag(), &tell)
            }
            None => witness::listen(std::io::stdin(), writer, interrupt.flag(), &tell),
        };
        drop(tells);
        let came = cut.map(|cut| cut.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let summary = summary?;
        let exit = conclude(&summary, arguments, &interrupt)?;
        let is_silent = summary.closing.as_ref().is_some_and(|closing| closing.how == How::Silent);
        match came {
            Some(Came::NotRun) => say::error("nothing was cut: no load was under way at that time"),
            // A command that reaches the machine that it cuts ends with an error because it worked.
            Some(Came::Failed) if !is_silent => {}
            _ => return Ok(exit),
        }
        Ok(interrupt.exit().unwrap_or(Exit::CouldNot))
    })
}

fn bind(address: std::net::SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|error| {
        Failure::new(format_args!("cannot listen on {address}: {error}"))
            .with_hint("name an address of this machine and a free port: `--listen 0.0.0.0:7018`".to_owned())
    })
}

fn greet(listener: &TcpListener, token: Option<&str>) {
    let Ok(address) = listener.local_addr() else { return };
    say::line(format_args!("Listening on {address} (Ctrl-C ends it)"));
    if let Some(token) = token {
        say::line(format_args!("Token, shown this once: {token}"));
        let host = if address.ip().is_unspecified() { format!("HOST:{}", address.port()) } else { address.to_string() };
        say::line(format_args!(
            "On the host of the load: PLIMSOLL_WITNESS_TOKEN={token} plimsoll durable run --witness {host} --target …"
        ));
    }
    if address.ip().is_loopback() {
        say::note("only this machine can reach it; a witness that loses its power with the load proves little");
    }
    // The address need not be read: the witness does its work without a reader, too.
    let mut out = say::output();
    let _ = std::io::Write::write_fmt(&mut out, format_args!("{address}\n"));
    let _ = std::io::Write::flush(&mut out);
}

fn conclude(summary: &Summary, arguments: &Arguments, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let exit = interrupt.exit().unwrap_or(Exit::Done);
    let Some(closing) = &summary.closing else {
        say::line("no load came, so no notes are kept");
        return Ok(interrupt.exit().unwrap_or(Exit::CouldNot));
    };
    let silent = Nanos(closing.silent_ms.saturating_mul(1_000_000));
    let how = match closing.how {
        How::Done => "the load is over".to_owned(),
        How::Failed | How::TargetGone => format!("an error ended the load: {}", closing.why),
        How::Silent => format!("the load has been silent for {silent}"),
        How::Closed => format!("the connection or pipe was closed after {silent} of silence"),
        How::Stopped => format!("ended after {silent} of silence"),
    };
    let notes = group_thousands(summary.notes as f64);
    say::line(format_args!("{how}; {notes} commits are noted in `{}`", arguments.notes.display()));
    if matches!(closing.how, How::Silent | How::Closed | How::Stopped) {
        say::line("After the restart: `plimsoll durable verify --target … --notes FILE`, on the machine of the load");
    }
    Ok(exit)
}
