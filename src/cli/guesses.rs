//! What somebody meant who wrote a name that no command has: the same thing under its name here, a thing of the same kind that is
//! spelt almost so, or nothing.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use model::config::{Key, without_secrets};
use model::units::{edit_distance, shell_command, shell_word};

/// An error of the command line in our words, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) message: String,
    pub(super) hint: String,
}

/// Meets what clap found wrong; `None` where clap says it best. `words` is the command line, the program's name included.
pub(super) fn meet(error: &clap::Error, words: &[OsString], root: &Command) -> Option<Met> {
    let words: Vec<String> = words.iter().map(|word| without_secrets(&word.to_string_lossy())).collect();
    let line = Line::of(&words, root);
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => Some(line.unknown_argument(said(ContextKind::InvalidArg)?)),
        ErrorKind::InvalidSubcommand => Some(line.unknown_command(said(ContextKind::InvalidSubcommand)?)),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            line.several_for_one(said(ContextKind::InvalidArg)?, said(ContextKind::InvalidValue)?)
        }
        _ => None,
    }
}

/// A command line as far as it is known which command it is for.
struct Line<'a> {
    command: &'a Command,
    /// `plimsoll io run`.
    path: Vec<&'a str>,
    /// What follows.
    rest: &'a [String],
}

impl<'a> Line<'a> {
    fn of(words: &'a [String], root: &'a Command) -> Self {
        let mut line = Self { command: root, path: vec![root.get_name()], rest: words.get(1..).unwrap_or_default() };
        while let Some(inner) = line.rest.first().and_then(|word| line.command.find_subcommand(word)) {
            line.path.push(inner.get_name());
            (line.command, line.rest) = (inner, &line.rest[1..]);
        }
        line
    }

    fn name(&self) -> String {
        self.path.join(" ")
    }

    fn see_help(&self, what: &str) -> String {
        format!("`{} --help` lists {what}", self.name())
    }

    /// A flag that the command does not have, or a word where none is expected.
    fn unknown_argument(&self, written: &str) -> Met {
        let name = written.split('=').next().unwrap_or(written);
        let guess = normal(name);
        if let Some(here) = self.called_here(&guess) {
            let message = match here.replace("{}", "").trim() {
                "" => format!("`{name}` is left out here: runs are named by bare words"),
                here => format!("`{name}` is called `{here}` here"),
            };
            let whole = shell_command(self.path.iter().copied().map(str::to_owned).chain(self.corrected()));
            let file = self.written_table().map_or_else(String::new, |file| format!(" > {}", shell_word(file)));
            return Met { message, hint: format!("write `{whole}{file}`") };
        }
        if NOT_NEEDED.contains(&guess.as_str()) {
            let message = format!("`{name}` has no counterpart in `{}`", self.name());
            return Met { message, hint: "leave it out".to_owned() };
        }
        if !written.starts_with('-') {
            let message = format!("`{}` takes no word here: `{written}`", self.name());
            return Met { message, hint: self.see_help("what it takes") };
        }
        let flags = self.command.get_arguments().filter(|argument| !argument.is_hide_set());
        let close = nearest(&guess, flags.filter_map(clap::Arg::get_long));
        let hint = close.map_or_else(|| self.see_help("its flags"), |flag| format!("did you mean `--{flag}`?"));
        Met { message: format!("`{}` has no flag `{name}`", self.name()), hint }
    }

    /// The file that `--csv` was to write, of a command that prints its table instead.
    fn written_table(&self) -> Option<&str> {
        let value = |(at, word): (usize, &'a String)| match word.strip_prefix("--csv") {
            Some("") => self.rest.get(at + 1).map(String::as_str),
            Some(value) => value.strip_prefix('='),
            None => None,
        };
        let file = self.rest.iter().enumerate().find_map(value);
        file.filter(|file| file.ends_with(".csv") && !self.has("csv") && self.has("format"))
    }

    fn unknown_command(&self, written: &str) -> Met {
        let scope = self.path[1..].join(" ");
        let known = COMMANDS.iter().find(|(below, guesses, _)| *below == scope && guesses.contains(&written));
        let rest = self.rest.iter().skip_while(|word| *word != written).skip(1);
        if let Some((_, _, here)) = known {
            let names: Vec<String> = here.iter().map(|here| format!("{} {here}", self.name())).collect();
            let hint = match names.as_slice() {
                [one] => {
                    let rest = shell_command(rest);
                    format!("write `{}`", format_args!("{one} {rest}").to_string().trim_end())
                }
                _ => "`slob` puts on the load of a database, `io` loads files and devices".to_owned(),
            };
            let message = format!("`{} {written}` is called `{}` here", self.name(), names.join("` or `"));
            return Met { message, hint };
        }
        let close = nearest(&normal(written), self.command.get_subcommands().map(Command::get_name));
        let hint = close
            .map_or_else(|| self.see_help("the commands"), |name| format!("did you mean `{} {name}`?", self.name()));
        Met { message: format!("`{}` has no command `{written}`", self.name()), hint }
    }

    /// A list for a flag that takes one number: a sweep takes lists of most.
    fn several_for_one(&self, flag: &str, value: &str) -> Option<Met> {
        let flag = flag.split_whitespace().next()?;
        if !(value.contains([',', '…']) || value.contains("..")) {
            return None;
        }
        let is_slob = self.path.get(1) == Some(&"slob");
        let is_sweep = matches!(self.path.last(), Some(&"sweep" | &"compare-nfs"));
        let hint = match flag {
            "--rate" if is_slob => "run once for each rate; `plimsoll io sweep` takes lists of them".to_owned(),
            "--schemas" => {
                "run once for each number of schemas, or vary sessions: `slob sweep --threads 1..64`".to_owned()
            }
            "--threads" | "--depth" | "--rate" if !is_sweep => {
                let path = self.path[..self.path.len() - 1].iter().copied().chain(["sweep"]).map(str::to_owned);
                format!("write `{}`", shell_command(path.chain(self.rest.iter().cloned())))
            }
            _ => return None,
        };
        let message = format!("`{flag} {value}` lists several, and `{}` takes one", self.name());
        Some(Met { message, hint })
    }

    /// What the command has in place of a flag of this normal name, with `{}` for the value.
    fn called_here(&self, guess: &str) -> Option<String> {
        let known = FLAGS.iter().find(|(guesses, _)| guesses.contains(&guess));
        let here = known.and_then(|(_, here)| here.iter().find(|here| self.takes(here)));
        let parameter = Key::from_name(&guess.to_ascii_uppercase().replace('-', "_")).map(|key| format!("{key}={{}}"));
        here.map(|here| (*here).to_owned()).or(parameter.filter(|here| self.takes(here)))
    }

    /// Whether the command takes what is written so.
    fn takes(&self, here: &str) -> bool {
        let has_word = |value: &str| {
            let names = self.command.get_positionals().flat_map(|word| word.get_value_names().unwrap_or_default());
            names.into_iter().any(|name| name.contains(value))
        };
        match here.strip_prefix("--") {
            Some(flag) => self.has(flag.split(' ').next().unwrap_or(flag)),
            None if here == "{}" => has_word("RUN"),
            None => has_word("KEY=VALUE"),
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.command.get_arguments().any(|argument| {
            argument.get_long() == Some(flag) || argument.get_all_aliases().is_some_and(|all| all.contains(&flag))
        })
    }

    /// What follows the command, with every name that is called something else put right.
    fn corrected(&self) -> Vec<String> {
        let mut corrected = Vec::new();
        let mut words = self.rest.iter().peekable();
        while let Some(word) = words.next() {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let is_flag = name.starts_with("--");
            let is_known = is_flag && self.has(&name[2..]);
            let takes_words = self.takes("KEY=VALUE");
            let here =
                self.called_here(&normal(name)).filter(|_| !is_known && (is_flag || (value.is_some() && !takes_words)));
            let Some(here) = here else {
                corrected.extend((!NOT_NEEDED.contains(&normal(name).as_str()) || is_known).then(|| word.clone()));
                continue;
            };
            if self
                .written_table()
                .is_some_and(|file| normal(name) == "csv" && words.peek().is_some_and(|next| *next == file))
            {
                words.next();
            }
            let mut next = || words.next_if(|next| is_flag && !next.starts_with('-')).cloned();
            let value = if here.contains("{}") { value.map(str::to_owned).or_else(&mut next) } else { None };
            let value = value.unwrap_or_else(|| "VALUE".to_owned());
            let named = here.replace("{}", "");
            let of_value =
                VALUES.iter().find(|(flag, others, _)| named.trim() == *flag && others.contains(&value.as_str()));
            let value = of_value.map_or(value.as_str(), |(_, _, here)| here);
            corrected.extend(here.split(' ').map(|part| part.replace("{}", value)));
        }
        corrected
    }
}

/// A name as the table has it.
fn normal(name: &str) -> String {
    name.trim_start_matches('-').to_ascii_lowercase().replace('_', "-")
}

/// The name that differs by so few letters that nothing else can be meant.
fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (edit_distance(name, written), name)).min()?;
    (near.0 <= 1 + near.1.len() / 5 && near.1.len() > 2).then_some(near.1)
}

/// The flag, word or command that somebody most likely meant by a word that is no parameter.
pub(super) fn meet_word(text: &str) -> Option<String> {
    let is_place = ["dir:", "pg:", "sim:", "postgres://"].iter().any(|kind| text.starts_with(kind));
    is_place.then(|| format!("write `--target {}`", shell_word(&without_secrets(text))))
}

// Names that people bring with them, from fio, from SLOB and from other programs' habits, and how the same is called here.

/// Flags, in small letters and with `-` between words, and what is written in their place: the first that the command has. `{}` is
/// the value; alone it is a run.
const FLAGS: &[(&[&str], &[&str])] = &[
    (&["bs", "blocksize", "block-sz"], &["--block-size {}", "BLOCK_SZ={}"]),
    (&["runtime", "run-time", "time", "seconds", "length"], &["--duration {}"]),
    (&["iodepth", "io-depth", "queue-depth", "qd", "outstanding", "depth"], &["--depth {}", "--threads {}"]),
    (&["numjobs", "num-jobs", "jobs", "processes", "threads"], &["--jobs {}", "--threads {}"]),
    (&["sessions", "users", "clients", "concurrency"], &["--threads {}", "--depth {}"]),
    (&["rw", "readwrite", "pattern"], &["--pattern {}", "UPDATE_PCT={}"]),
    (&["rwmixread", "read-percent"], &["--read-pct {}"]),
    (&["rwmixwrite", "write-pct", "updates"], &["UPDATE_PCT={}"]),
    (&["filename", "file", "device", "directory", "dir", "path"], &["--path {}", "--target dir:{}"]),
    (&["target"], &["--path {}"]),
    (&["ioengine", "io-engine", "engine"], &["--engine {}", "--io-engine {}"]),
    (&["rate-iops", "iops"], &["--rate {}"]),
    (&["ramp-time"], &["--warmup {}"]),
    (&["randseed", "rand-seed", "random-seed"], &["--seed {}"]),
    (&["random-distribution"], &["--distribution {}"]),
    (&["fsync", "fdatasync"], &["--durable fsync:{}"]),
    (&["sync", "dsync"], &["--durable dsync"]),
    (&["target-latency"], &["--limit {}"]),
    (&["latency-target", "max-latency"], &["--limit p99={}"]),
    (&["scale", "size"], &["SCALE={}", "--size {}"]),
    (&["config", "slob-conf"], &["--conf {}"]),
    (&["schema"], &["--schemas {}"]),
    (&["output-format"], &["--format {}", "--json"]),
    (&["json"], &["--format json"]),
    (&["csv"], &["--format csv"]),
    (&["markdown", "md"], &["--format markdown"]),
    (&["html", "page"], &["--output {}", "--format html"]),
    (&["run", "id"], &["{}"]),
    (&["name"], &["{}", "--tag name={}"]),
    (&["tag"], &["{}"]),
    (&["runs-dir", "results", "store"], &["--runs {}"]),
    (&["force", "overwrite"], &["--replace", "--yes"]),
    (&["dryrun", "plan", "noop"], &["--dry-run"]),
    (&["silent"], &["--quiet"]),
];

/// Flags of fio for which nothing is written here.
const NOT_NEEDED: &[&str] = &["time-based", "group-reporting", "thread", "norandommap", "randrepeat", "eta"];

/// Values that are called something else here, by the flag that they now belong to.
const VALUES: &[(&str, &[&str], &str)] = &[
    ("--engine", &["io_uring", "libaio"], "io-uring"),
    ("--engine", &["sync", "pvsync", "posixaio"], "psync"),
    ("--io-engine", &["io_uring", "libaio"], "io-uring"),
    ("--io-engine", &["sync", "pvsync", "posixaio"], "psync"),
    ("UPDATE_PCT=", &["randread", "read"], "0"),
    ("UPDATE_PCT=", &["randwrite", "write"], "100"),
    ("UPDATE_PCT=", &["randrw", "rw", "readwrite"], "50"),
];

/// Commands, below which other command they were looked for, and where they are.
const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    ("", &["run", "bench", "benchmark", "test", "load", "start"], &["slob run", "io run"]),
    ("", &["sweep"], &["slob sweep", "io sweep"]),
    ("", &["setup", "init", "prepare"], &["slob setup"]),
    ("", &["verify"], &["slob verify"]),
    ("", &["drop"], &["slob drop"]),
    ("", &["info"], &["slob info"]),
    ("", &["fio"], &["io run"]),
    ("", &["soak"], &["io soak"]),
    ("", &["orion"], &["io orion"]),
    ("", &["calibrate"], &["io calibrate"]),
    ("", &["map", "diskplorer"], &["io map", "slob map"]),
    ("", &["list", "ls", "history"], &["runs list"]),
    ("", &["show"], &["runs show"]),
    ("", &["rm", "delete", "remove"], &["runs rm"]),
    ("", &["diff"], &["compare"]),
    ("", &["plot", "chart", "graph", "html"], &["report"]),
    ("", &["capacity"], &["fit"]),
    ("", &["watch", "monitor", "top"], &["probe"]),
    ("", &["web", "server", "ui"], &["serve"]),
    ("", &["man"], &["manual"]),
    ("slob", &["init", "prepare", "load", "create"], &["setup"]),
    ("slob", &["start", "test", "bench"], &["run"]),
    ("slob", &["check"], &["verify"]),
    ("slob", &["list", "ls", "show", "status"], &["info"]),
    ("slob", &["delete", "remove", "rm", "clean", "cleanup"], &["drop"]),
    ("orders", &["init", "prepare", "load", "create", "wizard", "oewizard"], &["setup"]),
    ("orders", &["start", "test", "bench", "charbench"], &["run"]),
    ("orders", &["check", "audit", "validate"], &["verify"]),
    ("orders", &["list", "ls", "show", "status"], &["info"]),
    ("orders", &["delete", "remove", "rm", "clean", "cleanup"], &["drop"]),
    ("io", &["start", "test", "bench", "fio"], &["run"]),
    ("runs", &["delete", "remove"], &["rm"]),
    ("runs", &["info", "report"], &["show"]),
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn met(line: &str) -> Option<(String, String)> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&words).unwrap_err();
        meet(&error, &words, &Cli::command()).map(|met| (met.message, met.hint))
    }

    fn is_met(line: &str, message: &str, hint: &str) {
        assert_eq!(met(line), Some((message.to_owned(), hint.to_owned())), "{line}");
    }

    #[test]
    fn what_is_called_something_else_is_named_with_the_whole_line_put_right() {
        is_met(
            "plimsoll io run --filename=/u01/x --bs=4k --rw=randread --iodepth=32 --runtime 30 --ioengine=libaio --time_based",
            "`--filename` is called `--path` here",
            "write `plimsoll io run --path /u01/x --block-size 4k --pattern randread --depth 32 --duration 30 --engine io-uring`",
        );
        is_met(
            "plimsoll slob run --scale 1G -t 4 --update-pct=20",
            "`--scale` is called `SCALE=` here",
            "write `plimsoll slob run SCALE=1G -t 4 UPDATE_PCT=20`",
        );
        is_met(
            "plimsoll io run --path /u01/x bs=4k",
            "`bs` is called `--block-size` here",
            "write `plimsoll io run --path /u01/x --block-size 4k`",
        );
        is_met(
            "plimsoll slob sweep --iodepth 1..8",
            "`--iodepth` is called `--threads` here",
            "write `plimsoll slob sweep --threads 1..8`",
        );
        for line in ["plimsoll table --csv x.csv last", "plimsoll table --csv=x.csv last"] {
            is_met(line, "`--csv` is called `--format csv` here", "write `plimsoll table --format csv last > x.csv`");
        }
        is_met(
            "plimsoll table --tag vm=d8s",
            "`--tag` is left out here: runs are named by bare words",
            "write `plimsoll table vm=d8s`",
        );
        is_met(
            "plimsoll list --json",
            "`plimsoll list` is called `plimsoll runs list` here",
            "write `plimsoll runs list --json`",
        );
        is_met(
            "plimsoll run --bs 4k",
            "`plimsoll run` is called `plimsoll slob run` or `plimsoll io run` here",
            "`slob` puts on the load of a database, `io` loads files and devices",
        );
        is_met(
            "plimsoll slob run --threads 1,2,4 RUN_TIME=10",
            "`--threads 1,2,4` lists several, and `plimsoll slob run` takes one",
            "write `plimsoll slob sweep --threads 1,2,4 RUN_TIME=10`",
        );
        is_met(
            "plimsoll slob sweep --threads 1..4 --rate 1k..8k",
            "`--rate 1k..8k` lists several, and `plimsoll slob sweep` takes one",
            "run once for each rate; `plimsoll io sweep` takes lists of them",
        );
        is_met(
            "plimsoll slob sweep -s 1,2 --threads 1..4",
            "`--schemas 1,2` lists several, and `plimsoll slob sweep` takes one",
            "run once for each number of schemas, or vary sessions: `slob sweep --threads 1..64`",
        );
    }

    #[test]
    fn a_suggestion_is_of_the_same_kind_or_there_is_none() {
        is_met("plimsoll io run --dept 3", "`plimsoll io run` has no flag `--dept`", "did you mean `--depth`?");
        is_met(
            "plimsoll io run --colour",
            "`plimsoll io run` has no flag `--colour`",
            "`plimsoll io run --help` lists its flags",
        );
        is_met("plimsoll reprot", "`plimsoll` has no command `reprot`", "did you mean `plimsoll report`?");
        is_met("plimsoll flush", "`plimsoll` has no command `flush`", "`plimsoll --help` lists the commands");
        is_met(
            "plimsoll io run randread",
            "`plimsoll io run` takes no word here: `randread`",
            "`plimsoll io run --help` lists what it takes",
        );
        is_met(
            "plimsoll io run --group_reporting",
            "`--group_reporting` has no counterpart in `plimsoll io run`",
            "leave it out",
        );
    }

    #[test]
    fn passwords_are_not_repeated() {
        let (_, hint) = met("plimsoll slob run --target postgres://u:tiger@h/d --scale 1G").unwrap();
        assert!(hint.contains("postgres://u:***@h/d") && !hint.contains("tiger"), "{hint}");
    }

    #[test]
    fn every_replacement_exists() {
        fn leaves(command: &Command, path: &[&str], look: &mut impl FnMut(&[String], &Command)) {
            let words: Vec<String> = path.iter().map(|word| (*word).to_owned()).collect();
            look(&words, command);
            for inner in command.get_subcommands() {
                leaves(inner, &[path, &[inner.get_name()]].concat(), look);
            }
        }
        let root = Cli::command();
        let mut taken: std::collections::BTreeSet<&str> = std::collections::BTreeSet::new();
        let mut paths = std::collections::BTreeSet::new();
        leaves(&root, &["plimsoll"], &mut |words, _| {
            let line = Line::of(words, &root);
            taken.extend(FLAGS.iter().flat_map(|(_, here)| here.iter().copied().filter(|here| line.takes(here))));
            paths.insert(words[1..].join(" "));
        });
        for here in FLAGS.iter().flat_map(|(_, here)| here.iter()) {
            assert!(taken.contains(here), "no command takes `{here}`");
        }
        for (below, guesses, here) in COMMANDS {
            let full = |name: &str| format!("{below} {name}").trim().to_owned();
            assert!(here.iter().all(|here| paths.contains(&full(here))), "{here:?} is no command");
            assert!(!guesses.iter().any(|guess| paths.contains(&full(guess))), "{guesses:?}: a command has that name");
        }
    }
}
