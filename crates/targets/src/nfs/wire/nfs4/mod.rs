//! Messages of NFS version 4.1 (RFC 8881).

mod attributes;
mod compound;
mod data;
mod open;
mod session;

pub use attributes::{
    attributes, looked_up, put_get_attributes, put_look_up, put_root, put_server, put_space, root, server, space,
};
pub use compound::{COMPOUND, Compound, NFS4, Op, Problem, Results, told};
pub use data::{commit_done, put_commit, put_read, put_write_head, read_head, write_done};
pub use open::{
    Access, Claim, closed, created, opened, put_close, put_create, put_open_file, put_remove, put_rename, removed,
    renamed,
};
pub use session::{
    Channel, SessionId, Slot, completed, created_session, exchanged_id, put_create_session, put_destroy_client,
    put_destroy_session, put_exchange_id, put_reclaim_complete, put_sequence, sequenced,
};
#[cfg(test)]
mod tests;
