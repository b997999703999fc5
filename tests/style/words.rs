//! What the style guide forbids in a text: words, and sentences that are too long.

/// Words and turns that name no actor, or that have a plainer form. All lower-case, matched as whole words.
const FORBIDDEN: &[&str] = &[
    "asked for",
    "ever after",
    "everybody",
    "forth and back",
    "is no",
    "nobody",
    "of yours",
    "reckon",
    "reckoned",
    "shall",
    "so-manieth",
    "somebody",
    "there twice",
    "unless reported",
    "unless said",
    "whoever",
];

/// What strings alone are held to. Comments may still have them.
const FORBIDDEN_IN_STRINGS: &[&str] = &[
    "all the same",
    "as yet",
    "been asked",
    "by now",
    "carried",
    "carries",
    "data are",
    "data lie",
    "is asked",
    "put load on",
    "was asked",
    "were asked",
];

/// Turns that hold a forbidden one and are plain English.
const ALLOWED: &[&str] = &["there is no", "carries out"];

pub(crate) const MOST_WORDS: usize = 25;

/// The forbidden words of a text.
pub(crate) fn forbidden(text: &str) -> Vec<&'static str> {
    found(text, FORBIDDEN)
}

/// Those of a string that users see.
pub(crate) fn forbidden_in_strings(text: &str) -> Vec<&'static str> {
    // A single word may be the name of a field.
    let also = if text.trim().contains(' ') { FORBIDDEN_IN_STRINGS } else { &[] };
    found(text, FORBIDDEN).into_iter().chain(found(text, also)).collect()
}

fn found(text: &str, words: &[&'static str]) -> Vec<&'static str> {
    let text = ALLOWED.iter().fold(plain(text), |text, turn| text.replace(turn, " "));
    let spaced = format!(" {text} ");
    let hits = |word: &str| spaced.matches(&format!(" {word} ")).count();
    words.iter().flat_map(|word| std::iter::repeat_n(*word, hits(word))).collect()
}

/// Lower-case words with one blank between them. What is not a word parts words.
fn plain(text: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || "-'_{}".contains(c) { c } else { ' ' };
    let words: String = text.to_lowercase().chars().map(letter).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sentences of more words than a reader can hold.
pub(crate) fn long_sentences(text: &str) -> Vec<String> {
    text.split('\n').flat_map(sentences).filter(|sentence| sentence.split_whitespace().count() > MOST_WORDS).collect()
}

/// The sentences of a line, what stands between grave accents being one word.
fn sentences(line: &str) -> Vec<String> {
    let prose: String =
        line.split('`').enumerate().map(|(place, part)| if place % 2 == 0 { part } else { "CODE" }).collect();
    let mut sentences = vec![String::new()];
    for word in prose.split_whitespace() {
        if let Some(last) = sentences.last_mut() {
            last.push_str(word);
            last.push(' ');
        }
        if word.ends_with(['.', '!', '?']) || word.ends_with(".)") {
            sentences.push(String::new());
        }
    }
    sentences
}

#[test]
fn words_are_found_as_wholes() {
    assert_eq!(forbidden("Nobody asked, since it is no use; there is no more"), ["is no", "nobody"]);
    assert_eq!(forbidden_in_strings("It carries nobody out"), ["nobody", "carries"]);
    assert!(forbidden("It carries out what it was asked").is_empty());
    assert!(forbidden("shallow waters, a server of yourself, masked for").is_empty());
}

#[test]
fn sentences_end_at_full_stops() {
    let words = |count: usize| vec!["word"; count].join(" ");
    assert!(long_sentences(&format!("{}. {}.", words(20), words(25))).is_empty());
    assert_eq!(long_sentences(&words(26)).len(), 1);
    assert!(long_sentences(&format!("{} `{}`", words(24), words(9))).is_empty());
}
