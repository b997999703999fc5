use model::record::Workload;
use proptest::prelude::*;

use crate::specimens::{damaged, drafts, source, survives};
use crate::{Began, importers, read};
use model::record::{Outcome, Step};

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
    let commands: Vec<String> = drafts("stress-ng-text", &text).iter().map(|draft| draft.command.join(" ")).collect();
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
