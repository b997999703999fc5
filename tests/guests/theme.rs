//! A theme: what is set up in a guest, which commands run there, and what is right. Each is a file in `themes/`; nothing here knows one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::lossy_disk::Honesty;

/// Disks that every guest with a root image has, by the names that its kernel gives them.
pub const DISKS: &[&str] = &["vdb", "vdc", "vdd", "vde", "nvme0n1", "nvme1n1"];

/// With it a piece of set-up ends at the line that fails, and the log shows which.
const STRICT: &str = "set -ex\n";
const LIBRARY: &str = ". /share/library.sh\n";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theme {
    /// Of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// A name for what its file says: a result of another text is not a result of this theme.
    #[serde(skip)]
    pub key: String,
    /// What is true where the theme passes: a sentence for the table in the book.
    pub holds: String,
    /// Numbers of faults in the list of issue 40, in whose place this theme stays.
    #[serde(default)]
    pub faults: BTreeSet<u32>,
    /// Whether `make test` tries it, in a guest that has nothing but a kernel, `busybox` and the program.
    #[serde(default)]
    pub smoke: bool,
    pub stands_on: StandsOn,
    /// Modules of the kernel that are loaded before, each with its parameters.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Disks that it writes to, of [`DISKS`]; what is on them is wiped before and after.
    #[serde(default)]
    pub disks: Vec<String>,
    /// Kernels that cannot show it.
    #[serde(default)]
    pub except: Option<Except>,
    /// After so many seconds the guest is ended.
    #[serde(default = "theme_seconds")]
    pub seconds: u64,
    /// Shell, in which every line has to succeed.
    #[serde(default)]
    pub setup: String,
    /// Cuts the power between set-up and steps.
    #[serde(default)]
    pub power_cut: Option<PowerCut>,
    pub step: Vec<Step>,
}

/// The guest is ended under load, and its disk `vdb` loses what it had not written down. Then it boots again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerCut {
    pub disk: Honesty,
    /// Whether there is a witness of `plimsoll durable` on the host, which outlives the guest. Its load knows it as `$WITNESS`, and its
    /// notes are in `/share/cut.notes` after the cut.
    #[serde(default)]
    pub witness: bool,
    /// The command that is cut off.
    pub load: String,
    /// How long it puts on load before.
    pub after_seconds: u64,
    /// Shell after the boot that follows.
    pub back: String,
}

/// What a row of the table in the book says of the ground that the theme stands on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandsOn {
    #[serde(default = "none")]
    pub file_system: String,
    #[serde(default = "none")]
    pub stack: String,
    pub device: String,
    #[serde(default = "own_group")]
    pub control_group: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Except {
    pub kernels: Vec<String>,
    pub because: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Shell that comes before it, in which every line has to succeed.
    #[serde(default)]
    pub before: String,
    /// The command that is judged: its exit code and what it prints.
    pub run: String,
    /// Shell that runs while it does.
    #[serde(default)]
    pub meanwhile: String,
    /// Exit codes that are right.
    pub exit: Vec<i32>,
    #[serde(default)]
    pub prints: Vec<String>,
    #[serde(default)]
    pub never_prints: Vec<String>,
    /// Devices and files whose bytes the command must leave as they are.
    #[serde(default)]
    pub unchanged: Vec<String>,
    /// After so many seconds the command is ended, which is wrong.
    #[serde(default = "step_seconds")]
    pub seconds: u64,
}

fn none() -> String {
    "none".to_owned()
}

fn own_group() -> String {
    "version 2, without a limit".to_owned()
}

fn theme_seconds() -> u64 {
    300
}

fn step_seconds() -> u64 {
    120
}

/// All themes, by name.
pub fn all() -> Vec<Theme> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/themes");
    let mut themes = Vec::new();
    for entry in fs::read_dir(&folder).expect("the themes are there") {
        let path = entry.expect("the themes can be listed").path();
        let text = fs::read_to_string(&path).expect("a theme can be read");
        let mut theme: Theme = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        theme.key = crate::place::key(&[&text]);
        theme.name = path.file_stem().expect("a theme has a name").to_string_lossy().into_owned();
        themes.push(theme);
    }
    themes.sort_by(|one, other| one.name.cmp(&other.name));
    themes
}

impl Theme {
    pub fn is_for(&self, kernel: &str) -> bool {
        self.except.as_ref().is_none_or(|except| !except.kernels.iter().any(|other| other == kernel))
    }

    /// The same for the time before its power cut: what it writes then, with what its load knows of a `witness`, and a script that ends while load goes on.
    pub fn write_until(&self, cut: &PowerCut, witness: &str, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("setup.sh"), format!("{LIBRARY}{STRICT}{}\n", self.setup))?;
        fs::write(folder.join("load.sh"), format!("{LIBRARY}{witness}{}\n", cut.load))?;
        let script = format!("{LIBRARY}begin {}\npiece setup\nuntil_cut {}\n", self.name, cut.after_seconds);
        fs::write(folder.join("script"), script)
    }

    /// What is left to do after its power cut.
    pub fn after(&self, cut: &PowerCut) -> Self {
        Self { setup: cut.back.clone(), power_cut: None, disks: Vec::new(), ..self.clone() }
    }

    /// Writes what the guest runs into its folder: `script`, and a file for each piece of shell.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("setup.sh"), format!("{LIBRARY}{STRICT}{}\n", self.setup))?;
        let mut script = format!("{LIBRARY}begin {} {}\n", self.name, self.disks.join(" "));
        for module in &self.modules {
            writeln!(script, "load {module}").expect("a string grows");
        }
        script.push_str("piece setup\n");
        for (at, step) in self.step.iter().enumerate() {
            fs::write(folder.join(format!("{at}.before.sh")), format!("{LIBRARY}{STRICT}{}\n", step.before))?;
            fs::write(folder.join(format!("{at}.run.sh")), format!("{LIBRARY}{}\n", step.run))?;
            if !step.before.is_empty() {
                writeln!(script, "piece {at}.before").expect("a string grows");
            }
            if !step.meanwhile.is_empty() {
                let text = format!("{LIBRARY}set -x\n{}\n", step.meanwhile);
                fs::write(folder.join(format!("{at}.meanwhile.sh")), text)?;
            }
            writeln!(script, "step {at} {} {}", step.seconds, step.unchanged.join(" ")).expect("a string grows");
        }
        script.push_str("finish\n");
        fs::write(folder.join("script"), script)
    }
}

/// Faults in the list of issue 40.
const FAULTS: u32 = 29;

#[test]
fn every_fault_has_a_theme_that_stays() {
    let covered: BTreeSet<u32> = all().into_iter().flat_map(|theme| theme.faults).collect();
    assert_eq!(covered, (1..=FAULTS).collect());
}

/// A theme that is not well-formed would only show it after minutes, in a guest.
#[test]
fn themes_are_complete() {
    let themes = all();
    assert!(themes.iter().any(|theme| theme.smoke), "`make test` has nothing to try");
    for theme in &themes {
        let name = &theme.name;
        assert!(!theme.step.is_empty(), "{name} has no step");
        assert!(theme.holds.ends_with('.') && !theme.holds.contains('|'), "{name}: a sentence for a table");
        for disk in &theme.disks {
            assert!(DISKS.contains(&disk.as_str()), "{name}: no guest has the disk `{disk}`");
        }
        assert!(!theme.smoke || theme.disks.is_empty(), "{name}: a guest without a root image has no disks");
        let limits: u64 = theme.step.iter().map(|step| step.seconds).max().unwrap_or(0);
        assert!(limits <= theme.seconds, "{name}: a step may take longer than the theme");
        if let Some(except) = &theme.except {
            let is_known = |kernel: &String| crate::kernel::KERNELS.iter().any(|known| known.version == *kernel);
            assert!(except.kernels.iter().all(is_known), "{name}: {:?}", except.kernels);
            assert!(except.kernels.len() < crate::kernel::KERNELS.len(), "{name}: no kernel can show it");
            assert!(!except.because.is_empty(), "{name}: why not on {:?}", except.kernels);
        }
        for step in &theme.step {
            assert!(!step.exit.is_empty(), "{name}: `{}` cannot end rightly", step.run);
            assert!(!step.run.trim().is_empty(), "{name}: a step without a command");
            let patterns = step.prints.iter().chain(&step.never_prints);
            for pattern in patterns {
                assert!(!pattern.trim_matches(['*', ' ']).is_empty(), "{name}: an empty pattern");
            }
        }
    }
}
