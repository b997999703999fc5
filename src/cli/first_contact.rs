//! `plimsoll doctor --first-contact`: what nobody knows of Oracle without a server, settled on one.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;

use super::arguments::Format;
use super::doctor::{keep, write_checks};
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::{Interrupt, say};
use crate::databases;
use model::config::TargetAddress;
use targets::TargetError;

/// What every such file begins with.
const HEAD: &str = "plimsoll doctor --first-contact";
/// How often it is looked whether a signal has come while somebody is asked.
const LOOK: Duration = Duration::from_millis(100);

/// Arguments of the first contact.
#[derive(Debug, Args)]
pub(super) struct FirstContactArgs {
    /// Try on an Oracle database what is untested so far: ten minutes, one table of 32 MiB
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, help_heading = "First contact")]
    first_contact: Option<Option<TargetAddress>>,

    /// Print the same as a script for SQL*Plus, without connecting to a server
    #[arg(long, requires = "first_contact", conflicts_with_all = ["yes", "output"], help_heading = "First contact")]
    script: bool,

    /// Do not ask for confirmation
    #[arg(short, long, requires = "first_contact", help_heading = "First contact")]
    yes: bool,

    /// File to write [default: ./plimsoll-first-contact-TIME.txt]
    #[arg(long, short, value_name = "FILE", requires = "first_contact", help_heading = "First contact")]
    output: Option<PathBuf>,
}

impl FirstContactArgs {
    /// Does it, if it is asked for.
    pub(super) fn run(&self, format: Format, is_dry_run: bool) -> Option<Result<Exit, Failure>> {
        let address = self.first_contact.as_ref()?;
        Some(match (self.script, address) {
            (true, _) => print_script(),
            (false, Some(address)) if is_dry_run => self.print_plan(address),
            (false, Some(address)) => self.make(address, format),
            (false, None) => {
                let failure = Failure::new("`--first-contact` needs the address of an Oracle database");
                Err(failure.with_hint("name it: `--first-contact oracle://USER@HOST/SERVICE`".to_owned()))
            }
        })
    }

    /// The file that is written.
    fn path(&self, now: jiff::Timestamp) -> PathBuf {
        let name = || PathBuf::from(format!("plimsoll-first-contact-{}.txt", now.strftime("%Y%m%d-%H%M%S")));
        self.output.clone().unwrap_or_else(name)
    }

    fn print_plan(&self, address: &TargetAddress) -> Result<Exit, Failure> {
        DryRun::default()
            .fact("connect", format_args!("to `{address}`"))
            .fact("make", "the table PLIMSOLL_TRY of 32 MiB, and remove it at the end")
            .fact("measure", "for about ten minutes")
            .fact("write", format_args!("`{}`", self.path(jiff::Timestamp::now()).display()))
            .line("`--script` prints every statement")
            .print(None, false)
    }

    fn make(&self, address: &TargetAddress, format: Format) -> Result<Exit, Failure> {
        let is_asked = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !(self.yes || is_asked) {
            let failure = Failure::new("each step of the first contact must be confirmed");
            return Err(failure.with_hint("add `--yes`; `--script` prints what would be sent".to_owned()));
        }
        let interrupt = Interrupt::listen()?;
        interrupt.leaves(Some("the table PLIMSOLL_TRY may be left: DROP TABLE plimsoll_try PURGE".to_owned()));
        let confirm = |step: &str| {
            say::line(format_args!("step: {step}"));
            if self.yes { Ok(true) } else { confirmed(&interrupt) }
        };
        let found = databases::first_contact(address, &confirm, interrupt.flag());
        interrupt.leaves(None);
        let found = interrupt.judge(found.map_err(Failure::from))?;
        let now = jiff::Timestamp::now();
        let path = self.path(now);
        keep(&path, HEAD, &found, now)?;
        match format {
            Format::Json => say::json(&found)?,
            Format::Text => {
                let mut out = anstream::stdout().lock();
                write_checks(&mut out, &found.checks)?;
                out.flush()?;
            }
        }
        say::line(format_args!(
            "the table is removed; wrote `{}`: machines are masked in it. Please send it to us",
            path.display()
        ));
        Ok(if found.has_problem() { Exit::NotMet } else { Exit::Done })
    }
}

fn print_script() -> Result<Exit, Failure> {
    let mut out = say::output();
    out.write_all(databases::first_contact_script()?.as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}

/// Whether whoever sits at the terminal agrees. A signal ends the wait for that.
fn confirmed(interrupt: &Interrupt) -> Result<bool, TargetError> {
    let _ = write!(anstream::stderr(), "Go on? [y/N] ");
    let (sender, typed) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("confirm".to_owned()).spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let _ = sender.send(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"));
    });
    thread.map_err(|source| TargetError::Kernel { action: "start a thread", source })?;
    loop {
        match typed.recv_timeout(LOOK) {
            Ok(agrees) => return Ok(agrees),
            Err(mpsc::RecvTimeoutError::Timeout) if interrupt.exit().is_none() => {}
            Err(_) => return Err(TargetError::Interrupted),
        }
    }
}
