//! A network namespace of this machine alone, with its loopback shaped.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{Failure, text};

/// An address by which a server that listens on all of them is known to itself.
const OWN: &str = "10.78.0.1/32";
/// Packets as they are on a network.
const MTU: &str = "1500";

/// Goes with its interfaces.
struct Space(String);

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// Does something on a thread in a new namespace, in which every process that it starts is too. As root; `None` elsewhere.
pub(super) fn inside<T: Send>(work: impl FnOnce() -> Result<Option<T>, Failure> + Send) -> Result<Option<T>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let name = format!("plimsoll-{}-paths", std::process::id());
    text(Command::new("ip").args(["netns", "add", &name]))?;
    let space = Space(name);
    let file = File::open(format!("/run/netns/{}", space.0))?;
    let done = std::thread::scope(|scope| {
        let inside = || -> Result<Option<T>, String> {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| error.to_string())?;
            work().map_err(|error| error.to_string())
        };
        scope.spawn(inside).join()
    });
    Ok(done.map_err(|_| "the thread in a namespace panicked")??)
}

/// Brings up the loopback of the namespace, and holds what is sent from each of these addresses to a rate.
pub(super) fn shape(addresses: &[&str], rate: &str) -> Result<(), Failure> {
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        text(Command::new(words.next().unwrap_or_default()).args(words)).map(drop)
    };
    run(&format!("ip link set lo up mtu {MTU}"))?;
    run(&format!("ip address add {OWN} dev lo"))?;
    run("tc qdisc add dev lo root handle 1: htb")?;
    for (number, address) in (1..).zip(addresses) {
        run(&format!("tc class add dev lo parent 1: classid 1:{number} htb rate {rate} ceil {rate}"))?;
        run(&format!(
            "tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip src {address}/32 flowid 1:{number}"
        ))?;
    }
    Ok(())
}
