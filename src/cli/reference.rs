//! `docs/cli.md`, made from the commands themselves.

use crate::cli::help;

const COLUMNS: usize = 100;
const HEADER: &str = "# Commands\n\nThis page is made from the program's own `--help`; a test keeps the two equal. \
                      `UPDATE_DOCS=1 cargo test docs_cli` rewrites it.\n";

fn render() -> String {
    let mut page = HEADER.to_owned();
    let mut root = help::command().term_width(COLUMNS).disable_help_subcommand(true);
    root.build();
    section(&mut root, "plimsoll", &mut page);
    page
}

fn section(command: &mut clap::Command, path: &str, page: &mut String) {
    let help = help::plain(&command.render_long_help().to_string());
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    for inner in command.get_subcommands_mut() {
        let path = format!("{path} {}", inner.get_name());
        section(inner, &path, page);
    }
}

#[test]
#[cfg_attr(not(feature = "oracle"), ignore = "the page has commands that a build without Oracle's driver has not")]
fn docs_cli_is_what_the_commands_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, render()).unwrap();
    }
    let documented = std::fs::read_to_string(path).unwrap();
    assert!(documented == render(), "docs/cli.md is stale: UPDATE_DOCS=1 cargo test docs_cli");
}
