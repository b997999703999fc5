//! Both ends of a network on one host.

use model::record::Workload;
use std::net::IpAddr;

use model::record::Run;

/// Whether every server that a run had is of the host that it was made on, as far as its name says: `self`, or an address of loopback.
pub(crate) fn is_one_host(run: &Run) -> bool {
    run.workload() == Workload::Network && run.imported.is_none() && run.target.address.split(", ").all(is_this_host)
}

fn is_this_host(server: &str) -> bool {
    let host = match server.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => server.rsplit_once(':').map_or(server, |(host, _)| host),
    };
    matches!(host, "self" | "localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_reaches_itself_is_known_by_its_name() {
        for server in ["self", "localhost:7018", "127.0.0.1:7018", "127.8.0.1:1", "[::1]:7018"] {
            assert!(is_this_host(server), "{server}");
        }
        for server in ["db2:7018", "10.0.0.2:7018", "[2001:db8::1]:7018", "self.example:7018", ""] {
            assert!(!is_this_host(server), "{server}");
        }
    }
}
