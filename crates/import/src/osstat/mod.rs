//! What iostat, vmstat and mpstat say of a machine.

mod clock;
mod devices;
mod figures;
mod header;
pub(super) mod iostat;
pub(super) mod iostat_json;
pub(super) mod mpstat;
mod samples;
pub(super) mod vmstat;

pub(super) use devices::add;
pub(super) use figures::{Over, over};

#[cfg(test)]
mod tests;
