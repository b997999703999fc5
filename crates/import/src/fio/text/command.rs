//! The command line above an output, where somebody copied a terminal.

use std::collections::BTreeMap;

use crate::fio::options::shown;

/// Lines of one command at most.
const MAX_LINES: usize = 100;

/// A command line, as it is put together of lines that end in a backslash.
#[derive(Debug, Default)]
pub struct Command {
    words: Vec<String>,
    lines: usize,
    goes_on: bool,
}

impl Command {
    /// Takes a line: it begins a command, goes on with one, or is none.
    pub fn take(&mut self, line: &str) {
        let line = line.trim_end();
        let part = match (self.goes_on && self.lines < MAX_LINES, beginning(line)) {
            (true, _) => line,
            (false, Some(command)) => {
                (self.words, self.lines) = (Vec::new(), 0);
                command
            }
            (false, None) => return,
        };
        self.lines += 1;
        self.goes_on = part.ends_with('\\');
        self.words.extend(part.trim_end_matches('\\').split_whitespace().map(str::to_owned));
    }

    /// The words without secrets, and its options if it reports all of them: one job, no job file.
    pub fn finish(&mut self) -> (Vec<String>, Option<BTreeMap<String, String>>) {
        let words = std::mem::take(self).words;
        let mut options = BTreeMap::new();
        let mut has_all = !words.is_empty();
        let mut jobs = 0;
        let mut command = Vec::with_capacity(words.len());
        let mut words = words.into_iter().peekable();
        command.extend(words.next());
        while let Some(word) = words.next() {
            // What follows is no longer an argument.
            if matches!(word.as_str(), "|" | ">" | ">>" | "&&" | ";" | "2>&1" | "&") {
                break;
            }
            let Some(option) = word.strip_prefix('-').map(|option| option.trim_start_matches('-')) else {
                has_all = false;
                command.push(shown("", &word));
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, value.trim_matches(['\'', '"']).to_owned()),
                // `--name value` is the same.
                None => match words.peek().filter(|next| !next.starts_with('-') && takes_value(option)) {
                    Some(_) => (option, words.next().unwrap_or_default()),
                    None => (option, "1".to_owned()),
                },
            };
            jobs += u32::from(name == "name");
            let value = shown(name, &value);
            command.push(if word.contains('=') || value != "1" { format!("--{name}={value}") } else { word.clone() });
            options.insert(name.to_owned(), value);
        }
        let is_one_job = has_all && jobs == 1;
        const OUTPUT: [&str; 8] =
            ["name", "output", "output-format", "eta", "eta-newline", "status-interval", "minimal", "eta-interval"];
        options.retain(|name, _| !OUTPUT.contains(&name.as_str()));
        (command, is_one_job.then_some(options))
    }
}

/// Options that people write with a blank before the value.
fn takes_value(option: &str) -> bool {
    const NAMES: [&str; 14] = [
        "name",
        "filename",
        "directory",
        "rw",
        "bs",
        "size",
        "ioengine",
        "iodepth",
        "numjobs",
        "runtime",
        "direct",
        "output",
        "output-format",
        "rwmixread",
    ];
    NAMES.contains(&option)
}

/// The command in a line, from `fio` on.
fn beginning(line: &str) -> Option<&str> {
    let at = line.find("fio -").or_else(|| line.find("fio \\"))?;
    let (before, command) = (line.get(..at)?, line.get(at..)?);
    let is_command = before.is_empty() || before.ends_with([' ', '/', '\t']);
    let names_a_job = command.contains("name") || command.contains("rw=") || command.ends_with('\\');
    (is_command && names_a_job).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_several_lines_is_one_and_keeps_no_secret() {
        let mut command = Command::default();
        for line in
            ["[me@db ~]$ sudo fio --name=a --rw randread \\", "  --http_s3_key=xyz \\", " --direct=1 | tee log", "Jobs"]
        {
            command.take(line);
        }
        let (words, options) = command.finish();
        assert_eq!(words, ["fio", "--name=a", "--rw=randread", "--http_s3_key=***", "--direct=1"]);
        let options = options.unwrap();
        assert_eq!((options["rw"].as_str(), options["direct"].as_str()), ("randread", "1"));
        assert!(!options.contains_key("name"));
    }

    #[test]
    fn a_job_file_leaves_options_unknown() {
        let mut command = Command::default();
        command.take("$ fio --name=a jobs.fio");
        assert_eq!(command.finish().1, None);
        command.take("We ran fio - a tool - by name");
        assert_eq!(command.finish().1, None);
    }
}
