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

/// The words of a line as a shell takes them: blanks and ends of lines between words, quotation marks and backslashes understood,
/// nothing expanded. Absent where a quotation mark is not closed, or nothing follows a backslash.
pub fn shell_split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            // Between double quotes a backslash stands for itself before all but these.
            (None | Some('"'), '\\') => match letters.next()? {
                '\n' => {}
                next if quote.is_none() || "\"\\$`".contains(next) => word.get_or_insert_default().push(next),
                next => word.get_or_insert_default().extend(['\\', next]),
            },
            (None, letter) if letter.is_ascii_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
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
    fn a_line_is_split_as_a_shell_splits_it() {
        let line = r#"a  'b c' "d \"e\" \f" g\ h '' i'j'"k" \\ l"#;
        let split = shell_split(line).unwrap();
        assert_eq!(split, ["a", "b c", r#"d "e" \f"#, "g h", "", "ijk", r"\", "l"]);
        let said = Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {line}")).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().split_terminator('\0').collect::<Vec<_>>(), split);
        assert_eq!(shell_split("\n a \\\n b\n").unwrap(), ["a", "b"]);
        assert_eq!(shell_split(&shell_command(["it's", "", "$x"])).unwrap(), ["it's", "", "$x"]);
        for open in ["'a", "a \"b", "a\\"] {
            assert_eq!(shell_split(open), None, "{open}");
        }
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
