//! Imports: how fast a thousand AWR reports become runs, and in how much memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::pages::peak_megabytes;
use crate::{Bench, Failure, figure, median, verdict};

const REPORTS: usize = 1_000;
const MAX_SECONDS: f64 = 20.0;
const MAX_MEMORY_MB: f64 = 300.0;

impl Bench {
    /// A thousand reports as text: those of the corpus beside the project, again and again, each copy with a last line of its own so
    /// that it is another file. Without the corpus nothing is measured, and that is said.
    pub(crate) fn imported_reports(&self) -> Result<(), Failure> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
        let reports = reports(&corpus)?;
        if reports.is_empty() {
            figure(&format!("| {REPORTS} AWR reports | not measured: no corpus in {} | | | | |", corpus.display()));
            return Ok(());
        }
        let archive = self.runs.join("reports");
        let _ = std::fs::remove_dir_all(&archive);
        std::fs::create_dir_all(&archive)?;
        let mut bytes = 0;
        for (number, report) in (0..REPORTS).zip(reports.iter().cycle()) {
            let mut text = std::fs::read(report)?;
            text.extend_from_slice(format!("\ncopy {number}\n").as_bytes());
            bytes += text.len();
            std::fs::write(archive.join(format!("awr_{number}.txt")), text)?;
        }
        let (mut seconds, mut memory) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let runs = self.runs.join(format!("imported-{round}"));
            let _ = std::fs::remove_dir_all(&runs);
            let began = Instant::now();
            let peak = self.import(&archive, &runs)?;
            seconds.push(began.elapsed().as_secs_f64());
            memory.push(peak);
            let kept = std::fs::read_dir(&runs)?.count();
            if kept != REPORTS {
                return Err(format!("{kept} of {REPORTS} reports became runs").into());
            }
            std::fs::remove_dir_all(&runs)?;
        }
        std::fs::remove_dir_all(&archive)?;
        let (seconds, memory) = (median(seconds.into_iter()), median(memory.into_iter()));
        let megabytes = bytes as f64 / 1e6;
        figure(&format!(
            "| {REPORTS} AWR reports as text, {megabytes:.0} MB, imported and kept | {seconds:.1} s | - | - | at most {MAX_SECONDS} s | {} |",
            verdict(seconds <= MAX_SECONDS)
        ));
        figure(&format!(
            "| the same: peak memory | {memory:.0} MB | - | - | at most {MAX_MEMORY_MB} MB | {} |",
            verdict(memory <= MAX_MEMORY_MB)
        ));
        Ok(())
    }

    /// Imports a folder and reports the largest memory of the program in MB, as the kernel counted it.
    fn import(&self, archive: &Path, runs: &Path) -> Result<f64, Failure> {
        let mut command = Command::new(&self.program);
        command.arg("import").arg(archive).arg("--runs").arg(runs).arg("--quiet").stdout(Stdio::null());
        let mut child = command.spawn()?;
        let mut peak = 0.0_f64;
        let status = loop {
            // The peak is kept by the kernel, so that looking now and then misses nothing but the last moments.
            peak = peak.max(peak_megabytes(child.id()).unwrap_or(0.0));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        if !status.success() {
            return Err(format!("the import ended with {status}").into());
        }
        Ok(peak)
    }
}

/// AWR reports as text below a folder.
fn reports(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") && is_report(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_report(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    let head = String::from_utf8_lossy(&text[..text.len().min(4_096)]).to_ascii_uppercase();
    head.contains("WORKLOAD REPOSITORY REPORT")
}
