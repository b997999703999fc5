//! The parameters as people read them.

use super::{PARAMETERS, Parameter, Role};

/// The parameters as a Markdown table, for the documentation.
pub fn markdown_table() -> String {
    let mut out =
        String::from("| parameter | default | accepted | meaning | differs from SLOB 2.5 |\n|---|---|---|---|---|\n");
    for Parameter { name, default, accepted, meaning, differs, .. } in &PARAMETERS {
        let default = if default.is_empty() { "–".to_owned() } else { format!("`{default}`") };
        let differs = if differs.is_empty() { "–" } else { differs };
        out.push_str(&format!("| `{name}` | {default} | {accepted} | {meaning} | {differs} |\n"));
    }
    out
}

/// The parameters that have an effect on the embedded engine, one a line with default and meaning, for `--help`.
pub fn help_text() -> String {
    let shown = || PARAMETERS.iter().filter(|parameter| parameter.role != Role::Connection);
    let label = |Parameter { name, default, .. }: &Parameter| {
        if default.is_empty() { (*name).to_owned() } else { format!("{name}={default}") }
    };
    let width = shown().map(|parameter| label(parameter).len()).max().unwrap_or(0);
    shown().map(|parameter| format!("  {:<width$}  {}\n", label(parameter), parameter.meaning)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_table_is_the_generated_one() {
        let documented = include_str!("../../../../../docs/slob.md");
        assert!(
            documented.contains(&markdown_table()),
            "docs/slob.md must hold exactly this table:\n\n{}",
            markdown_table()
        );
    }

    #[test]
    fn help_shows_what_has_an_effect_here() {
        let help = help_text();
        assert!(
            help.starts_with("  UPDATE_PCT=25           Updates in every hundred operations of a session.\n"),
            "{help}"
        );
        assert!(help.contains("EXTERNAL_SCRIPT ") && !help.contains("SYSDBA_PASSWD"), "{help}");
    }
}
