//! Order entry on SQL servers.

pub(in crate::targets) mod load;
