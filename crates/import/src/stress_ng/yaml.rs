//! stress-ng with `--yaml`.

use super::{NOTE, Stressor, steps};
use crate::draft::reported_figure;
use crate::numbers::{number, whole_number};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::ReportedFigure;
use model::record::Workload;

/// Whether a text is of stress-ng with `--yaml`.
pub(crate) fn recognises(head: &str) -> bool {
    let begins = |key: &str| head.lines().any(|line| line.trim_end() == key);
    let within = |key: &str| {
        head.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(key) && line.starts_with(' '))
    };
    (begins("system-info:") && within("stress-ng-version:"))
        || (begins("metrics:") && within("stressor:") && within("bogo-ops:"))
}

/// Its runs: one for each document. The file is a list of sections of plain keys and values, and is read as that.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found = Vec::new();
    let mut document = Document::default();
    for (line_number, line) in source.lines() {
        let text = line.trim();
        if text == "---" || text == "..." {
            found.extend(std::mem::take(&mut document).draft());
        } else if text.is_empty() || text.starts_with('#') {
        } else if !line.starts_with([' ', '\t', '-']) && text.ends_with(':') {
            document.section = text.trim_end_matches(':').to_owned();
        } else if let Some((key, value)) = text.split_once(':') {
            document.value(line_number, key, value.trim(), notes);
        }
    }
    found.extend(document.draft());
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no metrics of stress-ng: run it with --metrics"));
    }
    Ok(found)
}

#[derive(Debug, Default)]
struct Document {
    section: String,
    draft: Draft,
    stressors: Vec<Stressor>,
    times: Vec<ReportedFigure>,
}

impl Document {
    fn value(&mut self, line: u64, key: &str, value: &str, notes: &mut Notes) {
        match self.section.as_str() {
            "system-info" => self.system(key, value),
            "metrics" => {
                if let Some(name) = key.strip_prefix('-').map(str::trim_start) {
                    if name == "stressor" {
                        self.stressors
                            .push(Stressor { name: value.trim_matches('"').to_owned(), ..Stressor::default() });
                    }
                } else if let Some(stressor) = self.stressors.last_mut() {
                    let Some(figure) = number(value) else {
                        notes.not_understood(
                            line,
                            format!("{key}: {:?}; a number was expected", value.chars().take(40).collect::<String>()),
                        );
                        return;
                    };
                    set(stressor, key, figure);
                }
            }
            "times" => {
                let unit = match key {
                    key if key.ends_with("percent") => "%",
                    key if key.contains("load-average") => "",
                    _ => "s",
                };
                let name = format!("all stressors: {}", key.trim_start_matches(['-', ' ']).replace('-', " "));
                self.times.extend(number(value).map(|figure| reported_figure("client", name, unit, figure)));
            }
            _ => {}
        }
    }

    fn system(&mut self, key: &str, value: &str) {
        let environment = &mut self.draft.environment;
        let text = || Some(value.trim_matches('"').to_owned());
        match key {
            "stress-ng-version" => self.draft.version = value.to_owned(),
            "epoch-secs" => self.draft.began = value.parse().ok().and_then(Began::epoch_s),
            "hostname" | "nodename" => environment.hostname = text(),
            "release" => environment.kernel = text(),
            "machine" => environment.architecture = text(),
            "cpus-online" => environment.cpus = value.parse().ok(),
            "totalram" => environment.memory_bytes = whole_number(value),
            _ => {}
        }
    }

    fn draft(self) -> Option<Draft> {
        if self.stressors.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.stressors.iter().map(|stressor| stressor.name.as_str()).take(6).collect();
        let title = names.join(" ");
        let mut steps = steps(self.stressors);
        if let Some(step) = steps.first_mut() {
            step.reported.extend(self.times);
        }
        Some(Draft {
            workload: Workload::Processor,
            program: "stress-ng",
            title,
            steps,
            notes: vec![NOTE.to_owned()],
            ..self.draft
        })
    }
}

fn set(stressor: &mut Stressor, key: &str, figure: f64) {
    let place = match key {
        "bogo-ops" => &mut stressor.bogo_ops,
        "bogo-ops-per-second-usr-sys-time" => &mut stressor.per_s_cpu,
        "bogo-ops-per-second-real-time" => &mut stressor.per_s_real,
        "wall-clock-time" => &mut stressor.real_s,
        "user-time" => &mut stressor.user_s,
        "system-time" => &mut stressor.system_s,
        "cpu-usage-per-instance" => &mut stressor.cpu_percent,
        "max-rss" => &mut stressor.max_resident_kib,
        "instances" => {
            stressor.instances = crate::draft::whole(figure).and_then(|count| u32::try_from(count).ok());
            return;
        }
        _ => {
            stressor.more.push((key.to_owned(), figure));
            return;
        }
    };
    *place = Some(figure);
}
