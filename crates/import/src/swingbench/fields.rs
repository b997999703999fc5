//! What a results file says, before anything is made of it: the same for XML and JSON.

/// One set of results. Everything is text, by the names that Swingbench uses.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Name and value of what stands in a section, such as `Overview`, in the order of the file.
    pub sections: Vec<Section>,
    /// One for each transaction: its name and its figures.
    pub transactions: Vec<Section>,
}

/// A named group of figures.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Its name.
    pub name: String,
    /// Name and value of each.
    pub fields: Vec<(String, String)>,
}

impl Section {
    /// The value of a field, without blanks; nothing where it is missing or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(known, _)| known == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

impl Fields {
    /// The first section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A field of a section.
    pub fn get(&self, section: &str, name: &str) -> Option<&str> {
        self.section(section)?.get(name)
    }

    /// Adds a field to the last section if it has this name, else to a new one: fields come section by section.
    pub fn push(&mut self, section: &str, name: &str, value: String) {
        if self.sections.last().is_none_or(|last| last.name != section) {
            self.sections.push(Section { name: section.to_owned(), fields: Vec::new() });
        }
        if let Some(last) = self.sections.last_mut() {
            last.fields.push((name.to_owned(), value));
        }
    }
}
