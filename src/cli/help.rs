//! The help of all commands, with lines that no width may break: examples that can be copied, and lists laid out by hand.
//!
//! clap wraps what stands after the arguments at the width of the terminal, in the middle of an example too. So the blanks of
//! lines that begin with two of them are no blanks for clap, and become blanks again before anybody reads them.

use std::borrow::Cow;
use std::io::Write;

use clap::{Command, CommandFactory};

use super::Cli;
use model::shown::{shown, shown_lines};
use report::wrap;

/// Stands for a blank at which no line is broken. A character for private use, which no help holds.
const UNBROKEN_BLANK: char = '\u{e000}';

/// Columns for which lines are laid out by hand.
pub(super) const WIDTH: usize = 80;

/// All commands, as they are to be parsed and their help rendered. Whoever renders help of them restores the blanks with [`plain`].
pub(super) fn command() -> Command {
    keep_lines_whole(Cli::command())
}

fn keep_lines_whole(command: Command) -> Command {
    let text = command.get_after_long_help().map(ToString::to_string);
    let command = match text {
        Some(text) => command.after_long_help(without_breaks(&text)),
        None => command,
    };
    command.mut_subcommands(keep_lines_whole)
}

fn without_breaks(text: &str) -> String {
    let kept = |line: &str| {
        if line.starts_with("  ") { line.replace(' ', &UNBROKEN_BLANK.to_string()) } else { line.to_owned() }
    };
    text.lines().map(kept).collect::<Vec<_>>().join("\n")
}

/// Rendered help as it is to be read.
pub(super) fn plain(rendered: &str) -> String {
    rendered.replace(UNBROKEN_BLANK, " ")
}

/// Writes help, or what is wrong with a command line, where clap would write it.
pub(super) fn write(error: &clap::Error) {
    // Colours are ours, unless a word is in it that has its own: shells put names of files there.
    let has_own = std::env::args_os().any(|word| matches!(shown(&word.to_string_lossy()), Cow::Owned(_)));
    let text = match has_own {
        true => shown_lines(&plain(&error.render().to_string())).into_owned(),
        false => plain(&error.render().ansi().to_string()),
    };
    // If nobody reads it, nothing is lost.
    let _ =
        if error.use_stderr() { write!(anstream::stderr(), "{text}") } else { write!(anstream::stdout(), "{text}") };
}

/// Lines whose last column begins after two blanks, laid out for [`WIDTH`] columns: what does not fit goes on below, in that column.
pub(super) fn hanging(text: &str) -> String {
    let laid_out = |line: &str| {
        let (first, last) = line.split_at(line.rfind("  ").map_or(0, |blanks| blanks + 2));
        let indent = first.chars().count();
        first.to_owned() + &wrap(last, WIDTH.saturating_sub(indent)).join(&format!("\n{}", " ".repeat(indent)))
    };
    text.lines().map(laid_out).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at every command, by its words, at a width of the terminal.
    fn at_width(width: usize, look: &mut impl FnMut(&mut Command, &str)) {
        fn walk(command: &mut Command, path: &str, look: &mut impl FnMut(&mut Command, &str)) {
            look(command, path);
            for inner in command.get_subcommands_mut() {
                let path = format!("{path} {}", inner.get_name());
                walk(inner, &path, look);
            }
        }
        let mut root = command().term_width(width);
        root.build();
        walk(&mut root, "plimsoll", look);
    }

    #[test]
    fn no_line_of_any_help_is_longer_than_the_terminal() {
        let mut seen = 0;
        at_width(WIDTH, &mut |command, path| {
            let helps = [command.render_long_help(), command.render_help()];
            for line in helps.iter().flat_map(|help| help.to_string().lines().map(plain).collect::<Vec<_>>()) {
                assert!(line.trim_end().chars().count() <= WIDTH, "{path}: {line}");
                seen += 1;
            }
        });
        assert!(seen > 1_000, "only {seen} lines were looked at");
        for line in hanging(&model::config::orion::help_text()).lines() {
            assert!(line.chars().count() <= WIDTH, "plimsoll io orion -help: {line}");
        }
    }

    #[test]
    fn no_width_breaks_an_example_or_a_list() {
        for width in [60, WIDTH, 120] {
            at_width(width, &mut |command, path| {
                let written = plain(&command.get_after_long_help().map(ToString::to_string).unwrap_or_default());
                let shown = plain(&command.render_long_help().to_string());
                let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
                for line in written.lines().filter(|line| line.starts_with("  ")) {
                    assert!(shown.contains(&line.trim_end()), "{path} at {width} columns breaks: {line}");
                }
            });
        }
    }

    #[test]
    fn paragraphs_follow_the_width() {
        let lines = |width| {
            let mut count = 0;
            at_width(width, &mut |command, path| {
                if path == "plimsoll fit" {
                    count = command.render_long_help().to_string().lines().count();
                }
            });
            count
        };
        assert!(lines(60) > lines(WIDTH) && lines(WIDTH) > lines(120));
    }

    #[test]
    fn what_does_not_fit_goes_on_in_its_column() {
        let long = format!("  KEY=1  {}", "word ".repeat(20));
        let laid_out = hanging(&format!("  A=1    short\n{long}"));
        let lines: Vec<&str> = laid_out.lines().collect();
        assert_eq!(lines[0], "  A=1    short");
        assert!(lines[1].starts_with("  KEY=1  word word") && lines[2].starts_with("         word word"), "{laid_out}");
        assert_eq!(laid_out.matches("word").count(), 20);
    }
}
