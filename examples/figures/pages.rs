//! Pages: how fast the report of an hour is written and is usable in a browser, and how fast many runs are listed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Bench, Failure, figure, median, run_of, verdict};

/// Runs in the list.
const RUNS: usize = 10_000;
/// Pairs of runs that are compared.
const PAIRS: u32 = 100;
const SECONDS_PER_STEP: u64 = 450;
const SECOND_NS: u64 = 1_000_000_000;
const MAX_MEMORY_MB: f64 = 200.0;
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Written at the end of a page: by then the page's own script has attached to its charts. Asking for the size of the page makes
/// the browser lay all of it out.
const PROBE: &str = "<script>{const at = () => performance.now(); const size = document.body.scrollHeight; \
                     document.title = `usable ${at()} ms, ${size} high, ${document.documentElement.dataset.charts}`}</script>";

impl Bench {
    /// An hour in seconds and eight steps: a short sweep with updates on the engine, whose seconds are repeated until they are an
    /// hour. Its figures mean nothing; its documents are as large as those of a real hour, with every event and device.
    fn hour(&self) -> Result<String, Failure> {
        let target = format!("dir:{}", self.runs.join("data").display());
        let runs = self.runs.display().to_string();
        let _ = self.plimsoll_text(&["slob", "drop", "--target", &target, "--yes"]);
        self.plimsoll_text(&["slob", "setup", "-s", "1", "SCALE=256M", "--target", &target])?;
        let document = self.plimsoll_text(&[
            "slob",
            "sweep",
            "-s",
            "1",
            "--threads",
            "1,2,4,8,16,32,64,128",
            "--target",
            &target,
            "--warmup",
            "2s",
            "--cache",
            "32M",
            "--runs",
            &runs,
            "--json",
            "RUN_TIME=5",
            "UPDATE_PCT=20",
        ])?;
        let mut document = run_of(&document)?;
        let id = document["id"].as_str().ok_or("a run has no id")?.to_owned();
        let folder = self.runs.join(&id);
        let seconds = std::fs::read_to_string(folder.join("intervals.jsonl"))?;
        let seconds: Vec<Value> = seconds.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("intervals.jsonl"))?);
        for (number, step) in (0_u64..).zip(document["steps"].as_array_mut().ok_or("a run has no steps")?) {
            let own: Vec<&Value> = seconds.iter().filter(|second| second["step"] == step["index"]).collect();
            for (at, second) in (0..SECONDS_PER_STEP).zip(own.iter().cycle()) {
                let mut second = (*second).clone();
                second["offset_ns"] = Value::from(at * SECOND_NS);
                second["warmup"] = Value::from(at < 2);
                writeln!(file, "{second}")?;
            }
            step["window"]["offset_ns"] = Value::from((number * SECONDS_PER_STEP + 2) * SECOND_NS);
            step["window"]["duration_ns"] = Value::from((SECONDS_PER_STEP - 2) * SECOND_NS);
        }
        file.flush()?;
        std::fs::write(folder.join("run.json"), document.to_string())?;
        Ok(id)
    }

    /// Writing the page of that hour, what it weighs, and how soon a browser has it.
    pub(crate) fn report_page(&self) -> Result<(), Failure> {
        let id = self.hour()?;
        let page = self.runs.join("hour.html");
        let (mut seconds, mut memory) = (Vec::new(), 0.0_f64);
        for _ in 0..self.rounds {
            let begin = Instant::now();
            let mut child = Command::new(&self.program)
                .args(["report", &id, "--runs", &self.runs.display().to_string(), "-o", &page.display().to_string()])
                .stderr(Stdio::null())
                .spawn()?;
            while child.try_wait()?.is_none() {
                memory = memory.max(peak_megabytes(child.id()).unwrap_or(0.0));
                std::thread::sleep(Duration::from_millis(1));
            }
            seconds.push(begin.elapsed().as_secs_f64());
        }
        let (took, bytes) = (median(seconds.into_iter()), std::fs::metadata(&page)?.len() as f64 / 1e6);
        row("page of an hour in seconds, 8 steps: written, s", took, 2, 1.0);
        row("the same: MB", bytes, 2, 1.5);
        row("the same: peak memory, MB", memory, 0, MAX_MEMORY_MB);
        let Some(browser) = BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok())
        else {
            figure("| the same: usable in Chromium | - | - | - | - | skipped: there is no Chromium |");
            return Ok(());
        };
        let usable = (0..self.rounds).map(|_| usable_ms(browser, &page, &self.runs.join("profile")));
        let usable = usable.collect::<Result<Vec<f64>, Failure>>()?;
        row("the same: usable in Chromium, from the start of navigation, s", median(usable.into_iter()) / 1e3, 2, 1.0);
        Ok(())
    }

    /// How often identical runs are called different, and how often a tenth more is found: on simulated storage, a fresh seed
    /// for each run.
    pub(crate) fn compared_runs(&self) -> Result<(), Failure> {
        let (mut called_real, mut found) = (0, 0);
        for pair in 0..PAIRS {
            let run = |what: u32, service: &str| -> Result<String, Failure> {
                let folder = self.runs.join(format!("pair-{pair}-{what}"));
                let seed = 1 + 3 * pair + what;
                let path = format!("sim:service={service},servers=4,spread=exponential,seed={seed},clock=simulated");
                let runs = folder.display().to_string();
                self.plimsoll_text(&[
                    "io",
                    "run",
                    "--path",
                    &path,
                    "--pattern",
                    "randread",
                    "--depth",
                    "8",
                    "--duration",
                    "20",
                    "--warmup",
                    "2",
                    "--runs",
                    &runs,
                    "--quiet",
                ])?;
                let kept = std::fs::read_dir(&folder)?.next().ok_or("no run was kept")??;
                Ok(kept.path().display().to_string())
            };
            let (old, same, slower) = (run(0, "200us")?, run(1, "200us")?, run(2, "220us")?);
            let compared = |other: &str| -> Result<(Option<i32>, Value), Failure> {
                let output = Command::new(&self.program).args(["compare", &old, other, "--json"]).output()?;
                Ok((output.status.code(), serde_json::from_slice(&output.stdout)?))
            };
            called_real += u32::from(compared(&same)?.1.to_string().contains("\"real\":true"));
            found += u32::from(compared(&slower)?.0 == Some(1));
        }
        let most = PAIRS / 20;
        figure(&format!(
            "| of {PAIRS} pairs of identical runs, called different | {called_real} | - | - | at most {most} | {} |",
            verdict(called_real <= most)
        ));
        figure(&format!(
            "| of {PAIRS} pairs with storage 10 % slower, called a regression | {found} | - | - | all | {} |",
            verdict(found == PAIRS)
        ));
        Ok(())
    }

    /// The list of many runs.
    pub(crate) fn listed_runs(&self) -> Result<(), Failure> {
        let folder = self.runs.join("many");
        let id = self.hour()?;
        let text = std::fs::read_to_string(self.runs.join(&id).join("run.json"))?;
        for number in 0..RUNS {
            let own = format!("{id}-{number:05}");
            let directory = folder.join(&own);
            std::fs::create_dir_all(&directory)?;
            std::fs::write(directory.join("run.json"), text.replacen(&format!("\"{id}\""), &format!("\"{own}\""), 1))?;
        }
        let begin = Instant::now();
        let mut server = Server::start(&self.program, &folder)?;
        server.get("/")?;
        let first = begin.elapsed().as_secs_f64();
        let (mut page, mut document) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds.max(5) {
            page.push(server.get("/")?.0);
            document.push(server.get("/runs.json")?.0);
        }
        let whole = server.get("/runs.json")?.1;
        let listed: Value = serde_json::from_str(&whole)?;
        let count = listed["runs"].as_array().map_or(0, Vec::len);
        if count != RUNS {
            return Err(format!("{count} of {RUNS} runs are listed").into());
        }
        figure(&format!(
            "| list of {RUNS} runs: first look, from the start of the server, ms | {:.0} | - | - | - | |",
            first * 1e3
        ));
        row("the same: page, after the first look, ms", median(page.into_iter()) * 1e3, 0, 300.0);
        row("the same: all runs as JSON, ms", median(document.into_iter()) * 1e3, 0, 300.0);
        let peak = peak_megabytes(server.child.id()).ok_or("the server's memory cannot be read")?;
        row("the same: peak memory of the server, MB", peak, 0, MAX_MEMORY_MB);
        Ok(())
    }
}

fn row(what: &str, value: f64, digits: usize, most: f64) {
    figure(&format!("| {what} | {value:.digits$} | - | - | at most {most} | {} |", verdict(value <= most)));
}

pub(crate) fn peak_megabytes(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0 / 1e6)
}

/// From the start of navigation to when its charts answer and all of it is laid out.
fn usable_ms(browser: &str, page: &Path, profile: &Path) -> Result<f64, Failure> {
    let probed = page.with_extension("probed.html");
    std::fs::write(&probed, std::fs::read_to_string(page)?.replacen("</body>", &format!("{PROBE}</body>"), 1))?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,900", "--dump-dom"])
        .args([format!("--user-data-dir={}", profile.display()), format!("file://{}", absolute(&probed)?.display())])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let title =
        text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).ok_or("a page without title")?;
    if !title.ends_with("ready") {
        return Err(format!("the charts were not ready: {title}").into());
    }
    Ok(title.split_whitespace().nth(1).ok_or("no time in the title")?.parse()?)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(std::fs::canonicalize(path)?)
}

/// `plimsoll serve`, ended when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &Path, runs: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--runs", &runs.display().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server has no output")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, address })
    }

    /// Seconds until the whole answer was there, and its body.
    fn get(&mut self, path: &str) -> Result<(f64, String), Failure> {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let took = begin.elapsed().as_secs_f64();
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP answer")?;
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("{path}: {}", head.lines().next().unwrap_or_default()).into());
        }
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return Err(format!("{path}: an answer in chunks is not read here").into());
        }
        Ok((took, body.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
