//! Every theme on every kernel, two guests at a time, and the table of what holds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::kernel::{self, KERNELS, Kernel, Machine};
use crate::lossy_disk::LossyDisk;
use crate::machine::{Accelerator, Guest, Role};
use crate::theme::{self, PowerCut, Theme};
use crate::witness::Witness;
use crate::{image, judge, place, tried_on};

/// Guests at a time: more would only wait for each other on two processors.
const GUESTS: usize = 2;

/// Pages that a disk has in its cache when its power is cut: of few it may keep all, or whole writes alone.
const WORTH_A_CUT: usize = 16;

/// The kernel on which all themes are tried.
const MAIN_KERNEL: &str = "6.1";

/// Themes that are also tried on the other kernels, unless those are named: what a kernel's version changes most. All on all would take
/// an hour.
const ON_EVERY_KERNEL: [&str; 12] = [
    "errors-in-a-range",
    "hang-within-the-window",
    "io-max-named",
    "nfs-server-away",
    "power-cut-lying",
    "refuses-luks",
    "refuses-lvm",
    "refuses-md",
    "stack-btrfs",
    "stack-lvm-thin",
    "stack-xfs-md",
    "zoned-refused",
];

/// What a download may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How each try of a theme ended on a kernel: what is wrong, empty where it holds.
pub type Results = BTreeMap<(String, &'static str), Vec<String>>;

/// What is still to be tried: by kernel, its themes.
struct Queue(Vec<(Kernel, Vec<Theme>)>);

impl Queue {
    /// The next theme, on this kernel as long as there is one: another takes a boot.
    fn next(&mut self, current: Option<&Kernel>) -> Option<(Kernel, Theme)> {
        let is_current = |kernel: &Kernel| current.is_some_and(|current| current.version == kernel.version);
        let stay = self.0.iter().position(|(kernel, themes)| is_current(kernel) && !themes.is_empty());
        let longest = (0..self.0.len()).max_by_key(|&at| self.0[at].1.len());
        let (kernel, themes) = self.0.get_mut(stay.or(longest)?)?;
        let theme = themes.pop()?;
        Some((kernel.clone(), theme))
    }
}

struct Site<'a> {
    accelerator: Accelerator,
    /// The program as guests get it, and as it runs here.
    program: PathBuf,
    host_program: &'a Path,
    root: PathBuf,
    folder: &'a Path,
    queue: Mutex<Queue>,
    results: Mutex<Results>,
}

impl Site<'_> {
    fn role(&self, vdb: Option<PathBuf>, goes_on: bool, has_network: bool) -> Role {
        Role::Whole { program: self.program.clone(), root: self.root.clone(), vdb, goes_on, has_network }
    }
}

/// A lock whose holder panicked has results all the same.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Words of a variable: only themes whose names hold one, only these kernels.
fn chosen(variable: &str) -> Option<Vec<String>> {
    let words = std::env::var(variable).ok()?;
    let words: Vec<String> = words.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

/// How often each theme is tried: what a power cut shows, it shows by chance.
fn times() -> Result<usize, String> {
    let Ok(times) = std::env::var("PLIMSOLL_GUEST_TIMES") else { return Ok(1) };
    if times.is_empty() {
        return Ok(1);
    }
    let number = times.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| format!("PLIMSOLL_GUEST_TIMES is a number from 1 to 1000, not {times}"))
}

pub fn try_all(program: &Path, folder: &Path) -> Result<(), String> {
    let began = Instant::now();
    let (only_themes, only_kernels) = (chosen("PLIMSOLL_GUEST_THEMES"), chosen("PLIMSOLL_GUEST_KERNELS"));
    let times = times()?;
    let mut themes = theme::all();
    if let Some(words) = &only_themes {
        themes.retain(|theme| words.iter().any(|word| theme.name.contains(word)));
    }
    // Taken from the end.
    themes.reverse();
    tried_on::write();
    let lock = place::lock().map_err(|error| error.to_string())?;
    let mut kernels = Vec::new();
    for named in KERNELS {
        if only_kernels.as_ref().is_none_or(|words| words.iter().any(|word| word == named.version)) {
            kernels.push(kernel::bring(named, Machine::Amd64, PATIENCE)?);
        }
    }
    kernel::bring_busybox(Machine::Amd64, PATIENCE)?;
    let root = image::bring_root()?;
    let first = kernels.first().ok_or("no kernel has such a name")?;
    let disk = folder.join("program");
    image::program_disk(program, &disk)?;
    let accelerator = Accelerator::find(first, &folder.join("probe"))?;
    println!("Prepared in {} s: {}.", began.elapsed().as_secs(), names(&kernels));
    let began = Instant::now();
    let is_tried = |theme: &&Theme, kernel: &Kernel| {
        let is_wanted = kernel.version == MAIN_KERNEL || only_kernels.is_some() || only_themes.is_some();
        theme.is_for(kernel.version) && (is_wanted || ON_EVERY_KERNEL.contains(&theme.name.as_str()))
    };
    let for_kernel = |kernel: &Kernel| {
        let tried = themes.iter().filter(|theme| is_tried(theme, kernel));
        tried.flat_map(|theme| std::iter::repeat_n(theme.clone(), times)).collect()
    };
    let queue = Queue(kernels.iter().map(|kernel| (kernel.clone(), for_kernel(kernel))).collect());
    let site = Site {
        accelerator,
        program: disk,
        host_program: program,
        root,
        folder,
        queue: Mutex::new(queue),
        results: Mutex::new(Results::new()),
    };
    thread::scope(|scope| {
        for number in 0..GUESTS {
            let site = &site;
            scope.spawn(move || work(site, number));
        }
    });
    drop(lock);
    let results = site.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    themes.reverse();
    report(&themes, &kernels, &results, began.elapsed().as_secs())
}

fn names(kernels: &[Kernel]) -> String {
    kernels.iter().map(|kernel| kernel.package.as_str()).collect::<Vec<_>>().join(", ")
}

/// Tries themes until none is left. A guest stays as long as its kernel has themes and each leaves it clean.
fn work(site: &Site, number: usize) {
    let mut guest: Option<(Kernel, Guest)> = None;
    loop {
        let next = locked(&site.queue).next(guest.as_ref().map(|(kernel, _)| kernel));
        let Some((kernel, theme)) = next else { return };
        if guest.as_ref().is_some_and(|(running, _)| running.version != kernel.version) {
            guest = None;
        }
        let began = Instant::now();
        let wrong = match try_one(site, number, &kernel, &theme, &mut guest) {
            Ok(wrong) => wrong,
            Err(why) => {
                guest = None;
                format!("    {why}\n")
            }
        };
        let word = if wrong.is_empty() { "holds" } else { "FAILS" };
        println!("{:>5}  {word}  {:>4} s  {}", kernel.version, began.elapsed().as_secs(), theme.name);
        let mut results = locked(&site.results);
        let tries = results.entry((theme.name.clone(), kernel.version)).or_default();
        tries.push(wrong);
        // One that fails once does not hold.
        let all: String = tries.iter().map(String::as_str).collect();
        tried_on::keep(&theme, &kernel, &all);
    }
}

fn try_one(
    site: &Site,
    number: usize,
    kernel: &Kernel,
    theme: &Theme,
    guest: &mut Option<(Kernel, Guest)>,
) -> Result<String, String> {
    let folder = site.folder.join(format!("guest{number}"));
    if let Some(cut) = &theme.power_cut {
        *guest = None;
        return cut_power(site, kernel, theme, cut, &folder);
    }
    if guest.is_none() {
        let role = site.role(None, false, false);
        *guest = Some((kernel.clone(), Guest::boot(kernel, site.accelerator, &role, &folder)?));
    }
    let Some((_, running)) = guest.as_mut() else { return Err("no guest runs".to_owned()) };
    let results = running.run(theme)?;
    let wrong = judge::problems(theme, &results);
    if !Guest::is_clean(&results) {
        // What it left behind would be another theme's.
        *guest = None;
    }
    keep(kernel, theme, &results)?;
    Ok(wrong)
}

/// Puts everything that a theme printed where it can be read afterwards.
fn keep(kernel: &Kernel, theme: &Theme, results: &Path) -> Result<(), String> {
    let kept = place::place().join("results").join(kernel.version);
    let _ = fs::remove_dir_all(kept.join(&theme.name));
    fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    place::output(Command::new("cp").arg("-r").arg(results).arg(&kept)).map(drop)
}

/// Cuts the power of a guest of the theme's own, and tries the theme's steps in the boot that follows.
fn cut_power(site: &Site, kernel: &Kernel, theme: &Theme, cut: &PowerCut, folder: &Path) -> Result<String, String> {
    // Sockets have short paths.
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let socket = place.path().join("disk");
    let disk = LossyDisk::serve(cut.disk, &socket).map_err(|error| error.to_string())?;
    let notes = place.path().join("cut.notes");
    let mut witness = if cut.witness { Some(Witness::start(site.host_program, &notes)?) } else { None };
    let role = site.role(Some(socket.clone()), false, cut.witness);
    let mut guest = Guest::boot(kernel, site.accelerator, &role, folder)?;
    let before = guest.run_until(theme, cut, &witness.as_ref().map(Witness::variables).unwrap_or_default())?;
    // Between flushes, when the disk has something to lose.
    guest.kill_when(|| disk.unwritten() >= WORTH_A_CUT);
    let lost = disk.lose_power();
    let wrong = judge::problems(&Theme { step: Vec::new(), ..theme.clone() }, &before);
    if !wrong.is_empty() {
        return Ok(wrong);
    }
    if lost == 0 {
        return Err("the power cut lost nothing, so nothing is shown".to_owned());
    }
    let mut guest = Guest::boot(kernel, site.accelerator, &site.role(Some(socket), true, false), folder)?;
    if let Some(witness) = &mut witness {
        witness.ends()?;
        fs::copy(&notes, folder.join("share/cut.notes")).map_err(|error| format!("{}: {error}", notes.display()))?;
    }
    let after = theme.after(cut);
    let results = guest.run(&after)?;
    let wrong = judge::problems(&after, &results);
    keep(kernel, theme, &results)?;
    Ok(wrong)
}

/// Prints what is wrong and the table; an error if anything is.
fn report(themes: &[Theme], kernels: &[Kernel], results: &Results, seconds: u64) -> Result<(), String> {
    let tries: usize = results.values().map(Vec::len).sum();
    let mut failures = 0;
    for ((theme, kernel), tries) in results {
        for wrong in tries.iter().filter(|wrong| !wrong.is_empty()) {
            failures += 1;
            println!("\n---- {theme} on kernel {kernel}{}:\n{wrong}", of_faults(themes, theme));
        }
    }
    println!("\n{}", table(themes, kernels, results));
    println!("{} of {tries} hold, in {} min {:02} s.", tries - failures, seconds / 60, seconds % 60);
    if failures > 0 {
        return Err(format!("{failures} of {tries} tries of themes failed; what is wrong with each is above"));
    }
    if results.is_empty() {
        return Err("no theme has such a name".to_owned());
    }
    Ok(())
}

/// Which faults of the list it stays for.
fn of_faults(themes: &[Theme], name: &str) -> String {
    let faults = themes.iter().find(|theme| theme.name == name).map(|theme| &theme.faults).into_iter().flatten();
    let numbers: Vec<String> = faults.map(u32::to_string).collect();
    if numbers.is_empty() { String::new() } else { format!(" (issue 40, fault {})", numbers.join(", ")) }
}

/// Theme × kernel.
fn table(themes: &[Theme], kernels: &[Kernel], results: &Results) -> String {
    let width = themes.iter().map(|theme| theme.name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}", "theme");
    for kernel in kernels {
        write!(text, "  {:>6}", kernel.version).expect("a string grows");
    }
    text.push('\n');
    for theme in themes {
        write!(text, "{:width$}", theme.name).expect("a string grows");
        for kernel in kernels {
            let cell = match results.get(&(theme.name.clone(), kernel.version)).map(Vec::as_slice) {
                None => "-".to_owned(),
                Some([wrong]) => if wrong.is_empty() { "holds" } else { "FAILS" }.to_owned(),
                Some(tries) => format!("{}/{}", tries.iter().filter(|wrong| wrong.is_empty()).count(), tries.len()),
            };
            write!(text, "  {cell:>6}").expect("a string grows");
        }
        text.push('\n');
    }
    text
}

#[test]
fn what_is_tried_on_every_kernel_is_a_theme() {
    let names: Vec<String> = theme::all().into_iter().map(|theme| theme.name).collect();
    assert!(ON_EVERY_KERNEL.iter().all(|name| names.iter().any(|known| known == name)), "{names:?}");
    assert!(KERNELS.iter().any(|kernel| kernel.version == MAIN_KERNEL));
}
