//! Swingbench: results as XML or JSON, and what charbench prints while it runs.

pub(super) mod charbench;
mod fields;
pub(super) mod json;
mod report;
mod results;
#[cfg(test)]
mod tests;
pub(super) mod xml;
