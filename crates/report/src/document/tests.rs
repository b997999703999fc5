use std::path::Path;

use super::*;
use analysis::{Rule, analyse_asked, analyse_limits};
use model::record::sample::{self, requests};
use model::record::{self, Metric};
use serde_json::Value;

/// The JSON schema of every document that `docs/schema` publishes, by the name of its file.
fn schemas() -> [(&'static str, Value); 4] {
    [
        ("run.json", record::schema()),
        ("interval.json", record::interval_schema()),
        ("report.json", schemars::schema_for!(RunReport<'_>).to_value()),
        ("probe.json", schemars::schema_for!(ProbeLine<'_>).to_value()),
    ]
}

/// Whether a document is what the published schema of that name describes.
#[track_caller]
fn assert_follows(name: &str, document: &impl Serialize) {
    let (_, schema) = schemas().into_iter().find(|(file, _)| *file == name).unwrap();
    let document = serde_json::to_value(document).unwrap();
    let errors: Vec<_> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}");
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), &text).unwrap();
        }
        let published = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(published == text, "docs/schema/{name} is stale: UPDATE_DOCS=1 cargo test published_schemas");
    }
    let published = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(published, schemas().len(), "docs/schema has a file that nothing is made from");
}

#[test]
fn reports_of_every_kind_of_run_follow_the_schema() {
    for run in [sample::imported(), requests::open_loop(), requests::mixed(), sample::updates(12)] {
        assert_follows("report.json", &RunReport::new(&run, &analyse_asked(&run, None)));
        let limits = ["p99=5ms", "foo:p99.9=1ms"].map(|limit| limit.parse().unwrap());
        let findings = analyse_limits(&run, &limits);
        let report = RunReport::new(&run, &findings);
        assert_follows("report.json", &report);
        assert_eq!(report.verdict.unwrap().limits.len(), 2);
    }
}

#[test]
fn a_run_whose_tags_name_a_platform_has_what_that_should_reach() {
    let tags = [("vm", "E32s_v3"), ("disk", "p30x16"), ("nodes", "2")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let run = Run { tags, ..sample::sweep(10) };
    let report = RunReport::new(&run, &[]);
    assert_follows("report.json", &report);
    let expected = report.expected.unwrap();
    assert_eq!((expected.sustained_requests_per_s, expected.binds), (Some(80_000.0), Some(Whose::VolumesIops)));
    assert!(expected.sentence.unwrap().contains("of 80,000 requests/s that the volumes allow"));
    let untagged = Run { tags: std::collections::BTreeMap::new(), ..sample::sweep(10) };
    assert!(RunReport::new(&untagged, &[]).expected.is_none());
}

#[test]
fn findings_carry_their_rule_and_their_evidence() {
    let runs = [sample::sweep(10), sample::imported(), requests::open_loop(), requests::mixed(), sample::updates(12)];
    for run in &runs {
        for finding in &analyse_asked(run, None) {
            let rule = finding.rule();
            assert!(rule.severities().contains(&finding.severity()), "{}", rule.id());
            let evidence = serde_json::to_value(finding).unwrap();
            assert!(evidence.as_object().is_some_and(|figures| !figures.is_empty()), "{}: {evidence}", rule.id());
        }
    }
    let findings = analyse_asked(&runs[0], None);
    let report = serde_json::to_value(RunReport::new(&runs[0], &findings)).unwrap();
    let line = report["findings"].as_array().unwrap().iter().find(|found| found["id"] == "load_line.steps").unwrap();
    assert_eq!(line["evidence"]["target"]["limit_ns"], 5_000_000, "{line}");
    assert_eq!(line["page"], "reference/method.md#the-load-line");
}

/// The reference of all rules, which `docs/reference/findings.md` is.
fn findings_page() -> String {
    let mut page = "\
# Findings

What a report says about a run is made by the rules below. `plimsoll report --json` gives each finding with the rule's `id`, its
severity, its sentence, the advice, and as `evidence` the values that it is made of; [exports](tables.md) have the ids too. An id
keeps its meaning; sentences may change, so programs match ids.

A *doubt* says that figures do not mean what they seem to mean. An *answer* says how much load is sustained, and what limits it. A
*note* is worth knowing. Where a rule has two severities, its text says when the finding is a doubt.

Names in `evidence` end in their unit (`_ns`, `_bytes`, `_per_s`); shares are 0 to 1; `steps` are labels.
"
    .to_owned();
    let mut area = "";
    for rule in Rule::ALL {
        let (new, _) = rule.id().split_once('.').unwrap();
        if new != area {
            area = new;
            page += &format!(
                "\n## {area}\n\n| id | severity | what the rule looks for | explained in |\n| --- | --- | --- | --- |\n"
            );
        }
        let severities: Vec<_> =
            rule.severities().iter().map(|severity| format!("{severity:?}").to_lowercase()).collect();
        let title = rule.page().split('#').next().unwrap().trim_end_matches(".md");
        page += &format!(
            "| `{}` | {} | {} | [{title}](../{}) |\n",
            rule.id(),
            severities.join(", "),
            rule.meaning(),
            rule.page()
        );
    }
    page
}

/// The reference of all metrics, which `docs/reference/metrics.md` is.
fn metrics_page() -> String {
    let mut page = "\
# Metrics

What is shown of a step, under one definition each. The key is the name in files: those of `plimsoll export`, and the CSV files that
`plimsoll report` and `plimsoll trend` write. A count that Prometheus scrapes has the name of its rate: `reads_per_s` is that of
`plimsoll_reads_total`, `read_megabytes_per_s` that of `plimsoll_read_bytes_total`. A metric that a step does not know is absent
(`?` in tables, empty or NULL in files), never zero. Each is over the measured window of the step.

The layer says who counted: the load generator, the database (an engine or a server), the storage as requests reach it, or the OS.
[How numbers are made](method.md) says more about layers and windows.

Values of other programs keep their own names and units. Where one is a metric of this list, the run says so beside it
(`metric` of a [reported figure](formats.md#reportedfigure)), with the factor to the unit here.

| key | heading | unit | layer | better | what it counts |
| --- | --- | --- | --- | --- | --- |
"
    .to_owned();
    for metric in Metric::ALL {
        let better = metric.better().map_or_else(String::new, |better| format!("{better:?}").to_lowercase());
        let (key, heading, unit) = (metric.key(), metric.heading(), metric.unit().symbol());
        page += &format!(
            "| `{key}` | {heading} | {unit} | {} | {better} | {} |\n",
            metric.layer().name(),
            metric.meaning()
        );
    }
    page
}

#[test]
fn the_references_list_every_rule_and_every_metric() {
    for (name, page) in
        [("findings.md", findings_page()), ("metrics.md", metrics_page()), ("formats.md", formats_page())]
    {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let published = std::fs::read_to_string(file).unwrap_or_default();
        assert!(published == page, "docs/reference/{name} is stale: UPDATE_DOCS=1 cargo test the_references_list");
    }
}

#[test]
fn a_report_without_its_run_does_not_follow_the_schema() {
    let run = sample::imported();
    let mut document = serde_json::to_value(RunReport::new(&run, &[])).unwrap();
    document.as_object_mut().unwrap().remove("run");
    let [.., (_, schema), _] = schemas();
    assert!(!jsonschema::is_valid(&schema, &document));
}

#[test]
fn lines_of_a_probe_follow_the_schema() {
    let at = Timestamp(jiff::Timestamp::UNIX_EPOCH);
    assert_follows("probe.json", &ProbeLine::Interval { at, traces: &[TraceStats::default()] });
    let total = ProbeLine::Total { at, ended_by: ProbeEnd::Signal, traces: &[] };
    assert_follows("probe.json", &total);
    assert!(serde_json::to_string(&total).unwrap().starts_with("{\"kind\":\"total\",\"at\":"));
}

/// A type of a schema's field in words, with links to the definitions that are on the page.
fn kind_of(schema: &Value) -> String {
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(kinds)) = schema.get(key) {
            let mut kinds: Vec<_> =
                kinds.iter().filter(|kind| kind.get("type") != Some(&Value::from("null"))).map(kind_of).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{constant}`").replace('"', "");
    }
    let kinds = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect(),
        _ => vec![],
    };
    let word = |kind: &&str| match *kind {
        "string" => "text".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", kind_of(items)),
            None => "list".to_owned(),
        },
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("object of {}", kind_of(values)),
            _ => "object".to_owned(),
        },
        other => other.to_owned(),
    };
    kinds.iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// What a schema says of itself, in one line that breaks no table, without links that only the sources have.
fn said(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = text.replace('\n', " ").replace('|', "\\|");
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('`');
        match part.split_once("`]") {
            Some((name, rest)) => {
                let rest = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest);
                plain += &format!("{name}`{rest}");
            }
            None => plain += part,
        }
    }
    // Words that lead to an item of the sources.
    while let Some((before, after)) = plain.split_once("](") {
        let (Some((start, words)), Some((target, rest))) = (before.rsplit_once('['), after.split_once(')')) else {
            break;
        };
        if !target.contains("::") {
            break;
        }
        plain = format!("{start}{words}{rest}");
    }
    plain
}

/// Rows of the fields of a schema, and of those that stand within them.
fn fields_of(schema: &Value, before: &str, around: &str, rows: &mut String) {
    for (name, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let own = said(value);
        let meaning = if own.is_empty() { around } else { &own };
        *rows += &format!("| {before}`{name}` | {} | {meaning} |\n", kind_of(value));
        fields_within(value, &format!("{before}`{name}` "), meaning, rows);
    }
}

/// The same of what a field may hold: a type that has no name of its own.
fn fields_within(schema: &Value, before: &str, around: &str, rows: &mut String) {
    fields_of(schema, before, around, rows);
    let choices = ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    choices.chain(schema.get("items")).for_each(|inner| fields_within(inner, before, around, rows));
}

/// A type: what it is, and its fields or its values.
fn describe(schema: &Value, page: &mut String) {
    let text = said(schema);
    if !text.is_empty() {
        *page += &format!("{text}\n\n");
    }
    let (mut rows, mut values) = (String::new(), String::new());
    fields_of(schema, "", "", &mut rows);
    let mut value = |name: String, meaning: &str| values += &format!("| {name} | {meaning} |\n");
    for choice in ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten() {
        let tag = ["kind", "type"].iter().find_map(|name| choice.get("properties")?.get(*name)?.get("const")?.as_str());
        let around = said(choice);
        if let Some(Value::Array(names)) = choice.get("enum") {
            names.iter().filter_map(Value::as_str).for_each(|name| value(format!("`{name}`"), &around));
        } else if let Some(name) = choice.get("const").and_then(Value::as_str) {
            value(format!("`{name}`"), &around);
        } else if choice.get("properties").is_some() {
            let variant = tag.map_or_else(String::new, |tag| format!("`{tag}`: "));
            fields_of(choice, &variant, &around, &mut rows);
        } else {
            let kind = kind_of(choice);
            value(if kind.is_empty() { "any".to_owned() } else { kind }, &around);
        }
    }
    let names = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).for_each(|name| value(format!("`{name}`"), ""));
    if !values.is_empty() {
        *page += &format!("| value | meaning |\n| --- | --- |\n{values}\n");
    }
    if !rows.is_empty() {
        *page += &format!("| field | kind | meaning |\n| --- | --- | --- |\n{rows}\n");
    }
}

/// The reference of all documents, which `docs/reference/formats.md` is.
fn formats_page() -> String {
    let mut page = "\
# Result formats

The files of a run, and what `--json` prints, field by field. `UPDATE_DOCS=1 cargo test the_references_list` makes this page from the
types. The JSON Schemas are [run.json](../schema/run.json), [interval.json](../schema/interval.json),
[report.json](../schema/report.json) and [probe.json](../schema/probe.json).

A run is a directory with `run.json`, which Plimsoll replaces whole by a rename, so that it is always valid, and `intervals.jsonl`, to
which it appends an interval per line. A killed run has the `outcome` `\"unfinished\"`; an unfinished step without `duration_ns` was
written when it began: sum its intervals instead.

- Names are `snake_case` and end in their unit: `_ns` nanoseconds, `_bytes`, `_per_s`. Shares run from 0 to 1.
- A value that its source does not report is absent or `null`, never zero.
- Every value of a [step](#step) covers exactly its measured [window](#window), unless it says otherwise.
- Readers ignore unknown fields. A format may gain fields; a change of meaning makes a new format, and a program refuses a newer one.
- A run never has a password.

"
    .to_owned();
    let titles = [
        ("run.json", "The run (`run.json`)"),
        ("interval.json", "The interval (`intervals.jsonl`)"),
        ("report.json", "The report document"),
        ("probe.json", "Lines of a probe"),
    ];
    let mut known: std::collections::BTreeMap<String, Value> = std::collections::BTreeMap::new();
    for (name, title) in titles {
        let (_, schema) = schemas().into_iter().find(|(file, _)| *file == name).unwrap();
        page += &format!("## {title}\n\n");
        describe(&schema, &mut page);
        let definitions = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
        known.extend(definitions.map(|(name, value)| (name.clone(), value.clone())));
    }
    page += "## Types\n\n";
    for (name, definition) in known {
        page += &format!("### {name}\n\n");
        describe(&definition, &mut page);
    }
    format!("{}\n", page.trim_end())
}

/// Names of all properties anywhere in a schema.
fn field_names(schema: &Value, names: &mut std::collections::BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                names.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| field_names(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| field_names(value, names)),
        _ => {}
    }
}

#[test]
fn the_documentation_names_every_field() {
    let page = formats_page();
    let mut names = std::collections::BTreeSet::new();
    schemas().iter().for_each(|(_, schema)| field_names(schema, &mut names));
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/formats.md lacks {missing:?}");
}
