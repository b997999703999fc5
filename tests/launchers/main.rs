//! The files of `examples/launch`, each started by its own launcher: four parts, or two nodes, of one experiment, whose merged
//! run has what one process with the same threads does.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use test_support::loop_device;
use test_support::ports;
use test_support::scratch;
use test_support::skip;
mod slurm;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loop_device::LoopDevice;
use scratch::scratch;
use serde_json::Value;
use skip::skip;
use tempfile::TempDir;

const LAUNCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/launch");
/// In an open loop what is sent does not depend on what the machine achieves, only on the seed and on the threads.
const LOAD: &str = "--pattern randread --block-size 8k --rate 400 --depth 8 --duration 2s --warmup 0s --seed 7";
const SIMULATED: &str = "--path sim:service=1ms,servers=64";

/// A folder in which a launcher is started.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        Self(scratch())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command with our program on the path, and nothing of a launcher that the tester may be below.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let is_launchers =
                |name: &str| ["OMPI_", "PMI_", "PMIX_", "SLURM_"].iter().any(|one| name.starts_with(one));
            if name.to_str().is_some_and(is_launchers) {
                command.env_remove(name);
            }
        }
        let ours = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
        let mut path = OsString::from(ours);
        path.push(":/usr/sbin:/sbin:");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command
            .current_dir(self.0.path())
            .env("PATH", path)
            .env("FIRST", "localhost")
            .env("PORT", ports::free().to_string());
        command.env("RUNS", self.path("runs"));
        command
    }

    /// Starts an example with `words` of ours, which have to succeed.
    fn launch(&self, example: &str, variables: &[(&str, &str)], words: &str) -> Output {
        let mut command = self.command("sh");
        command.arg(format!("{LAUNCH}/{example}")).args(words.split(' ')).envs(variables.iter().copied());
        succeeded(command.output().unwrap(), example)
    }

    /// What one process with `parts` threads does.
    fn whole(&self, path: &str, parts: u32) -> Value {
        let words = format!("io run {path} {LOAD} --quiet --jobs {parts} --runs whole");
        succeeded(self.command("plimsoll").args(words.split(' ')).output().unwrap(), "one process");
        let run = fs::read_dir(self.path("whole")).unwrap().next().unwrap().unwrap().path();
        document(&run)
    }
}

fn succeeded(output: Output, what: &str) -> Output {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{what} ended with {}:\n{out}\n{err}", output.status);
    output
}

fn document(run: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap()
}

fn is_there(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        skip(format_args!("`{program}` is not installed"));
    }
    found
}

fn requests(run: &Value) -> u64 {
    run["steps"][0]["counters"]["operations"].as_u64().unwrap()
}

/// The merged run has every part once, begun together, and what one process does.
fn assert_merged(site: &Site, merged: &str, source: &str, parts: u32) -> Value {
    let merged = document(&site.path(merged));
    let rows = merged["parts"].as_array().unwrap();
    let numbers: Vec<u64> = rows.iter().map(|part| part["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..u64::from(parts)).collect::<Vec<_>>());
    assert_eq!(merged["merged"]["missing"], Value::Null);
    assert_eq!(merged["merged"]["steps"][0]["windows"], "whole", "{}", merged["merged"]);
    let sum: u64 = rows.iter().map(|part| part["steps"][0]["operations"].as_u64().unwrap()).sum();
    assert_eq!(requests(&merged), sum);
    for part in rows {
        assert!(part["start_error_ns"].as_i64().is_some() && part["clock"]["bound_ns"].as_u64().is_some(), "{part}");
    }
    let any_part = |folder: &Path| {
        let mut found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.find(|run| run.join("run.json").exists())
    };
    if let Some(part) = site.path("runs").exists().then(|| any_part(&site.path("runs"))).flatten() {
        let said = document(&part)["part"]["source"].as_str().unwrap().to_owned();
        assert!(said.starts_with(source), "{said}");
    }
    // What falls due follows from the seed. A busy machine leaves some of it to be done after the window, which is counted as well, but
    // for what is under way then.
    let whole = site.whole(SIMULATED, parts);
    let [by_parts, by_one] = [&merged, &whole].map(|run| {
        let (step, generator) = (&run["steps"][0], &run["steps"][0]["generator"]);
        let of = |at: &Value, name: &str| at[name].as_u64().unwrap();
        let known = requests(run) + of(generator, "backlog_operations");
        let (due, sessions) = (of(generator, "due_operations"), of(&step["load"], "sessions"));
        assert!(requests(run) > 0 && known <= due && known + sessions >= due, "{known} of {due}: {generator}");
        due
    });
    assert_eq!(by_parts, by_one);
    merged
}

#[test]
fn open_mpi_starts_parts_that_add_up_to_one_process() {
    if !is_there("mpirun.openmpi") {
        return;
    }
    let site = Site::new();
    let variables =
        [("MPIRUN", "mpirun.openmpi"), ("MPI_OPTIONS", "--allow-run-as-root --oversubscribe"), ("PARTS", "4")];
    site.launch("openmpi.sh", &variables, &format!("io run {SIMULATED} {LOAD} --quiet"));
    assert_merged(&site, "runs-merged", "OMPI_COMM_WORLD_RANK", 4);
}

#[test]
fn mpich_starts_parts_that_add_up_to_one_process() {
    if !is_there("mpiexec.mpich") {
        return;
    }
    let site = Site::new();
    let variables = [("MPIEXEC", "mpiexec.mpich"), ("PARTS", "4")];
    site.launch("mpich.sh", &variables, &format!("io run {SIMULATED} {LOAD} --quiet"));
    assert_merged(&site, "runs-merged", "PMI_RANK", 4);
}

#[test]
fn a_device_counts_what_the_merged_run_says_that_it_was_asked() {
    if !is_there("mpiexec.mpich") {
        return;
    }
    let site = Site::new();
    let file = site.path("disk");
    fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let Some(device) = LoopDevice::over(&file) else { return };
    let reads = || {
        let counted = fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
        counted.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let before = reads();
    let words = format!("io run --path {} {LOAD} --quiet", device.path().display());
    site.launch("mpich.sh", &[("MPIEXEC", "mpiexec.mpich"), ("PARTS", "4")], &words);
    let counted = (reads() - before) as f64;
    let merged = document(&site.path("runs-merged"));
    let requests = requests(&merged) as f64;
    // The kernel looks for partitions and labels when a device is opened: some reads more, and never fewer.
    assert!(counted >= requests && counted <= requests * 1.01 + 64.0, "{requests} by parts, {counted} by the device");
    let seen = merged["steps"][0]["devices"].as_array().unwrap();
    let of_device = seen.iter().filter(|one| one["name"] == device.name().as_str());
    let seen: Vec<f64> = of_device.map(|one| one["reads"].as_f64().unwrap()).collect();
    assert!(seen.len() == 1 && (seen[0] / requests - 1.0).abs() < 0.1, "a device that all saw counts once: {seen:?}");
}

#[test]
fn ansible_starts_parts_on_hosts_and_merges_them_here() {
    if !is_there("ansible-playbook") {
        return;
    }
    let site = Site::new();
    fs::write(site.path("hosts"), "[load]\nh[0:3]\n[load:vars]\nansible_connection=local\n").unwrap();
    let load = format!(r#"{{"load": "io run {SIMULATED} {LOAD} --quiet", "meet_port": "{}"}}"#, ports::free());
    let directory = format!("directory={}", site.path("there").display());
    fs::create_dir(site.path("there")).unwrap();
    let mut command = site.command("ansible-playbook");
    command.args(["-i", "hosts", &format!("{LAUNCH}/ansible.yml"), "--forks", "4", "-e", "experiment=night"]);
    command.args(["-e", "first=localhost", "-e", &directory, "-e", &load]);
    command.env("PLIMSOLL_MEET_TOKEN", "a token of these tests").env("PWD", site.0.path()).env("HOME", site.0.path());
    let output = succeeded(command.output().unwrap(), "ansible.yml");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("a token of these tests"));
    assert_merged(&site, "night-merged", "--part", 4);
}

#[test]
fn parts_that_pdsh_starts_find_their_numbers_by_their_names() {
    if !is_there("pdsh") {
        return;
    }
    let named = Command::new("unshare").args(["--uts", "hostname", "h0"]).output();
    if !named.is_ok_and(|named| named.status.success()) {
        skip("a process cannot be given a host name of its own here");
        return;
    }
    let site = Site::new();
    // In place of a remote shell: the host's name, which pdsh puts in place of %h, and the command.
    let remote = "#!/bin/sh\nexec unshare --uts sh -c \"hostname $1; $2\"\n";
    fs::write(site.path("remote"), remote).unwrap();
    fs::write(site.path("token"), "a token of these tests").unwrap();
    fs::set_permissions(site.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let pdsh = format!("pdsh -R exec -f 4 -w h[0-3] sh {} %h", site.path("remote").display());
    let token = site.path("token").display().to_string();
    let variables = [("HOSTS", "h0,h1,h2,h3"), ("PDSH", &pdsh), ("TOKEN_FILE", &token)];
    site.launch("pdsh.sh", &variables, &format!("io run {SIMULATED} {LOAD} --quiet"));
    assert_merged(&site, "runs-merged", "--hosts", 4);
}

#[test]
fn slurm_starts_a_part_on_each_node() {
    if ![is_there("slurmctld"), is_there("slurmd"), is_there("sbatch"), is_there("munged")].iter().all(|there| *there) {
        return;
    }
    let site = Site::new();
    let Some(cluster) = slurm::Cluster::start(&site.path("slurm")) else { return };
    let mut command = site.command("sbatch");
    command.env("SLURM_CONF", cluster.configuration()).args(["--wait", "--nodes", "2", "--output", "job.txt"]);
    command.arg(format!("{LAUNCH}/slurm.sbatch")).args(format!("io run {SIMULATED} {LOAD} --quiet").split(' '));
    let output = command.output().unwrap();
    let job = fs::read_to_string(site.path("job.txt")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{job}\n{}", String::from_utf8_lossy(&output.stderr), cluster.words());
    assert_merged(&site, "runs-merged", "SLURM_PROCID", 2);
}

#[test]
fn kubernetes_takes_the_job() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fleet/bin/kubernetes-validate");
    if !own.exists() {
        skip("`kubernetes-validate` is not there; `make test-fleet` brings it");
        return;
    }
    let output = Command::new(own).arg("--strict").arg(format!("{LAUNCH}/kubernetes.yaml")).output().unwrap();
    succeeded(output, "kubernetes-validate");
}
