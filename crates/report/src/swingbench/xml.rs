//! Elements of an XML document, escaped and indented as Swingbench has them.

use std::borrow::Cow;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// Blanks for each level.
const INDENT: usize = 3;

/// Where elements are written.
pub(super) type Xml<'a> = Writer<&'a mut dyn Write>;

/// An element's name, and its text if that is known.
pub(super) type Field = (&'static str, Option<String>);

/// What stands for a field that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// An element without text.
    Empty,
    /// Nothing.
    LeftOut,
}

/// A document in UTF-8 that `content` fills.
pub(super) fn document(out: &mut dyn Write, content: impl FnOnce(&mut Xml<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(out, b' ', INDENT);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    content(&mut xml)?;
    xml.into_inner().write_all(b"\n")
}

/// An element with these in it, in their order.
pub(super) fn fields(
    xml: &mut Xml<'_>,
    name: &str,
    id: Option<&str>,
    fields: Vec<Field>,
    unknown: Unknown,
) -> io::Result<()> {
    let id = id.map(possible);
    let element = xml.create_element(name).with_attributes(id.as_deref().map(|id| ("id", id)));
    element.write_inner_content(|xml| {
        for (name, value) in fields {
            match value {
                Some(text) => text_element(xml, name, &text)?,
                None if unknown == Unknown::Empty => _ = xml.create_element(name).write_empty()?,
                None => {}
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// An element with text in it. Quotation marks stand in it as they are, as they do in Swingbench's files.
pub(super) fn text_element(xml: &mut Xml<'_>, name: &str, text: &str) -> io::Result<()> {
    let text = possible(text);
    xml.create_element(name).write_text_content(BytesText::from_escaped(partial_escape(text)))?;
    Ok(())
}

/// The text with what XML 1.0 cannot hold in any form, such as most control characters, replaced by U+FFFD.
fn possible(text: &str) -> Cow<'_, str> {
    let is_impossible =
        |char: char| matches!(char, '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}') && !"\t\n\r".contains(char);
    if text.contains(is_impossible) { Cow::Owned(text.replace(is_impossible, "\u{fffd}")) } else { Cow::Borrowed(text) }
}
