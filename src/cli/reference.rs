//! The pages of `docs/reference` that are made from the commands themselves, and the page of what every command shares: exit codes
//! and environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cli::exit::{Exit, exit_code_of_signal};
use crate::cli::help;

const COLUMNS: usize = 100;
const UPDATE: &str = "UPDATE_DOCS=1 cargo test docs_cli";
/// The line of the book's table of contents below which the commands stand.
const CONTENTS: &str = "- [Commands](reference/commands.md)\n";

/// What each exit code means.
const EXIT_CODES: &[(u8, &str)] = &[
    (0, "Done, and every limit was met."),
    (1, "Done, but the answer is negative: see the next table."),
    (2, "Not done, or no verdict. `error:` says what failed, `hint:` what to do next."),
    (129, "The terminal closed (SIGHUP), unless the command runs under `nohup`. Results so far are kept."),
    (130, "Ctrl-C (SIGINT) stopped the command. Results so far are kept and marked as incomplete."),
    (143, "SIGTERM stopped the command. Results so far are kept."),
];

/// What code 1 means, by command.
const NEGATIVE: &[(&str, &str)] = &[
    (
        "any load, `report` with `--limit`",
        "no load met every `--limit`; the [verdict](method.md#yes-no-or-no-verdict) says which failed",
    ),
    ("`io calibrate`", "not even one request at a time met `--max-latency`"),
    ("`io map`, `slob map`", "the demand is outside of the line, or no mix met the limit at any rate"),
    (
        "any load, `slob verify`, `orders verify`",
        "the data is not what was written, or an acknowledged commit or order is missing",
    ),
    ("`durable verify`", "a commit that was acknowledged before the power failed is lost or torn"),
    ("`failure run`", "a pause was longer, or operations failed, than the demands allow"),
    ("loads of `io`", "a request failed, and no limit allows that"),
    ("`slob verify --scrub`", "a block has no intact copy, or copies could not be made equal"),
    ("`doctor`", "something on this machine makes a test impossible or wrong (`problem`)"),
    ("`check`", "the load is not sustained"),
    ("`fit`", "the platform is not enough; with `--platforms`, none is"),
    ("`compare`", "a metric is `worse` by more than `--threshold`"),
    ("`beside`, `experiment`", "a load exceeded its own `--limit`, or a failure missed a demand"),
    ("`export`", "a run could not be read and was left out; the rest is written"),
];

/// Every environment variable that a user may set, with what it does.
const VARIABLES: &[(&str, &str)] = &[
    ("PLIMSOLL_TARGET", "Default of `--target`; without it `dir:./plimsoll-data`"),
    ("PLIMSOLL_RUNS", "Default of `--runs`; without it `./plimsoll-runs`"),
    ("PLIMSOLL_PG_BIN", "Default of `--pg-bin`: the directory of PostgreSQL's programs for a private server"),
    ("PLIMSOLL_MYSQL_BIN", "Directory of the programs of MySQL or MariaDB for a private server"),
    ("PLIMSOLL_NET_TOKEN", "Token of `plimsoll net`, unless `--token-file` names a file"),
    ("PLIMSOLL_MEET_TOKEN", "Token of the parts of a load from many hosts, unless `--meet-token-file` names a file"),
    ("PLIMSOLL_MARKS_TOKEN", "Token of `plimsoll failure run --listen`; a new one without it"),
    ("PLIMSOLL_WITNESS_TOKEN", "Token of `plimsoll durable witness`, unless `--token-file` names a file"),
    ("PLIMSOLL_REMOTE_WRITE_HEADERS", "`name=value,…` that go with each request of `--remote-write`, such as a token"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "Where `--otlp` without an address sends; without it `http://localhost:4318`"),
    ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "The whole address of metrics then; `…_TRACES_ENDPOINT` that of spans"),
    (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "`name=value,…` that go with each request of `--otlp`; also `…_METRICS_HEADERS`, `…_TRACES_HEADERS`",
    ),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "Milliseconds that a request of `--otlp` may take; without it 10000"),
    ("OTEL_EXPORTER_OTLP_COMPRESSION", "`gzip` or `none`"),
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "File of the certificates that a collector's is signed by"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "Milliseconds between two requests; without it 10000"),
    ("OTEL_SERVICE_NAME", "`service.name` of what is sent; `OTEL_RESOURCE_ATTRIBUTES` has more of it"),
    ("PLIMSOLL_ORACLE_PASSWORD", "Password for an Oracle server"),
    ("PLIMSOLL_ORACLE_WALLET_PASSWORD", "Password of an Oracle wallet"),
    ("TNS_ADMIN", "Directory of Oracle's `tnsnames.ora`"),
    ("MYSQL_PWD", "Password for a MySQL or MariaDB server"),
    ("PGPASSWORD", "Password for a PostgreSQL server"),
    ("PGPASSFILE", "File of passwords for PostgreSQL; without it `~/.pgpass`"),
    ("PGHOST", "Host, or directory of a socket, that a `postgres://` address leaves out"),
    ("PGPORT", "Port that it leaves out"),
    ("PGUSER", "Role that it leaves out"),
    ("PGDATABASE", "Database that it leaves out"),
    ("PGCONNECT_TIMEOUT", "Seconds to connect, where it leaves them out"),
    ("PGSSLMODE", "Encryption, where it leaves it out"),
    ("PGSSLROOTCERT", "Root certificates, where it leaves them out"),
    ("PGSSLCERT", "The client's certificate, where it leaves it out"),
    ("PGSSLKEY", "The key of that certificate, where it leaves it out"),
    (
        "XDG_CONFIG_HOME",
        "Settings directory, where `plimsoll/platforms.toml` has your own platforms; without it `~/.config`",
    ),
    ("HOME", "Where `~/.pgpass`, `~/.my.cnf`, `~/.postgresql` and `~/.config` are"),
    ("PATH", "Where `bpftrace`, `blkid` and server programs are looked up"),
    ("NO_COLOR", "If set, no colour"),
    ("OMPI_COMM_WORLD_RANK", "`--part auto`: set by Open MPI"),
    ("OMPI_COMM_WORLD_SIZE", "`--part auto`: set by Open MPI"),
    ("PMI_RANK", "`--part auto`: set by MPICH and others"),
    ("PMI_SIZE", "`--part auto`: set by MPICH and others"),
    ("SLURM_ARRAY_TASK_ID", "`--part auto`: set by Slurm for an array of jobs"),
    ("SLURM_ARRAY_TASK_MIN", "`--part auto`: set by Slurm for an array of jobs"),
    ("SLURM_ARRAY_TASK_COUNT", "`--part auto`: set by Slurm for an array of jobs"),
    ("SLURM_PROCID", "`--part auto`: set by `srun`"),
    ("SLURM_STEP_ID", "`--part auto`: set by `srun`"),
    ("SLURM_STEP_NUM_TASKS", "`--part auto`: set by `srun`"),
    ("SLURM_NTASKS", "`--part auto`: set by `srun`"),
    ("JOB_COMPLETION_INDEX", "`--part auto/N`: set by Kubernetes for an indexed Job"),
];

/// Variables that are no user's: between processes of the program, and for its tests.
const NOT_FOR_USERS: &[&str] = &[
    "PLIMSOLL_SUPERVISOR",
    "PLIMSOLL_CORPUS",
    "PLIMSOLL_RUN",
    "PLIMSOLL_SKIPPED",
    "PLIMSOLL_TEST_DIR",
    "PLIMSOLL_TEST_GROUP",
    "PLIMSOLL_TEST_ROLE",
    "PLIMSOLL_TORTURE_SECONDS",
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// Every page, by its path below `docs`.
fn pages() -> BTreeMap<String, String> {
    let mut root = help::command().term_width(COLUMNS).disable_help_subcommand(true);
    root.build();
    let mut index = format!(
        "# Commands\n\nEvery command with its flags, from the program's own `--help`. `{UPDATE}` makes these pages.\n\n\
         | command | what it does |\n| --- | --- |\n"
    );
    let mut pages = BTreeMap::new();
    for command in root.get_subcommands_mut() {
        let name = command.get_name().to_owned();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
        index += &format!("| [`plimsoll {name}`](commands/{name}.md) | {about} |\n");
        let mut page = format!("# plimsoll {name}\n");
        section(command, &format!("plimsoll {name}"), &mut page);
        pages.insert(format!("reference/commands/{name}.md"), page);
    }
    index += "\n## plimsoll\n\n";
    index += &fenced(&mut root);
    pages.insert("reference/commands.md".to_owned(), index);
    pages.insert("reference/environment.md".to_owned(), environment());
    pages
}

fn fenced(command: &mut clap::Command) -> String {
    let help = help::plain(&command.render_long_help().to_string());
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n").trim_end())
}

fn section(command: &mut clap::Command, path: &str, page: &mut String) {
    page.push('\n');
    page.push_str(&fenced(command));
    for inner in command.get_subcommands_mut() {
        let path = format!("{path} {}", inner.get_name());
        page.push_str(&format!("\n## {path}\n"));
        section(inner, &path, page);
    }
}

fn environment() -> String {
    let mut page = "# Exit codes and environment variables\n\n## Exit codes\n\nEvery command uses these codes. A script can rely on \
                    them.\n\n| code | meaning |\n| --- | --- |\n"
        .to_owned();
    for (code, meaning) in EXIT_CODES {
        page += &format!("| {code} | {meaning} |\n");
    }
    page += "\nNo verdict means that the measurement does not show whether a limit was met. Code 2 also covers wrong input, no space, \
             an unknown run, a\nfile of an unknown format, and runs that have no load in common.\n\n\
             | command | code 1 means |\n| --- | --- |\n";
    for (command, meaning) in NEGATIVE {
        page += &format!("| {command} | {meaning} |\n");
    }
    page += "\n- `import` ends with 0 if it imported everything that it recognised, now or earlier; with 2 if one file failed, but \
             keeps the others.\n- `serve`, and `probe` without `--duration`, run until Ctrl-C, which ends them with 0.\n\
             - A [part of a load from many hosts](../recipes/together.md#how-a-part-ends) that has recorded data ends with 0; \
             `merge` gives the verdict.\n- `experiment` ends with 2 if a step or an `after` script failed, `beside` if it completed \
             no round.\n- `slob verify` ends with 2 where it cannot know which commits were acknowledged, as after a power loss.\n\
             - `durable verify` ends with 0 only where its notes are whole and the power seems to have been cut under load, else with 2.\n\nData goes to standard output; progress, notes and errors go to standard error.\n\n\
             ## Environment variables\n\nA flag or an address overrides its variable. Scripts of an \
             [experiment](../recipes/compare.md#run-a-test-matrix) are given `PLIMSOLL_RUNS` and `PLIMSOLL_RUN`.\n\n\
             | variable | meaning |\n| --- | --- |\n";
    for (name, meaning) in VARIABLES {
        page += &format!("| `{name}` | {meaning} |\n");
    }
    page
}

/// The table of contents with a line for each command.
fn contents(now: &str, pages: &BTreeMap<String, String>) -> String {
    let (before, after) = now.split_once(CONTENTS).expect("the table of contents has the commands");
    let rest: String =
        after.lines().skip_while(|line| line.starts_with("  - ")).map(|line| format!("{line}\n")).collect();
    let names = pages.keys().filter_map(|path| path.strip_prefix("reference/commands/")?.strip_suffix(".md"));
    let lines: String = names.map(|name| format!("  - [{name}](reference/commands/{name}.md)\n")).collect();
    format!("{before}{CONTENTS}{lines}{rest}")
}

#[test]
#[cfg_attr(not(feature = "oracle"), ignore = "the page has commands that a build without Oracle's driver has not")]
fn docs_cli_is_what_the_commands_say() {
    let pages = pages();
    let folder = docs().join("reference/commands");
    let summary = docs().join("SUMMARY.md");
    let named = |path: &Path| path.strip_prefix(docs()).unwrap().to_string_lossy().into_owned();
    let there = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let contents = contents(&std::fs::read_to_string(&summary).unwrap(), &pages);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        there().filter(|path| !pages.contains_key(&named(path))).for_each(|path| std::fs::remove_file(path).unwrap());
        pages.iter().for_each(|(path, page)| std::fs::write(docs().join(path), page).unwrap());
        std::fs::write(&summary, &contents).unwrap();
    }
    for (path, page) in &pages {
        let documented = std::fs::read_to_string(docs().join(path)).unwrap_or_default();
        assert!(documented == *page, "docs/{path} is stale: {UPDATE}");
    }
    assert!(std::fs::read_to_string(summary).unwrap() == contents, "docs/SUMMARY.md is stale: {UPDATE}");
    let left: Vec<_> = there().map(|path| named(&path)).filter(|path| !pages.contains_key(path)).collect();
    assert!(left.is_empty(), "no command is about {left:?}: {UPDATE}");
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let codes: BTreeSet<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
    for exit in
        [Exit::Done, Exit::NotMet, Exit::CouldNot, Exit::NoVerdict, Exit::Signal(1), Exit::Signal(2), Exit::Signal(15)]
    {
        assert!(codes.contains(&exit.code()), "{exit:?}");
    }
    assert_eq!(exit_code_of_signal(15), 143);
}

/// Names in sources that look like those of variables which decide what the program does.
#[test]
fn every_variable_that_is_read_is_documented() {
    let mut read = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("cli/reference.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let quoted = text.split('"').filter(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
                let is_ours = |word: &&str| {
                    ["PLIMSOLL_", "PG", "OMPI_", "PMI_", "SLURM_"]
                        .iter()
                        .any(|begin| word.starts_with(begin) && word != begin)
                };
                read.extend(quoted.filter(is_ours).map(str::to_owned));
            }
        }
    }
    let known: BTreeSet<&str> = VARIABLES.iter().map(|(name, _)| *name).chain(NOT_FOR_USERS.iter().copied()).collect();
    // Files and prefixes that begin likewise.
    let others = ["PG_VERSION", "PGDATA"];
    let unknown: Vec<_> =
        read.iter().filter(|name| !known.contains(name.as_str()) && !others.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "docs/reference/environment.md lacks {unknown:?}");
    let ours = |name: &&str| name.starts_with("PLIMSOLL_") || name.starts_with("PG");
    for name in VARIABLES.iter().map(|(name, _)| *name).filter(ours) {
        assert!(read.contains(name), "nothing reads `{name}`");
    }
}
