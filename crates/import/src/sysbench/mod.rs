//! What sysbench prints, from version 0.4 to 1.1: databases, files, and the processor.

mod interval;
mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::run::Printed;
use crate::console::{plain, unprefixed, writer};
use crate::{Draft, ImportError, Notes, Source};

/// Whether it begins as sysbench does, and goes on to a result or a line of progress.
pub(super) fn recognises(head: &str) -> bool {
    let (mut begun, mut result) = (false, false);
    for line in head.lines() {
        let line = plain(line);
        let text = unprefixed(line);
        begun |= version(text).is_some() || text.starts_with("Running the test with following options:");
        result |= begun
            && (interval::parse(text).is_some()
                || ["Threads started!", "General statistics:", "Test execution summary:", "Latency (ms):"]
                    .iter()
                    .any(|start| text.starts_with(start)));
        if begun && result {
            return true;
        }
    }
    false
}

/// The runs in it. What prepares or cleans up tables leaves none.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<Printed> = Vec::new();
    // The run of each machine that writes into the log, and the command that comes next.
    let mut open: BTreeMap<String, (usize, Option<Vec<String>>)> = BTreeMap::new();
    for (line, text) in source.lines() {
        let text = plain(text);
        let writer = writer(text);
        let text = unprefixed(text);
        let (at, command) = open.entry(writer).or_insert_with(|| {
            runs.push(Printed::default());
            (runs.len() - 1, None)
        });
        let reported = version(text);
        let options = text.starts_with("Running the test with following options:");
        if let Some(reported) = command_of(text) {
            *command = Some(reported);
        } else if reported.is_some() || options && runs.get(*at).is_some_and(|run| run.has_options) {
            *at = runs.len();
            runs.push(Printed::begun(reported.unwrap_or_default(), command.take().unwrap_or_default()));
        }
        if let Some(run) = runs.get_mut(*at) {
            run.has_options |= options;
            run.line(notes, line, text);
        }
    }
    let drafts: Vec<Draft> =
        runs.into_iter().filter(Printed::has_results).map(|run| run.draft(source)).collect::<Result<_, _>>()?;
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "sysbench was started and there is no result"));
    }
    Ok(drafts)
}

/// `sysbench 1.0.20 (using …)`, `sysbench 0.5:  multi-threaded …`.
fn version(text: &str) -> Option<String> {
    let version = text.strip_prefix("sysbench ")?.split([' ', ':']).next()?;
    let dots = version.starts_with(|char: char| char.is_ascii_digit()) && version.contains('.');
    dots.then(|| version.to_owned())
}

/// The words of a command that runs sysbench, as scripts and shells echo it, without the values of passwords.
fn command_of(text: &str) -> Option<Vec<String>> {
    if !text.contains("sysbench") || !text.contains(" run") {
        return None;
    }
    let words = text.trim_start_matches(['+', '$', '#', '>', ' ']).split_whitespace().take(200);
    let mut words = words.skip_while(|word| !word.ends_with("sysbench")).peekable();
    words.peek()?;
    let mut secret_follows = false;
    let kept: Vec<String> = words
        .map(|word| {
            let is_secret = word.to_ascii_lowercase().contains("pass");
            let hidden = match word.split_once('=') {
                Some((name, _)) if is_secret => format!("{name}=***"),
                _ if secret_follows => "***".to_owned(),
                _ => word.to_owned(),
            };
            secret_follows = is_secret && !word.contains('=');
            hidden
        })
        .collect();
    kept.iter().any(|word| word == "run").then_some(kept)
}
