//! Data sets on SQL servers: what they are, what of them is still to be loaded, and who loads it.

pub(in crate::targets) mod descriptor;
pub(in crate::targets) mod found;
pub(in crate::targets) mod pieces;
pub(in crate::targets) mod rows;
pub(in crate::targets) mod streams;
