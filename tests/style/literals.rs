//! Strings and comments of a source file, without its tests.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::path::{Path, PathBuf};

/// What a source file holds besides code, each text with its line.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) strings: Vec<(usize, String)>,
    pub(crate) comments: Vec<(usize, String)>,
    /// Files of modules that are compiled for tests alone.
    pub(crate) test_modules: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    Text,
    Word,
    Sign,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    line: usize,
}

/// All texts of the file.
pub(crate) fn texts(path: &Path, source: &str) -> Texts {
    let tokens = tokens(source);
    let mut texts = Texts::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let attribute = attribute(&tokens, at);
        match attribute.as_ref().map(|(end, words)| (*end, words.as_slice())) {
            Some((end, words)) if is_for_tests(words) => {
                let item_end = end_of_item(&tokens, end);
                texts.test_modules.extend(module(path, tokens.get(end..item_end).unwrap_or_default()));
                at = item_end;
                continue;
            }
            // A reason is read by whoever reads the code.
            Some((end, words)) if words.contains(&"reason") => {
                at = end;
                continue;
            }
            _ => (),
        }
        match token.kind {
            Kind::Comment => texts.comments.push((token.line, prose(token.text))),
            Kind::Text => texts.strings.push((token.line, plain(token.text))),
            Kind::Word | Kind::Sign => (),
        }
        at += 1;
    }
    texts
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            _ if rest.starts_with("//") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
            _ if rest.starts_with("/*") => (Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '\'' => (Kind::Sign, character(rest)),
            _ => match string(rest) {
                Some(length) => (Kind::Text, length),
                None if is_of_word(first) => (Kind::Word, rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())),
                None => (Kind::Sign, first.len_utf8()),
            },
        };
        let (text, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of a character literal or a lifetime's tick.
fn character(rest: &str) -> usize {
    let inner = rest.get(1..).unwrap_or_default();
    let end = match inner.chars().next() {
        Some('\\') => inner.get(2..).and_then(|escaped| Some(escaped.find('\'')? + 2)),
        Some(one) => Some(one.len_utf8()).filter(|end| inner.get(*end..).is_some_and(|after| after.starts_with('\''))),
        None => None,
    };
    end.map_or(1, |end| end + 2)
}

/// The length of a string literal of any form.
fn string(rest: &str) -> Option<usize> {
    let opening = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    if let Some(raw) = opening.strip_prefix('r') {
        let hashes = raw.find(|c| c != '#')?;
        let inner = raw.get(hashes..)?.strip_prefix('"')?;
        let closing = format!("\"{}", "#".repeat(hashes));
        return Some(rest.len() - inner.len() + inner.find(&closing)? + closing.len());
    }
    let inner = opening.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inner.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })?;
    Some(rest.len() - inner.len() + end + 1)
}

/// The attribute that begins at a token: where it ends, and its words.
fn attribute<'a>(tokens: &[Token<'a>], at: usize) -> Option<(usize, Vec<&'a str>)> {
    let sign = |place: usize, sign| tokens.get(place).is_some_and(|it| it.kind == Kind::Sign && it.text == sign);
    if !sign(at, "#") {
        return None;
    }
    let open = if sign(at + 1, "!") { at + 2 } else { at + 1 };
    let end = if sign(open, "[") { end_of_group(tokens, open) } else { return None };
    let words = tokens.get(open..end)?.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text);
    Some((end, words.collect()))
}

fn is_for_tests(words: &[&str]) -> bool {
    words == ["test"] || (words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not"))
}

/// Behind the bracket that closes the one at `open`.
fn end_of_group(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(open).filter(|(_, token)| token.kind == Kind::Sign) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// Behind the block or the semicolon that ends an item.
fn end_of_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match (token.kind, token.text) {
            (Kind::Sign, ";") => return at + 1,
            (Kind::Sign, "{") => return end_of_group(tokens, at),
            (Kind::Sign, "(" | "[") => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Where `mod name;` is: a file or a folder.
fn module(path: &Path, item: &[Token<'_>]) -> Vec<PathBuf> {
    let words: Vec<&str> = item.iter().map(|token| token.text).collect();
    let Some(["mod", name, ";"]) = words.last_chunk() else { return Vec::new() };
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|root| path.ends_with(root));
    let parent = path.parent().unwrap();
    // `#[path = "…"]` before it.
    if let Some(file) = item.iter().find(|token| token.kind == Kind::Text) {
        return vec![parent.join(plain(file.text))];
    }
    let folder = if is_root { parent.to_path_buf() } else { path.with_extension("") };
    vec![folder.join(name), folder.join(format!("{name}.rs"))]
}

fn prose(comment: &str) -> String {
    comment.trim_matches(['/', '*', '!', ' ']).to_owned()
}

/// The text of a string literal, its escapes resolved as far as words need it.
fn plain(literal: &str) -> String {
    let closed = literal.trim_start_matches(|c| c != '"').trim_end_matches('#');
    let inner = closed.strip_prefix('"').and_then(|open| open.strip_suffix('"')).unwrap_or(closed);
    let mut plain = String::new();
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('\n')) => while characters.next_if(|next| next.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                characters.next();
                plain.push('\n');
            }
            ('\\', Some(_)) => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    plain
}

#[test]
fn strings_and_comments_are_read_without_tests() {
    let source = r##"
        //! Of the file.
        mod inner { fn one<'a>(c: &'a str) { say('"', "a \
            b\"", '\''); } } // behind
        #[expect(clippy::all, reason = "not shown")]
        /// Documented.
        #[error("shown")]
        struct It(char, &'static str);
        #[cfg(test)]
        mod tests;
        #[cfg(test)]
        #[path = "one_tests.rs"]
        mod one;
        #[cfg(any(test, feature = "more"))]
        mod more { /* hidden */ const IT: &str = "hidden"; }
        const RAW: &str = r#"r"aw"#;
    "##;
    let texts = texts(Path::new("src/cli/mod.rs"), source);
    let of = |found: &[(usize, String)]| found.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>();
    assert_eq!(of(&texts.strings), ["a b\"", "shown", "r\"aw"]);
    assert_eq!(of(&texts.comments), ["Of the file.", "behind", "Documented."]);
    assert_eq!(texts.test_modules, ["src/cli/tests", "src/cli/tests.rs", "src/cli/one_tests.rs"].map(PathBuf::from));
    assert_eq!(texts.strings.first().map(|(line, _)| *line), Some(3));
}
