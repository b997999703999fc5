//! Which modules a source names: every path in it, however it is written.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module's place, from the crate's root.
pub type Place = Vec<String>;

/// A path as a source has it, made absolute where it begins with `crate`, `self` or `super`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The module in which it stands, inline ones included.
    pub from: Place,
    /// Its parts, of the crate where `is_absolute`, else as they stand.
    pub parts: Vec<String>,
    pub is_absolute: bool,
    /// Of a `use`: the name by which the module knows it; `*` for all that is there.
    pub alias: Option<String>,
    /// Of a `use`: whether others see it too.
    pub is_reexport: bool,
}

/// What one source has.
#[derive(Debug, Default)]
pub struct Uses {
    pub named: Vec<Named>,
    /// Items that are defined in it, by module.
    pub defined: BTreeSet<(Place, String)>,
    /// Modules that it has in files of their own.
    pub modules: BTreeSet<Place>,
}

/// Whether tests count as well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    All,
    WithoutTests,
}

/// Reads the source of the module at `place`.
pub fn read(source: &str, place: &[&str], part: Part) -> Uses {
    let tokens: TokenStream = source.parse().expect("a source that compiles can be cut into tokens");
    let mut reader = Reader { uses: Uses::default(), part };
    reader.walk(&tokens.into_iter().collect::<Vec<_>>(), &place.iter().map(|part| (*part).to_owned()).collect());
    reader.uses
}

struct Reader {
    uses: Uses,
    part: Part,
}

impl Reader {
    fn walk(&mut self, tokens: &[TokenTree], place: &Place) {
        let mut at = 0_usize;
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += self.step(rest, place, at.checked_sub(1).map(|before| &tokens[before]));
        }
    }

    /// Reads what `rest` begins with, and says how many tokens that was.
    fn step(&mut self, rest: &[TokenTree], place: &Place, before: Option<&TokenTree>) -> usize {
        match (word(rest).as_str(), &rest[0]) {
            ("", TokenTree::Punct(mark)) if mark.as_char() == '#' && self.part == Part::WithoutTests => {
                if is_of_tests(rest) { item_length(&rest[2..]) + 2 } else { 1 }
            }
            ("", TokenTree::Group(group)) => {
                self.walk(&group.stream().into_iter().collect::<Vec<_>>(), place);
                1
            }
            // `pub(in crate::room)` says who may see it and uses nothing.
            ("pub", _) => match rest.get(1) {
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                    self.item(&rest[2..], place, true).map_or(2, |length| length + 2)
                }
                _ => self.item(&rest[1..], place, true).map_or(1, |length| length + 1),
            },
            ("", _) => 1,
            _ => self.item(rest, place, false).unwrap_or_else(|| self.path(rest, place, before)),
        }
    }

    fn item(&mut self, rest: &[TokenTree], place: &Place, is_public: bool) -> Option<usize> {
        match word(rest).as_str() {
            "use" => {
                let end = rest.iter().position(|token| is_mark(token, ';'))?;
                self.tree(&rest[1..end], place, &[], is_public);
                Some(end + 1)
            }
            "mod" => match (word(&rest[1..]), rest.get(2)) {
                (name, Some(TokenTree::Group(body))) => {
                    let inside: Place = place.iter().cloned().chain([name]).collect();
                    self.walk(&body.stream().into_iter().collect::<Vec<_>>(), &inside);
                    Some(3)
                }
                (name, _) => {
                    self.uses.modules.insert(place.iter().cloned().chain([name]).collect());
                    Some(2)
                }
            },
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static" => {
                let name = rest[1..].iter().map(|token| word(std::slice::from_ref(token)));
                let name = name.into_iter().find(|name| !["mut", "fn", "unsafe", "async"].contains(&name.as_str()))?;
                self.uses.defined.insert((place.clone(), name));
                Some(1)
            }
            _ => None,
        }
    }

    /// A path outside of a `use`.
    fn path(&mut self, rest: &[TokenTree], place: &Place, before: Option<&TokenTree>) -> usize {
        let (parts, length) = segments(rest);
        let goes_on = before.is_some_and(|token| is_mark(token, ':') || is_mark(token, '.'));
        if parts.len() > 1 && !goes_on {
            self.name(place, parts, None, false);
        }
        length.max(1)
    }

    /// A `use`, in which braces may stand in braces.
    fn tree(&mut self, tokens: &[TokenTree], place: &Place, above: &[String], is_public: bool) {
        let (parts, length) = segments(tokens);
        let path: Vec<String> = above.iter().cloned().chain(parts.iter().cloned()).collect();
        match tokens.get(length) {
            Some(TokenTree::Group(group)) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inside.split(|token| is_mark(token, ',')).filter(|branch| !branch.is_empty()) {
                    self.tree(branch, place, &path, is_public);
                }
            }
            Some(token) if is_mark(token, '*') => self.name(place, path, Some("*".to_owned()), is_public),
            _ => {
                let own = path.last().filter(|last| *last == "self").map(|_| path[..path.len() - 1].to_vec());
                let path = if above.is_empty() { path } else { own.unwrap_or(path) };
                let renamed = (word(&tokens[length.min(tokens.len())..]) == "as").then(|| word(&tokens[length + 1..]));
                let alias = renamed.or_else(|| path.last().cloned());
                self.name(place, path, alias, is_public);
            }
        }
    }

    fn name(&mut self, place: &Place, path: Vec<String>, alias: Option<String>, is_reexport: bool) {
        let mut parts = path.as_slice();
        let mut base: Option<Place> = None;
        while let [first, rest @ ..] = parts {
            let here = base.clone().unwrap_or_else(|| place.clone());
            base = Some(match first.as_str() {
                "crate" if base.is_none() => Place::new(),
                "self" => here,
                "super" => here[..here.len().saturating_sub(1)].to_vec(),
                _ => break,
            });
            parts = rest;
        }
        let is_absolute = base.is_some();
        let parts = base.into_iter().flatten().chain(parts.iter().cloned()).collect();
        self.uses.named.push(Named { from: place.clone(), parts, is_absolute, alias, is_reexport });
    }
}

/// `a::b::c` at the beginning, and how many tokens that is; a `::` that leads to braces or a star is counted.
fn segments(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut parts = Vec::new();
    let mut at = 0;
    if is_colons(tokens) {
        at = 2;
    }
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        parts.push(name.to_string());
        at += 1;
        if !is_colons(&tokens[at..]) {
            break;
        }
        at += 2;
    }
    (parts, at)
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    tokens.len() > 1 && is_mark(&tokens[0], ':') && is_mark(&tokens[1], ':')
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == mark)
}

fn word(tokens: &[TokenTree]) -> String {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => name.to_string(),
        _ => String::new(),
    }
}

/// Whether `rest` begins with `#[cfg(test)]`, or another `cfg` in which `test` stands and not `not`.
fn is_of_tests(rest: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(attribute)) = rest.get(1) else { return false };
    let text = attribute.stream().to_string().replace(' ', "");
    text.starts_with("cfg(") && text.contains("test") && !text.contains("not(")
}

/// Tokens of the item that `rest` begins with.
fn item_length(rest: &[TokenTree]) -> usize {
    let is_use = rest.iter().take(3).any(|token| word(std::slice::from_ref(token)) == "use");
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_use,
        other => is_mark(other, ';'),
    };
    rest.iter().position(ends).map_or(rest.len(), |end| end + 1)
}
