//! Words as a POSIX shell takes them.

/// One word that a shell reads back as `text`: as it is where nothing in it means anything to a shell, else in single quotes.
pub fn shell_word(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "._/-:,+@%=".contains(c);
    // A word that begins with `=` means something to zsh.
    if !text.is_empty() && !text.starts_with('=') && text.chars().all(is_bare) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A command that can be pasted into a shell.
pub fn shell_command<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The same in lines of at most `width` characters, which are pasted together: a line ends between words with a backslash, and a
/// longer word stays whole.
pub fn shell_lines<T: AsRef<str>>(words: impl IntoIterator<Item = T>, width: usize) -> Vec<String> {
    const GOES_ON: &str = " \\";
    let mut lines = vec![String::new()];
    for word in words {
        let word = shell_word(word.as_ref());
        let line = lines.last_mut().expect("it starts with one line and only grows");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() + GOES_ON.len() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            line.push_str(GOES_ON);
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_that_mean_nothing_to_a_shell_stay_as_they_are() {
        let words = ["plimsoll", "slob", "run", "UPDATE_PCT=20", "--target", "dir:/u01/a_b-c.d", "--threads=1,2,4"];
        assert_eq!(shell_command(words), words.join(" "));
    }

    #[test]
    fn a_shell_reads_back_what_was_written() {
        let words = [
            "",
            "a b",
            "1,2,…,64",
            "$HOME",
            "*",
            "(x)",
            "it's",
            "a\"b",
            "`id`",
            "!",
            "~",
            "=ls",
            "\\",
            "#",
            ";&|<>",
            "\t",
        ];
        let said =
            Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {}", shell_command(words))).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), words);
    }

    #[test]
    fn lines_are_pasted_together_and_no_word_is_broken() {
        let words = ["printf", "%s\\0", "a  b", "c", "1,2,…,64", "a long word with blanks in it", "d"];
        let lines = shell_lines(words, 20);
        assert!(lines.iter().all(|line| line.chars().count() <= 20 || !line.contains(' ') || line.contains("long")));
        assert!(lines.len() > 2 && lines[..lines.len() - 1].iter().all(|line| line.ends_with(" \\")), "{lines:?}");
        let said = Command::new("sh").arg("-c").arg(lines.join("\n         ")).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().split_terminator('\0').collect::<Vec<_>>(), words[2..]);
        assert_eq!(shell_lines(["a", "b"], 80), ["a b"]);
    }
}
