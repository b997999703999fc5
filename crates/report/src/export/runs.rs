//! The tables of whole runs: `runs`, `findings` and `parts`.

use super::table::{
    Cell, Exported, Field, Kind, Table, columns, count, field, fill, json, signed, small, text, time, word, words,
};
use analysis::Finding;
use analysis::trend::{Database, database_of};
use model::record::{FleetPart, Outcome};

pub(super) const RUNS: Table = Table {
    name: "runs",
    words: "a run",
    columns: || columns(&runs()),
    rows: |exported, out| fill(&runs(), [*exported], out),
};

pub(super) const FINDINGS: Table = Table {
    name: "findings",
    words: "something that there is to say about a run, most important first",
    columns: || columns(&findings()),
    rows: |exported, out| {
        let numbered = exported.findings.iter().zip(0_u64..);
        fill(&findings(), numbered.map(|(finding, number)| Found { key: exported.key, number, finding }), out)
    },
};

pub(super) const PARTS: Table = Table {
    name: "parts",
    words: "a run that was part of a fleet's experiment",
    columns: || columns(&parts()),
    rows: |exported, out| fill(&parts(), exported.run.part.iter().map(|part| Part { exported, part }), out),
};

fn database(row: &Exported<'_>) -> Option<Database> {
    row.run.steps.first().map(|step| database_of(row.run, step))
}

fn runs<'a>() -> Vec<Field<Exported<'a>>> {
    vec![
        field(
            "run",
            Kind::Text,
            "",
            "its unique name in all tables: its id. A part of a fleet adds `#` and its number; a name that is taken adds \
             `~2` and so on",
            |row| text(row.key),
        ),
        field("id", Kind::Text, "", "its id", |row| text(&row.run.id)),
        field("name", Kind::Text, "", "its name, of tags and load", |row| text(&row.run.name)),
        field("directory", Kind::Text, "", "where it was read from", |row| text(row.directory)),
        field("format", Kind::Count, "", "version of its document", |row| count(u64::from(row.run.format))),
        field("workload", Kind::Text, "", "`slob`, `orders`, `io`, `database` and so on", |row| {
            text(row.run.workload().name())
        }),
        field("tool", Kind::Text, "", "the program that measured", |row| text(&row.run.tool.name)),
        field("tool_version", Kind::Text, "", "its version", |row| text(&row.run.tool.version)),
        field("started_at", Kind::Time, "", "when it began", |row| time(row.run.started_at, 0)),
        field("ended_at", Kind::Time, "", "when it ended", |row| {
            row.run.ended_at.map_or(Cell::Unknown, |at| time(at, 0))
        }),
        field(
            "clock",
            Kind::Text,
            "",
            "what its times are of: `utc`, `wall` (a zone that is not reported) or `file_time`",
            |row| row.run.imported.as_ref().map_or_else(|| text("utc"), |imported| word(&imported.clock)),
        ),
        field("outcome", Kind::Text, "", "`completed`, `interrupted`, `failed` or `unfinished`", |row| {
            word(&row.run.outcome)
        }),
        field("error", Kind::Text, "", "the error that ended it", |row| match &row.run.outcome {
            Outcome::Failed { error } => text(error),
            _ => Cell::Unknown,
        }),
        field("seed", Kind::Count, "", "seed of its random choices", |row| count(row.run.seed)),
        field("tags", Kind::Text, "", "its tags, a JSON object: `tags->>'vm'` is one of them", |row| {
            json(&row.run.tags)
        }),
        field("parameters", Kind::Text, "", "its parameters, a JSON object", |row| json(&row.run.parameters)),
        field("target_kind", Kind::Text, "", "`embedded`, `block`, `postgres`, `oracle` and so on", |row| {
            text(row.run.target.kind_name())
        }),
        field("target_address", Kind::Text, "", "its address, without secrets", |row| text(&row.run.target.address)),
        field("database", Kind::Text, "", "name of the database, or address of the target", |row| {
            database(row).map_or(Cell::Unknown, |database| text(&database.name))
        }),
        field(
            "database_id",
            Kind::Text,
            "",
            "what makes it that database: its number, else its name or address",
            |row| database(row).map_or(Cell::Unknown, |database| text(&database.scope.identity)),
        ),
        field("instance", Kind::Text, "", "the instance, where the run is of one alone", |row| {
            database(row).and_then(|database| database.scope.instance).map_or(Cell::Unknown, |name| text(&name))
        }),
        field("block_bytes", Kind::Count, "B", "block size", |row| count(row.run.target.block_bytes)),
        field("data_bytes", Kind::Count, "B", "data that operations can touch", |row| count(row.run.target.data_bytes)),
        field("cache_bytes", Kind::Count, "B", "memory of the buffer cache", |row| count(row.run.target.cache_bytes)),
        field("host", Kind::Text, "", "host name", |row| words(row.run.environment.hostname.as_ref())),
        field("machine", Kind::Text, "", "vendor and product", |row| words(row.run.environment.machine.as_ref())),
        field("os", Kind::Text, "", "distribution", |row| words(row.run.environment.os.as_ref())),
        field("kernel", Kind::Text, "", "kernel release", |row| words(row.run.environment.kernel.as_ref())),
        field("architecture", Kind::Text, "", "of the processors", |row| {
            words(row.run.environment.architecture.as_ref())
        }),
        field("cpu_model", Kind::Text, "", "of the processors", |row| words(row.run.environment.cpu_model.as_ref())),
        field("cpus", Kind::Count, "", "processors that it may use", |row| small(row.run.environment.cpus)),
        field("memory_bytes", Kind::Count, "B", "physical memory", |row| count(row.run.environment.memory_bytes)),
        field("virtualization", Kind::Text, "", "hypervisor or container", |row| {
            words(row.run.environment.virtualization.as_ref())
        }),
        field(
            "imported_kind",
            Kind::Text,
            "",
            "kind of the file that it was imported from, such as `awr-text`",
            |row| words(row.run.imported.as_ref().and_then(|imported| imported.files.first()).map(|file| &file.kind)),
        ),
        field("imported_file", Kind::Text, "", "that file", |row| {
            words(row.run.imported.as_ref().and_then(|imported| imported.files.first()).map(|file| &file.path))
        }),
        field("notes", Kind::Text, "", "how it was made, one note a line", |row| text(&row.run.notes.join("\n"))),
        field("steps", Kind::Count, "", "load levels that it has", |row| count(row.run.steps.len() as u64)),
    ]
}

struct Found<'a> {
    key: &'a str,
    number: u64,
    finding: &'a Finding,
}

fn findings<'a>() -> Vec<Field<Found<'a>>> {
    vec![
        field("run", Kind::Text, "", "the run, as in `runs`", |row| text(row.key)),
        field("finding", Kind::Count, "", "its place among those of the run, from 0", |row| count(row.number)),
        field("id", Kind::Text, "", "the rule that found it, such as `ceiling.limit`", |row| {
            text(row.finding.rule().id())
        }),
        field(
            "severity",
            Kind::Text,
            "",
            "`doubt` (figures do not mean what they seem to), `answer` or `note`",
            |row| word(&row.finding.severity()),
        ),
        field("text", Kind::Text, "", "the finding in a sentence or two", |row| text(&row.finding.sentence())),
        field("advice", Kind::Text, "", "what can be done about it", |row| words(row.finding.advice().as_ref())),
        field(
            "steps",
            Kind::Text,
            "",
            "labels of the steps that a doubt is about, a JSON list; NULL for the whole run",
            |row| {
                let labels = row.finding.steps().and_then(|steps| serde_json::to_string(steps).ok());
                words(labels.as_ref())
            },
        ),
    ]
}

struct Part<'a> {
    exported: &'a Exported<'a>,
    part: &'a FleetPart,
}

fn parts<'a>() -> Vec<Field<Part<'a>>> {
    vec![
        field("run", Kind::Text, "", "the run, as in `runs`", |row| text(row.exported.key)),
        field("part", Kind::Count, "", "number of the part, from 0", |row| count(u64::from(row.part.number))),
        field("parts", Kind::Count, "", "parts of the experiment", |row| count(u64::from(row.part.parts))),
        field("source", Kind::Text, "", "where both came from, such as `--part`", |row| text(&row.part.source)),
        field("configuration", Kind::Text, "", "digest of what decides the load, equal in all parts", |row| {
            text(&row.part.configuration)
        }),
        field("host", Kind::Text, "", "host name", |row| words(row.exported.run.environment.hostname.as_ref())),
        field("start_at_ns", Kind::Count, "ns", "the agreed start by this host's clock, since 1970", |row| {
            count(row.part.start_at_ns)
        }),
        field("start_error_ns", Kind::Count, "ns", "how far the load began from it: positive is late", |row| {
            signed(row.part.start_error_ns)
        }),
        field(
            "clock_before_ns",
            Kind::Count,
            "ns",
            "what is added to this clock to have that of part 0, before the load",
            |row| signed(row.part.clock.map(|clock| clock.before_ns)),
        ),
        field("clock_after_ns", Kind::Count, "ns", "the same after the load", |row| {
            signed(row.part.clock.and_then(|clock| clock.after_ns))
        }),
        field("clock_bound_ns", Kind::Count, "ns", "the largest possible error of the offset", |row| {
            count(row.part.clock.map(|clock| clock.bound_ns))
        }),
    ]
}
