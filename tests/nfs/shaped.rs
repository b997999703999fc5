//! Sweeps of connections over a network in which the limit is planted: each connection is held to a rate, or all of them together are.

use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::commands::output;
use crate::ganesha::Ganesha;
use crate::scratch::scratch;
use crate::skip::skip;
use crate::spaces::{Between, SERVER, Spaces};

/// What a connection may carry, or all of them.
const RATE: &str = "100mbit";
/// Connections that have a rate of their own: consecutive ports of a client, which are even ones.
const CLASSES: u32 = 16;

/// What holds the answers of the server.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    EachConnection,
    All,
}

/// Holds everything to one rate, or, by the port at the client's end, each connection to a rate of its own.
fn hold(spaces: &Spaces, held: Held) {
    let tc = |words: &str| spaces.run_in("r", "tc", &words.split_whitespace().collect::<Vec<_>>());
    if held == Held::All {
        // What no filter takes goes to the first class.
        return tc("filter del dev r0 parent 1:");
    }
    tc("qdisc add dev r0 root handle 1: htb default 10");
    for class in 0..CLASSES {
        let name = format!("1:{:x}", class + 16);
        tc(&format!("class add dev r0 parent 1: classid {name} htb rate {RATE} ceil {RATE} quantum 60000"));
        let ports = format!("match ip dport {:#x} 0x001e", class * 2);
        tc(&format!("filter add dev r0 parent 1: protocol ip prio 1 u32 {ports} flowid {name}"));
    }
}

/// What a sweep says; empty if it says that the machine was too busy to tell.
fn swept(place: &TempDir, url: &str) -> String {
    for seconds in ["8", "16"] {
        let sweep =
            ["io", "sweep", "--path", url, "--size=16M", "--pattern=randread", "--connections=1,4", "--depth=64"];
        let said = output(place, &[&sweep[..], &["--warmup=1", "--quiet", "--duration", seconds]].concat());
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Others disturbed seconds, had the processors, or made the rates stray too far for an answer.
        if !words.contains("enough is unknown") {
            return text;
        }
    }
    String::new()
}

#[test]
fn a_connection_that_is_the_limit_is_told_from_a_path_that_is() {
    if !rustix::process::geteuid().is_root() || Command::new("tc").arg("-V").output().is_err() {
        return skip("networks of their own want root, ip and tc");
    }
    let spaces = match Spaces::new(Between::Router) {
        Ok(spaces) => spaces,
        Err(why) => return skip(&why),
    };
    let in_space = |end: &str, work: &(dyn Fn() -> Option<Ganesha> + Sync)| {
        thread::scope(|scope| {
            let started = scope.spawn(|| {
                spaces.enter(end);
                work()
            });
            started.join().unwrap()
        })
    };
    let Some(ganesha) = in_space("s", &|| Ganesha::start_on("0.0.0.0")) else { return };
    let url = ganesha.url("held.dat", "").replace("127.0.0.1", SERVER);
    let place = scratch();
    spaces.enter("c");
    for held in [Held::EachConnection, Held::All] {
        hold(&spaces, held);
        let said = swept(&place, &url);
        let (named, other) = match held {
            Held::EachConnection => ("One TCP connection is the limit", "One connection is enough"),
            Held::All => ("One connection is enough", "One TCP connection is the limit"),
        };
        if said.is_empty() {
            return skip("others had this machine: a sweep of connections gave no answer");
        }
        // Words are broken where the line ends.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(named) && !said.contains(other), "{said}");
    }
}
