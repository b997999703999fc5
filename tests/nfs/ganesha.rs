//! A real NFS server, nfs-ganesha as Debian has it, on ports of its own of 127.0.0.1, without a daemon manager and a port mapper.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::scratch::scratch;
use crate::skip::skip;
use tempfile::TempDir;
use test_support::ports::free;

/// Files that the server and its tests may have open.
const OPEN_FILES: u32 = 8192;

/// With a port mapper that is not there it would end: it is made to believe that it has registered.
const SHIM: &str = "int rpcb_set(unsigned p, unsigned v, const void *n, const void *a) { return 1; }\n\
                    int rpcb_unset(unsigned p, unsigned v, const void *n) { return 1; }\n";

/// The server. Ends when it is dropped.
pub struct Ganesha {
    directory: TempDir,
    server: Option<Child>,
    port: u16,
    mount_port: u16,
    library: PathBuf,
    started: Option<Instant>,
}

/// Where Debian puts libraries, whatever the processor.
fn modules() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|folder| folder.path().join("ganesha"));
    folders.into_iter().find(|folder| folder.join("libfsalvfs.so").exists())
}

impl Ganesha {
    /// Starts it, or says why the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_on("127.0.0.1")
    }

    /// The same, reached by another address of this machine, or by all of them.
    pub fn start_on(address: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("nfs-ganesha wants root");
            return None;
        }
        let (Some(_), Some(modules)) = (found("ganesha.nfsd"), modules()) else {
            skip("nfs-ganesha and nfs-ganesha-vfs are not installed");
            return None;
        };
        let directory = scratch();
        let library = directory.path().join("shim.so");
        let source = directory.path().join("shim.c");
        fs::write(&source, SHIM).unwrap();
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
        if !compiled.is_ok_and(|status| status.success()) {
            skip("no C compiler makes what stands in for a port mapper");
            return None;
        }
        let mut ganesha = Self { directory, server: None, port: free(), mount_port: free(), library, started: None };
        for folder in ["export", "recovery"] {
            fs::create_dir(ganesha.path(folder)).unwrap();
        }
        fs::write(ganesha.path("ganesha.conf"), ganesha.settings(&modules, address)).unwrap();
        ganesha.start_again();
        Some(ganesha)
    }

    fn settings(&self, modules: &Path, address: &str) -> String {
        let Self { port, mount_port, .. } = self;
        let (modules, export, recovery) = (modules.display(), self.path("export"), self.path("recovery"));
        let (export, recovery) = (export.display(), recovery.display());
        format!(
            "NFS_CORE_PARAM {{ Protocols = 3,4; NFS_Port = {port}; MNT_Port = {mount_port}; Bind_addr = {address};\n\
             Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true;\n\
             RPC_Max_Connections = 4096; Plugins_Dir = \"{modules}\"; }}\n\
             NFSV4 {{ Graceless = true; Minor_Versions = 1; RecoveryBackend = fs; RecoveryRoot = \"{recovery}\";\n\
             Only_Numeric_Owners = true; UseGetpwnam = true; DomainName = localdomain; }}\n\
             EXPORT {{ Export_Id = 1; Path = \"{export}\"; Pseudo = /export; Protocols = 3,4; Transports = TCP;\n\
             Access_Type = RW; Squash = None; SecType = sys; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}\n\
             LOG {{ Default_Log_Level = EVENT; }}\n"
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The exported directory, as this machine sees it.
    pub fn exported(&self, name: &str) -> PathBuf {
        self.path("export").join(name)
    }

    /// The address of a file in it.
    pub fn url(&self, name: &str, parameters: &str) -> String {
        let Self { port, mount_port, .. } = self;
        format!("nfs://127.0.0.1:{port}/export/{name}?mountport={mount_port}{parameters}")
    }

    /// The same in version 4.1.
    pub fn url_4(&self, name: &str, parameters: &str) -> String {
        format!("nfs://127.0.0.1:{}/export/{name}?version=4.1{parameters}", self.port)
    }

    /// Starts it once more, and waits until it takes connections.
    pub fn start_again(&mut self) {
        // Its verifier is the second in which it started: a second life in that one could not be told from the first.
        let next = self.started.map(|started| started + Duration::from_millis(1_100));
        thread::sleep(next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now())));
        self.started = Some(Instant::now());
        let log = self.path("server.log");
        let script = format!("ulimit -n {OPEN_FILES}; exec ganesha.nfsd \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "ganesha.nfsd", "-F", "-N", "NIV_EVENT", "-f"]).arg(self.path("ganesha.conf"));
        command.arg("-L").arg(&log).arg("-p").arg(self.path("pid")).env("LD_PRELOAD", &self.library);
        let output = File::create(self.path("output")).unwrap();
        self.server = Some(command.stdin(Stdio::null()).stderr(output).stdout(Stdio::null()).spawn().unwrap());
        let patience = Instant::now() + Duration::from_secs(60);
        while [self.port, self.mount_port].iter().any(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()) {
            assert!(Instant::now() < patience, "{}", fs::read_to_string(&log).unwrap_or_default());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Of the server that runs.
    #[allow(dead_code, reason = "for tests that move it into a control group")]
    pub fn pid(&self) -> u32 {
        self.server.as_ref().unwrap().id()
    }

    /// As a power cut would end it.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            server.wait().unwrap();
        }
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        self.kill();
    }
}

fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
