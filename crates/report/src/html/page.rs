//! The frame of every page: head, style, script, and what a browser may load for it, which is nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const FOLLOW_SCRIPT: &str = include_str!("follow.js");
const GENERATOR: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// Whether the beginning of a file is that of a page or a picture which this program, in any version, wrote.
pub fn is_ours(beginning: &str) -> bool {
    let is_page = beginning.contains("<meta name=\"generator\" content=\"plimsoll ");
    is_page || super::picture::MADE_BY.iter().any(|mark| beginning.contains(mark))
}

/// Where a page is read.
#[derive(Debug, Clone, Default)]
pub enum Kept<'a> {
    /// In a file of its own.
    #[default]
    File,
    /// On the local server, with a way back to the list of runs.
    Served {
        /// Set while the run goes on.
        follow: Option<Follow<'a>>,
    },
}

/// How a page keeps up with a run that goes on.
#[derive(Debug, Clone, Copy)]
pub struct Follow<'a> {
    /// Where the page is read again, on the same server.
    pub path: &'a str,
    /// Seconds between two looks.
    pub seconds: u32,
}

/// What stands in the head of a page.
#[derive(Debug)]
pub struct Head<'a> {
    /// Title in the browser's tab.
    pub title: &'a str,
    /// Where it is read.
    pub kept: &'a Kept<'a>,
}

/// What a browser may load for a page. Style and script stand in the page; a page of the server may ask that server again,
/// and send its own forms there.
pub fn policy(kept: &Kept<'_>) -> String {
    let own = if matches!(kept, Kept::Served { .. }) { "'self'" } else { "'none'" };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src {own}; form-action {own}; \
         base-uri 'none'"
    )
}

/// A whole document around `body`, which becomes the content of its `main`.
pub fn page(head: &Head<'_>, body: &Markup) -> String {
    let (is_served, follow) = match head.kept {
        Kept::File => (false, None),
        Kept::Served { follow } => (true, *follow),
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(head.kept));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(GENERATOR);
                meta name="color-scheme" content="light dark";
                title { (head.title) " - Plimsoll" }
                style { (PreEscaped(STYLE)) }
            }
            body data-follow=[follow.map(|follow| follow.path)] data-follow-seconds=[follow.map(|it| it.seconds)] {
                a.skip href="#content" { "To the content" }
                header.top {
                    @if is_served { nav { a href="/" { "All runs" } } }
                    span.brand { "Plimsoll" }
                }
                main #content { (body) }
                script { (PreEscaped(SCRIPT)) }
                @if follow.is_some() { script { (PreEscaped(FOLLOW_SCRIPT)) } }
            }
        }
    }
    .into_string()
}
