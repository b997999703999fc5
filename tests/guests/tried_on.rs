//! The page of the book that says on what the program was tried. It is written from results of runs, and from nothing else.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel::{KERNELS, Kernel};
use crate::place::place;
use crate::theme::{self, Theme};

const OPENING: &str = "# Kernels and stacks that were tried

Each row was tried in guests of QEMU, on kernels of Debian. `UPDATE_DOCS=1 make test-guests` writes this page from the results, so it is not
edited. A result has the day on which it was found. **Fails**: what the row says is not so yet. A dash: not tried.

";

/// The last result of a theme on a kernel.
struct Tried {
    /// Of the theme that was tried.
    key: String,
    date: String,
    /// The kernel's name at Debian.
    package: String,
    holds: bool,
}

fn file_of(theme: &str, kernel: &str) -> PathBuf {
    place().join("results").join(kernel).join(format!("{theme}.result"))
}

/// Keeps how a theme ended, so that themes may be tried in several runs.
pub fn keep(theme: &Theme, kernel: &Kernel, wrong: &str) {
    let file = file_of(&theme.name, kernel.version);
    let date = jiff::Timestamp::now().strftime("%F");
    let verdict = if wrong.is_empty() { "holds" } else { "fails" };
    fs::create_dir_all(file.parent().unwrap_or(&file)).expect("the folder of results can be made");
    fs::write(&file, format!("{} {date} {} {verdict}\n{wrong}", theme.key, kernel.package))
        .expect("a result can be kept");
    write();
}

impl Tried {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split(' ').map(str::to_owned);
        let (key, date, package) = (words.next()?, words.next()?, words.next()?);
        Some(Self { key, date, package, holds: words.next()? == "holds" })
    }

    /// The result that is kept, unless the theme was another then.
    fn of(theme: &Theme, kernel: &str) -> Option<Self> {
        let text = fs::read_to_string(file_of(&theme.name, kernel)).ok()?;
        Self::read(&text).filter(|tried| tried.key == theme.key)
    }
}

/// Writes the page, if `UPDATE_DOCS` says so.
pub fn write() {
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/tried-on-guests.md");
    fs::write(page, render(&theme::all(), Tried::of)).expect("the page can be written");
}

fn render(themes: &[Theme], tried: impl Fn(&Theme, &str) -> Option<Tried>) -> String {
    let mut rows = String::new();
    let mut packages = std::collections::BTreeSet::new();
    for theme in themes {
        let on = &theme.stands_on;
        let cells = [&theme.holds, &on.file_system, &on.stack, &on.device, &on.control_group].map(|cell| cell.as_str());
        write!(rows, "| {} |", cells.join(" | ")).expect("it grows");
        for kernel in KERNELS {
            let Some(tried) = tried(theme, kernel.version) else {
                rows.push_str(" - |");
                continue;
            };
            let verdict = if tried.holds { "holds" } else { "**fails**" };
            write!(rows, " {verdict}, {} |", tried.date).expect("it grows");
            packages.insert(tried.package);
        }
        rows.push('\n');
    }
    let packages: Vec<String> = packages.iter().map(|package| format!("`{package}`")).collect();
    let mut page = format!("{OPENING}Kernels: {}.\n\n", packages.join(", "));
    page.push_str("| what holds | file system | stack | device | control group |");
    KERNELS.iter().for_each(|kernel| write!(page, " {} |", kernel.version).expect("it grows"));
    page.push_str("\n| --- | --- | --- | --- | --- |");
    KERNELS.iter().for_each(|_| page.push_str(" --- |"));
    format!("{page}\n{rows}")
}

#[test]
fn the_page_has_a_row_for_each_theme_and_calls_nothing_tried_that_was_not() {
    let theme: Theme = toml::from_str(
        "holds = \"It boots.\"\nstands_on = { device = \"NVMe\" }\n[[step]]\nrun = \"true\"\nexit = [0]\n",
    )
    .expect("a theme");
    let page = render(&[theme], |_, kernel| match kernel {
        "5.10" => Tried::read("key 2026-11-30 5.10.0-1-amd64 holds\n"),
        "6.1" => Tried::read("key 2026-11-29 6.1.0-1-amd64 fails\nit does not"),
        _ => None,
    });
    let row = "| It boots. | none | none | NVMe | version 2, without a limit | holds, 2026-11-30 | **fails**, 2026-11-29 | - |\n";
    assert!(page.ends_with(row), "{page}");
    assert!(page.contains("Kernels: `5.10.0-1-amd64`, `6.1.0-1-amd64`.\n"), "{page}");
}
