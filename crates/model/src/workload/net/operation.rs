//! One unit that a load on a network asks of it.

use crate::workload::Operation;

/// The kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetKind {
    /// A chunk of a bulk flow, handed to the kernel of this host.
    Send,
    /// A chunk of a bulk flow that comes from the server, received.
    Receive,
    /// A redo write, acknowledged when it is received, or durable.
    Redo,
    /// A small message, answered by a block.
    Block,
    /// A small request, answered by rows.
    Rows,
    /// A few bytes there and back.
    Ping,
}

impl NetKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 6] = [Self::Send, Self::Receive, Self::Redo, Self::Block, Self::Rows, Self::Ping];

    /// The word for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Redo => "redo",
            Self::Block => "block",
            Self::Rows => "rows",
            Self::Ping => "ping",
        }
    }

    /// Whether it is a part of a flow in one direction, which nobody answers.
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::Send | Self::Receive)
    }
}

/// One unit that a load on a network asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetOperation {
    /// What is done.
    pub kind: NetKind,
    /// Bytes that this side sends, all headers of ours included; 0 for a chunk that is received.
    pub request_bytes: u32,
    /// Bytes that the other side sends for it, all headers of ours included; 0 for a chunk that is sent.
    pub answer_bytes: u32,
    /// Whether the other side writes what it was sent durably before it answers.
    pub is_durable: bool,
}

impl Operation for NetOperation {
    const KINDS: &'static [&'static str] = &[
        NetKind::Send.name(),
        NetKind::Receive.name(),
        NetKind::Redo.name(),
        NetKind::Block.name(),
        NetKind::Rows.name(),
        NetKind::Ping.name(),
    ];

    fn kind_index(&self) -> usize {
        self.kind as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_number() {
        for (place, kind) in NetKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, NetOperation::KINDS[place]), (place, kind.name()));
        }
    }
}
