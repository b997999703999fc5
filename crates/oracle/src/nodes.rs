//! The places that an address leads to.

use std::time::Duration;

use model::config::ServerNode;
use model::config::oracle::{DEFAULT_PORT, OracleAddress, OraclePlace};

/// One place that sessions go to.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// As it is shown: `db1:1521/orcl`.
    pub(super) name: String,
    /// What the driver is given.
    pub(super) connect_string: String,
}

/// The places of an address, each of which is to answer `within` a time if that has to stand in its descriptor.
pub(super) fn nodes_of(address: &OracleAddress, per_node: bool, within: Option<Duration>) -> Vec<Node> {
    let (nodes, service, tls, server, instance) = match &address.place {
        OraclePlace::Listeners { nodes, service, tls, server, instance } => (nodes, service, tls, server, instance),
        OraclePlace::Alias(text) | OraclePlace::Descriptor(text) => {
            return vec![Node { name: text.clone(), connect_string: text.clone() }];
        }
    };
    let groups: Vec<&[ServerNode]> = if per_node { nodes.chunks(1).collect() } else { vec![nodes] };
    let services: Vec<String> = match address.services {
        Some(count) => (1..=count).map(|number| format!("{service}{number}")).collect(),
        None => vec![service.clone()],
    };
    let limit = within.map(|limit| limit.as_secs().max(1));
    let limit = limit.map(|s| format!("(CONNECT_TIMEOUT={s})(TRANSPORT_CONNECT_TIMEOUT={s})")).unwrap_or_default();
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
            connect_string: format!(
                "(DESCRIPTION=(RETRY_DELAY=0){limit}(ADDRESS_LIST={addresses})(CONNECT_DATA={data}))"
            ),
        }
    };
    groups.iter().flat_map(|group| services.iter().map(move |service| (*group, service))).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_stands_in_the_descriptor_only_where_it_is_asked_for() {
        let of = |within| {
            let address = "oracle://u@a,b:7/s?services=2&protocol=tcps".parse().unwrap();
            nodes_of(&address, true, within).into_iter().map(|node| node.connect_string).collect::<Vec<_>>()
        };
        let plain = "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS_LIST=(ADDRESS=(PROTOCOL=tcps)(HOST=b)(PORT=7)))\
                     (CONNECT_DATA=(SERVICE_NAME=s2)))";
        assert_eq!((of(None).len(), of(None)[3].as_str()), (4, plain));
        let limited = plain.replace("(ADDRESS_LIST", "(CONNECT_TIMEOUT=3)(TRANSPORT_CONNECT_TIMEOUT=3)(ADDRESS_LIST");
        assert_eq!(of(Some(Duration::from_secs(3)))[3], limited);
    }
}
