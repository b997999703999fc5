//! A cluster of two nodes on this machine, without a service manager and without control groups.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::skip::skip;

/// How long nodes have to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The daemons, which end with it.
pub struct Cluster {
    directory: PathBuf,
    daemons: Vec<Child>,
}

impl Cluster {
    /// None, with the reason reported, where it cannot be had.
    pub fn start(directory: &Path) -> Option<Self> {
        let id = |what: &str| {
            let found = Command::new("id").args([what, "munge"]).output().ok()?;
            String::from_utf8_lossy(&found.stdout).trim().parse::<u32>().ok()
        };
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let (Some(user), Some(group), true) = (id("-u"), id("-g"), root) else {
            skip("a cluster of Slurm is made as root, with the user `munge`");
            return None;
        };
        let munge = directory.join("munge");
        fs::create_dir_all(&munge).unwrap();
        // Its folder, and all above that are this test's, have to be open to munge's user.
        for folder in directory.ancestors().take(2) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(munge.join("key"), [7; 128]).unwrap();
        fs::set_permissions(munge.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        for path in [&munge, &munge.join("key")] {
            chown(path, Some(user), Some(group)).unwrap();
        }
        fs::create_dir_all(directory.join("ctld")).unwrap();
        fs::write(directory.join("slurm.conf"), configuration(directory)).unwrap();
        let mut cluster = Self { directory: directory.to_owned(), daemons: Vec::new() };
        let at = |name: &str| munge.join(name).display().to_string();
        let (user, group) = (user.to_string(), group.to_string());
        let mut words =
            vec!["--reuid", &user, "--regid", &group, "--clear-groups", "munged", "--foreground", "--force"];
        let files = [("--key-file", "key"), ("--socket", "munge.sock"), ("--pid-file", "pid"), ("--seed-file", "seed")];
        let files: Vec<String> = files.iter().map(|(flag, name)| format!("{flag}={}", at(name))).collect();
        words.extend(files.iter().map(String::as_str));
        cluster.daemon("setpriv", &words);
        let socket = munge.join("munge.sock");
        cluster.wait("munge's socket", || socket.exists());
        cluster.daemon("slurmctld", &["-D", "-c"]);
        for node in ["n1", "n2"] {
            cluster.daemon("slurmd", &["-D", "-N", node]);
        }
        let idle = |cluster: &Self| {
            let mut sinfo = Command::new("sinfo");
            sinfo.args(["--noheader", "--format=%T %D"]).env("SLURM_CONF", cluster.configuration());
            let seen = sinfo.output();
            seen.is_ok_and(|seen| String::from_utf8_lossy(&seen.stdout).trim() == "idle 2")
        };
        cluster.wait("two idle nodes", || idle(&cluster));
        Some(cluster)
    }

    /// The file by which commands find it.
    pub fn configuration(&self) -> PathBuf {
        self.directory.join("slurm.conf")
    }

    /// The ends of what its daemons wrote.
    pub fn words(&self) -> String {
        let logs = (0..self.daemons.len()).map(|number| self.directory.join(format!("daemon{number}.log")));
        let ends = logs.map(|log| {
            let log = fs::read_to_string(log).unwrap_or_default();
            log.lines().rev().take(10).collect::<Vec<_>>().join("\n")
        });
        ends.collect::<Vec<_>>().join("\n----\n")
    }

    fn daemon(&mut self, program: &str, words: &[&str]) {
        let log = fs::File::create(self.directory.join(format!("daemon{}.log", self.daemons.len()))).unwrap();
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.configuration()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    fn wait(&self, what: &str, is_there: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_there() {
            assert!(since.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}:\n{}", self.words());
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // They end in order on TERM; `Child::kill` would leave what they started.
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

fn configuration(directory: &Path) -> String {
    let at = directory.display();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim();
    let [controller, one, two] = [0, 1, 2].map(|_| super::ports::free());
    format!(
        "ClusterName=one\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmctldPort={controller}\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={at}/munge/munge.sock\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\n\
         MpiDefault=none\n\
         ReturnToService=2\n\
         StateSaveLocation={at}/ctld\n\
         SlurmdSpoolDir={at}/d.%n\n\
         SlurmdPidFile={at}/d.%n.pid\n\
         SlurmctldPidFile={at}/ctld.pid\n\
         AccountingStorageType=accounting_storage/none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         SlurmdParameters=config_overrides\n\
         NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={one} CPUs=4 RealMemory=1000\n\
         NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={two} CPUs=4 RealMemory=1000\n\
         PartitionName=all Nodes=ALL Default=YES State=UP\n"
    )
}
