//! `plimsoll manual`.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::{Cli, results, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll manual ~/.local/share/man/man1
  plimsoll manual ./man && man ./man/plimsoll-slob-run.1

One page a command: plimsoll.1, plimsoll-slob.1, plimsoll-slob-run.1 and so on. `make install` installs them.";

/// How every page of ours begins.
const BEGINNING: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH plimsoll";

/// Arguments of `plimsoll manual`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Directory for the man pages, created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Print what would be done, and exit
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, &mut pages)?;
    if arguments.dry_run {
        let paths = pages.iter().map(|(name, _)| format!("`{}`", arguments.directory.join(name).display()));
        return DryRun::default().facts("write", paths).print(None, false);
    }
    let files: Vec<_> = pages
        .iter()
        .map(|(name, page)| (name.as_str(), |out: &mut dyn io::Write| out.write_all(page.as_bytes())))
        .collect();
    results::write_all(&arguments.directory, &files, BEGINNING, "name another directory")?;
    say::line(format_args!("wrote {} man pages into `{}`", pages.len(), arguments.directory.display()));
    Ok(Exit::Done)
}

/// The page of a command and of every one below it, by the names of their files.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    for inner in command.get_subcommands() {
        collect(inner, pages)?;
    }
    let man = Man::new(command.clone()).source(concat!("plimsoll ", env!("CARGO_PKG_VERSION"))).manual("Plimsoll");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help() {
        after_the_options(&text.to_string()).to_writer(&mut page)?;
    }
    pages.push((man.get_filename(), String::from_utf8_lossy(&page).chars().map(for_troff).collect()));
    Ok(())
}

/// A character as troff is to print it. It takes three of ASCII for accents, and an example with an accent in it cannot be
/// copied; those beyond ASCII it may not know how to read.
fn for_troff(c: char) -> String {
    match c {
        '~' => "\\(ti".to_owned(),
        '^' => "\\(ha".to_owned(),
        '`' => "\\(ga".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    }
}

/// Examples and what else follows the options: a line that ends in a colon is the heading of the indented lines below it,
/// which stay as they are.
fn after_the_options(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_kept = false;
    for line in text.lines() {
        let keep = line.starts_with("  ");
        if keep != is_kept {
            roff.control(if keep { "nf" } else { "fi" }, []);
            is_kept = keep;
        }
        match line.strip_suffix(':') {
            Some(heading) if !keep => {
                let heading = heading.split(" (").next().unwrap_or(heading);
                roff.control("SH", [heading.to_uppercase().as_str()]);
            }
            _ if line.is_empty() => {
                roff.control("PP", []);
            }
            _ => {
                roff.text([roman(line)]);
            }
        }
    }
    if is_kept {
        roff.control("fi", []);
    }
    roff
}
