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

#[cfg(test)]
mod tests;
