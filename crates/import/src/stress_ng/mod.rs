//! What stress-ng counted of each of its stressors.

pub(super) mod text;

use super::draft::{reported_figure, step, whole};
use crate::numbers::{number, whole_number};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{CpuTime, Ending, ReportedFigure, Step, Workload};

/// Figures of one stressor. Bogus operations of different stressors have nothing in common.
#[derive(Debug, Clone, Default)]
struct Stressor {
    name: String,
    instances: Option<u32>,
    bogo_ops: Option<f64>,
    real_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
    per_s_real: Option<f64>,
    per_s_cpu: Option<f64>,
    cpu_percent: Option<f64>,
    max_resident_kib: Option<f64>,
    /// By the words of stress-ng.
    more: Vec<(String, f64)>,
}

impl Stressor {
    fn step(self, index: usize, label: String) -> Step {
        let ns = |seconds: Option<f64>| seconds.and_then(|seconds| whole(seconds * 1e9));
        let mut made = step(index, label, ns(self.real_s).unwrap_or(0));
        made.load.sessions = self.instances;
        made.window.ending = Ending::Unknown;
        let times = ns(self.user_s).zip(ns(self.system_s));
        made.process_cpu = times.map(|(user_ns, system_ns)| CpuTime { user_ns, system_ns, ..CpuTime::default() });
        let figures = [
            ("bogo ops", "", self.bogo_ops),
            ("bogo ops/s (real time)", "1/s", self.per_s_real),
            ("bogo ops/s (usr+sys time)", "1/s", self.per_s_cpu),
            ("real time", "s", self.real_s),
            ("usr time", "s", self.user_s),
            ("sys time", "s", self.system_s),
            ("CPU used per instance", "%", self.cpu_percent),
            ("RSS Max", "KiB", self.max_resident_kib),
        ];
        made.reported = figures
            .into_iter()
            .filter_map(|(name, unit, value)| Some(reported_figure("client", name, unit, value?)))
            .collect();
        made.reported.extend(self.more.into_iter().map(|(name, value)| reported_figure("client", name, "", value)));
        made
    }
}

/// A step for each stressor, with a label of its own.
fn steps(stressors: Vec<Stressor>) -> Vec<Step> {
    let mut seen = std::collections::HashMap::<String, u32>::new();
    let label = |stressor: &Stressor, seen: &mut std::collections::HashMap<String, u32>| {
        let times = seen.entry(stressor.name.clone()).and_modify(|times| *times += 1).or_insert(1);
        if *times == 1 { stressor.name.clone() } else { format!("{} {times}", stressor.name) }
    };
    stressors
        .into_iter()
        .enumerate()
        .map(|(index, stressor)| {
            let label = label(&stressor, &mut seen);
            stressor.step(index, label)
        })
        .collect()
}

/// What the reader must know.
const NOTE: &str = "Bogus operations compare the same stressor of the same version only.";

/// Whether a text is of stress-ng with `--yaml`.
pub(crate) fn recognises_yaml(head: &str) -> bool {
    let begins = |key: &str| head.lines().any(|line| line.trim_end() == key);
    let within = |key: &str| {
        head.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(key) && line.starts_with(' '))
    };
    (begins("system-info:") && within("stress-ng-version:"))
        || (begins("metrics:") && within("stressor:") && within("bogo-ops:"))
}

/// Its runs: one for each document. The file is a list of sections of plain keys and values, and is read as that.
pub(crate) fn read_yaml(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
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
        } else {
            notes.unknown(line_number, line);
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

#[cfg(test)]
mod tests {
    use model::record::{Outcome, Step, Workload};
    use proptest::prelude::*;

    use crate::specimens::{damaged, drafts, source, survives};
    use crate::{Began, importers, read};

    const OLD: &str = "\
stress-ng: info:  [77] dispatching hogs: 3 cpu, 2 vm
stress-ng: info:  [77] successful run completed in 9.00s
stress-ng: info:  [77] stressor      bogo ops real time  usr time  sys time   bogo ops/s   bogo ops/s
stress-ng: info:  [77]                          (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: info:  [77] cpu               4500      9.00     26.00      1.00       500.00       166.67
stress-ng: info:  [77] vm                1800      9.00     10.00      8.00       200.00       100.00
";

    const NEW: &str = "\
stress-ng: 10:11:12.34 info:  [900] invoked with 'stress-ng --cpu 3 --sequential 2 --metrics' by user 0 'root'
stress-ng: 10:11:12.34 info:  [900] setting to a 5 secs run per stressor
stress-ng: 10:11:12.35 info:  [900] dispatching hogs: 3 cpu
stress-ng: 10:11:17.40 metrc: [900] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s CPU used per       RSS Max
stress-ng: 10:11:17.40 metrc: [900]                           (secs)    (secs)    (secs)   (real time) (usr+sys time) instance (%)          (KB)
stress-ng: 10:11:17.40 metrc: [900] cpu                3000      5.00     14.00      0.50       600.00         206.90        96.67          4321
stress-ng: 10:11:17.40 metrc: [900] cpu                1000      5.00     14.00      0.50       200.00          68.97        96.67          4321
stress-ng: 10:11:17.40 metrc: [900] miscellaneous metrics:
stress-ng: 10:11:17.40 metrc: [900] cpu               1234.50 widgets per sec (harmonic mean of 3 instances)
stress-ng: 10:11:17.40 info:  [900] for a 5.05s run time:
stress-ng: 10:11:17.40 info:  [900]      20.20s available CPU time
stress-ng: 10:11:17.40 info:  [900]      14.00s user time   ( 69.31%)
stress-ng: 10:11:17.40 info:  [900] load average: 1.00 2.00 3.00
stress-ng: 10:11:17.40 info:  [900] skipped: 0
stress-ng: 10:11:17.40 info:  [900] passed: 3: cpu (3)
stress-ng: 10:11:17.40 info:  [900] failed: 0
stress-ng: 10:11:17.40 info:  [900] metrics untrustworthy: 1: cpu (1)
stress-ng: 10:11:17.40 info:  [900] successful run completed in 5.05 secs
";

    const YAML: &str = "\
---
system-info:
      stress-ng-version: 0.17.01
      epoch-secs: 1700000000
      hostname: box3
      release: 6.1.0
      machine: aarch64
      totalram: 1073741824
      cpus-online: 4

metrics:
    - stressor: cpu
      bogo-ops: 900
      bogo-ops-per-second-usr-sys-time: 30.5
      bogo-ops-per-second-real-time: 90.25
      wall-clock-time: 10.5
      user-time: 20.0
      system-time: 0.5
      cpu-usage-per-instance: 50.0
      max-rss: 2048
      widgets-per-sec: 7.5

    - stressor: matrix
      bogo-ops: 10
      wall-clock-time: 11.0

times:
      run-time: 11.5
      user-time-percent: 44.0
      load-average-1-minute: 3.5
...
";

    fn figure_value(step: &Step, name: &str) -> Option<f64> {
        step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    #[test]
    fn each_stressor_is_a_step_with_its_instances_and_times() {
        let draft = drafts("stress-ng-text", OLD).remove(0);
        assert_eq!((draft.workload, draft.title.as_str()), (Workload::Processor, "cpu vm"));
        let vm = &draft.steps[1];
        assert_eq!((vm.label.as_str(), vm.load.sessions, vm.window.duration_ns), ("vm", Some(2), 9_000_000_000));
        assert_eq!(
            (figure_value(vm, "bogo ops"), figure_value(vm, "bogo ops/s (real time)")),
            (Some(1_800.0), Some(200.0))
        );
        assert_eq!((figure_value(vm, "bogo ops/s (usr+sys time)"), figure_value(vm, "RSS Max")), (Some(100.0), None));
        let cpu = vm.process_cpu.unwrap();
        assert_eq!((cpu.user_ns, cpu.system_ns), (10_000_000_000, 8_000_000_000));
    }

    #[test]
    fn newer_tables_have_more_columns_and_are_not_always_trusted() {
        let draft = drafts("stress-ng-text", NEW).remove(0);
        let labels: Vec<&str> = draft.steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!(labels, ["cpu", "cpu 2"]);
        assert_eq!(
            (figure_value(&draft.steps[0], "CPU used per instance"), figure_value(&draft.steps[0], "RSS Max")),
            (Some(96.67), Some(4_321.0))
        );
        assert_eq!(figure_value(&draft.steps[1], "widgets per sec (harmonic mean of 3 instances)"), Some(1_234.5));
        assert_eq!(figure_value(&draft.steps[0], "all stressors: user time"), Some(14.0));
        assert!(
            draft.notes.iter().any(|note| note.contains("does not trust its metrics of 1: cpu (1)")),
            "{:?}",
            draft.notes
        );
        assert_eq!(draft.command.join(" "), "stress-ng --cpu 3 --sequential 2 --metrics");
        assert_eq!(draft.steps[0].outcome, Outcome::Completed);
    }

    #[test]
    fn brief_logs_colours_and_log_daemons_change_nothing() {
        let message = |line: &str| line.split_once("[77] ").unwrap().1.to_owned() + "\n";
        let brief: String = OLD.lines().map(message).collect();
        let coloured = OLD.replace("info:", "\u{1b}[32minfo:\u{1b}[0m").replace('\n', "\r\n");
        let logged: String = OLD.lines().map(|line| format!("Jan  5 10:00:00 box3 {line}\n")).collect();
        for text in [brief, coloured, logged] {
            let draft = drafts("stress-ng-text", &text).remove(0);
            assert_eq!(
                (draft.steps.len(), figure_value(&draft.steps[0], "bogo ops"), draft.steps[0].load.sessions),
                (2, Some(4_500.0), Some(3))
            );
        }
    }

    #[test]
    fn runs_one_after_another_are_distinguished_and_failures_are_reported() {
        let failed = OLD.replace("[77]", "[78]").replace("successful", "unsuccessful");
        let found = drafts("stress-ng-text", &format!("{OLD}{failed}"));
        assert_eq!((found.len(), found[0].steps[0].outcome.clone()), (2, Outcome::Completed));
        assert!(matches!(found[1].steps[0].outcome, Outcome::Failed { .. }));
        let none = "stress-ng: info:  [5] dispatching hogs: 1 cpu\nstress-ng: error: [5] cannot fork\n";
        assert!(read(&source(none)).unwrap_err().to_string().contains("cannot fork"));
        let (_, _, notes) = read(&source(&OLD.replace("26.00      1.00", "26.00      ?"))).unwrap();
        assert_eq!(notes.into_list()[0].line, Some(5));
        let (_, cut, _) = read(&source(OLD.trim_end().trim_end_matches("100.00"))).unwrap();
        assert_eq!(cut[0].steps.len(), 1, "the last row was cut");
    }

    #[test]
    fn lines_of_the_kernel_within_a_table_do_not_end_it() {
        let noise = "kern  :warn  : [  109.8] CPU: 84 PID: 1612 Comm: kworker\n\n";
        let text: String = OLD.lines().map(|line| format!("user  :notice: [  109.7] {line}\n{noise}")).collect();
        let draft = drafts("stress-ng-text", &text).remove(0);
        assert_eq!(
            draft.steps.iter().filter_map(|step| figure_value(step, "bogo ops")).collect::<Vec<_>>(),
            [4_500.0, 1_800.0]
        );
    }

    #[test]
    fn each_run_has_the_command_of_the_prompt_before_it() {
        let text = format!(
            "$ stress-ng --cpu 3\n{OLD}$ stress-ng --vm 1\nstress-ng: info:  [88] dispatching hogs: 1 vm\n$ stress-ng --cpu 4\n{}",
            OLD.replace("[77]", "[79]")
        );
        let commands: Vec<String> =
            drafts("stress-ng-text", &text).iter().map(|draft| draft.command.join(" ")).collect();
        assert_eq!(commands, ["stress-ng --cpu 3", "stress-ng --cpu 4"]);
    }

    #[test]
    fn yaml_is_read_as_the_text_is() {
        let draft = drafts("stress-ng-yaml", YAML).remove(0);
        assert_eq!((draft.version.as_str(), draft.began), ("0.17.01", Began::epoch_s(1_700_000_000)));
        assert_eq!((draft.environment.cpus, draft.environment.memory_bytes), (Some(4), Some(1 << 30)));
        let cpu = &draft.steps[0];
        assert_eq!(
            (figure_value(cpu, "bogo ops/s (real time)"), figure_value(cpu, "widgets-per-sec")),
            (Some(90.25), Some(7.5))
        );
        assert_eq!(
            (cpu.window.duration_ns, cpu.load.sessions, figure_value(cpu, "all stressors: user time percent")),
            (10_500_000_000, None, Some(44.0))
        );
        let load = cpu.reported.iter().find(|figure| figure.name.ends_with("load average 1 minute")).unwrap();
        assert_eq!((load.value, load.unit.as_str()), (3.5, ""));
        assert_eq!((draft.steps[1].label.as_str(), draft.steps[1].process_cpu), ("matrix", None));
        assert_eq!(drafts("stress-ng-yaml", &format!("{YAML}{YAML}")).len(), 2);
        let (_, _, notes) = read(&source(&YAML.replace("90.25", "many"))).unwrap();
        assert_eq!(notes.into_list()[0].line, Some(15));
        let no_metrics = &YAML[..YAML.find("metrics:").unwrap()];
        assert!(read(&source(no_metrics)).unwrap_err().to_string().contains("--metrics"));
    }

    #[test]
    fn one_importer_claims_each_text() {
        for text in [OLD, NEW, YAML] {
            assert_eq!(importers().iter().filter(|importer| (importer.recognises)(text)).count(), 1);
        }
        let others =
            ["run stress-ng: info about bogo ops\n", "metrics:\n  - name: stressor\n", "metrics:\n - stressor: x\n"];
        for text in others {
            let own = importers().iter().filter(|importer| importer.kind.starts_with("stress-ng"));
            assert_eq!(own.filter(|importer| (importer.recognises)(text)).count(), 0, "{text}");
        }
    }

    proptest! {
        #[test]
        fn damaged_text_never_panics(file in damaged(&[OLD, NEW, YAML])) {
            survives(file);
        }
    }
}
