//! What a guest left of a theme, held against what is right.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::pattern::occurs;
use crate::theme::{Step, Theme};

/// What no command of ours prints, whatever it was asked.
const NEVER: &[&str] = &["panicked at"];

/// Lines of a command's output that a failure shows.
const MOST_LINES: usize = 60;

/// What `timeout` ends with: when it ended the command, and when it had to kill it.
const ENDED_BY_TIMEOUT: &[i32] = &[124, 137];

fn read(folder: &Path, name: &str) -> String {
    fs::read(folder.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The text's last lines, indented; with how many are left out.
pub fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(most);
    let mut shown = String::new();
    if left_out > 0 {
        writeln!(shown, "        … {left_out} lines before").expect("a string grows");
    }
    for line in &lines[left_out..] {
        writeln!(shown, "        {line}").expect("a string grows");
    }
    shown
}

/// Everything that is wrong with a theme that came to its end; empty where it holds.
pub fn problems(theme: &Theme, folder: &Path) -> String {
    let mut all = String::new();
    for piece in
        ["begin", "setup"].into_iter().map(str::to_owned).chain((0..theme.step.len()).map(|at| format!("{at}.before")))
    {
        let code = read(folder, &format!("{piece}.code"));
        if !code.is_empty() && code.trim() != "0" {
            writeln!(all, "    set-up failed: `{piece}` ended with {}", code.trim()).expect("a string grows");
            all.push_str(&last_lines(&read(folder, &format!("{piece}.log")), MOST_LINES));
            // Nothing after it means anything.
            return all;
        }
    }
    for (at, step) in theme.step.iter().enumerate() {
        let wrong = wrong_with(step, folder, at);
        if wrong.is_empty() {
            continue;
        }
        writeln!(all, "    command:  {}", step.run.trim().replace('\n', "\n              ")).expect("a string grows");
        if !step.meanwhile.is_empty() {
            writeln!(all, "    meanwhile: {}", step.meanwhile.trim().replace('\n', "\n              "))
                .expect("a string grows");
            all.push_str(&last_lines(&read(folder, &format!("{at}.meanwhile.log")), 20));
        }
        for problem in wrong {
            writeln!(all, "    {problem}").expect("a string grows");
        }
        all.push_str("    printed:\n");
        all.push_str(&last_lines(&read(folder, &format!("{at}.out")), MOST_LINES));
    }
    all
}

fn wrong_with(step: &Step, folder: &Path, at: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let printed = read(folder, &format!("{at}.out"));
    let right = step.exit.iter().map(i32::to_string).collect::<Vec<_>>().join(" or ");
    match read(folder, &format!("{at}.code")).trim().parse::<i32>() {
        Ok(code) if step.exit.contains(&code) => {}
        Ok(code) if ENDED_BY_TIMEOUT.contains(&code) => {
            wrong.push(format!("expected: exit code {right}; it was ended after {} s", step.seconds));
        }
        Ok(code) => wrong.push(format!("expected: exit code {right}; it ended with {code}")),
        Err(_) => wrong.push(format!("expected: exit code {right}; it did not come to run")),
    }
    let missing = step.prints.iter().filter(|pattern| !occurs(pattern, &printed));
    wrong.extend(missing.map(|pattern| format!("expected: it prints `{pattern}`")));
    let never = step.never_prints.iter().map(String::as_str).chain(NEVER.iter().copied());
    let found = never.filter(|pattern| occurs(pattern, &printed));
    wrong.extend(found.map(|pattern| format!("expected: it never prints `{pattern}`")));
    if !step.unchanged.is_empty() {
        let (before, after) = (read(folder, &format!("{at}.sum")), read(folder, &format!("{at}.sum.after")));
        if before.lines().count() != step.unchanged.len() || before.contains("unreadable") {
            wrong.push(format!("expected: {} can be read before it: {before}", step.unchanged.join(", ")));
        }
        for (before, after) in before.lines().zip(after.lines().chain(std::iter::repeat("unreadable"))) {
            if before != after {
                wrong.push(format!("expected: the same bytes on the device before and after: {before}, then {after}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: &str = r#"
        holds = "Errors are named."
        stands_on = { device = "null_blk" }
        [[step]]
        run = "plimsoll io run"
        exit = [1]
        prints = ["Input/output error"]
        never_prints = ["sound"]
        unchanged = ["/dev/vdb"]
    "#;

    /// What is wrong where the guest left these files.
    fn judged(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        problems(&toml::from_str(THEME).expect("a theme"), folder.path())
    }

    const RIGHT: &[(&str, &str)] = &[
        ("setup.code", "0\n"),
        ("0.code", "1\n"),
        ("0.out", "error: Input/output\nerror"),
        ("0.sum", "/dev/vdb 1 2\n"),
        ("0.sum.after", "/dev/vdb 1 2\n"),
    ];

    #[test]
    fn a_theme_holds_only_if_everything_is_right() {
        assert_eq!(judged(RIGHT), "");
        for (name, text, expected) in [
            ("0.code", "0\n", "expected: exit code 1; it ended with 0"),
            ("0.code", "124\n", "it was ended after 120 s"),
            ("0.code", "", "it did not come to run"),
            ("0.out", "error: something", "expected: it prints `Input/output error`"),
            ("0.out", "Input/output error, but sound", "expected: it never prints `sound`"),
            ("0.out", "Input/output error\nthread 'main' panicked at src", "expected: it never prints `panicked at`"),
            ("0.sum.after", "/dev/vdb 1 3\n", "the same bytes on the device"),
            ("0.sum.after", "", "the same bytes on the device"),
            ("0.sum", "", "can be read before it"),
            ("setup.code", "1\n", "set-up failed"),
        ] {
            let files: Vec<(&str, &str)> =
                RIGHT.iter().map(|&(other, right)| if other == name { (name, text) } else { (other, right) }).collect();
            let problems = judged(&files);
            assert!(problems.contains(expected), "{name} = {text}: {problems}");
        }
        assert!(judged(&[]).contains("it did not come to run"));
    }

    #[test]
    fn only_the_end_of_a_long_output_is_shown() {
        let text: String = (1..=50).map(|line| format!("{line}\n")).collect();
        let shown = last_lines(&text, 40);
        assert!(
            shown.starts_with("        … 10 lines before\n        11\n") && shown.ends_with("        50\n"),
            "{shown}"
        );
    }
}
