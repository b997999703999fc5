//! The page of the book that says on what the program was tried. It is written from a whole run, and from nothing else.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::kernel::KERNELS;
use crate::machine::Accelerator;
use crate::theme::Theme;
use crate::themes_by_kernel::Results;

const OPENING: &str = "# Kernels and stacks that were tried

Each row was tried in guests of QEMU, on kernels of Debian. `UPDATE_DOCS=1 make test-guests` runs them and writes this page, so it is not
edited. *Holds*: what the row says is so. *Fails*: it is not so yet. *Not tried*: this kernel cannot show it.

";

/// Writes the page, if `UPDATE_DOCS` says so and everything was tried.
pub fn write(themes: &[Theme], kernels: &[(&'static str, &str)], results: &Results, accelerator: Accelerator) {
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return;
    }
    let tried = themes.iter().flat_map(|theme| KERNELS.iter().map(move |kernel| (theme, kernel.version)));
    let mut due = tried.filter(|(theme, kernel)| theme.is_for(kernel));
    let is_whole = themes.len() == crate::theme::all().len()
        && due.all(|(theme, kernel)| results.contains_key(&(theme.name.clone(), kernel)));
    if !is_whole {
        println!("The page of the book is not written: not every theme was tried on every kernel.");
        return;
    }
    let date = jiff::Timestamp::now().strftime("%F").to_string();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/tried-on-guests.md");
    fs::write(&page, render(themes, kernels, results, &date, accelerator)).expect("the page can be written");
    println!("Written: {}", page.display());
}

fn render(
    themes: &[Theme],
    kernels: &[(&'static str, &str)],
    results: &Results,
    date: &str,
    accelerator: Accelerator,
) -> String {
    let mut page = OPENING.to_owned();
    let packages: Vec<String> = kernels.iter().map(|(_, package)| format!("`{package}`")).collect();
    writeln!(page, "Date: {date}. Kernels: {}. Guests ran on {accelerator}.\n", packages.join(", ")).expect("it grows");
    page.push_str("| what holds | file system | stack | device | control group |");
    kernels.iter().for_each(|(version, _)| write!(page, " {version} |").expect("it grows"));
    page.push_str("\n| --- | --- | --- | --- | --- |");
    kernels.iter().for_each(|_| page.push_str(" --- |"));
    page.push('\n');
    for theme in themes {
        let on = &theme.stands_on;
        let cells = [&theme.holds, &on.file_system, &on.stack, &on.device, &on.control_group].map(|cell| cell.as_str());
        write!(page, "| {} |", cells.join(" | ")).expect("it grows");
        for (version, _) in kernels {
            let cell = match results.get(&(theme.name.clone(), *version)) {
                None => "not tried",
                Some(wrong) if wrong.is_empty() => "holds",
                Some(_) => "**fails**",
            };
            write!(page, " {cell} |").expect("it grows");
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_page_has_a_row_for_each_theme_and_calls_nothing_tried_that_was_not() {
    let mut theme: Theme = toml::from_str(
        "holds = \"It boots.\"\nstands_on = { device = \"NVMe\" }\n[[step]]\nrun = \"true\"\nexit = [0]\n",
    )
    .expect("a theme");
    theme.name = "boots".to_owned();
    let kernels = [("5.10", "5.10.0-1-amd64"), ("6.1", "6.1.0-1-amd64"), ("6.12", "6.12.1-amd64")];
    let results = Results::from([
        (("boots".to_owned(), "5.10"), String::new()),
        (("boots".to_owned(), "6.1"), "it does not".to_owned()),
    ]);
    let page = render(&[theme], &kernels, &results, "2026-11-30", Accelerator::Tcg);
    let row = "| It boots. | none | none | NVMe | version 2, without a limit | holds | **fails** | not tried |\n";
    assert!(page.ends_with(row), "{page}");
    assert!(
        page.contains(
            "Date: 2026-11-30. Kernels: `5.10.0-1-amd64`, `6.1.0-1-amd64`, `6.12.1-amd64`. Guests ran on TCG."
        )
    );
}
