//! The places that an address leads to.

use crate::config::ServerNode;
use crate::config::oracle::{DEFAULT_PORT, OracleAddress, OraclePlace};

/// One place that sessions go to.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// As it is shown: `db1:1521/orcl`.
    pub(super) name: String,
    /// What the driver is given.
    pub(super) connect_string: String,
}

/// The places of an address.
pub(super) fn nodes_of(address: &OracleAddress, per_node: bool) -> Vec<Node> {
    let OraclePlace::Listeners { nodes, service, tls, server, instance } = &address.place else {
        let (OraclePlace::Alias(text) | OraclePlace::Descriptor(text)) = &address.place else {
            unreachable!("a place without listeners is a name or a descriptor")
        };
        return vec![Node { name: text.clone(), connect_string: text.clone() }];
    };
    let groups: Vec<&[ServerNode]> = if per_node { nodes.chunks(1).collect() } else { vec![nodes] };
    let services: Vec<String> = match address.services {
        Some(count) => (1..=count).map(|number| format!("{service}{number}")).collect(),
        None => vec![service.clone()],
    };
    let protocol = if *tls { "tcps" } else { "tcp" };
    let own = |word: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("({word}={value})")).unwrap_or_default()
    };
    let node = |(nodes, service): (&[ServerNode], &String)| {
        let shown: Vec<String> = nodes.iter().map(|node| node.shown(DEFAULT_PORT)).collect();
        let addresses: String = nodes
            .iter()
            .map(|ServerNode { host, port }| {
                let port = port.unwrap_or(DEFAULT_PORT);
                format!("(ADDRESS=(PROTOCOL={protocol})(HOST={host})(PORT={port}))")
            })
            .collect();
        let data = format!("(SERVICE_NAME={service}){}{}", own("SERVER", server), own("INSTANCE_NAME", instance));
        Node {
            name: format!("{}/{service}", shown.join(",")),
            // Without the delay of none, each address that fails costs a second.
            connect_string: format!("(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS_LIST={addresses})(CONNECT_DATA={data}))"),
        }
    };
    groups.iter().flat_map(|group| services.iter().map(move |service| (*group, service))).map(node).collect()
}
